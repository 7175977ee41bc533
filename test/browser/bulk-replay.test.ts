/** Tests bulk replays from the dashboard: the preview, the progress that survives the page, the stop, and the result. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { openDashboard } from "../kit/browser.ts";
import { shoot } from "../kit/browser-shots.ts";
import { putEvents } from "../kit/event-flow.ts";

const dashboard = await openDashboard();
const { page, running, complaints, at } = dashboard;
afterAll(() => dashboard[Symbol.asyncDispose]());

const COUNT = 60;
const define = (name: string, collection: string) => ({
  name,
  trigger: { kind: "receiver", verify: { scheme: "hooks" }, map: { event_id: "id", person_email: "email" } },
  actions: [
    { type: "grant_credits", amount: 1 },
    { type: "write_record", collection, data: { text: "{{mapped.event_id}}" } },
  ],
});
const countOf = async (state: string): Promise<number> =>
  (await running.rows<{ count: number }>("SELECT count(*) AS count FROM event WHERE state = ?1", state))[0]?.count ?? 0;

/** Creates events that are dead at once, because their collection is missing. */
async function die(name: string, count: number): Promise<string[]> {
  expect((await running.api("POST", "/relays", { definition: define(name, "nowhere") }, "local")).status).toBe(201);
  const ids = Array.from({ length: count }, (_, at) => `${name}-${at}`);
  const made = await putEvents(running, ids, { relay: name, email: "ada@example.com" });
  await running.drain();
  return made;
}

async function fix(name: string): Promise<void> {
  const { relay } = (await running.api("GET", `/relays/${name}`, undefined, "local")).body;
  const body = { definition: define(name, "notes"), version: relay.version };
  expect((await running.api("PUT", `/relays/${name}`, body, "local")).status).toBe(200);
}

beforeAll(async () => {
  await running.api("POST", "/collections", { name: "notes", kind: "shared", fields: { text: { type: "text" } } }, "local");
  const [first = ""] = await die("orders", COUNT);
  await die("others", 3);
  expect(await countOf("dead")).toBe(COUNT + 3);
  expect((await running.api("POST", `/events/${first}/expunge`, {}, "local")).status).toBe(200);
});

test("replays are offered only for dead or failed events, and not during a text search", async () => {
  await page.goto(at("events"));
  await page.locator("a[data-row]").first().waitFor();
  const button = page.getByRole("button", { name: "Replay these…" });
  expect(await button.count()).toBe(0);
  await page.goto(at("events?state=dead&q=orders"));
  await button.waitFor();
  expect(await button.isDisabled()).toBe(true);
  await page.goto(at("events?state=failed"));
  await page.getByRole("heading", { name: "No event matches" }).waitFor();
  expect(await button.count()).toBe(0);
});

test("the preview shows the matches, each action's effect and the skipped events, and replays nothing", async () => {
  await page.goto(at("events?state=dead"));
  await page.getByRole("button", { name: "Replay these…" }).click();
  const dialog = page.getByRole("dialog", { name: "Replay dead events?" });
  await dialog.getByRole("button", { name: "Replay 62 events" }).waitFor();
  await shoot(page, "bulk-plan");
  const told = (await dialog.innerText()).replaceAll(/\s+/g, " ");
  expect(told).toContain("63 match: dead events");
  expect(told).toContain("orders 59 others 3");
  expect(told).toContain("Grant credits 62 are skipped: already done");
  expect(told).toContain("Write a record 62 run");
  await dialog.getByText("The newest event is dead because of a problem that still exists").waitFor();
  const still = "There is still no collection nowhere.";
  expect((await dialog.innerText()).replaceAll(/\s+/g, " ")).toContain(`orders: ${still} others: ${still} Fix it first`);
  expect(told).toContain("1 cannot run any more: their payload was removed.");
  expect(await countOf("dead")).toBe(COUNT + 3);
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  expect(await page.evaluate(() => document.activeElement?.textContent)).toContain("Replay these…");
  for (const nth of [0, 1]) await page.locator("main tbody input[type=checkbox]").nth(nth).check();
  await page.getByRole("button", { name: "Replay them…" }).click();
  await page.getByRole("dialog").getByText(still).waitFor();
  await page.keyboard.press("Escape");
});

