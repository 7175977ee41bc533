/** Tests that a save in the form writes the relay's file in local development, and that content without a field survives it. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { listen, startBrowser } from "../kit/browser.ts";
import { type CliProcess, startCli } from "../kit/cli-process.ts";
import { poll } from "../kit/patience.ts";

const stack = new AsyncDisposableStack();
const cwd = mkdtempSync(join(tmpdir(), "relay-form-"));
const file = join(cwd, "service/relays/checkout-completed.json");
let page: Page;
let dev: CliProcess;
let base = "";
let complaints: string[] = [];
const field = (path: string) => page.locator(`[data-field="${path}"]`);

beforeAll(async () => {
  stack.defer(() => rmSync(cwd, { recursive: true, force: true }));
  dev = stack.use(startCli(["dev", "--example", "--port", "0"], { cwd }));
  const link = /http\S+/.exec(await dev.line("Dashboard"))?.[0] ?? "";
  base = new URL(link).origin;
  const context = await startBrowser(stack);
  page = await context.newPage();
  complaints = listen(page);
  await page.goto(link);
  await page.waitForURL(/\/home$/);
});
afterAll(() => stack.disposeAsync());

/** The example in a layout of its own: tabs, a list on one line, and an order that no program would choose. */
const OWN = `{
\t"actions": [
\t\t{ "data": { "order": "{{mapped.order}}" }, "type": "write_record", "collection": "orders", "to": "person" }
\t],
\t"trigger": {
\t\t"when": { "event_type": [ "checkout.session.completed" ] },
\t\t"map": {
\t\t\t"order": "data.object.id",
\t\t\t"event_id": "id",
\t\t\t"event_type": "type",
\t\t\t"person_email": "data.object.customer_details.email"
\t\t},
\t\t"verify": { "scheme": "signature", "header": "stripe-signature", "signatureKey": "v1", "timestampKey": "t", "signedPayload": "{timestamp}.{body}" },
\t\t"kind": "receiver"
\t},
\t"name": "checkout-completed"
}
`;

test("a save in the form changes only the line of the edited field, in the layout of the file", async () => {
  await dev.line("Press Ctrl+C");
  writeFileSync(file, OWN);
  await dev.line("relay checkout-completed: changed from");
  await page.goto(`${base}/apps/local/local/relays/checkout-completed?tab=definition`);
  const path = field("trigger.map.order").locator("input").last();
  await path.waitFor();
  expect(
    await poll(
      () => path.inputValue(),
      (value) => value === "data.object.id",
    ),
  ).toBe("data.object.id");
  await path.fill("data.object.payment_intent");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page.getByText(/and wrote .*checkout-completed\.json/).waitFor();
  expect(readFileSync(file, "utf8")).toBe(OWN.replace('"data.object.id"', '"data.object.payment_intent"'));
  expect(complaints).toEqual([]);
});
