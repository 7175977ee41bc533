/** Tests payments of suspended people: each is recorded and reported, never rejected, and what it bought waits for the person. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { MINUTE_MS } from "../../src/base/limit.ts";
import { type RunningService, startRunningService } from "../kit/running-service.ts";

let running: RunningService;
let ada: string;

beforeEach(async () => {
  running = await startRunningService();
  ada = (await running.api("POST", "/persons", { email: "ada@example.com" })).body.person.id;
  await running.api("PUT", "/products/book", { credits: 3 });
  await running.api("PUT", "/plans/free", { default: true });
  await running.api("PUT", "/plans/pro", {});
});
afterEach(() => running[Symbol.asyncDispose]());

const setStatus = (status: string) => running.api("PATCH", `/persons/${ada}`, { status });
const pay = (input: object) => running.api("POST", "/receipts", { person: ada, ...input });
const holds = async () => {
  const { person, credits, plan, access } = (await running.api("GET", `/persons/${ada}`)).body;
  return { status: person.status, credits, plan, granted: access.granted, grants: access.grants.length };
};
const alerts = async () => (await running.api("GET", "/alerts?open=true")).body.items;

describe("a receipt for a suspended person", () => {
  const book = { ref: "pi_1", product: "book" };
  test.each([
    ["a product's payment is stored, with its key and credits, which the person cannot use yet", [], book, { credits: 3, plan: "free", grants: 1 }],
    ["a plan's payment is stored, with its subscription", [], { ref: "in_1", plan: "pro" }, { credits: 0, plan: "pro", grants: 1 }],
    ["a refund revokes the earlier payment", [book], { ...book, kind: "refund" }, { credits: 0, plan: "free", grants: 0 }],
  ])("%s", async (_rule, before, receipt, left) => {
    for (const one of before) expect((await pay(one)).status).toBe(201);
    await setStatus("suspended");
    const { status, body } = await pay(receipt);
    expect([status, body.created]).toEqual([201, true]);
    expect(await holds()).toEqual({ status: "suspended", granted: false, ...left });
    await setStatus("active");
    expect(await holds()).toEqual({ status: "active", granted: left.grants > 0, ...left });
  });

  test("is written to the mapped collection of receipts", async () => {
    await running.api("POST", "/collections", { name: "payments", kind: "addressed", fields: { ref: { type: "text" } } });
    const { settings } = (await running.api("GET", "/settings")).body;
    const mapped = await running.api("PUT", "/settings", { version: settings.version, receipts: { collection: "payments" } });
    expect(mapped.status).toBe(200);
    await setStatus("suspended");
    expect((await pay(book)).status).toBe(201);
    const { items } = (await running.api("GET", "/collections/payments/records")).body;
    expect(items).toMatchObject([{ data: { ref: "pi_1" }, recipient: ada, by: "receipt" }]);
  });

  test("raises one alert per day with a count, until the person is active again", async () => {
    await setStatus("suspended");
    for (const ref of ["pi_1", "pi_2"]) await pay({ ...book, ref });
    expect((await pay(book)).body.created).toBe(false);
    const said = `A payment of the product book (ref pi_2) was recorded for a suspended person, who cannot use it: run relay people activate ${ada}, or refund the payment.`;
    expect(await alerts()).toMatchObject([{ code: "sale_suspended", target: `person:${ada}`, count: 2, message: said }]);
    expect((await running.api("GET", "/overview")).body.needs).toMatchObject([{ code: "sale_suspended", message: said }]);
    await running.clock.advance(2 * MINUTE_MS);
    expect(await alerts()).toHaveLength(1);
    await setStatus("active");
    await running.clock.advance(2 * MINUTE_MS);
    expect(await alerts()).toEqual([]);
  });

  test("raises no alert for a refund, and neither does an active person's payment", async () => {
    await pay(book);
    await setStatus("suspended");
    await pay({ ...book, kind: "refund" });
    expect(await alerts()).toEqual([]);
  });
});
