/**
 * Tests six incidents at three in the morning with a new user. After sign-in, the first screen shows the environment, the relay, the start, the
 * cause, and whether it persists. The user must fix the cause, recover the events and see that they succeeded in at most four clicks.
 */
import { expect, test } from "bun:test";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../src/base/limit.ts";
import { shoot } from "../kit/browser-shots.ts";
import { type DashboardVisit, openDashboardVisit } from "../kit/dashboard-visit.ts";
import { CALL, putEvents, WRITE } from "../kit/event-flow.ts";
import { FakeCaller, OK } from "../kit/fake-caller.ts";
import { HOOK_SECRET, receiverDefinition, signedCall } from "../kit/relay-definition.ts";

const MOST_CLICKS = 4;
const CAROL = "carol@example.com";
const ROTATED = "whsec_TheNewOneOfTheSender0123456789";
const DOWN = { kind: "answered", ok: false, status: 503, body: "Service Unavailable" } as const;

async function must(visit: DashboardVisit, method: string, path: string, body: unknown): Promise<void> {
  const { status, body: answer } = await visit.api(method, path, body);
  if (status >= 300) throw new Error(`${method} ${path}: ${status} ${JSON.stringify(answer)}`);
}

const save = (visit: DashboardVisit, change: Parameters<typeof receiverDefinition>[0]) =>
  must(visit, "POST", "/relays", { definition: receiverDefinition({ map: { event_id: "id" }, ...change }), secret: HOOK_SECRET });

const makeOrders = (visit: DashboardVisit) => must(visit, "POST", "/collections", { name: "orders", kind: "shared", fields: { order: "text" } });

const send = (visit: DashboardVisit, id: string, secret = HOOK_SECRET) =>
  visit.running.hook("orders", signedCall({ id, email: CAROL, payment: id }, secret));

/** Sends a request at a fixed interval, so that the relay has a rhythm. */
async function sendEvery(visit: DashboardVisit, everyMs: number, times: number, secret = HOOK_SECRET): Promise<void> {
  for (let sent = 0; sent < times; sent++) {
    await send(visit, `call_${visit.clock.now()}`, secret);
    await visit.running.drain();
    await visit.clock.leap(everyMs);
  }
}

async function states(visit: DashboardVisit): Promise<Record<string, number>> {
  const rows = await visit.running.rows<{ state: string; count: number }>("SELECT state, count(*) AS count FROM event GROUP BY state");
  return Object.fromEntries(rows.map(({ state, count }) => [state, count]));
}

function end(visit: DashboardVisit): void {
  expect(visit.clicks).toBeLessThanOrEqual(MOST_CLICKS);
  expect(visit.complaints).toEqual([]);
}

test("night one: 2,000 events are dead because a collection is missing", async () => {
  await using visit = await openDashboardVisit(2 * DAY_MS);
  const { page } = visit;
  await save(visit, { actions: [{ ...WRITE, collection: "invoices" }] });
  const ids = Array.from({ length: 2_000 }, (_, at) => `inv_${at}`);
  await putEvents(visit.running, ids, { nowMs: visit.clock.now() });
  await visit.running.drain();
  const needs = await visit.signIn();
  await needs.getByRole("heading", { name: "orders: 2,000 events are dead" }).waitFor();
  expect(await needs.innerText()).toMatch(
    /in production.*2 days ago.*collection names invoices, which does not exist.*Still exists\. There is still no collection invoices\./s,
  );
  await visit.click(needs.getByRole("link", { name: "Create collection invoices…" }));
  const form = page.getByRole("dialog");
  // The form requires a choice of readers, so that a quick confirmation cannot publish records.
  expect(await form.getByLabel("Who can read the records").inputValue()).toBe("");
  await visit.click(form.getByText("Who can read the records"));
  await form.getByLabel("Who can read the records").selectOption("private");
  await visit.click(form.getByRole("button", { name: "Create collection" }));
  // Home offers the replay when the user returns from the fix.
  await page.waitForURL(/\/home$/);
  await needs.getByText("Probably fixed.").waitFor();
  await page.getByRole("dialog").getByLabel("Maximum events per second").fill("1000");
  await visit.click(page.getByRole("dialog").getByRole("button", { name: "Replay 2,000 events" }));
  await needs.getByRole("heading", { name: /orders: .* dead/ }).waitFor({ state: "detached" });
  expect(await states(visit)).toEqual({ done: 2_000 });
  end(visit);
});

