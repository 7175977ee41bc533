/** Relays as the API shows them, with their recent activity. A secret appears only with its kind, fingerprint and date. */

import { type Static, Type } from "typebox";
import { toIso, toIsoOrNull } from "../../base/clock.ts";
import { makeNameKey, type Page, type PageRequest } from "../../base/page.ts";
import { oneOf, quotingText, savedFile, time, timeOrNull, warningView } from "../../base/schema.ts";
import { type Environment, isLocalEnvironment } from "../../platform/account/environment.ts";
import { listOpenProblemsOfTarget } from "../../platform/audit/problem.ts";
import type { Sealer } from "../../platform/secret/seal.ts";
import { pageByName } from "../../store/index-scan.ts";
import type { Reader } from "../../store/port.ts";
import { describeTrigger } from "../trigger/registry.ts";
import { periodOf, type ScheduleTrigger } from "../trigger/schedule.ts";
import { bindScheme } from "../verify/registry.ts";
import type { Definition } from "./definition-shape.ts";
import { overlaps, RELAY, type RelayRow, receiverUrl, relayTarget, signingOverlaps } from "./relay.ts";
import {
  countLastDay,
  findLastEvents,
  type RelayCounts,
  relayCounts,
  ZERO_COUNTS,
} from "./relay-activity.ts";
import { listRelayProblems } from "./relay-problem.ts";
import { findSecretIssuer } from "./relay-secret.ts";
import { isSource, listFollowers, sourceNameOf, withSourceScheme } from "./source.ts";
import { addFigures } from "./streak-figure.ts";

const item = {
  id: Type.String(),
  name: Type.String(),
  state: oneOf(["active", "paused"]),
  trigger: oneOf(["receiver", "schedule", "data_change"]),
  /** "every Monday at 09:00 UTC", "when order.paid arrives". */
  triggerInWords: Type.String(),
  /** The number of actions. */
  actions: Type.Integer(),
  version: Type.Integer(),
  /** `file`: `at` is when it was synced, or promoted from the environment `promotedFrom`. `dashboard`: when it was edited there. */
  origin: Type.Object({
    kind: oneOf(["file", "dashboard"]),
    at: time,
    promotedFrom: Type.Optional(Type.String()),
  }),
  /** The URL of a receiver; absent for other triggers and for a relay that follows a receiver. */
  receiverUrl: Type.Optional(Type.String()),
  /** The receiver that the relay follows; absent for others. */
  follows: Type.Optional(Type.String()),
  /** The next tick of a schedule; absent for other triggers. `at` is null while the relay is paused or its environment is on hold. */
  nextTick: Type.Optional(Type.Object({ at: timeOrNull, message: Type.String() })),
  lastEventAt: timeOrNull,
  last24h: relayCounts,
};

/** A relay in the list. */
export const relayItem = Type.Object(item);
export type RelayItem = Static<typeof relayItem>;

/** A single relay. */
export const relayView = Type.Object({
  ...item,
  definition: Type.Unsafe<Definition>(Type.Unknown()),
  /** The relays that follow this receiver, by name; absent where none does. */
  followers: Type.Optional(Type.Array(Type.String())),
  createdAt: time,
  updatedAt: time,
  /** `previousUntil`: the previous secret is valid until then. `issuedBy`: the provider that makes the secret, so that you can only paste it. */
  secret: Type.Object({
    kind: oneOf(["minted", "pasted", "public_key", "processor", "none"]),
    fingerprint: Type.Optional(Type.String()),
    setAt: timeOrNull,
    previousUntil: Type.Optional(time),
    issuedBy: Type.Optional(Type.String()),
  }),
  /** The secret of a relay with a call_url; absent for others. */
  signingSecret: Type.Optional(Type.Object({ setAt: time, previousUntil: Type.Optional(time) })),
  /** The sender's handshake at registration. `verifyToken`: what a person gives the sender for it. */
  handshake: Type.Optional(
    Type.Object({ name: Type.String(), message: Type.String(), verifyToken: Type.Optional(Type.String()) }),
  ),
  problems: Type.Array(Type.Object({ code: Type.String(), message: quotingText })),
});
export type RelayView = Static<typeof relayView>;

