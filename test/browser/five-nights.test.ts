/**
 * Five nights at three in the morning. Somebody new signs in: the first screen says, without a click, which environment, which relay, since
 * when, why, and whether that is still so; at most six clicks later it is mended, and what was lost is done.
 */
import { expect, test } from "bun:test";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../src/base/limit.ts";
import { CALL, putEvents, WRITE } from "../kit/event-flow.ts";
import { FakeCaller, OK } from "../kit/fake-caller.ts";
import { type Night, openNight } from "../kit/night.ts";
import { HOOK_SECRET, receiverDefinition, signedCall } from "../kit/relay-definition.ts";

const MOST_CLICKS = 6;
const CAROL = "carol@example.com";
const ROTATED = "whsec_TheNewOneOfTheSender0123456789";
const DOWN = { kind: "answered", ok: false, status: 503, body: "Service Unavailable" } as const;

async function must(night: Night, method: string, path: string, body: unknown): Promise<void> {
  const { status, body: answer } = await night.api(method, path, body);
  if (status >= 300) throw new Error(`${method} ${path}: ${status} ${JSON.stringify(answer)}`);
}

const save = (night: Night, change: Parameters<typeof receiverDefinition>[0]) =>
  must(night, "POST", "/relays", { definition: receiverDefinition({ map: { event_id: "id" }, ...change }), secret: HOOK_SECRET });

const makeOrders = (night: Night) => must(night, "POST", "/collections", { name: "orders", kind: "shared", fields: { order: "text" } });

const send = (night: Night, id: string, secret = HOOK_SECRET) => night.running.hook("orders", signedCall({ id, email: CAROL, payment: id }, secret));

/** A call every so often, so that the relay has a rhythm. */
async function sendEvery(night: Night, everyMs: number, times: number, secret = HOOK_SECRET): Promise<void> {
  for (let sent = 0; sent < times; sent++) {
    await send(night, `call_${night.clock.now()}`, secret);
    await night.running.drain();
    await night.clock.leap(everyMs);
  }
}

async function states(night: Night): Promise<Record<string, number>> {
  const rows = await night.running.rows<{ state: string; count: number }>("SELECT state, count(*) AS count FROM event GROUP BY state");
  return Object.fromEntries(rows.map(({ state, count }) => [state, count]));
}

function end(night: Night): void {
  expect(night.clicks).toBeLessThanOrEqual(MOST_CLICKS);
  expect(night.complaints).toEqual([]);
}

test("one: 2,000 events are dead, because a collection is missing", async () => {
  await using night = await openNight(2 * DAY_MS);
  const { page } = night;
  await save(night, { actions: [{ ...WRITE, collection: "invoices" }] });
  const ids = Array.from({ length: 2_000 }, (_, at) => `inv_${at}`);
  await putEvents(night.running, ids, { nowMs: night.clock.now() });
  await night.running.drain();
  const needs = await night.signIn();
  await needs.getByRole("heading", { name: "orders: 2,000 events are dead" }).waitFor();
  expect(await needs.innerText()).toMatch(
    /in production.*2 days ago.*collection names invoices, which does not exist.*Still so\. There is still no collection invoices\./s,
  );
  await night.click(needs.getByRole("link", { name: "Make the collection invoices…" }));
  const form = page.getByRole("dialog");
  // Nobody's records are shown to others by a window that was only agreed to.
  expect(await form.getByLabel("Who reads its records").inputValue()).toBe("");
  await night.click(form.getByText("Who reads its records"));
  await form.getByLabel("Who reads its records").selectOption("private");
  await night.click(form.getByRole("button", { name: "Make collection" }));
  await page.waitForURL(/\/home$/);
  await needs.getByText("Probably over.").waitFor();
  await night.click(needs.getByRole("button", { name: "Replay 2,000 events…" }));
  await page.getByRole("dialog").getByLabel("Events a second, at most").fill("1000");
  await night.click(page.getByRole("dialog").getByRole("button", { name: "Replay 2,000 events" }));
  await needs.getByRole("heading", { name: /orders: .* dead/ }).waitFor({ state: "detached" });
  expect(await states(night)).toEqual({ done: 2_000 });
  end(night);
});

test("two: the called URL was down, and is up again", async () => {
  const caller = new FakeCaller(DOWN);
  await using night = await openNight(3 * DAY_MS, { caller });
  const { page } = night;
  await save(night, { actions: [CALL] });
  for (let at = 0; at < 12; at++) await send(night, `order_${at}`);
  await night.running.drain();
  for (;;) {
    const { items } = (await night.api("GET", "/events?state=queued")).body;
    if (items.length === 0) break;
    const next = Math.min(...items.map(({ nextAttemptAt }: { nextAttemptAt: string }) => Date.parse(nextAttemptAt)));
    await night.clock.leap(next - night.clock.now());
    await night.running.drain();
  }
  caller.reply = () => OK;
  await night.clock.leap(HOUR_MS);
  await send(night, "order_later");
  await night.running.drain();
  const needs = await night.signIn();
  await needs.getByRole("heading", { name: "orders: 12 events are dead" }).waitFor();
  expect(await needs.innerText()).toMatch(/The URL answered 503.*Probably over\. Since .* the URL answers 200: replaying will probably work\./s);
  await night.click(needs.getByRole("button", { name: "Replay 12 events…" }));
  await night.click(page.getByRole("dialog").getByRole("button", { name: "Replay 12 events" }));
  await needs.getByRole("heading", { name: /orders: .* dead/ }).waitFor({ state: "detached" });
  await night.running.drain();
  expect(await states(night)).toEqual({ done: 13 });
  end(night);
});

