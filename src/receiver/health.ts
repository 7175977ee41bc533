/**
 * How each receiver is doing, seen across its calls: since when it refuses every one, when it last accepted one, and which problems of its
 * stand. All of it is in memory, so that an accepted call asks no database; what changed is written behind the calls, in the order it was
 * noticed. A problem is told once when it begins and once when it is over, unless these alerts are switched off.
 */
import type { Clock } from "../ground/clock.ts";
import { DAY_MS, MINUTE_MS } from "../ground/limit.ts";
import type { Log } from "../ground/log.ts";
import { WriteBehind } from "../ground/write-behind.ts";
import type { LiveRelay, Snapshot } from "../relay/live-relay.ts";
import { relayTarget } from "../relay/relay.ts";
import type { Store, Writer } from "../store/port.ts";
import { defineTable, integer, orNull, type RowOf, text } from "../store/table.ts";
import { raiseAlert } from "../watch/alert.ts";
import { clearProblem, type ProblemKey, raiseProblem, standingProblems } from "../watch/problem.ts";
import { CODES, type HealthCode, RECEIVER_CODES, tellRefusing } from "./fruitless-rule.ts";
import { isOver, listOver } from "./over.ts";

/** How long every call must have been refused, and how many calls, to be a problem. */
const MIN_RUN_MS = 15 * MINUTE_MS;
const MIN_RUN_CALLS = 5;
/** Refused calls further apart than this belong to no run: now and then a stranger tries every URL. */
const MAX_PAUSE_MS = DAY_MS;
const WRITE_AFTER_MS = 1_000;

/** The part of the relay's row that tells of its receiver. No live relay is made of it, so that writing it touches nothing. */
const RECEIVER_HEALTH = defineTable({
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
  },
});

type HealthRow = RowOf<typeof RECEIVER_HEALTH>;

/** A receiver's row, and where its refused calls lie on the clock that nobody sets. */
interface Health {
  row: HealthRow;
  refusedSinceMonotonicMs: number;
  refusedAtMonotonicMs: number;
  /** Why one of those calls was refused, as it was found by looking into it; `solved`: it names what has to be otherwise. */
  found: { cause: string; solved: boolean } | null;
  /** As the database has it. */
  storedAcceptedAt: number | null;
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

interface HealthDeps {
  store: Store;
  clock: Clock;
  log: Log;
}

export class ReceiverHealth {
  readonly #deps: HealthDeps;
  readonly #behind: WriteBehind;
  readonly #health = new Map<string, Health>();
  /** Almost always none, which is all that an accepted call asks. */
  #standing = new Map<string, HealthProblem>();
  #changes: Change[] = [];
  readonly #unsaved = new Set<string>();

  constructor(deps: HealthDeps) {
    this.#deps = deps;
    const write = () => this.#write();
    this.#behind = new WriteBehind({ ...deps, afterMs: WRITE_AFTER_MS, what: "a trouble of a relay", write });
  }

  /** Reads what an earlier process saw; of a receiver that was called meanwhile, what is seen now counts. */
  async start(): Promise<void> {
    const [nowMs, monotonicMs] = [this.#deps.clock.now(), this.#deps.clock.monotonicMs()];
    const over = await this.#deps.store.read((tx) => listOver(tx, nowMs));
    for (const row of await this.#deps.store.read((tx) => RECEIVER_HEALTH.all(tx, ""))) {
      if (this.#health.has(row.id)) continue;
      if (row.refusedSince !== null && isOver(over, row.id, "relay_refusing", row.refusedSince))
        Object.assign(row, { refusedSince: null, refusedCount: 0 });
      const on = (wallMs: number | null) => monotonicMs - Math.max(0, nowMs - (wallMs ?? nowMs));
      this.#health.set(row.id, {
        row,
        refusedSinceMonotonicMs: on(row.refusedSince),
        refusedAtMonotonicMs: on(row.refusedAt),
        found: null,
        storedAcceptedAt: row.acceptedAt,
      });
    }
    await this.#loadStanding();
  }

  /** Resolves when what was noticed is written. */
  async stop(): Promise<void> {
    this.#noteAccepted();
    await this.#behind.stop();
  }

  /** A call verified, whatever becomes of it. */
  accept(relay: LiveRelay, nowMs: number): void {
    const health = this.#of(relay.id);
    const { row } = health;
    row.acceptedAt = nowMs;
    if (row.refusedSince !== null) {
      health.found = null;
      this.#note(row, { refusedSince: null, refusedCount: 0, refusedAt: null });
    }
    this.clear(relay, "relay_refusing", `${relay.name} accepts calls again: one verified.`);
  }

  /** When a call of the relay last verified; null: none did that is known of. */
  acceptedAt(relay: LiveRelay): number | null {
    return this.#of(relay.id).row.acceptedAt;
  }

  /** An event of the relay was stored. */
  receive(relay: LiveRelay): void {
    this.clear(relay, "relay_silent", `${relay.name} receives events again, so its silence is over.`);
  }

