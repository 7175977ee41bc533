/** Tests the second factor in the dashboard: adding an authenticator app, the second step of a sign-in, recovery codes, the reset and the rule. */
import { afterAll, expect, test } from "bun:test";
import type { Page } from "playwright-core";
import { systemClock } from "../../src/base/clock.ts";
import { findBarriers } from "../kit/axe.ts";
import { listen, openDashboard, startBrowser } from "../kit/browser.ts";
import { shoot } from "../kit/browser-shots.ts";
import { codeOf } from "../kit/factor.ts";

const stack = new AsyncDisposableStack();
const dashboard = stack.use(await openDashboard({ config: { mode: "server" }, environments: ["development", "production"] }));
const { page, running, at, complaints } = dashboard;
afterAll(() => stack.disposeAsync());

const OWNER = "owner@example.com";
const KIM = "kim@example.com";
const PASSWORD = "a long enough password";
let codes: string[] = [];

async function typePassword(on: Page, email: string): Promise<void> {
  await on.goto(running.service.url);
  await on.getByLabel("E-mail").fill(email);
  await on.getByLabel("Password").fill(PASSWORD);
  await on.getByRole("button", { name: "Sign in", exact: true }).click();
}

/** Adds an app with the open form, and returns its secret and the recovery codes. */
async function addApp(on: Page, shot: string): Promise<{ secret: string; codes: string[] }> {
  await on.getByLabel("Name of the device").fill("My phone");
  await on.getByRole("button", { name: "Continue" }).click();
  await on.getByRole("img", { name: "QR code of the secret" }).waitFor();
  await shoot(on, `${shot}-qr`);
  expect(await findBarriers(on)).toEqual([]);
  const secret = (await on.locator('[data-secret="Authenticator secret"]').innerText()).replace(/\s/g, "");
  await on.getByRole("textbox", { name: /^Code/ }).fill("000000");
  await on.getByRole("button", { name: "Add the app" }).click();
  await on.getByText(/is not the code of your app now/).waitFor();
  // The step before the present one, so that the next sign-in can use the present one.
  await on.getByRole("textbox", { name: /^Code/ }).fill(codeOf(secret, systemClock.now(), -1));
  await on.getByRole("button", { name: "Add the app" }).click();
  const shown = on.locator('[data-secret="Recovery codes"]');
  await shown.waitFor();
  await shoot(on, `${shot}-codes`);
  const all = (await shown.innerText()).trim().split("\n");
  await on.getByRole("button", { name: "Copy Recovery codes" }).click();
  await on.getByRole("button", { name: "I stored the codes" }).click();
  return { secret, codes: all };
}

test("a member adds an authenticator app, and gets ten recovery codes", async () => {
  await page.getByLabel("E-mail").fill(OWNER);
  await page.getByLabel("Password").fill(PASSWORD);
  await page.getByRole("button", { name: "Create the owner and sign in" }).click();
  await page.waitForURL(/\/development\/home$/);
  await page.goto(at("settings?tab=sessions"));
  await page.getByText("Only your password protects your account.").waitFor();
  await page.getByRole("button", { name: "Add an authenticator app" }).click();
  const added = await addApp(page, "factor");
  ({ codes } = added);
  expect(codes.length).toBe(10);
  await page.getByText("10 recovery codes are left.").waitFor();
  await page.getByText("My phone", { exact: true }).waitFor();
  await shoot(page, "factor-settings", { fullPage: true });
  expect(await findBarriers(page)).toEqual([]);
});

test("a sign-in then needs a second step: a code, or a recovery code", async () => {
  const fresh = await (await startBrowser(stack)).newPage();
  complaints.push(...listen(fresh));
  await typePassword(fresh, OWNER);
  await fresh.getByRole("heading", { name: "Enter your code" }).waitFor();
  await shoot(fresh, "factor-step");
  expect(await findBarriers(fresh)).toEqual([]);
  await fresh.getByRole("textbox", { name: /^Code/ }).fill("000000");
  await fresh.getByRole("button", { name: "Continue" }).click();
  await fresh.getByText(/is not the code of your app now/).waitFor();
  await fresh.getByRole("button", { name: "Use a recovery code" }).click();
  await fresh.getByLabel("Recovery code").fill(codes[0] ?? "");
  await fresh.getByRole("button", { name: "Continue" }).click();
  await fresh.waitForURL(/\/home$/);
  await fresh.goto(at("settings?tab=sessions"));
  await fresh.getByText("9 recovery codes are left.").waitFor();
});

test("an owner requires a second factor, and a member without one can only add one", async () => {
  await page.goto(at("settings?tab=members"));
  await page.getByRole("button", { name: "Invite a member" }).click();
  await page.getByLabel("E-mail address").fill(KIM);
  await page.getByRole("button", { name: "Create link" }).click();
  const link = await page.locator('[data-secret="Link"]').innerText();
  await page.getByRole("button", { name: "Copy Link" }).click();
  await page.getByRole("button", { name: "I copied the link" }).click();
  await page.getByLabel("Each member needs a second factor").click();
  await page.getByText("Each member needs a second factor now.").waitFor();
  const kim = await (await startBrowser(stack)).newPage();
  complaints.push(...listen(kim));
  await kim.goto(link);
  await kim.getByLabel("Password").fill(PASSWORD);
  await kim.getByRole("button", { name: "Set the password and sign in" }).click();
  await kim.getByRole("heading", { name: "Add a second factor" }).waitFor();
  await shoot(kim, "factor-required");
  await addApp(kim, "factor-required");
  await kim.waitForURL(/\/home$/);
});

test("an owner resets the factor of another member", async () => {
  await page.goto(at("settings?tab=members"));
  await page.getByRole("button", { name: `Reset the second factor of ${KIM}` }).click();
  await shoot(page, "factor-reset");
  await page.getByRole("button", { name: "Reset the factor" }).click();
  await page.getByText(`${KIM} signs in with only the password now.`).waitFor();
  await shoot(page, "factor-members", { fullPage: true });
  expect(await page.getByRole("button", { name: `Reset the second factor of ${KIM}` }).count()).toBe(0);
});

test("the pages reported no error", () => {
  expect(complaints).toEqual([]);
});
