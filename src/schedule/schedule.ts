/**
 * Schedules: when each ticks, and one event a period. The newest period that is due is queued, late or not; older ones were missed and are
 * stored dead, to be replayed if wanted, with one alert. A schedule's whole memory is one mark, `relay.active_since`: every period that began
 * until then is settled (ticked, missed, or not the schedule's at all); the events' own keys see to it that a clock set back ticks no period
 * twice. A clock that was set is waited out before ticks are made of it: one that is ahead for ten seconds, or stands in 1970 until the network
 * corrects it, costs no tick. A pause, a hold or another trigger records what began before it, unless the clock is being waited out: then it
 * records nothing. It never runs an event. Source: the specification's "schedule"; decisions, "missed ticks".
 */
import { alertMissed } from "../event/alert.ts";
import { insertEvent, keyOfOccurrence, makeWholePayload, type StoredEvent } from "../event/insert.ts";
import { type Clock, ClockWatch, Loop, toIso } from "../ground/clock.ts";
import { EVENT_RETENTION_MS, MINUTE_MS } from "../ground/limit.ts";
import type { Log } from "../ground/log.ts";
import type { LiveRelay, LiveRelays } from "../relay/live-relay.ts";
import { RELAY } from "../relay/relay.ts";
import { HOUSE, type Holder } from "../store/holding.ts";
import { type Reader, StoreUnavailable, type Writer } from "../store/port.ts";
import type { RowOf } from "../store/table.ts";
import { periodOf } from "../trigger/schedule.ts";

/** How soon a clock that was set is noticed. Such a look reads the clock and nothing else. */
const LOOK_EVERY_MS = 5_000;
/** How long a clock that was set has to stand before it is believed. */
const BELIEVED_AFTER_MS = MINUTE_MS;
/** How long a schedule that failed to tick waits before it is tried again. */
const AFTER_FAILURE_MS = MINUTE_MS;

interface SchedulerDeps {
  holding: Holder;
  clock: Clock;
  relays: LiveRelays;
  log: Log;
  /** Longest sleep in milliseconds; default 5 seconds. */
  lookEveryMs?: number;
}

export class Scheduler {
  readonly #deps: SchedulerDeps;
  readonly #loop: Loop;
  readonly #clockWatch: ClockWatch;
  /** Wall time of the next period's beginning, of any schedule. */
  #nextAt = 0;
  /** Whether the next turn looks at the database although that time has not come. */
  #lookNow = true;

  constructor(deps: SchedulerDeps) {
    this.#deps = deps;
    this.#clockWatch = new ClockWatch(deps.clock);
    this.#loop = new Loop({
      clock: deps.clock,
      everyMs: deps.lookEveryMs ?? LOOK_EVERY_MS,
      turn: () => this.#turn(),
      onError: (error) => deps.log.warn("the scheduler cannot tick", { cause: (error as Error).message }),
    });
  }

  /** Begins: what was missed while nothing ran is recorded first. Resolves after that. */
  start(): Promise<void> {
    return this.#loop.start();
  }

  /** Relays were made, edited, resumed or released. */
  refresh(): void {
    this.#lookNow = true;
    this.#loop.wake();
  }

  /** Ticks nothing more; resolves when what was begun is stored. */
  stop(): Promise<void> {
    return this.#loop.stop();
  }

  /** Whether nobody has set the clock for a minute, as far as this process saw. */
  believesClock(): boolean {
    if (this.#clockWatch.look() !== 0) this.#lookNow = true;
    return this.#clockWatch.steadyMs >= BELIEVED_AFTER_MS;
  }

  /** Before a save gives the relay another trigger, in its transaction: records what is due until now, unless the clock is waited out. */
  readonly recordDue = async (tx: Writer, relayId: string, nowMs: number): Promise<void> => {
    if (this.believesClock()) await recordDue(tx, relayId, nowMs);
  };

  async #turn(): Promise<number> {
    const { clock } = this.#deps;
    if (!this.believesClock()) return BELIEVED_AFTER_MS - this.#clockWatch.steadyMs;
    if (this.#lookNow || clock.now() >= this.#nextAt) {
      this.#lookNow = false;
      this.#nextAt = await this.#tickDue();
    }
    return this.#nextAt - clock.now();
  }

  /** Ticks what is due; answers when to look again, milliseconds since the epoch. */
  async #tickDue(): Promise<number> {
    const { holding, clock, relays } = this.#deps;
    const { relays: all } = await relays.current();
    const marks = await holding.storeOf(HOUSE).read(listMarks);
    const nowMs = clock.now();
    let nextAt = Number.POSITIVE_INFINITY;
    for (const relay of all) {
      const { id, environmentId, definition } = relay;
      if (definition.trigger.kind !== "schedule") continue;
      // It may be this process's soon.
      if (!holding.holds(environmentId)) nextAt = Math.min(nextAt, nowMs + LOOK_EVERY_MS);
      if (!holding.holds(environmentId)) continue;
      const period = periodOf(definition.trigger);
      nextAt = Math.min(nextAt, period.nextAfter(nowMs));
      const mark = marks.get(id);
      if (mark === undefined || !this.#loop.running) continue;
      if (mark <= nowMs && period.startAt(nowMs) <= mark) continue;
      if (!(await this.#tick(relay, nowMs))) nextAt = Math.min(nextAt, nowMs + AFTER_FAILURE_MS);
    }
    return nextAt;
  }

  /** Answers whether that went well: one schedule that cannot tick, for a reason nobody foresaw, holds up no other. */
  async #tick({ id, environmentId, name }: LiveRelay, nowMs: number): Promise<boolean> {
    const { holding, log } = this.#deps;
    try {
      const { steadyMs } = this.#clockWatch;
      const setAgoMs = steadyMs > BELIEVED_AFTER_MS + LOOK_EVERY_MS ? 0 : steadyMs;
      const store = holding.storeOf(environmentId);
      const missed = await store.write("relay", (tx) => tickRelay(tx, id, nowMs, setAgoMs));
      if (missed > 0) log.warn("ticks were missed", { relay: name, count: missed });
      return true;
    } catch (error) {
      // Another one ticks it from now on.
      if (error instanceof StoreUnavailable && !holding.holds(environmentId)) return true;
      if (error instanceof StoreUnavailable) throw error;
      log.error("a schedule failed to tick", { relay: name, error });
      return false;
    }
  }
}

