/**
 * Schedules: when each ticks, and one event a period. The newest period that is due is queued, late or not; older ones were missed and are
 * stored dead, to be replayed if wanted, with one alert. A schedule's whole memory is one mark, `relay.active_since`: every period that began
 * until then is settled (ticked, missed, or not the schedule's at all); the events' own keys see to it that a clock set back ticks no period
 * twice. A clock that was set is waited out before ticks are made of it: one that is ahead for ten seconds, or stands in 1970 until the network
 * corrects it, costs no tick. A pause, a hold or another trigger records what began before it, unless the clock is being waited out: then it
 * records nothing. It never runs an event. Source: the specification's "schedule"; decisions, "missed ticks".
 */

import { type Clock, ClockWatch, Loop, toIso } from "../../base/clock.ts";
import { EVENT_RETENTION_MS, MINUTE_MS } from "../../base/limit.ts";
import type { Log } from "../../base/log.ts";
import type { LiveRelay, LiveRelays } from "../../rules/relay/live-relay.ts";
import { RELAY } from "../../rules/relay/relay.ts";
import { periodOf } from "../../rules/trigger/schedule.ts";
import { HOUSE, type Holder } from "../../store/lease/lease-holder.ts";
import { type Reader, type Store, StoreUnavailable, type Writer } from "../../store/port.ts";
import type { RowOf } from "../../store/table.ts";
import { alertMissed, type Missed } from "../event/alert.ts";
import { insertEvent, keyOfOccurrence, makeWholePayload, type StoredEvent } from "../event/insert.ts";

/** How soon a clock that was set is noticed. Such a look reads the clock and nothing else. */
const LOOK_EVERY_MS = 5_000;
/** How long a clock that was set has to stand before it is believed. */
const BELIEVED_AFTER_MS = MINUTE_MS;
/** How long a schedule that failed to tick waits before it is tried again. */
const AFTER_FAILURE_MS = MINUTE_MS;
/** Ticks of a step: others' writes wait for no more, however long nothing ran. */
const STEP_TICKS = 200;

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
      const missed = await catchUp((step) => store.write("relay", step), { id, nowMs, setAgoMs });
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

/** A schedule whose due periods are recorded: until when, and how long ago the clock was set, in milliseconds. */
interface Due {
  id: string;
  nowMs: number;
  setAgoMs: number;
  /** Whether the newest stays due. */
  keepsNewest?: boolean;
}

/** What came of a step, `missed` with those of the steps before it. */
interface Ticked {
  missed: Missed;
  /** Whether more is due. */
  more: boolean;
}
const NONE_MISSED: Missed = { count: 0, firstMs: 0 };

/** Records all that is due in steps that `run` runs, each by itself: one that ends in between is gone on with by the next. Answers how many it missed. */
async function catchUp(
  run: (step: (tx: Writer) => Promise<Ticked>) => Promise<Ticked>,
  due: Due,
): Promise<number> {
  let done: Ticked = { missed: NONE_MISSED, more: true };
  while (done.more) {
    const { missed } = done;
    done = await run((tx) => tickRelay(tx, due, missed));
  }
  return done.missed.count;
}

/**
 * Records the oldest of the relay's periods that are due, by what the database says now: it may be edited, paused, held or gone since it was chosen.
 * A mark that lies ahead is of a clock that was set back since: the schedule counts from then, `setAgoMs` milliseconds ago at most. `before`:
 * what the steps before this one missed.
 */
