/**
 * The scheduler: sleeps until the next period of any schedule begins, and looks in between whether somebody set the clock. It decides
 * when to look; which periods tick is tick.ts's. A clock that was set is waited out before ticks are made of it: one that is ahead for ten
 * seconds, or stands in 1970 until the network corrects it, costs no tick. It never runs an event.
 */
import { type Clock, ClockWatch } from "../ground/clock.ts";
import type { Log } from "../ground/log.ts";
import { Loop } from "../ground/loop.ts";
import type { LiveRelays } from "../relay/live-relay.ts";
import { type Store, StoreUnavailable } from "../store/port.ts";
import { cronOf } from "../trigger/schedule.ts";
import { listMarks, Period, tickRelay } from "./tick.ts";

/** How soon a clock that was set is noticed. Such a look reads the clock and nothing else. */
const LOOK_EVERY_MS = 5_000;
/** How long a clock that was set has to stand before it is believed. */
const BELIEVED_AFTER_MS = 60_000;
/** How long a schedule that failed to tick waits before it is tried again. */
const AFTER_FAILURE_MS = 60_000;

interface SchedulerDeps {
  store: Store;
  clock: Clock;
  relays: LiveRelays;
  log: Log;
  /** Longest sleep in milliseconds; default 5 seconds. */
  lookEveryMs?: number;
}

interface Schedule {
  relayId: string;
  relayName: string;
  period: Period;
}

export class Scheduler {
  readonly #deps: SchedulerDeps;
  readonly #loop: Loop;
  readonly #clockWatch: ClockWatch;
  /** One a cron expression. */
  #periods = new Map<string, Period>();
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

  async #turn(): Promise<number> {
    const { clock } = this.#deps;
    if (this.#clockWatch.look() !== 0) this.#lookNow = true;
    const untilBelievedMs = BELIEVED_AFTER_MS - this.#clockWatch.steadyMs;
    if (untilBelievedMs > 0) return untilBelievedMs;
    if (this.#lookNow || clock.now() >= this.#nextAt) {
      this.#lookNow = false;
      this.#nextAt = await this.#tickDue();
    }
    return this.#nextAt - clock.now();
  }

  /** Ticks what is due; answers when to look again, milliseconds since the epoch. */
  async #tickDue(): Promise<number> {
    const { store, clock, relays } = this.#deps;
    const schedules = this.#readSchedules((await relays.current()).relays);
    const marks = await store.read(listMarks);
    const nowMs = clock.now();
    let nextAt = Math.min(...schedules.map(({ period }) => period.nextAfter(nowMs)));
    for (const schedule of schedules) {
      const mark = marks.get(schedule.relayId);
      if (mark === undefined || !this.#loop.running) continue;
      if (mark <= nowMs && schedule.period.startAt(nowMs) <= mark) continue;
      if (!(await this.#tick(schedule, nowMs))) nextAt = Math.min(nextAt, nowMs + AFTER_FAILURE_MS);
    }
    return nextAt;
  }

  #readSchedules(relays: Awaited<ReturnType<LiveRelays["current"]>>["relays"]): Schedule[] {
    const known = this.#periods;
    this.#periods = new Map();
    return relays.flatMap(({ id, name, definition: { trigger } }) => {
      if (trigger.kind !== "schedule") return [];
      const cron = cronOf(trigger);
      const period = this.#periods.get(cron) ?? known.get(cron) ?? new Period(trigger);
      this.#periods.set(cron, period);
      return [{ relayId: id, relayName: name, period }];
    });
  }

  /** Answers whether that went well: one schedule that cannot tick, for a reason nobody foresaw, holds up no other. */
  async #tick({ relayId, relayName }: Schedule, nowMs: number): Promise<boolean> {
    const { store, log } = this.#deps;
    try {
      const { steadyMs } = this.#clockWatch;
      const setAgoMs = steadyMs > BELIEVED_AFTER_MS + LOOK_EVERY_MS ? 0 : steadyMs;
      const ticked = await store.write("relay", (tx) => tickRelay(tx, relayId, nowMs, setAgoMs));
      if (ticked.missed > 0) log.warn("ticks were missed", { relay: relayName, count: ticked.missed });
      return true;
    } catch (error) {
      if (error instanceof StoreUnavailable) throw error;
      log.error("a schedule failed to tick", { relay: relayName, error });
      return false;
    }
  }
}
