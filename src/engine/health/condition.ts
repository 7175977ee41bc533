/**
 * The health of a relay: the problems that no single request or event shows, what this process remembers of each relay, and what its row stores.
 * problem.ts decides when a streak is a problem.
 */
import type { SecretUse } from "../../rules/relay/live-receiver.ts";
import { defineTable, integer, json, orNull, type RowOf, text } from "../../store/table.ts";

/** Problems of a receiver, then problems of any relay. */
export const RECEIVER_CODES = [
  "relay_refusing",
  "relay_silent",
  "relay_ignoring",
  "relay_capped",
  "relay_uncalled",
  "never_verified",
] as const;
export const CODES = [...RECEIVER_CODES, "relay_nobody", "relay_failing"] as const;
export type HealthCode = (typeof CODES)[number];

/** Codes that count a streak: the same failure again and again, without a success between. */
export type StreakCode = Exclude<HealthCode, "relay_silent" | "relay_uncalled" | "never_verified">;

/** Streaks of rejected requests. They belong to no version of the definition, and the passage of time does not make them worse. */
export const REFUSED: ReadonlySet<StreakCode> = new Set(["relay_refusing", "relay_capped"]);

export interface Streak {
  since: number;
  at: number;
  count: number;
  /** True if another alert reported one of them already, because an event died. */
  told?: boolean;
}

/** The state that the row stores of a relay. A new version of the definition starts it again. */
export interface StoredHealth {
  version: number;
  /** True if a request matched `when`. */
  matched: boolean;
  /** True if an event found its person, or needed none. */
  found: boolean;
  /** The longest streak of ignored requests that a matching one ended. */
  usual: number;
  /** True if the owner was notified that no request ever arrived. */
  uncalledTold: boolean;
  /** True if the owner was notified that no request verified. An owner who resolves it is notified again only by `relay_refusing`. */
  neverVerifiedAlerted?: boolean;
  runs: Partial<Record<StreakCode, Streak>>;
  /** The times when requests last verified with each of two secrets, as all nodes saw it. Stored only where several nodes share the row. */
  use?: SecretUse;
}

/** Acknowledges the streak of a resolved problem: that many ignored requests now count as usual. */
export function acknowledgeStreak(stored: StoredHealth, code: StreakCode): void {
  if (code === "relay_ignoring") {
    stored.matched = true;
    stored.usual = Math.max(stored.usual, stored.runs.relay_ignoring?.count ?? 0);
  }
}

/** The columns of the relay's row that hold its health. Live relays do not read them, so that writing them reloads no relay. */
export const HEALTH = defineTable({
  name: "relay",
  key: ["id"],
  columns: {
    id: text(),
    /** The time when the current streak of rejected requests began; null after a verified one. */
    refusedSince: orNull(integer()),
    refusedCount: integer(),
    refusedAt: orNull(integer()),
    /** The time when a request last verified, as far as the database has it. */
    acceptedAt: orNull(integer()),
    /** The other streaks. */
    streaks: orNull(json<StoredHealth>()),
  },
});

/** The monotonic times when a streak began and last grew, and the reason. The reason is not stored, because it may name a person. */
interface StreakTiming {
  sinceMs: number;
  atMs: number;
  /** The sentence or what makes it, because most streaks end before anyone reads it. */
  why: string | (() => string) | null;
}

/** The health of one relay as its row stores it. */
export interface HealthRow {
  relayId: string;
  stored: StoredHealth;
  refusedAt: number | null;
  acceptedAt: number | null;
}

/** The health of one relay in this process. */
export interface RelayHealth extends HealthRow {
  seen: Partial<Record<StreakCode, StreakTiming>>;
  /** `acceptedAt` as the database has it. */
  storedAcceptedAt: number | null;
  /** The diagnosed cause of one of the rejected requests. `solved`: the cause names the difference. */
  found: { cause: string; solved: boolean } | null;
}

/** Makes the stored health of a new version. Streaks of rejected requests continue, because they belong to no version. */
export function emptyHealth(version: number, before?: StoredHealth): StoredHealth {
  const stored: StoredHealth = {
    version,
    matched: false,
    found: false,
    usual: 0,
    uncalledTold: false,
    runs: {},
  };
  if (before === undefined) return stored;
  for (const code of REFUSED) if (before.runs[code] !== undefined) stored.runs[code] = before.runs[code];
  const { uncalledTold, neverVerifiedAlerted = false } = before;
  return { ...stored, uncalledTold, neverVerifiedAlerted };
}

export function readHealth(relayId: string, row: RowOf<typeof HEALTH> | null): RelayHealth {
  const { refusedSince, refusedCount = 0, refusedAt = null, acceptedAt = null, streaks = null } = row ?? {};
  const stored = streaks ?? emptyHealth(0);
  if (refusedSince != null)
    stored.runs.relay_refusing = { since: refusedSince, at: refusedAt ?? refusedSince, count: refusedCount };
  return { relayId, stored, seen: {}, refusedAt, acceptedAt, storedAcceptedAt: acceptedAt, found: null };
}

export function rowOf({ relayId, stored, refusedAt, acceptedAt }: HealthRow): RowOf<typeof HEALTH> {
  const { relay_refusing: refusing, ...runs } = stored.runs;
  const { since: refusedSince = null, count: refusedCount = 0 } = refusing ?? {};
  const streaks = stored.version === 0 ? null : { ...stored, runs };
  return { id: relayId, refusedSince, refusedCount, refusedAt, acceptedAt, streaks };
}
