/**
 * How each relay is doing, seen across its calls and runs: calls refused or ignored one after another, events that find nobody, attempts that
 * fail, good events over the app's cap, a receiver that was never called or went silent. Each is a run that anything better ends, counted in
 * memory; when one is a problem is rule.ts's. Receiver and runner tell it; it judges no call and no event.
 */
import { type Clock, ClockWatch, Loop } from "../ground/clock.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS, type RaisableLimits } from "../ground/limit.ts";
import type { Log } from "../ground/log.ts";
import type { LiveRelay, LiveRelays, Snapshot } from "../relay/live-relay.ts";
import { findLastEventAt } from "../relay/relay-view.ts";
import { type Store, StoreUnavailable } from "../store/port.ts";
import {
  type HealthCode,
  HOPELESS,
  isProblem,
  isRunCode,
  type Kept,
  REFUSED,
  type RunCode,
  tellRun,
  tellUncalled,
} from "./rule.ts";
import { findMadeAt, SilenceWatch } from "./silence.ts";
import { type Known, keepOf, Standing } from "./standing.ts";

const LOOK_EVERY_MS = 5 * MINUTE_MS;
/** After the start nothing counts as silent or uncalled yet: what was sent while nothing ran is sent again by then. */
const GRACE_MS = HOUR_MS;
/** A wall clock that moved by so much more or less than the time that passed since the last look was set. */
const CLOCK_SET_MS = 10 * MINUTE_MS;
/** Refused calls further apart than this belong to no run: now and then a stranger tries every URL. */
const MAX_PAUSE_MS = DAY_MS;
/** So long without another refusal, and a cap's time is over. */
const CAPPED_OVER_MS = HOUR_MS;
const UNCALLED_MS = DAY_MS;
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
  relays: LiveRelays;
  limits: Pick<RaisableLimits, "verifiedEventsPerMinute">;
}

export class Health {
  readonly #deps: HealthDeps;
  readonly #standing: Standing;
  readonly #silence: SilenceWatch;
  readonly #clockWatch: ClockWatch;
  readonly #loop: Loop;
  /** Monotonic: a time in which nothing ran proves nothing. */
  #startedMs = 0;
  /** Monotonic: since when the clock is trusted and calls could arrive. */
  #trustedSinceMs = 0;

