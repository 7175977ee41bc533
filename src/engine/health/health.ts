/**
 * Counts streaks of each relay in memory: rejected or ignored requests, events that find no person, failed attempts, and events over the app's cap.
 * A success ends a streak. Changes are written shortly afterwards, so that an accepted request needs no query.
 * problem.ts decides when a streak is a problem, silence-check.ts finds silent relays, and shared-health.ts merges what several nodes saw. The
 * receiver and the runner report to this class.
 */
import type { Clock } from "../../base/clock.ts";
import { DAY_MS, type RaisableLimits } from "../../base/limit.ts";
import type { Log } from "../../base/log.ts";
import { WriteBehind } from "../../base/write-behind.ts";
import type { LiveRelay, Snapshot } from "../../rules/relay/live-relay.ts";
import type { Reader, Store, Writer } from "../../store/port.ts";
import type { RowOf } from "../../store/table.ts";
import {
  acknowledgeStreak,
  emptyHealth,
  HEALTH,
  type HealthCode,
  type RelayHealth,
  readHealth,
  rowOf,
  type Streak,
  type StreakCode,
} from "./condition.ts";
import {
  CAPPED_OVER_MS,
  type Change,
  formatNeverVerified,
  HealthProblems,
  isOutage,
  PERMANENT_FAILURES,
  writeChange,
} from "./problem.ts";

const WRITE_AFTER_MS = 1_000;

/** The rows of relays that are about to be written together with other pending changes. */
export interface PendingRows {
  write(tx: Writer): Promise<void>;
  /** Must be called once the rows are durable. */
  confirm(): void;
  /** Must be called if the write failed. */
  cancel(): void;
}

const DELETE_STRAYS =
  "DELETE FROM rejected_delivery WHERE relay_id = $relayId AND first_at BETWEEN $since AND $until";

/** A longer pause between two rejected requests ends the streak, because stray requests of scanners are no problem. */
const MAX_PAUSE_MS = DAY_MS;

interface Stray {
  since: number;
  until: number;
}

/**
 * The result of an attempt of an event. `relay` is null where it was deleted. `code` is the failure's, or why no action ran; `why` is the owner's
 * text; `dead` says whether the event died.
 */
export interface RunOutcome {
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
  readonly #known = new Map<string, RelayHealth>();
  readonly #unsaved = new Set<RelayHealth>();
  /** The stray requests before a verified one, by relay: the times of the first of them and of the verified one. */
  readonly #strays = new Map<string, Stray>();
  readonly problems: HealthProblems;
  /** The start in monotonic time. A time in which this process did not run proves nothing. */
  #startedMs = 0;

