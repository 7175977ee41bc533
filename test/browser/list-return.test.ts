/** Tests that a list keeps its filter and position when a user returns, and that parts of a page share one request. */
import { afterAll, expect, test } from "bun:test";
import { openDashboard } from "../kit/browser.ts";
import { sendSigned } from "../kit/browser-sender.ts";

const dashboard = await openDashboard();
const { page, running, at, complaints } = dashboard;
afterAll(() => dashboard[Symbol.asyncDispose]());

const EVENTS = 60;

test("setup: a relay and more events than fit the window", async () => {
  const definition = {
    name: "orders",
    trigger: { kind: "receiver", verify: { scheme: "hooks" }, map: { event_id: "id", person_email: "email" } },
    actions: [{ type: "grant_credits", amount: 1 }],
  };
  const { receiverSecret } = (await running.api("POST", "/relays", { definition }, "local")).body;
  for (let at = 0; at < EVENTS; at++) {
    await sendSigned(running, "orders", receiverSecret, `e${at}`, JSON.stringify({ id: `e${at}`, email: "ada@example.com" }));
  }
  await running.drain();
});

const scrolled = (): Promise<number> => page.evaluate(() => Math.round(scrollY));

async function openARow(): Promise<number> {
  // A click opens the page if there is no space for a side panel.
  await page.setViewportSize({ width: 1100, height: 860 });
  await page.goto(at("events?state=done"));
  await page.locator("tbody tr").nth(40).waitFor();
  await page.evaluate(() => scrollTo(0, 900));
  // Reads the position at the click, because content above the list may still move it slightly.
  const leaving = page.evaluate(
    () => new Promise<number>((resolve) => document.addEventListener("click", () => resolve(Math.round(scrollY)), { capture: true, once: true })),
  );
  await page.locator("tbody tr").nth(25).locator("a[data-row]").click();
  const left = await leaving;
  expect(left).toBeGreaterThan(500);
  await page.getByRole("heading", { name: "orders event" }).waitFor();
  expect(await scrolled()).toBe(0);
  return left;
}

for (const [way, goBack] of [
  ["the browser's Back", () => page.goBack()],
  ["the page's back link", () => page.getByRole("link", { name: "Events", exact: true }).and(page.locator("[data-back]")).click()],
  ["Escape", () => page.keyboard.press("Escape")],
] as const) {
  test(`${way} returns to the previous filter and position`, async () => {
    const left = await openARow();
    await goBack();
    await page.waitForURL((url) => url.search === "?state=done");
    await page.waitForFunction((y) => Math.abs(scrollY - y) < 2, left);
  });
}

test("parts of a page share one request, and a hidden tab sends none", async () => {
  const asked: string[] = [];
  page.on("request", (request) => {
    const { pathname, search } = new URL(request.url());
    if (pathname.startsWith("/api/")) asked.push(pathname.replace(/^\/api(\/apps\/[^/]+\/[^/]+)?\//, "") + search);
  });
  await page.goto(at("relays/orders"));
  await page.getByRole("heading", { name: "orders" }).waitFor();
  await page.waitForLoadState("networkidle");
  // The shell requests its counts and warnings, and the page requests the relay.
  for (const path of ["settings", "overview", "relays/orders"]) expect(asked).toContain(path);
  expect(asked.filter((path, at) => asked.indexOf(path) !== at)).toEqual([]);
  await page.evaluate(() => {
    Object.defineProperty(document, "hidden", { get: () => true, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
  });
  asked.length = 0;
  await Bun.sleep(3_000);
  expect(asked).toEqual([]);
  await page.evaluate(() => {
    Reflect.deleteProperty(document, "hidden");
    document.dispatchEvent(new Event("visibilitychange"));
  });
  await page.waitForResponse((response) => response.url().includes("/events"));
});

test("the pages violate no content policy and log no error", () => {
  expect(complaints).toEqual([]);
});
