/**
 * Limits the memory of a server's process. Under load it collects garbage before the runtime would. Once after the start it frees what only
 * the start needed.
 */
import { edenGC, fullGC } from "bun:jsc";
import { type Clock, Loop } from "../../../base/clock.ts";

const LOOK_EVERY_MS = 250;
/** The time between checks under load and shortly after. Between two checks a thousand events can make garbage. */
const LOOK_LOUD_MS = 50;
const LOUD_FOR_MS = 10_000;
/** The CPU time per millisecond above which the process counts as under load, in microseconds. */
const LOUD_US = 300;

/** The resident memory above which the process collects garbage. */
const LARGE_FROM = 160 * 2 ** 20;
/** The CPU time between collections of new objects, which take one or two milliseconds. It equals the work of two thousand events. */
const YOUNG_AFTER_US = 80_000;
/**
 * The CPU time between full collections, which take about ten milliseconds. They also free objects that were in use during a collection of
 * new objects and so count as old.
 */
const ALL_AFTER_US = 400_000;
/**
 * The time before the next full collection, as a multiple of the last one's cost. With much live memory a collection is slow, even if
 * little is garbage.
 */
const ALL_AFTER_TIMES = 30;

/** The functions of the process that a test can replace. */
interface Heap {
  resident(): number;
  /** Returns the CPU time of all threads since the process began. */
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
 * Collects garbage under load. The runtime lets the heap grow to twice the live memory. That costs a hundred MiB with the key filters of
 * ten million events. Freed memory returns to the system late. So the process's size decides if collections run, and its CPU time decides
 * how often.
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
/** The CPU time of a second that counts as idle, in microseconds. */
const QUIET_US = 50_000;

/**
 * Frees, once, the code and the garbage that only the start needed, in the first idle second. That blocks the event loop for some
 * milliseconds, and frequently used code must be optimized again.
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
