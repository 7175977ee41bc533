/** Tests the search field and its shortcuts, the time zone of every time, and the tab's title and icon. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { systemClock } from "../../src/base/clock.ts";
import { findBarriers } from "../kit/axe.ts";
import { openDashboard } from "../kit/browser.ts";
import { putEvents, WRITE } from "../kit/event-flow.ts";
import { HOOK_SECRET, receiverDefinition } from "../kit/relay-definition.ts";
import { APP } from "../kit/running-service.ts";

const dashboard = await openDashboard({
  config: { mode: "server" },
  environments: ["development", "production"],
  timeZone: "Europe/Berlin",
});
const { page, running, complaints } = dashboard;
afterAll(() => dashboard[Symbol.asyncDispose]());

const url = (path: string, environment = "production") => `${running.service.url}/apps/${APP}/${environment}/${path}`;
const definition = receiverDefinition({ map: { event_id: "id", person_email: "email" }, actions: [{ ...WRITE, collection: "invoices" }] });
const field = page.getByRole("combobox", { name: "Find anything" });
const chosen = page.getByRole("option", { selected: true });
let eventId = "";
let recordId = "";

beforeAll(async () => {
  await page.getByLabel("E-mail").fill("owner@example.com");
  await page.getByLabel("Password").fill("a long enough password");
  await page.getByRole("button", { name: "Create the owner and sign in" }).click();
  await page.waitForURL(/home$/);
  const fields = { order: { type: "text" } };
  await running.api("POST", "/relays", { definition, secret: HOOK_SECRET }, "production");
  [eventId = ""] = await putEvents(running, ["inv_1"], { nowMs: systemClock.now(), email: "carol@example.com" });
  await running.drain();
  await running.api("POST", "/collections", { name: "notes", kind: "shared", fields }, "production");
  await running.api("PUT", "/products/lamp", { title: "A lamp that is bought once" }, "production");
  recordId = (await running.api("POST", "/collections/notes/records", { data: { order: "1" } }, "production")).body.record.id;
  await page.goto(url("home"));
  await page.getByRole("heading", { name: "Home" }).waitFor();
});

async function find(text: string): Promise<void> {
  await page.keyboard.press("Control+k");
  await field.waitFor();
  await field.fill(text);
}

test("some letters find a relay, a collection and a page, arrows select, and Enter opens", async () => {
  await find("ord");
  await chosen.getByText("orders").waitFor();
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/relays\/orders$/);
  await page.waitForFunction(() => document.activeElement?.tagName === "H1");
  await find("");
  await page.keyboard.press("ArrowDown");
  await chosen.getByText("Relays").waitFor();
  await page.keyboard.press("ArrowUp");
  await page.keyboard.press("ArrowUp");
  await chosen.getByText("Sign out").waitFor();
  await field.fill("notes coll");
  await chosen.getByText("notes").waitFor();
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/records\/notes$/);
});

test("products and plans are found by name or title, and alerts by their words", async () => {
  await find("bought once");
  await chosen.getByText(/^Product · A lamp/).waitFor();
  await page.keyboard.press("Enter");
  await page.getByRole("dialog").getByText("lamp").first().waitFor();
  await page.keyboard.press("Escape");
  await find("alert invoices");
  await chosen.getByText(/^Alert · /).waitFor();
  expect(await findBarriers(page)).toEqual([]);
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/alerts\?tab=alerts$/);
});

test("an event's id, a record's id and an address open their pages", async () => {
  for (const [typed, hint, address] of [
    [eventId, "Event", new RegExp(`/events/${eventId}$`)],
    [recordId, "Record of notes", new RegExp(`/records/notes/${recordId}$`)],
    ["carol@", "Person", /per_/],
  ] as const) {
    await find(typed);
    await chosen.getByText(hint, { exact: true }).waitFor();
    await page.keyboard.press("Enter");
    await page.waitForURL(address);
  }
});

test("actions are found by their effect, and unknown text is searched among events", async () => {
  await find("replay dead");
  await page.keyboard.press("Enter");
  await page.waitForURL(/events\?state=dead$/);
  await find("cs_live_nothing");
  await chosen.getByText("Events with “cs_live_nothing”").waitFor();
  await page.keyboard.press("Enter");
  await page.waitForURL(/events\?q=cs_live_nothing$/);
  await find("switch dev");
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/development\/home$/);
});

test("Escape closes the field and returns the focus, also to a field in use", async () => {
  await page.goto(url("events"));
  const search = page.getByLabel("Find text or an event id");
  await search.fill("half a wo");
  await page.keyboard.press("Control+k");
  await field.waitFor();
  await page.keyboard.press("Escape");
  await field.waitFor({ state: "detached" });
  await page.keyboard.type("rd");
  expect(await search.inputValue()).toBe("half a word");
});

test("every time uses this machine's zone or UTC as chosen, with both in its tooltip", async () => {
  await page.goto(url(`events/${eventId}`));
  const time = page.locator("main time").first();
  expect(await time.getAttribute("title")).toMatch(/\d\d:\d\d:\d\d (CET|CEST|GMT\+[12]) · \d\d:\d\d:\d\d UTC$/);
  await page.getByRole("button", { name: /: show times in UTC$/ }).click();
  await page.waitForFunction(() => /UTC · \d\d:\d\d:\d\d (CET|CEST|GMT)/.test(document.querySelector("main time")?.getAttribute("title") ?? ""));
  await page.reload();
  await page.getByRole("button", { name: /^UTC: show times in/ }).click();
});

test("the tab's title and icon show how many items need attention", async () => {
  await page.waitForFunction(() => document.title.startsWith("(1) "));
  const icon = await page.locator('link[rel="icon"]').getAttribute("href");
  expect(icon).toBe("/icon-1.svg");
  const answer = await fetch(running.service.url + icon);
  expect([answer.headers.get("content-type"), (await answer.text()).includes(">1</text>")]).toEqual(["image/svg+xml", true]);
});

test("a failed search is not shown as an empty result", async () => {
  let isAway = true;
  await page.route("**/find?**", (route) =>
    isAway ? route.fulfill({ status: 503, json: { code: "not_recorded", message: "It is away." } }) : route.fallback(),
  );
  await page.goto(url("home"));
  await page.getByRole("heading", { name: "Home" }).waitFor();
  await find("carol@example");
  await page.getByText("Relay could not search people, events and records. It is away.").waitFor();
  isAway = false;
  await field.fill("carol@example.com");
  await chosen.getByText("Person").waitFor();
  await page.keyboard.press("Escape");
});

test("the pages violate no content policy and log no error", () => {
  expect(complaints).toEqual([]);
});
