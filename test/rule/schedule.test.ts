/** The specification's "schedule": one tick for each period in UTC, by the clock that the test moves. */
import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../src/base/limit.ts";
import { replayEvent } from "../../src/engine/event/replay.ts";
import { recordDue, recordDueTicks, recordMissedTicks } from "../../src/engine/schedule/schedule.ts";
import { periodOf, type ScheduleTrigger } from "../../src/rules/trigger/schedule.ts";
import { SQLITE_MIGRATIONS } from "../../src/store/migrate/migrations.ts";
import { type FencedStore, StoreUnavailable } from "../../src/store/port.ts";
import { ON_POSTGRES } from "../kit/chosen-store.ts";
import { until } from "../kit/event-flow.ts";
import { EVENT_ID } from "../kit/event-sql.ts";
import { IS_SOAK, rounds } from "../kit/rounds.ts";
import { openTimetable, type Tick, type Timetable } from "../kit/timetable.ts";

/** Polls so rarely that a simulated year takes only a few thousand wake-ups. */
const NEVER_LOOK_MS = 1_000 * DAY_MS;
const starts = (ticks: readonly Tick[]): string[] => ticks.map((tick) => tick.periodStart);

// 2026-01-15 was a Thursday.
describe("a period begins", () => {
  test.each([
    ["15m: every quarter of an hour", { every: "15m" }, ["12:15", "12:30", "12:45"].map(onThursday)],
    ["30m: every half hour", { every: "30m" }, ["12:30", "13:00", "13:30"].map(onThursday)],
    ["1h: every hour", { every: "1h" }, ["13:00", "14:00", "15:00"].map(onThursday)],
    ["6h: every 6 hours from 00:00", { every: "6h" }, ["2026-01-15T18:00", "2026-01-16T00:00"].map(iso)],
    ["12h: at 00:00 and 12:00", { every: "12h" }, ["2026-01-16T00:00", "2026-01-16T12:00"].map(iso)],
    ["1d without at: at 00:00", { every: "1d" }, ["2026-01-16T00:00", "2026-01-17T00:00"].map(iso)],
    ["1d at a time of day", { every: "1d", at: "12:07" }, ["2026-01-15T12:07", "2026-01-16T12:07"].map(iso)],
    ["1d at a time that is past today: from tomorrow", { every: "1d", at: "06:30" }, ["2026-01-16T06:30", "2026-01-17T06:30"].map(iso)],
    ["1w without on: on Monday", { every: "1w" }, ["2026-01-19T00:00", "2026-01-26T00:00"].map(iso)],
    ["1w on a weekday at a time", { every: "1w", on: "sunday", at: "23:59" }, ["2026-01-18T23:59", "2026-01-25T23:59"].map(iso)],
    ["1w on the weekday of today, later today", { every: "1w", on: "thursday", at: "20:00" }, ["2026-01-15T20:00", "2026-01-22T20:00"].map(iso)],
  ])("%s", async (_rule, trigger, expected) => {
    await using table = await openTimetable("2026-01-15T12:05:00Z", NEVER_LOOK_MS);
    await table.make("beat", trigger);
    await table.start();
    await table.clock.advance(Date.parse(expected.at(-1) ?? "") - table.clock.now(), { everyTimer: true });
    const ticks = await table.ticks("beat");
    expect(starts(ticks)).toEqual(expected);
    expect(ticks.map((tick) => tick.recordedAt)).toEqual(expected);
    expect(ticks.every((tick) => tick.state === "queued")).toBe(true);
    expect(table.woken).toHaveLength(expected.length);
  });
});

