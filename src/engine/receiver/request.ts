/**
 * The request log: requests to an environment's receivers that were rejected, ignored, duplicates, or answered handshakes, each with its cause. It
 * answers "the provider says that it sent the event". The log is a ring, so that the oldest are overwritten. It never contains a body or a
 * secret. A rejected request adds only the id and the type that its event claims, cut, which are shown as not verified.
 */
import { type Static, Type } from "typebox";
import { toIso, toIsoOrNull } from "../../base/clock.ts";
import { REFUSALS } from "../../base/code/refusal-code.ts";
import { type JsonObject, writeJson } from "../../base/json.ts";
import { MAX_RECENT_CALLS } from "../../base/limit.ts";
import { makePage, type Page, type PageRequest, readSeq } from "../../base/page.ts";
import { Refusal } from "../../base/refusal.ts";
import { oneOf, payloadText, quotingText, orNull as shownOrNull, time } from "../../base/schema.ts";
import { showChoices, showText } from "../../base/shape.ts";
import { cutToLine } from "../../base/text.ts";
import { readEventId, type WhenMismatch } from "../../rules/relay/live-receiver.ts";
import type { ReceiverRelay } from "../../rules/relay/live-relay.ts";
import type { Reader, Store, Writer } from "../../store/port.ts";
import { defineTable, integer, json, orNull, type RowOf, text } from "../../store/table.ts";
import { eventBrief, findEventBriefs } from "../event/brief.ts";

const MAX_SHOWN_CHARS = 100;
const MAX_SHOWN_CHOICES = 4;

export const REQUEST_OUTCOMES = ["refused", "ignored", "duplicate", "answered"] as const;
type CallOutcome = (typeof REQUEST_OUTCOMES)[number];

/** The most characters of a claimed id or type. */
const MAX_CLAIM_CHARS = 100;
/** No control or format characters, and no address of a person. */
const SHOWABLE = /^[^\p{C}@]+$/u;

const claimedEvent = Type.Object({
  id: shownOrNull(payloadText),
  /** The mapped event_type. */
  type: shownOrNull(payloadText),
});
/** The id and type of the event as an unverified request says. They are only shown, as not verified. */
export type ClaimedEvent = Static<typeof claimedEvent>;

/** Cuts the claimed id and type for display. Returns null where neither can be shown. */
export function makeClaim(id: string | null, type: string | null): ClaimedEvent | null {
  const claimed = { id: cutClaim(id), type: cutClaim(type) };
  return claimed.id === null && claimed.type === null ? null : claimed;
}

function cutClaim(text: string | null): string | null {
  return text !== null && SHOWABLE.test(text) ? cutToLine(text, MAX_CLAIM_CHARS) || null : null;
}

/** The result of a request at a relay that follows its receiver. */
const followerOutcome = Type.Object({
  relay: Type.String(),
  outcome: oneOf(["ignored", "duplicate"]),
  cause: quotingText,
  /** The event that it received before; null for an ignored request. */
  eventId: shownOrNull(Type.String()),
});
export type FollowerOutcome = Static<typeof followerOutcome>;

const RECENT_REQUEST = defineTable({
  name: "recent_request",
  key: ["environmentId", "slot"],
  columns: {
    environmentId: integer(),
    /** The place in the ring. */
    slot: integer(),
    /** Increases with each request of the environment. */
    seq: integer(),
    /** The times of the first and the last of several equal requests. */
    firstAt: integer(),
    at: integer(),
    relayName: text(),
    outcome: text<CallOutcome>(),
    /** The code of a refusal, `when`, `duplicate`, or `handshake`. */
    code: text(),
    /** The reason, for the owner. */
    cause: text(),
    /** The caller's address, as the caps count it. */
    source: text(),
    /** The first event of a duplicate. */
    eventId: orNull(text()),
    /** The number of equal requests that the row represents. */
    count: integer(),
    /** The id and type that the last rejected request claims; null where nothing was read. */
    claimed: orNull(json<ClaimedEvent>()),
    /** The result at each follower; null: no relay follows the receiver. */
    followers: orNull(json<readonly FollowerOutcome[]>()),
  },
});