test("night two: the called URL failed and works again", async () => {
  const caller = new FakeCaller(DOWN);
  await using visit = await openDashboardVisit(3 * DAY_MS, { caller });
  const { page } = visit;
  await save(visit, { actions: [CALL] });
  for (let at = 0; at < 12; at++) await send(visit, `order_${at}`);
  await visit.running.drain();
  for (;;) {
    const { items } = (await visit.api("GET", "/events?state=queued")).body;
    if (items.length === 0) break;
    const next = Math.min(...items.map(({ nextAttemptAt }: { nextAttemptAt: string }) => Date.parse(nextAttemptAt)));
    await visit.clock.leap(next - visit.clock.now());
    await visit.running.drain();
  }
  caller.reply = () => OK;
  await visit.clock.leap(HOUR_MS);
  await send(visit, "order_later");
  await visit.running.drain();
  const needs = await visit.signIn();
  await needs.getByRole("heading", { name: "orders: 12 events are dead" }).waitFor();
  expect(await needs.innerText()).toMatch(/The URL answered 503.*Probably fixed\. Since .* the URL answers 200: replaying will probably work\./s);
  await visit.click(needs.getByRole("button", { name: "Replay 12 events…" }));
  await visit.click(page.getByRole("dialog").getByRole("button", { name: "Replay 12 events" }));
  await needs.getByRole("heading", { name: /orders: .* dead/ }).waitFor({ state: "detached" });
  await visit.running.drain();
  expect(await states(visit)).toEqual({ done: 13 });
  end(visit);
});

test("night three: the sender's secret was rotated at the provider", async () => {
  await using visit = await openDashboardVisit(6 * HOUR_MS);
  const { page } = visit;
  await makeOrders(visit);
  await save(visit, { actions: [WRITE] });
  await sendEvery(visit, 10 * MINUTE_MS, 12);
  await sendEvery(visit, 10 * MINUTE_MS, 12, ROTATED);
  const needs = await visit.signIn();
  await needs.getByRole("heading", { name: "orders: rejects every request" }).waitFor();
  expect(await needs.innerText()).toMatch(/since (\d+ \w+, )?\d\d:\d\d.*the signature does not match.*the sender may have a new secret/s);
  await visit.click(needs.getByRole("link", { name: "Paste its secret…" }));
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("The secret the sender shows").fill(ROTATED);
  await visit.click(dialog.getByRole("button", { name: "Store secret" }));
  await dialog.waitFor({ state: "detached" });
  await page.keyboard.press("g");
  await page.keyboard.press("h");
  await page.waitForURL(/\/home$/);
  await needs.getByText(/^The secret of orders was changed at .+\. The next request shows whether this fixed the problem\.$/).waitFor();
  await shoot(page, "night-doubt");
  expect((await send(visit, "again", ROTATED)).status).toBe(200);
  await page.getByText("rejects every request").waitFor({ state: "detached" });
  end(visit);
});

test("night four: a customer paid and got nothing", async () => {
  await using visit = await openDashboardVisit(3 * HOUR_MS);
  const { page } = visit;
  const map = { event_id: "id", person_email: "email", payment: "payment" };
  await save(visit, { map, actions: [{ type: "fulfil_product", product: "course", ref: "{{mapped.payment}}" }] });
  const course = { soldThrough: { kind: "relay", relay: "orders" } };
  await send(visit, "pi_77");
  await visit.running.drain();
  await visit.clock.leap(HOUR_MS);
  await must(visit, "PUT", "/products/course", course);
  await visit.signIn();
  await page.keyboard.press("g");
  await page.keyboard.press("p");
  await page.waitForURL(/\/people$/);
  await page.keyboard.press("/");
  await page.keyboard.type(CAROL);
  await visit.click(page.getByRole("link", { name: CAROL }));
  const wrong = page.getByRole("region", { name: "Failed events" });
  expect(await wrong.innerText()).toContain("product unknown");
  await visit.click(wrong.getByRole("button", { name: /^Replay .* at orders…$/ }));
  await visit.click(page.getByRole("dialog").getByRole("button", { name: "Replay" }));
  await wrong.waitFor({ state: "detached" });
  await page.getByText("Has access").first().waitFor();
  end(visit);
});

