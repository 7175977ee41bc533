/** Tests live updates of the page: immediate, during a flood, across a restart of the service, and none in a hidden tab. */
import { afterAll, expect, test } from "bun:test";
import { systemClock } from "../../src/base/clock.ts";
import { cutOff, openDashboard } from "../kit/browser.ts";
import { followChanges } from "../kit/change-stream.ts";
import { putEvents, until, WRITE } from "../kit/event-flow.ts";
import { HOOK_SECRET, receiverDefinition } from "../kit/relay-definition.ts";
import { APP } from "../kit/running-service.ts";

const held = Bun.serve({ port: 0, fetch: () => new Response() });
const { port = 0 } = held;
await held.stop(true);
const dashboard = await openDashboard({ config: { port }, environments: ["local"] });
const { page, context, running, at, complaints } = dashboard;
afterAll(() => dashboard[Symbol.asyncDispose]());

const definition = receiverDefinition({ map: { event_id: "id" }, actions: [{ ...WRITE, collection: "orders" }] });
const mark = page.getByRole("banner").getByRole("status");
const put = (ids: readonly string[]) => putEvents(running, ids, { nowMs: systemClock.now() });
/** Follows the same stream of changes as the page. */
const follow = () => followChanges(`${running.service.url}/api/apps/${APP}/local/stream`, { authorization: `Bearer ${running.keys["local"]}` });

/** Opens a page with a controlled clock. Its next poll is at least five seconds of that clock away. */
async function openStill(address = "events") {
  const still = await context.newPage();
  await still.addInitScript(() => {
    let nowMs = performance.now();
    performance.now = () => nowMs;
    Object.assign(window, {
      pass: (ms: number) => {
        nowMs += ms;
      },
    });
  });
  await still.goto(at(address));
  await still.getByRole("banner").getByRole("status").getByText("Live", { exact: true }).waitFor();
  return { still, pass: (ms: number) => still.evaluate((by) => (window as unknown as { pass(ms: number): void }).pass(by), ms) };
}

test("a change is shown within a moment instead of at the next poll", async () => {
  expect((await running.api("POST", "/relays", { definition, secret: HOOK_SECRET }, "local")).status).toBe(201);
  const { still, pass } = await openStill();
  for (const count of [1, 2, 3]) {
    await put([`first_${count}`]);
    await pass(2_000);
    await still
      .locator("main [data-row]")
      .nth(count - 1)
      .waitFor();
  }
  await still.close();
});

const hook = () => running.hook("orders", { body: "{}", headers: { "content-type": "application/json" } });
/** The parts of a page that one change concerns, each by the address that it loads. */
const PARTS: [what: string, address: string, change: () => Promise<unknown>, parts: RegExp[]][] = [
  ["an event", "home", () => put(["home"]), [/\/local\/overview$/, /\/api\/overview$/, /\/histogram\?/, /\/url-times\?/, /\/bulk-replays\?/]],
  ["an event", "relays/orders", () => put(["relay"]), [/\/relays\/orders$/, /\/funnel$/, /\/checklist$/, /\/events\?/, /\/calls\?/, /\/retry$/]],
  ["a rejected request", "home", hook, [/\/local\/overview$/, /\/api\/overview$/, /\/histogram\?/]],
  ["a rejected request", "relays/orders", hook, [/\/relays\/orders$/, /\/funnel$/, /\/checklist$/, /\/calls\?/]],
];
test.each(PARTS)("%s makes the parts of %s load again together, before any poll", async (_what, address, change, parts) => {
  const { still, pass } = await openStill(address);
  const asked = new Set<string>();
  const answered = new Set<string>();
  const pathOf = (request: { url(): string }) => request.url().replace(running.service.url, "");
  still.on("request", (request) => void asked.add(pathOf(request)));
  still.on("requestfinished", (request) => void answered.add(pathOf(request)));
  await still.reload();
  const loadAll = (paths = asked) => until(`the parts of ${address} load`, () => parts.every((part) => [...paths].some((path) => part.test(path))));
  // A load that ends after the clock moved would be too new to load again.
  await loadAll(answered);
  await still.evaluate(() => new Promise((shown) => setTimeout(shown)));
  await still.getByRole("banner").getByRole("status").getByText("Live", { exact: true }).waitFor();
  await using direct = await follow();
  const heard = direct.messages.length;
  asked.clear();
  await change();
  await until("the change is announced", () => direct.messages.length > heard);
  // The page's clock moves less than the shortest interval of a poll.
  await pass(2_000);
  await loadAll();
  await still.close();
});

test("a flood of events neither freezes the page nor stops its updates", async () => {
  const { still, pass } = await openStill();
  await using direct = await follow();
  const asked = new Map<string, number>();
  still.on("request", (request) => {
    const { pathname, search } = new URL(request.url());
    const address = pathname + search;
    asked.set(address, (asked.get(address) ?? 0) + 1);
  });
  let seconds = 0;
  for (; seconds < 8; seconds++) {
    const heard = direct.messages.length;
    for (let sent = 0; direct.messages.length === heard; sent += 250)
      await put(Array.from({ length: 250 }, (_, nth) => `flood_${seconds}_${sent + nth}`));
    await pass(1_000);
  }
  await still.keyboard.press("j");
  await still.waitForFunction(() => document.activeElement?.matches("[data-row]"));
  await still.waitForFunction(() => document.querySelectorAll("main [data-row]").length > 40);
  // The page may request each address once per second of its clock. It must not request relays, because events change no relay's name.
  expect([...asked].filter(([address, times]) => times > (/\/relays(\?|$)/.test(address) ? 0 : seconds + 1))).toEqual([]);
  expect([...asked].filter(([address, times]) => /\/events(\?|$)/.test(address) && times > 1)).toHaveLength(1);
  await still.close();
});

test("a hidden tab sends no request and follows no stream, and shows new data when it returns", async () => {
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
  await using direct = await follow();
  await running.api("POST", "/relays", { definition: { ...definition, name: "beside" }, secret: HOOK_SECRET }, "local");
  await direct.until("relay");
  expect(asked).toEqual([]);
  await hide(false);
  await page.getByRole("link", { name: "beside" }).waitFor();
  expect(asked.filter((path) => path.endsWith("/stream")).length).toBe(1);
  page.off("request", note);
});

test("without the service, nothing is called live and the time of the loss is shown, until it is live again", async () => {
  const reconnect = await cutOff(page, "**/api/**");
  await running.restart();
  await mark.getByText(/^From before \d\d:\d\d$/).waitFor();
  expect(await page.locator(".live.on").count()).toBe(0);
  reconnect();
  await mark.getByText("Live", { exact: true }).waitFor();
});

test("a service without its database is not called live, until it serves again", async () => {
  let isAway = false;
  await page.route(/\/api\/(?!.*stream)/, (route) =>
    isAway ? route.fulfill({ status: 503, json: { code: "not_recorded", message: "Away." } }) : route.fallback(),
  );
  await page.goto(at("events"));
  await mark.getByText("Live", { exact: true }).waitFor();
  isAway = true;
  await put(["behind"]);
  await page.getByText("You see older data.").waitFor();
  await mark.getByText("From before").waitFor();
  isAway = false;
  await put(["after"]);
  await mark.getByText("Live", { exact: true }).waitFor();
});

test("the pages violate no content policy and log no error", () => {
  expect(complaints.filter((said) => !said.includes("net::ERR_"))).toEqual([]);
});
