/** A real clock that a test moves. A wait for a process or a socket then gets all the time that a slow machine needs. */
import { systemClock } from "../../src/base/clock.ts";

interface HeldClock extends Disposable {
  /** Moves the clock forward by this many milliseconds. */
  pass(ms: number): void;
}

/** Stops `systemClock.monotonicMs` until disposal. Its timers fire as before. */
export function holdRealClock(): HeldClock {
  const { monotonicMs } = systemClock;
  let heldMs = monotonicMs();
  systemClock.monotonicMs = () => heldMs;
  return {
    pass: (ms) => {
      heldMs += ms;
    },
    [Symbol.dispose]: () => {
      systemClock.monotonicMs = monotonicMs;
    },
  };
}
