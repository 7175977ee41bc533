/**
 * Requests to names that no receiver of an app has. They are assigned after the answer, which does not depend on it. An environment that deleted
 * a relay of the name, or has one with another trigger, gets them in its request log. Others are stored by name, with the receiver that the
 * sender may have meant. Strangers cause these rows, so every part is bounded. Requests to unknown apps are dropped.
 */
import { setImmediate } from "node:timers/promises";
import { type Static, Type } from "typebox";
import { toIso } from "../../base/clock.ts";
import { makePage, type Page, type PageRequest } from "../../base/page.ts";
import { orNull as shownOrNull, time } from "../../base/schema.ts";
import { RELAY_NAME } from "../../base/shape.ts";
import { findNearestName } from "../../base/text.ts";
import { listEnvironments } from "../../platform/account/environment.ts";
import type { UnknownReceiverNotice } from "../../platform/audit/notifier.ts";
import type { LiveRelay, Snapshot } from "../../rules/relay/live-relay.ts";
import { relayTarget } from "../../rules/relay/relay.ts";
import type { Reader, Store, Writer } from "../../store/port.ts";
import { defineTable, integer, orNull, type RowOf, text } from "../../store/table.ts";
import type { RecentRequest } from "./request.ts";
import { isHiddenName } from "./unknown-name.ts";

/** The most names of an environment. */
export const MAX_UNKNOWN_NAMES = 50;
/** The most names that are compared with an app's receivers in one write, and the most receivers. Each name takes about a millisecond. */
const MAX_COMPARED_NAMES = 20;
const MAX_COMPARED_RECEIVERS = 500;

const UNKNOWN_REQUEST = defineTable({
  name: "unknown_request",
  key: ["environmentId", "name"],
  columns: {
    environmentId: integer(),
    /** The name as `showUnknownName` shows it. */
    name: text(),
    /** Increases with each name of the environment. */
    seq: integer(),
    firstAt: integer(),
    at: integer(),
    /** The last caller's address, as the caps count it. */
    source: text(),
    /** The receiver that the sender may have meant; null where none is near. */
    nearest: orNull(text()),
    count: integer(),
  },
});

type UnknownRow = RowOf<typeof UNKNOWN_REQUEST>;

export const unknownRequestView = Type.Object({
  id: Type.String(),
  name: Type.String(),
  /** True if `name` is only the length and the fingerprint of a possible secret. */
  hidden: Type.Boolean(),
  /** The receiver that the sender may have meant, or null. */
  nearest: shownOrNull(Type.String()),
  cause: Type.String(),
  source: Type.String(),
  count: Type.Integer(),
  firstAt: time,
  at: time,
});
export type UnknownRequestView = Static<typeof unknownRequestView>;

/** Requests to one name, before they are assigned. */
export interface UnknownRequest {
  appId: string;
  /** The name in the request's path, cut where it is long. */
  name: string;
  /** The stored and shown form of the name. */
  shown: string;
  /** The time when the last one arrived. */
  at: number;
  source: string;
  count: number;
}

export interface FoundCalls {
  /** Requests of environments that deleted a relay of the name, or have one with another trigger. */
  former: RecentRequest[];
  unknown: Omit<UnknownRow, "seq" | "firstAt">[];
  notices: UnknownReceiverNotice[];
}

/** Assigns the requests to environments, and finds what to report. */
export async function findUnknownRequests(
  store: Store,
  snapshot: Snapshot,
  calls: readonly UnknownRequest[],
): Promise<FoundCalls> {
  const found: FoundCalls = { former: [], unknown: [], notices: [] };
  for (const [appId, ofApp] of Map.groupBy(calls, ({ appId }) => appId)) {
    const environments = await store.read((tx) => listEnvironments(tx, appId));
    if (environments.length === 0) continue;
    const relays = snapshot.relays.filter((relay) => relay.appId === appId);
    for (const [at, request] of ofApp.entries()) {
      const ids = environments.map(({ id }) => id);
      const mayBeFormer = RELAY_NAME.test(request.name);
      const former = mayBeFormer ? await store.read((tx) => findFormer(tx, ids, relays, request.name)) : [];
      if (former.length > 0) addFormer(found, request, former);
      else
        addUnknown(
          found,
          request,
          ids,
          at < MAX_COMPARED_NAMES ? findNearest(relays, request.name) : new Map(),
        );
      await setImmediate();
    }
  }
  return found;
}

interface Former {
  environmentId: number;
  cause: string;
}

/** Finds the environments that have or had a relay of the name, and why it receives nothing. */
async function findFormer(
  tx: Reader,
  environmentIds: readonly number[],
  relays: readonly LiveRelay[],
  name: string,
): Promise<Former[]> {
  const sql = `SELECT max(at) AS at FROM audit
    WHERE environment_id = ?1 AND target = ?2 AND event_id IS NULL AND action = 'relay.deleted'`;
  const former: Former[] = [];
  for (const environmentId of environmentIds) {
    const relay = relays.find((one) => one.name === name && one.environmentId === environmentId);
    const deleted = await tx.get<{ at: number | null }>(sql, environmentId, relayTarget(name));
    if (relay !== undefined) former.push({ environmentId, cause: formatOtherTrigger(relay) });
    else if (typeof deleted?.at === "number")
      former.push({ environmentId, cause: `the relay was deleted at ${toIso(deleted.at)}` });
  }
  return former;
}