type CallRow = RowOf<typeof RECENT_REQUEST>;
export type RecentRequest = Omit<CallRow, "slot" | "seq" | "claimed"> & { claimed?: ClaimedEvent | null };

export const recentRequestView = Type.Object({
  id: Type.String(),
  /** The time of the last of `count` requests. */
  at: time,
  firstAt: time,
  relay: Type.String(),
  outcome: oneOf(REQUEST_OUTCOMES),
  code: Type.String(),
  cause: quotingText,
  source: Type.String(),
  eventId: shownOrNull(Type.String()),
  /** The first event of a duplicate, with its current state; null for another request, or once the event is deleted. */
  event: shownOrNull(eventBrief),
  /** The id and type of the event as the last rejected request says, not verified. It is null for another request, and where nothing was read. */
  claimed: shownOrNull(claimedEvent),
  /** The number of equal requests of one network that came one after another. */
  count: Type.Integer(),
  /** The result at each relay that follows the receiver; absent if none follows it. */
  followers: Type.Optional(Type.Array(followerOutcome)),
});
export type RecentRequestView = Static<typeof recentRequestView>;

/**
 * Writes one environment's requests, oldest first, each into its group's row where there is one. The oldest rows are overwritten. Returns the rows'
 * numbers in the order of the requests.
 */
export async function writeRecentRequests(
  tx: Writer,
  environmentId: number,
  calls: readonly NewCall[],
): Promise<number[]> {
  const rows = new Map<NewCall, number>();
  const byFold = new Map<object, number>();
  const fresh: NewCall[] = [];
  for (const request of calls) {
    const seq = request.fold?.seq ?? null;
    if (seq !== null && (await addTo(tx, environmentId, seq, request))) rows.set(request, seq);
    else fresh.push(request);
  }
  const newest = await tx.get<{ seq: number | null }>(
    "SELECT max(seq) AS seq FROM recent_request WHERE environment_id = ?1",
    environmentId,
  );
  let seq = newest?.seq ?? 0;
  await tx.run(
    "DELETE FROM recent_request WHERE environment_id = ?1 AND seq <= ?2",
    environmentId,
    seq + fresh.length - MAX_RECENT_CALLS,
  );
  for (const request of fresh) {
    const { fold, ...row } = request;
    const same = fold === null ? undefined : byFold.get(fold);
    if (same !== undefined && (await addTo(tx, environmentId, same, request))) {
      rows.set(request, same);
      continue;
    }
    seq += 1;
    await RECENT_REQUEST.insert(tx, {
      ...row,
      claimed: row.claimed ?? null,
      environmentId,
      seq,
      slot: seq % MAX_RECENT_CALLS,
    });
    rows.set(request, seq);
    if (fold !== null) byFold.set(fold, seq);
  }
  return calls.map((request) => rows.get(request) ?? 0);
}

/** A request to write. `fold` knows the row of earlier equal requests. */
interface NewCall extends RecentRequest {
  fold: { seq: number | null } | null;
}

/** Adds the request to its row. Returns false where the ring overwrote that row. */
async function addTo(tx: Writer, environmentId: number, seq: number, request: NewCall): Promise<boolean> {
  const { at, cause, source, count } = request;
  const claimed = request.claimed == null ? null : writeJson(request.claimed);
  const sql = `UPDATE recent_request SET at = $at, cause = $cause, source = $source, count = count + $count, claimed = coalesce($claimed, claimed)
    WHERE environment_id = $environmentId AND slot = $slot AND seq = $seq`;
  const slot = seq % MAX_RECENT_CALLS;
  return (await tx.run(sql, { environmentId, slot, seq, at, cause, source, count, claimed })) > 0;
}

export interface RequestFilter {
  /** The relay's name. */
  relay?: string | undefined;
  outcome?: CallOutcome | undefined;
  /** The code of a refusal, `when`, or `duplicate`. */
  code?: string | undefined;
  /** Milliseconds since the epoch, inclusive. */
  sinceMs?: number | undefined;
}

