/** Tests users who are faster than the service: an action before a response is neither lost nor overwritten. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { systemClock } from "../../src/base/clock.ts";
import { openDashboard } from "../kit/browser.ts";
import { editorOf, readEditor } from "../kit/browser-editor.ts";
import { putEvents, WRITE } from "../kit/event-flow.ts";
import { HOOK_SECRET, receiverDefinition } from "../kit/relay-definition.ts";

const dashboard = await openDashboard();
const { page, running, at, complaints } = dashboard;
afterAll(() => dashboard[Symbol.asyncDispose]());

const definition = receiverDefinition({ map: { event_id: "id" }, actions: [{ ...WRITE, collection: "orders" }] });
const put = (ids: readonly string[]) => putEvents(running, ids, { nowMs: systemClock.now() });
const rows = page.locator("main [data-row]");
let ids: string[] = [];

beforeAll(async () => {
  await running.api("POST", "/relays", { definition, secret: HOOK_SECRET }, "local");
  ids = await put(["one", "two", "three"]);
  await running.drain();
});

interface Held {
  asked: PromiseWithResolvers<void>;
  gone: PromiseWithResolvers<void>;
}

/** Delays this page's matching requests until they are released. With a status, the release answers with it. */
async function keepBack(method: string, path: string, status: number | null = null): Promise<{ asked(): Promise<void>; letGo(): Promise<void> }> {
  await page.evaluate(
    ([wanted, pattern, answered]) => {
      const real = fetch;
      const held: Held = { asked: Promise.withResolvers(), gone: Promise.withResolvers() };
      const keep = async (asked: string, init: RequestInit): Promise<Response> => {
        if (init.method !== wanted || !new RegExp(pattern).test(asked)) return await real(asked, init);
        held.asked.resolve();
        await held.gone.promise;
        return answered === null ? await real(asked, init) : new Response("", { status: answered });
      };
      Object.assign(globalThis, { held, fetch: keep });
    },
    [method, path, status] as const,
  );
  return {
    asked: () => page.evaluate(() => (globalThis as unknown as { held: Held }).held.asked.promise),
    letGo: () => page.evaluate(() => (globalThis as unknown as { held: Held }).held.gone.resolve()),
  };
}

test("two switches in a row make two changes, although the first is still pending", async () => {
  await page.goto(at("alerts?tab=switches"));
  const [mail, other] = [page.getByLabel("Mail alerts to the owners"), page.getByRole("checkbox").nth(1)];
  await mail.waitFor();
  const before = [await mail.isChecked(), await other.isChecked()];
  const held = await keepBack("PUT", "/settings$");
  await mail.click();
  await other.click();
  await held.asked();
  await held.letGo();
  await page.waitForFunction(() => document.querySelector("main input:disabled") === null);
  expect([await mail.isChecked(), await other.isChecked()]).toEqual(before.map((isOn) => !isOn));
  await page.reload();
  await mail.waitFor();
  expect([await mail.isChecked(), await other.isChecked()]).toEqual(before.map((isOn) => !isOn));
});

test("the newest selection is explained, although the previous response arrives later", async () => {
  await page.goto(at("relays/orders"));
  const tab = page.getByRole("link", { name: "Test", exact: true });
  await tab.waitFor();
  const held = await keepBack("POST", "/explain$");
  await tab.click();
  await held.asked();
  await page.getByRole("button", { name: "A stored event" }).click();
  await page.locator(".test-event").first().click();
  await page.waitForURL(/event=evt/);
  await held.letGo();
  const steps = page.getByRole("region", { name: "Steps" });
  await steps.getByText("It is a new event").waitFor({ state: "detached" });
  await steps.waitFor();
  await page.waitForLoadState("networkidle");
  expect(await steps.innerText()).not.toContain("signed here");
});

test("text written during a save stays as a draft of the saved version", async () => {
  await page.goto(at("relays/orders?tab=definition"));
  await page.locator(".editor-state", { hasText: "Valid" }).waitFor();
  await editorOf(page).click();
  await page.keyboard.press("ControlOrMeta+End");
  await page.keyboard.type("\n");
  const held = await keepBack("PUT", "/relays/orders$");
  await page.keyboard.press("ControlOrMeta+s");
  await held.asked();
  await page.keyboard.type("\n\n");
  const text = await readEditor(page);
  await held.letGo();
  await page.getByText("Saved orders as version 2").waitFor();
  await page.getByText("Unsaved changes").waitFor();
  expect(await readEditor(page)).toBe(text);
  await page.getByRole("button", { name: "Discard changes" }).click();
});

