/**
 * Recent calls: those to an environment's receivers that were refused, ignored or recognised as duplicates, each with its cause, so that
 * "the provider says it sent it" can be answered. They make no event row and are kept in a ring, the oldest making room; no body and no
 * secret is ever kept here, and nothing that an unverified call says.
 */
import { type Static, Type } from "typebox";
import { toIso } from "../ground/clock.ts";
import { MAX_RECENT_CALLS } from "../ground/limit.ts";
import { makePage, type Page, type PageRequest } from "../ground/page.ts";
import { oneOf, orNull as shownOrNull, time } from "../ground/schema.ts";
import { showChoices } from "../ground/shape.ts";
import { cutToLine } from "../ground/text.ts";
import type { WhenMismatch } from "../relay/live-receiver.ts";
import type { Reader, Writer } from "../store/port.ts";
import { defineTable, integer, orNull, type RowOf, text } from "../store/table.ts";

const MAX_SHOWN_CHARS = 100;
const MAX_SHOWN_CHOICES = 4;

export const CALL_OUTCOMES = ["refused", "ignored", "duplicate"] as const;
type CallOutcome = (typeof CALL_OUTCOMES)[number];

const RECENT_CALL = defineTable({
  name: "recent_call",
  key: ["environmentId", "slot"],
  columns: {
    environmentId: integer(),
    /** Its place in the ring. */
    slot: integer(),
    /** Counts the environment's calls; the newest has the highest. */
    seq: integer(),
    at: integer(),
    relayName: text(),
    outcome: text<CallOutcome>(),
    /** A refusal's code, `when` for an ignored call, or `duplicate`. */
    code: text(),
    /** Why, in words for the owner. */
    cause: text(),
    /** The caller's address, as the caps count it. */
    source: text(),
    /** The first event's, on a duplicate. */
    eventId: orNull(text()),
    /** How many calls it stands for; more than 1 over a cap alone. */
    count: integer(),
  },
});

type CallRow = RowOf<typeof RECENT_CALL>;
export type RecentCall = Omit<CallRow, "slot" | "seq">;

export const recentCallView = Type.Object({
  id: Type.String(),
  at: time,
  relay: Type.String(),
  outcome: oneOf(CALL_OUTCOMES),
  code: Type.String(),
  cause: Type.String(),
  source: Type.String(),
  eventId: shownOrNull(Type.String()),
  count: Type.Integer(),
});
export type RecentCallView = Static<typeof recentCallView>;

/** Adds one environment's calls, oldest first; the oldest in the ring make room. */
export async function writeRecentCalls(
  tx: Writer,
  environmentId: number,
  calls: readonly RecentCall[],
): Promise<void> {
  const newest = await tx.get<{ seq: number | null }>(
    "SELECT max(seq) AS seq FROM recent_call WHERE environment_id = ?1",
    environmentId,
  );
  let seq = newest?.seq ?? 0;
  await tx.run(
    "DELETE FROM recent_call WHERE environment_id = ?1 AND seq <= ?2",
    environmentId,
    seq + calls.length - MAX_RECENT_CALLS,
  );
  for (const call of calls) {
    seq += 1;
    await RECENT_CALL.insert(tx, { ...call, environmentId, seq, slot: seq % MAX_RECENT_CALLS });
  }
}

export interface CallFilter {
  /** Relay name. */
  relay?: string | undefined;
  outcome?: CallOutcome | undefined;
  /** Milliseconds since the epoch, inclusive. */
  sinceMs?: number | undefined;
}

/** Newest first; a ring is small enough to be read whole. */
export async function listRecentCalls(
  tx: Reader,
  environmentId: number,
  { relay, outcome, sinceMs }: CallFilter,
  request: PageRequest,
): Promise<Page<RecentCallView>> {
  const rest = `WHERE environment_id = $environmentId AND ($after IS NULL OR seq < $after)
      AND ($relay IS NULL OR relay_name = $relay) AND ($outcome IS NULL OR outcome = $outcome) AND ($since IS NULL OR at >= $since)
    ORDER BY seq DESC LIMIT $limit`;
  const rows = await RECENT_CALL.all(tx, rest, {
    environmentId,
    after: request.after === null ? null : Number(request.after),
    relay: relay ?? null,
    outcome: outcome ?? null,
    since: sinceMs ?? null,
    limit: request.limit + 1,
  });
  return makePage(rows, request, (row) => row.seq, viewCall);
}

function viewCall({ environmentId: _, slot: __, seq, at, relayName, ...call }: CallRow): RecentCallView {
  return { id: String(seq), at: toIso(at), relay: relayName, ...call };
}

const INSTEAD: Readonly<Record<NonNullable<WhenMismatch["instead"]>, string>> = {
  nothing: "names nothing there",
  null: "has null there, which never matches",
  "an object": "has an object there, which never matches: name a value inside it in the map",
  "a list": "has a list there, which never matches: name one of its values in the map, such as items.0.type",
};

/** Which name of `when` did not match, and what the call says instead; its sender is known, so that may be shown, cut short. */
export function tellIgnored({ name, wanted, found, instead }: WhenMismatch): string {
  const says = found === null ? INSTEAD[instead ?? "nothing"] : `says ${show(found)}`;
  const must = showChoices(typeof wanted === "string" ? [show(wanted)] : wanted.map(show), MAX_SHOWN_CHOICES);
  return `when.${name} must be ${must} and the call ${says}`;
}

/** What the call was recognised by, and whether what was received then had another body. */
export function tellDuplicate(
  by: { id: string; from: "event_id" | "header" } | "body",
  hadOtherBody: boolean,
): string {
  if (by === "body") return "the same body was received before on this day (UTC)";
  const known = `an event with the id ${show(by.id)} was received before`;
  if (!hadOtherBody) return known;
  return by.from === "event_id"
    ? `${known}, with another body: is event_id really the event's own id?`
    : `${known}, with another body: the sender's own header gives both the same id`;
}

function show(said: string): string {
  const line = cutToLine(said, MAX_SHOWN_CHARS);
  return `"${line}${line.length < said.trim().length ? "…" : ""}"`;
}
