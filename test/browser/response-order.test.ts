/** Tests responses that arrive in another order than their requests: the page shows the newest request's response. */
import { afterAll, expect, test } from "bun:test";
import { openDashboard } from "../kit/browser.ts";

const dashboard = await openDashboard();
afterAll(() => dashboard[Symbol.asyncDispose]());

test("an earlier session's response does not lock the page that a link signed in", async () => {
  const browser = dashboard.page.context().browser();
  const link = await dashboard.running.service.makeSigninLink();
  if (browser === null || link === null) throw new Error("no browser or no link");
  const context = await browser.newContext();
  const page = await context.newPage();
  const late = Promise.withResolvers<void>();
  let held = 0;
  await page.route("**/api/session", async (route) => {
    const isFirst = route.request().method() === "GET" && held++ === 0;
    if (!isFirst) return route.continue();
    // Reads the response now, and delivers it after all others.
    const answer = await route.fetch();
    await late.promise;
    await route.fulfill({ response: answer });
  });
  await page.goto(link);
  await page.getByRole("heading", { name: "No relays yet" }).waitFor();
  const told = page.waitForResponse((response) => response.url().endsWith("/api/session"));
  late.resolve();
  await told;
  await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
  expect(held).toBeGreaterThan(1);
  expect(await page.locator(".shell[inert]").count()).toBe(0);
  await context.close();
});
