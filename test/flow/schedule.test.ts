/** Tests schedules in the running service: from the clock to the action's result, over a restart, and with a changed clock. */

import { describe, expect, test } from "bun:test";
import { DAY_MS, HOUR_MS } from "../../src/base/limit.ts";
import { recordDueTicks, recordMissedTicks } from "../../src/engine/schedule/schedule.ts";
import { runCommand } from "../kit/cli-io.ts";
import { receiver, TOKEN } from "../kit/relay-kit.ts";
import { type RunningService, startRunningService } from "../kit/running-service.ts";
import { START_MS, settle } from "../kit/virtual-clock.ts";

const NOTES = { name: "notes", kind: "shared", fields: { at: { type: "text" } } };
const BEAT = {
  name: "beat",
  trigger: { kind: "schedule", every: "1h" },
  actions: [{ type: "write_record", collection: "notes", data: { at: "{{tick.periodStart}}" } }],
};

interface Shown {
  periodStart: string;
  state: string;
  reason: string | null;
}

describe("a schedule in the running service", () => {
  test("runs its actions when each period begins, with the tick in its data", async () => {
    await using running = await startBeat();
    await running.clock.leap(2 * HOUR_MS, 60_000);
    await running.drain();
    expect(await written(running)).toEqual(["2026-01-15T13:00:00.000Z", "2026-01-15T14:00:00.000Z"]);
    expect(running.lines).toEqual(["RELAY · beat · schedule · 1 action · ok", "RELAY · beat · schedule · 1 action · ok"]);
    const list = await running.api("GET", "/events?trigger=schedule");
    const { body } = await running.api("GET", `/events/${list.body.items[0].id}`);
    expect(body.event.payload).toEqual({ tick: { periodStart: "2026-01-15T14:00:00.000Z" } });
  });

  test("follows a creation, edit, pause or deletion by API within 5 seconds", async () => {
    await using running = await startBeat();
    const quick = { ...BEAT, trigger: { kind: "schedule", every: "15m" } };
    expect((await running.api("PUT", "/relays/beat", { definition: quick, version: 1 })).status).toBe(200);
    await running.clock.leap(HOUR_MS / 4, 60_000);
    await running.drain();
    expect(await written(running)).toEqual(["2026-01-15T12:15:00.000Z"]);
    await running.api("POST", "/relays/beat/pause");
    await running.clock.leap(HOUR_MS, 60_000);
    await running.api("POST", "/relays/beat/resume");
    await running.clock.leap(HOUR_MS / 4, 60_000);
    await running.drain();
    expect(await written(running)).toEqual(["2026-01-15T12:15:00.000Z", "2026-01-15T13:30:00.000Z"]);
    await running.api("DELETE", "/relays/beat");
    await running.clock.leap(HOUR_MS, 60_000);
    expect(await shown(running)).toHaveLength(2);
  });

  test("records nothing while its environment is on hold, nor afterwards", async () => {
    await using running = await startBeat();
    await hold(running, true);
    await running.clock.leap(3 * HOUR_MS, 60_000);
    await hold(running, false);
    await settle();
    expect(await shown(running)).toEqual([]);
    await running.clock.leap(HOUR_MS, 60_000);
    expect((await shown(running)).map((event) => event.periodStart)).toEqual(["2026-01-15T16:00:00.000Z"]);
  });

  test("after a restart runs the newest missed period late, and marks an older one as dead until its replay", async () => {
    await using running = await startBeat();
    await running.clock.leap(HOUR_MS, 60_000);
    await running.drain();
    running.clock.jump(2 * HOUR_MS);
    await running.restart();
    await running.drain();
    expect(await shown(running)).toEqual([
      { periodStart: "2026-01-15T13:00:00.000Z", state: "done", reason: null },
      { periodStart: "2026-01-15T14:00:00.000Z", state: "dead", reason: "missed" },
      { periodStart: "2026-01-15T15:00:00.000Z", state: "done", reason: null },
    ]);
    const { body } = await running.api("GET", "/events?state=dead");
    expect((await running.api("POST", `/events/${body.items[0].id}/replay`)).status).toBe(202);
    await running.drain();
    expect((await written(running)).toSorted()).toEqual([1, 2, 3].map((hours) => new Date(START_MS + hours * HOUR_MS).toISOString()));
    const alerts = await running.api("GET", "/alerts");
    expect(alerts.body.items.map((alert: { code: string }) => alert.code)).toEqual(["relay_failed"]);
  });

  test("ticks once although the clock is set back over the beginning of a period", async () => {
    await using running = await startBeat();
    await running.clock.leap(HOUR_MS + 1_000, 60_000);
    running.clock.jump(-HOUR_MS / 2);
    await running.restart();
    await running.clock.leap(HOUR_MS, 60_000);
    await running.drain();
    expect(await written(running)).toEqual(["2026-01-15T13:00:00.000Z"]);
  });
});

