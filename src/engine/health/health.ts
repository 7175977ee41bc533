/**
 * How each relay is doing, seen across its calls and runs: calls refused or ignored one after another, events that find nobody, attempts that
 * fail, good events over the app's cap. Each is a run that anything better ends, counted in memory, so that an accepted call asks no database;
 * what changed is written behind the calls, in the order it was noticed. When one is a problem is problem.ts's, what shows by waiting alone
 * silence-check.ts's, and what other nodes saw shared-health.ts's. Receiver and runner tell it; it judges no call and no event.
 */
import type { Clock } from "../../base/clock.ts";
import { DAY_MS, type RaisableLimits } from "../../base/limit.ts";
import type { Log } from "../../base/log.ts";
import { WriteBehind } from "../../base/write-behind.ts";
import type { LiveRelay, Snapshot } from "../../rules/relay/live-relay.ts";
import type { Store, Writer } from "../../store/port.ts";
import type { RowOf } from "../../store/table.ts";
import {
  countAnew,
  HEALTH,
  type HealthCode,
  type Kept,
  type KeptRun,
  type Known,
  type RowHealth,
  type RunCode,
} from "./condition.ts";
import { CAPPED_OVER_MS, HealthProblems, HOPELESS, REFUSED, writeChange } from "./problem.ts";

const WRITE_AFTER_MS = 1_000;
/** Writes, with what else is to be written at once, the rows that it is handed the writing of; resolves once that is durable. */
export type WriteRows = (rows: (tx: Writer) => Promise<void>) => Promise<void>;

/** Refused calls further apart than this belong to no run: now and then a stranger tries every URL. */
const MAX_PAUSE_MS = DAY_MS;

/**
 * How an attempt of an event ended, of a relay that may be gone. `code`: a failure's, or why no action ran; `why`: what the owner is told of a
 * failure; `dead`: and of the event's death.
 */
export interface RunEnd {
  relay: LiveRelay | null;
  outcome: "ok" | "failed" | "not_run";
  code: string | null;
  why: string | null;
  dead: boolean;
}

interface HealthDeps {
  store: Store;
  clock: Clock;
  log: Log;
  limits: Pick<RaisableLimits, "verifiedEventsPerMinute">;
}

export class Health {
  protected readonly deps: HealthDeps;
  readonly #behind: WriteBehind;
  readonly #known = new Map<string, Known>();
  readonly #unsaved = new Set<Known>();
  readonly problems: HealthProblems;
  /** Monotonic: a time in which nothing ran proves nothing. */
  #startedMs = 0;