/** The answer of a save. Only this answer has the secrets that the save generated. */
export const savedRelay = Type.Object({
  relay: relayView,
  receiverUrl: Type.Optional(Type.String()),
  receiverSecret: Type.Optional(Type.String()),
  signingSecret: Type.Optional(Type.String()),
  warnings: Type.Array(warningView),
  ...savedFile,
});
export type SavedRelay = Static<typeof savedRelay>;

export interface ViewContext {
  environment: Environment;
  /** The sealer of the server's key; absent if that key is not available. */
  sealer?: Pick<Sealer, "verifyToken">;
  baseUrl: string;
  nowMs: number;
}

/** Lists a page of the environment's relays, newest first, with the cursor's key of each by its name. */
export async function listRelays(
  tx: Reader,
  context: ViewContext,
  request: PageRequest,
): Promise<Page<RelayItem> & { keys: Map<string, string> }> {
  const page = await pageByName(tx, RELAY, "name", context.environment.id, request, (row) => row);
  const keys = new Map(page.items.map((row) => [row.name, makeNameKey(row)]));
  return { items: await showRows(tx, context, page.items), next: page.next, keys };
}

/** Shows one relay in full. `openProblems` saves a query where they are known. */
export async function showRelay(
  tx: Reader,
  context: ViewContext,
  row: RelayRow,
  openProblems?: RelayView["problems"],
): Promise<RelayView> {
  const [item] = await showRows(tx, context, [row]);
  if (item === undefined) throw new Error("A relay row gave no item.");
  const signing = row.signingSecretSetAt;
  const followers = await listFollowers(tx, row.environmentId, row.name);
  const complete = await withSourceScheme(tx, row.environmentId, row.definition, row.sourceName);
  return {
    ...item,
    definition: row.definition,
    ...(followers.length === 0 ? {} : { followers: followers.map(({ name }) => name) }),
    createdAt: toIso(row.createdAt),
    updatedAt: toIso(row.updatedAt),
    secret: showSecret(context, row),
    ...(signing === null ? {} : { signingSecret: showSigning(context, row, signing) }),
    ...showHandshake(context, row),
    problems: showProblems(
      context,
      row,
      complete,
      openProblems ?? (await listOpenProblems(tx, row, context.nowMs)),
    ),
  };
}

async function showRows(tx: Reader, context: ViewContext, rows: readonly RelayRow[]): Promise<RelayItem[]> {
  const { id } = context.environment;
  // Events are found by the relay's name, so a new relay of the same name continues the counts.
  const names = rows.map(({ name }) => name);
  const lastEvents = await findLastEvents(tx, id, names);
  // A list without any event needs no count.
  const counts = lastEvents.size === 0 ? null : await countLastDay(tx, id, names, context.nowMs);
  return rows.map((row) =>
    viewItem(context, row, lastEvents.get(row.name) ?? null, counts?.get(row.name) ?? ZERO_COUNTS),
  );
}

function viewItem(
  { environment, baseUrl, nowMs }: ViewContext,
  row: RelayRow,
  lastEventAt: number | null,
  last24h: RelayCounts,
): RelayItem {
  const { trigger, actions } = row.definition;
  const follows = sourceNameOf(row.definition);
  return {
    id: row.id,
    name: row.name,
    state: row.state,
    trigger: trigger.kind,
    triggerInWords: describeTrigger(trigger),
    actions: actions.length,
    version: row.version,
    origin: {
      kind: row.originKind,
      at: toIso(row.originAt),
      ...(row.promotedFrom !== null && row.promotedVersion === row.version
        ? { promotedFrom: row.promotedFrom }
        : {}),
    },
    ...(isSource(row.definition) ? { receiverUrl: receiverUrl(baseUrl, environment.appId, row.name) } : {}),
    ...(follows === null ? {} : { follows }),
    ...(trigger.kind === "schedule" ? { nextTick: describeNextTick(trigger, row, environment, nowMs) } : {}),
    lastEventAt: toIsoOrNull(lastEventAt),
    last24h,
  };
}