describe("ticks due before a stop that the scheduler has not seen", () => {
  const command = async (running: RunningService, line: string): Promise<void> => {
    const { dataDir: cwd, clock, commandEnv: env } = running;
    expect((await runCommand([...line.split(" "), "--data-dir", cwd], { cwd, clock, env })).code).toBe(0);
  };
  test.each<[stop: string, stop: (running: RunningService) => Promise<unknown>, go: (running: RunningService) => Promise<unknown>]>([
    ["a pause by API", ({ api }) => api("POST", "/relays/beat/pause"), ({ api }) => api("POST", "/relays/beat/resume")],
    ["a hold by API", (running) => hold(running, true), (running) => hold(running, false)],
    ["a pause by command", (running) => command(running, "relays pause beat"), (running) => command(running, "relays resume beat")],
    ["a hold by command", (running) => command(running, "settings set held on"), (running) => command(running, "settings set held off")],
  ])("with %s: the newest waits, older ones are dead with an alert, and later periods have no tick", async (_rule, stop, go) => {
    await using running = await startBeat();
    // Simulates three hours without a scheduler.
    await setMark(running, START_MS - 3 * HOUR_MS);
    await stop(running);
    const due = [
      { periodStart: "2026-01-15T10:00:00.000Z", state: "dead", reason: "missed" },
      { periodStart: "2026-01-15T11:00:00.000Z", state: "dead", reason: "missed" },
      { periodStart: "2026-01-15T12:00:00.000Z", state: "queued", reason: null },
    ];
    expect(await shown(running)).toEqual(due);
    const alerts = await running.api("GET", "/alerts");
    expect(alerts.body.items).toMatchObject([{ code: "relay_failed", count: 2 }]);
    await running.clock.leap(2 * HOUR_MS, 60_000);
    expect(await shown(running)).toEqual(due);
    await go(running);
    // The service finds other processes' changes within a second.
    await running.clock.leap(HOUR_MS, 60_000);
    await running.drain();
    const done = [...due.slice(0, 2), ...["12", "15"].map((hour) => ({ periodStart: `2026-01-15T${hour}:00:00.000Z`, state: "done", reason: null }))];
    expect(await shown(running)).toEqual(done);
  });
});

describe("ticks due before a change of the trigger", () => {
  const quick = { ...BEAT, trigger: { kind: "schedule", every: "15m" } };
  const received = receiver("beat", TOKEN, [{ ...BEAT.actions[0], data: { at: "{{mapped.event_id}}" } }]);
  const put = (definition: object) => async (running: RunningService) =>
    (await running.api("PUT", "/relays/beat", { definition, version: 1 })).status === 200;
  const sync = async ({ api }: RunningService): Promise<boolean> => {
    const body = { relays: [quick], replaceEdited: true };
    const { plan } = (await api("POST", "/sync/plan", body)).body;
    return (await api("POST", "/sync/apply", { ...body, plan })).status === 200;
  };
  const made = async (running: RunningService): Promise<void> => {
    await running.api("PUT", "/relays/beat", { definition: quick, version: 1 });
    await running.api("PUT", "/relays/beat", { definition: BEAT, version: 2 });
  };
  const restored = async ({ api }: RunningService) => (await api("POST", "/relays/beat/restore", { restores: 2, version: 3 })).status === 200;
  const restoredByCommand = async ({ dataDir: cwd, clock, commandEnv: env }: RunningService): Promise<boolean> => {
    const line = ["relays", "restore", "beat", "--to", "2", "--data-dir", cwd];
    return (await runCommand(line, { cwd, clock, env })).code === 0;
  };
  const nothing = async () => undefined;
  const newest = { periodStart: "2026-01-15T12:00:00.000Z", state: "done", reason: null };
  const unfit = { ...newest, state: "failed", reason: "trigger_changed" };
  test.each<[edit: string, before: (running: RunningService) => Promise<unknown>, edit: (running: RunningService) => Promise<boolean>, end: Shown]>([
    ["a save by API", nothing, put(quick), newest],
    ["a save by API that makes it a receiver", nothing, put(received), unfit],
    ["a restore by API", made, restored, newest],
    ["a restore by command", made, restoredByCommand, newest],
    ["a sync", nothing, sync, newest],
  ])("with %s: the newest runs, and older ones are dead with an alert", async (_rule, before, edit, end) => {
    await using running = await startBeat();
    await before(running);
    // Simulates three hours without a scheduler.
    await setMark(running, START_MS - 3 * HOUR_MS);
    expect(await edit(running)).toBe(true);
    await running.clock.advance(1_000);
    await running.drain();
    expect(await shown(running)).toEqual([
      ...["10", "11"].map((hour) => ({ periodStart: `2026-01-15T${hour}:00:00.000Z`, state: "dead", reason: "missed" })),
      end,
    ]);
    const alerts = await running.api("GET", "/alerts");
    expect(alerts.body.items).toMatchObject([{ code: "relay_failed", count: 2 }]);
  });

  test.each<[edit: string, before: (running: RunningService) => Promise<unknown>, edit: (running: RunningService) => Promise<boolean>]>([
    ["a save by API", nothing, put(quick)],
    ["a restore by API", made, restored],
    ["a restore by command", made, restoredByCommand],
    ["a sync", nothing, sync],
  ])("with %s after a month: are recorded in steps before the change's own transaction", async (_rule, before, edit) => {
    await using running = await startBeat();
    await before(running);
    await setMark(running, START_MS - 28 * DAY_MS);
    const [{ version } = { version: 0 }] = await running.rows<{ version: number }>("SELECT version FROM relay");
    const saving = { ends: false };
    const edited = edit(running).finally(() => {
      saving.ends = true;
    });
    const counts = new Set<number>();
    while (!saving.ends) {
      const sql = "SELECT version, (SELECT count(*) FROM event) AS ticks FROM relay";
      for (const row of await running.rows<{ version: number; ticks: number }>(sql)) if (row.version === version) counts.add(row.ticks);
      await new Promise<void>((resolve) => setImmediate(resolve));
    }
    expect(await edited).toBe(true);
    expect([...counts].filter((ticks) => ticks > 0).length).toBeGreaterThan(0);
    const { body } = await running.api("GET", "/alerts");
    expect(body.items).toMatchObject([{ code: "relay_failed", count: 28 * 24 - 1 }]);
  });

  test("are not recorded by a preview", async () => {
    await using running = await startBeat();
    await setMark(running, START_MS - 3 * HOUR_MS);
    await running.direct.breakWrites("INSERT", "event", "a plan records a tick");
    const { status, body } = await running.api("POST", "/sync/plan", { relays: [quick], replaceEdited: true });
    expect([status, body.changes, body.entries[0].refusal]).toEqual([200, 1, null]);
    await running.direct.fix("event");
  });

  test("are not recorded for a clock that is not trusted yet", async () => {
    await using running = await startBeat();
    running.clock.jump(3 * HOUR_MS);
    expect(await put(quick)(running)).toBe(true);
    expect(await shown(running)).toEqual([]);
  });

  test("are not recorded if the edit is rejected, or during a hold", async () => {
    await using running = await startBeat();
    await hold(running, true);
    await setMark(running, START_MS - 3 * HOUR_MS);
    expect((await running.api("PUT", "/relays/beat", { definition: quick, version: 7 })).status).toBe(409);
    expect(await put(quick)(running)).toBe(true);
    expect(await shown(running)).toEqual([]);
  });
});