/** Codes of the log that are no refusal. */
const OTHER_CODES = ["when", "duplicate", "handshake"];

/** Throws `invalid_input` for a code that no request can have. */
function checkCode(code: string | undefined): void {
  if (code === undefined || OTHER_CODES.includes(code) || Object.hasOwn(REFUSALS, code)) return;
  throw new Refusal(
    "invalid_input",
    `code is not valid: no request is rejected with ${showText(code)}: /docs/errors lists the codes, such as bad_signature.`,
  );
}

/** Lists a page, the newest first. The ring is small enough to scan. Throws `invalid_input` for an unknown code. */
export async function listRecentRequests(
  tx: Reader,
  environmentId: number,
  { relay, outcome, code, sinceMs }: RequestFilter,
  request: PageRequest,
): Promise<Page<RecentRequestView>> {
  checkCode(code);
  const rest = `WHERE environment_id = $environmentId AND ($after IS NULL OR (at, seq) < (SELECT at, seq FROM recent_request WHERE environment_id = $environmentId AND seq = $after))
      AND ($relay IS NULL OR relay_name = $relay OR instr(followers, $inFollowers) > 0) AND ($outcome IS NULL OR outcome = $outcome) AND ($code IS NULL OR code = $code) AND ($since IS NULL OR at >= $since)
    ORDER BY at DESC, seq DESC LIMIT $limit`;
  const rows = await RECENT_REQUEST.all(tx, rest, {
    environmentId,
    after: readSeq(request.after),
    relay: relay ?? null,
    inFollowers: `"relay":${JSON.stringify(relay ?? null)},`,
    outcome: outcome ?? null,
    code: code ?? null,
    since: sinceMs ?? null,
    limit: request.limit + 1,
  });
  return makePage(rows, request, (row) => row.seq, viewCall);
}

/** Returns one request of the log. Throws `not_found`. */
export async function requireRecentRequest(
  tx: Reader,
  environmentId: number,
  id: string,
): Promise<RecentRequestView> {
  const seq = /^\d{1,15}$/.test(id) ? Number(id) : -1;
  const rest = "WHERE environment_id = $environmentId AND slot = $slot AND seq = $seq";
  const slot = seq % MAX_RECENT_CALLS;
  const row = seq < 0 ? null : await RECENT_REQUEST.get(tx, rest, { environmentId, slot, seq });
  if (row !== null) return viewCall(row);
  throw new Refusal(
    "not_found",
    `The log has no request with this id: GET …/calls lists the last ${MAX_RECENT_CALLS} requests that created no event.`,
  );
}

function viewCall(row: CallRow): RecentRequestView {
  const { environmentId: _, slot: __, seq, at, firstAt, relayName, followers, ...request } = row;
  return {
    id: String(seq),
    at: toIso(at),
    firstAt: toIso(firstAt),
    relay: relayName,
    event: null,
    ...request,
    ...(followers === null ? {} : { followers: [...followers] }),
  };
}

/** Adds the first event of each duplicate. */
export async function addFirstEvents(
  store: Store,
  environmentId: number,
  calls: readonly RecentRequestView[],
): Promise<RecentRequestView[]> {
  const ids = calls.flatMap(({ eventId }) => eventId ?? []);
  const events = await findEventBriefs(store, environmentId, ids);
  return calls.map((request) => ({ ...request, event: events.get(request.eventId ?? "") ?? null }));
}

export const requestCountsView = Type.Object({
  refused: Type.Integer(),
  ignored: Type.Integer(),
  duplicate: Type.Integer(),
  /** The counts by the code of the refusal, the most frequent first. */
  codes: Type.Array(Type.Object({ code: Type.String(), calls: Type.Integer() })),
  /** The time from which the log has entries, where it does not reach back far enough. The counts are lower bounds then. */
  knownSince: shownOrNull(time),
});
export type RequestCountsView = Static<typeof requestCountsView>;