test("night five: a relay has been silent since Friday", async () => {
  await using visit = await openDashboardVisit(13 * DAY_MS);
  const { page } = visit;
  await makeOrders(visit);
  await save(visit, { actions: [WRITE] });
  await sendEvery(visit, 6 * HOUR_MS, 40);
  const needs = await visit.signIn();
  await needs.getByRole("heading", { name: "orders: silent" }).waitFor();
  expect(await needs.innerText()).toMatch(/3 days ago.*received its last event at.*ask the sender whether it still sends/s);
  await visit.click(needs.getByRole("link", { name: "Open orders" }));
  await page.getByText("No request arrived in the last 24 hours. Ask the sender to which URL it sends.").waitFor();
  await visit.click(page.getByRole("button", { name: "Import missed events…" }));
  const dialog = page.getByRole("dialog");
  const missed = Array.from({ length: 12 }, (_, at) => JSON.stringify(signedCall({ id: `missed_${at}` }))).join("\n");
  await dialog.getByLabel("Export file").setInputFiles({ name: "export.jsonl", mimeType: "application/jsonl", buffer: Buffer.from(missed) });
  await visit.click(dialog.getByRole("button", { name: "Import 12 events" }));
  await dialog.getByText("12 events imported").waitFor();
  await visit.running.drain();
  expect(await states(visit)).toEqual({ done: 52 });
  end(visit);
});

/** Stages an edit that turned the product atlas into atlass, and the sales that died from it. */
async function misspell(visit: DashboardVisit, sales: number): Promise<void> {
  const map = { event_id: "id", person_email: "email", payment: "payment" };
  const sell = (product: string) => receiverDefinition({ map, actions: [{ type: "fulfil_product", product, ref: "{{mapped.payment}}" }] });
  await must(visit, "PUT", "/products/atlas", {});
  await must(visit, "POST", "/relays", { definition: sell("atlas"), secret: HOOK_SECRET });
  await must(visit, "PUT", "/products/atlas", { soldThrough: { kind: "relay", relay: "orders" } });
  await send(visit, "pi_before");
  await visit.running.drain();
  await visit.clock.leap(HOUR_MS);
  await must(visit, "PUT", "/relays/orders", { definition: sell("atlass"), version: 1 });
  await visit.clock.leap(2 * MINUTE_MS);
  for (let sale = 0; sale < sales; sale++) {
    await send(visit, `pi_${sale}`);
    await visit.running.drain();
    await visit.clock.leap(20 * MINUTE_MS);
  }
}

/** Replays the dead sales from Home and waits until the item is gone. */
async function recover(visit: DashboardVisit, sales: number): Promise<void> {
  const { page } = visit;
  const needs = page.getByRole("region", { name: "Needs attention" });
  await needs.getByText("Probably fixed.").waitFor();
  await visit.click(page.getByRole("dialog").getByRole("button", { name: `Replay ${sales} events` }));
  await needs.getByRole("heading", { name: /orders: .* dead/ }).waitFor({ state: "detached" });
  expect(await states(visit)).toEqual({ done: sales + 1 });
  end(visit);
}

test("night six: an edit misspelled a product, and its undo is the first button", async () => {
  await using visit = await openDashboardVisit(6 * HOUR_MS);
  const { page } = visit;
  await misspell(visit, 11);
  const needs = await visit.signIn();
  await needs.getByRole("heading", { name: "orders: 11 events are dead" }).waitFor();
  expect(await needs.innerText()).toMatch(
    /Just changed\s+The key test saved version 2 of orders at .*, shortly before this problem began\..*There is still no product atlass\. Did you mean atlas\?/s,
  );
  expect(await needs.locator(".need-ways .primary").allInnerTexts()).toEqual(["Restore version 1…"]);
  expect(await needs.locator(".need-ways > .button").allInnerTexts()).toEqual(
    expect.arrayContaining(["Restore version 1…", "Did you mean atlas?", "Create product atlass…"]),
  );
  await shoot(page, "night-undo");
  // The relay's page has the same order: only the undo is primary.
  await page.goto(visit.at("relays/orders"));
  await page.getByRole("region", { name: "Set it up" }).getByRole("link", { name: "Create product atlass…" }).waitFor();
  expect(await page.locator("main a.primary").allInnerTexts()).toEqual(["Restore version 1…"]);
  await shoot(page, "night-relay");
  await page.goto(visit.at("home"));
  await visit.click(needs.getByRole("link", { name: "Restore version 1…" }));
  await visit.click(page.getByRole("dialog").getByRole("button", { name: "Restore version 1" }));
  await page.waitForURL(/\/home$/);
  await recover(visit, 11);
});

test("night six, fixed in the definition with the name that was meant", async () => {
  await using visit = await openDashboardVisit(3 * HOUR_MS);
  const { page } = visit;
  await misspell(visit, 2);
  const needs = await visit.signIn();
  await visit.click(needs.getByRole("link", { name: "Did you mean atlas?" }));
  await page.getByText("The draft has atlas instead of atlass.").waitFor();
  await shoot(page, "night-meant");
  await visit.click(page.getByRole("button", { name: "Save", exact: true }));
  await page.waitForURL(/\/home$/);
  await recover(visit, 2);
});
