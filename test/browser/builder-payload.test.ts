/** Tests the request in view next to a definition: the tree and its keys, the uses of a value, the search, and the expected outcome. */
import { afterAll, beforeAll, expect } from "bun:test";
import { findBarriers } from "../kit/axe.ts";
import { openDashboard } from "../kit/browser.ts";
import { readEditor, writeEditor } from "../kit/browser-editor.ts";
import { sendSigned } from "../kit/browser-sender.ts";
import { shoot } from "../kit/browser-shots.ts";
import { dependentSteps } from "../kit/dependent-steps.ts";
import { poll } from "../kit/patience.ts";

const test = dependentSteps();
const dashboard = await openDashboard();
const { page, running, at, complaints } = dashboard;
afterAll(() => dashboard[Symbol.asyncDispose]());

const api = (method: string, path: string, body?: unknown) => running.api(method, path, body, "local");
const paid =
  '{"id":"one","type":"paid","number":123456789012345678901,"data":{"email":"ada@example.com","lines":[{"sku":"a"},{"sku":"b"}],"a.b":1,"odd":"a\\u202eb"},"more":{"1":1,"2":2,"3":3}}';
const row = (name: string | RegExp) => page.getByRole("treeitem", { name });
const use = (name: string | RegExp) =>
  page.getByRole("menu").getByRole(/^(Insert|Copy|Use under)/.test(String(name)) ? "menuitem" : "menuitemcheckbox", { name });
const outcome = page.getByRole("region", { name: "Expected outcome" });
/** Waits until the editor shows this trigger, in any order of its names. */
async function triggerIs(wanted: Record<string, unknown>): Promise<void> {
  const read = async () => JSON.parse((await readEditor(page).catch(() => "")) || "{}");
  const shown = await poll(
    () => read().catch(() => ({})),
    ({ trigger }) => Bun.deepEquals({ ...trigger, ...wanted }, trigger),
  );
  expect(shown.trigger).toEqual({ ...shown.trigger, ...wanted });
}

beforeAll(async () => {
  // A button fades for 120 ms, and the check of the contrast would measure a color in between.
  await page.emulateMedia({ reducedMotion: "reduce" });
  const trigger = { kind: "receiver", verify: { scheme: "hooks" }, map: { event_id: "id" } };
  const actions = [{ type: "call_url", url: "https://example.com/x" }];
  const secret = (await api("POST", "/relays", { definition: { name: "orders", trigger, actions } })).body.receiverSecret;
  await sendSigned(running, "orders", secret, "one", paid);
});

test("the newest event is in view as a tree with exact numbers and the names of the map", async () => {
  await page.goto(at("relays/orders?tab=definition"));
  await page.getByRole("group", { name: "Editors" }).getByRole("button", { name: "JSON only" }).click();
  await row('id: "one" mapped as event_id').waitFor();
  await row("number: 123456789012345678901").waitFor();
  await row("lines: [2 items]").waitFor();
});

test("the arrow keys move through the tree and fold it", async () => {
  await row(/^id:/).focus();
  const focused = () => page.evaluate(() => document.activeElement?.querySelector(".payload-text")?.textContent);
  await page.keyboard.press("End");
  expect(await focused()).toBe("3: 3");
  await page.keyboard.press("ArrowLeft");
  expect(await focused()).toBe("more: {3 fields}");
  await page.keyboard.press("ArrowLeft");
  expect(await row("3: 3").count()).toBe(0);
  await page.keyboard.press("ArrowRight");
  await row("3: 3").waitFor();
  await page.keyboard.press("ArrowRight");
  expect(await focused()).toBe("1: 1");
  await page.keyboard.press("Home");
  await page.keyboard.press("ArrowDown");
  expect(await focused()).toBe('type: "paid"');
});

test("Enter opens the uses of a value, and a choice changes only its lines of the definition", async () => {
  const before = await readEditor(page);
  await page.keyboard.press("Enter");
  await use("Use as event type").waitFor();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await row('type: "paid" mapped as event_type').waitFor();
  const after = await readEditor(page);
  expect(after).toBe(before.replace('"event_id": "id"', '"event_id": "id",\n      "event_type": "type"'));
  expect(await page.evaluate(() => document.activeElement?.getAttribute("role"))).toBe("treeitem");
});

test("a condition is added with the value in view, and the outcome follows", async () => {
  await row(/^type:/).click();
  await use("Only when this is “paid”").click();
  await triggerIs({ when: { event_type: "paid" } });
  await outcome.getByText("Matches", { exact: true }).waitFor();
  await writeEditor(page, (await readEditor(page)).replace('"event_type": "paid"', '"event_type": "sent"'));
  await outcome.getByText("Does not match").waitFor();
  await row(/^type:/).click();
  await use("Also when this is “paid”").click();
  await triggerIs({ when: { event_type: ["sent", "paid"] } });
  await outcome.getByText("Matches", { exact: true }).waitFor();
  await row(/^type:/).click();
  await use("Use as event type").click();
  await triggerIs({ when: undefined, map: { event_id: "id" } });
});