test("5,500 instants have the period that plain UTC arithmetic gives", () => {
  const hour = (hours: number): number => hours * HOUR_MS;
  const schedules: [ScheduleTrigger, periodMs: number, anchorMs: number][] = [
    [{ kind: "schedule", every: "15m" }, hour(1) / 4, 0],
    [{ kind: "schedule", every: "30m" }, hour(1) / 2, 0],
    [{ kind: "schedule", every: "1h" }, hour(1), 0],
    [{ kind: "schedule", every: "6h" }, hour(6), 0],
    [{ kind: "schedule", every: "12h" }, hour(12), 0],
    [{ kind: "schedule", every: "1d", at: "23:59" }, DAY_MS, hour(24) - MINUTE_MS],
    [{ kind: "schedule", every: "1w", on: "sunday", at: "06:30" }, 7 * DAY_MS, 3 * DAY_MS + hour(6.5)],
    [{ kind: "schedule", every: "1d" }, DAY_MS, 0],
    // The epoch was a Thursday.
    [{ kind: "schedule", every: "1w" }, 7 * DAY_MS, 4 * DAY_MS],
    [{ kind: "schedule", every: "1w", at: "00:00", on: "saturday" }, 7 * DAY_MS, 2 * DAY_MS],
    [{ kind: "schedule", every: "1w", on: "thursday" }, 7 * DAY_MS, 0],
  ];
  for (const [trigger, periodMs, anchorMs] of schedules) {
    const period = periodOf(trigger);
    for (let turn = 0; turn < 500; turn++) {
      const ms = Math.floor(Math.random() * Date.parse("2060-01-01"));
      const start = anchorMs + Math.floor((ms - anchorMs) / periodMs) * periodMs;
      expect([period.startAt(ms), period.nextAfter(ms)]).toEqual([start, start + periodMs]);
      // The ends of the period, and an earlier instant after them.
      expect([period.startAt(start), period.startAt(start + periodMs - 1)]).toEqual([start, start]);
      expect([period.nextAfter(start - 1), period.startAt(start - 1)]).toEqual([start, start - periodMs]);
      expect(period.list(start - 2 * periodMs, ms, 3)).toEqual([start - periodMs, start].filter((one) => one <= ms));
    }
  }
});

test("periods settled before the mark existed stay settled, and a span in the future does not count", () => {
  const database = new Database(":memory:");
  const [last, ...earlier] = SQLITE_MIGRATIONS.filter(({ number }) => number <= 12).reverse();
  for (const { sql } of earlier.reverse()) database.exec(sql);
  database.exec(
    "INSERT INTO app (id, name, created_at) VALUES ('shop', 'Shop', 0); INSERT INTO environment (id, app_id, name, created_at) VALUES (1, 'shop', 'production', 0)",
  );
  const ahead = Date.now() + DAY_MS;
  const relays = {
    ticked: [100, [[100, 5_000]]],
    ahead: [
      100,
      [
        [100, 7_000],
        [8_000, ahead],
      ],
    ],
    resumed: [9_000, [[100, 5_000]]],
    fresh: [300, null],
  } as const;
  for (const [name, [since, spans]] of Object.entries(relays)) {
    database.exec(`INSERT INTO relay (id, environment_id, name, definition, origin_kind, origin_at, active_since, created_at, updated_at)
      VALUES ('${name}', 1, '${name}', '{}', 'dashboard', 0, ${since}, 0, 0)`);
    if (spans !== null) database.exec(`INSERT INTO schedule_cursor (relay_id, settled) VALUES ('${name}', '${JSON.stringify(spans)}')`);
  }
  database.exec(last?.sql ?? "");
  const marks = database.query<{ name: string; mark: number }, []>("SELECT name, active_since AS mark FROM relay").all();
  expect(Object.fromEntries(marks.map(({ name, mark }) => [name, mark]))).toEqual({
    ticked: 5_000,
    ahead: 7_000,
    resumed: 9_000,
    fresh: 300,
  });
});

// Due moments are the same arithmetic on both databases, so a few days are enough on PostgreSQL.
const AROUND_LEAP_DAY = { from: "2028-02-25T23:59:00Z", days: ON_POSTGRES ? 5 : 20 };
const LEAP_YEAR = { from: "2027-12-31T23:59:00Z", days: 366 };
const SPAN = IS_SOAK && !ON_POSTGRES ? LEAP_YEAR : AROUND_LEAP_DAY;

test(`${SPAN.days} days with a leap day have one tick for each period`, async () => {
  const { from, days } = SPAN;
  const dates = Array.from({ length: days }, (_, day) => new Date(Date.parse(from) + MINUTE_MS + day * DAY_MS));
  const weeks = (weekday: number): number => dates.filter((date) => date.getUTCDay() === weekday).length;
  const expected = {
    "six-hourly": [{ every: "6h" }, days * 4],
    "half-daily": [{ every: "12h" }, days * 2],
    daily: [{ every: "1d" }, days],
    "daily-late": [{ every: "1d", at: "23:58" }, days],
    weekly: [{ every: "1w" }, weeks(1)],
    "weekly-late": [{ every: "1w", on: "tuesday", at: "12:34" }, weeks(2)],
  } as const;
  await using table = await tickFor(days, from, expected);
  expect(starts(await table.ticks("daily"))).toEqual(dates.map((date) => iso(date.toISOString().slice(0, 16))));
  const leapTuesday = starts(await table.ticks("weekly-late")).filter((start) => start.startsWith("2028-02-29"));
  expect(leapTuesday).toEqual(["2028-02-29T12:34"].map(iso));
});

