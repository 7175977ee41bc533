/** Tests the warning on day 27 before events expire, sent once, and the log lines when a problem begins and ends. */
import { afterEach, describe, expect, test } from "bun:test";
import { DAY_MS, HOUR_MS } from "../../src/base/limit.ts";
import { makeOrders, receiverDefinition, saveRelay, signedCall } from "../kit/relay-definition.ts";
import { type RunningService, startRunningService } from "../kit/running-service.ts";
import { settle } from "../kit/virtual-clock.ts";

let running: RunningService;

afterEach(async () => {
  await running[Symbol.asyncDispose]();
});

async function hold(held: boolean): Promise<void> {
  const { version } = (await running.api("GET", "/settings")).body.settings;
  expect((await running.api("PUT", "/settings", { version, held })).status).toBe(200);
}

/** Moves the clock by hours and runs the maintenance jobs. */
async function passHours(hours: number): Promise<void> {
  await running.clock.leap(hours * HOUR_MS);
  await settle();
}

/** Stores events that arrived some days ago. */
async function putOld(days: number, count: number): Promise<void> {
  for (let n = 0; n < count; n++) await running.hook("orders", signedCall({ id: `old-${days}-${n}` }));
  await settle();
  const at = running.clock.now() - days * DAY_MS;
  await running.service.store.write("app", (tx) => tx.run("UPDATE event SET created_at = ?1 WHERE state = 'queued' AND created_at > ?1", at));
}

/** Lists the items without the hold, which the list of problems reports too. */
const told = async (list: "problems" | "alerts") =>
  (await running.api("GET", `/${list}`)).body.items.filter(({ code }: { code: string }) => code !== "environment_held");
const logged = (message: string) => running.logged.map((line) => JSON.parse(line)).filter((line) => line.message === message);

const ways = [
  [
    "paused",
    () => running.api("POST", "/relays/orders/pause", {}),
    () => running.api("POST", "/relays/orders/resume", {}),
    "the relay is paused: resume it (relay relays resume orders)",
  ],
  ["held", () => hold(true), () => hold(false), "the environment is on hold: release the hold"],
  [
    "held and paused",
    async () => [await hold(true), await running.api("POST", "/relays/orders/pause", {})],
    async () => [await hold(false), await running.api("POST", "/relays/orders/resume", {})],
    "the environment is on hold and the relay is paused: release the hold (relay settings set held off) and resume it (relay relays resume orders) to run them",
  ],
] as const;

describe.each(ways)("events that wait because it is %s", (_why, brake, release, words) => {
  test("are reported once, three days before the first expires, until they are released", async () => {
    running = await startRunningService();
    await makeOrders(running);
    await saveRelay(running, receiverDefinition({}));
    await brake();
    await putOld(26.9, 2);
    await passHours(2);
    expect(await told("problems")).toEqual([]);
    await passHours(3);
    const message = expect.stringContaining(words);
    expect(await told("problems")).toMatchObject([{ code: "events_expiring", target: "relay:orders", message }]);
    expect((await told("problems"))[0].message).toMatch(/^2 events of orders have waited since .*Z and will be dropped from .*Z on, because/);
    await passHours(5);
    expect(await told("alerts")).toMatchObject([{ code: "events_expiring", count: 1 }]);
    const where = { level: "warn", app: "app_test", environment: "development", target: "relay:orders", code: "events_expiring" };
    expect(logged("a problem exists")).toMatchObject([where]);
    await release();
    await running.drain();
    expect(await told("problems")).toEqual([]);
    expect(logged("a problem is resolved")).toMatchObject([where]);
  });
});

const brakes = [
  ["the relay is resumed", ways[0][2], "the environment is on hold:"],
  ["the hold is released", ways[1][2], "the relay is paused:"],
] as const;

test.each(brakes)(
  "held and paused: after only %s, the problem stays, its owner gets no second alert, and its text changes",
  async (_what, release, words) => {
    running = await startRunningService();
    await makeOrders(running);
    await saveRelay(running, receiverDefinition({}));
    await ways[2][1]();
    await putOld(28, 1);
    await passHours(2);
    await release();
    const message = expect.stringContaining(words);
    expect(await told("problems")).toMatchObject([{ code: "events_expiring", target: "relay:orders" }]);
    await passHours(2);
    expect(await told("problems")).toMatchObject([{ code: "events_expiring", target: "relay:orders", message }]);
    expect(await told("alerts")).toMatchObject([{ code: "events_expiring", count: 1, resolvedAt: null }]);
  },
);

test("an active relay's events are not reported, however long they wait", async () => {
  running = await startRunningService();
  await makeOrders(running);
  await saveRelay(running, receiverDefinition({}));
  await running.service.runner.stop();
  await putOld(29, 1);
  await passHours(2);
  expect(await told("problems")).toEqual([]);
});

test("a problem that exists at a start is logged again", async () => {
  running = await startRunningService();
  await makeOrders(running);
  await saveRelay(running, receiverDefinition({}));
  await running.api("POST", "/relays/orders/pause", {});
  await putOld(28, 1);
  await passHours(2);
  await running.restart();
  await settle();
  expect(logged("a problem exists")).toHaveLength(2);
});