  constructor(deps: HealthDeps) {
    this.deps = deps;
    const write = () => this.#write();
    this.#behind = new WriteBehind({ ...deps, afterMs: WRITE_AFTER_MS, what: "a trouble of a relay", write });
    this.problems = new HealthProblems({ ...deps, onChange: () => void this.#behind.flush() });
  }

  /** Reads what an earlier process saw, but for what was told and is over. Calls and runs are noted without it too, and count instead. */
  async start(isOver: (relayId: string, code: RunCode, sinceMs: number) => boolean): Promise<void> {
    const { store, clock } = this.deps;
    const [nowMs, monotonicMs] = [clock.now(), clock.monotonicMs()];
    this.#startedMs = monotonicMs;
    const on = (wallMs: number): number => monotonicMs - Math.max(0, nowMs - wallMs);
    for (const row of await store.read((tx) => HEALTH.all(tx, ""))) {
      if (this.#known.has(row.id)) continue;
      const known = this.begin(row.id, row);
      for (const [code, run] of Object.entries(known.kept.runs) as [RunCode, KeptRun][]) {
        known.seen[code] = { sinceMs: on(run.since), atMs: on(run.at), why: null };
        if (isOver(row.id, code, run.since)) this.forget(row.id, code);
      }
    }
    await this.problems.load();
  }

  /** After the last call: resolves when what was noticed is written. */
  async stop(): Promise<void> {
    this.#noteAccepted();
    await this.#behind.stop();
  }

  /** A call verified, whatever becomes of it. */
  accept(relay: LiveRelay, nowMs: number): void {
    const known = this.of(relay.id);
    known.acceptedAt = nowMs;
    if (known.kept.runs.relay_refusing !== undefined) {
      Object.assign(known, { found: null, refusedAt: null });
      this.drop(known, "relay_refusing", nowMs);
      this.note(known, true);
    }
    this.#clear(relay, "relay_refusing");
    this.#clear(relay, "relay_uncalled");
  }

  /** An event of the relay was stored. */
  receive(relay: LiveRelay): void {
    this.#clear(relay, "relay_silent");
  }

  /** A call verified in no environment; `cause` says why not in this relay's. */
  refuse(relay: LiveRelay, cause: string): void {
    this.#clear(relay, "relay_uncalled");
    const known = this.of(relay.id);
    known.refusedAt = this.deps.clock.now();
    this.#endAfter(known, "relay_refusing", MAX_PAUSE_MS);
    this.#add(relay, "relay_refusing", cause);
    this.note(known, true);
  }

  /** Why a call was refused was found by looking into it; what says more is kept. */
  find(relay: LiveRelay, cause: string, solved: boolean): void {
    const known = this.of(relay.id);
    if (known.kept.runs.relay_refusing === undefined || (known.found?.solved === true && !solved)) return;
    known.found = { cause, solved };
  }

  /** A verified call passed `when`. */
  match(relay: LiveRelay): void {
    if (relay.receiver?.when == null) return;
    const known = this.#ofVersion(relay);
    const { kept } = known;
    if (!kept.matched) {
      kept.matched = true;
      this.note(known);
    }
    kept.usual = Math.max(kept.usual, kept.runs.relay_ignoring?.count ?? 0);
    this.end(relay, "relay_ignoring");
  }

  /** `when` ignored a verified call; `why` follows "the last one because". Answers whether a call passed before, so that this is usual. */
  ignore(relay: LiveRelay, why: string): boolean {
    this.#add(relay, "relay_ignoring", why);
    return this.#ofVersion(relay).kept.matched;
  }

  /** A good event was refused, because the app's minute was full. */
  cap(relay: LiveRelay): void {
    this.#endAfter(this.of(relay.id), "relay_capped", CAPPED_OVER_MS);
    this.#add(relay, "relay_capped", null);
  }

  /** An attempt of an event ended, of whatever trigger: whether relays do anything is seen across all of it. */
  recordRun({ relay, outcome, code, why, dead }: RunEnd): void {
    if (relay === null) return;
    if (outcome === "not_run") {
      if (code === "person_not_found") this.#add(relay, "relay_nobody", null);
      return;
    }
    const known = this.#ofVersion(relay);
    if (!known.kept.found) {
      known.kept.found = true;
      this.note(known);
    }
    this.end(relay, "relay_nobody");
    if (outcome === "ok") this.end(relay, "relay_failing");
    else {
      this.#add(relay, "relay_failing", why, dead);
      if (code !== null && HOPELESS.has(code)) this.problems.raiseRun(relay, "relay_failing", known, true);
    }
  }

  /** What is known of a relay of this version. */
  #ofVersion(relay: LiveRelay): Known {
    const known = this.of(relay.id);
    if (known.kept.version !== relay.version) known.kept = keepOf(relay.version, known.kept);
    return known;
  }

  #add(relay: LiveRelay, code: RunCode, why: string | null, told = false): void {
    const known = this.#ofVersion(relay);
    const { kept, seen } = known;
    const [at, atMs] = [this.deps.clock.now(), this.deps.clock.monotonicMs()];
    const run = kept.runs[code];
    const more = told || run?.told === true ? { told: true } : {};
    kept.runs[code] = { since: run?.since ?? at, at, count: (run?.count ?? 0) + 1, ...more };
    seen[code] = { sinceMs: run === undefined ? atMs : (seen[code]?.sinceMs ?? atMs), atMs, why };
    this.note(known);
    this.grew(known, relay, code);
  }

  /** One more of the run came. */
  protected grew(_known: Known, relay: LiveRelay, code: RunCode): void {
    this.judge(relay, code);
  }

  protected judge(relay: LiveRelay, code: RunCode): void {
    this.problems.judge(relay, code, this.#ofVersion(relay), this.#startedMs);
  }

  protected end(relay: LiveRelay, code: RunCode): void {
    const known = this.of(relay.id);
    if (known.kept.runs[code] !== undefined) {
      this.drop(known, code, this.deps.clock.now());
      this.note(known);
    }
    this.#clear(relay, code);
  }

  /** A run whose last one lies so far back is another's. */
  #endAfter(known: Known, code: RunCode, ms: number): void {
    const seen = known.seen[code];
    if (seen !== undefined && this.deps.clock.monotonicMs() - seen.atMs > ms)
      this.drop(known, code, known.kept.runs[code]?.at ?? 0);
  }

  /** The run is over since `endedAt`. */
  protected drop({ kept, seen }: Known, code: RunCode, _endedAt: number): void {
    delete kept.runs[code];
    delete seen[code];
  }

  /** Nobody calls the relay, which is told once. */
  noteUncalled(relay: LiveRelay, message: string): void {
    const known = this.#ofVersion(relay);
    known.kept.uncalledTold = true;
    this.note(known);
    this.problems.raise(relay, "relay_uncalled", message);
  }

  /** Now and then: what has lasted long enough by itself is a problem, and a cap's time is over. */
  review(relay: LiveRelay): void {
    const { kept, seen } = this.of(relay.id);
    for (const code of Object.keys(kept.runs) as RunCode[])
      if (code !== "relay_refusing") this.judge(relay, code);
    const capped = seen.relay_capped;
    if (capped === undefined || this.deps.clock.monotonicMs() - capped.atMs >= CAPPED_OVER_MS)
      this.end(relay, "relay_capped");
  }

  /** Now and then: what is only noted is written, and relays that are gone are forgotten. Answers the problems that somebody resolved by hand. */
  async tend(snapshot: Snapshot): Promise<{ relay: LiveRelay; code: HealthCode }[]> {
    for (const id of this.#known.keys()) if (snapshot.findRelay(id) === null) this.#known.delete(id);
    this.#noteAccepted();
    await this.flush();
    return await this.problems.tend(snapshot);
  }

  /** Somebody resolved the problem by hand: it comes back only with what happens from now on. */
  forget(relayId: string, code: RunCode): void {
    const known = this.of(relayId);
    countAnew(known.kept, code);
    this.drop(known, code, this.deps.clock.now());
    this.note(known, code === "relay_refusing");
  }

  /** Writes what was noted. */
  flush(): Promise<void> {
    return this.#behind.flush();
  }

  /** What is known of the relay, for others to read. */
  of(relayId: string): Known {
    return this.#known.get(relayId) ?? this.begin(relayId, null);
  }

  /** `row` null: nothing is known of the relay. */
  protected begin(relayId: string, row: RowOf<typeof HEALTH> | null): Known {
    const known = knownOf(relayId, row);
    this.#known.set(relayId, known);
    return known;
  }

  /** What is known changed, and is written with the next look; `soon`: in a moment. */
  protected note(known: Known, soon = false): void {
    this.#unsaved.add(known);
    if (soon) this.#behind.arm();
  }

  /** An accepted call asks no more than whether any problem stands. */
  #clear(relay: LiveRelay, code: HealthCode): void {
    if (this.problems.standing.size > 0) this.problems.clear(relay, code);
  }

  /** Accepted calls are written with the rest, or at the next look. */
  #noteAccepted(): void {
    for (const known of this.#known.values())
      if (known.acceptedAt !== known.storedAcceptedAt) this.#unsaved.add(known);
  }

  async #write(): Promise<void> {
    const changes = [...this.problems.changes];
    const noted = [...this.#unsaved];
    if (changes.length === 0 && noted.length === 0) return;
    this.#unsaved.clear();
    let goOn: () => void;
    try {
      goOn = await this.save(noted, (rows) =>
        this.deps.store.write("app", async (tx) => {
          for (const change of changes) await writeChange(tx, change);
          await rows(tx);
        }),
      );
    } catch (error) {
      for (const known of noted) this.#unsaved.add(known);
      throw error;
    }
    this.problems.changes.splice(0, changes.length);
    goOn();
  }

  /** Writes what was noted; answers what follows once that is durable. */
  protected async save(noted: readonly Known[], write: WriteRows): Promise<() => void> {
    const rows = noted.map((known) => ({ known, row: rowOf(known) }));
    await write(async (tx) => {
      for (const { row } of rows) await HEALTH.update(tx, row);
    });
    return () => {
      for (const { known, row } of rows) known.storedAcceptedAt = row.acceptedAt;
    };
  }
}

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
