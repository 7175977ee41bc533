/** What a process that stays gives back of its memory once its start is over. */
import { type Clock, Loop } from "../ground/clock.ts";

const LOOK_EVERY_MS = 1_000;
/** CPU of a second in which there was next to nothing to do. */
const QUIET_US = 50_000;

/**
 * Gives back, once, the code and the garbage that only the start needed, in the first quiet second: it holds the loop for some milliseconds, and
 * code that ran often has to be made quick anew.
 */
export function giveBackOnceQuiet(clock: Clock): AsyncDisposable {
  let before = process.cpuUsage();
  const loop: Loop = new Loop({
    clock,
    everyMs: LOOK_EVERY_MS,
    async turn() {
      const { user, system } = process.cpuUsage(before);
      before = process.cpuUsage();
      if (user + system > QUIET_US) return undefined;
      void loop.stop();
      Bun.shrink();
      return undefined;
    },
    onError: () => undefined,
  });
  void loop.start(LOOK_EVERY_MS);
  return { [Symbol.asyncDispose]: () => loop.stop() };
}
