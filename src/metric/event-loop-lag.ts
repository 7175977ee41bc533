/** How late the event loop is: a timer is set, and how much later than asked it fires is what every other callback waits too. */
import type { Clock } from "../ground/clock.ts";
import { Loop } from "../ground/loop.ts";

const EVERY_MS = 1_000;

/** Tells `observe` the lag in seconds, once a second. The answer stops it. */
export function watchEventLoop(clock: Clock, observe: (lagSeconds: number) => void): () => void {
  let setMs = clock.monotonicMs();
  const loop = new Loop({
    clock,
    everyMs: EVERY_MS,
    async turn() {
      const nowMs = clock.monotonicMs();
      observe(Math.max(0, nowMs - setMs - EVERY_MS) / 1_000);
      setMs = nowMs;
      return undefined;
    },
    onError: () => undefined,
  });
  void loop.start(EVERY_MS);
  return () => void loop.stop();
}
