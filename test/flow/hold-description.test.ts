/** Tests how a hold is described: who set it, how many events wait, and which scheduled runs it skipped. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { HOUR_MS } from "../../src/base/limit.ts";
import { WRITE } from "../kit/event-flow.ts";
import { makeOrders, receiverDefinition, saveRelay, signedCall } from "../kit/relay-definition.ts";
import { type RunningService, startRunningService } from "../kit/running-service.ts";
import { settle } from "../kit/virtual-clock.ts";

let running: RunningService;
beforeEach(async () => {
  running = await startRunningService();
  await makeOrders(running);
  await saveRelay(running, receiverDefinition({}));
  for (const [name, every] of [
    ["hourly", "1h"],
    ["daily", "1d"],
    ["weekly", "1w"],
  ] as const) {
    const definition = { name, trigger: { kind: "schedule", every }, actions: [WRITE] };
    const { status, body } = await running.api("POST", "/relays", { definition });
    if (status !== 201) throw new Error(JSON.stringify(body));
  }
});
afterEach(() => running[Symbol.asyncDispose]());

async function setHold(held: boolean): Promise<void> {
  const { version } = (await running.api("GET", "/settings")).body.settings;
  expect((await running.api("PUT", "/settings", { version, held })).status).toBe(200);
}

const readHealth = async (name: string) => (await running.api("GET", `/relays/${name}`)).body.health;
const listNeeds = async () => (await running.api("GET", "/overview")).body.needs;

test("a hold names who set it, the events that wait and the skipped runs, on Home and at each relay", async () => {
  await setHold(true);
  const begin = "put the environment on hold at 2026-01-15T12:00:00.000Z.";
  expect(await listNeeds()).toMatchObject([{ code: "environment_held", message: expect.stringContaining(`${begin} No events wait.`) }]);
  expect((await listNeeds())[0].message).not.toContain("skipped");

  await running.hook("orders", signedCall({ id: "one" }));
  await running.hook("orders", signedCall({ id: "two" }));
  await settle();
  await running.clock.leap(13 * HOUR_MS);
  const [{ message }] = await listNeeds();
  expect(message).toEndWith(
    `${begin} 2 events wait. The hold skipped 1 run of daily (2026-01-16T00:00:00.000Z) and 13 runs of hourly (from 2026-01-15T13:00:00.000Z to 2026-01-16T01:00:00.000Z). They do not run after the release, unless you start them with relay relays skipped <name>.`,
  );
  expect(message).toMatch(/^(The key \S|\S+@)/);
  expect(await readHealth("orders")).toMatchObject({ state: "held", message: expect.stringContaining(message) });

  await setHold(false);
  await running.drain();
  expect(await listNeeds()).toEqual([]);
});