test("the person and the provider’s customer come from a value, and a person has one key", async () => {
  await row(/^email:/).click();
  await use("Use as the person’s email").click();
  await outcome.getByText("ada@example.com").waitFor();
  await row(/^email:/).click();
  await use("Use as the provider’s customer ID").click();
  await triggerIs({ map: { event_id: "id", customer_id: "data.email" }, customer: { id: "customer_id" } });
});

test("a value of a list gets a name, and the page says that its path is fixed", async () => {
  await row('sku: "b"').click();
  await page.getByText("This path always reads item 2 of data.lines. A request with another order gives another value.").waitFor();
  await use("Use under a name…").click();
  const dialog = page.getByRole("dialog", { name: "Use a value under a name" });
  await dialog.getByLabel("Name").fill("second");
  await dialog.getByRole("button", { name: "Use the name" }).click();
  await triggerIs({ map: { event_id: "id", customer_id: "data.email", second: "data.lines.1.sku" } });
  await row('sku: "b" mapped as second').waitFor();
});

test("a value that no path names says why", async () => {
  await row(/^a\.b:/).click();
  await page.getByText("A name in this path is empty or contains a dot or a brace").waitFor();
  await page.keyboard.press("Escape");
  expect(await page.getByRole("menu").count()).toBe(0);
});

test("a character that turns the text around is shown as an escape, in the tree and in the menu", async () => {
  await row(/^odd: "a\\u202eb"/).click();
  await use(/^Only when this is “a\\u202eb”/).waitFor();
  await page.keyboard.press("Escape");
});

test("the search lists values by name and by text, with their paths", async () => {
  await page.getByLabel("Find in the payload").fill("sku");
  await page.getByText("2 found.").waitFor();
  await row('data.lines.0.sku: "a"').waitFor();
  await page.getByLabel("Find in the payload").fill("ADA@");
  await row(/^data\.email:/).waitFor();
  await page.getByLabel("Find in the payload").fill("");
});

test("an invalid text says what stops it, keeps the last outcome, and the steps open and close by keyboard", async () => {
  await writeEditor(page, (await readEditor(page)).replace('"call_url"', '"call_urls"'));
  await outcome.getByText("Not valid yet").waitFor();
  await outcome.getByRole("button", { name: "Show steps" }).press("Enter");
  await outcome.getByText("Below is the outcome before this.").waitFor();
  await page.keyboard.press("Escape");
  await outcome.getByRole("button", { name: "Show steps" }).waitFor();
  await page.getByRole("button", { name: "Discard changes" }).click();
});

test("a pasted form is shown as its fields, and stays in view after a reload", async () => {
  await page.getByRole("combobox", { name: "Request" }).selectOption("paste");
  const dialog = page.getByRole("dialog", { name: "Paste a request" });
  await dialog.getByRole("textbox").fill("curl https://x.test -H 'content-type: application/x-www-form-urlencoded' -d 'from=ada&to=bob&to=eve'");
  await dialog.getByRole("button", { name: "Use this request" }).click();
  await row('from: "ada"').waitFor();
  await row("to: [2 items]").waitFor();
  await page.reload();
  await row('from: "ada"').waitFor();
  await page.getByRole("combobox", { name: "Request" }).selectOption("example");
  await row(/^id: "test_/).waitFor();
});

test("a case whose result changes with the edit is named", async () => {
  await api("PUT", "/relays/orders/cases/paid", { body: paid });
  await writeEditor(
    page,
    (await readEditor(page)).replace('"event_id": "id"', '"event_id": "id",\n      "event_type": "type"').replace('"actions": [', '"actions": ['),
  );
  await page.getByRole("combobox", { name: "Request" }).selectOption("case paid");
  await row(/^type:/).click();
  await use("Only when this is “paid”").click();
  await outcome.getByText("It would run").waitFor();
  await writeEditor(page, (await readEditor(page)).replace('"event_type": "paid"', '"event_type": "sent"'));
  await outcome.getByText("1 case changes").waitFor();
});

test("the view is accessible in both themes and fits a small screen", async () => {
  await shoot(page, "builder-payload", { widths: [390, 1280, 1920] });
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme });
    await row(/^type:/).click();
    expect(await findBarriers(page)).toEqual([]);
    await page.keyboard.press("Escape");
  }
  await page.setViewportSize({ width: 390, height: 800 });
  await page.getByRole("group", { name: "View" }).getByRole("button", { name: "Request" }).click();
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390);
  expect(await findBarriers(page)).toEqual([]);
  expect(complaints).toEqual([]);
});
