/**
 * What is known of one relay's health: its runs of calls or events that came to nothing, kept in its row beyond a restart, and where they lie on
 * the clock that nobody sets. Where nodes serve side by side each sees its own calls, and the row is what all of them saw: what one saw since
 * it last wrote is put into what the others wrote meanwhile. It judges nothing.
 */
import { MINUTE_MS } from "../ground/limit.ts";
import type { SecretUse } from "../relay/live-receiver.ts";
import type { LiveRelay } from "../relay/live-relay.ts";
import type { Reader } from "../store/port.ts";
import { defineTable, integer, json, orNull, type RowOf, text } from "../store/table.ts";

/** A row that differs from what is known in the time of its last good call alone is written once in so long, where nodes share it. */
const ACCEPTED_EVERY_MS = MINUTE_MS;

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

const RUN_CODES = [
  "relay_refusing",
  "relay_ignoring",
  "relay_capped",
  "relay_nobody",
  "relay_failing",
] as const satisfies readonly HealthCode[];
export type RunCode = (typeof RUN_CODES)[number];

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

/** Where a run lies on the clock that nobody sets, and why the last one came to nothing, which is not kept: it may name a person. */
interface Seen {
  sinceMs: number;
  atMs: number;
  why: string | null;
}

/** What is known of one relay. */
export interface Known {
  kept: Kept;
  seen: Partial<Record<RunCode, Seen>>;
  refusedAt: number | null;
  acceptedAt: number | null;
  /** As the database has it. */
  storedAcceptedAt: number | null;
  /** Why a call of its refused ones was refused, as it was found by looking into it; `solved`: it names what has to be otherwise. */
  found: { cause: string; solved: boolean } | null;
  /** Where nodes share the row: what it was when it was read or written last, and what happened here since. */
  base: SharedView;
  /** When runs were ended here, by the wall clock: another node's run may be over by that. */
  ends: Partial<Record<RunCode, number>>;
  /** Runs that grew here, to be judged once the others' part of them is known. */
  grown: Map<RunCode, LiveRelay>;
  use: SecretUse | null;
}

/** What nodes share of it. */
export type SharedView = Pick<Known, "kept" | "refusedAt" | "acceptedAt">;

/** A person said that the problem is seen to. */
export function countAnew(known: Known, code: RunCode, nowMs: number): void {
  const { kept } = known;
  if (code === "relay_ignoring") {
    kept.matched = true;
    kept.usual = Math.max(kept.usual, kept.runs.relay_ignoring?.count ?? 0);
  }
  drop(known, code, nowMs);
}

/** The run is over since `endedAt`. */
export function drop({ kept, seen, ends }: Known, code: RunCode, endedAt: number): void {
  delete kept.runs[code];
  delete seen[code];
  ends[code] = endedAt;
}

/** What is kept of a relay of this version when it begins. */
export function keepOf(version: number, before?: Kept): Kept {
  const kept: Kept = { version, matched: false, found: false, usual: 0, uncalledTold: false, runs: {} };
  if (before === undefined) return kept;
  for (const code of REFUSED) if (before.runs[code] !== undefined) kept.runs[code] = before.runs[code];
  return { ...kept, uncalledTold: before.uncalledTold };
}

/** `row` null: of a relay of which nothing is known. */
export function knownOf(row: RowOf<typeof HEALTH> | null): Known {
  const { refusedSince, refusedCount = 0, refusedAt = null, acceptedAt = null, fruitless = null } = row ?? {};
  const kept = fruitless ?? keepOf(0);
  if (refusedSince != null)
    kept.runs.relay_refusing = { since: refusedSince, at: refusedAt ?? refusedSince, count: refusedCount };
  const view = { kept, refusedAt, acceptedAt };
  const shared = { base: copyView(view), ends: {}, grown: new Map<RunCode, LiveRelay>(), use: null };
  return { ...view, seen: {}, storedAcceptedAt: acceptedAt, found: null, ...shared };
}

export function rowOf(id: string, { kept, refusedAt, acceptedAt }: SharedView): RowOf<typeof HEALTH> {
  const { relay_refusing: refusing, ...runs } = kept.runs;
  const { since: refusedSince = null, count: refusedCount = 0 } = refusing ?? {};
  return {
    id,
    refusedSince,
    refusedCount,
    refusedAt,
    acceptedAt,
    fruitless: kept.version === 0 ? null : { ...kept, runs },
  };
}

function copyView({ kept, refusedAt, acceptedAt }: SharedView): SharedView {
  return { kept: { ...kept, runs: { ...kept.runs } }, refusedAt, acceptedAt };
}

/** What this node is about to put into the row. */
interface Share {
  base: SharedView;
  mine: SharedView;
  ends: Known["ends"];
}

/** Takes what happened here since the last time. */
export function takeShare(known: Known): Share {
  const { base, ends, use } = known;
  const mine = copyView(known);
  if (use !== null) mine.kept.use = { ...use };
  known.ends = {};
  return { base, mine, ends };
}

/** The row could not be written: what was taken happened since the last time still. */
export function giveBackShare(known: Known, { ends }: Share): void {
  known.ends = { ...ends, ...known.ends };
}

