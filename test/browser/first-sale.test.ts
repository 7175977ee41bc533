/**
 * Tests the complete setup without curl: from an empty server to a paid relay in production, using only what the dashboard shows and links. Each step
 * is found by its visible words. Only the provider's request comes from outside.
 */
import { afterAll, beforeAll, expect } from "bun:test";
import type { Locator, Page } from "playwright-core";
import Stripe from "stripe";
import { systemClock } from "../../src/base/clock.ts";
import { listen, startBrowser } from "../kit/browser.ts";
import { showJson } from "../kit/browser-editor.ts";
import { makeAuthority } from "../kit/certificate.ts";
import { dependentSteps } from "../kit/dependent-steps.ts";
import { startMailServer } from "../kit/mail-server.ts";
import { type BareService, startBareService } from "../kit/running-service.ts";

const test = dependentSteps();

const stack = new AsyncDisposableStack();
const SECRETS = { development: "whsec_dev4cVqGZKd2TtW0nY8mRjXsLb6H", production: "whsec_live9pQmXw3RkTz7NbYc5VdHs2J" };
const BUYER = "bea@buyer.example";
/** Holds the DNS records of the domain. */
const dns: string[] = [];
const mails = await startMailServer({ security: "none", authority: makeAuthority("Nobody") });

let running: BareService;
let page: Page;
let complaints: string[] = [];
let clicks = 0;

beforeAll(async () => {
  const config = { mode: "server", baseUrl: null, clock: systemClock, allowPrivate: ["127.0.0.1"] } as const;
  running = stack.use(await startBareService({ config, ports: { resolveTxt: async () => dns } }));
  const context = await startBrowser(stack);
  page = await context.newPage();
  complaints = listen(page);
});
afterAll(() => stack.disposeAsync());

type Role = "link" | "button";
async function click(role: Role, name: string | RegExp, within: Page | Locator = page): Promise<void> {
  clicks += 1;
  await within
    .getByRole(role, { name, exact: typeof name === "string" })
    .first()
    .click();
}
const openSection = (name: string) => click("link", name, page.getByRole("navigation", { name: "Pages" }));
const heading = (name: string | RegExp) => page.getByRole("heading", { name }).first().waitFor();
const ticked = (step: string) => heading(`${step} (done)`);
const told = (text: string | RegExp) => page.getByText(text).first().waitFor();

/** Sets up the domain, its DNS record, the mail server and a test mail, following the links of the relay's page. */
async function letMailLeave(): Promise<void> {
  await click("link", "Set a sender domain");
  await page.getByRole("textbox", { name: "Domain" }).fill("shop.example");
  await click("button", "Set domain");
  await told("Not verified yet");
  await told("_relay-service.shop.example");
  dns.splice(0, 1, (await page.getByText(/^relay-service-verification=/).textContent()) ?? "");
  await click("button", "Check again");
  await page.getByText("Verified", { exact: true }).waitFor();
  await click("link", "set the mail server");
  await page.getByLabel("Host").fill("127.0.0.1");
  await page.getByRole("textbox", { name: "Port" }).fill(String(mails.port));
  await page.getByLabel("Security").selectOption("none");
  await click("button", "Save mail server");
  await told("Mail server saved");
  await click("button", "Send a test mail");
  await told("was accepted by the mail server");
  await openSection("Relays");
  await click("link", "checkout", page.locator("main"));
  await ticked("Set up mail");
}

async function setProcessorSecret(secret: string): Promise<void> {
  await click("link", "Set the processor secret");
  await page.getByLabel("Signing secret").fill(secret);
  await click("button", "Set secret");
  await told("It is never shown again.");
  await openSection("Relays");
  await click("link", "checkout", page.locator("main"));
  await ticked("Store the processor secret");
}

test("the one-time link creates the owner, and the server asks for its first app", async () => {
  const link = (await running.service.makeSigninLink()) ?? "";
  await page.goto(new URL("/", link).href);
  await told("Open the set-up link that relay serve printed");
  await page.goto(link);
  await page.getByLabel("E-mail").fill("ann@example.com");
  await page.getByLabel("Password").fill("correct horse battery");
  await click("button", "Create the owner and sign in");
  await heading("Name your first app");
  await page.getByLabel("Name").fill("Shop");
  await click("button", "Create the app");
  await page.waitForURL(/\/apps\/shop\/development\/home$/);
});

test("a key for the app's server is created and shown once", async () => {
  await click("link", "Create a key");
  await click("button", "New key");
  await page.getByLabel("Name").fill("shop server");
  await click("button", "Create key");
  const key = await page.locator("[data-secret=Key]").innerText();
  expect(key).toStartWith("relay_dev_");
  await told("Relay shows it only once");
  await click("button", "I stored the secret");
  await page.getByRole("table", { name: "Keys" }).getByText("shop server").waitFor();
  expect(await page.content()).not.toContain(key);
  await openSection("Home");
  await ticked("Connect your app and server");
});

