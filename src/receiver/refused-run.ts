/**
 * Counts the calls of a relay that were refused as unverified one after another. A run becomes a trouble when it is long enough in time
 * and in calls; one verified call ends it. In memory: after a restart a run begins anew. It reads no clock and writes nothing.
 */

/** How long every call must have been refused, and how many calls. */
const MIN_RUN_MS = 15 * 60_000;
const MIN_RUN_CALLS = 5;
/** Refused calls further apart than this belong to no run: now and then a stranger tries every URL. */
const MAX_PAUSE_MS = 24 * 3_600_000;

export interface RefusedRun {
  /** Wall time of its first call. */
  sinceMs: number;
  calls: number;
}

interface Run extends RefusedRun {
  firstMonotonicMs: number;
  lastMonotonicMs: number;
}

export class RefusedRuns {
  readonly #runs = new Map<string, Run>();

  /** Counts one refused call of the relay; answers the run once it is a trouble. */
  refuse(relayId: string, now: { wallMs: number; monotonicMs: number }): RefusedRun | null {
    const run = this.#runs.get(relayId);
    if (run === undefined || now.monotonicMs - run.lastMonotonicMs > MAX_PAUSE_MS) {
      const { wallMs, monotonicMs } = now;
      this.#runs.set(relayId, {
        sinceMs: wallMs,
        calls: 1,
        firstMonotonicMs: monotonicMs,
        lastMonotonicMs: monotonicMs,
      });
      return null;
    }
    run.calls += 1;
    run.lastMonotonicMs = now.monotonicMs;
    const long = now.monotonicMs - run.firstMonotonicMs >= MIN_RUN_MS;
    return long && run.calls >= MIN_RUN_CALLS ? run : null;
  }

  /** A call of the relay verified. */
  accept(relayId: string): void {
    if (this.#runs.size > 0) this.#runs.delete(relayId);
  }
}
