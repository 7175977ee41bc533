/**
 * Decides when a streak is a problem: by its length and duration, for a relay with three events a week as for one with thousands an hour. Raises
 * each problem once, clears it once, and formats what the owner reads. It counts nothing.
 */
import { type Clock, toIso } from "../../base/clock.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS, type RaisableLimits } from "../../base/limit.ts";
import { raiseAlert, updateOpenAlert } from "../../platform/audit/alert.ts";
import {
  clearProblem,
  listOpenProblems,
  type ProblemKey,
  raiseProblem,
  updateOpenProblem,
} from "../../platform/audit/problem.ts";
import type { LiveRelay, Snapshot } from "../../rules/relay/live-relay.ts";
import { relayTarget } from "../../rules/relay/relay.ts";
import { findSecretSource } from "../../rules/senders/sender-secret.ts";
import type { Store, Writer } from "../../store/port.ts";
import {
  CODES,
  type HealthCode,
  RECEIVER_CODES,
  REFUSED,
  type RelayHealth,
  type StoredHealth,
  type Streak,
  type StreakCode,
} from "./condition.ts";

/** A streak of at least `count` that lasted at least `ms`. */
interface Threshold {
  count: number;
  ms: number;
}

/**
 * A streak that reaches one of its thresholds is a problem. An event is retried after 1, 6 and 36 minutes, so one failing event can reach
 * `relay_failing`.
 */
const THRESHOLDS: Readonly<Record<StreakCode, readonly Threshold[]>> = {
  relay_refusing: [{ count: 5, ms: 15 * MINUTE_MS }],
  relay_ignoring: [
    { count: 3, ms: DAY_MS },
    { count: 200, ms: HOUR_MS },
  ],
  relay_nobody: [
    { count: 3, ms: HOUR_MS },
    { count: 20, ms: 15 * MINUTE_MS },
  ],
  relay_failing: [{ count: 3, ms: 30 * MINUTE_MS }],
  relay_capped: [
    { count: 2, ms: MINUTE_MS },
    { count: 20, ms: 0 },
  ],
};
/** A sender of many event types is ignored most of the time. After a match, only a streak of this many times the longest earlier one is a problem. */
const USUAL_RUNS = 2;
/** For a relay none of whose events ever found a person, one event is enough. */
const FIRST_NOBODY: Threshold = { count: 1, ms: DAY_MS };
/** Failures that a retry cannot fix. Another alert reports the first one. */
export const PERMANENT_FAILURES: ReadonlySet<string> = new Set(["ref_unresolved", "sender_domain_required"]);

const UPDATE_EVERY_MS = 10_000;

/** Reports whether a streak of this duration is a problem. */
function isProblem(
  code: StreakCode,
  { found, matched, usual, runs }: StoredHealth,
  lastedMs: number,
): boolean {
  const count = runs[code]?.count ?? 0;
  if (code === "relay_ignoring" && matched)
    return lastedMs >= DAY_MS && count >= Math.max(3, USUAL_RUNS * usual + 1);
  const asked = code === "relay_nobody" && !found ? [...THRESHOLDS[code], FIRST_NOBODY] : THRESHOLDS[code];
  return asked.some((one) => count >= one.count && lastedMs >= one.ms);
}

/** Reports whether a streak of rejected requests was an outage, and not some stray requests before a good one. */
export function isOutage({ since, at, count }: Streak): boolean {
  return THRESHOLDS.relay_refusing.some((one) => count >= one.count && at - since >= one.ms);
}

export const STREAK_CODES = Object.keys(THRESHOLDS) as StreakCode[];

interface StreakDetails {
  /** The reason why the last one failed. */
  why: string | null;
  /** The diagnosed cause of one of the rejected requests. */
  found: { cause: string } | null;
  /** The app's cap of events a minute. */
  limit: number;
}

function formatStreak(
  name: string,
  code: StreakCode,
  { since }: Streak,
  { why, found, limit }: StreakDetails,
): string {
  // The message is stored and read hours later, so the figures are counted when it is shown (addFigures).
  const from = `since ${toIso(since)}`;
  if (code === "relay_ignoring") {
    const last = why === null ? "" : `, the last one because ${why}`;
    return `${name} has ignored every request ${from}${last}.`;
  }
  if (code === "relay_nobody") return `No event of ${name} has found its person ${from}, so no action ran.`;
  if (code === "relay_capped")
    return `${name} has rejected verified events ${from}, because its app receives more than ${limit} a minute. Their senders must send them again.`;
  if (code === "relay_refusing") {
    const because =
      found === null
        ? `The last one was rejected because ${why ?? ""}`
        : `One was rejected because ${found.cause}`;
    return `${name} has rejected every request ${from}. ${because}.`;
  }
  const last = why === null ? "" : ` Last failure: ${why}`;
  return `Every attempt of an event of ${name} has failed ${from}.${last}`;
}

