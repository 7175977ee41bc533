/** One tick for each period, even if the wall clock jumps. Elapsed time does not jump. */
import { describe, expect, test } from "bun:test";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../src/base/limit.ts";
import { ON_POSTGRES } from "../kit/chosen-store.ts";
import { makeRandom } from "../kit/random.ts";
import { rounds } from "../kit/rounds.ts";
import { openTimetable, type Timetable } from "../kit/timetable.ts";

const START = "2026-01-15T12:59:00Z";

describe("a wall clock that is changed", () => {
  test("forward is ignored for a minute, and then the newest period runs late and skipped ones are dead", async () => {
    await using table = await hourly();
    await table.clock.advance(2 * MINUTE_MS);
    table.clock.jump(3 * HOUR_MS);
    await table.clock.advance(MINUTE_MS);
    expect(await states(table)).toEqual(["13:00 queued"]);
    await table.clock.advance(5_000);
    expect(await states(table)).toEqual(["13:00 queued", "14:00 dead", "15:00 dead", "16:00 queued"]);
  });

  test("backward makes no second tick of a period, and the schedule continues after it", async () => {
    await using table = await hourly();
    await table.clock.advance(2 * HOUR_MS + 2 * MINUTE_MS);
    table.clock.jump(-2 * HOUR_MS);
    await table.clock.advance(3 * HOUR_MS);
    expect(await states(table)).toEqual(["13:00 queued", "14:00 queued", "15:00 queued", "16:00 queued"]);
  });

  test("backward by seconds around the start of a period ticks once", async () => {
    await using table = await hourly();
    for (let turn = 0; turn < 5; turn++) {
      await table.clock.advance(MINUTE_MS + 1_000);
      table.clock.jump(-MINUTE_MS);
    }
    expect(await states(table)).toEqual(["13:00 queued"]);
  });

  test("forward by a day for ten seconds loses no tick, and all later ticks are on time", async () => {
    await using table = await hourly();
    await table.clock.advance(2 * MINUTE_MS);
    table.clock.jump(DAY_MS);
    await table.clock.advance(10_000);
    table.clock.jump(-DAY_MS);
    await table.clock.advance(DAY_MS, { everyTimer: true });
    const ticks = await table.ticks("beat");
    expect(ticks.map(({ state }) => state)).toEqual(Array.from({ length: 25 }, () => "queued"));
    expect(ticks.filter(({ periodStart, recordedAt }) => periodStart !== recordedAt)).toEqual([]);
  });

  test("forward by a day for an hour stores the day's periods as missed, and each runs when it really begins", async () => {
    await using table = await hourly();
    await table.clock.advance(2 * MINUTE_MS);
    table.clock.jump(DAY_MS);
    await table.clock.advance(30 * MINUTE_MS);
    expect((await table.ticks("beat")).filter(({ state }) => state === "dead")).toHaveLength(23);
    table.clock.jump(-DAY_MS);
    await table.clock.leap(DAY_MS, 5 * MINUTE_MS);
    const ticks = await table.ticks("beat");
    expect(ticks.map(({ state, reason }) => [state, reason])).toEqual(Array.from({ length: 25 }, () => ["queued", null]));
  });

  test("forward and backward by a day ticks no period twice and loses none", async () => {
    await using table = await hourly();
    await table.clock.advance(2 * MINUTE_MS);
    table.clock.jump(DAY_MS);
    await table.clock.advance(MINUTE_MS);
    table.clock.jump(-DAY_MS);
    await table.clock.advance(2 * DAY_MS);
    const starts = await periodStarts(table);
    const all = Array.from({ length: 49 }, (_, hour) => Date.parse("2026-01-15T13:00:00Z") + hour * HOUR_MS);
    expect([...starts].sort()).toEqual(all.map((ms) => new Date(ms).toISOString()));
  });

  test("fifty years forward and back does not silence the schedule until that day", async () => {
    await using table = await hourly();
    await table.clock.advance(2 * MINUTE_MS);
    table.clock.jump(50 * 365 * DAY_MS);
    await table.clock.advance(MINUTE_MS);
    const ahead = (await periodStarts(table)).length;
    table.clock.jump(-50 * 365 * DAY_MS);
    await table.clock.advance(3 * HOUR_MS);
    const starts = await periodStarts(table);
    expect(starts.slice(ahead)).toEqual(["14:00", "15:00", "16:00"].map((time) => `2026-01-15T${time}:00.000Z`));
    expect(new Set(starts).size).toBe(starts.length);
  });

  test("to 1970 and back, as with a dead battery, ticks no period twice", async () => {
    await using table = await hourly();
    await table.clock.advance(2 * MINUTE_MS);
    const backMs = table.clock.now();
    table.clock.jump(-backMs);
    await table.clock.advance(6_000);
    table.clock.jump(backMs);
    await table.clock.advance(HOUR_MS);
    expect(await states(table)).toEqual(["13:00 queued", "14:00 queued"]);
  });

  test("to before the relay was made lets it count from there", async () => {
    await using table = await hourly();
    table.clock.jump(-30 * DAY_MS);
    await table.clock.advance(10 * MINUTE_MS);
    expect(await periodStarts(table)).toEqual(["2025-12-16T13:00:00.000Z"]);
  });

  test("while the service was down makes no second tick either", async () => {
    await using table = await hourly();
    await table.clock.advance(HOUR_MS + 2 * MINUTE_MS);
    await table.stop();
    table.clock.jump(-2 * HOUR_MS);
    await table.start();
    await table.clock.advance(3 * HOUR_MS);
    expect(await states(table)).toEqual(["13:00 queued", "14:00 queued", "15:00 queued"]);
  });
});

test.each([1, 2, 3, 4, 5, 6].slice(0, rounds({ slice: ON_POSTGRES ? 1 : 3, soak: 6 })))(
  "at random, with edits, pauses and restarts, never makes two ticks of one period (seed %p)",
  async (seed) => {
    await using table = await hourly();
    const random = makeRandom(seed);
    const below = (most: number): number => Math.floor(random() * most);
    const jumps = [5_000, MINUTE_MS, HOUR_MS, DAY_MS, 40 * DAY_MS];
    for (let turn = 0; turn < 120; turn++) {
      const kind = below(6);
      const jump = jumps[below(jumps.length)] ?? 0;
      if (kind <= 1) table.clock.jump(random() < 0.5 ? jump : -jump);
      else if (kind === 2) {
        await table.stop();
        await table.clock.advance(below(3 * HOUR_MS));
        await table.start();
      } else if (kind === 3) await edit(table, below(2) === 0 ? "15m" : "6h");
      else await table.clock.advance(below(20 * MINUTE_MS));
    }
    const starts = await periodStarts(table);
    expect(starts.length).toBeGreaterThan(3);
    expect(new Set(starts).size).toBe(starts.length);
  },
);

async function hourly(): Promise<Timetable> {
  const table = await openTimetable(START);
  await table.make("beat", { every: "1h" });
  await table.start();
  return table;
}

async function edit(table: Timetable, every: string): Promise<void> {
  const relay = await table.kit.view("beat");
  const actions = [{ type: "call_url", url: "https://example.com/notice" }];
  await table.kit.update("beat", { name: "beat", trigger: { kind: "schedule", every }, actions }, relay.version);
  await table.changed();
}

async function periodStarts(table: Timetable): Promise<string[]> {
  return (await table.ticks("beat")).map((tick) => tick.periodStart);
}

async function states(table: Timetable): Promise<string[]> {
  return (await table.ticks("beat")).map((tick) => `${tick.periodStart.slice(11, 16)} ${tick.state}`);
}
