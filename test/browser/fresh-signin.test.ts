/** Tests a browser without storage: it opens the environment that has relays, and its search says what another environment has. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Page } from "playwright-core";
import { systemClock } from "../../src/base/clock.ts";
import { listen, openDashboard, startBrowser } from "../kit/browser.ts";
import { putEvents } from "../kit/event-flow.ts";
import { HOOK_SECRET, receiverDefinition } from "../kit/relay-definition.ts";
import { APP } from "../kit/running-service.ts";

const stack = new AsyncDisposableStack();
const dashboard = stack.use(await openDashboard({ config: { mode: "server" }, environments: ["development", "production"] }));
const { page, running, complaints } = dashboard;
afterAll(() => stack.disposeAsync());

const EMAIL = "owner@example.com";
const PASSWORD = "a long enough password";

let fresh: Page;

beforeAll(async () => {
  await page.getByLabel("E-mail").fill(EMAIL);
  await page.getByLabel("Password").fill(PASSWORD);
  await page.getByRole("button", { name: "Create the owner and sign in" }).click();
  await page.waitForURL(/\/development\/home$/);
  const definition = receiverDefinition({ map: { event_id: "id", person_email: "email" }, actions: [{ type: "grant_credits", amount: 1 }] });
  await running.api("POST", "/relays", { definition, secret: HOOK_SECRET }, "production");
  await putEvents(running, ["one"], { nowMs: systemClock.now(), email: "carol@example.com" });
  await running.drain();
  fresh = await (await startBrowser(stack)).newPage();
  complaints.push(...listen(fresh));
});

test("a sign-in without storage opens production, which is healthy and has the relays", async () => {
  await fresh.goto(running.service.url);
  await fresh.getByLabel("E-mail").fill(EMAIL);
  await fresh.getByLabel("Password").fill(PASSWORD);
  await fresh.getByRole("button", { name: "Sign in", exact: true }).click();
  await fresh.waitForURL(/\/(development|production)\/home$/);
  expect(new URL(fresh.url()).pathname).toBe(`/apps/${APP}/production/home`);
});

test("a link to another environment is the place that the next visit opens", async () => {
  await fresh.goto(`${running.service.url}/apps/${APP}/development/people`);
  await fresh.getByRole("heading", { name: "People", exact: true }).waitFor();
  await fresh.goto(running.service.url);
  await fresh.waitForURL(/\/development\/home$/);
});

test("a search that finds nothing here says what production has, and Enter opens it", async () => {
  await fresh.goto(`${running.service.url}/apps/${APP}/development/people`);
  await fresh.getByRole("heading", { name: "People", exact: true }).waitFor();
  await fresh.keyboard.press("Control+k");
  await fresh.getByRole("combobox", { name: "Find anything" }).fill("carol@");
  const found = fresh.getByRole("option", { selected: true });
  await found.getByText("Also in production: 1 person", { exact: true }).waitFor();
  await fresh.keyboard.press("Enter");
  await fresh.waitForURL(/\/production\/people\/per_/);
  await fresh.keyboard.press("Control+k");
  await fresh.getByRole("combobox", { name: "Find anything" }).fill("carol@");
  await found.getByText("Person", { exact: true }).waitFor();
  await fresh.keyboard.press("Escape");
});

test("the pages violate no content policy and log no error", () => {
  expect(complaints).toEqual([]);
});
