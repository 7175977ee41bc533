/**
 * Tests the Catalog page, from the empty page to a product that a relay sells. Also tests plans, access slugs, a refunded receipt, and an ended
 * subscription.
 */
import { afterAll, expect, test } from "bun:test";
import { openDashboard } from "../kit/browser.ts";
import { shoot } from "../kit/browser-shots.ts";

const dashboard = await openDashboard();
const { page, running, complaints, at } = dashboard;
afterAll(() => dashboard[Symbol.asyncDispose]());

const api = async (method: string, path: string, body?: unknown) => (await running.api(method, path, body, "local")).body;
const dialog = page.getByRole("dialog");
const tab = (name: string) => page.getByRole("navigation", { name: "Catalog" }).getByRole("link", { name });
const gone = () => dialog.waitFor({ state: "detached" });

const SALE = {
  name: "paid",
  trigger: { kind: "receiver", verify: { scheme: "hooks" }, map: { event_id: "id", person_email: "email" } },
  actions: [
    { type: "fulfil_product", product: "premium" },
    { type: "grant_access", entitlement: "access:beta" },
  ],
};

test("the empty page says how a product is sold, and links to a relay", async () => {
  await page.goto(at("home"));
  await page.getByRole("heading", { name: "Home" }).waitFor();
  await page.keyboard.press("g");
  await page.keyboard.press("c");
  await page.getByText("How to sell a product through a relay").waitFor();
  await page.getByRole("link", { name: "Create a relay" }).click();
  await page.waitForURL(/relays\/new/);
  await page.goBack();
});

const steps = page.getByRole("region", { name: "How to sell a product through a relay" });
const doneSteps = () => steps.getByText("(done)").count();

test("a product is created, rejected at its field, and sold through a relay that is linked next to it", async () => {
  await page.getByRole("button", { name: "New product" }).click();
  await dialog.getByLabel(/^Name/).fill("premium");
  await dialog.getByLabel(/^Title/).fill("Premium");
  await dialog.getByLabel(/^Credits/).fill("many");
  await dialog.getByRole("button", { name: "Create product" }).click();
  await dialog.locator(".field-problem").getByText("credits").waitFor();
  await dialog.getByLabel(/^Credits/).fill("25");
  await dialog.getByRole("button", { name: "Create product" }).click();
  await gone();
  await steps.getByRole("heading", { name: "Create the product (done)" }).waitFor();
  expect(await doneSteps()).toBe(1);
  await api("PUT", "/access/beta", { title: "Beta" });
  await api("POST", "/relays", { definition: SALE });
  await steps.getByRole("heading", { name: "Create the relay (done)" }).waitFor();
  expect(await doneSteps()).toBe(2);
  await shoot(page, "selling-steps");
  await page.getByRole("link", { name: "premium" }).click();
  await page.waitForURL(/open=premium/);
  await dialog.getByLabel(/^Sold through/).selectOption("relay");
  await dialog.getByLabel(/^Relay/).selectOption("paid");
  await dialog.getByLabel(/^Where buyers pay/).fill("https://buy.example.com/premium");
  await shoot(page, "product-form");
  await dialog.getByRole("button", { name: "Save" }).click();
  await gone();
  await steps.waitFor({ state: "detached" });
  const row = page.getByRole("row", { name: /premium/ });
  await row.getByText("fulfills it").waitFor();
  await row.getByText("25 credits").waitFor();
  await row.getByText("Premium", { exact: true }).waitFor();
  const sold = { kind: "relay", relay: "paid", url: "https://buy.example.com/premium" };
  expect((await api("GET", "/products/premium")).product.soldThrough).toEqual(sold);
  await page.getByRole("link", { name: "premium" }).click();
  await dialog.getByLabel(/^Where buyers pay/).fill("");
  await dialog.getByRole("button", { name: "Save" }).click();
  await gone();
  expect((await api("GET", "/products/premium")).product.soldThrough).toEqual({ kind: "relay", relay: "paid" });
});

test("a plan becomes the default, and an access slug in use is deleted only after a second confirmation", async () => {
  await tab("Plans").click();
  await page.getByText("No plans yet").waitFor();
  await page.getByRole("button", { name: "New plan" }).click();
  await dialog.getByLabel(/^Name/).fill("free");
  await dialog.getByRole("button", { name: "Create plan" }).click();
  await page.getByRole("row", { name: /free/ }).getByText("default").waitFor();
  await api("PUT", "/plans/pro", {});
  const { person } = await api("POST", "/persons", { email: "bo@example.com" });
  await api("POST", `/persons/${person.id}/grants`, { entitlement: "access:beta" });
  await tab("Access slugs").click();
  await page.getByRole("link", { name: "access:beta" }).click();
  await dialog.getByRole("button", { name: "Delete…" }).click();
  await dialog.getByText("their events fail until it exists again").waitFor();
  await dialog.getByRole("button", { name: "Delete access slug" }).click();
  await dialog.getByText("is held by 1 person").waitFor();
  await dialog.getByRole("button", { name: "Delete and keep the grants" }).click();
  await gone();
  await page.getByText("No access slugs yet").waitFor();
  await api("POST", "/receipts", { ref: "pay_1", person: person.id, product: "premium", amountMinor: 129_900, currency: "EUR" });
  await api("POST", "/receipts", { ref: "pay_2", person: person.id, plan: "pro" });
});

test("a receipt links its person, is found by its ref and is refunded, and a subscription is ended", async () => {
  await tab("Receipts").click();
  await page.getByText("€1,299.00").waitFor();
  await page.getByLabel("Find by complete ref").fill("pay_1");
  await page.waitForURL(/ref=pay_1/);
  await page.getByText("pay_2").waitFor({ state: "detached" });
  await page.getByRole("button", { name: /^Refund… premium/ }).click();
  await dialog.getByText("This moves no money").waitFor();
  await dialog.getByRole("heading", { name: /^Take back what premium gave \S+@\S+\?$/ }).waitFor();
  await dialog.getByText("(ref pay_1)").waitFor();
  await dialog.getByRole("button", { name: "Take back", exact: true }).click();
  await gone();
  await page.getByText("Refunded").waitFor();
  await tab("Subscriptions").click();
  await page.getByRole("button", { name: /^End… pro/ }).click();
  await dialog.getByRole("heading", { name: /^End pro of \S+@\S+\?$/ }).waitFor();
  await dialog.getByRole("button", { name: "End subscription" }).click();
  await gone();
  await page.getByRole("row", { name: /pro/ }).getByText("Ended").waitFor();
});

test("a narrow screen needs no sideways scrolling, and the pages log no error", async () => {
  await page.setViewportSize({ width: 360, height: 800 });
  for (const name of ["", "plans", "access", "receipts", "subscriptions"]) {
    await page.goto(at(`catalog?tab=${name}`));
    await page.locator("main :is(.table, .empty, .selling-steps)").first().waitFor();
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    expect([name, width <= 360]).toEqual([name, true]);
  }
  expect(complaints).toEqual([]);
});
