/** Tests the Records page: a record's author, exact numbers, concurrent changes, and hostile data without effect. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { openDashboard } from "../kit/browser.ts";
import { stageCarol } from "../kit/staged-person.ts";

const dashboard = await openDashboard();
const { page, running, at, complaints } = dashboard;
afterAll(() => dashboard[Symbol.asyncDispose]());
const HOSTILE = "<img src=x onerror=alert(1)>\u202etxt";
const BIG = "12345678901234567890";

const make = (method: string, path: string, body?: unknown) => running.api(method, path, body, "local");

beforeAll(async () => {
  await stageCarol(running);
  const trigger = { kind: "data_change", collection: "orders", on: ["created", "updated"] };
  const saved = await make("POST", "/relays", {
    definition: { name: "on-order", trigger, actions: [{ type: "write_record", collection: "log", data: {} }] },
  });
  expect(saved.status).toBe(201);
});

test("collections link to records, each with its relay and event", async () => {
  await page.goto(at("records"));
  await page.getByRole("link", { name: "notices" }).click();
  await page.getByText("Thank you for cs_live_be07").waitFor();
  await page.getByRole("link", { name: "shop" }).first().waitFor();
  const event = page.getByRole("link", { name: "event", exact: true }).first();
  for (const width of [1280, 360]) {
    await page.setViewportSize({ width, height: 720 });
    const isCut = await event.evaluate((one) => {
      const cell = one.closest(".writer")?.parentElement?.getBoundingClientRect();
      return one.getBoundingClientRect().right > (cell?.right ?? 0) + 1;
    });
    expect({ width, isCut }).toEqual({ width, isCut: false });
  }
  await page.setViewportSize({ width: 1280, height: 720 });
  await event.click();
  await page.waitForURL(/\/events\/evt_/);
  await page.goBack();
  await page.getByRole("link", { name: / record rec_/ }).click();
  await page.getByRole("heading", { name: "Record of notices" }).waitFor();
  await page.getByRole("definition").getByRole("link", { name: "carol@example.com" }).waitFor();
});

test("a record form has typed fields with exact numbers, and shows which relays it triggers", async () => {
  await page.goto(at("records/orders"));
  await page.getByRole("button", { name: "New record…" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("link", { name: "on-order" }).waitFor();
  const data = dialog.getByRole("textbox", { name: "Data" });
  await data.fill("{ no");
  await dialog.getByRole("button", { name: "Create record" }).click();
  await dialog.getByText("This is not JSON").waitFor();
  await data.fill('{"amount":"many"}');
  await dialog.getByRole("button", { name: "Create record" }).click();
  await dialog
    .getByText(/amount/)
    .last()
    .waitFor();
  await data.fill(`{"order":${JSON.stringify(HOSTILE)},"amount":4,"note":{"big":${BIG}}}`);
  await dialog.getByRole("button", { name: "Create record" }).click();
  await page.getByRole("heading", { name: "Record of orders" }).waitFor();
  await page.getByText(BIG).waitFor();
  await page.getByText(/onerror=alert/).waitFor();
  expect(await page.locator("img").count()).toBe(0);
  await page.getByRole("link", { name: "Text" }).click();
  await page.waitForURL(/as=text/);
  await page.locator(".record-text").getByText(BIG).waitFor();
});

test("a text finds a record", async () => {
  const address = page.url();
  await page.goto(at("records/orders?q=nothing-such"));
  await page.getByRole("heading", { name: "No record matches" }).waitFor();
  await page.getByRole("searchbox", { name: "Text in a record" }).fill("ONERROR");
  await page.waitForURL(/q=ONERROR/);
  await page.getByRole("link", { name: / record rec_/ }).waitFor();
  await page.goto(address);
});

test("a concurrent change is shown next to the user's and never overwritten unseen", async () => {
  await page.getByRole("button", { name: "Change…" }).click();
  const dialog = page.getByRole("dialog");
  const id = new URL(page.url()).pathname.split("/").at(-1) ?? "";
  await dialog.getByRole("textbox", { name: "Data" }).fill('{"order":"mine"}');
  expect((await make("PUT", `/collections/orders/records/${id}`, { data: { order: "theirs" } })).status).toBe(200);
  await dialog.getByRole("button", { name: "Save" }).click();
  await dialog.getByText(/The record was changed on/).waitFor();
  await dialog.getByText('"theirs"').waitFor();
  await dialog.getByRole("button", { name: "Save my version" }).click();
  await dialog.getByRole("button", { name: "Save" }).click();
  await dialog.waitFor({ state: "detached" });
  await page.locator(".record-text").getByText('"mine"').waitFor();
});

test("a record is deleted after a confirmation, and the list returns", async () => {
  await page.getByRole("button", { name: "Delete…" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await page.waitForURL(/\/records\/orders$/);
  await page.getByRole("heading", { name: "No records yet" }).waitFor();
});

test("the pages violate no content policy and log no error", () => {
  expect(complaints).toEqual([]);
});