test("the days around a leap day have one tick for each hour, half hour and quarter hour", async () => {
  const days = rounds({ slice: 3, soak: 6, long: 10 });
  const expected = {
    quarterly: [{ every: "15m" }, days * 96],
    "half-hourly": [{ every: "30m" }, days * 48],
    hourly: [{ every: "1h" }, days * 24],
  } as const;
  await using _table = await tickFor(days, "2028-02-27T23:59:00Z", expected);
});

/** Advances this many days over schedules that must tick so often. Each tick must be on time and unique, without an alert. */
async function tickFor(
  days: number,
  from: string,
  expected: Readonly<Record<string, readonly [trigger: object, count: number]>>,
): Promise<Timetable> {
  const table = await openTimetable(from, NEVER_LOOK_MS);
  for (const [name, [trigger]] of Object.entries(expected)) await table.make(name, trigger);
  await table.start();
  await table.clock.advance(days * DAY_MS, { everyTimer: true });
  for (const [name, [, count]] of Object.entries(expected)) {
    const ticks = await table.ticks(name);
    expect([name, ticks.length, new Set(starts(ticks)).size]).toEqual([name, count, count]);
    expect(ticks.filter((tick) => tick.recordedAt !== tick.periodStart)).toEqual([]);
  }
  expect(await table.alerts()).toEqual([]);
  return table;
}

describe("a relay", () => {
  test.each([
    ["made in the middle of a period first fires in the next one", "2026-01-15T12:59:59.999Z", 1, "2026-01-15T13:00"],
    ["made at the start of a period first fires in the next one", "2026-01-15T13:00:00Z", HOUR_MS, "2026-01-15T14:00"],
  ])("%s", async (_rule, madeAt, waitMs, first) => {
    await using table = await openTimetable(madeAt);
    await table.start();
    await table.make("beat", { every: "1h" });
    await table.clock.advance(waitMs - 1);
    expect(await table.ticks("beat")).toEqual([]);
    await table.clock.advance(1);
    expect(starts(await table.ticks("beat"))).toEqual([iso(first)]);
  });

  test("has the payload { tick: { periodStart } } and nothing else", async () => {
    await using table = await openTimetable("2026-01-15T12:59:00Z");
    await table.make("beat", { every: "1h" });
    await table.start();
    await table.clock.advance(MINUTE_MS);
    const rows = await table.store.read((tx) => tx.all("SELECT trigger, payload, truncated, preview, unsigned, person_id FROM event"));
    expect(rows).toEqual([
      {
        trigger: "schedule",
        payload: '{"tick":{"periodStart":"2026-01-15T13:00:00.000Z"}}',
        truncated: 0,
        preview: null,
        unsigned: 0,
        person_id: null,
      },
    ]);
  });

  test("that is deleted stops ticking", async () => {
    await using table = await hourly("2026-01-15T12:59:00Z");
    await table.clock.advance(MINUTE_MS);
    await table.store.write("dashboard", (tx) => tx.run("DELETE FROM relay"));
    await table.changed();
    await table.clock.advance(5 * HOUR_MS);
    expect(await table.ticks("beat")).toHaveLength(1);
  });

  test("whose trigger is edited starts from the new trigger's next period", async () => {
    await using table = await hourly("2026-01-15T12:59:00Z");
    await table.clock.advance(11 * MINUTE_MS);
    const actions = [{ type: "call_url", url: "https://example.com/notice" }];
    const edited = { name: "beat", trigger: { kind: "schedule", every: "15m" }, actions };
    await table.kit.update("beat", edited, 1);
    await table.changed();
    await table.clock.advance(21 * MINUTE_MS);
    expect(starts(await table.ticks("beat"))).toEqual(["13:00", "13:15", "13:30"].map(onThursday));
  });

  test("whose actions are edited keeps its periods, also one that began in the meantime", async () => {
    await using table = await hourly("2026-01-15T12:59:00Z");
    await table.stop();
    await table.clock.advance(11 * MINUTE_MS);
    const actions = [{ type: "call_url", url: "https://example.com/other" }];
    await table.kit.update("beat", { name: "beat", trigger: { kind: "schedule", every: "1h" }, actions }, 1);
    await table.start();
    expect(starts(await table.ticks("beat"))).toEqual(["13:00"].map(onThursday));
  });
});

