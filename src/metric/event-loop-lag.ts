/** How late the event loop is: a timer is set, and how much later than asked it fires is what every other callback waits too. */
import type { Clock } from "../ground/clock.ts";

const EVERY_MS = 1_000;

/** Tells `observe` the lag in seconds, once a second. The answer stops it. */
export function watchEventLoop(clock: Clock, observe: (lagSeconds: number) => void): () => void {
  let cancel = (): void => undefined;
  const arm = (): void => {
    const setMs = clock.monotonicMs();
    cancel = clock.after(EVERY_MS, () => {
      observe(Math.max(0, clock.monotonicMs() - setMs - EVERY_MS) / 1_000);
      arm();
    });
  };
  arm();
  return () => cancel();
}
