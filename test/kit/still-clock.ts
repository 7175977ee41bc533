/** A real clock that moves as a test says: what waits for another process or a socket has all the time that a slow machine takes. */
import { systemClock } from "../../src/base/clock.ts";

interface HeldClock extends Disposable {
  /** Moves it on by so many milliseconds. */
  pass(ms: number): void;
}

/** Holds `systemClock.monotonicMs` until it is disposed; its timers fire as ever. */
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