const SCHEDULED = RELAY.pick("id", "name", "environmentId", "definition", "activeSince");
interface ScheduledBeside {
  relayKey: number;
  nameKey: number;
  heldAt: number | null;
}
type ScheduledRelay = RowOf<typeof SCHEDULED> & ScheduledBeside;

/** The mark of every relay that ticks when it is due, by relay id: milliseconds since the epoch. */
export async function listMarks(tx: Reader): Promise<Map<string, number>> {
  const rows = await tx.all<{ id: string; mark: number }>(
    "SELECT id, active_since AS mark FROM relay WHERE state = 'active'",
  );
  return new Map(rows.map(({ id, mark }) => [id, mark]));
}

/**
 * Records the relay's periods that are due, by what the database says now: it may be edited, paused, held or gone since it was chosen.
 * A mark that lies ahead is of a clock that was set back since: the schedule counts from then, `setAgoMs` milliseconds ago at most. Answers
 * how many it missed.
 */
export async function tickRelay(
  tx: Writer,
  relayId: string,
  nowMs: number,
  setAgoMs: number,
): Promise<number> {
  const stored = await tx.get<ScheduledBeside>(
    `SELECT ${SCHEDULED.columnsOf("relay")}, relay_key.key AS relayKey, relay_key.name_key AS nameKey, environment.held_at AS heldAt
     FROM relay JOIN environment ON environment.id = relay.environment_id JOIN relay_key ON relay_key.relay_id = relay.id WHERE relay.id = ?1 AND relay.state = 'active'`,
    relayId,
  );
  if (stored === null) return 0;
  const relay = SCHEDULED.read(stored);
  const { trigger } = relay.definition;
  if (trigger.kind !== "schedule") return 0;
  const mark = relay.activeSince;
  const sinceMs = mark <= nowMs ? mark : nowMs - setAgoMs;
  const due = periodOf(trigger).list(Math.max(sinceMs, nowMs - EVENT_RETENTION_MS), nowMs);
  if (due.length === 0 && mark <= nowMs) return 0;
  const missed = relay.heldAt === null ? await recordTicks(tx, relay, due, nowMs) : 0;
  await tx.run("UPDATE relay SET active_since = ?2 WHERE id = ?1", relayId, due.at(-1) ?? nowMs);
  return missed;
}

/**
 * Before a pause or a hold, in its transaction: what is due until now began before it, so it is recorded as it would have been had the scheduler
 * come first. Whoever knows that the clock is not believed does not call it, and a mark that lies ahead is left to the scheduler. `name`: of this
 * relay alone; none: of all.
 */
export async function settleTicks(
  tx: Writer,
  { environmentId, nowMs }: { environmentId: number; nowMs: number },
  name = "",
): Promise<void> {
  const relays = await tx.all<{ id: string }>(
    `SELECT id FROM relay WHERE environment_id = ?1 AND state = 'active' AND ?2 IN ('', name) AND active_since <= ?3 ORDER BY name`,
    environmentId,
    name,
    nowMs,
  );
  for (const { id } of relays) await tickRelay(tx, id, nowMs, 0);
}

/** Before another trigger takes the place of the relay's own: what is due of that one is recorded. For who knows that the clock is believed. */
export async function recordDue(tx: Writer, relayId: string, nowMs: number): Promise<void> {
  await tickRelay(tx, relayId, nowMs, 0);
}

async function recordTicks(
  tx: Writer,
  relay: ScheduledRelay,
  due: readonly number[],
  nowMs: number,
): Promise<number> {
  const missed: number[] = [];
  for (const [index, periodStartMs] of due.entries()) {
    const late = index < due.length - 1;
    const { seq, duplicate } = await recordTick(tx, relay, periodStartMs, late, nowMs);
    if (duplicate && (late || !(await revive(tx, relay, seq)))) continue;
    if (late) missed.push(periodStartMs);
  }
  const { environmentId, name: relayName } = relay;
  if (missed.length > 0) await alertMissed(tx, { environmentId, relayName, missed, nowMs });
  return missed.length;
}

function recordTick(
  tx: Writer,
  relay: ScheduledRelay,
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
    payload: makeWholePayload({ tick: { periodStart } }),
    unsigned: false,
    dedupe: keyOfOccurrence(relay.environmentId, relay.id, `tick ${periodStart}`),
    nowMs,
    ...(missed ? { dead: "missed" } : {}),
  });
}

/** A period that counts as missed since the clock was ahead of it, and begins now after all; whether it is due by that. */
async function revive(tx: Writer, relay: ScheduledRelay, eventSeq: number): Promise<boolean> {
  const revived = await tx.run(
    `UPDATE event SET state = 'queued', reason = NULL, finished_at = NULL
     WHERE seq = ?1 AND state = 'dead' AND reason = 'missed' AND runs = 0`,
    eventSeq,
  );
  if (revived === 0) return false;
  tx.touch("event", relay.id);
  tx.touch("event_moved", relay.environmentId);
  return true;
}