  constructor(deps: HealthDeps) {
    this.#deps = deps;
    this.#standing = new Standing(deps);
    this.#silence = new SilenceWatch(deps, this.#standing);
    this.#clockWatch = new ClockWatch(deps.clock, CLOCK_SET_MS);
    this.#loop = new Loop({
      clock: deps.clock,
      everyMs: LOOK_EVERY_MS,
      turn: () => this.#look(),
      onError: (error) => {
        if (!(error instanceof StoreUnavailable))
          deps.log.error("the watch for silent relays failed", { error });
      },
    });
  }

  /** Reads how the relays were doing and begins to look; calls and runs are noted without it too. */
  async start(): Promise<void> {
    this.#startedMs = this.#deps.clock.monotonicMs();
    await this.#standing.start(countAnew);
    this.#clockWatch.look();
    this.#trustedSinceMs = this.#deps.clock.monotonicMs();
    void this.#loop.start(LOOK_EVERY_MS);
  }

  /** After the last call: writes what is still only noted. */
  async stop(): Promise<void> {
    await this.#loop.stop();
    await this.#standing.stop();
  }

  /** A call verified, whatever becomes of it. */
  accept(relay: LiveRelay, nowMs: number): void {
    const known = this.#standing.of(relay.id);
    known.acceptedAt = nowMs;
    if (known.kept.runs.relay_refusing !== undefined) {
      Object.assign(known, { found: null, refusedAt: null });
      drop(known, "relay_refusing");
      this.#standing.note(relay.id, true);
    }
    this.#standing.clear(relay, "relay_refusing");
    this.#standing.clear(relay, "relay_uncalled");
  }

  /** When a call of the relay last verified; null: none did that is known of. */
  acceptedAt(relay: LiveRelay): number | null {
    return this.#standing.of(relay.id).acceptedAt;
  }

  /** An event of the relay was stored. */
  receive(relay: LiveRelay): void {
    this.#standing.clear(relay, "relay_silent");
  }

  /** A call verified in no environment; `cause` says why not in this relay's. */
  refuse(relay: LiveRelay, cause: string): void {
    this.#standing.clear(relay, "relay_uncalled");
    const known = this.#standing.of(relay.id);
    known.refusedAt = this.#deps.clock.now();
    this.#endAfter(relay, "relay_refusing", MAX_PAUSE_MS);
    this.#add(relay, "relay_refusing", cause);
    this.#standing.note(relay.id, true);
  }

  /** Why a call was refused was found by looking into it; what says more is kept. */
  find(relay: LiveRelay, cause: string, solved: boolean): void {
    const known = this.#standing.of(relay.id);
    if (known.kept.runs.relay_refusing === undefined || (known.found?.solved === true && !solved)) return;
    known.found = { cause, solved };
  }

  /** A verified call passed `when`. */
  match(relay: LiveRelay): void {
    if (relay.receiver?.when == null) return;
    const kept = this.#of(relay);
    if (!kept.matched) {
      kept.matched = true;
      this.#standing.note(relay.id);
    }
    kept.usual = Math.max(kept.usual, kept.runs.relay_ignoring?.count ?? 0);
    this.#end(relay, "relay_ignoring");
  }

  /**
   * `when` ignored a verified call; `why` follows "the last one because". Answers whether that is usual: a call passed before, so `when` sorts
   * as it is meant to.
   */
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
      this.#standing.note(relay.id);
    }
    this.#end(relay, "relay_nobody");
    if (outcome === "ok") this.#end(relay, "relay_failing");
    else {
      this.#add(relay, "relay_failing", why, dead);
      if (code !== null && HOPELESS.has(code)) this.#raise(relay, "relay_failing", true);
    }
  }

  /** What is kept of a relay of this version. */
  #of(relay: LiveRelay): Kept {
    const known = this.#standing.of(relay.id);
    if (known.kept.version !== relay.version) known.kept = keepOf(relay.version, known.kept);
    return known.kept;
  }

  #add(relay: LiveRelay, code: RunCode, why: string | null, told = false): void {
    const { runs } = this.#of(relay);
    const { seen } = this.#standing.of(relay.id);
    const [at, atMs] = [this.#deps.clock.now(), this.#deps.clock.monotonicMs()];
    const run = runs[code];
    const more = told || run?.told === true ? { told: true } : {};
    runs[code] = { since: run?.since ?? at, at, count: (run?.count ?? 0) + 1, ...more };
    seen[code] = { sinceMs: run === undefined ? atMs : (seen[code]?.sinceMs ?? atMs), atMs, why };
    this.#standing.note(relay.id);
    this.#judge(relay, code);
  }

  #judge(relay: LiveRelay, code: RunCode): void {
    const kept = this.#of(relay);
    const seen = this.#standing.of(relay.id).seen[code];
    const run = kept.runs[code];
    if (run === undefined || seen === undefined || this.#standing.stands(relay, code)) return;
    const ranMs = this.#deps.clock.monotonicMs() - Math.max(seen.sinceMs, this.#startedMs);
    const lastedMs = Math.max(seen.atMs - seen.sinceMs, REFUSED.has(code) ? 0 : ranMs);
    if (isProblem(code, kept, lastedMs)) this.#raise(relay, code, run.told === true);
  }

  #raise(relay: LiveRelay, code: RunCode, alerted: boolean): void {
    const run = this.#of(relay).runs[code];
    if (run === undefined) return;
    const { found, seen } = this.#standing.of(relay.id);
    const words = { why: seen[code]?.why ?? null, found, limit: this.#deps.limits.verifiedEventsPerMinute };
    this.#standing.raise(relay, code, tellRun(relay.name, code, run, words), alerted);
  }

  #end(relay: LiveRelay, code: RunCode): void {
    const known = this.#standing.of(relay.id);
    if (known.kept.runs[code] !== undefined) {
      drop(known, code);
      this.#standing.note(relay.id);
    }
    this.#standing.clear(relay, code);
  }

  /** A run whose last one lies so far back is another's. */
  #endAfter(relay: LiveRelay, code: RunCode, ms: number): void {
    const known = this.#standing.of(relay.id);
    const seen = known.seen[code];
    if (seen !== undefined && this.#deps.clock.monotonicMs() - seen.atMs > ms) drop(known, code);
  }

  /** Now and then: what somebody resolved by hand, what has lasted long enough by itself, and who is silent. */
  async #look(): Promise<undefined> {
    const nowMs = this.#deps.clock.monotonicMs();
    if (this.#clockWatch.look() !== 0) this.#trustedSinceMs = nowMs;
    const snapshot = await this.#deps.relays.current();
    const isTrusted = nowMs - this.#trustedSinceMs >= GRACE_MS;
    for (const { relay, code } of await this.#standing.tend(snapshot)) this.#forget(relay, code);
    await this.#lookAtRuns(snapshot, isTrusted);
    if (isTrusted) await this.#silence.look(snapshot);
  }

  /** Somebody resolved a problem by hand: it comes back only with what happens from now on. */
  #forget(relay: LiveRelay, code: HealthCode): void {
    if (code === "relay_silent") this.#silence.forget(relay);
    if (!isRunCode(code)) return;
    countAnew(this.#standing.of(relay.id), code);
    this.#standing.note(relay.id, code === "relay_refusing");
  }

  async #lookAtRuns(snapshot: Snapshot, isTrusted: boolean): Promise<void> {
    const nowMs = this.#deps.clock.monotonicMs();
    for (const relay of snapshot.relays) {
      const { kept, seen } = this.#standing.of(relay.id);
      for (const code of Object.keys(kept.runs) as RunCode[])
        if (code !== "relay_refusing") this.#judge(relay, code);
      const capped = seen.relay_capped;
      if (capped === undefined || nowMs - capped.atMs >= CAPPED_OVER_MS) this.#end(relay, "relay_capped");
      if (isTrusted) await this.#lookForCalls(relay);
    }
    await this.#standing.flush();
  }

  async #lookForCalls(relay: LiveRelay): Promise<void> {
    const { store, clock } = this.#deps;
    const { receiver, local } = relay;
    const { kept, acceptedAt, refusedAt } = this.#standing.of(relay.id);
    if (receiver === null || local || acceptedAt !== null || refusedAt !== null || kept.uncalledTold) return;
    const [madeAt, lastAt] = await store.read(async (tx) => [
      await findMadeAt(tx, relay.id),
      await findLastEventAt(tx, relay.environmentId, relay.name),
    ]);
    if (madeAt === null || (lastAt ?? 0) >= madeAt || clock.now() - madeAt < UNCALLED_MS) return;
    this.#of(relay).uncalledTold = true;
    this.#standing.note(relay.id);
    this.#standing.raise(relay, "relay_uncalled", tellUncalled(relay.name, madeAt, receiver.url));
  }
}

/** A person said that the problem is seen to. */
function countAnew(known: Known, code: RunCode): void {
  const { kept } = known;
  if (code === "relay_ignoring") {
    kept.matched = true;
    kept.usual = Math.max(kept.usual, kept.runs.relay_ignoring?.count ?? 0);
  }
  drop(known, code);
}

function drop({ kept, seen }: Known, code: RunCode): void {
  delete kept.runs[code];
  delete seen[code];
}