/** Counts the requests that became no event, as far as the log reaches. */
export async function countRecentRequests(
  tx: Reader,
  environmentId: number,
  { relay, sinceMs = 0 }: Pick<RequestFilter, "relay" | "sinceMs">,
): Promise<RequestCountsView> {
  const rows = await tx.all<{ outcome: CallOutcome; code: string; calls: number }>(
    `SELECT outcome, code, sum(count) AS calls FROM recent_request
     WHERE environment_id = $environmentId AND ($relay IS NULL OR relay_name = $relay) AND at >= $sinceMs GROUP BY outcome, code ORDER BY calls DESC, code`,
    { environmentId, relay: relay ?? null, sinceMs },
  );
  const of = (one: CallOutcome): number =>
    rows.reduce((sum, { outcome, calls }) => sum + (outcome === one ? calls : 0), 0);
  return {
    refused: of("refused"),
    ignored: of("ignored"),
    duplicate: of("duplicate"),
    codes: rows.filter(({ outcome }) => outcome === "refused").map(({ code, calls }) => ({ code, calls })),
    knownSince: toIsoOrNull(await findKnownSince(tx, environmentId, sinceMs)),
  };
}

/** Finds when the log begins, where it is full and begins after `sinceMs`. */
export async function findKnownSince(
  tx: Reader,
  environmentId: number,
  sinceMs: number,
): Promise<number | null> {
  const sql = "SELECT count(*) AS count, min(at) AS first FROM recent_request WHERE environment_id = ?1";
  const ring = await tx.get<{ count: number; first: number | null }>(sql, environmentId);
  const first = ring?.first ?? sinceMs;
  return ring !== null && ring.count >= MAX_RECENT_CALLS && first > sinceMs ? first : null;
}

const INSTEAD: Readonly<Record<NonNullable<WhenMismatch["instead"]>, string>> = {
  nothing: "has no value there",
  null: "has null there, which never matches",
  "an object": "has an object there, which never matches: name a value inside it in the map",
  "a list": "has a list there, which never matches: name one of its values in the map, such as items.0.type",
};

/** Formats which name of `when` did not match, and the request's value. The sender is verified, so the value may be shown. */
export function formatMismatch({ name, wanted, found, instead }: WhenMismatch): string {
  const says = found === null ? INSTEAD[instead ?? "nothing"] : `has ${show(found)}`;
  const must = showChoices(typeof wanted === "string" ? [show(wanted)] : wanted.map(show), MAX_SHOWN_CHOICES);
  return `when.${name} must be ${must} and the request ${says}`;
}

/** Formats what identified a duplicate, and whether the first request had another body. */
export function formatDuplicate(
  by: { id: string; from: "event_id" | "header" | "values" } | "body",
  hadOtherBody: boolean,
): string {
  if (by === "body") return "the same body was received before on this day (UTC)";
  const known = `an event with the id ${show(by.id)} was received before`;
  if (!hadOtherBody) return known;
  if (by.from === "event_id") return `${known}, with another body: is event_id really the event's own id?`;
  return by.from === "header"
    ? `${known}, with another body: the sender's own header gives both the same id`
    : `${known}, with another body: what their sender signs is the same in both`;
}

function show(text: string): string {
  const line = cutToLine(text, MAX_SHOWN_CHARS);
  return `"${line}${line.length < text.trim().length ? "…" : ""}"`;
}

/** Formats the warning of an event whose mapped `event_id` is missing. */
export function formatMissingEventId(
  { receiver }: ReceiverRelay,
  mapped: JsonObject,
  eventId: string | null,
): string | null {
  if (eventId !== null && Object.hasOwn(mapped, "event_id") && readEventId(mapped) !== null) return null;
  const path = receiver.map.find(([name]) => name === "event_id")?.[1].text;
  if (path === undefined) return null;
  const decides = eventId === null ? "its body decides, within the UTC day," : "the sender's own id decides";
  return `event_id resolves to nothing in this event that can be an id (${path}), so ${decides} what is a duplicate: correct event_id in the map.`;
}
