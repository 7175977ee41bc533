/** The page is told what changes: at once, through a flood, through the service's end and beginning, and not while nobody looks. */
import { afterAll, expect, test } from "bun:test";
import { systemClock } from "../../src/base/clock.ts";
import { cutOff, openDashboard } from "../kit/browser.ts";
import { followChanges } from "../kit/change-stream.ts";
import { putEvents, WRITE } from "../kit/event-flow.ts";
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
/** What the service tells whoever follows, as the page is told it too. */
const follow = () => followChanges(`${running.service.url}/api/apps/${APP}/local/stream`, { authorization: `Bearer ${running.keys["local"]}` });

/** A page whose clock moves as it is told, and the events in it: the next look at what the service tells of is twelve of its seconds away. */
async function openStill() {
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
  await still.goto(at("events"));
  await still.getByRole("banner").getByRole("status").getByText("Live", { exact: true }).waitFor();
  return { still, pass: (ms: number) => still.evaluate((by) => (window as unknown as { pass(ms: number): void }).pass(by), ms) };
}

test("what happens is shown a moment later, not at the next look", async () => {
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

test("a flood of events neither freezes the page nor stops it from following", async () => {
  const { still, pass } = await openStill();
  await using beside = await follow();
  const asked = new Map<string, number>();
  still.on("request", (request) => {
    const path = new URL(request.url()).pathname;
    asked.set(path, (asked.get(path) ?? 0) + 1);
  });
  let seconds = 0;
  for (; seconds < 8; seconds++) {
    const heard = beside.messages.length;
    for (let sent = 0; beside.messages.length === heard; sent += 250)
      await put(Array.from({ length: 250 }, (_, nth) => `flood_${seconds}_${sent + nth}`));
    await pass(1_000);
  }
  await still.keyboard.press("j");
  await still.waitForFunction(() => document.activeElement?.matches("[data-row]"));
  await still.waitForFunction(() => document.querySelectorAll("main [data-row]").length > 40);
  // However much comes, what is shown is asked for once in a second of its clock; relays are only named here, and what comes to them changes no name.
  expect([...asked].filter(([path, times]) => times > (path.endsWith("/relays") ? 0 : seconds + 1))).toEqual([]);
  expect([...asked].filter(([path, times]) => path.endsWith("/events") && times > 1)).toHaveLength(1);
  await still.close();
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
  await using beside = await follow();
  await running.api("POST", "/relays", { definition: { ...definition, name: "beside" }, secret: HOOK_SECRET }, "local");
  await beside.until("relay");
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
