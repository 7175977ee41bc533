/**
 * What can be wrong with a relay that no single call or event shows, what is known of it meanwhile, and what of that is stored beyond a restart. It
 * judges nothing: problem.ts does.
 */
import type { SecretUse } from "../../rules/relay/live-receiver.ts";
import { defineTable, integer, json, orNull, text } from "../../store/table.ts";

/** What can be wrong with a receiver, or with any relay, that no single call or event shows. */
export const RECEIVER_CODES = [
  "relay_refusing",
  "relay_silent",
  "relay_ignoring",
  "relay_capped",
  "relay_uncalled",
] as const;
export const CODES = [...RECEIVER_CODES, "relay_nobody", "relay_failing"] as const;
export type HealthCode = (typeof CODES)[number];

/** What is counted. */
export type StreakCode = Exclude<HealthCode, "relay_silent" | "relay_uncalled">;

export interface Streak {
  since: number;
  at: number;
  count: number;
  /** Another alert told the owner of one of them: an event died. */
  told?: boolean;
}

/** What is stored of a relay beyond a restart. A save of its definition begins anew. */
export interface StoredHealth {
  version: number;
  /** Whether a call passed `when`. */
  matched: boolean;
  /** Whether an event found its person, or needed none. */
  found: boolean;
  /** The longest run of ignored calls that a matching one ended. */
  usual: number;
  /** Whether the owner was told that nobody calls. */
  uncalledTold: boolean;
  runs: Partial<Record<StreakCode, Streak>>;
  /** When calls last verified by which of two secrets, as all nodes saw it; stored where nodes share the row alone. */
  use?: SecretUse;
}

/** A person said that the problem is seen to. */
export function acknowledgeStreak(stored: StoredHealth, code: StreakCode): void {
  if (code === "relay_ignoring") {
    stored.matched = true;
    stored.usual = Math.max(stored.usual, stored.runs.relay_ignoring?.count ?? 0);
  }
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
    fruitless: orNull(json<StoredHealth>()),
  },
});

/** Where a run lies on the clock that nobody sets, and why the last one came to nothing, which is not stored: it may name a person. */
interface StreakTiming {
  sinceMs: number;
  atMs: number;
  why: string | null;
}

/** What its row tells of one relay. */
export interface HealthRow {
  relayId: string;
  stored: StoredHealth;
  refusedAt: number | null;
  acceptedAt: number | null;
}

/** What is known of one relay. */
export interface RelayHealth extends HealthRow {
  seen: Partial<Record<StreakCode, StreakTiming>>;
  /** As the database has it. */
  storedAcceptedAt: number | null;
  /** Why a call of its refused ones was refused, as it was found by looking into it; `solved`: it names what has to be otherwise. */
  found: { cause: string; solved: boolean } | null;
}
