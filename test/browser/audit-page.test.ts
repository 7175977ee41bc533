/**
 * Tests the Audit page: each change with its author and old values, by keyboard, with filters in the address and links. Hostile data never becomes
 * markup.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { SERVER_SCOPE, writeAudit } from "../../src/platform/audit/audit.ts";
import { openDashboard } from "../kit/browser.ts";

const dashboard = await openDashboard();
const { page, running, at, complaints } = dashboard;
afterAll(() => dashboard[Symbol.asyncDispose]());
const HOSTILE = "<img src=x onerror=alert(1)>\u202etxt";

beforeAll(async () => {
  const make = (method: string, path: string, body?: unknown) => running.api(method, path, body, "local");
  await make("PUT", "/access", { items: [{ slug: "beta", title: "Beta" }] });
  await make("PUT", "/products/lamp", { title: "Lamp" });
  const { version } = (await make("GET", "/products/lamp")).body.product;
  await make("PUT", "/products/lamp", { title: HOSTILE, credits: 5, version });
  const { person } = (await make("POST", "/persons", { email: "ada@example.com" })).body;
  await make("PATCH", `/persons/${person.id}`, { status: "suspended" });
  const row = { environmentId: SERVER_SCOPE, nowMs: Date.now(), by: "command line", action: "owner.removed" as const };
  await running.service.store.write("dashboard", (tx) => writeAudit(tx, { ...row, target: "owner:former@example.com" }));
});

const rows = page.locator(".audit-row");

test("lists changes newest first, and the keyboard opens the values before and after", async () => {
  await page.goto(at("home"));
  await page.getByRole("link", { name: "Audit log" }).waitFor();
  await page.keyboard.press("g");
  await page.keyboard.press("u");
  await rows.first().getByText("person changed").waitFor();
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await page.waitForURL(/open=aud_/);
  const opened = rows.first().locator("table");
  await opened.getByText("invited", { exact: true }).waitFor();
  await opened.getByText("suspended", { exact: true }).waitFor();
  await page.reload();
  await opened.waitFor();
  await page.keyboard.press("Escape");
});

test("on a phone, a field's name is above its old and new value, without broken words or sideways scrolling", async () => {
  await page.setViewportSize({ width: 360, height: 780 });
  await page.goto(at("audit-log"));
  const fields = rows.first().locator(".audit-fields");
  await rows.first().locator("[data-row]").click();
  await fields.getByText("suspended", { exact: true }).waitFor();
  expect(await fields.evaluate((one) => one.scrollWidth - one.clientWidth)).toBe(0);
  const [name, value] = [await fields.locator("tbody th code").first().boundingBox(), await fields.locator("tbody ins").first().boundingBox()];
  expect(name?.height ?? 99).toBeLessThan(25);
  expect(value?.height ?? 99).toBeLessThan(25);
  expect((name?.y ?? 0) + (name?.height ?? 0)).toBeLessThanOrEqual(value?.y ?? 0);
  await page.setViewportSize({ width: 1280, height: 720 });
  await page.keyboard.press("Escape");
});

test("filters are in the address, and the subject of a change is a link", async () => {
  await page.getByRole("searchbox", { name: "Target, for example relay:orders" }).fill("product:lamp");
  await page.waitForURL(/target=product%3Alamp/);
  await page.waitForFunction(() => document.querySelectorAll(".audit-row").length === 2);
  await rows.first().locator("[data-row]").click();
  await rows.first().getByText("Lamp", { exact: true }).waitFor();
  await rows
    .first()
    .getByText(/onerror=alert/)
    .waitFor();
  expect(await page.locator("img").count()).toBe(0);
  await page.getByRole("button", { name: "Clear" }).click();
  await page.getByRole("combobox", { name: "Action" }).selectOption("person.changed");
  await page.waitForURL(/action=person.changed/);
  await rows.first().getByRole("link", { name: "ada@example.com" }).first().click();
  await page.getByRole("heading", { name: "ada@example.com" }).waitFor();
  await page.getByRole("link", { name: "All changes" }).click();
  await page.waitForURL(/\/audit-log\?target=person/);
  await rows.getByText("person invited").waitFor();
});

test("changes of the whole server have a separate list, and their owner is a link", async () => {
  await page.getByRole("link", { name: "Whole server" }).click();
  await page.waitForURL(/\/audit-log\?of=server$/);
  await rows.getByText("owner removed").waitFor();
  await rows.first().locator("[data-row]").click();
  await rows
    .first()
    .getByRole("link", { name: /^All of/ })
    .click();
  await page.waitForURL(/of=server&target=/);
  await rows.first().waitFor();
});

test("an empty list says that nothing was changed", async () => {
  await page.goto(at("audit-log?target=relay:none"));
  await page.getByRole("heading", { name: "No entry matches" }).waitFor();
});

test("the pages violate no content policy and log no error", () => {
  expect(complaints).toEqual([]);
});
