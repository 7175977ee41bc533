/** A busy process with much memory collects garbage before the runtime would. Memory that only the start needed is returned once. */
import { afterAll, afterEach, expect, spyOn, test } from "bun:test";
import { collectUnderLoad, giveBackOnceQuiet } from "../../src/interfaces/cli/server/gc-pacing.ts";
import { START_MS, VirtualClock } from "../kit/virtual-clock.ts";

const MIB = 2 ** 20;

/** Stages a process with this much memory. `works` is the share of time in which it works. It records the collections that are asked for. */
function staged({ mib, works, allUs = 0 }: { mib: number; works: number; allUs?: number }) {
  const clock = new VirtualClock(START_MS);
  const state = { mib, works, young: 0, all: 0, usedUs: 0, seenMs: clock.monotonicMs() };
  const heap = {
    resident: () => state.mib * MIB,
    cpuUs() {
      const nowMs = clock.monotonicMs();
      state.usedUs += (nowMs - state.seenMs) * 1_000 * state.works;
      state.seenMs = nowMs;
      return state.usedUs;
    },
    collectYoung: () => void state.young++,
    collectAll() {
      state.all++;
      state.usedUs += allUs;
    },
  };
  return { clock, state, collecting: collectUnderLoad(clock, heap) };
}

async function pass(clock: VirtualClock, ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 50) await clock.advance(50);
}

test("a process that is small, or large and nearly idle, is never asked to collect", async () => {
  for (const of of [
    { mib: 150, works: 1 },
    { mib: 400, works: 0.1 },
  ]) {
    const { clock, state, collecting } = staged(of);
    await using _collecting = collecting;
    await pass(clock, 5_000);
    expect([state.young, state.all]).toEqual([0, 0]);
  }
});

test("a large busy process collects young objects at most every 80 ms of work, and everything every 400 ms", async () => {
  const { clock, state, collecting } = staged({ mib: 200, works: 1 });
  await using _collecting = collecting;
  await pass(clock, 10_000);
  expect(state.young + state.all).toBeGreaterThan(80);
  expect(state.young + state.all).toBeLessThanOrEqual(125);
  expect(state.all).toBeGreaterThan(15);
  expect(state.all).toBeLessThanOrEqual(25);
  state.works = 0.1;
  await pass(clock, 100);
  const before = [state.young, state.all];
  await pass(clock, 5_000);
  expect([state.young, state.all]).toEqual(before);
});

test("a process with many live objects spends at most a thirtieth of its work on collections", async () => {
  const { clock, state, collecting } = staged({ mib: 600, works: 1, allUs: 100_000 });
  await using _collecting = collecting;
  await pass(clock, 31_000);
  expect(state.all).toBeGreaterThanOrEqual(9);
  expect(state.all).toBeLessThanOrEqual(11);
});

test("the collections stop once the server ends", async () => {
  const { clock, state, collecting } = staged({ mib: 200, works: 1 });
  await collecting[Symbol.asyncDispose]();
  await pass(clock, 2_000);
  expect([state.young, state.all]).toEqual([0, 0]);
});

const shrink = spyOn(Bun, "shrink").mockImplementation(() => undefined);
afterEach(() => shrink.mockClear());
afterAll(() => shrink.mockRestore());

test("memory of the start is returned in the first quiet second, and never again", async () => {
  const clock = new VirtualClock(START_MS);
  await using _given = giveBackOnceQuiet(clock);
  expect(shrink).toHaveBeenCalledTimes(0);
  for (let second = 0; second < 50 && shrink.mock.calls.length === 0; second++) await clock.advance(1_000);
  await clock.advance(10_000);
  expect(shrink).toHaveBeenCalledTimes(1);
});

test("memory of the start is not returned if the server ends before that", async () => {
  const clock = new VirtualClock(START_MS);
  const given = giveBackOnceQuiet(clock);
  await given[Symbol.asyncDispose]();
  await clock.advance(10_000);
  expect(shrink).toHaveBeenCalledTimes(0);
});