test("a relay starts from the template of a paid checkout", async () => {
  await click("link", "Start from an example");
  await click("button", /^Paid checkout/);
  await click("button", "Use this template");
  await showJson(page);
  await page.locator(".editor-state", { hasText: "Valid" }).waitFor();
  await click("button", "Create relay");
  await heading("checkout is ready");
  await click("link", "Open relay");
  await heading("Set it up");
});

test("its page creates the missing items: the access slug, and the product that it sells", async () => {
  await openSection("Catalog");
  await click("link", "Access slugs");
  await click("button", "New access slug");
  await page.getByRole("dialog").getByLabel(/^Slug/).fill("members");
  await click("button", "Create access slug");
  await page.getByRole("link", { name: "access:members" }).waitFor();
  await openSection("Relays");
  await click("link", "checkout", page.locator("main"));
  await click("link", "Create product premium…");
  const form = page.getByRole("dialog", { name: "New product" });
  await form.getByLabel(/^What it grants/).fill("access:members");
  await form.getByLabel(/^Credits/).fill("25");
  expect(await form.getByLabel(/^Name/).inputValue()).toBe("premium");
  expect(await form.getByLabel(/^Relay/).inputValue()).toBe("checkout");
  await click("button", "Create product");
  await page.waitForURL(/\/relays\/checkout$/);
  await ticked("Create the items that the actions name");
});

test("mail can be sent after the domain is verified and a mail server accepts it", async () => {
  await letMailLeave();
  expect(mails.taken.map(({ to }) => to)).toEqual([["ann@example.com"]]);
});

test("a signed test event is sent and done", async () => {
  await setProcessorSecret(SECRETS.development);
  await click("button", "Send a test event");
  await heading("The first real event is done");
  await page.getByRole("region", { name: "Events" }).getByText("Done", { exact: true }).waitFor();
});

test("it is promoted to production: the change is shown, and approved on a separate page", async () => {
  await click("link", "Promote to production…");
  await told("This is a dry run");
  await click("button", "Continue to approve 3 changes…");
  await heading("Change production of shop?");
  await click("button", "Approve and change production");
  await heading("Production of shop was changed");
  await click("link", "Open checkout in production");
  await page.waitForURL(/\/apps\/shop\/production\/relays\/checkout$/);
  await ticked("Create the items that the actions name");
});

test("production gets its own mail settings and processor's secret", async () => {
  await letMailLeave();
  await setProcessorSecret(SECRETS.production);
  await openSection("Home");
  await told("Receive the first request");
  await click("link", "Open checkout");
  await heading("The first request verifies");
});

test("the provider's first request becomes a done event", async () => {
  const url = await page.getByRole("region", { name: "Receiver URL" }).locator("code").innerText();
  const object = {
    object: "checkout.session",
    metadata: { product: "premium" },
    mode: "payment",
    payment_status: "paid",
    payment_intent: "pi_first",
    customer_details: { email: BUYER },
  };
  const payload = JSON.stringify({ id: "evt_first", object: "event", type: "checkout.session.completed", data: { object } });
  const signature = await Stripe.webhooks.generateTestHeaderStringAsync({ payload, secret: SECRETS.production });
  const headers = { "content-type": "application/json", "stripe-signature": signature };
  expect((await fetch(url.trim(), { method: "POST", headers, body: payload })).status).toBe(200);
  await page.getByText("checkout.session.completed").last().waitFor();
  await page.getByRole("region", { name: "Events" }).getByText("Done", { exact: true }).waitFor();
  await openSection("Home");
  await page.getByRole("link", { name: /^1 Done/ }).waitFor();
});

test("the buyer has the access, the purchase and the credits, and the timeline shows their source", async () => {
  await openSection("People");
  await click("link", BUYER);
  const now = page.getByRole("region", { name: "Current access" });
  await now.getByText("Has access", { exact: true }).waitFor();
  await now.getByText("access:members").waitFor();
  await now.getByText("25", { exact: true }).waitFor();
  await now.getByText("premium").first().waitFor();
  const story = page.getByRole("region", { name: "Timeline" });
  for (const words of ["checkout", "pi_first"]) await story.getByText(words).first().waitFor();
});

test("the mail was sent, and is listed on the Mail page", async () => {
  await openSection("Mail");
  await page.getByText("Thank you for your order").click();
  await told("Your payment: pi_first");
  await told("Sent");
  const mail = mails.taken.find(({ to }) => to.includes(BUYER));
  expect(mail?.from).toBe("event@shop.example");
});

test("the setup took few clicks, and the pages logged no error", () => {
  expect(clicks).toBeLessThanOrEqual(56);
  expect(complaints).toEqual([]);
});
