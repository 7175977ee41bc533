/**
 * What is known of how a relay is doing, and the part of its row that keeps it: its runs of calls and events that come to nothing, when calls
 * were last refused and accepted, and what a save of its definition begins anew. It judges nothing and reads no clock.
 */
import type { SecretUse } from "../relay/live-receiver.ts";
import { defineTable, integer, json, orNull, type RowOf, text } from "../store/table.ts";

/** What is counted. */
export type RunCode = "relay_refusing" | "relay_ignoring" | "relay_nobody" | "relay_failing" | "relay_capped";

/** Runs of good or bad calls that were refused. They are no version's, and time alone makes them no worse: nothing more was lost. */
export const REFUSED: ReadonlySet<RunCode> = new Set(["relay_refusing", "relay_capped"]);

export interface KeptRun {
  since: number;
  at: number;
  count: number;
  /** Another alert told the owner of one of them: an event died. */
  told?: boolean;
}

/** What is kept of a relay beyond a restart. A save of its definition begins anew. */
export interface Kept {
  version: number;
  /** Whether a call passed `when`. */
  matched: boolean;
  /** Whether an event found its person, or needed none. */
  found: boolean;
  /** The longest run of ignored calls that a matching one ended. */
  usual: number;
  /** Whether the owner was told that nobody calls. */
  uncalledTold: boolean;
  runs: Partial<Record<RunCode, KeptRun>>;
  /** When calls last verified by which of two secrets, as all nodes saw it; kept where nodes share the row alone. */
  use?: SecretUse;
}

/** Where a run lies on the clock that nobody sets, and why the last one came to nothing, which is not kept: it may name a person. */
interface Seen {
  sinceMs: number;
  atMs: number;
  why: string | null;
}

/** What its row tells of one relay. */
export interface RowHealth {
  relayId: string;
  kept: Kept;
  refusedAt: number | null;
  acceptedAt: number | null;
}

/** What is known of one relay. */
export interface Known extends RowHealth {
  seen: Partial<Record<RunCode, Seen>>;
  /** As the database has it. */
  storedAcceptedAt: number | null;
  /** Why a call of its refused ones was refused, as it was found by looking into it; `solved`: it names what has to be otherwise. */
  found: { cause: string; solved: boolean } | null;
}

/** The part of the relay's row that tells of its health. No live relay is made of it, so that writing it touches nothing. */
export const HEALTH = defineTable({
  name: "relay",
  key: ["id"],
  columns: {
    id: text(),
    /** When the first of the calls that were refused one after another came; null: the last one verified. */
    refusedSince: orNull(integer()),
    refusedCount: integer(),
    refusedAt: orNull(integer()),
    /** When a call last verified, as far as it is written. */
    acceptedAt: orNull(integer()),
    /** The other runs. */
    fruitless: orNull(json<Kept>()),
  },
});

/** What is kept of a relay of this version when it begins. */
export function keepOf(version: number, before?: Kept): Kept {
  const kept: Kept = { version, matched: false, found: false, usual: 0, uncalledTold: false, runs: {} };
  if (before === undefined) return kept;
  for (const code of REFUSED) if (before.runs[code] !== undefined) kept.runs[code] = before.runs[code];
  return { ...kept, uncalledTold: before.uncalledTold };
}

export function knownOf(relayId: string, row: RowOf<typeof HEALTH> | null): Known {
  const { refusedSince, refusedCount = 0, refusedAt = null, acceptedAt = null, fruitless = null } = row ?? {};
  const kept = fruitless ?? keepOf(0);
  if (refusedSince != null)
    kept.runs.relay_refusing = { since: refusedSince, at: refusedAt ?? refusedSince, count: refusedCount };
  return { relayId, kept, seen: {}, refusedAt, acceptedAt, storedAcceptedAt: acceptedAt, found: null };
}

export function rowOf({ relayId, kept, refusedAt, acceptedAt }: RowHealth): RowOf<typeof HEALTH> {
  const { relay_refusing: refusing, ...runs } = kept.runs;
  const { since: refusedSince = null, count: refusedCount = 0 } = refusing ?? {};
  const fruitless = kept.version === 0 ? null : { ...kept, runs };
  return { id: relayId, refusedSince, refusedCount, refusedAt, acceptedAt, fruitless };
}

/** A person said that the problem is seen to. */
export function countAnew(kept: Kept, code: RunCode): void {
  if (code === "relay_ignoring") {
    kept.matched = true;
    kept.usual = Math.max(kept.usual, kept.runs.relay_ignoring?.count ?? 0);
  }
}
