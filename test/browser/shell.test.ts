/** Tests the frame around the pages: a page whose code loads later, and the message if it does not load. */
import { afterAll, expect, test } from "bun:test";
import { cutOff, openDashboard } from "../kit/browser.ts";

const dashboard = await openDashboard();
const { page, at, complaints } = dashboard;
afterAll(() => dashboard[Symbol.asyncDispose]());

test("the pages are in groups, and each has its letter", async () => {
  await page.goto(at("relays"));
  const navigation = page.getByRole("navigation", { name: "Pages" });
  await navigation.getByRole("link", { name: "Home" }).waitFor();
  expect(
    await navigation
      .locator("a, h2")
      .allTextContents()
      .then((all) => all.map((text) => text.trim())),
  ).toEqual([
    ...["Home", "Relays", "Events", "Requests"],
    ...["Data", "People", "Records", "Catalog", "Mail"],
    ...["Monitor", "Alerts", "Audit log", "Settings"],
  ]);
  await navigation.getByRole("list", { name: "Data" }).getByRole("link", { name: "Catalog" }).waitFor();
});

const MOVED: [old: string, present: string][] = [
  ["calls?relay=orders&outcome=refused", "requests?relay=orders&outcome=refused"],
  ["collections", "records"],
  ["collections/orders/rec_1?as=text", "records/orders/rec_1?as=text"],
  ["selling?tab=receipts&q=a%20b", "catalog?tab=receipts&q=a%20b"],
  ["attention?tab=switches", "alerts?tab=switches"],
  ["audit?target=relay%3Aorders", "audit-log?target=relay%3Aorders"],
];
test.each(MOVED)("the address %s of an earlier release leads to %s", async (old, present) => {
  await page.goto(at("home"));
  await page.goto(at(old));
  await page.waitForURL(at(present));
  await page.locator("main h1").first().waitFor();
  expect(await page.getByText("Page not found").count()).toBe(0);
  await page.goBack();
  await page.waitForURL(at("home"));
});

test("a page whose code fails to load says so, and loads again", async () => {
  await page.goto(at("relays"));
  await page.getByRole("heading", { name: "Relays", exact: true }).waitFor();
  const reconnect = await cutOff(page, /\.js$/);
  await page.evaluate(() => {
    const link = document.body.appendChild(document.createElement("a"));
    link.href = `${location.pathname}/to/production`;
    link.click();
    link.remove();
  });
  await page.getByText("This page could not load. The service cannot be reached, or it was updated.").waitFor();
  await page.getByRole("heading", { name: "Promote to production" }).waitFor();
  reconnect();
  await page.getByRole("button", { name: "Load again" }).click();
  // The page has loaded, because its own message is visible.
  await page.getByText("Local development reads its own service directory, and accepts no sync").waitFor();
  expect(complaints.splice(0).every((said) => said.includes("net::ERR_FAILED"))).toBe(true);
});

test("the pages violate no content policy and log no error", () => {
  expect(complaints).toEqual([]);
});
