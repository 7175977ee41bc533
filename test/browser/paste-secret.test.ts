/** Tests that a relay of a sender that makes its own secret asks for it: on the page after the creation, in its checklist and in its dialog. */
import { afterAll, expect } from "bun:test";
import { openDashboard } from "../kit/browser.ts";
import { shoot } from "../kit/browser-shots.ts";
import { dependentSteps } from "../kit/dependent-steps.ts";

const SECRET = "whsec_stripe1A2b3C4d5E6f7G8h9J0k";
const WIDTHS = [390, 1280, 1920];
const test = dependentSteps();
const dashboard = await openDashboard({ config: { mode: "server", baseUrl: null }, environments: ["production"] });
const { page, running, at, complaints } = dashboard;
afterAll(() => dashboard[Symbol.asyncDispose]());

const secretOf = async () => (await running.api("GET", "/relays/stripe", undefined, "production")).body.relay.secret;

test("the page after the creation shows the URL and a field for the secret, and generates none", async () => {
  await page.getByLabel("E-mail").fill("owner@example.com");
  await page.getByLabel("Password").fill("a long enough password");
  await page.getByRole("button", { name: "Create the owner and sign in" }).click();
  await page.waitForURL(/\/home$/);
  await page.goto(at("relays/new?step=template&sender=stripe"));
  await page.getByRole("button", { name: "Use this sender" }).click();
  await page.getByPlaceholder("Leave empty to paste it on the next page").waitFor();
  await page.getByRole("button", { name: "Create relay" }).click();
  await page.getByRole("heading", { name: "stripe was created" }).waitFor();
  await page
    .locator("code", { hasText: /\/stripe$/ })
    .first()
    .waitFor();
  expect(await page.locator("[data-secret]").count()).toBe(0);
  expect(await secretOf()).toMatchObject({ kind: "none", issuedBy: "Stripe" });
  const missing = page.locator("main").getByRole("link", { name: "Records", exact: true });
  expect(await missing.getAttribute("href")).toEndWith("/production/records");
  expect(await page.evaluate(() => scrollY)).toBe(0);
  await shoot(page, "paste-secret", { widths: WIDTHS, fullPage: true });
});

test("a secret that does not fit is rejected, and a pasted one is stored", async () => {
  const card = page.getByRole("region", { name: "Secret", exact: true });
  const store = card.getByRole("button", { name: "Store secret" });
  expect(await store.isDisabled()).toBe(true);
  await card.getByLabel("The secret that Stripe shows").fill("short");
  await store.click();
  await card.getByRole("alert").waitFor();
  await card.getByLabel("The secret that Stripe shows").fill(SECRET);
  await store.click();
  await card.getByText("Relay stored the secret.").waitFor();
  expect(await secretOf()).toMatchObject({ kind: "pasted", issuedBy: "Stripe" });
});

test("the checklist shows what is left at the sender, and the secrets dialog creates no secret", async () => {
  await page.getByRole("link", { name: "Open relay" }).click();
  const steps = page.getByRole("region", { name: "Set it up" });
  await steps.getByRole("heading", { name: "Register the receiver URL at Stripe", exact: true }).waitFor();
  await steps.getByRole("heading", { name: "Paste the secret here (done)" }).waitFor();
  await steps.getByText("checkout.session.completed").first().waitFor();
  const create = steps.getByRole("link", { name: "Create collection stripe_events…" });
  expect(await create.getAttribute("href")).toContain("/production/records?new=stripe_events");
  await shoot(page, "checklist", { widths: WIDTHS, fullPage: true });
  await page.getByRole("navigation", { name: "Relay" }).getByRole("link", { name: "Secrets" }).click();
  await page.getByRole("button", { name: "Paste…" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("The secret the sender shows").waitFor();
  expect(await dialog.getByRole("radio").count()).toBe(0);
});

test("the pages violate no content policy and log no error", () => {
  expect(complaints).toEqual([]);
});
