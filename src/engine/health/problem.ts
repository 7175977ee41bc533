/**
 * Problems of a relay's health: how many calls or events that come to nothing one after another, over how long, are one, for a relay with three
 * events a week and for one with thousands an hour; what its owner is told when one begins and when it is over; and which stand. It counts
 * nothing. A problem is told once when it begins and once when it is over, unless these alerts are switched off.
 */
import { type Clock, toIso } from "../../base/clock.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS, type RaisableLimits } from "../../base/limit.ts";
import { raiseAlert } from "../../platform/audit/alert.ts";
import {
  clearProblem,
  listOpenProblems,
  type ProblemKey,
  raiseProblem,
} from "../../platform/audit/problem.ts";
import type { LiveRelay, Snapshot } from "../../rules/relay/live-relay.ts";
import { relayTarget } from "../../rules/relay/relay.ts";
import type { Store, Writer } from "../../store/port.ts";
import {
  CODES,
  type HealthCode,
  RECEIVER_CODES,
  type RelayHealth,
  type StoredHealth,
  type Streak,
  type StreakCode,
} from "./condition.ts";

/** So many, over so long. */
interface Threshold {
  count: number;
  ms: number;
}

/** What reaches one of them is a problem. A relay whose attempts fail is tried again after 1, 6 and 36 minutes, so one event is three of them. */
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
/** A sender of many kinds of event is ignored most of the time: a relay that acted before is told of from so many times its longest run on. */
const USUAL_RUNS = 2;
/** One event that found nobody, of a relay none of whose events ever did anything. */
const FIRST_NOBODY: Threshold = { count: 1, ms: DAY_MS };
/** Failures that waiting cannot mend; the owner is told of the first one, by an alert of its own. */
export const PERMANENT_FAILURES: ReadonlySet<string> = new Set(["ref_unresolved", "sender_domain_required"]);

/** Runs of good or bad calls that were refused. They are no version's, and time alone makes them no worse: nothing more was lost. */
export const REFUSED: ReadonlySet<StreakCode> = new Set(["relay_refusing", "relay_capped"]);

/** Whether so many, over so long, are a problem. */
function isProblem(
  code: StreakCode,
  { found, matched, usual, runs }: StoredHealth,
  lastedMs: number,
): boolean {
  const count = runs[code]?.count ?? 0;
  const asked =
    code === "relay_ignoring" && matched
      ? [{ count: Math.max(3, USUAL_RUNS * usual + 1), ms: DAY_MS }]
      : code === "relay_nobody" && !found
        ? [...THRESHOLDS[code], FIRST_NOBODY]
        : THRESHOLDS[code];
  return asked.some((one) => count >= one.count && lastedMs >= one.ms);
}

export const STREAK_CODES = Object.keys(THRESHOLDS) as StreakCode[];

interface StreakDetails {
  /** Why the last one came to nothing. */
  why: string | null;
  /** Why one of the refused calls was refused, as it was found by looking into it. */
  found: { cause: string } | null;
  /** Events a minute of the app. */
  limit: number;
}

function formatStreak(
  name: string,
  code: StreakCode,
  { since, at, count }: Streak,
  { why, found, limit }: StreakDetails,
): string {
  // StoredHealth as it was told, and read hours later: a count is one of its time.
  const from = count === 1 ? `since ${toIso(since)}` : `since ${toIso(since)}, ${count} by ${toIso(at)}`;
  if (code === "relay_ignoring") {
    const last = why === null ? "" : `, the last one because ${why}`;
    return `${name} has ignored every call ${from}${last}: compare the relay's when with what the sender sends (relay calls list --relay ${name}), and correct it or take it out.`;
  }
  if (code === "relay_nobody") {
    return `Every event of ${name} ${from}, found nobody and did nothing: see which person each was for with relay events list --relay ${name} --state failed, correct the relay's map or make the person, then replay them.`;
  }
  if (code === "relay_capped") {
    return `${name} has refused good events ${from}, because its app receives more than ${limit} a minute: their senders have to send them again. Raise RELAY_LIMIT_VERIFIED_EVENTS_PER_MINUTE and start the server again, or have the sender send less.`;
  }
  if (code === "relay_refusing") {
    const because =
      found === null ? `the last one because ${why ?? ""}` : `one of them because ${found.cause}`;
    // A cause may end as a question.
    const then = because.endsWith("?") ? " Compare" : ": compare";
    return `${name} has refused every call ${from}, ${because}${then} the relay's secret and recipe with the sender's, and see its calls with relay calls list --relay ${name}.`;
  }
  const last = why === null ? "." : `, the last one because: ${why}`;
  return `Every attempt of an event of ${name} has failed ${from}${last} See them with relay events list --relay ${name} --reason any, mend the cause, and replay those that are dead.`;
}

/** A cap whose time is over. */
export const CAPPED_OVER_MS = HOUR_MS;