async function tickRelay(
  tx: Writer,
  { id, nowMs, setAgoMs, keepsNewest = false }: Due,
  before: Missed,
): Promise<Ticked> {
  const nothing = { missed: before, more: false };
  const stored = await tx.get<ScheduledBeside>(
    `SELECT ${SCHEDULED.columnsOf("relay")}, relay_key.key AS relayKey, relay_key.name_key AS nameKey, environment.held_at AS heldAt
     FROM relay JOIN environment ON environment.id = relay.environment_id JOIN relay_key ON relay_key.relay_id = relay.id WHERE relay.id = ?1 AND relay.state = 'active'`,
    id,
  );
  if (stored === null) return nothing;
  const relay = SCHEDULED.read(stored);
  const { trigger } = relay.definition;
  if (trigger.kind !== "schedule") return nothing;
  const mark = relay.activeSince;
  const sinceMs = mark <= nowMs ? mark : nowMs - setAgoMs;
  const due = periodOf(trigger).list(Math.max(sinceMs, nowMs - EVENT_RETENTION_MS), nowMs);
  const newest = keepsNewest ? due.pop() : undefined;
  if (due.length === 0 && (keepsNewest || mark <= nowMs)) return nothing;
  const step = relay.heldAt === null ? due.slice(0, STEP_TICKS) : due;
  const more = step.length < due.length;
  const missed =
    relay.heldAt === null
      ? await recordTicks(tx, relay, { step, more: more || newest !== undefined, nowMs }, before)
      : before;
  await tx.run("UPDATE relay SET active_since = ?2 WHERE id = ?1", id, step.at(-1) ?? nowMs);
  return { missed, more };
}

/** Whose schedules are settled before a pause or a hold. `name`: of this relay alone; none: of all. */
interface Settling {
  environmentId: number;
  name?: string;
  nowMs: number;
}

/**
 * Before a pause, a hold or a save that may give another trigger, in transactions of its own: records what was missed but for the newest of each,
 * which stays due: `settleTicks` and `recordDue` take it, in the transaction that follows.
 * Whoever knows that the clock is not believed calls neither.
 */
export async function settleMissed(store: Pick<Store, "read" | "write">, settling: Settling): Promise<void> {
  const { nowMs } = settling;
  const due = await store.read((tx) => listDue(tx, settling));
  const run = (step: (tx: Writer) => Promise<Ticked>) => store.write("relay", step);
  for (const id of due) await catchUp(run, { id, nowMs, setAgoMs: 0, keepsNewest: true });
}

/**
 * In the transaction of a pause or a hold: what is due until now began before it, so it is recorded as it would have been had the scheduler come
 * first. A mark that lies ahead is left to the scheduler.
 */
export async function settleTicks(tx: Writer, settling: Settling): Promise<void> {
  for (const id of await listDue(tx, settling)) await recordDue(tx, id, settling.nowMs);
}

async function listDue(tx: Reader, { environmentId, name = "", nowMs }: Settling): Promise<string[]> {
  const rest = `WHERE environment_id = $environmentId AND state = 'active' AND $name IN ('', name) AND active_since <= $nowMs
    AND definition ->> '$.trigger.kind' = 'schedule' ORDER BY name`;
  const relays = await SCHEDULED.all(tx, rest, { environmentId, name, nowMs });
  return relays
    .filter(({ definition: { trigger }, activeSince }) => {
      return trigger.kind === "schedule" && periodOf(trigger).startAt(nowMs) > activeSince;
    })
    .map(({ id }) => id);
}

/**
 * Before another trigger takes the place of the relay's own, in the save's transaction: what is still due of that one is recorded, the newest
 * where `settleMissed` came first. For who knows that the clock is believed.
 */
export async function recordDue(tx: Writer, id: string, nowMs: number): Promise<void> {
  await catchUp((step) => step(tx), { id, nowMs, setAgoMs: 0 });
}

/** `more`: the newest is in no step yet. Answers what was missed by now. */
async function recordTicks(
  tx: Writer,
  relay: ScheduledRelay,
  { step, more, nowMs }: { step: readonly number[]; more: boolean; nowMs: number },
  before: Missed,
): Promise<Missed> {
  const missed: number[] = [];
  for (const [index, periodStartMs] of step.entries()) {
    const late = more || index < step.length - 1;
    const { seq, duplicate } = await recordTick(tx, relay, periodStartMs, late, nowMs);
    if (duplicate && (late || !(await revive(tx, relay, seq)))) continue;
    if (late) missed.push(periodStartMs);
  }
  const { environmentId, name: relayName } = relay;
  if (missed.length === 0) return before;
  return await alertMissed(tx, { environmentId, relayName, missed, nowMs }, before);
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
