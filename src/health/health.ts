/**
 * How each relay is doing, seen across its calls and runs: calls refused or ignored one after another, events that find nobody, attempts that
 * fail, good events over the app's cap. Each is a run that anything better ends, counted in memory, so that an accepted call asks no database;
 * what changed is written behind the calls, in the order it was noticed. When one is a problem is problem.ts's, and what shows by waiting alone
 * is watch.ts's. Receiver and runner tell it; it judges no call and no event.
 */
import type { Clock } from "../ground/clock.ts";
import { DAY_MS, type RaisableLimits } from "../ground/limit.ts";
import type { Log } from "../ground/log.ts";
import { WriteBehind } from "../ground/write-behind.ts";
import type { LiveRelay, Snapshot } from "../relay/live-relay.ts";
import type { Store } from "../store/port.ts";
import {
  countAnew,
  drop,
  HEALTH,
  type HealthCode,
  type Kept,
  type Known,
  keepOf,
  knownOf,
  type RunCode,
} from "./known.ts";
import { CAPPED_OVER_MS, HealthProblems, HOPELESS, writeChange } from "./problem.ts";
import { shareRows, writeRows } from "./row-write.ts";

const WRITE_AFTER_MS = 1_000;
/** Refused calls further apart than this belong to no run: now and then a stranger tries every URL. */
const MAX_PAUSE_MS = DAY_MS;

/** How an attempt of an event ended. `code`: a failure's, or why no action ran. */
export interface RunEnd {
  /** null: it was deleted meanwhile. */
  relay: LiveRelay | null;
  outcome: "ok" | "failed" | "not_run";
  code: string | null;
  /** What the owner is told of a failure. */
  why: string | null;
  /** Whether the event is dead, of which the owner was told. */
  dead: boolean;
}

interface HealthDeps {
  store: Store;
  clock: Clock;
  log: Log;
  limits: Pick<RaisableLimits, "verifiedEventsPerMinute">;
  /** Other nodes see calls and runs of the same relays, so that what is known is put together in their rows; false unless told. */
  shared?: boolean;
}

export class Health {
  readonly #deps: HealthDeps;
  readonly #behind: WriteBehind;
  readonly #known = new Map<string, Known>();
  readonly #unsaved = new Set<string>();
  readonly problems: HealthProblems;
  /** Monotonic: a time in which nothing ran proves nothing. */
  #startedMs = 0;

