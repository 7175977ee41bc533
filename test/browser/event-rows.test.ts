/** Tests the rows of the event list: what happened, whose event it is, why it failed, and that a sender's text stays text. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { openDashboard } from "../kit/browser.ts";
import { sendSigned } from "../kit/browser-sender.ts";
import { shoot } from "../kit/browser-shots.ts";

const dashboard = await openDashboard();
const { page, running, complaints, at } = dashboard;
afterAll(() => dashboard[Symbol.asyncDispose]());

const HOSTILE = `<img src=x onerror="globalThis.broken=1">\u202egnp.exe ${"long".repeat(5_000)}`;

beforeAll(async () => {
  const define = (name: string, collection: string) => ({
    name,
    trigger: {
      kind: "receiver",
      verify: { scheme: "hooks" },
      map: { event_id: "id", event_type: "type", person_email: "email", order: "order", amount: "amount" },
    },
    actions: collection === "" ? [{ type: "grant_credits", amount: 1 }] : [{ type: "write_record", collection, data: { text: "x" } }],
  });
  const send = async (name: string, collection: string, bodies: object[]) => {
    const made = await running.api("POST", "/relays", { definition: define(name, collection) }, "local");
    for (const [number, body] of bodies.entries()) {
      const text = JSON.stringify({ id: `${name}_${number}`, ...body });
      expect((await sendSigned(running, name, made.body.receiverSecret, `${name}_${number}`, text)).status).toBe(200);
    }
  };
  const paid = (number: number) => ({ type: "checkout.session.completed", email: "carol@example.com", order: `cs_live_be0${number}`, amount: 9900 });
  await send(
    "checkout",
    "",
    Array.from({ length: 9 }, (_, number) => paid(number)),
  );
  await send("broken", "nowhere", [paid(1), paid(2)]);
  await send("hostile", "", [{ type: HOSTILE, email: "carol@example.com", order: HOSTILE, amount: 1 }]);
  await running.drain();
});

test("a row shows the event's type, its first values and its person", async () => {
  await page.goto(at("events?relay=checkout"));
  const row = page.locator("tr", { has: page.locator("a[data-row]") }).first();
  await row.getByText("checkout.session.completed").waitFor();
  const text = (await row.innerText()).replaceAll(/\s+/g, " ");
  expect(text).toContain("order cs_live_be08 · amount 9900");
  expect(text).toContain("carol@example.com");
  expect((await row.boundingBox())?.height).toBeLessThanOrEqual(38);
});

test("a failed event shows the reason in a second line", async () => {
  await page.goto(at("events?state=dead"));
  await page.locator(".event-why", { hasText: "collection missing" }).first().waitFor();
  expect(await page.locator(".event-why").count()).toBe(2);
});

test("a sender's text is truncated, stays text and cannot reverse its direction", async () => {
  await page.goto(at("events"));
  await page.getByText("<img src=x onerror=").first().waitFor();
  await shoot(page, "rows");
  expect(await page.locator("main img, main [onerror]").count()).toBe(0);
  expect(await page.evaluate(() => (globalThis as { broken?: number }).broken ?? null)).toBeNull();
  expect(await page.locator("main").textContent()).not.toContain("\u202e");
  expect(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true);
  await page.setViewportSize({ width: 360, height: 800 });
  expect(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true);
  await page.setViewportSize({ width: 1280, height: 860 });
});

test("a row's link names the event and its state, and contains the visible words", async () => {
  await page.goto(at("events?state=dead"));
  await page
    .getByRole("link", { name: /^checkout\.session\.completed event evt_\S+ of broken, dead$/ })
    .first()
    .waitFor();
});

test("the states are tabs with counts for the current filter, and the counts follow new events", async () => {
  await page.goto(at("events"));
  const tabs = page.getByRole("group", { name: "State" });
  const tab = (name: string) => tabs.getByRole("button", { name, exact: true });
  await tab("Done 10").waitFor();
  await tab("Dead 2").click();
  await page.waitForURL(/state=dead/);
  await tabs.locator("button[aria-pressed=true]", { hasText: "Dead" }).waitFor();
  await page.waitForFunction(() => document.querySelectorAll("a[data-row]").length === 2);
  await page.getByLabel("Relay", { exact: true }).selectOption("checkout");
  await tab("Done 9").waitFor();
  await tab("Dead 0").waitFor();
  await page.getByRole("heading", { name: "No event matches" }).waitFor();
  await page.goto(at("events"));
  await shoot(page, "tabs");
  const [first] = (await running.api("GET", "/events?state=dead", undefined, "local")).body.items;
  expect((await running.api("POST", "/collections", { name: "nowhere", kind: "shared", fields: { text: { type: "text" } } }, "local")).status).toBe(
    201,
  );
  expect((await running.api("POST", `/events/${first.id}/replay`, {}, "local")).status).toBe(202);
  await tab("Dead 1").waitFor();
  await tab("Done 11").waitFor();
});

test("the pages violate no content policy and log no error", () => {
  expect(complaints).toEqual([]);
});