/** Describes when a schedule ticks next, and why not sooner. `at` is null while the relay is paused or its environment is on hold. */
export function describeNextTick(
  trigger: ScheduleTrigger,
  { state, activeSince }: Pick<RelayRow, "state" | "activeSince">,
  { heldAt }: Pick<Environment, "heldAt">,
  nowMs: number,
): { at: string | null; message: string } {
  const period = periodOf(trigger);
  const startMs = period.startAt(nowMs);
  const next = toIso(period.nextAfter(nowMs));
  if (heldAt !== null || state === "paused") {
    const [brake, end] =
      heldAt !== null ? ["The environment is on hold", "release"] : ["The relay is paused", "resume"];
    const message = `${brake}, so no tick is recorded. The first tick after the ${end} is the start of the next period, at ${next} if the ${end} comes before then.`;
    return { at: null, message };
  }
  // The mark is the beginning of the last period that ticked, or the moment from which the schedule counts.
  if (activeSince <= startMs || activeSince > nowMs)
    return { at: next, message: `The next tick is at ${next}.` };
  const since = toIso(activeSince);
  const message = `The next tick is at ${next}. The schedule counts from ${since}, when the relay was created, changed or resumed or a hold of its environment ended. Periods that began earlier do not tick.`;
  return { at: next, message };
}

function showHandshake(context: ViewContext, { id, definition }: RelayRow): Pick<RelayView, "handshake"> {
  const { trigger } = definition;
  const handshake = trigger.kind === "receiver" ? bindScheme(trigger.verify)?.handshake : null;
  if (handshake == null) return {};
  const { name, todo: message, byToken } = handshake;
  const sealer = byToken === true ? context.sealer : undefined;
  const token = sealer === undefined ? {} : { verifyToken: sealer.verifyToken(id) };
  return { handshake: { name, message, ...token } };
}

/** `previousUntil`: calls also carry a signature of the previous secret until then. */
function showSigning(
  { nowMs }: ViewContext,
  row: RelayRow,
  setAt: number,
): NonNullable<RelayView["signingSecret"]> {
  const until = signingOverlaps(row, nowMs) ? { previousUntil: toIso(row.previousSigningSecretUntil) } : {};
  return { setAt: toIso(setAt), ...until };
}

/** A processor relay shows the environment's own secret. */
function showSecret({ environment, nowMs }: ViewContext, row: RelayRow): RelayView["secret"] {
  const isProcessor = row.secretKind === "processor";
  const fingerprint = isProcessor ? environment.processorSecretFingerprint : row.secretFingerprint;
  const setAt = isProcessor ? environment.processorSecretSetAt : row.secretSetAt;
  const issuer = isLocalEnvironment(environment) ? null : findSecretIssuer(row.definition);
  return {
    kind: row.secretKind,
    ...(fingerprint === null ? {} : { fingerprint }),
    setAt: toIsoOrNull(setAt),
    ...(overlaps(row, nowMs) ? { previousUntil: toIso(row.previousSecretUntil) } : {}),
    ...(issuer === null ? {} : { issuedBy: issuer }),
  };
}

/** Shows the open problems, and broken rules for which no problem was raised yet. `definition` has the scheme of the relay's source. */
function showProblems(
  { environment }: ViewContext,
  row: RelayRow,
  definition: Definition,
  openProblems: RelayView["problems"],
): RelayView["problems"] {
  const hasProcessorSecret = environment.processorSecret !== null;
  const derived = listRelayProblems(definition, {
    follows: row.sourceName !== null,
    kind: row.secretKind,
    text: null,
    hasProcessorSecret,
  });
  return [
    ...openProblems,
    ...derived.filter(({ code }) => !openProblems.some((problem) => problem.code === code)),
  ];
}

async function listOpenProblems(tx: Reader, row: RelayRow, nowMs: number): Promise<RelayView["problems"]> {
  const problems: RelayView["problems"] = [];
  for (const problem of await listOpenProblemsOfTarget(tx, row.environmentId, relayTarget(row.name)))
    problems.push({ code: problem.code, message: await addFigures(tx, row.environmentId, problem, nowMs) });
  return problems;
}