test("an invalid rate is rejected at its field", async () => {
  await page.goto(at("events?state=dead&relay=orders"));
  await page.getByRole("button", { name: "Replay these…" }).click();
  const dialog = page.getByRole("dialog");
  const begin = dialog.getByRole("button", { name: "Replay 59 events" });
  await begin.waitFor();
  await dialog.getByLabel("Maximum events per second").fill("0");
  await dialog.getByText("Write a number from 1 to 1,000.").waitFor();
  expect(await begin.isDisabled()).toBe(true);
});

test("progress survives the page, is shown on the events page and on the relay's page, and can be stopped", async () => {
  await fix("orders");
  const dialog = page.getByRole("dialog");
  // Chooses a rate at which even a slow machine arrives before the end.
  await dialog.getByLabel("Maximum events per second").fill("1");
  await dialog.getByText("It takes about 59 s").waitFor();
  await dialog.getByRole("button", { name: "Replay 59 events" }).click();
  await dialog.getByText(/^Replaying [1-9]\d* of 60$/).waitFor();
  await shoot(page, "bulk-running");
  await dialog.getByRole("button", { name: "Close" }).click();
  const line = page.getByRole("region", { name: "Bulk replay" });
  await line.getByText(/^Replaying \d+ of 60$/).waitFor();
  expect((await line.innerText()).replaceAll(/\s+/g, " ")).toContain("dead events of orders");
  await shoot(page, "bulk-line");
  await page.goto(at("relays/others"));
  await page.getByRole("heading", { name: "Events", exact: true }).waitFor();
  expect(await line.count()).toBe(0);
  await page.goto(at("relays/orders"));
  await line.getByText(/^Replaying \d+ of 60$/).waitFor();
  await shoot(page, "bulk-relay");
  await line.getByRole("button", { name: "Stop" }).click();
  await line.getByText(/^Stopped: \d+ of 60 replayed,$/).waitFor();
  await running.drain();
  const [replay] = (await running.api("GET", "/bulk-replays", undefined, "local")).body.items;
  expect(replay).toMatchObject({ state: "stopped", leftOut: { payload_expunged: 1 } });
  expect(await countOf("done")).toBe(replay.replayed);
});

test("the link afterwards has exactly the replay's filter", async () => {
  const filter = { state: "dead", relay: "others", reason: "collection_missing", since: "2020-01-01T00:00:00.000Z" };
  const sent = await running.api("POST", "/bulk-replays", { ...filter, perSecond: 1 }, "local");
  expect(sent.status).toBeLessThan(300);
  const line = page.getByRole("region", { name: "Bulk replay" });
  await page.goto(at("events"));
  await line.getByText(/collection_missing/).waitFor();
  await line.getByRole("button", { name: "Stop" }).click();
  const link = line.getByRole("link", { name: "see the events that are still dead now" });
  const asked = new URL((await link.getAttribute("href")) ?? "", running.service.url).searchParams;
  expect(Object.fromEntries(asked)).toEqual(filter);
  await running.drain();
});

test("a finished replay shows the count and links to the events that are still dead", async () => {
  await page.goto(at("events?state=dead&relay=orders"));
  await page.getByRole("button", { name: "Replay these…" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Maximum events per second").fill("1000");
  await dialog.getByRole("button", { name: /^Replay \d+ events$/ }).click();
  await dialog.getByText(/^Ended: \d+ of \d+ replayed,$/).waitFor();
  const [{ replayed }] = (await running.api("GET", "/bulk-replays?limit=1", undefined, "local")).body.items;
  await dialog.getByText(`${replayed} succeeded, 0 failed`).waitFor();
  await shoot(page, "bulk-done");
  await running.drain();
  expect(await countOf("dead")).toBe(4);
  expect(await running.rows("SELECT DISTINCT amount FROM credit")).toEqual([{ amount: 1 }]);
  expect((await running.rows("SELECT 1 FROM credit")).length).toBe(COUNT + 3);
  await dialog.getByRole("link", { name: "see the events that are still dead now" }).click();
  await page.waitForURL(/state=dead&relay=orders$/);
});

test("the pages violate no content policy and log no error", () => {
  expect(complaints).toEqual([]);
});
