/**
 * Lets a service under measurement answer lines on its standard input with numbers, one line each:
 *
 * - `cpu`: milliseconds of CPU that the main thread has used.
 * - `watch`, then `worst`: the longest time in milliseconds since `watch` for which the event loop was blocked.
 * - `calibrate`: the slowness of this process now, by its CPU (see calibration.ts).
 *
 * A blocked time is the thread's own CPU time between two turns of the loop, and at most the wall time between them. So a busy machine or a slow
 * disk adds nothing.
 */
import { createInterface } from "node:readline";
import { readSlowness, threadCpuMs } from "./calibration.ts";

class LoopWatch {
  #isWatching = false;
  #worstMs = 0;
  #wallMs = 0;
  #cpuMs = 0;

  watch(): number {
    this.#look();
    this.#worstMs = 0;
    if (!this.#isWatching) setImmediate(this.#turn);
    this.#isWatching = true;
    return 0;
  }

  worst(): number {
    this.#look();
    this.#isWatching = false;
    return this.#worstMs;
  }

  readonly #turn = (): void => {
    if (!this.#isWatching) return;
    this.#look();
    setImmediate(this.#turn);
  };

  #look(): void {
    const [wallMs, cpuMs] = [performance.now(), threadCpuMs()];
    this.#worstMs = Math.max(this.#worstMs, Math.min(wallMs - this.#wallMs, cpuMs - this.#cpuMs));
    [this.#wallMs, this.#cpuMs] = [wallMs, cpuMs];
  }
}

/** Prints `ready` as one JSON line, then answers until standard input ends. */
export async function answerMeasures(ready: object): Promise<void> {
  const loop = new LoopWatch();
  const answers: Readonly<Record<string, () => number>> = {
    cpu: threadCpuMs,
    watch: () => loop.watch(),
    worst: () => loop.worst(),
    calibrate: () => readSlowness().cpu,
  };
  console.log(JSON.stringify(ready));
  for await (const line of createInterface({ input: process.stdin })) console.log(answers[line]?.() ?? 0);
}