/** Formats the message about a relay that never verified a request, with the place of the secret at a known sender. */
export function formatNeverVerified({ name, definition: { trigger } }: LiveRelay, cause: string): string {
  const source = trigger.kind === "receiver" ? findSecretSource(trigger) : null;
  const where = source === null ? "" : ` Find the secret at ${source.title}: ${source.secret.where}`;
  return `${name} has not verified a request yet and rejects what arrives. The last request was rejected because ${cause}.${where}`;
}

/** The time after the last rejected event at which a cap is over. */
export const CAPPED_OVER_MS = HOUR_MS;

/** The message of the alert when a problem is over. */
const OVER: Readonly<Record<HealthCode, (name: string) => string>> = {
  relay_refusing: (name) => `${name} accepts requests again: one verified.`,
  relay_silent: (name) => `${name} receives events again, so its silence is over.`,
  relay_ignoring: (name) => `${name} acts on requests again: one matched its when.`,
  relay_capped: (name) => `${name} rejected no event over the limit for an hour.`,
  relay_uncalled: (name) => `${name} received its first request.`,
  never_verified: (name) => `${name} verified its first request.`,
  relay_nobody: (name) => `${name} acts again: an event found its person.`,
  relay_failing: (name) => `${name} acts again: every action of an event succeeded.`,
};

interface HealthProblem extends ProblemKey {
  code: HealthCode;
  /** The message as this process wrote it last; absent for a problem that was read. */
  message?: string;
  /** True if that message contains the diagnosed cause. */
  isDiagnosed?: boolean;
  /** The monotonic time of the last update. */
  updatedMs?: number;
}

/** A change of a problem. A null message sends no alert. `alerted`: another alert reported it already. */
export interface Change {
  problem: HealthProblem;
  kind: "raise" | "update" | "clear";
  alerted: boolean;
  message: string | null;
  nowMs: number;
}

interface ProblemDeps {
  store: Store;
  clock: Clock;
  limits: Pick<RaisableLimits, "verifiedEventsPerMinute">;
  /** Called after a change, which the caller then writes. */
  onChange(): void;
}

/** The open problems in memory. The caller that gets a change writes it. */
export class HealthProblems {
  readonly #deps: ProblemDeps;
  /** The problems by key. The map is almost always empty, which is all that an accepted request checks. */
  standing = new Map<string, HealthProblem>();
  /** Changes that are not written yet. */
  readonly changes: Change[] = [];
  /** Changes made while the database is read; null while it is not. */
  #meanwhile: Change[] | null = null;
  /** Makes the reads run one after another. */
  #loading: Promise<unknown> = Promise.resolve();

  constructor(deps: ProblemDeps) {
    this.#deps = deps;
  }

  /** Raises a problem where the streak reached a threshold. `startedMs` is monotonic, because a time in which nothing ran proves nothing. */
  evaluate(relay: LiveRelay, code: StreakCode, known: RelayHealth, startedMs: number): void {
    const run = known.stored.runs[code];
    const seen = known.seen[code];
    if (run === undefined || seen === undefined) return;
    const ranMs = this.#deps.clock.monotonicMs() - Math.max(seen.sinceMs, startedMs);
    const lastedMs = Math.max(seen.atMs - seen.sinceMs, REFUSED.has(code) ? 0 : ranMs);
    // Every ignored request of every follower comes here, so the check without a look-up is first.
    if (!isProblem(code, known.stored, lastedMs) || this.isRaised(relay, code)) return;
    // never_verified already reports these rejected requests.
    if (code === "relay_refusing" && this.isRaised(relay, "never_verified")) return;
    this.raiseStreak(relay, code, known, run.told === true);
  }

  raiseStreak(
    relay: LiveRelay,
    code: StreakCode,
    { stored, seen, found }: RelayHealth,
    alerted: boolean,
  ): void {
    const run = stored.runs[code];
    if (run === undefined) return;
    const why = seen[code]?.why ?? null;
    const words = {
      why: typeof why === "function" ? why() : why,
      found,
      limit: this.#deps.limits.verifiedEventsPerMinute,
    };
    this.raise(relay, code, formatStreak(relay.name, code, run, words), alerted);
  }

  /** Raises the problem unless it is open. With `alerted`, it is shown but sends no second alert. */
  raise(relay: LiveRelay, code: HealthCode, message: string, alerted = false): void {
    const problem = problemOf(relay, code);
    const key = keyOf(problem);
    if (this.standing.has(key)) return;
    this.standing.set(key, { ...problem, message });
    this.#change({ problem, kind: "raise", alerted, message });
  }