const KINDS: Readonly<Record<string, string>> = { schedule: "a clock", data_change: "a change of records" };

function formatOtherTrigger({ definition: { trigger }, receiver, waitsFor }: LiveRelay): string {
  if (receiver?.source != null)
    return `the relay of this name follows ${receiver.source.name} and has no URL: the sender must use the URL of ${receiver.source.name}`;
  const paused = waitsFor === "paused" || waitsFor === "both" ? ", is paused" : "";
  return `the relay of this name waits for ${KINDS[trigger.kind] ?? "another trigger"}${paused} and receives no requests`;
}

/** Finds the nearest receiver name in each environment that has one. For a follower it returns the source, because a follower has no URL. */
function findNearest(relays: readonly LiveRelay[], name: string): Map<number, string> {
  const receivers = relays.filter(({ receiver }) => receiver !== null).slice(0, MAX_COMPARED_RECEIVERS);
  const nearest = new Map<number, string>();
  for (const [environmentId, ofEnvironment] of Map.groupBy(receivers, (relay) => relay.environmentId)) {
    const sources = new Map(ofEnvironment.map((relay) => [relay.name, relay.receiver?.source?.name]));
    const near = findNearestName(name, [...sources.keys()]);
    if (near !== null) nearest.set(environmentId, sources.get(near) ?? near);
  }
  return nearest;
}

function addFormer(found: FoundCalls, request: UnknownRequest, former: readonly Former[]): void {
  const { appId, name, at, source, count } = request;
  for (const { environmentId, cause } of former) {
    const why = { outcome: "refused", code: "unknown_receiver", cause } as const;
    found.former.push({
      environmentId,
      relayName: name,
      firstAt: at,
      at,
      ...why,
      source,
      eventId: null,
      count,
      followers: null,
    });
  }
  found.notices.push({ appId, name, cause: former[0]?.cause ?? "", calls: count });
}

/** Adds the request to the environments with a near receiver, or else to all environments of the app. */
function addUnknown(
  found: FoundCalls,
  { appId, shown: name, at, source, count }: UnknownRequest,
  environmentIds: readonly number[],
  nearest: ReadonlyMap<number, string>,
): void {
  const concerned = nearest.size === 0 ? environmentIds : [...nearest.keys()];
  for (const environmentId of concerned)
    found.unknown.push({
      environmentId,
      name,
      at,
      source,
      count,
      nearest: nearest.get(environmentId) ?? null,
    });
  const [first = null] = nearest.values();
  found.notices.push({ appId, name, cause: formatUnknown(first, isHiddenName(name)), calls: count });
}

function formatUnknown(nearest: string | null, hidden: boolean): string {
  const why = hidden
    ? "no receiver of the app has this name, which may be a secret: only its length and fingerprint are kept"
    : "no receiver of the app has this name";
  return nearest === null ? why : `${why}; did the sender mean ${nearest}?`;
}

/** Adds the requests to their names. If there are too many names, those without a near receiver go first, then the oldest. */
export async function writeUnknownRequests(tx: Writer, calls: FoundCalls["unknown"]): Promise<void> {
  for (const [environmentId, ofEnvironment] of Map.groupBy(calls, (request) => request.environmentId)) {
    const newest = await tx.get<{ seq: number | null }>(
      "SELECT max(seq) AS seq FROM unknown_request WHERE environment_id = ?1",
      environmentId,
    );
    let seq = newest?.seq ?? 0;
    for (const { name, at, source, count, nearest } of ofEnvironment) {
      const key = { environmentId, name };
      const known = await UNKNOWN_REQUEST.get(
        tx,
        "WHERE environment_id = $environmentId AND name = $name",
        key,
      );
      if (known !== null) {
        await UNKNOWN_REQUEST.change(tx, key, { at, source, nearest, count: known.count + count });
        continue;
      }
      seq += 1;
      await UNKNOWN_REQUEST.insert(tx, { ...key, seq, firstAt: at, at, source, nearest, count });
    }
    await tx.run(
      `DELETE FROM unknown_request WHERE environment_id = $environmentId AND name IN (
         SELECT name FROM unknown_request WHERE environment_id = $environmentId
         ORDER BY nearest IS NULL, at DESC, seq DESC LIMIT -1 OFFSET $most)`,
      { environmentId, most: MAX_UNKNOWN_NAMES },
    );
  }
}

/** Lists the environment's names, the last requested first. There are few enough to scan. */
export async function listUnknownRequests(
  tx: Reader,
  environmentId: number,
  request: PageRequest,
): Promise<Page<UnknownRequestView>> {
  const rest = "WHERE environment_id = $environmentId ORDER BY at DESC, seq DESC";
  const rows = await UNKNOWN_REQUEST.all(tx, rest, { environmentId });
  const from = request.after === null ? 0 : rows.findIndex(({ seq }) => String(seq) === request.after) + 1;
  return makePage(rows.slice(from), request, ({ seq }) => seq, viewUnknown);
}

function viewUnknown({ seq, name, nearest, source, count, firstAt, at }: UnknownRow): UnknownRequestView {
  const hidden = isHiddenName(name);
  const cause = formatUnknown(nearest, hidden);
  return {
    id: `u${seq}`,
    name,
    hidden,
    nearest,
    cause,
    source,
    count,
    firstAt: toIso(firstAt),
    at: toIso(at),
  };
}
