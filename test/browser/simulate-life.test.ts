/** Plays a life of a selling kit from the page of its source: with the keyboard, on a phone, after a lost answer, and not in production. */
import { afterAll, expect, test } from "bun:test";
import { KITS } from "../../src/rules/senders/kit-registry.ts";
import { findBarriers } from "../kit/axe.ts";
import { openDashboard } from "../kit/browser.ts";
import { APP } from "../kit/running-service.ts";
import { saveSellingKit } from "../kit/saved-kit.ts";

const dashboard = await openDashboard({ environments: ["development", "production"] });
const { page, running, complaints, at } = dashboard;
afterAll(() => dashboard[Symbol.asyncDispose]());
for (const kit of KITS.filter(({ sender }) => sender === "lemon-squeezy")) {
  await saveSellingKit(running, kit);
  await saveSellingKit(running, kit, { environment: "production", secret: "the-secret-of-production-here" });
}
const dialog = page.getByRole("dialog", { name: "Simulate Lemon Squeezy" });
const steps = dialog.locator(".life-steps > li");

test("plays a life with the keyboard, and shows each step with its events and what changed", async () => {
  await page.goto(at("relays/lemon-squeezy"));
  await page.getByRole("button", { name: "Simulate…" }).press("Enter");
  await dialog.getByLabel("Life").selectOption({ label: "A purchase that is refunded" });
  await dialog.getByLabel("Person (optional)").fill("ada@example.com");
  await page.keyboard.press("Enter");
  await dialog.getByText("3 of 3 steps played for ada@example.com.").waitFor();
  expect(await steps.count()).toBe(3);
  expect(await steps.nth(0).locator(".life-changes dd").allInnerTexts()).toEqual(["none → course", "0 → 100", "none → course"]);
  await steps.nth(1).getByText("Nothing changed for the person.").waitFor();
  expect(await steps.nth(2).locator(".life-events a").allInnerTexts()).toEqual(["lemon-squeezy", "lemon-squeezy-refund"]);
  expect(await findBarriers(page)).toEqual([]);
  await steps.nth(2).getByRole("link", { name: "lemon-squeezy-refund" }).click();
  await page
    .getByRole("heading", { level: 1 })
    .filter({ hasText: /evt_|order/ })
    .or(page.locator(".run"))
    .first()
    .waitFor();
  expect(page.url()).toContain("/events/evt_");
  expect(complaints).toEqual([]);
});

test("continues with the same step after a lost answer, and plays nothing twice", async () => {
  await page.goto(at("relays/lemon-squeezy"));
  await page.getByRole("button", { name: "Simulate…" }).click();
  await dialog.getByLabel("Life").selectOption({ label: "A purchase" });
  let sent = 0;
  // The first answer to a step is lost after the service took it.
  await page.route("**/simulations", async (route) => {
    const isStep = route.request().postData()?.includes('"step"') === true;
    if (!isStep || ++sent > 1) return await route.fallback();
    await route.fetch();
    return await route.abort();
  });
  await dialog.getByRole("button", { name: "Play" }).click();
  await dialog.getByRole("button", { name: "Continue" }).click();
  await dialog.getByText(/^1 of 1 step played for ada-/).waitFor();
  expect(await steps.nth(0).locator(".life-changes dd").allInnerTexts()).toEqual(["none → course", "0 → 100", "none → course"]);
  const [{ count } = { count: 0 }] = await running.rows<{ count: number }>(
    "SELECT count(*) AS count FROM purchase JOIN person ON person.id = person_id WHERE email LIKE 'ada-%'",
  );
  expect(count).toBe(1);
});

test("fits a phone, and says why the service refuses", async () => {
  await page.setViewportSize({ width: 390, height: 780 });
  await page.goto(at("relays/lemon-squeezy"));
  await running.api("POST", "/relays/lemon-squeezy-refund/pause");
  await page.getByRole("button", { name: "Simulate…" }).click();
  await dialog.getByRole("button", { name: "Play" }).click();
  await dialog.getByText("The relay lemon-squeezy-refund is paused").waitFor();
  await running.api("POST", "/relays/lemon-squeezy-refund/resume");
  await dialog.getByLabel("Life").selectOption({ label: "A subscription" });
  await dialog.getByRole("button", { name: "Play" }).click();
  await dialog.getByRole("button", { name: "Play again" }).waitFor();
  expect(await dialog.evaluate((shown) => shown.scrollWidth <= shown.clientWidth)).toBe(true);
  expect(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth)).toBe(true);
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
});

test("has no button on a follower, on another relay, and in production", async () => {
  await page.setViewportSize({ width: 1280, height: 860 });
  await page.goto(at("relays/lemon-squeezy-refund"));
  await page.getByRole("button", { name: "Pause" }).waitFor();
  expect(await page.getByRole("button", { name: "Simulate…" }).count()).toBe(0);
  await page.goto(`${running.service.url}/apps/${APP}/production/relays/lemon-squeezy`);
  await page.getByRole("button", { name: "Pause" }).waitFor();
  expect(await page.getByRole("button", { name: "Simulate…" }).count()).toBe(0);
});