test("three: the sender's secret was rotated over there", async () => {
  await using night = await openNight(6 * HOUR_MS);
  const { page } = night;
  await makeOrders(night);
  await save(night, { actions: [WRITE] });
  await sendEvery(night, 10 * MINUTE_MS, 12);
  await sendEvery(night, 10 * MINUTE_MS, 12, ROTATED);
  const needs = await night.signIn();
  await needs.getByRole("heading", { name: "orders: refuses every call" }).waitFor();
  expect(await needs.innerText()).toMatch(/since (\d+ \w+, )?\d\d:\d\d.*the signature does not match.*was the secret rotated at the sender\?/s);
  await night.click(needs.getByRole("link", { name: "Paste its secret…" }));
  await night.click(page.getByRole("button", { name: "Rotate or paste…" }));
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("The secret the sender shows").fill(ROTATED);
  await night.click(dialog.getByRole("button", { name: "Store it" }));
  await dialog.waitFor({ state: "detached" });
  expect((await send(night, "again", ROTATED)).status).toBe(200);
  await page.keyboard.press("g");
  await page.keyboard.press("h");
  await page.waitForURL(/\/home$/);
  await page.getByText("refuses every call").waitFor({ state: "detached" });
  end(night);
});

test("four: a customer has paid and got nothing", async () => {
  await using night = await openNight(3 * HOUR_MS);
  const { page } = night;
  const map = { event_id: "id", person_email: "email", payment: "payment" };
  await save(night, { map, actions: [{ type: "fulfil_product", product: "course", ref: "{{mapped.payment}}" }] });
  const course = { soldThrough: { kind: "relay", relay: "orders" } };
  await send(night, "pi_77");
  await night.running.drain();
  await night.clock.leap(HOUR_MS);
  await must(night, "PUT", "/products/course", course);
  await night.signIn();
  await page.keyboard.press("g");
  await page.keyboard.press("p");
  await page.waitForURL(/\/people$/);
  await page.keyboard.press("/");
  await page.keyboard.type(CAROL);
  await night.click(page.getByRole("link", { name: CAROL }));
  const wrong = page.getByRole("region", { name: "Did not come through" });
  await night.click(wrong.getByRole("link", { name: /orders/ }));
  await page.getByText("The product is there now: replaying will probably work.").waitFor();
  expect(await page.locator("main").innerText()).toContain("product names course, which is no product here");
  await night.click(page.getByRole("button", { name: "Replay", exact: true }));
  await night.click(page.getByRole("dialog").getByRole("button", { name: "Replay" }));
  await page
    .getByRole("heading", { level: 1 })
    .getByText("Done")
    .or(page.locator("main").getByText("Done", { exact: true }))
    .first()
    .waitFor();
  await night.click(page.getByRole("link", { name: CAROL }).first());
  await page.getByText("Has access").first().waitFor();
  end(night);
});

test("five: a relay is silent since Friday", async () => {
  await using night = await openNight(13 * DAY_MS);
  const { page } = night;
  await makeOrders(night);
  await save(night, { actions: [WRITE] });
  await sendEvery(night, 6 * HOUR_MS, 40);
  const needs = await night.signIn();
  await needs.getByRole("heading", { name: "orders: silent" }).waitFor();
  expect(await needs.innerText()).toMatch(/3 days ago.*received its last event at.*ask the sender whether it still sends/s);
  await night.click(needs.getByRole("link", { name: "Open orders" }));
  await page.getByText("No call came in the last 24 hours: ask the sender whether it sends, and to which URL").waitFor();
  await night.click(page.getByRole("button", { name: "Import missed events…" }));
  const dialog = page.getByRole("dialog");
  const missed = Array.from({ length: 12 }, (_, at) => JSON.stringify(signedCall({ id: `missed_${at}` }))).join("\n");
  await dialog.getByLabel("Export (JSON lines)").setInputFiles({ name: "export.jsonl", mimeType: "application/jsonl", buffer: Buffer.from(missed) });
  await night.click(dialog.getByRole("button", { name: "Import 12 events" }));
  await dialog.getByText("12 events imported").waitFor();
  await night.running.drain();
  expect(await states(night)).toEqual({ done: 52 });
  end(night);
});
