/** Tests a machine whose clock is hours off, for example after a battery loss: the page uses the service's time. */
import { afterAll, describe, expect, test } from "bun:test";
import { HOUR_MS } from "../../src/base/limit.ts";
import { openDashboard } from "../kit/browser.ts";
import { sendSigned } from "../kit/browser-sender.ts";

const dashboard = await openDashboard();
const { page, context, running, at } = dashboard;
afterAll(() => dashboard[Symbol.asyncDispose]());

const definition = {
  name: "orders",
  trigger: { kind: "receiver", verify: { scheme: "hooks" }, map: { event_id: "id" } },
  actions: [{ type: "write_record", collection: "missing", data: { text: "x" } }],
};
const { receiverSecret } = (await running.api("POST", "/relays", { definition }, "local")).body;
expect((await sendSigned(running, "orders", receiverSecret, "one", '{"id":"one"}')).status).toBe(200);
await running.drain();

describe.each([
  ["five hours ahead", 5],
  ["five hours behind", -5],
  ["a year behind", -365 * 24],
])("a clock %s", (_words, hours) => {
  test("hides nothing of the last hour, and selects no additional events for a replay", async () => {
    await context.clearCookies();
    const beganMs = Date.now();
    const other = await context.newPage();
    await other.addInitScript((offMs) => {
      const own = Date.now;
      Date.now = () => own() + offMs;
    }, hours * HOUR_MS);
    const asked: string[] = [];
    other.on("request", (request) => asked.push(request.url()));
    await other.goto((await running.service.makeSigninLink()) ?? "");
    await other.waitForURL((url) => url.pathname !== "/signin");
    await other.goto(at("home?range=1h"));
    await other.locator(".figure-dead b", { hasText: /^1$/ }).waitFor();
    await other.goto(at("events?state=dead&hours=1"));
    await other.locator("main [data-row]").first().waitFor();
    expect(await other.locator("main tbody tr").first().innerText()).toMatch(/just now|\b\d+ (s|min) ago/);
    const sinces = asked.flatMap((url) => new URL(url).searchParams.get("since") ?? []).map((since) => Date.parse(since));
    expect(sinces.length).toBeGreaterThan(1);
    // Expects an hour before the request, which came after the page opened, rounded to the bars of the chart.
    const [first, last] = [beganMs - 1.1 * HOUR_MS, Date.now() - 0.9 * HOUR_MS];
    expect(sinces.filter((since) => since < first || since > last)).toEqual([]);
    await other.close();
  });
});

test("a correct clock is used to the second", async () => {
  await page.goto((await running.service.makeSigninLink()) ?? "");
  await page.waitForURL((url) => url.pathname !== "/signin");
  let answered = 0;
  await page.route(/\/api\/.*\/events(\?|$)/, async (route) => {
    answered += 1;
    const answer = await route.fetch();
    await route.fulfill({ response: answer, headers: { ...answer.headers(), date: new Date(Date.now() - 20_000).toUTCString() } });
  });
  await page.goto(at("events"));
  await page.locator("main [data-row]").first().waitFor();
  expect(answered).toBeGreaterThan(0);
  expect(await page.locator("main tbody tr").first().innerText()).not.toMatch(/\bin \d+ s/);
});
