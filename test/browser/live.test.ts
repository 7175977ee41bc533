/** The page is told what changes: at once, through a flood, through the service's end and beginning, and not while nobody looks. */
import { afterAll, expect, test } from "bun:test";
import { systemClock } from "../../src/ground/clock.ts";
import { cutOff, openDashboard } from "../kit/browser.ts";
import { putEvents, WRITE } from "../kit/event-flow.ts";
import { HOOK_SECRET, receiverDefinition } from "../kit/relay-definition.ts";

const held = Bun.serve({ port: 0, fetch: () => new Response() });
const { port = 0 } = held;
await held.stop(true);
const dashboard = await openDashboard({ config: { port }, environments: ["local"] });
const { page, running, at, complaints } = dashboard;
afterAll(() => dashboard[Symbol.asyncDispose]());

const definition = receiverDefinition({ map: { event_id: "id" }, actions: [{ ...WRITE, collection: "orders" }] });
const mark = page.getByRole("banner").getByRole("status");
/** Bounds for the quickest of a few tries: one that another program kept from the processor says nothing. */
const SOON_MS = 2_500;
const LONG_MS = 300;
const put = (ids: readonly string[]) => putEvents(running, ids, { nowMs: systemClock.now() });

test("what happens is shown a moment later, not at the next look", async () => {
  expect((await running.api("POST", "/relays", { definition, secret: HOOK_SECRET }, "local")).status).toBe(201);
  await page.goto(at("events"));
  await mark.getByText("Live", { exact: true }).waitFor();
  const took: number[] = [];
  while (took.length < 4 && Math.min(...took) > SOON_MS) {
    const startMs = performance.now();
    await put([`first_${took.length}`]);
    await page.locator("main [data-row]").nth(took.length).waitFor();
    took.push(performance.now() - startMs);
  }
  expect(Math.min(...took)).toBeLessThan(SOON_MS);
});

test("a flood of events neither freezes the page nor stops it from following", async () => {
  await page.evaluate(() => {
    const seen = { longest: 0 };
    Object.assign(window, { seen });
    new PerformanceObserver((list) => {
      for (const { duration } of list.getEntries()) seen.longest = Math.max(seen.longest, duration);
    }).observe({ type: "longtask" });
  });
  const takeLongest = () =>
    page.evaluate(() => {
      const { seen } = window as unknown as { seen: { longest: number } };
      const { longest } = seen;
      seen.longest = 0;
      return longest;
    });
  let asked = 0;
  /** Relays are only named here: what comes to them changes no name. */
  let named = 0;
  const count = (request: { url(): string }): void => {
    asked++;
    if (new URL(request.url()).pathname.endsWith("/relays")) named++;
  };
  page.on("request", count);
  let sent = 0;
  const longest: number[] = [];
  while (longest.length < 3 && Math.min(...longest) > LONG_MS) {
    asked = 0;
    const startMs = performance.now();
    while (performance.now() - startMs < 3_000) {
      await put(Array.from({ length: 250 }, () => `flood_${sent++}`));
    }
    const tookMs = performance.now() - startMs;
    expect(asked / (tookMs / 1000)).toBeLessThan(15);
    await page.keyboard.press("j");
    await page.waitForFunction(() => document.activeElement?.matches("[data-row]"));
    await page.waitForFunction(() => document.querySelectorAll("main [data-row]").length > 40);
    longest.push(await takeLongest());
  }
  page.off("request", count);
  expect(named).toBe(0);
  expect(Math.min(...longest)).toBeLessThan(LONG_MS);
});

test("a hidden tab asks for nothing and follows nothing, and comes back with what is new", async () => {
  await running.drain();
  await page.goto(at("relays"));
  await mark.getByText("Live", { exact: true }).waitFor();
  const hide = (hidden: boolean) =>
    page.evaluate((is) => {
      Object.defineProperty(document, "hidden", { configurable: true, value: is });
      document.dispatchEvent(new Event("visibilitychange"));
    }, hidden);
  await hide(true);
  const asked: string[] = [];
  const note = (request: { url(): string }): void => void asked.push(new URL(request.url()).pathname);
  page.on("request", note);
  await running.api("POST", "/relays", { definition: { ...definition, name: "beside" }, secret: HOOK_SECRET }, "local");
  await Bun.sleep(1_200);
  expect(asked).toEqual([]);
  await hide(false);
  await page.getByRole("link", { name: "beside" }).waitFor();
  expect(asked.filter((path) => path.endsWith("/stream")).length).toBe(1);
  page.off("request", note);
});

test("while the service is away nothing is called live, and it says since when; then it is live again", async () => {
  const mend = await cutOff(page, "**/api/**");
  await running.restart();
  await mark.getByText(/^From before \d\d:\d\d$/).waitFor();
  expect(await page.locator(".live.on").count()).toBe(0);
  mend();
  await mark.getByText("Live", { exact: true }).waitFor();
});

test("a service that answers without its database is not called live, and is again once it serves", async () => {
  let isAway = false;
  await page.route(/\/api\/(?!.*stream)/, (route) =>
    isAway ? route.fulfill({ status: 503, json: { code: "not_recorded", message: "Away." } }) : route.fallback(),
  );
  await page.goto(at("events"));
  await mark.getByText("Live", { exact: true }).waitFor();
  isAway = true;
  await put(["behind"]);
  await page.getByText("What you see is from before.").waitFor();
  await mark.getByText("From before").waitFor();
  isAway = false;
  await put(["after"]);
  await mark.getByText("Live", { exact: true }).waitFor();
});

test("nothing of all this was refused by the page's policy or broke in its console", () => {
  expect(complaints.filter((said) => !said.includes("net::ERR_"))).toEqual([]);
});
