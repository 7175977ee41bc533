/**
 * Whether what a relay receives comes to anything: calls that `when` ignores one after another, events that find nobody, attempts that fail,
 * good events over the app's cap, a receiver that was never called. Each is a run that anything better ends, counted in memory; when
 * one is a problem is fruitless-rule.ts's.
 */
import { type Clock, toIso } from "../ground/clock.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../ground/limit.ts";
import type { Log } from "../ground/log.ts";
import { WriteBehind } from "../ground/write-behind.ts";
import type { LiveRelay, Snapshot } from "../relay/live-relay.ts";
import { findLastEventAt } from "../relay/relay-view.ts";
import type { Store } from "../store/port.ts";
import { defineTable, json, orNull, text } from "../store/table.ts";
import {
  type HealthCode,
  HOPELESS,
  isProblem,
  isRunCode,
  type Kept,
  type KeptRun,
  type RunCode,
  THRESHOLDS,
  tellRun,
} from "./fruitless-rule.ts";
import type { ReceiverHealth } from "./health.ts";
import { isOver, listOver } from "./over.ts";

/** So long without another refusal, and a cap's time is over. */
const CAPPED_OVER_MS = HOUR_MS;
const UNCALLED_MS = DAY_MS;
/** What is told of a problem at once is written at once; the rest with the next look. */
const WRITE_AFTER_MS = 5 * MINUTE_MS;

const FRUITLESS = defineTable({
  name: "relay",
  key: ["id"],
  columns: { id: text(), fruitless: orNull(json<Kept>()) },
});

/** A run's times on the clock that nobody sets, and why the last one came to nothing, which is not kept: it may name a person. */
interface Seen {
  sinceMs: number;
  atMs: number;
  why: string | null;
}

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

interface FruitlessDeps {
  store: Store;
  clock: Clock;
  log: Log;
  limits: { verifiedEventsPerMinute: number };
}

export class FruitlessRuns {
  readonly #deps: FruitlessDeps;
  readonly #health: ReceiverHealth;
  readonly #behind: WriteBehind;
  readonly #kept = new Map<string, Kept>();
  readonly #seen = new Map<string, Seen>();
  readonly #unsaved = new Set<string>();
  /** Monotonic: a time in which nothing ran proves nothing. */
  #startedMs = 0;

  constructor(deps: FruitlessDeps, health: ReceiverHealth) {
    this.#deps = deps;
    this.#health = health;
    const write = () => this.#write();
    this.#behind = new WriteBehind({ ...deps, afterMs: WRITE_AFTER_MS, what: "a relay's runs", write });
  }

