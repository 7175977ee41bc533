/** Tests the runs of a schedule that a hold skipped: the list, starting chosen ones once, races, and the bounds. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { DAY_MS, HOUR_MS } from "../../src/base/limit.ts";
import { runCommand } from "../kit/cli-io.ts";
import { editRelay, WRITE } from "../kit/event-flow.ts";
import { makeOrders } from "../kit/relay-definition.ts";
import { type RunningService, startRunningService } from "../kit/running-service.ts";
import { settle } from "../kit/virtual-clock.ts";

let running: RunningService;
beforeEach(async () => {
  running = await startRunningService();
  await makeOrders(running);
  const { status, body } = await running.api("POST", "/relays", { definition: hourly("1h") });
  if (status !== 201) throw new Error(JSON.stringify(body));
});
afterEach(() => running[Symbol.asyncDispose]());

const DATA = { order: "{{tick.periodStart}}" };
const hourly = (every: string) => ({
  name: "hourly",
  trigger: { kind: "schedule", every },
  actions: [{ ...WRITE, collection: "orders", data: DATA }],
});

async function setHold(held: boolean): Promise<void> {
  const { version } = (await running.api("GET", "/settings")).body.settings;
  expect((await running.api("PUT", "/settings", { version, held })).status).toBe(200);
}

/** Holds the environment for some hours after noon of 15 January 2026. */
async function holdFor(hours: number): Promise<void> {
  await setHold(true);
  await running.clock.leap(hours * HOUR_MS);
  await settle();
  await setHold(false);
}

const at = (hour: number): string => `2026-01-15T${String(hour).padStart(2, "0")}:00:00.000Z`;
const list = async () => (await running.api("GET", "/relays/hourly/skipped")).body.skipped;
const times = async (): Promise<string[]> => (await list()).runs.map((run: { at: string }) => run.at);
const start = (...chosen: string[]) => running.api("POST", "/relays/hourly/skipped/run", { at: chosen });
const records = async (): Promise<string[]> => {
  await running.drain();
  const { items } = (await running.api("GET", "/collections/orders/records?limit=200")).body;
  return items.map(({ data }: { data: { order: string } }) => data.order).sort();
};

test("after a hold, chosen runs start once, each with its scheduled time, and the audit names them", async () => {
  await holdFor(3.5);
  expect(await list()).toEqual({ relay: "hourly", held: false, runs: [{ at: at(13) }, { at: at(14) }, { at: at(15) }] });
  const started = await start(at(15), at(13));
  expect(started.status).toBe(200);
  expect(started.body).toEqual({
    held: false,
    runs: [
      { at: at(13), eventId: expect.stringMatching(/^evt_/), started: true },
      { at: at(15), eventId: expect.stringMatching(/^evt_/), started: true },
    ],
  });
  expect(await records()).toEqual([at(13), at(15)]);
  expect(await times()).toEqual([at(14)]);
  const again = await start(at(13), at(14));
  expect(again.body.runs.map((run: { started: boolean }) => run.started)).toEqual([false, true]);
  expect(again.body.runs[0].eventId).toBe(started.body.runs[0].eventId);
  expect(await records()).toEqual([at(13), at(14), at(15)]);
  const { items } = (await running.api("GET", "/audit?action=relay.skipped_runs_started")).body;
  expect(items.map(({ target, after }: { target: string; after: unknown }) => [target, after])).toEqual([
    ["relay:hourly", { runs: [at(14)] }],
    ["relay:hourly", { runs: [at(13), at(15)] }],
  ]);
});

test("two requests at once start a run once, and so do a request and the schedule", async () => {
  await holdFor(2.5);
  const answers = await Promise.all([start(at(13), at(14)), start(at(14), at(13))]);
  const started = answers.flatMap(({ body }) => body.runs.filter((run: { started: boolean }) => run.started));
  expect(started.map((run: { at: string }) => run.at).sort()).toEqual([at(13), at(14)]);
  // The schedule counts from before the hold again, as after a restored clock.
  await running.service.store.write("app", (tx) => tx.run("UPDATE relay SET active_since = ?1", Date.parse(at(12))));
  await running.clock.advance(HOUR_MS);
  await running.drain();
  const rows = await running.rows<{ state: string }>("SELECT state FROM event ORDER BY seq");
  expect(rows.map(({ state }) => state)).toEqual(["done", "done", "done"]);
  expect(await records()).toEqual([at(13), at(14), at(15)]);
});

test("during a hold, a started run waits for the release and then runs once", async () => {
  await setHold(true);
  await running.clock.leap(2.5 * HOUR_MS);
  expect(await list()).toMatchObject({ held: true, runs: [{ at: at(13) }, { at: at(14) }] });
  expect((await start(at(13))).body).toMatchObject({ held: true, runs: [{ at: at(13), started: true }] });
  expect(await records()).toEqual([]);
  await setHold(false);
  expect(await records()).toEqual([at(13)]);
  expect(await times()).toEqual([at(14)]);
});

test("a time that no hold skipped is refused, and nothing starts", async () => {
  await running.clock.advance(HOUR_MS);
  expect(await records()).toEqual([at(13)]);
  await holdFor(1.5);
  for (const wrong of [at(13), at(20), "2026-01-15T14:30:00.000Z", "soon"]) {
    const { status, body } = await start(at(14), wrong);
    expect([wrong, status, body.code]).toEqual([wrong, 400, "invalid_input"]);
    expect(body.message).toContain("relay relays skipped hourly");
  }
  expect(await records()).toEqual([at(13)]);
  expect((await running.api("GET", "/relays/none/skipped")).status).toBe(404);
});

test("lists the newest 100 runs of the current trigger, of several holds, and none older than events", async () => {
  await editRelay(running, hourly("15m"));
  await holdFor(20);
  await holdFor(10);
  const listed = await times();
  expect(listed).toHaveLength(100);
  expect(listed.at(-1)).toBe("2026-01-16T18:00:00.000Z");
  await editRelay(running, hourly("6h"));
  expect(await times()).toEqual([]);
  await holdFor(6);
  expect(await times()).toEqual(["2026-01-17T00:00:00.000Z"]);
  running.clock.jump(31 * DAY_MS);
  expect(await times()).toEqual([]);
});

test("the command lists the runs, asks before it starts them, and shows a dry run", async () => {
  await holdFor(2.5);
  const here = { cwd: running.dataDir, env: running.commandEnv, clock: running.clock };
  const run = (...words: string[]) =>
    runCommand(["relays", "skipped", "hourly", ...words, "--data-dir", running.dataDir, "--environment", "development"], here);
  const shown = `Holds skipped 2 runs of hourly:\n  ${at(13)}\n  ${at(14)}`;
  expect(await run()).toMatchObject({ code: 0, said: shown });
  expect(await run("--run", "--at", at(14), "--dry-run")).toMatchObject({ code: 0, said: `Holds skipped 1 run of hourly:\n  ${at(14)}` });
  expect(await run("--run")).toMatchObject({ code: 1, told: expect.stringContaining("relay relays skipped hourly --run --yes") });
  expect(await times()).toEqual([at(13), at(14)]);
  const one = await run("--run", "--at", at(14), "--yes", "--json");
  expect(JSON.parse(one.said)).toMatchObject({ held: false, runs: [{ at: at(14), started: true }] });
  expect((await run("--run", "--yes")).told).toContain("1 run of hourly started. See relay events list --relay hourly");
  expect((await run("--run", "--yes")).told).toContain("No hold skipped a run of hourly that has no event.");
});
