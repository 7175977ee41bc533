/**
 * Tests Home during an incident: 200 events of production are dead because a collection is missing. After sign-in and without a click, an owner sees
 * the place, the relay, the start, the cause, and whether it persists. One button replays the events.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { systemClock } from "../../src/base/clock.ts";
import { openDashboard } from "../kit/browser.ts";
import { shoot } from "../kit/browser-shots.ts";
import { putEvents, WRITE } from "../kit/event-flow.ts";
import { HOOK_SECRET, receiverDefinition } from "../kit/relay-definition.ts";
import { APP } from "../kit/running-service.ts";

const dashboard = await openDashboard({ config: { mode: "server" }, environments: ["development", "production"] });
const { page, running, complaints } = dashboard;
afterAll(() => dashboard[Symbol.asyncDispose]());

const url = (path: string, environment = "production") => `${running.service.url}/apps/${APP}/${environment}/${path}`;
const definition = receiverDefinition({ map: { event_id: "id" }, actions: [{ ...WRITE, collection: "invoices" }] });

beforeAll(async () => {
  await page.getByLabel("E-mail").fill("owner@example.com");
  await page.getByLabel("Password").fill("a long enough password");
  await page.getByRole("button", { name: "Create the owner and sign in" }).click();
});

test("on an empty server, the first steps are listed and check themselves off", async () => {
  await page.waitForURL(/\/development\/home$/);
  await page.getByRole("heading", { name: "No relays yet" }).waitFor();
  // The test's own key completes this step.
  expect(await page.locator(".first-step.done").allInnerTexts()).toEqual([expect.stringContaining("Connect your app and server")]);
  await running.api("POST", "/relays", { definition, secret: HOOK_SECRET });
  await page.getByRole("heading", { name: "Create a relay (done)" }).waitFor();
  expect(await page.locator(".first-step.done").count()).toBe(3);
  await page.getByRole("link", { name: "Send a test event" }).waitFor();
});

test("after sign-in, it shows the place, the relay, the start, the cause, and that it persists", async () => {
  await running.api("DELETE", "/relays/orders");
  expect((await running.api("POST", "/relays", { definition, secret: HOOK_SECRET }, "production")).status).toBe(201);
  await putEvents(
    running,
    Array.from({ length: 200 }, (_, at) => `inv_${at}`),
    { nowMs: systemClock.now() },
  );
  await running.drain();
  await page.goto(`${running.service.url}/`);
  await page.waitForURL(/\/production\/home$/);
  const needs = page.getByRole("region", { name: "Needs attention" });
  await needs.getByRole("heading", { name: "orders: 200 events are dead" }).waitFor();
  const said = await needs.innerText();
  expect(said).toContain("in production");
  expect(said).toMatch(/since \d\d:\d\d/);
  expect(said).toMatch(/Write a record: collection names invoices, which does not exist in this environment/);
  expect(said).toContain("create it in Records, or name one that exists");
  expect(said).toContain("Still exists. There is still no collection invoices.");
  expect(said).toContain("No backup");
  await page.waitForFunction(() => document.title === "(1) Home · Relays");
  await page
    .getByRole("region", { name: "Arrived in the last 24 hours" })
    .getByText(/: 200 dead$/)
    .waitFor();
  await page.getByRole("link", { name: "200 Dead" }).waitFor();
});

test("every environment with a problem is marked in the switch, with a word for screen readers", async () => {
  await page.goto(url("home", "development"));
  await page.getByRole("button", { name: /Development: app and environment, 1 needs attention in other environments, change/ }).click();
  await page.getByRole("link", { name: "Production 1 needs attention" }).click();
  await page.waitForURL(/\/production\/home$/);
});

test("after the collection was created it says so, and one button replays all events", async () => {
  const fields = { order: { type: "text" } };
  await running.api("POST", "/collections", { name: "invoices", kind: "shared", fields }, "production");
  const needs = page.getByRole("region", { name: "Needs attention" });
  await needs.getByText("replaying will probably work").waitFor();
  await needs.getByRole("button", { name: "Replay 200 events…" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("200").first().waitFor();
  await dialog.getByRole("button", { name: "Replay 200 events" }).click();
  await dialog.getByText(/^Replayed 200 events|^Ended: 200 of 200/).waitFor();
  await dialog.getByRole("button", { name: "Close" }).last().click();
  await needs.getByText("200 events are dead").waitFor({ state: "detached" });
  await running.drain();
  expect(await running.rows("SELECT count(*) AS count FROM record")).toEqual([{ count: 200 }]);
});

test("a range is in the address, a selected part links to its events, and one key opens Home", async () => {
  await running.hook("orders", { body: "{}", headers: { "content-type": "application/json" } });
  await page.goto(url("home"));
  await page.getByRole("link", { name: "1 Rejected requests (0.5 %)" }).waitFor();
  await page.locator(".histogram figcaption").getByText("1 rejected").waitFor();
  expect(await page.locator(".histogram .bar-rejected").count()).toBe(1);
  await shoot(page, "home-rejected");
  await page.getByRole("navigation", { name: "Range" }).getByRole("link", { name: "7 days" }).click();
  await page.waitForURL(/\/home\?range=7d$/);
  await page.getByRole("region", { name: "Arrived in the last 7 days" }).waitFor();
  const bars = page.getByRole("region", { name: "Arrived in the last 7 days" }).locator(".histogram").getByRole("slider");
  await bars.focus();
  await page.keyboard.press("ArrowLeft");
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/events\?since=.*&until=/);
  await page.locator("[data-row]").first().waitFor();
  await page.keyboard.press("g");
  await page.keyboard.press("h");
  await page.waitForURL(/\/production\/home$/);
});

test("a hold is shown, and one button releases it", async () => {
  const { version } = (await running.api("GET", "/settings", undefined, "production")).body.settings;
  await running.api("PUT", "/settings", { version, held: true }, "production");
  await page.goto(url("home"));
  const needs = page.getByRole("region", { name: "Needs attention" });
  await needs.getByRole("heading", { name: "On hold" }).waitFor();
  await needs.getByRole("button", { name: "Release the hold" }).click();
  await needs.getByRole("heading", { name: "On hold" }).waitFor({ state: "detached" });
});

test("the pages violate no content policy and log no error", () => {
  expect(complaints).toEqual([]);
});
