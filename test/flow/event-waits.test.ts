/** Tests the stated reasons for waiting: a queued event's and a schedule's next tick, in the API and in the commands. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { HOUR_MS } from "../../src/base/limit.ts";
import { runCommand } from "../kit/cli-io.ts";
import { makeOrders, receiverDefinition, saveRelay, signedCall } from "../kit/relay-definition.ts";
import { type RunningService, startRunningService } from "../kit/running-service.ts";
import { settle } from "../kit/virtual-clock.ts";

let running: RunningService;

beforeEach(async () => {
  running = await startRunningService();
  await makeOrders(running);
});

afterEach(async () => {
  await running[Symbol.asyncDispose]();
});

async function send(id: string): Promise<string> {
  const { status, body } = await running.hook("orders", signedCall({ id }));
  expect(status).toBe(200);
  await settle();
  return body.eventId;
}

// biome-ignore lint/suspicious/noExplicitAny: read as JSON
const showEvent = async (id: string): Promise<any> => (await running.api("GET", `/events/${id}`)).body.event;
const pause = () => running.api("POST", "/relays/orders/pause", {});

async function hold(held: boolean): Promise<void> {
  const { version } = (await running.api("GET", "/settings")).body.settings;
  expect((await running.api("PUT", "/settings", { version, held })).status).toBe(200);
}

const run = async (...line: string[]): Promise<string> =>
  (await runCommand(["events", ...line, "--data-dir", running.dataDir], { cwd: running.dataDir, env: running.commandEnv, clock: running.clock }))
    .said;

describe("a queued event says that it waits for", () => {
  const CALL = { actions: [{ type: "call_url", url: "https://gone.example.com/x" }] };
  const DROPS = "2026-02-14T12:00:00.000Z";
  const rows: [string, Record<string, unknown>, () => Promise<unknown>, Record<string, unknown>, string][] = [
    [
      "a pause",
      {},
      pause,
      {
        for: "pause",
        until: null,
        ahead: null,
        dropsAt: DROPS,
        message: `Its relay is paused: it runs when you resume it (relay relays resume orders), and is dropped at ${DROPS} if it waits until then.`,
      },
      "waits: paused",
    ],
    [
      "a hold",
      {},
      async () => await hold(true),
      {
        for: "hold",
        until: null,
        ahead: null,
        dropsAt: DROPS,
        message: `The environment is on hold since 2026-01-15T12:00:00.000Z: it runs when the hold is released (relay settings set held off), and is dropped at ${DROPS} if it waits until then.`,
      },
      "waits: on hold",
    ],
    [
      "a hold and a pause, because ending only one does not let it run",
      {},
      async () => [await pause(), await hold(true)],
      {
        for: "hold",
        until: null,
        ahead: null,
        dropsAt: DROPS,
        message: `The environment is on hold since 2026-01-15T12:00:00.000Z and its relay is paused: it runs when the hold is released (relay settings set held off) and the relay is resumed (relay relays resume orders), and is dropped at ${DROPS} if it waits until then.`,
      },
      "waits: on hold",
    ],
    [
      "its retry",
      CALL,
      async () => undefined,
      { for: "retry", until: "2026-01-15T12:01:00.000Z", ahead: null, dropsAt: null, message: "It will be retried at 2026-01-15T12:01:00.000Z." },
      "unresolvable, next attempt 2026-01-15T12:01:00.000Z",
    ],
  ];
  test.each(rows)("%s", async (_rule, definition, change, waits, words) => {
    await saveRelay(running, receiverDefinition(definition));
    await change();
    const id = await send("a");
    if (waits.for === "retry") await running.drain();
    expect((await showEvent(id)).waits).toEqual(waits);
    expect((await running.api("GET", "/events")).body.items[0].waits).toEqual(waits);
    expect((await run("list")).split("\n")[1]).toEndWith(words);
    const shown = await run("show", id);
    if (waits.for === "retry") expect(shown).toContain("retry     2026-01-15T12:01:00.000Z");
    else expect(shown).toContain(`waits     ${waits.message}`);
  });

  test("its turn in its relay's queue, with the number of events ahead", async () => {
    await saveRelay(running, receiverDefinition({}));
    await pause();
    const ids = [await send("a"), await send("b"), await send("c")];
    await running.service.runner.stop();
    await running.api("POST", "/relays/orders/resume", {});
    const waits = await Promise.all(ids.map(async (id) => (await showEvent(id)).waits));
    expect(waits.map(({ for: what, ahead, message }) => [what, ahead, message])).toEqual([
      ["turn", 0, "It is its relay's next."],
      ["turn", 1, "It waits for its turn: 1 event of its relay is before it."],
      ["turn", 2, "It waits for its turn: 2 events of its relay are before it."],
    ]);
    // biome-ignore lint/suspicious/noExplicitAny: read as JSON
    expect((await running.api("GET", "/events")).body.items.map((item: any) => item.waits.ahead)).toEqual([2, 1, 0]);
    expect((await run("list")).split("\n")[1]).toEndWith("waits: behind 2");
  });

  test("its turn among the events of all relays after the release of a hold", async () => {
    await saveRelay(running, receiverDefinition({}));
    await hold(true);
    const ids = [await send("a"), await send("b")];
    await running.service.runner.stop();
    await hold(false);
    const others = "Until what waited for the hold has run, events of other relays that arrived earlier run before it.";
    const waits = await Promise.all(ids.map(async (id) => (await showEvent(id)).waits));
    expect(waits.map(({ for: what, ahead, message }) => [what, ahead, message])).toEqual([
      ["turn", 0, `It is its relay's next. ${others}`],
      ["turn", 1, `It waits for its turn: 1 event of its relay is before it. ${others}`],
    ]);
  });

  test("nothing after it ended", async () => {
    await saveRelay(running, receiverDefinition({}));
    const id = await send("a");
    await running.drain();
    expect((await showEvent(id)).waits).toBeNull();
  });
});

describe("a schedule reports its next tick", () => {
  const next = async () => (await running.api("GET", "/relays/nightly")).body.relay.nextTick;
  const write = { type: "write_record", collection: "orders", data: { order: "x" } };

  beforeEach(async () => {
    const definition = { name: "nightly", trigger: { kind: "schedule", every: "1d", at: "09:00" }, actions: [write] };
    expect((await running.api("POST", "/relays", { definition })).status).toBe(201);
  });

  test("and why its first period has no tick", async () => {
    expect(await next()).toEqual({
      at: "2026-01-16T09:00:00.000Z",
      message:
        "The next tick is at 2026-01-16T09:00:00.000Z. The schedule counts from 2026-01-15T12:00:00.000Z, when the relay was created, changed or resumed or a hold of its environment ended. Periods that began earlier do not tick.",
    });
    await running.clock.leap(22 * HOUR_MS);
    await running.drain();
    expect(await next()).toEqual({ at: "2026-01-17T09:00:00.000Z", message: "The next tick is at 2026-01-17T09:00:00.000Z." });
    expect((await running.api("GET", "/relays")).body.items[0].nextTick).toEqual(await next());
  });

  test("and after a hold, only facts about a period that ticked before it", async () => {
    await running.clock.leap(22 * HOUR_MS);
    await running.drain();
    await hold(true);
    await hold(false);
    expect((await next()).message).toMatch(
      /^The next tick is at 2026-01-17T09:00:00\.000Z\. The schedule counts from 2026-01-16T10:[^ ]+, when .+ or a hold of its environment ended\. Periods that began earlier do not tick\.$/,
    );
  });

  test("but none while paused or held", async () => {
    await running.api("POST", "/relays/nightly/pause", {});
    expect(await next()).toMatchObject({ at: null, message: expect.stringMatching(/^The relay is paused, so no tick is recorded/) });
    await hold(true);
    expect(await next()).toMatchObject({ at: null, message: expect.stringMatching(/^The environment is on hold, so no tick is recorded/) });
  });

  test("but a receiver reports none", async () => {
    await saveRelay(running, receiverDefinition({}));
    expect((await running.api("GET", "/relays/orders")).body.relay).not.toHaveProperty("nextTick");
  });
});
