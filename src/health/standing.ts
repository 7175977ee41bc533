/**
 * What is known of each relay's health: its runs of what comes to nothing, when a call last verified, and which problems of its stand. All of it
 * is in memory, so that an accepted call asks no database; what changed is written behind the calls, in the order it was noticed. A problem is
 * told once when it begins and once when it is over, unless these alerts are switched off.
 */
import type { Clock } from "../ground/clock.ts";
import type { Log } from "../ground/log.ts";
import { WriteBehind } from "../ground/write-behind.ts";
import type { LiveRelay, Snapshot } from "../relay/live-relay.ts";
import { relayTarget } from "../relay/relay.ts";
import type { Store, Writer } from "../store/port.ts";
import { defineTable, integer, json, orNull, type RowOf, text } from "../store/table.ts";
import { raiseAlert } from "../watch/alert.ts";
import { clearProblem, type ProblemKey, raiseProblem, standingProblems } from "../watch/problem.ts";
import { isOver, listOver } from "./over.ts";
import { CODES, type HealthCode, type Kept, OVER, RECEIVER_CODES, REFUSED, type RunCode } from "./rule.ts";

const WRITE_AFTER_MS = 1_000;

/** The part of the relay's row that tells of its health. No live relay is made of it, so that writing it touches nothing. */
const HEALTH = defineTable({
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
}

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

interface StandingDeps {
  store: Store;
  clock: Clock;
  log: Log;
}

export class Standing {
  readonly #deps: StandingDeps;
  readonly #behind: WriteBehind;
  readonly #known = new Map<string, Known>();
  /** Almost always none, which is all that an accepted call asks. */
  #standing = new Map<string, HealthProblem>();
  /** Not written yet. */
  #changes: Change[] = [];
  /** Noticed while the database is asked what stands; null: it is not asked. */
  #meanwhile: Change[] | null = null;
  readonly #unsaved = new Set<string>();

  constructor(deps: StandingDeps) {
    this.#deps = deps;
    const write = () => this.#write();
    this.#behind = new WriteBehind({ ...deps, afterMs: WRITE_AFTER_MS, what: "a trouble of a relay", write });
  }

  /** Reads what an earlier process saw; of a relay that is known already, what is seen now counts. `forget`: told of each run that is over. */
  async start(forget: (known: Known, code: RunCode) => void): Promise<void> {
    const { store, clock } = this.#deps;
    const [nowMs, monotonicMs] = [clock.now(), clock.monotonicMs()];
    const over = await store.read((tx) => listOver(tx, nowMs));
    const on = (wallMs: number): number => monotonicMs - Math.max(0, nowMs - wallMs);
    for (const row of await store.read((tx) => HEALTH.all(tx, ""))) {
      if (this.#known.has(row.id)) continue;
      const known = knownOf(row);
      this.#known.set(row.id, known);
      for (const code of Object.keys(known.kept.runs) as RunCode[]) {
        const run = known.kept.runs[code];
        if (run === undefined) continue;
        known.seen[code] = { sinceMs: on(run.since), atMs: on(run.at), why: null };
        if (!isOver(over, row.id, code, run.since)) continue;
        forget(known, code);
        this.note(row.id);
      }
    }
    await this.#loadStanding();
  }

  /** Resolves when what was noticed is written. */
  async stop(): Promise<void> {
    this.#noteAccepted();
    await this.#behind.stop();
  }

  of(relayId: string): Known {
    let known = this.#known.get(relayId);
    if (known === undefined) {
      known = knownOf(null);
      this.#known.set(relayId, known);
    }
    return known;
  }

  /** What is known of the relay changed, and is written with the next look; `soon`: in a moment. */
  note(relayId: string, soon = false): void {
    this.#unsaved.add(relayId);
    if (soon) this.#behind.arm();
  }

  /** Writes what was noted. */
  flush(): Promise<void> {
    return this.#behind.flush();
  }

  /** Raises the problem unless it stands. `alerted`: the owner was told by another alert, so this one is only shown. */
  raise(relay: LiveRelay, code: HealthCode, message: string, alerted = false): void {
    const problem = problemOf(relay, code);
    const key = keyOf(problem);
    if (this.#standing.has(key)) return;
    this.#standing.set(key, problem);
    this.#change({ problem, raised: true, alerted, message });
  }

  /** The problem is over, if it stands; an accepted call asks no more than whether any does. */
  clear(relay: LiveRelay, code: HealthCode): void {
    if (this.#standing.size === 0) return;
    const problem = problemOf(relay, code);
    if (this.#standing.delete(keyOf(problem)))
      this.#change({ problem, raised: false, alerted: false, message: OVER[code](relay.name) });
  }

  stands(relay: LiveRelay, code: HealthCode): boolean {
    return this.#standing.size > 0 && this.#standing.has(keyOf(problemOf(relay, code)));
  }

  /**
   * Now and then: a relay that is deleted, or no receiver any more, has nobody to be silent or to refuse. What is only noted is written.
   * Answers the problems that somebody resolved by hand meanwhile.
   */
  async tend(snapshot: Snapshot): Promise<{ relay: LiveRelay; code: HealthCode }[]> {
    for (const id of this.#known.keys()) if (snapshot.findRelay(id) === null) this.#known.delete(id);
    this.#noteAccepted();
    await this.#behind.flush();
    if (this.#standing.size === 0) return [];
    const before = this.#standing;
    await this.#loadStanding();
    const watched = new Map<string, { relay: LiveRelay; code: HealthCode }>();
    for (const relay of snapshot.relays) {
      const codes = relay.receiver === null ? CODES.slice(RECEIVER_CODES.length) : CODES;
      for (const code of codes) watched.set(keyOf(problemOf(relay, code)), { relay, code });
    }
    for (const [key, problem] of this.#standing) {
      if (watched.has(key)) continue;
      this.#standing.delete(key);
      this.#change({ problem, raised: false, alerted: false, message: null });
    }
    const resolved = [...before.keys()].filter((key) => !this.#standing.has(key));
    return resolved.flatMap((key) => watched.get(key) ?? []);
  }

  /** Accepted calls are written with the rest, or at the next look. */
  #noteAccepted(): void {
    for (const [id, { acceptedAt, storedAcceptedAt }] of this.#known)
      if (acceptedAt !== storedAcceptedAt) this.#unsaved.add(id);
  }

  #change(change: Omit<Change, "nowMs">): void {
    const noticed = { ...change, nowMs: this.#deps.clock.now() };
    this.#changes.push(noticed);
    this.#meanwhile?.push(noticed);
    void this.#behind.flush();
  }

  /** As the database has it, with what it has not yet. */
  async #loadStanding(): Promise<void> {
    const noticed = [...this.#changes];
    this.#meanwhile = noticed;
    const stored = await this.#deps.store
      .read((tx) => standingProblems(tx, CODES))
      .finally(() => {
        this.#meanwhile = null;
      });
    this.#standing = new Map(stored.map((problem) => [keyOf(problem), problem]));
    for (const { problem, raised } of noticed) {
      if (raised) this.#standing.set(keyOf(problem), problem);
      else this.#standing.delete(keyOf(problem));
    }
  }

  async #write(): Promise<void> {
    const changes = [...this.#changes];
    const rows = [...this.#unsaved].flatMap((id) => {
      const known = this.#known.get(id);
      return known === undefined ? [] : [rowOf(id, known)];
    });
    if (changes.length === 0 && rows.length === 0) return;
    this.#unsaved.clear();
    try {
      await this.#deps.store.write("app", async (tx) => {
        for (const change of changes) await writeChange(tx, change);
        for (const row of rows) await HEALTH.update(tx, row);
      });
    } catch (error) {
      for (const { id } of rows) this.#unsaved.add(id);
      throw error;
    }
    this.#changes.splice(0, changes.length);
    for (const { id, acceptedAt } of rows) {
      const known = this.#known.get(id);
      if (known !== undefined) known.storedAcceptedAt = acceptedAt;
    }
  }
}

/** What is kept of a relay of this version when it begins. */
export function keepOf(version: number, before?: Kept): Kept {
  const kept: Kept = { version, matched: false, found: false, usual: 0, uncalledTold: false, runs: {} };
  if (before === undefined) return kept;
  for (const code of REFUSED) if (before.runs[code] !== undefined) kept.runs[code] = before.runs[code];
  return { ...kept, uncalledTold: before.uncalledTold };
}

/** `row` null: of a relay of which nothing is known. */
function knownOf(row: RowOf<typeof HEALTH> | null): Known {
  const { refusedSince, refusedCount = 0, refusedAt = null, acceptedAt = null, fruitless = null } = row ?? {};
  const kept = fruitless ?? keepOf(0);
  if (refusedSince != null)
    kept.runs.relay_refusing = { since: refusedSince, at: refusedAt ?? refusedSince, count: refusedCount };
  return { kept, seen: {}, refusedAt, acceptedAt, storedAcceptedAt: acceptedAt, found: null };
}

function rowOf(id: string, { kept, refusedAt, acceptedAt }: Known): RowOf<typeof HEALTH> {
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

async function writeChange(tx: Writer, { problem, raised, alerted, message, nowMs }: Change): Promise<void> {
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