describe("after a gap", () => {
  test("shorter than a period, the missed one runs late without an alert", async () => {
    await using table = await hourly("2026-01-15T12:59:00Z");
    await table.stop();
    await table.clock.advance(30 * MINUTE_MS);
    await table.start();
    expect(await table.ticks("beat")).toEqual([{ ...tick("2026-01-15T13:00"), recordedAt: iso("2026-01-15T13:29") }]);
    expect(await table.alerts()).toEqual([]);
  });

  test("the newest missed period runs late, older ones are dead rows, and one alert counts them", async () => {
    await using table = await hourly("2026-01-15T12:59:00Z");
    await table.stop();
    await table.clock.advance(3 * HOUR_MS + 30 * MINUTE_MS);
    await table.start();
    const recordedAt = iso("2026-01-15T16:29");
    expect(await table.ticks("beat")).toEqual([
      { ...missedTick("2026-01-15T13:00"), recordedAt },
      { ...missedTick("2026-01-15T14:00"), recordedAt },
      { ...missedTick("2026-01-15T15:00"), recordedAt },
      { ...tick("2026-01-15T16:00"), recordedAt },
    ]);
    expect(await table.alerts()).toEqual([
      {
        code: "relay_failed",
        target: "relay:beat",
        message:
          "3 ticks of beat were missed, from 2026-01-15T13:00:00.000Z to 2026-01-15T15:00:00.000Z: they are stored as dead and can be replayed; the newest one runs late.",
        count: 3,
      },
    ]);
    expect(table.woken).toHaveLength(1);
    expect(table.logged.filter((line) => line.includes("ticks were missed"))).toHaveLength(1);
  });

  test("no alert is raised if the owner switched relay_failed off", async () => {
    await using table = await hourly("2026-01-15T12:59:00Z");
    await table.stop();
    await table.store.write("app", (tx) => tx.run(`UPDATE environment SET settings = '{"alerts":{"relay_failed":false}}'`));
    await table.clock.advance(3 * HOUR_MS);
    await table.start();
    expect([(await table.ticks("beat")).length, await table.alerts()]).toEqual([3, []]);
  });

  test("of months, missed periods are stored for at most 30 days back", async () => {
    await using table = await openTimetable("2026-01-15T12:59:00Z");
    await table.make("beat", { every: "1d" });
    await table.make("quick", { every: "15m" });
    await table.clock.advance(100 * DAY_MS);
    await table.start();
    const daily = await table.ticks("beat");
    expect(daily).toHaveLength(30);
    expect([daily[0], daily.at(-1)].map((one) => [one?.periodStart, one?.state])).toEqual([
      [iso("2026-03-27T00:00"), "dead"],
      [iso("2026-04-25T00:00"), "queued"],
    ]);
    expect(await table.ticks("quick")).toHaveLength(30 * 24 * 4);
    expect((await table.alerts()).map(({ target, count }) => [target, count])).toEqual([
      ["relay:beat", 29],
      ["relay:quick", 30 * 24 * 4 - 1],
    ]);
  });

  test("a missed period can be replayed", async () => {
    await using table = await hourly("2026-01-15T12:59:00Z");
    await table.stop();
    await table.clock.advance(2 * HOUR_MS);
    await table.start();
    const dead = await table.store.read((tx) =>
      tx.get<{ id: string; environmentId: number }>(`SELECT ${EVENT_ID} AS id, environment_id AS environmentId FROM event WHERE state = 'dead'`),
    );
    if (dead === null) throw new Error("No period was missed.");
    const nowMs = table.clock.now();
    await table.store.write("dashboard", (tx) => replayEvent(tx, { ...dead, actor: "owner:ada", nowMs }));
    expect((await table.ticks("beat")).map((one) => [one.state, one.reason])).toEqual([
      ["queued", null],
      ["queued", null],
    ]);
  });

  test("a second start finds no missed period", async () => {
    await using table = await hourly("2026-01-15T12:59:00Z");
    await table.stop();
    await table.clock.advance(5 * HOUR_MS);
    await table.start();
    const first = await table.ticks("beat");
    await table.stop();
    await table.start();
    expect(await table.ticks("beat")).toEqual(first);
    expect(await table.alerts()).toHaveLength(1);
  });
});