/** Goes on from the row that all nodes see, with what happened here meanwhile. `on`: a time of the wall clock on the one that nobody sets. */
export function goOnFrom(
  known: Known,
  row: SharedView,
  { mine }: Share,
  on: (wallMs: number) => number,
): void {
  const { kept, refusedAt, acceptedAt } = joinViews({ base: mine, mine: known, ends: known.ends }, row);
  for (const code of RUN_CODES) {
    const [was, run, seen] = [known.kept.runs[code], kept.runs[code], known.seen[code]];
    if (run === undefined) delete known.seen[code];
    else
      known.seen[code] = {
        sinceMs: seen !== undefined && was?.since === run.since ? seen.sinceMs : on(run.since),
        atMs: seen !== undefined && was?.at === run.at ? seen.atMs : on(run.at),
        why: seen?.why ?? null,
      };
  }
  if (kept.runs.relay_refusing === undefined) known.found = null;
  Object.assign(known, { kept, refusedAt, acceptedAt, base: copyView(row) });
}

/** Whether the row is to be written for what is new in it. */
export function isNews(before: SharedView, after: SharedView): boolean {
  const isSame = Bun.deepEquals(before.kept, after.kept) && before.refusedAt === after.refusedAt;
  if (!isSame || after.acceptedAt === null || before.acceptedAt === null)
    return !isSame || before.acceptedAt !== after.acceptedAt;
  return after.acceptedAt - before.acceptedAt >= ACCEPTED_EVERY_MS;
}

/** What this node saw put into what the row says by now. A save of the definition begins anew, whichever node heard of it first. */
export function joinViews({ base, mine, ends }: Share, theirs: SharedView): SharedView {
  const version = Math.max(mine.kept.version, theirs.kept.version);
  const ofVersion = ({ kept }: SharedView): Kept => (kept.version === version ? kept : keepOf(version, kept));
  const [before, own, there] = [ofVersion(base), ofVersion(mine), ofVersion(theirs)];
  const use = joinUses(own.use, there.use);
  const kept: Kept = {
    version,
    matched: own.matched || there.matched,
    found: own.found || there.found,
    usual: Math.max(own.usual, there.usual),
    uncalledTold: own.uncalledTold || there.uncalledTold,
    runs: {},
    ...(use === undefined ? {} : { use }),
  };
  for (const code of RUN_CODES) {
    const accepts = code === "relay_refusing";
    const all = there.runs[code];
    const left = partAfter(all, latest(ends[code] ?? null, accepts ? mine.acceptedAt : null));
    if (code === "relay_ignoring" && all !== undefined && left !== all)
      kept.usual = Math.max(kept.usual, all.count);
    const added = partSince(before.runs[code], own.runs[code], accepts ? theirs.acceptedAt : null);
    const run = joinRuns(added, left);
    if (run !== undefined) kept.runs[code] = run;
  }
  const refusedAt = latest(mine.refusedAt, theirs.refusedAt);
  return { kept, refusedAt, acceptedAt: latest(mine.acceptedAt, theirs.acceptedAt) };
}

/** What this node added to a run since the row was read, unless another node ended it later. */
function partSince(
  before: KeptRun | undefined,
  own: KeptRun | undefined,
  endedAt: number | null,
): KeptRun | undefined {
  if (own === undefined || (endedAt !== null && own.at < endedAt)) return undefined;
  if (before === undefined || before.since !== own.since) return own;
  return own.count === before.count
    ? undefined
    : { ...own, since: before.at, count: own.count - before.count };
}

/** What is left of a run of all nodes where this one ended it then. */
function partAfter(run: KeptRun | undefined, endedAt: number | null): KeptRun | undefined {
  if (run === undefined || endedAt === null || run.since > endedAt) return run;
  return run.at <= endedAt ? undefined : { ...run, since: run.at, count: 1 };
}

function joinRuns(one: KeptRun | undefined, other: KeptRun | undefined): KeptRun | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  const told = one.told === true || other.told === true ? { told: true } : {};
  const [since, at] = [Math.min(one.since, other.since), Math.max(one.at, other.at)];
  return { since, at, count: one.count + other.count, ...told };
}

/** Of two overlaps the later one counts; of one, its last calls, whichever node they came to. */
function joinUses(one: SecretUse | undefined, other: SecretUse | undefined): SecretUse | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  if (one.until !== other.until) return one.until > other.until ? one : other;
  const presentAt = latest(one.presentAt, other.presentAt);
  return { until: one.until, presentAt, previousAt: latest(one.previousAt, other.previousAt) };
}

function latest(one: number | null, other: number | null): number | null {
  return one === null || other === null ? (one ?? other) : Math.max(one, other);
}

/** When calls last verified by which secret: those that came here, and those of other nodes. */
export async function findSecretUse(tx: Reader, id: string, here: SecretUse): Promise<SecretUse> {
  const row = await HEALTH.pick("fruitless").get(tx, "WHERE id = $id", { id });
  const use = row?.fruitless?.use;
  return use?.until === here.until ? (joinUses(use, here) ?? here) : here;
}