  constructor(deps: HealthDeps) {
    this.deps = deps;
    const write = () => this.#write();
    this.#behind = new WriteBehind({ ...deps, afterMs: WRITE_AFTER_MS, what: "a trouble of a relay", write });
    this.problems = new HealthProblems({ ...deps, onChange: () => void this.#behind.flush() });
  }

  /** Reads what an earlier process stored, except streaks whose problem was resolved. Records made before this resolves count instead. */
  async start(isOver: (relayId: string, code: StreakCode, sinceMs: number) => boolean): Promise<void> {
    const { store, clock } = this.deps;
    const [nowMs, monotonicMs] = [clock.now(), clock.monotonicMs()];
    this.#startedMs = monotonicMs;
    const on = (wallMs: number): number => monotonicMs - Math.max(0, nowMs - wallMs);
    for (const row of await store.read((tx) => HEALTH.all(tx, ""))) {
      if (this.#known.has(row.id)) continue;
      const known = this.track(row.id, row);
      for (const [code, run] of Object.entries(known.stored.runs) as [StreakCode, Streak][]) {
        known.seen[code] = { sinceMs: on(run.since), atMs: on(run.at), why: null };
        if (isOver(row.id, code, run.since)) this.acknowledge(row.id, code);
      }
    }
    await this.problems.load();
  }

  /** Stops after the last request. Resolves when every change is written. */
  async stop(): Promise<void> {
    this.#markAccepted();
    await this.#behind.stop();
  }

  /**
   * Records a verified request, whatever its result. Returns since when requests were rejected before it, where they were too few for an outage;
   * otherwise null. In production, requests before the first verified one are an outage.
   */
  recordVerified(relay: LiveRelay, nowMs: number): number | null {
    const known = this.healthOf(relay.id);
    const run = known.stored.runs.relay_refusing;
    const isFirst = known.acceptedAt === null && relay.environmentName === "production";
    known.acceptedAt = nowMs;
    if (run !== undefined) {
      Object.assign(known, { found: null, refusedAt: null });
      this.removeStreak(known, "relay_refusing", nowMs);
      this.markChanged(known, true);
    }
    this.#clearProblem(relay, "relay_refusing");
    this.#clearProblem(relay, "relay_uncalled");
    this.#clearProblem(relay, "never_verified");
    if (run === undefined || isFirst || isOutage(run)) return null;
    const { since } = this.#strays.get(relay.id) ?? run;
    this.#strays.set(relay.id, { since, until: nowMs });
    return run.since;
  }

  /** Records a stored event. */
  recordEvent(relay: LiveRelay): void {
    this.#clearProblem(relay, "relay_silent");
  }

  /** Records a request that verified in no environment. `cause` says why not here. */
  recordRejected(relay: LiveRelay, cause: string): void {
    this.#clearProblem(relay, "relay_uncalled");
    const known = this.healthOf(relay.id);
    known.refusedAt = this.deps.clock.now();
    if (known.acceptedAt === null) this.recordNeverVerified(relay, cause);
    this.#endStale(known, "relay_refusing", MAX_PAUSE_MS);
    this.#extendStreak(relay, "relay_refusing", cause);
    this.markChanged(known, true);
  }

  /** Records the diagnosed cause of a rejected request. A solved cause is not replaced by an unsolved one. */
  recordCause(relay: LiveRelay, cause: string, solved: boolean): void {
    const known = this.healthOf(relay.id);
    if (known.stored.runs.relay_refusing === undefined || (known.found?.solved === true && !solved)) return;
    known.found = { cause, solved };
    if (known.acceptedAt === null) this.recordNeverVerified(relay, cause);
  }

  /** Raises the problem with the first rejected request of a relay that never verified one, and updates its cause with later ones. */
  protected recordNeverVerified(relay: LiveRelay, cause: string): void {
    const { stored, found } = this.#currentHealth(relay);
    const message = formatNeverVerified(relay, found?.cause ?? cause);
    if (stored.neverVerifiedAlerted === true) {
      this.problems.update(relay, "never_verified", message, found !== null);
      return;
    }
    stored.neverVerifiedAlerted = true;
    this.problems.raise(relay, "never_verified", message);
  }

  /** Records a verified request that matches `when`. */
  recordMatch(relay: LiveRelay): void {
    if (relay.receiver?.when == null) return;
    const known = this.#currentHealth(relay);
    const { stored } = known;
    if (!stored.matched) {
      stored.matched = true;
      this.markChanged(known);
    }
    stored.usual = Math.max(stored.usual, stored.runs.relay_ignoring?.count ?? 0);
    this.endStreak(relay, "relay_ignoring");
  }

  /**
   * Records a verified request that `when` ignored. `why` continues "the last one because". Returns whether an earlier request matched, so that
   * this is usual.
   */
  recordIgnored(relay: LiveRelay, why: () => string): boolean {
    return this.#extendStreak(relay, "relay_ignoring", why).stored.matched;
  }

  /** Records an event that was rejected because the app's cap was reached. */
  recordCapped(relay: LiveRelay): void {
    this.#endStale(this.healthOf(relay.id), "relay_capped", CAPPED_OVER_MS);
    this.#extendStreak(relay, "relay_capped", null);
  }

  /** Records the result of an attempt, for any trigger. */
  recordRun({ relay, outcome, code, why, dead }: RunOutcome): void {
    if (relay === null) return;
    if (outcome === "not_run") {
      if (code === "person_not_found") this.#extendStreak(relay, "relay_nobody", null);
      return;
    }
    const known = this.#currentHealth(relay);
    if (code !== "customer_unknown") {
      if (!known.stored.found) {
        known.stored.found = true;
        this.markChanged(known);
      }
      this.endStreak(relay, "relay_nobody");
    }
    if (outcome === "ok") this.endStreak(relay, "relay_failing");
    else {
      this.#extendStreak(relay, "relay_failing", why, dead);
      if (code !== null && PERMANENT_FAILURES.has(code))
        this.problems.raiseStreak(relay, "relay_failing", known, true);
    }
  }

  /** Finds the relay's health for the current version of its definition. */
  #currentHealth(relay: LiveRelay): RelayHealth {
    const known = this.healthOf(relay.id);
    if (known.stored.version !== relay.version) known.stored = emptyHealth(relay.version, known.stored);
    return known;
  }

  #extendStreak(
    relay: LiveRelay,
    code: StreakCode,
    why: string | (() => string) | null,
    isAlerted = false,
  ): RelayHealth {
    const known = this.#currentHealth(relay);
    const { stored, seen } = known;
    const at = this.deps.clock.now();
    const atMs = this.deps.clock.monotonicMs();
    const run = stored.runs[code];
    const grown = { since: run?.since ?? at, at, count: (run?.count ?? 0) + 1 };
    stored.runs[code] = isAlerted || run?.told === true ? { ...grown, told: true } : grown;
    seen[code] = { sinceMs: run === undefined ? atMs : (seen[code]?.sinceMs ?? atMs), atMs, why };
    this.markChanged(known);
    this.handleGrowth(known, relay, code);
    return known;
  }

  /** Evaluates a streak that grew. */
  protected handleGrowth(_known: RelayHealth, relay: LiveRelay, code: StreakCode): void {
    this.evaluate(relay, code);
  }

  protected evaluate(relay: LiveRelay, code: StreakCode): void {
    this.problems.evaluate(relay, code, this.#currentHealth(relay), this.#startedMs);
  }

  protected endStreak(relay: LiveRelay, code: StreakCode): void {
    const known = this.healthOf(relay.id);
    if (known.stored.runs[code] !== undefined) {
      this.removeStreak(known, code, this.deps.clock.now());
      this.markChanged(known);
    }
    this.#clearProblem(relay, code);
  }

  /** Ends a streak that did not grow for so long. */
  #endStale(known: RelayHealth, code: StreakCode, ms: number): void {
    const seen = known.seen[code];
    if (seen !== undefined && this.deps.clock.monotonicMs() - seen.atMs > ms)
      this.removeStreak(known, code, known.stored.runs[code]?.at ?? 0);
  }

  /** Removes a streak that ended at `endedAt`. */
  protected removeStreak({ stored, seen }: RelayHealth, code: StreakCode, _endedAt: number): void {
    delete stored.runs[code];
    delete seen[code];
  }

  /** Raises the problem that no request ever arrived, once. */
  recordUncalled(relay: LiveRelay, message: string): void {
    const known = this.#currentHealth(relay);
    known.stored.uncalledTold = true;
    this.markChanged(known);
    this.problems.raise(relay, "relay_uncalled", message);
  }

  /** Evaluates the streaks that time makes worse, and ends the cap's streak after its time. Called now and then. */
  evaluateStreaks(relay: LiveRelay): void {
    const { stored, seen } = this.healthOf(relay.id);
    for (const code of Object.keys(stored.runs) as StreakCode[])
      if (code !== "relay_refusing") this.evaluate(relay, code);
    const capped = seen.relay_capped;
    if (capped === undefined || this.deps.clock.monotonicMs() - capped.atMs >= CAPPED_OVER_MS)
      this.endStreak(relay, "relay_capped");
  }

  /** Writes pending changes and forgets deleted relays. Returns the problems that an owner resolved. Called now and then. */
  async refresh(snapshot: Snapshot): Promise<{ relay: LiveRelay; code: HealthCode }[]> {
    for (const id of this.#known.keys()) if (snapshot.findRelay(id) === null) this.#known.delete(id);
    this.#markAccepted();
    await this.flush();
    return await this.problems.refresh(snapshot);
  }

  /** Ends the streak of a problem that an owner resolved. Only new failures raise it again. */
  acknowledge(relayId: string, code: StreakCode): void {
    const known = this.healthOf(relayId);
    acknowledgeStreak(known.stored, code);
    this.removeStreak(known, code, this.deps.clock.now());
    this.markChanged(known, code === "relay_refusing");
  }

  /** Writes the pending changes. */
  flush(): Promise<void> {
    return this.#behind.flush();
  }

  /** Finds the health of a relay. */
  healthOf(relayId: string): RelayHealth {
    return this.#known.get(relayId) ?? this.track(relayId, null);
  }

  /** Starts to track a relay; `row` is null where the database has none. */
  protected track(relayId: string, row: RowOf<typeof HEALTH> | null): RelayHealth {
    const known = readHealth(relayId, row);
    this.#known.set(relayId, known);
    return known;
  }

  /** Marks the health as changed, to be written at the next check, or with `soon` in a moment. */
  protected markChanged(known: RelayHealth, soon = false): void {
    this.#unsaved.add(known);
    if (soon) this.#behind.arm();
  }

  /** Clears a problem. While no problem exists, which is usual, this costs nothing. */
  #clearProblem(relay: LiveRelay, code: HealthCode): void {
    if (this.problems.standing.size > 0) this.problems.clear(relay, code);
  }

  /** Marks the relays whose last accepted request is not written yet. */
  #markAccepted(): void {
    for (const known of this.#known.values())
      if (known.acceptedAt !== known.storedAcceptedAt) this.#unsaved.add(known);
  }

  async #write(): Promise<void> {
    const unsaved = [...this.#unsaved];
    const strays = [...this.#strays];
    if (this.problems.changes.length === 0 && unsaved.length === 0) return;
    const relayIds = [...unsaved.map(({ relayId }) => relayId), ...strays.map(([relayId]) => relayId)];
    const environments = await this.deps.store.read((tx) => findEnvironments(tx, relayIds));
    const parts = new Map<number, Part>();
    const partOf = (environmentId: number): Part => {
      const part = parts.get(environmentId) ?? { changes: [], unsaved: [], strays: [] };
      parts.set(environmentId, part);
      return part;
    };
    for (const change of this.problems.changes) partOf(change.problem.environmentId).changes.push(change);
    // A relay without an environment was deleted.
    for (const known of unsaved) {
      this.#unsaved.delete(known);
      const environmentId = environments.get(known.relayId);
      if (environmentId !== undefined) partOf(environmentId).unsaved.push(known);
    }
    for (const [relayId, former] of strays) {
      const stray = this.#strays.get(relayId) ?? former;
      this.#strays.delete(relayId);
      const environmentId = environments.get(relayId);
      if (environmentId !== undefined) partOf(environmentId).strays.push([relayId, stray]);
    }
    const written = await Promise.allSettled([...parts].map((part) => this.#writePart(...part)));
    for (const one of written) if (one.status === "rejected") throw one.reason;
  }

  /** Writes what waits for the relays of one environment in one transaction. If it throws, all of it waits again. */
  async #writePart(environmentId: number, { changes, unsaved, strays }: Part): Promise<void> {
    const { store } = this.deps;
    const rows = this.prepareRows(unsaved);
    try {
      await store.write(
        "app",
        async (tx) => {
          for (const change of changes) await writeChange(tx, change);
          // In one transaction with the end of their streak, because a crash between the two would turn them into missing events of an outage.
          for (const [relayId, { since, until }] of strays)
            await tx.run(DELETE_STRAYS, { relayId, since, until });
          await rows.write(tx);
        },
        environmentId,
      );
    } catch (error) {
      rows.cancel();
      for (const known of unsaved) this.#unsaved.add(known);
      for (const [relayId, { since, until }] of strays)
        this.#strays.set(relayId, { since, until: this.#strays.get(relayId)?.until ?? until });
      throw error;
    }
    this.problems.removeWritten(changes);
    rows.confirm();
  }

  protected prepareRows(unsaved: readonly RelayHealth[]): PendingRows {
    const rows = unsaved.map((known) => ({ known, row: rowOf(known) }));
    return {
      async write(tx) {
        for (const { row } of rows) await HEALTH.update(tx, row);
      },
      confirm() {
        for (const { known, row } of rows) known.storedAcceptedAt = row.acceptedAt;
      },
      cancel: () => undefined,
    };
  }
}

/** The changes of one environment that wait to be written. */
interface Part {
  changes: Change[];
  unsaved: RelayHealth[];
  strays: [relayId: string, stray: Stray][];
}

/** Finds the environment of each relay that exists. */
async function findEnvironments(tx: Reader, relayIds: readonly string[]): Promise<Map<string, number>> {
  if (relayIds.length === 0) return new Map();
  const sql =
    "SELECT id, environment_id AS environmentId FROM relay WHERE id IN (SELECT value FROM json_each($ids))";
  const rows = await tx.all<{ id: string; environmentId: number }>(sql, { ids: JSON.stringify(relayIds) });
  return new Map(rows.map(({ id, environmentId }) => [id, environmentId]));
}