  constructor(deps: HealthDeps) {
    this.#deps = deps;
    const write = () => this.#write();
    this.#behind = new WriteBehind({ ...deps, afterMs: WRITE_AFTER_MS, what: "a trouble of a relay", write });
    this.problems = new HealthProblems({ ...deps, onChange: () => void this.#behind.flush() });
  }

  /** Reads what an earlier process saw, but for what was told and is over. Calls and runs are noted without it too, and count instead. */
  async start(isOver: (relayId: string, code: RunCode, sinceMs: number) => boolean): Promise<void> {
    const { store, clock } = this.#deps;
    this.#startedMs = clock.monotonicMs();
    for (const row of await store.read((tx) => HEALTH.all(tx, ""))) {
      if (this.#known.has(row.id)) continue;
      const known = knownOf(row);
      this.#known.set(row.id, known);
      for (const code of Object.keys(known.kept.runs) as RunCode[]) {
        const run = known.kept.runs[code];
        if (run === undefined) continue;
        known.seen[code] = { sinceMs: this.#on(run.since), atMs: this.#on(run.at), why: null };
        if (!isOver(row.id, code, run.since)) continue;
        countAnew(known, code, clock.now());
        this.#note(row.id);
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
    const known = this.#knownOf(relay.id);
    known.acceptedAt = nowMs;
    if (known.kept.runs.relay_refusing !== undefined) {
      Object.assign(known, { found: null, refusedAt: null });
      drop(known, "relay_refusing", nowMs);
      this.#note(relay.id, true);
    }
    if (this.#deps.shared === true) {
      known.use = relay.receiver?.overlap ?? null;
      this.#note(relay.id, true);
    }
    this.#clear(relay, "relay_refusing");
    this.#clear(relay, "relay_uncalled");
  }

  /** When a call of the relay last verified; null: none did that is known of. */
  acceptedAt(relay: LiveRelay): number | null {
    return this.#knownOf(relay.id).acceptedAt;
  }

  /** An event of the relay was stored. */
  receive(relay: LiveRelay): void {
    this.#clear(relay, "relay_silent");
  }

  /** A call verified in no environment; `cause` says why not in this relay's. */
  refuse(relay: LiveRelay, cause: string): void {
    this.#clear(relay, "relay_uncalled");
    this.#knownOf(relay.id).refusedAt = this.#deps.clock.now();
    this.#endAfter(relay, "relay_refusing", MAX_PAUSE_MS);
    this.#add(relay, "relay_refusing", cause);
    this.#note(relay.id, true);
  }

  /** Why a call was refused was found by looking into it; what says more is kept. */
  find(relay: LiveRelay, cause: string, solved: boolean): void {
    const known = this.#knownOf(relay.id);
    if (known.kept.runs.relay_refusing === undefined || (known.found?.solved === true && !solved)) return;
    known.found = { cause, solved };
  }

  /** A verified call passed `when`. */
  match(relay: LiveRelay): void {
    if (relay.receiver?.when == null) return;
    const kept = this.#of(relay);
    if (!kept.matched) {
      kept.matched = true;
      this.#note(relay.id);
    }
    kept.usual = Math.max(kept.usual, kept.runs.relay_ignoring?.count ?? 0);
    this.#end(relay, "relay_ignoring");
  }

  /** `when` ignored a verified call; `why` follows "the last one because". Answers whether a call passed before, so that this is usual. */
  ignore(relay: LiveRelay, why: string): boolean {
    this.#add(relay, "relay_ignoring", why);
    return this.#of(relay).matched;
  }

  /** A good event was refused, because the app's minute was full. */
  cap(relay: LiveRelay): void {
    this.#endAfter(relay, "relay_capped", CAPPED_OVER_MS);
    this.#add(relay, "relay_capped", null);
  }

  /** An attempt of an event ended, of whatever trigger: whether relays do anything is seen across all of it. */
  noteRun({ relay, outcome, code, why, dead }: RunEnd): void {
    if (relay === null) return;
    if (outcome === "not_run") {
      if (code === "person_not_found") this.#add(relay, "relay_nobody", null);
      return;
    }
    const kept = this.#of(relay);
    if (!kept.found) {
      kept.found = true;
      this.#note(relay.id);
    }
    this.#end(relay, "relay_nobody");
    if (outcome === "ok") this.#end(relay, "relay_failing");
    else {
      this.#add(relay, "relay_failing", why, dead);
      if (code !== null && HOPELESS.has(code))
        this.problems.raiseRun(relay, "relay_failing", this.#knownOf(relay.id), true);
    }
  }

  /** A problem was raised or cleared, perhaps by another node: what stands there is over by what happens here. */
  readonly hear = (): void => {
    if (this.#deps.shared === true) void this.problems.adopt().catch(() => undefined);
  };

  /** What is kept of a relay of this version. */
  #of(relay: LiveRelay): Kept {
    const known = this.#knownOf(relay.id);
    if (known.kept.version !== relay.version) known.kept = keepOf(relay.version, known.kept);
    return known.kept;
  }

  #add(relay: LiveRelay, code: RunCode, why: string | null, told = false): void {
    const { runs } = this.#of(relay);
    const { seen } = this.#knownOf(relay.id);
    const [at, atMs] = [this.#deps.clock.now(), this.#deps.clock.monotonicMs()];
    const run = runs[code];
    const more = told || run?.told === true ? { told: true } : {};
    runs[code] = { since: run?.since ?? at, at, count: (run?.count ?? 0) + 1, ...more };
    seen[code] = { sinceMs: run === undefined ? atMs : (seen[code]?.sinceMs ?? atMs), atMs, why };
    this.#note(relay.id);
    if (this.#deps.shared === true) this.#knownOf(relay.id).grown.set(code, relay);
    else this.#judge(relay, code);
  }

  #judge(relay: LiveRelay, code: RunCode): void {
    this.#of(relay);
    this.problems.judge(relay, code, this.#knownOf(relay.id), this.#startedMs);
  }

  #end(relay: LiveRelay, code: RunCode): void {
    const known = this.#knownOf(relay.id);
    if (known.kept.runs[code] !== undefined || this.#deps.shared === true) {
      drop(known, code, this.#deps.clock.now());
      this.#note(relay.id);
    }
    this.#clear(relay, code);
  }

  /** A run whose last one lies so far back is another's. */
  #endAfter(relay: LiveRelay, code: RunCode, ms: number): void {
    const known = this.#knownOf(relay.id);
    const seen = known.seen[code];
    if (seen !== undefined && this.#deps.clock.monotonicMs() - seen.atMs > ms)
      drop(known, code, known.kept.runs[code]?.at ?? 0);
  }

  /** Whether no call of it ever came that is known of, and nobody was told so. */
  isUncalled(relay: LiveRelay): boolean {
    const { kept, acceptedAt, refusedAt } = this.#knownOf(relay.id);
    return acceptedAt === null && refusedAt === null && !kept.uncalledTold;
  }

  /** Nobody calls the relay, which is told once. */
  noteUncalled(relay: LiveRelay, message: string): void {
    this.#of(relay).uncalledTold = true;
    this.#note(relay.id);
    this.problems.raise(relay, "relay_uncalled", message);
  }

  /** Now and then: what has lasted long enough by itself is a problem, and a cap's time is over. */
  review(relay: LiveRelay): void {
    const { kept, seen } = this.#knownOf(relay.id);
    for (const code of Object.keys(kept.runs) as RunCode[])
      if (code !== "relay_refusing") this.#judge(relay, code);
    const capped = seen.relay_capped;
    if (capped === undefined || this.#deps.clock.monotonicMs() - capped.atMs >= CAPPED_OVER_MS)
      this.#end(relay, "relay_capped");
  }

  /** Now and then: what is only noted is written, and relays that are gone are forgotten. Answers the problems that somebody resolved by hand. */
  async tend(snapshot: Snapshot): Promise<{ relay: LiveRelay; code: HealthCode }[]> {
    for (const id of this.#known.keys()) if (snapshot.findRelay(id) === null) this.#known.delete(id);
    this.#noteAccepted();
    if (this.#deps.shared === true)
      for (const { id } of snapshot.relays) {
        this.#knownOf(id);
        this.#unsaved.add(id);
      }
    await this.flush();
    return await this.problems.tend(snapshot);
  }

  /** Somebody resolved the problem by hand: it comes back only with what happens from now on. */
  forget(relay: LiveRelay, code: RunCode): void {
    countAnew(this.#knownOf(relay.id), code, this.#deps.clock.now());
    this.#note(relay.id, code === "relay_refusing");
  }

  /** Writes what was noted. */
  flush(): Promise<void> {
    return this.#behind.flush();
  }

  #knownOf(relayId: string): Known {
    let known = this.#known.get(relayId);
    if (known === undefined) {
      known = knownOf(null);
      this.#known.set(relayId, known);
    }
    return known;
  }

  /** What is known of the relay changed, and is written with the next look; `soon`: in a moment. */
  #note(relayId: string, soon = this.#deps.shared === true): void {
    this.#unsaved.add(relayId);
    if (soon) this.#behind.arm();
  }

  /** Where a time of the wall clock lies on the one that nobody sets. */
  #on(wallMs: number): number {
    const { clock } = this.#deps;
    return clock.monotonicMs() - Math.max(0, clock.now() - wallMs);
  }

  /** An accepted call asks no more than whether any problem stands. */
  #clear(relay: LiveRelay, code: HealthCode): void {
    if (this.problems.standing.size > 0) this.problems.clear(relay, code);
  }

  /** Accepted calls are written with the rest, or at the next look. */
  #noteAccepted(): void {
    for (const [id, { acceptedAt, storedAcceptedAt }] of this.#known)
      if (acceptedAt !== storedAcceptedAt) this.#unsaved.add(id);
  }

  async #write(): Promise<void> {
    const changes = [...this.problems.changes];
    const noted = [...this.#unsaved].flatMap((id) => {
      const known = this.#known.get(id);
      return known === undefined ? [] : [{ id, known }];
    });
    if (changes.length === 0 && noted.length === 0) return;
    this.#unsaved.clear();
    const rows =
      this.#deps.shared === true
        ? shareRows(noted, {
            on: (wallMs) => this.#on(wallMs),
            judge: (relay, code) => this.#judge(relay, code),
          })
        : writeRows(noted);
    try {
      await this.#deps.store.write("app", async (tx) => {
        for (const change of changes) await writeChange(tx, change);
        await rows.write(tx);
      });
    } catch (error) {
      for (const { id } of noted) this.#unsaved.add(id);
      rows.failed();
      throw error;
    }
    this.problems.changes.splice(0, changes.length);
    rows.done();
  }
}
