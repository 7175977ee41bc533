/** Tests that a button keeps the focus while it is disabled during a request, so that Enter and Tab continue from it. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { openDashboard } from "../kit/browser.ts";
import { sendSigned } from "../kit/browser-sender.ts";

const SLOW_MS = 200;
const dashboard = await openDashboard();
const { page, running, at, complaints } = dashboard;
afterAll(() => dashboard[Symbol.asyncDispose]());

const focused = (): Promise<string> => page.evaluate(() => document.activeElement?.textContent?.trim() ?? "");
const button = (name: string) => page.locator("main").getByRole("button", { name, exact: true });
let eventId = "";
let person = "";

beforeAll(async () => {
  const trigger = { kind: "receiver", verify: { scheme: "hooks" }, map: { event_id: "id", person_email: "email" } };
  const definition = { name: "orders", trigger, actions: [{ type: "grant_credits", amount: 1 }] };
  const { receiverSecret } = (await running.api("POST", "/relays", { definition }, "local")).body;
  eventId = (await sendSigned(running, "orders", receiverSecret, "one", '{"id":"one","email":"ada@example.com"}')).body.eventId;
  await running.drain();
  person = (await running.api("GET", "/persons", undefined, "local")).body.items[0].id;
  // Slows the response, so that the browser handles the disabled button.
  await page.route("**/api/**", async (route) => {
    if (route.request().method() !== "GET") await Bun.sleep(SLOW_MS);
    await route.continue();
  });
});

const TURNS: [what: string, path: () => string, from: string, to: string][] = [
  ["a relay's Pause", () => "relays/orders", "Pause", "Resume"],
  ["a person's Suspend", () => `people/${person}`, "Suspend", "Activate"],
];
test.each(TURNS)("%s keeps the focus, and Enter reverts it", async (_, path, from, to) => {
  await page.goto(at(path()));
  await button(from).focus();
  await page.keyboard.press("Enter");
  await button(to).and(page.locator(":enabled")).waitFor();
  expect(await focused()).toBe(to);
  await page.keyboard.press("Enter");
  await button(from).and(page.locator(":enabled")).waitFor();
  expect(await focused()).toBe(from);
});

test("a user who moved on meanwhile keeps the new focus", async () => {
  await page.goto(at("relays/orders"));
  await button("Pause").focus();
  await page.keyboard.press("Enter");
  await page.keyboard.press("Tab");
  const gone = await focused();
  await button("Resume").and(page.locator(":enabled")).waitFor();
  expect([await focused(), gone]).toEqual(["Delete…", "Delete…"]);
  await button("Resume").click();
  await button("Pause").waitFor();
});

test("after an event's replay the focus is on Replay, although the button is still disabled", async () => {
  await running.api("POST", "/relays/orders/pause", {}, "local");
  await page.goto(at(`events/${eventId}`));
  await button("Replay").focus();
  await page.keyboard.press("Enter");
  await page.getByRole("dialog").getByRole("button", { name: "Replay", exact: true }).click();
  await page.locator("main").getByRole("button", { name: "Replay", exact: true, disabled: true }).waitFor();
  expect(await focused()).toBe("Replay");
  await page.keyboard.press("Enter");
  expect(await page.getByRole("dialog").count()).toBe(0);
});

test("the pages violate no content policy and log no error", () => {
  expect(complaints).toEqual([]);
});
