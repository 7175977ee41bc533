/**
 * The scheduler: sleeps until the next period of any schedule begins, and looks in between whether somebody set the clock. It decides
 * when to look; which periods tick is tick.ts's. It never runs an event.
 */
import type { Clock } from "../ground/clock.ts";
import type { Log } from "../ground/log.ts";
import type { LiveRelays } from "../relay/live-relay.ts";
import { type Store, StoreUnavailable } from "../store/port.ts";
import { readPeriod } from "../trigger/schedule.ts";
import { countsLater, listCursors, listDue } from "./cursor.ts";
import { nextPeriodStart, type Period } from "./period.ts";
import { tickRelay } from "./tick.ts";

/** How soon a clock that was set is noticed. Such a look reads the clock and nothing else. */
const LOOK_EVERY_MS = 5_000;
/** A wall clock that moves this much more or less than the time that passed was set; less is drift. */
const CLOCK_SET_MS = 1_000;
/** How long a schedule that failed to tick waits before it is tried again. */
const AFTER_FAILURE_MS = 60_000;

export interface SchedulerRooms {
  store: Store;
  clock: Clock;
  relays: LiveRelays;
  log: Log;
  /** Told of every relay that got a due event, after its commit. */
  onEvent(relayId: string): void;
  /** Longest sleep in milliseconds; default 5 seconds. */
  lookEveryMs?: number;
}

interface Schedule {
  relayId: string;
  relayName: string;
  period: Period;
}

export class Scheduler {
  readonly #rooms: SchedulerRooms;
  /** Wall time of the next period's beginning, of any schedule; null: look at the database at the next chance. */
  #nextAt: number | null = null;
  #slept: { wall: number; monotonic: number } = { wall: 0, monotonic: 0 };
  #cancelTimer: () => void = () => undefined;
  #looking: Promise<void> | null = null;
  #lookAgain = false;
  #running = false;

  constructor(rooms: SchedulerRooms) {
    this.#rooms = rooms;
  }

  /** Begins: what was missed while nothing ran is recorded first. Resolves after that. */
  async start(): Promise<void> {
    this.#running = true;
    this.refresh();
    await this.#looking;
  }

  /** Relays were made, edited, resumed or released. */
  refresh(): void {
    if (!this.#running) return;
    this.#lookAgain = this.#looking !== null;
    if (this.#looking !== null) return;
    this.#cancelTimer();
    this.#looking = this.#look().finally(() => {
      this.#looking = null;
      if (this.#lookAgain) this.refresh();
      else this.#sleep();
    });
  }

  /** Ticks nothing more; resolves when what was begun is stored. */
  async stop(): Promise<void> {
    this.#running = false;
    this.#cancelTimer();
    await this.#looking;
  }

  async #look(): Promise<void> {
    const { store, clock, log } = this.#rooms;
    this.#nextAt = null;
    try {
      const schedules = await this.#listSchedules();
      const cursors = await store.read(listCursors);
      const nowMs = clock.now();
      let nextAt = Math.min(...schedules.map(({ period }) => nextPeriodStart(period, nowMs)));
      for (const schedule of schedules) {
        const cursor = cursors.get(schedule.relayId);
        if (cursor === undefined || !this.#running) continue;
        if (!countsLater(cursor, nowMs) && listDue(cursor, schedule.period, nowMs).length === 0) continue;
        if (!(await this.#tick(schedule, nowMs))) nextAt = Math.min(nextAt, nowMs + AFTER_FAILURE_MS);
      }
      this.#nextAt = nextAt;
    } catch (error) {
      if (this.#running) log.warn("the scheduler cannot tick", { cause: (error as Error).message });
    }
  }

  async #listSchedules(): Promise<Schedule[]> {
    const snapshot = await this.#rooms.relays.current();
    return snapshot.relays.flatMap(({ id, name, definition: { trigger } }) =>
      trigger.kind === "schedule" ? [{ relayId: id, relayName: name, period: readPeriod(trigger) }] : [],
    );
  }

  /** Answers whether that went well: one schedule that cannot tick, for a reason nobody foresaw, holds up no other. */
  async #tick({ relayId, relayName }: Schedule, nowMs: number): Promise<boolean> {
    const { store, log, onEvent } = this.#rooms;
    try {
      const ticked = await store.write("relay", (tx) => tickRelay(tx, relayId, nowMs));
      if (ticked.missed > 0) log.warn("ticks were missed", { relay: relayName, count: ticked.missed });
      if (ticked.queued > 0) onEvent(relayId);
      return true;
    } catch (error) {
      if (error instanceof StoreUnavailable) throw error;
      log.error("a schedule failed to tick", { relay: relayName, error });
      return false;
    }
  }

  #sleep(): void {
    if (!this.#running) return;
    const { clock, lookEveryMs = LOOK_EVERY_MS } = this.#rooms;
    const wall = clock.now();
    this.#slept = { wall, monotonic: clock.monotonicMs() };
    const untilNext = this.#nextAt === null ? lookEveryMs : Math.max(0, this.#nextAt - wall);
    this.#cancelTimer = clock.after(Math.min(untilNext, lookEveryMs), () => this.#wake());
  }

  #wake(): void {
    const due = this.#nextAt === null || this.#rooms.clock.now() >= this.#nextAt;
    if (due || this.#clockWasSet()) this.refresh();
    else this.#sleep();
  }

  #clockWasSet(): boolean {
    const { clock } = this.#rooms;
    const wallMs = clock.now() - this.#slept.wall;
    const passedMs = clock.monotonicMs() - this.#slept.monotonic;
    return Math.abs(wallMs - passedMs) >= CLOCK_SET_MS;
  }
}
