/** Tests what the rows of people say, and the times of a reader whose language uses a 12-hour clock. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { systemClock } from "../../src/base/clock.ts";
import { openDashboard } from "../kit/browser.ts";
import { putEvents, WRITE } from "../kit/event-flow.ts";
import { receiverDefinition } from "../kit/relay-definition.ts";

const dashboard = await openDashboard({ locale: "en-US", timeZone: "America/New_York" });
const { page, running, complaints, at } = dashboard;
afterAll(() => dashboard[Symbol.asyncDispose]());

const TWELVE_HOURS = /\d\s?[AP]M\b/;

async function send(method: string, path: string, body: object) {
  const answer = await running.api(method, path, body, "local");
  if (answer.status >= 300) throw new Error(`${path}: ${JSON.stringify(answer.body)}`);
  return answer.body;
}

beforeAll(async () => {
  await send("PUT", "/plans/free", { default: true });
  await send("PUT", "/plans/team", {});
  for (const slug of ["forum", "lounge", "studio"]) await send("PUT", `/access/${slug}`, { title: slug });
  await send("PUT", "/products/atlas", {});
  const { person } = await send("POST", "/persons", { email: "ada@example.com" });
  await send("POST", "/persons", { email: "bob@example.com" });
  await send("POST", "/receipts", { ref: "pay_1", person: person.id, product: "atlas" });
  await send("POST", "/receipts", { ref: "pay_2", person: person.id, plan: "team" });
  for (const slug of ["forum", "lounge", "studio"]) await send("POST", `/persons/${person.id}/grants`, { entitlement: `access:${slug}` });
  await send("POST", "/collections", { name: "orders", kind: "shared", fields: { order: { type: "text" } } });
  await send("POST", "/relays", { definition: receiverDefinition({ map: { event_id: "id" }, actions: [WRITE] }) });
  await putEvents(running, ["one"], { nowMs: systemClock.now() });
  await running.drain();
});

test("a person's row names the plan and the first keys", async () => {
  await page.goto(at("people"));
  const row = page.getByRole("row").filter({ hasText: "ada@example.com" });
  await row.getByText("Has access").waitFor();
  await row.getByText("team, forum, lounge +2", { exact: true }).waitFor();
  await page.getByRole("row").filter({ hasText: "bob@example.com" }).getByText("None").waitFor();
});

test("both ends of a chart have a date and a time of 24 hours", async () => {
  await page.goto(at("events"));
  const ends = page.locator(".histogram-ends span");
  await ends.first().waitFor();
  const [first = "", , last = ""] = await ends.allInnerTexts();
  for (const end of [first, last]) expect(end).toMatch(/^[A-Z][a-z]{2} \d{1,2}, ([01]\d|2[0-3]):\d\d$/);
  expect(await page.locator(".histogram figcaption").innerText()).toStartWith(`${first} to ${last}: `);
});

test.each(["events", "relays/orders", "people", "audit"])("no time on %s has AM or PM, in its text or in its title", async (path) => {
  await page.goto(at(path));
  await page.locator("main time").first().waitFor();
  const times = await page.locator("main time").evaluateAll((found) => found.map((one) => `${one.textContent} ${one.getAttribute("title")}`));
  expect(times.filter((time) => TWELVE_HOURS.test(time))).toEqual([]);
  expect(await page.locator("main").innerText()).not.toMatch(TWELVE_HOURS);
});

test("the pages violate no content policy and log no error", () => {
  expect(complaints).toEqual([]);
});
