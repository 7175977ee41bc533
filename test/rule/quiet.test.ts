/** A server's process gives back what only its start needed, once. */
import { afterEach, expect, spyOn, test } from "bun:test";
import { giveBackOnceQuiet } from "../../src/cli/quiet.ts";
import { START_MS, VirtualClock } from "../kit/virtual-clock.ts";

const shrink = spyOn(Bun, "shrink").mockImplementation(() => undefined);
afterEach(() => shrink.mockClear());

test("in the first quiet second, and never again", async () => {
  const clock = new VirtualClock(START_MS);
  await using _given = giveBackOnceQuiet(clock);
  expect(shrink).toHaveBeenCalledTimes(0);
  for (let second = 0; second < 50 && shrink.mock.calls.length === 0; second++) await clock.advance(1_000);
  await clock.advance(10_000);
  expect(shrink).toHaveBeenCalledTimes(1);
});

test("not where the server ends before", async () => {
  const clock = new VirtualClock(START_MS);
  const given = giveBackOnceQuiet(clock);
  await given[Symbol.asyncDispose]();
  await clock.advance(10_000);
  expect(shrink).toHaveBeenCalledTimes(0);
});