/** What is told when it is over. */
const OVER: Readonly<Record<HealthCode, (name: string) => string>> = {
  relay_refusing: (name) => `${name} isRefusing calls again: one verified.`,
  relay_silent: (name) => `${name} receives events again, so its silence is over.`,
  relay_ignoring: (name) => `${name} acts on calls again: one passed its when.`,
  relay_capped: (name) => `${name} refused no event over the cap for an hour.`,
  relay_uncalled: (name) => `${name} was called for the first time.`,
  relay_nobody: (name) => `${name} acts again: an event found its person.`,
  relay_failing: (name) => `${name} acts again: every action of an event succeeded.`,
};

interface HealthProblem extends ProblemKey {
  code: HealthCode;
}

/** A problem that began (`raised`) or is over. A message null tells nobody; `alerted`: an alert of its own told of it. */
interface Change {
  problem: HealthProblem;
  raised: boolean;
  alerted: boolean;
  message: string | null;
  nowMs: number;
}

interface ProblemDeps {
  store: Store;
  clock: Clock;
  limits: Pick<RaisableLimits, "verifiedEventsPerMinute">;
  /** Something began or is over, and is to be written. */
  onChange(): void;
}

/** The problems that stand, in memory: a change is written by whoever is told of it. */
export class HealthProblems {
  readonly #deps: ProblemDeps;
  /** By key; almost always none, which is all that an accepted call asks. */
  standing = new Map<string, HealthProblem>();
  /** Not written yet. */
  readonly changes: Change[] = [];
  /** Noticed while the database is asked what stands; null: it is not asked. */
  #meanwhile: Change[] | null = null;
  /** It is asked by one at a time. */
  #loading: Promise<unknown> = Promise.resolve();

  constructor(deps: ProblemDeps) {
    this.#deps = deps;
  }

  /** A run that reached what is a problem. `startedMs`: monotonic, as a time in which nothing ran proves nothing. */
  evaluate(relay: LiveRelay, code: StreakCode, known: RelayHealth, startedMs: number): void {
    const run = known.stored.runs[code];
    const seen = known.seen[code];
    if (run === undefined || seen === undefined || this.isStanding(relay, code)) return;
    const ranMs = this.#deps.clock.monotonicMs() - Math.max(seen.sinceMs, startedMs);
    const lastedMs = Math.max(seen.atMs - seen.sinceMs, REFUSED.has(code) ? 0 : ranMs);
    if (isProblem(code, known.stored, lastedMs)) this.raiseStreak(relay, code, known, run.told === true);
  }

  raiseStreak(
    relay: LiveRelay,
    code: StreakCode,
    { stored, seen, found }: RelayHealth,
    alerted: boolean,
  ): void {
    const run = stored.runs[code];
    if (run === undefined) return;
    const words = { why: seen[code]?.why ?? null, found, limit: this.#deps.limits.verifiedEventsPerMinute };
    this.raise(relay, code, formatStreak(relay.name, code, run, words), alerted);
  }

  /** Raises the problem unless it stands. `alerted`: the owner was told by another alert, so this one is only shown. */
  raise(relay: LiveRelay, code: HealthCode, message: string, alerted = false): void {
    const problem = problemOf(relay, code);
    const key = keyOf(problem);
    if (this.standing.has(key)) return;
    this.standing.set(key, problem);
    this.#change({ problem, raised: true, alerted, message });
  }

  /** The problem is over, if it stands. */
  clear(relay: LiveRelay, code: HealthCode): void {
    const problem = problemOf(relay, code);
    if (this.standing.delete(keyOf(problem)))
      this.#change({ problem, raised: false, alerted: false, message: OVER[code](relay.name) });
  }

  isStanding(relay: LiveRelay, code: HealthCode): boolean {
    return this.standing.has(keyOf(problemOf(relay, code)));
  }

  /**
   * A relay that is deleted, or no receiver any more, has nobody to be silent or to refuse. Answers the problems that somebody resolved by hand
   * since the last look.
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
      this.#change({ problem, raised: false, alerted: false, message: null });
    }
    const resolved = [...before.keys()].filter((key) => !this.standing.has(key));
    return resolved.flatMap((key) => watched.get(key) ?? []);
  }

  /** As the database has it, with what it has not yet. `adopts`: what others cleared is forgotten with the next look alone, which asks who did. */
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
    this.standing = new Map(adopts ? this.standing : []);
    for (const problem of stored) this.standing.set(keyOf(problem), problem);
    for (const { problem, raised } of noticed) {
      if (raised) this.standing.set(keyOf(problem), problem);
      else this.standing.delete(keyOf(problem));
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
  { problem, raised, alerted, message, nowMs }: Change,
): Promise<void> {
  const key = { ...problem, nowMs };
  if (message === null) await clearProblem(tx, key);
  else if (raised) {
    if ((await raiseProblem(tx, { ...key, message })) && !alerted) await raiseAlert(tx, { ...key, message });
  } else if (await clearProblem(tx, key)) {
    await raiseAlert(tx, { ...key, code: "relay_recovered", endOf: problem.code, message });
  }
}

function problemOf(relay: LiveRelay, code: HealthCode): HealthProblem {
  return { environmentId: relay.environmentId, code, target: relayTarget(relay.name) };
}

function keyOf({ environmentId, code, target }: ProblemKey): string {
  return `${code} ${environmentId} ${target}`;
}