describe("a schedule that must not tick", () => {
  test("has no tick while its relay is paused, nor afterwards, and continues with the next period", async () => {
    await using table = await hourly("2026-01-15T12:59:00Z");
    await setState(table, "paused");
    await table.clock.advance(5 * HOUR_MS);
    await setState(table, "active");
    expect(await table.ticks("beat")).toEqual([]);
    await table.clock.advance(MINUTE_MS);
    expect(starts(await table.ticks("beat"))).toEqual(["18:00"].map(onThursday));
    expect(await table.alerts()).toEqual([]);
  });

  test.each([
    ["runs", "never"],
    ["is down for part of the hold", "before its end"],
    ["is down when the hold ends", "after its end"],
  ])("has no tick while its environment is on hold, nor afterwards, if the service %s", async (_rule, back) => {
    await using table = await hourly("2026-01-15T12:59:00Z");
    await table.hold(true);
    await table.clock.advance(2 * HOUR_MS);
    if (back !== "never") await table.stop();
    await table.clock.advance(2 * HOUR_MS);
    if (back === "before its end") await table.start();
    await table.clock.advance(30 * MINUTE_MS);
    await table.hold(false);
    if (back === "after its end") await table.start();
    expect(await table.ticks("beat")).toEqual([]);
    await table.clock.advance(31 * MINUTE_MS);
    expect(starts(await table.ticks("beat"))).toEqual(["18:00"].map(onThursday));
    expect(await table.alerts()).toEqual([]);
  });
});

