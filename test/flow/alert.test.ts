/** Tests an owner's alerts in the running service: their causes, the switch for each, and the notice when a problem ends. */

import { describe, expect, test } from "bun:test";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../src/base/limit.ts";
import { BROKEN, FakeCaller, OK } from "../kit/fake-caller.ts";
import { makeOrders, receiverDefinition, saveRelay, signedCall } from "../kit/relay-definition.ts";
import { type RunningService, startRunningService } from "../kit/running-service.ts";

const STRANGER = "nobodysSecretOfTwentyFour1";

let serial = 0;

async function start(config = {}): Promise<RunningService> {
  const running = await startRunningService({ config });
  await makeOrders(running);
  await saveRelay(running, receiverDefinition({}));
  return running;
}

async function send(running: RunningService, secret?: string, name = "orders"): Promise<number> {
  return (await running.hook(name, signedCall({ id: `call-${++serial}` }, secret))).status;
}

async function set(running: RunningService, change: object): Promise<void> {
  const { version } = (await running.api("GET", "/settings")).body.settings;
  expect((await running.api("PUT", "/settings", { version, ...change })).status).toBe(200);
}

/** Lists the codes of the alerts, oldest first, and of the current problems. */
async function told(running: RunningService): Promise<{ alerts: string[]; problems: string[] }> {
  const codes = async (path: string): Promise<string[]> => {
    const { body } = await running.api("GET", path);
    return body.items.map((item: { code: string }) => item.code).reverse();
  };
  return { alerts: await codes("/alerts"), problems: await codes("/problems") };
}

async function refuseForLong(running: RunningService): Promise<void> {
  for (let call = 0; call < 6; call++) {
    expect(await send(running, STRANGER)).toBe(401);
    await running.clock.advance(4 * MINUTE_MS);
  }
}

/** Sends an event every six hours for eight days, and then none. */
async function fallSilent(running: RunningService): Promise<void> {
  for (let event = 0; event < 32; event++) {
    expect(await send(running)).toBe(200);
    running.clock.jump(6 * HOUR_MS);
  }
  running.clock.jump(DAY_MS);
  // The service trusts a changed clock again after an hour.
  await running.clock.advance(HOUR_MS + 10 * MINUTE_MS);
}

describe("an environment on hold", () => {
  test("answers 200 and queues events, drops those older than 30 days with a log line and an alert, and runs the rest in order on release", async () => {
    await using running = await start();
    await set(running, { held: true });
    for (let call = 0; call < 3; call++) expect(await send(running)).toBe(200);
    running.clock.jump(29 * DAY_MS);
    const kept = [await send(running), await send(running)];
    expect(kept).toEqual([200, 200]);
    running.clock.jump(2 * DAY_MS);
    await running.clock.advance(3 * HOUR_MS);
    const waiting = await running.rows<{ state: string; attempts: number }>("SELECT state, attempts FROM event ORDER BY seq");
    expect(waiting).toEqual(Array(2).fill({ state: "queued", attempts: 0 }));
    const { body } = await running.api("GET", "/alerts");
    expect(body.items).toMatchObject([{ code: "events_dropped", count: 3 }]);
    expect(running.logged.filter((line) => line.includes("dropped after 30 days"))).toHaveLength(1);
    await set(running, { held: false });
    await running.drain();
    const written = await running.rows<{ data: string }>("SELECT data FROM record ORDER BY seq");
    expect(written.map(({ data }) => JSON.parse(data).order)).toEqual([`call-${serial - 1}`, `call-${serial}`]);
  });

  test("runs no retry, and a record change and a new event wait too", async () => {
    const caller = new FakeCaller(BROKEN);
    await using running = await startRunningService({ ports: { caller } });
    await makeOrders(running);
    const actions = [{ type: "call_url", url: "https://example.com/notice" }];
    await saveRelay(running, receiverDefinition({ actions }));
    const trigger = { kind: "data_change", collection: "orders", on: ["created"] };
    const definition = { name: "watcher", trigger, actions };
    expect((await running.api("POST", "/relays", { definition })).status).toBe(201);
    await send(running);
    await running.drain();
    await set(running, { held: true });
    await send(running);
    await running.api("POST", "/collections/orders/records", { data: { order: "by hand" } });
    await running.clock.advance(HOUR_MS);
    expect(caller.requests).toHaveLength(1);
    caller.reply = () => OK;
    await set(running, { held: false });
    await running.drain();
    const events = await running.rows("SELECT state, attempts FROM event ORDER BY seq");
    expect(events).toEqual([2, 1, 1].map((attempts) => ({ state: "done", attempts })));
    expect(new Set(caller.ids).size).toBe(3);
  });

  test("with events_dropped switched off sends no alert and still logs the drop", async () => {
    await using running = await start();
    await set(running, { held: true, alerts: { events_dropped: false } });
    await send(running);
    running.clock.jump(31 * DAY_MS);
    await running.clock.advance(3 * HOUR_MS);
    expect(await running.rows("SELECT seq FROM event")).toEqual([]);
    expect(await told(running)).toEqual({ alerts: [], problems: ["environment_held"] });
    expect(running.logged.filter((line) => line.includes("dropped after 30 days"))).toHaveLength(1);
  });
});

