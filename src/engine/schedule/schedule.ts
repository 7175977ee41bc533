/**
 * Makes schedules tick: stores one event for each period. The newest due period is queued even when it is late. Older ones were missed: they
 * are stored as dead events, which an owner can replay, with one alert.
 *
 * A schedule remembers one mark, `relay.active_since`: every period that began until then is settled. Deduplication keys make sure that no
 * period ticks twice after a clock was set back. After a jump of the clock the scheduler waits for a minute, so that a wrong clock costs no
 * tick. A pause, a hold or a new trigger first records what began before it. Source: the specification's "schedule"; decisions, "missed ticks".
 */

import { BackgroundJob, type Clock, ClockWatch, toIso } from "../../base/clock.ts";
import { EVENT_RETENTION_MS, MINUTE_MS } from "../../base/limit.ts";
import type { Log } from "../../base/log.ts";
import type { LiveRelay, LiveRelays } from "../../rules/relay/live-relay.ts";
import { RELAY } from "../../rules/relay/relay.ts";
import { periodOf } from "../../rules/trigger/schedule.ts";
import { ALL_ENVIRONMENTS, type LeaseHolder } from "../../store/lease/lease-holder.ts";
import { type Reader, type Store, StoreUnavailable, type Writer } from "../../store/port.ts";
import type { RowOf } from "../../store/table.ts";
import { alertMissed, type Missed } from "../event/alert.ts";
import {
  type DedupeKey,
  insertEvent,
  keyOfOccurrence,
  makePayload,
  type StoredEvent,
} from "../event/insert.ts";

/** The longest sleep between two looks at the clock, so that a clock that was set is noticed soon. */
const LOOK_EVERY_MS = 5_000;
/** The time that a clock that was set must run steadily before it is trusted. */
const TRUSTED_AFTER_MS = MINUTE_MS;
/** The time that a schedule that failed to tick waits before the next attempt. */
const RETRY_AFTER_MS = MINUTE_MS;
/** The most ticks in one transaction, so that other writes do not wait long. */
const STEP_TICKS = 200;

interface SchedulerDeps {
  leases: LeaseHolder;
  clock: Clock;
  relays: LiveRelays;
  log: Log;
  /** The longest sleep in milliseconds; 5 seconds unless given. */
  checkEveryMs?: number;
}

/** Starts by recording the ticks that were missed while nothing ran. */
export class Scheduler extends BackgroundJob {
  readonly #deps: SchedulerDeps;
  readonly #clockWatch: ClockWatch;
  /** The time when the next period of any schedule begins, in wall time. */
  #nextAt = 0;
  /** True if the next turn reads the database even if no period begins. */
  #lookNow = true;

  constructor(deps: SchedulerDeps) {
    super({
      clock: deps.clock,
      everyMs: deps.checkEveryMs ?? LOOK_EVERY_MS,
      onError: (error) => deps.log.warn("the scheduler cannot tick", { cause: (error as Error).message }),
    });
    this.#deps = deps;
    this.#clockWatch = new ClockWatch(deps.clock);
  }

  /** Looks at the schedules again, after relays were created, edited, resumed or released. */
  refresh(): void {
    this.#lookNow = true;
    this.wake();
  }