describe("an interruption during a tick", () => {
  test("that loses the transaction makes no tick, and the next poll makes one", async () => {
    await using table = await hourly("2026-01-15T12:59:00Z");
    await table.stop();
    await table.clock.advance(2 * MINUTE_MS);
    const id = await relayId(table);
    const lost = table.store.write("relay", async (tx) => {
      await recordDue(tx, id, table.clock.now());
      expect(await tx.get<object>("SELECT count(*) AS ticks FROM event")).toEqual({ ticks: 1 });
      throw new Error("killed before the commit");
    });
    await expect(lost).rejects.toThrow("killed");
    expect(await table.ticks("beat")).toEqual([]);
    await table.start();
    expect(starts(await table.ticks("beat"))).toEqual(["13:00"].map(onThursday));
  });

  test("by a second tick at the same time makes one tick", async () => {
    await using table = await hourly("2026-01-15T12:59:00Z");
    await table.stop();
    await table.clock.advance(2 * MINUTE_MS);
    const id = await relayId(table);
    const tickNow = () => table.store.write("relay", (tx) => recordDue(tx, id, table.clock.now()));
    await Promise.all([tickNow(), tickNow(), tickNow()]);
    expect(starts(await table.ticks("beat"))).toEqual(["13:00"].map(onThursday));
  });

  test.each<[by: string, record: (table: Timetable, store: FencedStore) => Promise<void>]>([
    ["the scheduler", (table, store) => table.start(store)],
    ["a pause or a hold", settleAll],
  ])("that kills %s at any step after a week's stop loses no tick and doubles none", async (_rule, record) => {
    await using table = await openTimetable("2026-01-15T12:07:00Z");
    await table.make("beat", { every: "15m" });
    await table.make("daily", { every: "1d" });
    await table.clock.advance(7 * DAY_MS);
    const steps: number[] = [];
    const dyingAfter = (most: number): FencedStore => ({
      read: (work) => table.store.read(work),
      vacuumStep: () => table.store.vacuumStep(),
      fenceHolds: (tx) => table.store.fenceHolds(tx),
      async write(origin, work) {
        if (steps.length === most) throw new StoreUnavailable("killed");
        const before = await countTicks(table);
        const result = await table.store.write(origin, work);
        steps.push((await countTicks(table)) - before);
        return result;
      },
    });
    for (const most of [0, 1, 2, 4]) {
      await record(table, dyingAfter(most)).catch(() => undefined);
      expect(steps).toHaveLength(most);
      await table.stop();
    }
    await record(table, dyingAfter(1_000));
    expect(Math.max(...steps)).toBe(200);
    for (const [name, count] of [
      ["beat", 672],
      ["daily", 7],
    ] as const) {
      const ticks = await table.ticks(name);
      expect([ticks.length, new Set(starts(ticks)).size]).toEqual([count, count]);
      expect(starts(ticks)).toEqual(starts(ticks).toSorted());
      expect(ticks.filter(({ reason }) => reason === "missed")).toHaveLength(count - 1);
      expect(ticks.at(-1)).toMatchObject({ state: "queued", reason: null });
    }
    const told = (await table.alerts()).map(({ target, count }) => [target, count] as const);
    expect(told.toSorted()).toEqual([
      ["relay:beat", 671],
      ["relay:daily", 6],
    ]);
  });

  test("several steps of missed periods make one alert, which counts them all", async () => {
    await using table = await openTimetable("2026-01-15T12:07:00Z");
    await table.make("beat", { every: "15m" });
    await table.clock.advance(7 * DAY_MS);
    await table.start();
    expect(await table.alerts()).toEqual([
      {
        code: "relay_failed",
        target: "relay:beat",
        message:
          "671 ticks of beat were missed, from 2026-01-15T12:15:00.000Z to 2026-01-22T11:45:00.000Z: they are stored as dead and can be replayed; the newest one runs late.",
        count: 671,
      },
    ]);
  });

  test("by a store that cannot be written delays a tick and does not lose it", async () => {
    await using table = await hourly("2026-01-15T12:59:00Z");
    await table.direct.whileUnwritable(async () => {
      await table.clock.advance(MINUTE_MS);
      await until("the scheduler says so", () => table.logged.join().includes("the scheduler cannot tick"));
    });
    expect(await table.ticks("beat")).toEqual([]);
    await table.clock.advance(5_000);
    expect(starts(await table.ticks("beat"))).toEqual(["13:00"].map(onThursday));
  });

  test("by another error in one schedule is retried, and delays no other", async () => {
    await using table = await hourly("2026-01-15T12:59:00Z");
    await table.make("other", { every: "1h" });
    const id = await relayId(table);
    await table.direct.breakWrites("INSERT", "event", "no", `NEW.relay_key = (SELECT key FROM relay_key WHERE relay_id = '${id}')`);
    await table.clock.advance(MINUTE_MS);
    expect([await table.ticks("beat"), starts(await table.ticks("other"))]).toEqual([[], ["13:00"].map(onThursday)]);
    await table.direct.fix("event");
    await table.clock.advance(MINUTE_MS);
    expect(starts(await table.ticks("beat"))).toEqual(["13:00"].map(onThursday));
  });
});

async function settleAll({ environment, clock }: Timetable, store: FencedStore): Promise<void> {
  const settling = { environmentId: (await environment("development")).id, nowMs: clock.now() };
  await recordMissedTicks(store, settling);
  await store.write("relay", (tx) => recordDueTicks(tx, settling));
}

async function countTicks({ store }: Timetable): Promise<number> {
  return (await store.read((tx) => tx.get<{ ticks: number }>("SELECT count(*) AS ticks FROM event")))?.ticks ?? 0;
}

async function hourly(startIso: string): Promise<Timetable> {
  const table = await openTimetable(startIso);
  await table.make("beat", { every: "1h" });
  await table.start();
  return table;
}

async function setState(table: Timetable, state: "active" | "paused"): Promise<void> {
  const nowMs = table.clock.now();
  await table.store.write("dashboard", (tx) =>
    tx.run("UPDATE relay SET state = ?1, active_since = CASE ?1 WHEN 'active' THEN ?2 ELSE active_since END", state, nowMs),
  );
  await table.changed();
}

async function relayId(table: Timetable): Promise<string> {
  const row = await table.store.read((tx) => tx.get<{ id: string }>("SELECT id FROM relay WHERE name = 'beat'"));
  if (row === null) throw new Error("There is no relay.");
  return row.id;
}

function iso(minute: string): string {
  return `${minute}:00.000Z`;
}

function onThursday(time: string): string {
  return iso(`2026-01-15T${time}`);
}

function tick(minute: string): Omit<Tick, "recordedAt"> {
  return { periodStart: iso(minute), state: "queued", reason: null };
}

function missedTick(minute: string): Omit<Tick, "recordedAt"> {
  return { periodStart: iso(minute), state: "dead", reason: "missed" };
}
