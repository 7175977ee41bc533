/** Tests the Requests page: the result and cause of each request, unknown names with the probable relay, and accepted requests as they arrive. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { openDashboard } from "../kit/browser.ts";
import { sendSigned } from "../kit/browser-sender.ts";
import { shoot } from "../kit/browser-shots.ts";

const dashboard = await openDashboard();
const { page, running, at, complaints } = dashboard;
afterAll(() => dashboard[Symbol.asyncDispose]());

let secret = "";

beforeAll(async () => {
  const trigger = { kind: "receiver", verify: { scheme: "hooks" }, map: { event_id: "id", person_email: "email", event_type: "type" } };
  const orders = { name: "orders", trigger: { ...trigger, when: { event_type: "paid" } }, actions: [{ type: "grant_credits", amount: 1 }] };
  secret = (await running.api("POST", "/relays", { definition: orders }, "local")).body.receiverSecret;
  const quiet = { ...orders, name: "quiet", trigger };
  await running.api("POST", "/relays", { definition: quiet }, "local");
  await page.goto(at("requests"));
});

const rows = page.locator(".calls > li");

test("before the first request, the page says what it will show", async () => {
  await page.getByRole("heading", { name: "No requests yet" }).waitFor();
});

test("requests appear without a reload, each with its result and cause", async () => {
  await sendSigned(running, "orders", secret, "one", '{"id":"one","email":"ada@example.com","type":"paid"}');
  await sendSigned(running, "orders", secret, "two", '{"id":"two","email":"ada@example.com","type":"sent"}');
  await sendSigned(running, "orders", secret, "one", '{"id":"one","email":"ada@example.com","type":"paid"}');
  await running.hook("quiet", { body: "{}", headers: { "content-type": "application/json" } });
  await running.hook("order", { body: "{}", headers: {} });
  for (const word of ["Accepted", "Ignored", "Duplicate", "Rejected"]) await rows.getByText(word, { exact: true }).waitFor();
  expect(await rows.count()).toBe(4);
  const accepted = rows.filter({ hasText: "Accepted" });
  await accepted.getByText("Done", { exact: true }).waitFor();
  await accepted.getByText("paid", { exact: true }).waitFor();
  const id = await accepted.locator("code").innerText();
  expect(id).toMatch(/^…[0-9a-f]{8}$/);
  expect((await rows.filter({ hasText: "Duplicate" }).innerText()).replace(/\s+/g, " ")).toContain(`paid ${id} Done`);
  await rows.filter({ hasText: "Ignored" }).getByText("event_type").first().waitFor();
  await rows.filter({ hasText: "Rejected" }).getByText("bad_signature").waitFor();
  await page.getByText("Did the sender mean").getByRole("link", { name: "orders" }).waitFor();
});

test("filters by relay and outcome are in the address", async () => {
  await page.getByRole("combobox", { name: "Outcome" }).selectOption("refused");
  await page.waitForURL(/outcome=refused/);
  await page.waitForFunction(() => document.querySelectorAll(".calls > li").length === 1);
  await page.getByRole("combobox", { name: "Relay" }).selectOption("orders");
  await page.getByRole("heading", { name: "No request matches" }).waitFor();
  await page.getByRole("button", { name: "Show all" }).click();
  await page.getByRole("combobox", { name: "Outcome" }).selectOption("accepted");
  await rows.getByRole("link", { name: /^Event evt_\w+ of orders$/ }).click();
  await page.getByRole("heading", { name: "orders event" }).waitFor();
});

test("rejection causes can be selected in words, with their counts", async () => {
  await page.goto(at("requests"));
  await page.getByRole("combobox", { name: "Cause" }).selectOption("bad_signature");
  await page.waitForURL(/code=bad_signature/);
  await page.waitForFunction(() => document.querySelectorAll(".calls > li").length === 1);
  await page.getByRole("option", { name: "Signature missing or wrong · 1" }).waitFor({ state: "attached" });
  await page.getByRole("button", { name: "Clear" }).click();
});

test("a relay's page links to its requests, and g l opens all of them", async () => {
  await page.goto(at("relays/quiet"));
  await page.getByRole("link", { name: "All requests" }).click();
  await page.waitForURL(/\/requests\?relay=quiet$/);
  await page.goto(at("relays"));
  await page.getByRole("link", { name: "quiet" }).waitFor();
  await page.keyboard.press("g");
  await page.keyboard.press("q");
  await page.waitForURL(/\/requests$/);
});

test("a rejected request shows the type and id that it claims, escaped and marked as not verified", async () => {
  const body = JSON.stringify({ id: "evt_1 <b>x</b>", type: "invoice.paid" });
  await sendSigned(running, "orders", `${secret.slice(0, -4)}AAAA`, "three", body);
  await page.goto(at("requests?outcome=refused&relay=orders"));
  const row = rows.filter({ hasText: "not verified" });
  await row.getByText("invoice.paid").waitFor();
  expect((await row.innerText()).replace(/\s+/g, " ")).toContain("invoice.paid evt_1 <b>x</b> not verified");
  await page.goto(at("requests"));
  await rows.first().waitFor();
  await shoot(page, "requests");
});

test("the pages violate no content policy and log no error", () => {
  expect(complaints).toEqual([]);
});