  /** Reports whether this process saw no jump of the clock for a minute. */
  trustsClock(): boolean {
    if (this.#clockWatch.takeJump() !== 0) this.#lookNow = true;
    return this.#clockWatch.steadyMs >= TRUSTED_AFTER_MS;
  }

  /** Records what is due, in the transaction of a save that changes the trigger; nothing while the clock is not trusted. */
  readonly recordDue = async (tx: Writer, relayId: string, nowMs: number): Promise<void> => {
    if (this.trustsClock()) await recordDue(tx, relayId, nowMs);
  };

  protected override async turn(): Promise<number> {
    const { clock } = this.#deps;
    if (!this.trustsClock()) return TRUSTED_AFTER_MS - this.#clockWatch.steadyMs;
    if (this.#lookNow || clock.now() >= this.#nextAt) {
      this.#lookNow = false;
      this.#nextAt = await this.#tickDue();
    }
    return this.#nextAt - clock.now();
  }

  /** Ticks every due schedule. Returns when to look again, in milliseconds since the epoch. */
  async #tickDue(): Promise<number> {
    const { leases, clock, relays } = this.#deps;
    const { relays: all } = await relays.current();
    const marks = await leases.storeOf(ALL_ENVIRONMENTS).read(listMarks);
    const nowMs = clock.now();
    let nextAt = Number.POSITIVE_INFINITY;
    for (const relay of all) {
      const { id, environmentId, definition } = relay;
      if (definition.trigger.kind !== "schedule") continue;
      if (!leases.holds(environmentId)) {
        // This process may get the environment's lease soon.
        nextAt = Math.min(nextAt, nowMs + LOOK_EVERY_MS);
        continue;
      }
      const period = periodOf(definition.trigger);
      nextAt = Math.min(nextAt, period.nextAfter(nowMs));
      const mark = marks.get(id);
      if (mark === undefined || !this.loop.running) continue;
      if (mark <= nowMs && period.startAt(nowMs) <= mark) continue;
      if (!(await this.#tick(relay, nowMs))) nextAt = Math.min(nextAt, nowMs + RETRY_AFTER_MS);
    }
    return nextAt;
  }

  /** Returns false after an unexpected error, so that one broken schedule does not stop the others. */
  async #tick({ id, environmentId, name }: LiveRelay, nowMs: number): Promise<boolean> {
    const { leases, log } = this.#deps;
    try {
      const { steadyMs } = this.#clockWatch;
      const setAgoMs = steadyMs > TRUSTED_AFTER_MS + LOOK_EVERY_MS ? 0 : steadyMs;
      const store = leases.storeOf(environmentId);
      const missed = await catchUp((step) => store.write("relay", step), { id, nowMs, setAgoMs });
      if (missed > 0) log.warn("ticks were missed", { relay: name, count: missed });
      return true;
    } catch (error) {
      // Another node took the lease, and ticks it from now on.
      if (error instanceof StoreUnavailable && !leases.holds(environmentId)) return true;
      if (error instanceof StoreUnavailable) throw error;
      log.error("a schedule failed to tick", { relay: name, error });
      return false;
    }
  }
}

const SCHEDULED = RELAY.pick("id", "name", "environmentId", "definition", "activeSince");
interface ScheduleContext {
  relayKey: number;
  nameKey: number;
  heldAt: number | null;
}
type ScheduledRelay = RowOf<typeof SCHEDULED> & ScheduleContext;

/** Maps the id of each active relay to its mark, in milliseconds since the epoch. */
export async function listMarks(tx: Reader): Promise<Map<string, number>> {
  const rows = await tx.all<{ id: string; mark: number }>(
    "SELECT id, active_since AS mark FROM relay WHERE state = 'active'",
  );
  return new Map(rows.map(({ id, mark }) => [id, mark]));
}

/** A schedule whose due periods are recorded until `nowMs`. The clock was set `setAgoMs` milliseconds ago, or 0. */
interface DueRelay {
  id: string;
  nowMs: number;
  setAgoMs: number;
  /** True if the newest period stays due. */
  keepsNewest?: boolean;
}

/** The result of a step; `missed` includes the steps before it. */
interface StepResult {
  missed: Missed;
  /** True if more is due. */
  more: boolean;
}
const NONE_MISSED: Missed = { count: 0, firstMs: 0 };

/** Records all due periods in steps. After a crash, the next call continues behind the last step. Returns how many ticks were missed. */
async function catchUp(
  run: (step: (tx: Writer) => Promise<StepResult>) => Promise<StepResult>,
  due: DueRelay,
): Promise<number> {
  let done: StepResult = { missed: NONE_MISSED, more: true };
  while (done.more) {
    const { missed } = done;
    done = await run((tx) => recordStep(tx, due, missed));
  }
  return done.missed.count;
}

/**
 * Records the oldest due periods of the relay, by its current row: it may have been edited, paused, held or deleted since it was chosen. A
 * mark in the future comes from a clock that was set back since. The schedule then counts from the moment that the clock was set.
 * `before` holds the ticks that earlier steps missed.
 */
async function recordStep(
  tx: Writer,
  { id, nowMs, setAgoMs, keepsNewest = false }: DueRelay,
  before: Missed,
): Promise<StepResult> {
  const none = { missed: before, more: false };
  const stored = await tx.get<ScheduleContext>(
    `SELECT ${SCHEDULED.columnsOf("relay")}, relay_key.key AS relayKey, relay_key.name_key AS nameKey, environment.held_at AS heldAt
     FROM relay JOIN environment ON environment.id = relay.environment_id JOIN relay_key ON relay_key.relay_id = relay.id WHERE relay.id = ?1 AND relay.state = 'active'`,
    id,
  );
  if (stored === null) return none;
  const relay = SCHEDULED.read(stored);
  const { trigger } = relay.definition;
  if (trigger.kind !== "schedule") return none;
  const mark = relay.activeSince;
  const sinceMs = mark <= nowMs ? mark : nowMs - setAgoMs;
  const period = periodOf(trigger);
  const newestMs = period.startAt(nowMs);
  const untilMs = keepsNewest ? newestMs - 1 : nowMs;
  const due = period.list(Math.max(sinceMs, nowMs - EVENT_RETENTION_MS), untilMs, STEP_TICKS + 1);
  if (due.length === 0 && (keepsNewest || mark <= nowMs)) return none;
  const step = due.slice(0, STEP_TICKS);
  const missed =
    relay.heldAt === null ? await recordTicks(tx, relay, { step, newestMs, nowMs }, before) : before;
  await tx.run("UPDATE relay SET active_since = ?2 WHERE id = ?1", id, step.at(-1) ?? nowMs);
  return { missed, more: step.length < due.length };
}

/** Selects the schedules of an environment, or only the relay `name`. */
interface TickScope {
  environmentId: number;
  name?: string;
  nowMs: number;
}

/**
 * Records the missed ticks before a pause, a hold or a save of another trigger, in separate transactions. The newest period of each schedule
 * stays due: `recordDueTicks` or `recordDue` records it in the transaction that follows. Call neither while the clock is not trusted.
 */
export async function recordMissedTicks(
  store: Pick<Store, "read" | "write">,
  scope: TickScope,
): Promise<void> {
  const { nowMs } = scope;
  const due = await store.read((tx) => listDueRelays(tx, scope));
  const run = (step: (tx: Writer) => Promise<StepResult>) => store.write("relay", step, scope.environmentId);
  for (const id of due) await catchUp(run, { id, nowMs, setAgoMs: 0, keepsNewest: true });
}

/**
 * Records what is due in the transaction of a pause or a hold, as the scheduler would have done just before it. Leaves a mark in the future
 * to the scheduler.
 */
export async function recordDueTicks(tx: Writer, scope: TickScope): Promise<void> {
  for (const id of await listDueRelays(tx, scope)) await recordDue(tx, id, scope.nowMs);
}

async function listDueRelays(tx: Reader, { environmentId, name = "", nowMs }: TickScope): Promise<string[]> {
  const rest = `WHERE environment_id = $environmentId AND state = 'active' AND $name IN ('', name) AND active_since <= $nowMs
    AND definition ->> '$.trigger.kind' = 'schedule' ORDER BY name`;
  const relays = await SCHEDULED.all(tx, rest, { environmentId, name, nowMs });
  return relays
    .filter(({ definition: { trigger }, activeSince }) => {
      return trigger.kind === "schedule" && periodOf(trigger).startAt(nowMs) > activeSince;
    })
    .map(({ id }) => id);
}

/** Records what is due of the relay's current trigger, in the transaction of a save that replaces it. Call only while the clock is trusted. */
export async function recordDue(tx: Writer, id: string, nowMs: number): Promise<void> {
  await catchUp((step) => step(tx), { id, nowMs, setAgoMs: 0 });
}

/** Stores an event for each period of the step; those before the newest period are missed. Returns all ticks missed so far. */
async function recordTicks(
  tx: Writer,
  relay: ScheduledRelay,
  { step, newestMs, nowMs }: { step: readonly number[]; newestMs: number; nowMs: number },
  before: Missed,
): Promise<Missed> {
  const missed: number[] = [];
  for (const periodStartMs of step) {
    const isMissed = periodStartMs < newestMs;
    const { seq, duplicate } = await recordTick(tx, relay, periodStartMs, isMissed, nowMs);
    if (duplicate && (isMissed || !(await requeueTick(tx, relay, seq)))) continue;
    if (isMissed) missed.push(periodStartMs);
  }
  const { environmentId, name: relayName } = relay;
  if (missed.length === 0) return before;
  return await alertMissed(tx, { environmentId, relayName, missed, nowMs }, before);
}

/** The relay of a tick, and the keys of its events. */
type TickRelay = Pick<ScheduledRelay, "id" | "environmentId" | "relayKey" | "nameKey">;

/** Returns the key that a tick has whichever way it is stored. */
export function keyOfTick(
  { id, environmentId }: Pick<TickRelay, "id" | "environmentId">,
  periodStartMs: number,
): DedupeKey {
  return keyOfOccurrence(environmentId, id, `tick ${toIso(periodStartMs)}`);
}

/** Finds the keys of a relay's events. */
export async function findTickContext(
  tx: Reader,
  { id }: Pick<TickRelay, "id">,
): Promise<Pick<TickRelay, "relayKey" | "nameKey">> {
  const row = await tx.get<Pick<TickRelay, "relayKey" | "nameKey">>(
    "SELECT key AS relayKey, name_key AS nameKey FROM relay_key WHERE relay_id = ?1",
    id,
  );
  if (row === null) throw new Error("The relay has no key.");
  return row;
}

export function recordTick(
  tx: Writer,
  relay: TickRelay,
  periodStartMs: number,
  missed: boolean,
  nowMs: number,
): Promise<StoredEvent> {
  const periodStart = toIso(periodStartMs);
  return insertEvent(tx, {
    environmentId: relay.environmentId,
    relayId: relay.id,
    relayKey: relay.relayKey,
    nameKey: relay.nameKey,
    trigger: "schedule",
    payload: makePayload({ tick: { periodStart } }),
    unsigned: false,
    dedupe: keyOfTick(relay, periodStartMs),
    nowMs,
    ...(missed ? { dead: "missed" } : {}),
  });
}

/** Queues a tick that was stored as missed while the clock was ahead, and whose period begins now. Returns whether it did. */
async function requeueTick(tx: Writer, relay: ScheduledRelay, eventSeq: number): Promise<boolean> {
  const revived = await tx.run(
    `UPDATE event SET state = 'queued', reason = NULL, finished_at = NULL
     WHERE seq = ?1 AND state = 'dead' AND reason = 'missed' AND runs = 0`,
    eventSeq,
  );
  if (revived === 0) return false;
  tx.notify("event", relay.id);
  tx.notify("event_moved", relay.environmentId);
  return true;
}