describe("a relay that never verified a request", () => {
  test("is a problem with one alert, and the first verified request ends both with a notice and leaves the missing events", async () => {
    await using running = await start();
    await refuseForLong(running);
    expect(await told(running)).toEqual({ alerts: ["never_verified"], problems: ["never_verified"] });
    expect(await send(running)).toBe(200);
    await running.clock.advance(MINUTE_MS);
    expect(await told(running)).toEqual({ alerts: ["never_verified", "relay_recovered"], problems: ["requests_rejected"] });
  });
});

describe("a relay that rejects every request after a verified one", () => {
  test("is a problem with one alert, and the next verified request ends both with a notice and leaves the missing events", async () => {
    await using running = await start();
    expect(await send(running)).toBe(200);
    await refuseForLong(running);
    expect(await told(running)).toEqual({ alerts: ["relay_refusing"], problems: ["relay_refusing"] });
    expect(await send(running)).toBe(200);
    await running.clock.advance(MINUTE_MS);
    expect(await told(running)).toEqual({ alerts: ["relay_refusing", "relay_recovered"], problems: ["requests_rejected"] });
  });

  test("with its alert switched off is only a problem, and its end sends no notice", async () => {
    await using running = await start();
    await set(running, { alerts: { relay_refusing: false } });
    expect(await send(running)).toBe(200);
    await refuseForLong(running);
    expect(await told(running)).toEqual({ alerts: [], problems: ["relay_refusing"] });
    expect(await send(running)).toBe(200);
    await running.clock.advance(MINUTE_MS);
    expect(await told(running)).toEqual({ alerts: [], problems: ["requests_rejected"] });
  });
});

describe("a relay that went silent", () => {
  test("is a problem with one alert, also after a restart, and the next event ends both with a notice", async () => {
    await using running = await start();
    await fallSilent(running);
    expect(await told(running)).toEqual({ alerts: ["relay_silent"], problems: ["relay_silent"] });
    await running.restart();
    await running.clock.advance(2 * HOUR_MS);
    expect(await told(running)).toEqual({ alerts: ["relay_silent"], problems: ["relay_silent"] });
    expect(await send(running)).toBe(200);
    await running.clock.advance(MINUTE_MS);
    expect(await told(running)).toEqual({ alerts: ["relay_silent", "relay_recovered"], problems: [] });
  });
});

describe("an event that becomes dead", () => {
  const unknown = receiverDefinition({
    name: "granter",
    map: { event_id: "id", person_email: "buyer" },
    actions: [{ type: "grant_access", entitlement: "access:nothing" }],
  });
  const die = async (running: RunningService): Promise<void> => {
    const event = { id: `dead-${++serial}`, buyer: "ada@example.com" };
    expect((await running.hook("granter", signedCall(event))).status).toBe(200);
    await running.drain();
  };

  test("sends one alert and mail with a count, however many die within the hour", async () => {
    await using running = await start({ mode: "local" });
    await saveRelay(running, unknown);
    for (let event = 0; event < 20; event++) await die(running);
    await running.clock.advance(3 * MINUTE_MS);
    for (let event = 0; event < 20; event++) await die(running);
    await running.clock.advance(30 * MINUTE_MS);
    const { body } = await running.api("GET", "/alerts");
    expect(body.items).toMatchObject([{ code: "relay_failed", count: 40 }]);
    expect(await running.rows("SELECT recipient, state FROM email WHERE kind = 'alert'")).toEqual([
      { recipient: "owner@localhost", state: "mailbox" },
    ]);
  });

  test("with its alert switched off sends neither alert nor mail", async () => {
    await using running = await start({ mode: "local" });
    await saveRelay(running, unknown);
    await set(running, { alerts: { relay_failed: false } });
    await die(running);
    await running.clock.advance(3 * MINUTE_MS);
    expect(await running.rows("SELECT state FROM event")).toEqual([{ state: "dead" }]);
    expect(await told(running)).toEqual({ alerts: [], problems: ["relay_failed"] });
    expect(await running.rows("SELECT id FROM email")).toEqual([]);
  });
});
