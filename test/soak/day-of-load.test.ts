/**
 * A complete service through twenty-four hours of steady traffic: duplicates, filters, forgeries, schedules, record changes, a target that refuses at
 * first, pauses, a secret rotation with an overlap, an environment on hold. Afterwards every effect exists once, and nothing has grown that must not
 * grow.
 */

import { heapStats } from "bun:jsc";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { HOUR_MS, MINUTE_MS } from "../../src/base/limit.ts";
import { runCommand } from "../kit/cli-io.ts";
import { dumpTables } from "../kit/data-directory.ts";
import { DayTraffic, refusalsOf, StubbornTarget } from "../kit/day-traffic.ts";
import { EVENT_ID, RELAY_NAME } from "../kit/event-sql.ts";
import { sampleOf } from "../kit/prometheus-text.ts";
import { HOOK_SECRET, signedCall } from "../kit/relay-definition.ts";
import { type RunningService, startRunningService } from "../kit/running-service.ts";
import { START_MS, settle } from "../kit/virtual-clock.ts";

const STEP_MS = 5 * MINUTE_MS;
const STEPS_AN_HOUR = HOUR_MS / STEP_MS;
const DAY_STEPS = 24 * STEPS_AN_HOUR;
const NEXT_SECRET = "theNextSecretOfTwentyFour1";
const OVERLAP_SECONDS = 3_600;
const MB = 1_048_576;

interface Sample {
  heap: number;
  database: number;
  log: number;
}

const dataDir = mkdtempSync(join(tmpdir(), "relay-soak-"));
const target = new StubbornTarget();
const samples: Sample[] = [];
let running: RunningService;
let traffic: DayTraffic;
let neverId: string;

/** The owner's actions by hour. */
const DEEDS: Readonly<Record<number, () => Promise<void>>> = {
  3: () => post("/relays/orders/pause"),
  4: () => post("/relays/orders/resume"),
  6: () => post("/relays/watcher/pause"),
  7: () => post("/relays/watcher/resume"),
  8: rotate,
  9: endOverlap,
  10: () => hold(true),
  12: () => hold(false),
  14: () => post("/relays/notices/pause"),
  15: () => post("/relays/notices/resume"),
};

beforeAll(async () => {
  running = await startRunningService({
    config: { dataDir },
    ports: { caller: target },
    environments: ["development", "production"],
  });
  traffic = new DayTraffic(running);
  await traffic.open();
  neverId = await traffic.sendNotice("never");
  for (let step = 0; step < DAY_STEPS; step++) {
    const hour = step / STEPS_AN_HOUR;
    await DEEDS[hour]?.();
    if (hour > 0 && hour % 6 === 0) samples.push(measure());
    await traffic.sendOrders(step);
    await traffic.changeTask(step);
    // No notice is sent in the last hour, so that every notice has time for its third attempt.
    if (hour < 23) await traffic.sendNotice(`n${step}`);
    await running.clock.advance(STEP_MS);
    if (hour === 3.5 || hour === 10.5) await checkWaiting(hour);
  }
  await running.drain();
  samples.push(measure());
});
afterAll(() => running[Symbol.asyncDispose]());

async function post(path: string): Promise<void> {
  expect((await running.api("POST", path)).status).toBe(200);
  await settle();
}

async function hold(held: boolean): Promise<void> {
  const { body } = await running.api("GET", "/settings", undefined, "production");
  const saved = await running.api("PUT", "/settings", { version: body.settings.version, held }, "production");
  expect(saved.status).toBe(200);
  await settle();
}

async function rotate(): Promise<void> {
  const change = { value: NEXT_SECRET, overlapSeconds: OVERLAP_SECONDS };
  expect((await running.api("PUT", "/relays/orders/secret", change)).status).toBe(200);
  traffic.secrets = [HOOK_SECRET, NEXT_SECRET];
}

async function endOverlap(): Promise<void> {
  traffic.secrets = [NEXT_SECRET];
  const late = await running.hook("orders", signedCall({ id: "late", type: "order.paid" }, HOOK_SECRET));
  expect([late.status, late.body.code]).toEqual([401, "bad_signature"]);
}

/** In the middle of a pause or a hold, events are received and none has run. */
async function checkWaiting(hour: number): Promise<void> {
  const name = hour < 10 ? "development" : "production";
  const [row] = await running.rows<{ queued: number; started: number }>(
    `SELECT count(*) AS queued, sum(attempts) AS started FROM event WHERE state = 'queued' AND ${RELAY_NAME} = 'orders'
       AND environment_id = (SELECT id FROM environment WHERE name = ?1)`,
    name,
  );
  expect(row).toEqual({ queued: 0.5 * STEPS_AN_HOUR + 1, started: 0 });
}

