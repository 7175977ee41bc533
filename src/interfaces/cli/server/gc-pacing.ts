/**
 * What a server's process does so that its memory stays small: under load it collects its garbage before the runtime would, and what only its start
 * needed it gives back once.
 */
import { edenGC, fullGC } from "bun:jsc";
import { type Clock, Loop } from "../../../base/clock.ts";

const LOOK_EVERY_MS = 250;
/** While it works, and for a while after: a thousand events make the garbage between two looks. */
const LOOK_LOUD_MS = 50;
const LOUD_FOR_MS = 10_000;
/** CPU of a millisecond from which on it works. */
const LOUD_US = 300;

/** Resident memory from which on it is looked after. */
const LARGE_FROM = 160 * 2 ** 20;
/** CPU after which what was made since is collected, one or two milliseconds: that of two thousand events. */
const YOUNG_AFTER_US = 80_000;
/** After which everything is, some ten milliseconds: what was alive for a moment while the young was collected counts as old. */
const ALL_AFTER_US = 400_000;
/** Of what has much alive it takes longer, whatever little is garbage: so many times of what the last one cost pass before the next. */
const ALL_AFTER_TIMES = 30;

/** What is asked and told of the process; a test stands in for it. */
interface Heap {
  resident(): number;
  /** Of all threads since it began. */
  cpuUs(): number;
  collectYoung(): void;
  collectAll(): void;
}

const OWN: Heap = {
  resident: () => process.memoryUsage.rss(),
  cpuUs() {
    const { user, system } = process.cpuUsage();
    return user + system;
  },
  collectYoung: edenGC,
  collectAll: fullGC,
};

/**
 * The runtime lets the garbage grow to twice of what is alive, filters of keys included: beside ten million events that was a hundred MiB.
 * What is freed goes back to the system late, so how large the process is says whether it is looked after, and its work how often.
 */
export function collectUnderLoad(clock: Clock, heap: Heap = OWN): AsyncDisposable {
  let [lastMs, lastUs] = [clock.monotonicMs(), heap.cpuUs()];
  let [loudMs, youngUs, allUs] = [Number.NEGATIVE_INFINITY, lastUs, lastUs];
  let allAfterUs = ALL_AFTER_US;
  const loop: Loop = new Loop({
    clock,
    everyMs: LOOK_EVERY_MS,
    async turn() {
      const [nowMs, nowUs] = [clock.monotonicMs(), heap.cpuUs()];
      if (nowUs - lastUs > LOUD_US * (nowMs - lastMs)) loudMs = nowMs;
      [lastMs, lastUs] = [nowMs, nowUs];
      if (loudMs === nowMs && nowUs - youngUs >= YOUNG_AFTER_US && heap.resident() >= LARGE_FROM) {
        youngUs = nowUs;
        if (nowUs - allUs >= allAfterUs) {
          heap.collectAll();
          allUs = heap.cpuUs();
          allAfterUs = Math.max(ALL_AFTER_US, ALL_AFTER_TIMES * (allUs - nowUs));
        } else heap.collectYoung();
      }
      return nowMs - loudMs < LOUD_FOR_MS ? LOOK_LOUD_MS : LOOK_EVERY_MS;
    },
    onError: () => undefined,
  });
  void loop.start(LOOK_EVERY_MS);
  return { [Symbol.asyncDispose]: () => loop.stop() };
}

const LOOK_QUIET_MS = 1_000;
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
    everyMs: LOOK_QUIET_MS,
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
  void loop.start(LOOK_QUIET_MS);
  return { [Symbol.asyncDispose]: () => loop.stop() };
}