describe("a stop while the clock is not trusted", () => {
  test.each<[stop: string, stop: (running: RunningService) => Promise<unknown>, go: (running: RunningService) => Promise<unknown>]>([
    ["a pause", ({ api }) => api("POST", "/relays/beat/pause"), ({ api }) => api("POST", "/relays/beat/resume")],
    ["a hold", (running) => hold(running, true), (running) => hold(running, false)],
  ])("%s records no period of a clock that is ahead for ten seconds", async (_rule, stop, go) => {
    await using running = await startBeat();
    await running.clock.leap(HOUR_MS, 60_000);
    await running.drain();
    running.clock.jump(3 * HOUR_MS);
    await stop(running);
    await running.clock.advance(10_000);
    running.clock.jump(-3 * HOUR_MS);
    await go(running);
    await running.clock.leap(HOUR_MS, 60_000);
    await running.drain();
    expect(await shown(running)).toEqual(["13", "14"].map((hour) => ({ periodStart: `2026-01-15T${hour}:00:00.000Z`, state: "done", reason: null })));
  });

  test("only the scheduler moves a mark that lies in the future", async () => {
    await using running = await startBeat();
    const [{ environmentId = 0 } = {}] = await running.rows<{ environmentId: number }>("SELECT environment_id AS environmentId FROM relay");
    const settling = { environmentId, nowMs: START_MS - 2 * HOUR_MS };
    await recordMissedTicks(running.service.store, settling);
    await running.service.store.write("app", (tx) => recordDueTicks(tx, settling));
    expect(await running.rows<object>("SELECT active_since AS mark FROM relay")).toEqual([{ mark: START_MS }]);
  });
});

async function setMark({ service }: RunningService, mark: number): Promise<void> {
  await service.store.write("app", (tx) => tx.run("UPDATE relay SET active_since = ?1", mark));
}

async function startBeat(): Promise<RunningService> {
  const running = await startRunningService();
  expect((await running.api("POST", "/collections", NOTES)).status).toBe(201);
  expect((await running.api("POST", "/relays", { definition: BEAT })).status).toBe(201);
  await settle();
  return running;
}

async function hold(running: RunningService, held: boolean): Promise<void> {
  const { body } = await running.api("GET", "/settings");
  expect((await running.api("PUT", "/settings", { version: body.settings.version, held })).status).toBe(200);
}

async function written(running: RunningService): Promise<string[]> {
  const rows = await running.rows<{ data: string }>("SELECT data FROM record ORDER BY seq");
  return rows.map((row) => JSON.parse(row.data).at);
}

async function shown(running: RunningService): Promise<Shown[]> {
  const rows = await running.rows<{ payload: string; state: string; reason: string | null }>("SELECT payload, state, reason FROM event ORDER BY seq");
  return rows.map(({ payload, ...row }) => ({ periodStart: JSON.parse(payload).tick.periodStart, ...row }));
}
