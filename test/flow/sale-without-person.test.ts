/** Tests payments without a person: a sale or refund whose event found no person. The event ends `failed`, and the owner gets an alert. */
import { afterEach, beforeEach, expect, spyOn, test } from "bun:test";
import { MINUTE_MS } from "../../src/base/limit.ts";
import * as alertRow from "../../src/platform/audit/alert.ts";
import { editRelay, replay, sendEvent, showEvent } from "../kit/event-flow.ts";
import { makeOrders, receiverDefinition, saveRelay } from "../kit/relay-definition.ts";
import { type RunningService, startRunningService } from "../kit/running-service.ts";

const MAP = { event_id: "id", event_type: "type", person_token: "customer" };
const SELL = { type: "fulfil_product", product: "book", ref: "{{mapped.event_id}}" };
/** Lists the columns that a copy of an event takes from it. */
const FILLED = "environment_id, name_key, relay_key, trigger, state, created_at, payload";
const GIVE = { type: "grant_credits", amount: 5 };
const NOTE = { type: "write_record", collection: "orders", to: "person", data: { order: "{{mapped.event_id}}" } };

let running: RunningService;
let ada: string;

beforeEach(async () => {
  running = await startRunningService();
  await makeOrders(running);
  ada = (await running.api("POST", "/persons", { email: "ada@example.com" })).body.person.id;
  await running.api("PUT", `/persons/${ada}/tokens`, { token: "ctm_ada" });
  await saveRelay(running, receiverDefinition({ map: MAP, actions: [SELL] }));
  await running.api("PUT", "/products/book", { soldThrough: { kind: "relay", relay: "orders" } });
  await send("paid", "ctm_ada");
});
afterEach(() => running[Symbol.asyncDispose]());

async function send(id: string, customer: string): Promise<string> {
  const event = await sendEvent(running, id, { customer });
  await running.drain();
  return event;
}

const needs = async () =>
  (await running.api("GET", "/overview")).body.needs as { code: string; target: string; message: string; alert: string | null }[];
const alerts = async () => (await running.api("GET", "/alerts?open=true")).body.items;

test("the first one raises an alert that names the event and the key, and marks the relay's health", async () => {
  expect(await needs()).toEqual([]);
  const event = await send("refund", "ctm_nobody");
  expect(await showEvent(running, event)).toMatchObject({ state: "failed", reason: "person_not_found" });
  expect(await needs()).toMatchObject([
    {
      code: "sale_nobody",
      target: "relay:orders",
      message: `The event ${event} of orders found no person, so it granted and revoked nothing: person_token resolved to no person, so no action ran. See relay events show ${event}.`,
    },
  ]);
  const { relay, health } = (await running.api("GET", "/relays/orders")).body;
  expect([relay.name, health.state, health.code]).toEqual(["orders", "attention", "sale_nobody"]);
});

test("several in a day are one alert with a count, and no sentence contains the value", async () => {
  const [first] = [await send("one", "ctm_nobody"), await send("paid-2", "ctm_ada")];
  await running.clock.advance(60 * MINUTE_MS);
  const last = await send("two", "ctm_other");
  const items = await alerts();
  expect(items).toMatchObject([{ code: "sale_nobody", count: 2 }]);
  expect(items[0].message).toContain("2 events of orders found no person since 2026-01-15T12:00:00.000Z");
  expect(items[0].message).toContain(`the last one ${last}`);
  expect(JSON.stringify(items)).not.toContain("ctm_");
  expect(first).not.toBe(last);
});

test("those of one transaction raise one alert, with their count and the last event", async () => {
  expect((await running.api("POST", "/relays/orders/pause")).status).toBe(200);
  const sent: string[] = [];
  for (let event = 0; event < 5; event++) sent.push(await send(`refund-${event}`, "ctm_nobody"));
  using raises = spyOn(alertRow, "raiseAlert");
  expect((await running.api("POST", "/relays/orders/resume")).status).toBe(200);
  await running.drain();
  expect(raises.mock.calls.map(([, { code, count }]) => [code, count])).toEqual([["sale_nobody", 5]]);
  const items = await alerts();
  expect(items).toMatchObject([{ code: "sale_nobody", count: 5 }]);
  expect(items[0].message).toContain(`5 events of orders found no person since 2026-01-15T12:00:00.000Z`);
  expect(items[0].message).toContain(`the last one ${sent.at(-1)}: person_token resolved to no person`);
});

test("the alert resolves when a replay finds the person", async () => {
  const event = await send("refund", "ctm_late");
  await running.clock.advance(2 * MINUTE_MS);
  expect(await alerts()).toHaveLength(1);
  await running.api("PUT", `/persons/${ada}/tokens`, { token: "ctm_late" });
  expect((await replay(running, event)).status).toBe(202);
  await running.drain();
  expect(await showEvent(running, event)).toMatchObject({ state: "done" });
  await running.clock.advance(2 * MINUTE_MS);
  expect([await alerts(), await needs()]).toEqual([[], []]);
});

test.each([1_200, 12_000])("the alert resolves also with %i failed events of another cause in the store", async (many) => {
  const event = await send("refund", "ctm_late");
  await running.direct.run(
    `WITH RECURSIVE more (number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM more WHERE number < ${many})
     INSERT INTO event (${FILLED}, seq, reason) SELECT ${FILLED}, seq - 10 - number, 'person_erased' FROM event, more WHERE state = 'failed'`,
  );
  await running.api("PUT", `/persons/${ada}/tokens`, { token: "ctm_late" });
  await running.clock.advance(2 * MINUTE_MS);
  expect(await alerts()).toHaveLength(1);
  expect((await replay(running, event)).status).toBe(202);
  await running.drain();
  await running.clock.advance(2 * MINUTE_MS);
  expect([await alerts(), await needs()]).toEqual([[], []]);
});

test("an owner can mark it as resolved, until the next event", async () => {
  await send("refund", "ctm_nobody");
  const [need] = await needs();
  expect((await running.api("POST", `/alerts/${need?.alert}/resolve`)).status).toBe(200);
  await running.clock.advance(2 * MINUTE_MS);
  expect(await needs()).toEqual([]);
  await send("refund-2", "ctm_nobody");
  expect(await needs()).toMatchObject([{ code: "sale_nobody" }]);
});

test("a relay that sells nothing raises no alert, and neither does a disabled alert", async () => {
  await editRelay(running, receiverDefinition({ map: MAP, actions: [NOTE, GIVE] }) as never);
  await send("note", "ctm_nobody");
  expect(await needs()).toEqual([]);
  await editRelay(running, receiverDefinition({ map: MAP, actions: [SELL] }) as never);
  const { settings } = (await running.api("GET", "/settings")).body;
  expect((await running.api("PUT", "/settings", { version: settings.version, alerts: { sale_nobody: false } })).status).toBe(200);
  await send("refund", "ctm_nobody");
  expect(await needs()).toEqual([]);
});

test("if every event finds no person, only relay_nobody is reported", async () => {
  for (let event = 0; event < 4; event++) {
    await send(`refund-${event}`, "ctm_nobody");
    await running.clock.advance(25 * MINUTE_MS);
  }
  expect((await needs()).map(({ code }) => code)).toEqual(["relay_nobody"]);
});