test("a pending key cannot be closed, and a rejected address stays for a correction", async () => {
  await page.goto(at("settings?tab=keys"));
  await page.getByRole("button", { name: "New key" }).click();
  await page.getByRole("dialog").getByLabel("Name").fill("quick");
  const held = await keepBack("POST", "/keys$");
  await page.keyboard.press("Enter");
  await held.asked();
  await page.keyboard.press("Escape");
  await held.letGo();
  await page.getByRole("dialog", { name: "The new key" }).locator("[data-secret]").waitFor();
  expect(await page.evaluate(() => document.activeElement?.textContent?.trim())).toBe("Copy");
  await page.getByRole("button", { name: "I stored the secret" }).click();
  await page.goto(at("people"));
  await page.getByRole("button", { name: "Add a person…" }).first().click();
  const address = page.getByRole("dialog").getByLabel("E-mail address");
  await address.fill("ada@example.com");
  await (await keepBack("POST", "/persons$", 502)).letGo();
  await page.keyboard.press("Enter");
  await page.getByRole("dialog").getByRole("alert").waitFor();
  expect(await address.inputValue()).toBe("ada@example.com");
});

test("Enter after a pasted id opens its page, and a selection stays while more results arrive", async () => {
  await page.goto(at("home"));
  await page.getByRole("heading", { name: "Home" }).waitFor();
  const field = page.getByRole("combobox", { name: "Find anything" });
  const held = await keepBack("GET", "/find\\?");
  await page.keyboard.press("Control+k");
  await field.fill(ids[0] ?? "");
  await page.keyboard.press("Enter");
  await held.asked();
  await held.letGo();
  await page.waitForURL(new RegExp(`/events/${ids[0]}$`));
  await page.goto(at("home"));
  await page.getByRole("heading", { name: "Home" }).waitFor();
  const more = await keepBack("GET", "/find\\?");
  await page.keyboard.press("Control+k");
  await field.fill("ord");
  const chosen = page.getByRole("option", { selected: true });
  await chosen.getByText("orders").waitFor();
  await page.keyboard.press("ArrowDown");
  const text = await chosen.innerText();
  await more.letGo();
  await page
    .getByRole("status")
    .getByText(/found$/)
    .waitFor({ state: "attached" });
  expect(await chosen.innerText()).toBe(text);
  await page.keyboard.press("Escape");
});

test("a user who moved on with Tab keeps the focus when the page's title loads", async () => {
  // Uses a screen too narrow for the side panel, because the panel would load the page early.
  await page.setViewportSize({ width: 1_100, height: 860 });
  await page.goto(at("events"));
  const row = page.locator(`main [data-row][href$="${ids[0]}"]`);
  await row.waitFor();
  const held = await keepBack("GET", `/events/${ids[0]}$`);
  await row.click();
  await page.getByRole("heading", { name: "Event", exact: true }).waitFor();
  const back = page.locator("a[data-back]");
  await back.focus();
  await held.letGo();
  await page.getByRole("heading", { name: "orders event" }).waitFor();
  await page.waitForLoadState("networkidle");
  expect(await back.evaluate((link) => link === document.activeElement)).toBe(true);
  await page.setViewportSize({ width: 1_280, height: 860 });
});

test("a pressed row gets the click, although a new row appears above it", async () => {
  await page.goto(at("events"));
  const row = rows.first();
  await row.waitFor();
  await page.getByRole("banner").getByText("Live", { exact: true }).waitFor();
  const href = await row.getAttribute("href");
  const box = await row.boundingBox();
  if (box === null) throw new Error("the row is not to be seen");
  await page.mouse.move(box.x + 5, box.y + box.height / 2);
  const listed = page.waitForResponse((response) => /\/api\/.*\/events(\?|$)/.test(response.url()));
  await page.mouse.down();
  await put(["above"]);
  await (await listed).finished();
  await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
  await page.mouse.up();
  await page.waitForURL((url) => url.href.includes(String(href).split("/").at(-1) ?? "none"));
  await rows.nth(3).waitFor();
});

test("a moving time range removes no row, and the next event is known at once", async () => {
  await page.goto(at("events?hours=1"));
  await rows.nth(3).waitFor();
  await rows.nth(1).focus();
  const before = await rows.nth(1).getAttribute("href");
  const held = await keepBack("GET", "/events\\?");
  await page.evaluate(() => {
    const real = Date.now;
    Date.now = () => real() + 60_000;
  });
  const counted: number[] = [];
  // Forces the list to render again, like any change of the list.
  await page.keyboard.press("x");
  await held.asked();
  counted.push(await rows.count());
  await held.letGo();
  await page.waitForLoadState("networkidle");
  counted.push(await rows.count());
  expect(counted).toEqual([4, 4]);
  expect(await page.evaluate(() => document.activeElement?.getAttribute("href") ?? null)).toBe(before);
});

test("the pages violate no content policy and log no error", () => {
  expect(complaints).toEqual([]);
});
