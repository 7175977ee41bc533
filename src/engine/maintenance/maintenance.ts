/**
 * Runs the maintenance jobs once an hour: each deletes from its table in small transactions with pauses, so that ingestion never waits. At the end
 * the database file is vacuumed. retention.ts decides how long rows are kept.
 * The jobs do nothing while the wall clock may be wrong. A clock that is a year ahead for a minute must not delete a month of events. A process
 * cannot know the clock before its start, so a start long after the newest event waits for a round too.
 */
import { BackgroundJob, type Clock, ClockWatch } from "../../base/clock.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../base/limit.ts";
import type { Log } from "../../base/log.ts";
import type { FencedStore, Reader } from "../../store/port.ts";
import { firstSeqSince } from "../../store/time-index.ts";
import { RETENTION } from "./retention.ts";

/** The first round waits, so that the start is quick. */
const FIRST_ROUND_AFTER_MS = MINUTE_MS;
const ROUND_EVERY_MS = HOUR_MS;
/** The pause between two transactions of one job. */
const PAUSE_MS = 10;
/** A difference between wall clock and monotonic time that is larger than this means that the clock was set. */
const CLOCK_SET_MS = 10 * MINUTE_MS;
/** After this time without an event, the clock at the start may be wrong. */
const QUIET_MS = DAY_MS;

interface MaintenanceDeps {
  store: FencedStore;
  clock: Clock;
  log: Log;
  /** The time when the newest event of an earlier process arrived; null without events. */
  newestMs: number | null;
}

/**
 * Reads when the newest event arrived. Call before anything is stored by a clock that may be wrong. Ignores the last hour where there are older
 * events, because an earlier process may have stored its events by the same wrong clock.
 */
export async function readNewestMs(tx: Reader, nowMs: number): Promise<number | null> {
  const before = await firstSeqSince(tx, "event", nowMs - HOUR_MS);
  const sql = `SELECT coalesce((SELECT created_at FROM event WHERE seq < $before ORDER BY seq DESC LIMIT 1),
    (SELECT created_at FROM event ORDER BY seq DESC LIMIT 1)) AS at`;
  return (await tx.get<{ at: number | null }>(sql, { before }))?.at ?? null;
}

export class MaintenanceJobs extends BackgroundJob {
  readonly #deps: MaintenanceDeps;
  readonly #clockWatch: ClockWatch;
  /** True if the next round waits, because the clock may be wrong. */
  #isDoubtful: boolean;

  constructor(deps: MaintenanceDeps) {
    super({
      clock: deps.clock,
      everyMs: ROUND_EVERY_MS,
      firstAfterMs: FIRST_ROUND_AFTER_MS,
      onError: (error) => deps.log.error("a round of the maintenance jobs failed", { error }),
    });
    this.#deps = deps;
    this.#clockWatch = new ClockWatch(deps.clock, CLOCK_SET_MS);
    this.#isDoubtful = deps.newestMs !== null && deps.clock.now() - deps.newestMs >= QUIET_MS;
  }

  override start(): Promise<void> {
    this.#clockWatch.takeJump();
    return super.start();
  }

  protected override async turn(): Promise<undefined> {
    const { store, clock, log } = this.#deps;
    const isDoubtful = this.#isDoubtful;
    this.#isDoubtful = false;
    if (this.#clockWatch.takeJump() !== 0) {
      log.warn("the clock was set, so nothing is cleaned up before it has kept for an hour");
      return;
    }
    if (isDoubtful) {
      log.info(
        "by the clock no event came for a day or more before the start, so nothing is cleaned up before it has kept for an hour",
      );
      return;
    }
    for (const [name, step] of Object.entries(RETENTION)) {
      const next = (from: number) => store.write("app", (tx) => step(tx, from, clock.now(), log));
      await this.#runJob(name, () => this.loop.walk(0, next, PAUSE_MS));
    }
    await this.#runJob("file", () => this.loop.repeat(() => store.vacuumStep(), PAUSE_MS));
  }

  /** Runs a job. One that fails does not stop the others, and runs again in an hour. */
  async #runJob(name: string, work: () => Promise<void>): Promise<void> {
    if (!this.loop.running) return;
    try {
      await work();
    } catch (error) {
      if (this.loop.running) this.#deps.log.error("a maintenance job failed", { caretaker: name, error });
    }
  }
}
