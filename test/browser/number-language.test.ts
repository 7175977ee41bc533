/**
 * Tests counts and prices in a browser with another number format. The page and the service write English, so "1,204" and "1.204" must never occur on
 * one page. Times use the reader's format.
 */
import { afterAll, expect, test } from "bun:test";
import { openDashboard } from "../kit/browser.ts";
import { putEvents, WRITE } from "../kit/event-flow.ts";
import { receiverDefinition } from "../kit/relay-definition.ts";

const dashboard = await openDashboard({ locale: "de-DE" });
const { page, running, complaints, at } = dashboard;
afterAll(() => dashboard[Symbol.asyncDispose]());
const api = (method: string, path: string, body: unknown) => running.api(method, path, body, "local");

test("a count, the same count in a sentence, and a price use English format", async () => {
  const definition = receiverDefinition({ map: { event_id: "id" }, actions: [{ ...WRITE, collection: "nowhere" }] });
  expect((await api("POST", "/relays", { definition })).status).toBe(201);
  await putEvents(
    running,
    Array.from({ length: 1_204 }, (_, nth) => `evt-${nth}`),
  );
  await running.drain();
  await page.goto(at("home"));
  await page.getByRole("heading", { name: "orders: 1,204 events are dead" }).waitFor();
  await page.goto(at("relays/orders"));
  await page.getByText(/^1,204 events are dead since/).waitFor();
  expect(await page.evaluate(() => (1_204.5).toLocaleString())).toBe("1.204,5");
  await api("PUT", "/products/premium", { soldThrough: { kind: "payment_link", url: "https://pay.example.com/premium" } });
  const { person } = (await api("POST", "/persons", { email: "ada@example.com" })).body;
  await api("POST", "/receipts", { ref: "pay_1", person: person.id, product: "premium", amountMinor: 129_950, currency: "EUR" });
  await page.goto(at("catalog?tab=receipts"));
  await page.getByText("€1,299.50").waitFor();
  expect(complaints).toEqual([]);
});
