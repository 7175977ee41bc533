/** Tests imports of missed events on a relay's page: a file, its preview, the import and the mark on the event. Also tests the connector's switch. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { openDashboard } from "../kit/browser.ts";
import { shoot } from "../kit/browser-shots.ts";

const dashboard = await openDashboard();
const { page, running, complaints, at } = dashboard;
afterAll(() => dashboard[Symbol.asyncDispose]());

beforeAll(async () => {
  await running.api("POST", "/collections", { name: "notes", kind: "shared", fields: { text: { type: "text" } } }, "local");
  const definition = {
    name: "orders",
    trigger: { kind: "receiver", verify: { scheme: "hooks" }, map: { event_id: "id", event_type: "type" }, when: { event_type: "paid" } },
    actions: [{ type: "write_record", collection: "notes", data: { text: "x" } }],
  };
  expect((await running.api("POST", "/relays", { definition }, "local")).status).toBe(201);
  await page.goto(at("relays/orders"));
});

const lines = [
  ...Array.from({ length: 1_500 }, (_, id) => JSON.stringify({ id: `ord_${id}`, type: "paid" })),
  JSON.stringify({ id: "other", type: "<b>made</b>" }),
  "garbage <img src=x onerror=alert(1)>",
];
const file = { name: "export <1>.jsonl", mimeType: "application/x-ndjson", buffer: Buffer.from(lines.join("\n")) };

test("a file's preview is shown before the import", async () => {
  await page.getByRole("button", { name: "Import missed events…" }).click();
  await shoot(page, "missed-choose");
  await page.getByLabel("Export file").setInputFiles(file);
  await page.getByRole("button", { name: "Import 1,500 events" }).waitFor();
  await shoot(page, "missed-plan");
  const told = await page.locator("dialog").innerText();
  expect(told).toContain("export <1>.jsonl");
  expect(told).toContain('when.event_type must be "paid" and the request has "<b>made</b>"');
  expect(told).toMatch(/Rejected: 1 line \(1502\): it is not JSON/);
  expect((await running.rows("SELECT 1 FROM event")).length).toBe(0);
});

test("the import reports its results, and the events are marked", async () => {
  await page.getByRole("button", { name: "Import 1,500 events" }).click();
  await page.getByText("1,500 events imported").waitFor();
  await shoot(page, "missed-done");
  await page.getByRole("button", { name: "Close" }).click();
  await page.getByText("imported", { exact: true }).first().waitFor();
  await shoot(page, "missed-relay");
  await page.locator("a[data-row]").first().click();
  await page.getByText("webhook, unsigned, imported").waitFor();
  const [audit] = await running.rows<{ after: string; actor: string }>("SELECT after, actor FROM audit WHERE action = 'events.imported' LIMIT 1");
  expect(JSON.parse(audit?.after ?? "{}").file).toBe(`sha256:${new Bun.CryptoHasher("sha256").update(file.buffer).digest("hex")}`);
  expect(audit?.actor).toStartWith("owner:");
});

test("thirty lines with thirty causes are all reported, rare causes after a click", async () => {
  await page.goto(at("relays/orders"));
  await page.getByRole("button", { name: "Import missed events…" }).click();
  const bad = Array.from({ length: 30 }, (_, nth) => JSON.stringify({ id: `bad_${nth}`, type: `kind.${nth}` })).join("\n");
  await page.getByLabel("Export file").setInputFiles({ name: "bad.jsonl", mimeType: "application/x-ndjson", buffer: Buffer.from(bad) });
  const dialog = page.locator("dialog");
  await dialog.getByText("22 lines for other causes").click();
  await dialog.getByText('Ignored: 1 line (30): when.event_type must be "paid" and the request has "kind.29"').waitFor();
  expect(await dialog.locator(".missed-causes li").count()).toBe(30);
  await page.keyboard.press("Escape");
});

test("the same file again contains nothing to import", async () => {
  await page.goto(at("relays/orders"));
  await page.getByRole("button", { name: "Import missed events…" }).click();
  await page.getByLabel("Export file").setInputFiles(file);
  await page.getByRole("button", { name: "Nothing to import" }).waitFor();
  expect(await page.getByRole("button", { name: "Nothing to import" }).isDisabled()).toBe(true);
  await page.getByRole("button", { name: "Cancel" }).click();
});

test("the settings switch the connector's writing tools off and on", async () => {
  await page.goto(at("settings"));
  const box = page.getByRole("checkbox", { name: "Allow tools that change data" });
  await box.waitFor();
  await shoot(page, "connector-switch");
  expect(await box.isChecked()).toBe(true);
  await box.click();
  await page.getByText("The connector can only read now.").waitFor();
  expect((await running.api("GET", "/settings", undefined, "local")).body.settings.connector).toEqual({ writes: false, saves: false });
  await page.reload();
  expect(await page.getByRole("checkbox", { name: "Allow tools that change data" }).isChecked()).toBe(false);
  await box.click();
  await page.getByText("The connector can change things now.").waitFor();
  const saves = page.getByRole("checkbox", { name: "Allow tools that save relays and the catalog" });
  expect(await saves.isChecked()).toBe(false);
  await saves.click();
  await page.getByText("The connector can save relays and the catalog now.").waitFor();
  await shoot(page, "connector-saves");
  expect((await running.api("GET", "/settings", undefined, "local")).body.settings.connector).toEqual({ writes: true, saves: true });
});

test("a button sends a test event, and the event is marked", async () => {
  await page.goto(at("relays/orders"));
  await page.getByRole("button", { name: "Send a test event" }).click();
  await page.getByText("Test event sent").waitFor();
  await page.getByText("test", { exact: true }).first().waitFor();
  await shoot(page, "test-event");
});

test("the pages log no error", () => {
  expect(complaints).toEqual([]);
});