  async start(): Promise<void> {
    const { store, clock } = this.#deps;
    this.#startedMs = clock.monotonicMs();
    const over = await store.read((tx) => listOver(tx, clock.now()));
    const ago = (ms: number) => this.#startedMs - Math.max(0, clock.now() - ms);
    for (const { id, fruitless } of await store.read((tx) =>
      FRUITLESS.all(tx, "WHERE fruitless IS NOT NULL"),
    )) {
      if (fruitless === null || this.#kept.has(id)) continue;
      this.#kept.set(id, fruitless);
      for (const [code, run] of Object.entries(fruitless.runs) as [RunCode, KeptRun][]) {
        if (isOver(over, id, code, run.since)) this.#countAnew(id, code);
        else this.#seen.set(`${code} ${id}`, { sinceMs: ago(run.since), atMs: ago(run.at), why: null });
      }
    }
  }

  /** Resolves when what was counted is written. */
  stop(): Promise<void> {
    return this.#behind.stop();
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
    this.#end(relay, "relay_ignoring", `${relay.name} acts on calls again: one passed its when.`);
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
    const seen = this.#seen.get(`relay_capped ${relay.id}`);
    if (seen !== undefined && this.#deps.clock.monotonicMs() - seen.atMs > CAPPED_OVER_MS)
      this.#drop(relay.id, "relay_capped");
    this.#add(relay, "relay_capped", null);
  }

  /** A call came that may be the sender's, right or wrong. */
  call(relay: LiveRelay): void {
    if (this.#health.stands(relay, "relay_uncalled"))
      this.#health.clear(relay, "relay_uncalled", `${relay.name} was called for the first time.`);
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
    this.#end(relay, "relay_nobody", `${relay.name} acts again: an event found its person.`);
    if (outcome === "ok")
      this.#end(relay, "relay_failing", `${relay.name} acts again: every action of an event succeeded.`);
    else {
      this.#add(relay, "relay_failing", why, dead);
      if (code !== null && HOPELESS.has(code)) this.#raise(relay, "relay_failing", true);
    }
  }

  /** Now and then: raises what has lasted long enough by itself. `trustedSinceMs`: since when the clocks and the server run. */
  async look(snapshot: Snapshot, trustedSinceMs: number): Promise<void> {
    for (const id of this.#kept.keys()) if (snapshot.findRelay(id) === null) this.#forget(id);
    const nowMs = this.#deps.clock.monotonicMs();
    for (const relay of snapshot.relays) {
      const kept = this.#kept.get(relay.id);
      for (const code of Object.keys(kept?.runs ?? {}) as RunCode[]) this.#judge(relay, code);
      const capped = this.#seen.get(`relay_capped ${relay.id}`);
      if (capped === undefined || nowMs - capped.atMs >= CAPPED_OVER_MS)
        this.#end(relay, "relay_capped", `${relay.name} refused no event over the cap for an hour.`);
      if (nowMs - trustedSinceMs >= HOUR_MS) await this.#lookForCalls(relay);
    }
    await this.#behind.flush();
  }

  /** A person said that a problem is seen to: its run is counted anew. */
  forget(relay: LiveRelay, code: HealthCode): void {
    if (isRunCode(code)) this.#countAnew(relay.id, code);
  }

  #countAnew(relayId: string, code: RunCode): void {
    const kept = this.#kept.get(relayId);
    if (code === "relay_ignoring" && kept !== undefined) {
      kept.matched = true;
      kept.usual = Math.max(kept.usual, kept.runs.relay_ignoring?.count ?? 0);
    }
    this.#drop(relayId, code);
  }

  /** A relay of this version. */
  #of(relay: LiveRelay): Kept {
    const there = this.#kept.get(relay.id);
    if (there?.version === relay.version) return there;
    const { relay_capped } = there?.runs ?? {};
    const kept: Kept = {
      version: relay.version,
      matched: false,
      found: false,
      usual: 0,
      uncalledTold: there?.uncalledTold ?? false,
      runs: relay_capped === undefined ? {} : { relay_capped },
    };
    this.#kept.set(relay.id, kept);
    return kept;
  }

  #add(relay: LiveRelay, code: RunCode, why: string | null, told = false): void {
    const { clock } = this.#deps;
    const { runs } = this.#of(relay);
    const [at, atMs] = [clock.now(), clock.monotonicMs()];
    const run = runs[code];
    const more = told || run?.told === true ? { told: true } : {};
    runs[code] = { since: run?.since ?? at, at, count: (run?.count ?? 0) + 1, ...more };
    const key = `${code} ${relay.id}`;
    const sinceMs = run === undefined ? atMs : (this.#seen.get(key)?.sinceMs ?? atMs);
    this.#seen.set(key, { sinceMs, atMs, why });
    this.#note(relay.id);
    this.#judge(relay, code);
  }

  #judge(relay: LiveRelay, code: RunCode): void {
    const run = this.#of(relay).runs[code];
    const seen = this.#seen.get(`${code} ${relay.id}`);
    if (run === undefined || seen === undefined || this.#health.stands(relay, code)) return;
    const ranMs = this.#deps.clock.monotonicMs() - Math.max(seen.sinceMs, this.#startedMs);
    // A cap is over by itself, so time alone makes it no worse.
    const lastedMs = Math.max(seen.atMs - seen.sinceMs, code === "relay_capped" ? 0 : ranMs);
    if (isProblem(code, this.#of(relay), lastedMs)) this.#raise(relay, code, run.told === true);
  }

  #raise(relay: LiveRelay, code: RunCode, alerted: boolean): void {
    const run = this.#of(relay).runs[code];
    if (run === undefined) return;
    const why = this.#seen.get(`${code} ${relay.id}`)?.why ?? null;
    const limit = this.#deps.limits.verifiedEventsPerMinute;
    this.#health.raise(relay, code, tellRun(relay.name, code, run, why, limit), alerted);
    void this.#behind.flush();
  }

  #end(relay: LiveRelay, code: RunCode, message: string): void {
    if (this.#kept.get(relay.id)?.runs[code] !== undefined) this.#drop(relay.id, code);
    this.#health.clear(relay, code, message);
  }

  #drop(relayId: string, code: RunCode): void {
    delete this.#kept.get(relayId)?.runs[code];
    this.#seen.delete(`${code} ${relayId}`);
    this.#note(relayId);
  }

  #forget(relayId: string): void {
    for (const code of Object.keys(THRESHOLDS)) this.#seen.delete(`${code} ${relayId}`);
    this.#kept.delete(relayId);
    this.#unsaved.delete(relayId);
  }

  async #lookForCalls(relay: LiveRelay): Promise<void> {
    const { store, clock } = this.#deps;
    const { receiver, local } = relay;
    if (receiver === null || local || this.#health.wasCalled(relay) || this.#kept.get(relay.id)?.uncalledTold)
      return;
    const madeAt = await store.read(async (tx) => {
      const made = await tx.get<{ at: number }>("SELECT created_at AS at FROM relay WHERE id = $id", {
        id: relay.id,
      });
      const lastAt = await findLastEventAt(tx, relay.environmentId, relay.name);
      return made === null || (lastAt !== null && lastAt >= made.at) ? null : made.at;
    });
    if (madeAt === null || clock.now() - madeAt < UNCALLED_MS) return;
    this.#of(relay).uncalledTold = true;
    this.#note(relay.id);
    const message = `${relay.name} was made at ${toIso(madeAt)} and nobody has called it: give its sender the URL ${receiver.url}, and see what happens to a call with relay send ${relay.name}.`;
    this.#health.raise(relay, "relay_uncalled", message);
  }

  #note(relayId: string): void {
    this.#unsaved.add(relayId);
    this.#behind.arm();
  }

  async #write(): Promise<void> {
    const rows = [...this.#unsaved].map((id) => ({ id, fruitless: this.#kept.get(id) ?? null }));
    if (rows.length === 0) return;
    this.#unsaved.clear();
    try {
      await this.#deps.store.write("app", async (tx) => {
        for (const row of rows) await FRUITLESS.update(tx, row);
      });
    } catch (error) {
      for (const { id } of rows) this.#unsaved.add(id);
      throw error;
    }
  }
}