  /** A call verified in no environment; `cause` says why not in this relay's. */
  refuse(relay: LiveRelay, cause: string): void {
    const health = this.#of(relay.id);
    const { row } = health;
    const [nowMs, monotonicMs] = [this.#deps.clock.now(), this.#deps.clock.monotonicMs()];
    const goesOn = row.refusedSince !== null && monotonicMs - health.refusedAtMonotonicMs <= MAX_PAUSE_MS;
    if (!goesOn) health.refusedSinceMonotonicMs = monotonicMs;
    health.refusedAtMonotonicMs = monotonicMs;
    const refusedSince = goesOn && row.refusedSince !== null ? row.refusedSince : nowMs;
    this.#note(row, { refusedSince, refusedCount: goesOn ? row.refusedCount + 1 : 1, refusedAt: nowMs });
    if (monotonicMs - health.refusedSinceMonotonicMs < MIN_RUN_MS || row.refusedCount < MIN_RUN_CALLS) return;
    if (this.stands(relay, "relay_refusing")) return;
    const why =
      health.found === null ? `the last one because ${cause}` : `one of them because ${health.found.cause}`;
    this.raise(relay, "relay_refusing", tellRefusing(relay.name, refusedSince, row.refusedCount, why));
  }

  /** Why a call was refused was found by looking into it; what says more is kept. */
  find(relay: LiveRelay, cause: string, solved: boolean): void {
    const health = this.#of(relay.id);
    if (health.row.refusedSince === null || (health.found?.solved === true && !solved)) return;
    health.found = { cause, solved };
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
  clear(relay: LiveRelay, code: HealthCode, message: string): void {
    if (this.#standing.size === 0) return;
    const problem = problemOf(relay, code);
    if (this.#standing.delete(keyOf(problem)))
      this.#change({ problem, raised: false, alerted: false, message });
  }

  stands(relay: LiveRelay, code: HealthCode): boolean {
    return this.#standing.size > 0 && this.#standing.has(keyOf(problemOf(relay, code)));
  }

  /** Whether any call is remembered that may be the sender's. */
  wasCalled(relay: LiveRelay): boolean {
    const row = this.#health.get(relay.id)?.row;
    return row !== undefined && (row.acceptedAt !== null || row.refusedAt !== null);
  }

  /**
   * Now and then: a relay that is deleted, or no receiver any more, has nobody to be silent or to refuse. What is only noted is written.
   * Answers the problems that somebody resolved by hand meanwhile.
   */
  async tend(snapshot: Snapshot): Promise<{ relay: LiveRelay; code: HealthCode }[]> {
    for (const id of this.#health.keys()) if (snapshot.findRelay(id) === null) this.#health.delete(id);
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

  /** Somebody said that its refusals are seen to: they are counted anew. */
  forgetRefusals(relay: LiveRelay): void {
    this.#note(this.#of(relay.id).row, { refusedSince: null, refusedCount: 0 });
  }

  #of(relayId: string): Health {
    let health = this.#health.get(relayId);
    if (health === undefined) {
      const row = { id: relayId, refusedSince: null, refusedCount: 0, refusedAt: null, acceptedAt: null };
      health = {
        row,
        refusedSinceMonotonicMs: 0,
        refusedAtMonotonicMs: 0,
        found: null,
        storedAcceptedAt: null,
      };
      this.#health.set(relayId, health);
    }
    return health;
  }

  #note(row: HealthRow, changes: Partial<HealthRow>): void {
    Object.assign(row, changes);
    this.#unsaved.add(row.id);
    this.#behind.arm();
  }

  /** Accepted calls are written with the rest, or at the next look. */
  #noteAccepted(): void {
    for (const { row, storedAcceptedAt } of this.#health.values()) {
      if (row.acceptedAt !== storedAcceptedAt) this.#unsaved.add(row.id);
    }
  }

  #change(change: Omit<Change, "nowMs">): void {
    this.#changes.push({ ...change, nowMs: this.#deps.clock.now() });
    void this.#behind.flush();
  }

  async #loadStanding(): Promise<void> {
    const stored = await this.#deps.store.read((tx) => standingProblems(tx, CODES));
    this.#standing = new Map(stored.map((problem) => [keyOf(problem), problem]));
  }

  async #write(): Promise<void> {
    const changes = this.#changes;
    const rows = [...this.#unsaved]
      .flatMap((id) => this.#health.get(id)?.row ?? [])
      .map((row) => ({ ...row }));
    if (changes.length === 0 && rows.length === 0) return;
    this.#changes = [];
    this.#unsaved.clear();
    try {
      await this.#deps.store.write("app", async (tx) => {
        for (const change of changes) await writeChange(tx, change);
        for (const row of rows) await RECEIVER_HEALTH.update(tx, row);
      });
    } catch (error) {
      this.#changes = [...changes, ...this.#changes];
      for (const { id } of rows) this.#unsaved.add(id);
      throw error;
    }
    for (const { id, acceptedAt } of rows) {
      const health = this.#health.get(id);
      if (health !== undefined) health.storedAcceptedAt = acceptedAt;
    }
  }
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
