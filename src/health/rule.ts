/**
 * The rules of health: how many calls or events that come to nothing one after another, over how long, are a problem, for a relay with three
 * events a week and for one with thousands an hour; and what its owner is told when one begins and when it is over. It counts nothing itself.
 */
import { toIso } from "../ground/clock.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../ground/limit.ts";

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

export type RunCode = Exclude<HealthCode, "relay_silent" | "relay_uncalled">;

/** So many, over so long. */
interface Threshold {
  count: number;
  ms: number;
}

/** What reaches one of them is a problem. A relay whose attempts fail is tried again after 1, 6 and 36 minutes, so one event is three of them. */
const THRESHOLDS: Readonly<Record<RunCode, readonly Threshold[]>> = {
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
export const HOPELESS: ReadonlySet<string> = new Set(["ref_unresolved", "sender_domain_required"]);

interface KeptRun {
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
}

/** Whether so many, over so long, are a problem. */
export function isProblem(code: RunCode, { found, matched, usual, runs }: Kept, lastedMs: number): boolean {
  const count = runs[code]?.count ?? 0;
  const asked =
    code === "relay_ignoring" && matched
      ? [{ count: Math.max(3, USUAL_RUNS * usual + 1), ms: DAY_MS }]
      : code === "relay_nobody" && !found
        ? [...THRESHOLDS[code], FIRST_NOBODY]
        : THRESHOLDS[code];
  return asked.some((one) => count >= one.count && lastedMs >= one.ms);
}

/** Runs of good or bad calls that were refused. They are no version's, and time alone makes them no worse: nothing more was lost. */
export const REFUSED: ReadonlySet<RunCode> = new Set(["relay_refusing", "relay_capped"]);

export function isRunCode(code: HealthCode): code is RunCode {
  return Object.hasOwn(THRESHOLDS, code);
}

interface RunWords {
  /** Why the last one came to nothing. */
  why: string | null;
  /** Why one of the refused calls was refused, as it was found by looking into it. */
  found: { cause: string } | null;
  /** Events a minute of the app. */
  limit: number;
}

export function tellRun(
  name: string,
  code: RunCode,
  { since, count }: KeptRun,
  { why, found, limit }: RunWords,
): string {
  const from = `since ${toIso(since)}, ${count} so far`;
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
    return `${name} has refused every call ${from}, ${because}: compare the relay's secret and recipe with the sender's, and see its calls with relay calls list --relay ${name}.`;
  }
  const last = why === null ? "." : `, the last one because: ${why}`;
  return `Every attempt of an event of ${name} has failed ${from}${last} See them with relay events list --relay ${name}, mend the cause, and replay those that are dead.`;
}

export function tellUncalled(name: string, madeAtMs: number, url: string): string {
  return `${name} was made at ${toIso(madeAtMs)} and nobody has called it: give its sender the URL ${url}, and see what happens to a call with relay send ${name}.`;
}

/** What is told when it is over. */
export const OVER: Readonly<Record<HealthCode, (name: string) => string>> = {
  relay_refusing: (name) => `${name} accepts calls again: one verified.`,
  relay_silent: (name) => `${name} receives events again, so its silence is over.`,
  relay_ignoring: (name) => `${name} acts on calls again: one passed its when.`,
  relay_capped: (name) => `${name} refused no event over the cap for an hour.`,
  relay_uncalled: (name) => `${name} was called for the first time.`,
  relay_nobody: (name) => `${name} acts again: an event found its person.`,
  relay_failing: (name) => `${name} acts again: every action of an event succeeded.`,
};
