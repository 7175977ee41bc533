/** Tests the Alerts page: problems in words, and an alert that an owner resolves. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { raiseAlert } from "../../src/platform/audit/alert.ts";
import { raiseProblem } from "../../src/platform/audit/problem.ts";
import { recordAlertMailOutcomes } from "../../src/platform/audit/undelivered-alerts.ts";
import type { MailOutcome } from "../../src/platform/mail/mailer.ts";
import { openDashboard } from "../kit/browser.ts";
import { shoot } from "../kit/browser-shots.ts";

const dashboard = await openDashboard();
const { page, running, complaints, at } = dashboard;
afterAll(() => dashboard[Symbol.asyncDispose]());

beforeAll(async () => {
  const [environment] = await running.rows<{ id: number }>("SELECT id FROM environment WHERE name = 'local' AND app_id = 'app_test'");
  const key = { environmentId: environment?.id ?? 0, code: "relay_ignoring", target: "relay:orders", nowMs: running.clock.now() } as const;
  const message = "orders has ignored every call since yesterday, 7 so far: compare the relay's when with what the sender sends.";
  await running.service.store.write("app", async (tx) => {
    await raiseProblem(tx, { ...key, message });
    await raiseAlert(tx, { ...key, message });
  });
  await page.goto(at("alerts"));
});

const tab = (name: string) => page.getByRole("navigation", { name: "Alerts" }).getByRole("link", { name });

test("shows a problem in words next to its code, and the navigation shows the same count", async () => {
  const needs = page.getByRole("region", { name: "Needs attention" });
  await needs.getByText("ignores every request").waitFor();
  await needs.getByText("compare the relay's when").waitFor();
  await page.getByRole("navigation", { name: "Pages" }).getByLabel("1 open").waitFor();
});

test("an owner resolves an alert and is named next to it, its problem ends, and nothing needs attention", async () => {
  await tab("All alerts").click();
  const alerts = page.getByRole("region", { name: "Alerts" });
  await alerts.getByRole("button", { name: "Resolve: Ignores every request, relay:orders" }).click();
  await alerts.getByText("by owner@localhost").waitFor();
  expect(await running.rows("SELECT cleared_at IS NULL AS standing FROM problem WHERE code = 'relay_ignoring'")).toEqual([{ standing: 0 }]);
  await tab("All problems").click();
  await page.getByText("No open problems").waitFor();
  await page.getByRole("combobox", { name: "State" }).selectOption("true");
  await page.getByRole("region", { name: "Problems" }).getByText("Resolved").waitFor();
  await tab("Needs attention").click();
  await page.getByText("Nothing needs attention").waitFor();
  await page.getByRole("navigation", { name: "Pages" }).getByLabel("1 open").waitFor({ state: "detached" });
});

test("undelivered alert mails are reported on Home and Alerts with a link to the mail server, until one is delivered", async () => {
  const [environment] = await running.rows<{ id: number }>("SELECT id FROM environment WHERE name = 'local' AND app_id = 'app_test'");
  const note = (outcome: MailOutcome) =>
    running.service.store.write("app", (tx) =>
      recordAlertMailOutcomes(tx, environment?.id ?? 0, { outcomes: [outcome], sinceMs: running.clock.now(), nowMs: running.clock.now() }),
    );
  await note({
    kind: "failed",
    reason: "recipient_refused",
    message: "The mail server rejected the recipient's address. Its reply was 550.",
    retry: false,
  });
  for (const path of ["", "alerts"]) {
    await page.goto(at(path));
    const needs = page.getByRole("region", { name: "Needs attention" });
    await needs.getByRole("heading", { name: "Alerts are not mailed" }).waitFor();
    await needs.getByText("The last alert mail reached no owner.").waitFor();
    await page.getByRole("navigation", { name: "Pages" }).getByLabel("1 open").waitFor();
    await shoot(page, `alerts-unmailed-${path || "home"}`);
  }
  await page.getByRole("link", { name: "Open the mail server" }).click();
  await page.getByRole("heading", { name: "Mail", exact: true }).waitFor();
  expect(page.url()).toContain("/mail?tab=server");
  await page.goto(at("alerts"));
  await note({ kind: "sent" });
  await page.getByText("Nothing needs attention").waitFor();
});

test("switches select the alerts, and whether they are mailed", async () => {
  await tab("Alert settings").click();
  await page.getByRole("checkbox", { name: "Silent relay_silent" }).click();
  await page.getByText("Off: Silent.").waitFor();
  await page.getByRole("checkbox", { name: "Mail alerts to the owners" }).click();
  await page.getByText("Off: alerts by mail.").waitFor();
  const { settings } = (await running.api("GET", "/settings", undefined, "local")).body;
  expect([settings.alerts.relay_silent, settings.alerts.mail, settings.alerts.relay_failed]).toEqual([false, false, true]);
  await page.setViewportSize({ width: 360, height: 800 });
  for (const name of ["", "alerts", "problems", "channels", "switches"]) {
    await page.goto(at(`alerts?tab=${name}`));
    await page.locator("main :is(.table, .empty, .card)").first().waitFor();
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    expect([name, width <= 360]).toEqual([name, true]);
  }
  expect(complaints).toEqual([]);
});