  /**
   * Updates the message of an open problem and of its open alert, and sends no further alert. The first diagnosis updates the message at once. Other
   * updates happen at most once in `UPDATE_EVERY_MS`, because strangers can cause one with each request.
   */
  update(relay: LiveRelay, code: HealthCode, message: string, isDiagnosed: boolean): void {
    const problem = problemOf(relay, code);
    const open = this.standing.get(keyOf(problem));
    if (open === undefined || open.message === message) return;
    const nowMs = this.#deps.clock.monotonicMs();
    const isFirstDiagnosis = isDiagnosed && open.isDiagnosed !== true;
    if (!isFirstDiagnosis && open.updatedMs !== undefined && nowMs - open.updatedMs < UPDATE_EVERY_MS) return;
    Object.assign(open, { message, isDiagnosed, updatedMs: nowMs });
    this.#change({ problem, kind: "update", alerted: true, message });
  }

  /** Clears the problem where it is open. */
  clear(relay: LiveRelay, code: HealthCode): void {
    const problem = problemOf(relay, code);
    if (this.standing.delete(keyOf(problem)))
      this.#change({ problem, kind: "clear", alerted: false, message: OVER[code](relay.name) });
  }

  /** Forgets changes that are written. */
  removeWritten(written: readonly Change[]): void {
    for (const change of written) this.changes.splice(this.changes.indexOf(change), 1);
  }

  isRaised(relay: LiveRelay, code: HealthCode): boolean {
    return this.standing.has(keyOf(problemOf(relay, code)));
  }

  /**
   * Reads the problems again, and clears those of deleted relays and of relays that are no receivers now. Returns the problems that an owner
   * resolved since the last check.
   */
  async refresh(snapshot: Snapshot): Promise<{ relay: LiveRelay; code: HealthCode }[]> {
    if (this.standing.size === 0) return [];
    const before = this.standing;
    await this.load();
    const watched = new Map<string, { relay: LiveRelay; code: HealthCode }>();
    for (const relay of snapshot.relays) {
      const codes = relay.receiver === null ? CODES.slice(RECEIVER_CODES.length) : CODES;
      for (const code of codes) watched.set(keyOf(problemOf(relay, code)), { relay, code });
    }
    for (const [key, problem] of this.standing) {
      if (watched.has(key)) continue;
      this.standing.delete(key);
      this.#change({ problem, kind: "clear", alerted: false, message: null });
    }
    const resolved = [...before.keys()].filter((key) => !this.standing.has(key));
    return resolved.flatMap((key) => watched.get(key) ?? []);
  }

  /**
   * Reads the open problems and applies the pending changes. With `adopts`, problems that others cleared stay until `refresh` finds them resolved.
   */
  load({ adopts = false } = {}): Promise<void> {
    const read = this.#loading.then(() => this.#read(adopts));
    this.#loading = read.catch(() => undefined);
    return read;
  }

  async #read(adopts: boolean): Promise<void> {
    const noticed = [...this.changes];
    this.#meanwhile = noticed;
    const stored = await this.#deps.store
      .read((tx) => listOpenProblems(tx, CODES))
      .finally(() => {
        this.#meanwhile = null;
      });
    const known = this.standing;
    this.standing = new Map(adopts ? known : []);
    for (const problem of stored) this.standing.set(keyOf(problem), known.get(keyOf(problem)) ?? problem);
    for (const { problem, kind } of noticed) {
      if (kind === "raise") this.standing.set(keyOf(problem), problem);
      if (kind === "clear") this.standing.delete(keyOf(problem));
    }
  }

  #change(change: Omit<Change, "nowMs">): void {
    const noticed = { ...change, nowMs: this.#deps.clock.now() };
    this.changes.push(noticed);
    this.#meanwhile?.push(noticed);
    this.#deps.onChange();
  }
}

export async function writeChange(
  tx: Writer,
  { problem: { environmentId, code, target }, kind, alerted, message, nowMs }: Change,
): Promise<void> {
  const key = { environmentId, code, target, nowMs };
  if (message === null) {
    await clearProblem(tx, key);
    return;
  }
  switch (kind) {
    case "raise":
      if ((await raiseProblem(tx, { ...key, message })) && !alerted)
        await raiseAlert(tx, { ...key, message });
      return;
    case "update":
      if (await updateOpenProblem(tx, key, message)) await updateOpenAlert(tx, key, message);
      return;
    case "clear":
      if (await clearProblem(tx, key))
        await raiseAlert(tx, { ...key, code: "relay_recovered", endOf: code, message });
  }
}

function problemOf(relay: LiveRelay, code: HealthCode): HealthProblem {
  return { environmentId: relay.environmentId, code, target: relayTarget(relay.name) };
}

function keyOf({ environmentId, code, target }: ProblemKey): string {
  return `${code} ${environmentId} ${target}`;
}
