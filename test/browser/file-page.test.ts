/** Tests files on the Records page: upload, download without changes, rejection at the field, use by a record, deletion, and the audit. */
import { afterAll, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { MAX_FILE_BYTES } from "../../src/base/limit.ts";
import { openDashboard } from "../kit/browser.ts";

const dashboard = await openDashboard();
const { page, running, at, complaints } = dashboard;
afterAll(() => dashboard[Symbol.asyncDispose]());

const api = async (method: string, path: string, body?: unknown) => (await running.api(method, path, body, "local")).body;
const dialog = page.getByRole("dialog");
const gone = () => dialog.waitFor({ state: "detached" });
const BYTES = Buffer.from(Uint8Array.from({ length: 3_000 }, (_, at) => at % 256));
const HOSTILE = "<img src=x>.html";

test("before the first file, the page says what files are and how to add one", async () => {
  await page.goto(at("records"));
  await page.getByRole("navigation", { name: "Records" }).getByRole("link", { name: "Files" }).click();
  await page.waitForURL(/tab=files/);
  await page.getByRole("heading", { name: "No files yet" }).waitFor();
});

test("an oversized file is rejected at its field and not sent, and another is stored under the given name", async () => {
  await page.getByRole("button", { name: "Upload a file…" }).click();
  const input = dialog.getByLabel(/^File/);
  await input.setInputFiles({ name: "large.bin", mimeType: "application/octet-stream", buffer: Buffer.alloc(MAX_FILE_BYTES + 1) });
  await dialog.locator(".field-problem").getByText("large.bin has 5.0 MiB, over the limit of 5 MB").waitFor();
  expect(await dialog.getByRole("button", { name: "Upload" }).isDisabled()).toBe(true);
  await input.setInputFiles({ name: "bill.pdf", mimeType: "application/pdf", buffer: BYTES });
  await dialog.getByLabel(/^Name/).fill("a/b");
  await dialog.getByRole("button", { name: "Upload" }).click();
  await dialog.getByText("is not a file name").waitFor();
  await dialog.getByLabel(/^Name/).fill("March bill.pdf");
  await dialog.getByRole("button", { name: "Upload" }).click();
  await gone();
  await page
    .getByRole("row", { name: /March bill\.pdf/ })
    .getByText("application/pdf")
    .waitFor();
  expect((await api("GET", "/files")).items).toMatchObject([{ name: "March bill.pdf", mediaType: "application/pdf", bytes: 3_000 }]);
  expect((await api("GET", "/audit?action=file.uploaded")).items).toMatchObject([{ after: { mediaType: "application/pdf", bytes: 3_000 } }]);
});

test("a download has the same bytes, and an HTML file stays a download", async () => {
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("link", { name: "March bill.pdf" }).click()]);
  expect(download.suggestedFilename()).toBe("March bill.pdf");
  expect(readFileSync(await download.path())).toEqual(BYTES);
  await page.getByRole("button", { name: "Upload a file…" }).click();
  await dialog.getByLabel(/^File/).setInputFiles({ name: HOSTILE, mimeType: "text/html", buffer: Buffer.from("<script>alert(1)</script>") });
  await dialog.getByRole("button", { name: "Upload" }).click();
  await gone();
  const [page2] = await Promise.all([page.waitForEvent("download"), page.getByRole("link", { name: HOSTILE }).click()]);
  expect(readFileSync(await page2.path(), "utf8")).toBe("<script>alert(1)</script>");
  expect(await page.locator("img").count()).toBe(0);
});

test("a file in use by a record cannot be deleted and links to the record, and a deletion later is audited", async () => {
  const [, { id }] = (await api("GET", "/files")).items;
  await api("POST", "/collections", { name: "orders", kind: "shared", fields: { bill: { type: "file" } } });
  const { record } = await api("POST", "/collections/orders/records", { data: { bill: id } });
  await page.goto(at(`records/orders/${record.id}`));
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("link", { name: "Download the file" }).click()]);
  expect(readFileSync(await download.path())).toEqual(BYTES);
  await page.goto(at("records?tab=files"));
  await page.getByRole("button", { name: "Delete… March bill.pdf" }).click();
  await dialog.getByRole("button", { name: "Delete", exact: true }).click();
  await dialog.getByText(`The record ${record.id} of orders uses this file`).waitFor();
  await dialog.getByRole("link", { name: "Records › orders" }).waitFor();
  await api("DELETE", `/collections/orders/records/${record.id}`);
  await dialog.getByRole("button", { name: "Delete", exact: true }).click();
  await gone();
  await page.getByRole("link", { name: "March bill.pdf" }).waitFor({ state: "detached" });
  expect((await api("GET", "/audit?action=file.deleted")).items).toMatchObject([{ target: `file:${id}` }]);
});

test("a narrow screen needs no sideways scrolling, and the pages log no error", async () => {
  await page.setViewportSize({ width: 360, height: 800 });
  await page.goto(at("records?tab=files"));
  await page.locator("main .table").waitFor();
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(360);
  expect(complaints.filter((one) => !/40[09]/.test(one))).toEqual([]);
});