function measure(): Sample {
  Bun.gc(true);
  const size = (file: string): number => statSync(join(dataDir, file)).size;
  return { heap: heapStats().heapSize, database: size("relay.db"), log: size("relay.db-wal") };
}

async function written(collection: string, environment = "development"): Promise<Record<string, string>[]> {
  const rows = await running.rows<{ data: string }>(
    `SELECT data FROM record WHERE collection = ?1 AND written_by LIKE 'relay:%'
       AND environment_id = (SELECT id FROM environment WHERE name = ?2) ORDER BY seq`,
    collection,
    environment,
  );
  return rows.map(({ data }) => JSON.parse(data));
}

/** Returns the beginnings of the quarters from `fromQuarter` to `toQuarter` after the start, both included. */
function quarters(fromQuarter: number, toQuarter: number): string[] {
  return Array.from({ length: toQuarter - fromQuarter + 1 }, (_, index) => new Date(START_MS + (fromQuarter + index) * 15 * MINUTE_MS).toISOString());
}

describe("after a day", () => {
  test("every event is done, except the one whose target never accepts it, which waits for its seventh attempt", async () => {
    const open = await running.rows(`SELECT ${EVENT_ID} AS id, state, attempts, next_attempt_at AS at FROM event WHERE state <> 'done'`);
    const minutesUntilSeventh = 1 + 5 + 30 + 2 * 60 + 8 * 60 + 16 * 60;
    expect(open).toEqual([{ id: neverId, state: "queued", attempts: 6, at: START_MS + minutesUntilSeventh * MINUTE_MS }]);
    const [counts] = await running.rows<{ events: number }>("SELECT count(*) AS events FROM event");
    const { orders, live, notices, changes } = traffic;
    const sent = orders.length + live.length + notices.length + changes.length;
    expect(counts?.events).toBe(sent + 96 + 88);
  });

  test("a schedule of 15 minutes has ticked 96 times, once for each period", async () => {
    expect((await written("ticks")).map(({ text }) => text)).toEqual(quarters(1, 96));
  });

  test("an environment that was on hold for two hours has no ticks for them, and all others once", async () => {
    const ticks = (await written("ticks", "production")).map(({ text }) => text);
    expect(ticks).toEqual([...quarters(1, 40), ...quarters(49, 96)]);
  });

  test("each order is one record, in the order of arrival, whatever was paused, held or rotated meanwhile", async () => {
    expect((await written("orders")).map(({ order }) => order)).toEqual(traffic.orders);
    expect((await written("orders", "production")).map(({ order }) => order)).toEqual(traffic.live);
    expect(traffic.orders).toHaveLength(DAY_STEPS);
  });

  test("each order gives five credits once, and no person exists twice", async () => {
    const credits = await running.rows("SELECT count(*) AS lines, sum(amount) AS total FROM credit");
    expect(credits).toEqual([{ lines: DAY_STEPS, total: 5 * DAY_STEPS }]);
    expect(await running.rows("SELECT count(*) AS count FROM person")).toEqual([{ count: 4 }]);
  });

  test("each notice is one record, and is posted until its target accepts it and never again", async () => {
    expect((await written("notes")).map(({ text }) => text).toSorted()).toEqual(traffic.notices.toSorted());
    const expected = traffic.notices.map((id) => [id, id === "never" ? 6 : refusalsOf(id) + 1]);
    expect([...target.posts].toSorted()).toEqual(expected.toSorted() as [string, number][]);
  });

  test("each change of a record fires once, in the order of the writes, and a save without a change does not fire", async () => {
    expect((await written("changes")).map(({ text }) => text)).toEqual(traffic.changes);
  });

  test("every run has one row, one audit row and one printed line", async () => {
    const [runs] = await running.rows<{ count: number }>("SELECT count(*) AS count FROM run");
    const retries = [...target.posts.values()].reduce((sum, posts) => sum + posts - 1, 0);
    const [events] = await running.rows<{ count: number }>("SELECT count(*) AS count FROM event");
    expect(runs?.count).toBe((events?.count ?? 0) + retries);
    expect(running.lines).toHaveLength(runs?.count ?? 0);
    const audits = await running.rows("SELECT action, count(*) AS count FROM audit WHERE actor LIKE 'relay:%' GROUP BY action ORDER BY action");
    expect(audits).toEqual([
      { action: "person.invited", count: 4 },
      { action: "run", count: runs?.count ?? 0 },
    ]);
  });

  test("the metrics have counted every request and every run", async () => {
    const text = await (await fetch(`${running.service.url}/metrics`)).text();
    const calls = (outcome: string) => sampleOf(text, `relay_receiver_calls_total{outcome="${outcome}"}`);
    const runs = (trigger: string, outcome: string) => sampleOf(text, `relay_runs_total{trigger="${trigger}",outcome="${outcome}"}`);
    const { orders, live, notices, changes } = traffic;
    const received = orders.length + live.length + notices.length;
    expect(["accepted", "duplicate", "ignored", "bad_signature"].map(calls)).toEqual([received, DAY_STEPS, DAY_STEPS, DAY_STEPS + 1]);
    const refusals = [...target.posts.values()].reduce((sum, posts) => sum + posts - 1, 1);
    expect([runs("receiver", "ok"), runs("receiver", "failed")]).toEqual([received - 1, refusals]);
    expect([runs("schedule", "ok"), runs("data_change", "ok")]).toEqual([96 + 88, changes.length]);
    const states = ["queued", "retrying", "running", "failed", "dead"];
    expect(states.map((state) => sampleOf(text, `relay_events{state="${state}"}`))).toEqual([0, 1, 0, 0, 0]);
  });

  test("a secret is removed after its overlap, and the recent requests are the duplicates, the ignored and the forged", async () => {
    const [relay] = await running.rows(`SELECT count(*) AS count FROM relay WHERE previous_secret IS NOT NULL`);
    expect(relay).toEqual({ count: 0 });
    const calls = await running.rows(
      "SELECT name, outcome, sum(count) AS count FROM recent_request JOIN environment ON id = environment_id GROUP BY 1, 2 ORDER BY 1, 2",
    );
    expect(calls).toEqual([
      { name: "development", outcome: "duplicate", count: DAY_STEPS },
      { name: "development", outcome: "ignored", count: DAY_STEPS },
      { name: "development", outcome: "refused", count: DAY_STEPS + 1 },
      { name: "production", outcome: "refused", count: DAY_STEPS + 1 },
    ]);
  });

  test("the log warns only of duplicates, forgeries, refused posts and pauses, and there is no problem and no alert", async () => {
    const lines = running.logged.map((line) => JSON.parse(line) as { level: string; message: string; code?: string; relay?: string });
    const warned = lines.filter(({ level }) => level !== "info").map(({ message, code, relay }) => `${message.split(":")[0]} ${relay} ${code}`);
    expect([...new Set(warned)].toSorted()).toEqual([
      "a request created no event orders bad_signature",
      "a request created no event orders duplicate",
      "a run failed and will be retried notices http_error",
      "an event waits notices waiting",
      "an event waits orders waiting",
    ]);
    expect(await running.rows("SELECT code, target FROM problem")).toEqual([]);
    expect(await running.rows("SELECT code, target FROM alert")).toEqual([]);
  });

  test("the database has grown evenly, its log was emptied, and memory has not grown", () => {
    const [at6, at12, at18, at24] = samples as [Sample, Sample, Sample, Sample];
    const growth = [at12.database - at6.database, at18.database - at12.database, at24.database - at18.database];
    expect(Math.max(...growth) / Math.min(...growth)).toBeLessThan(1.3);
    expect(Math.max(...samples.map(({ log }) => log))).toBeLessThan(8 * MB);
    expect(at24.heap - at6.heap).toBeLessThan(4 * MB);
  });

  test("doctor finds no failure, and a backup restored elsewhere contains every row of every table", async () => {
    const elsewhere = mkdtempSync(join(tmpdir(), "relay-soak-restored-"));
    const run = (...line: string[]) => runCommand(line, { cwd: elsewhere, clock: running.clock });
    expect((await run("doctor", "--data-dir", dataDir)).code).toBe(0);
    const file = join(elsewhere, "copy.db");
    expect((await run("backup", file, "--with-key", "--data-dir", dataDir)).code).toBe(0);
    const before = dumpTables(join(dataDir, "relay.db"));
    const key = ["--key", `${file}.key`];
    expect((await run("restore", file, ...key, "--data-dir", join(elsewhere, "new"))).code).toBe(0);
    const after = dumpTables(join(elsewhere, "new", "relay.db"));
    expect(Object.keys(after)).toEqual(Object.keys(before));
    for (const [table, rows] of Object.entries(before)) expect({ table, rows: after[table] }).toEqual({ table, rows });
    const filled = ["event", "run", "effect", "dedupe_log", "record", "credit", "person", "audit"];
    for (const table of filled) expect(before[table]?.length).toBeGreaterThan(0);
    rmSync(elsewhere, { recursive: true });
  });
});
