/**
 * Tests recording a payment that was made elsewhere: errors at their fields, a preview, and one receipt despite repeated clicks or lost responses.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { openDashboard } from "../kit/browser.ts";

const dashboard = await openDashboard();
const { page, running, at } = dashboard;
afterAll(() => dashboard[Symbol.asyncDispose]());

const api = async (method: string, path: string, body?: unknown) => (await running.api(method, path, body, "local")).body;
const dialog = page.getByRole("dialog");
const toast = page.locator(".toast");
const gone = () => dialog.waitFor({ state: "detached" });
const receipts = async () => (await api("GET", "/purchases")).items;
const see = dialog.getByRole("button", { name: "Preview payment" });
const record = dialog.getByRole("button", { name: "Record payment" });
let ada: string;

beforeAll(async () => {
  ada = (await api("POST", "/persons", { email: "ada@example.com" })).person.id;
});

test("without a product, the page says what to create first", async () => {
  await page.goto(at("catalog?tab=receipts"));
  await page.getByRole("button", { name: "Record a payment…" }).click();
  await dialog.getByText("First create a product or a plan").waitFor();
  await dialog.getByRole("button", { name: "Close" }).click();
  await gone();
  await api("PUT", "/products/lamp", { title: "A lamp", credits: 5 });
  await api("PUT", "/plans/free", { default: true });
  await api("PUT", "/plans/pro", {});
});

const WRONG: [field: RegExp, typed: string, words: string, right: string][] = [
  [/^Person/, "bob@example.com", "No person here is bob@example.com", "ada@example.com"],
  [/^Currency/, "EUX", "EUX is not a currency", "EUR"],
  [/^Amount/, "1,234.00", "1,234.00 is no amount in EUR", "42,50"],
  [/^Ref/, "pay_1", "pay_1 is already recorded: ada@example.com paid lamp with €9.00. If this is another payment, enter its own ref", "pay_7"],
];

test("errors appear at their fields, and a preview records nothing", async () => {
  await api("POST", "/receipts", { ref: "pay_1", person: ada, product: "lamp", amountMinor: 900, currency: "EUR" });
  await page.reload();
  await page.getByRole("button", { name: "Record a payment…" }).click();
  await dialog.getByLabel(/^Paid item/).selectOption("product:lamp");
  for (const [field, , , right] of WRONG) await dialog.getByLabel(field).fill(right);
  for (const [field, typed, words, right] of WRONG) {
    await dialog.getByLabel(field).fill(typed);
    await see.click();
    await dialog
      .locator(".field", { has: page.getByLabel(field) })
      .locator(".field-problem")
      .getByText(words)
      .waitFor();
    await dialog.getByLabel(field).fill(right);
  }
  expect(await receipts()).toHaveLength(1);
});

test("a preview comes first: a double click on the way records nothing, and a double click there records once", async () => {
  await see.dblclick();
  await dialog.getByText("They get lamp permanently, and 5 credits. Relay writes a permanent receipt. Relay moves no money.").waitFor();
  await dialog.getByText("ada@example.com paid €42.50 for the product lamp, under pay_7.").waitFor();
  expect(await receipts()).toHaveLength(1);
  await dialog.getByRole("button", { name: "Back" }).click();
  expect(await dialog.getByLabel(/^Amount/).inputValue()).toBe("42,50");
  await see.click();
  await record.dblclick();
  await gone();
  await toast.getByText("The payment pay_7 is recorded: ada@example.com has lamp.").waitFor();
  await page.getByRole("row", { name: /pay_7/ }).getByText("€42.50").waitFor();
  expect(await receipts()).toMatchObject([{ ref: "pay_7", amountMinor: 4250, currency: "EUR", origin: "payment" }, { ref: "pay_1" }]);
  expect((await api("GET", "/audit?action=receipt.recorded")).items[0].actor).toStartWith("owner");
});

test("a lost response is reported, and a repeat returns the same receipt", async () => {
  await api("PATCH", `/persons/${ada}`, { status: "suspended" });
  await page.goto(at(`people/${ada}`));
  await page.getByRole("button", { name: "Record a payment…" }).click();
  await dialog.getByLabel(/^Paid item/).selectOption("plan:pro");
  await dialog.getByLabel(/^Ref/).fill("inv-12");
  await dialog.getByLabel(/^Customer/).fill("cus_1");
  await see.click();
  await dialog.getByText("They are on the plan pro from now on, until you end it. No relay ends it.").waitFor();
  await dialog.getByText("The person is suspended and cannot use the access until you activate them.").waitFor();
  await page.route("**/receipts", async (route) => {
    await route.fetch();
    await route.abort();
  });
  await record.click();
  await dialog.getByText("The result is unknown.").waitFor();
  await page.unroute("**/receipts");
  await page.route("**/receipts", (route) => route.fulfill({ status: 502, body: "<h1>Bad Gateway</h1>" }));
  await record.click();
  await dialog.getByText("A proxy answered 502").waitFor();
  await dialog.getByText("The result is unknown.").waitFor();
  await page.unroute("**/receipts");
  await record.click();
  await gone();
  await toast.getByText("The payment inv-12 was recorded before: nothing changed.").waitFor();
  expect((await receipts()).filter(({ ref }: { ref: string }) => ref === "inv-12")).toHaveLength(1);
  expect((await api("GET", `/persons/${ada}`)).subscription).toMatchObject({ plan: "pro" });
  await page.getByRole("button", { name: "End plan…" }).waitFor();
});

test("a replaced plan, and a product that a relay also sells, are announced before", async () => {
  await api("PUT", "/plans/team", {});
  await api("POST", "/relays", {
    definition: {
      name: "paid",
      trigger: { kind: "receiver", verify: { scheme: "hooks" }, map: { event_id: "id", person_email: "email" } },
      actions: [{ type: "grant_plan", plan: "team" }],
    },
  });
  await api("PUT", "/plans/team", { soldThrough: { kind: "relay", relay: "paid" } });
  await page.reload();
  await page.getByRole("button", { name: "Record a payment…" }).click();
  await dialog.getByLabel(/^Paid item/).selectOption("plan:team");
  await dialog.getByLabel(/^Ref/).fill("inv-13");
  await see.click();
  await dialog.getByText("Their plan pro ends.").waitFor();
  await dialog.getByText("from now on you bill the plan").waitFor();
  await page.keyboard.press("Escape");
  await gone();
  expect((await receipts()).map(({ ref }: { ref: string }) => ref)).toEqual(["inv-12", "pay_7", "pay_1"]);
});
