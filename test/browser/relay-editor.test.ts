/** Tests the definition editor: completion, explanations, error marks, drafts, saving, conflicts and restore. */
import { afterAll, expect, test } from "bun:test";
import { openDashboard } from "../kit/browser.ts";
import { editorOf, readEditor, writeEditor } from "../kit/browser-editor.ts";
import { poll } from "../kit/patience.ts";
import { receiverDefinition } from "../kit/relay-definition.ts";

const dashboard = await openDashboard();
const { page, running, at, complaints } = dashboard;
afterAll(() => dashboard[Symbol.asyncDispose]());

const api = (method: string, path: string, body?: unknown) => running.api(method, path, body, "local");
const sold = (amount: number) => receiverDefinition({ name: "sold", actions: [{ type: "grant_credits", amount }] });
const options = page.locator(".cm-tooltip-autocomplete li");

async function choose(name: string): Promise<void> {
  const option = options.filter({ has: page.getByText(name, { exact: true }) });
  // A list that opened before the page read the newest text has the names of the text before. The keys open it again.
  const isShown = async (): Promise<boolean> => {
    if (await option.isVisible()) return true;
    await page.keyboard.press("Control+Space");
    return false;
  };
  expect(await poll(isShown, Boolean, 200)).toBe(true);
  // The list ignores input at first, so that users do not select an item that just appeared.
  await page.waitForTimeout(120);
  await option.click();
  await option.waitFor({ state: "detached" });
}

/** Puts the caret after the last occurrence of the words. */
async function caretBehind(words: string): Promise<void> {
  const text = await readEditor(page);
  const before = text.slice(0, text.lastIndexOf(words) + words.length);
  await editorOf(page).focus();
  await page.keyboard.press("ControlOrMeta+Home");
  for (const _ of before) await page.keyboard.press("ArrowRight");
}

test("a person who wants only the JSON chooses so once", async () => {
  expect((await api("POST", "/relays", { definition: sold(1) })).status).toBe(201);
  await page.goto(at("relays/sold?tab=definition"));
  const choice = page.getByRole("group", { name: "Editors" });
  await page.getByRole("region", { name: "Form" }).waitFor();
  await choice.getByRole("button", { name: "JSON only" }).click();
  await page.getByRole("region", { name: "Form" }).waitFor({ state: "detached" });
  await page.reload();
  await page.getByRole("region", { name: "JSON" }).waitFor();
  expect(await choice.getByRole("button", { name: "JSON only" }).getAttribute("aria-pressed")).toBe("true");
});

test("a definition with a problem causes no refused request, and is explained when it is valid", async () => {
  const refused: string[] = [];
  const listen = (answer: { status(): number; url(): string }): void => {
    if (answer.status() >= 400) refused.push(`${answer.status()} ${answer.url()}`);
  };
  page.on("response", listen);
  const outcome = page.getByRole("region", { name: "Expected outcome" });
  await page.goto(at("relays/sold?tab=definition"));
  await outcome.getByText("It would fail").waitFor();
  await writeEditor(page, JSON.stringify({ ...sold(1), actions: [] }, null, 2));
  await outcome.getByText("Not valid yet").waitFor();
  await outcome.getByText(/The list of actions/).waitFor();
  const explained = page.waitForResponse((answer) => answer.url().endsWith("/relays/explain"));
  await writeEditor(page, JSON.stringify(sold(2), null, 2));
  expect((await explained).status()).toBe(200);
  await outcome.getByText("It would fail").waitFor();
  page.off("response", listen);
  expect(refused).toEqual([]);
});

test("completion offers the action's fields, the catalog's names, and a template's paths", async () => {
  await api("POST", "/collections", { name: "orders", kind: "shared", fields: { number: { type: "text" } } });
  await page.locator(".editor-state", { hasText: "Valid" }).waitFor();
  await writeEditor(
    page,
    '{\n  "name": "sold",\n  "trigger": {"kind": "receiver", "verify": {"scheme": "hooks"}, "map": {"order": "data.id"}},\n  "actions": [\n    {"type": "write_record", }\n  ]\n}',
  );
  await caretBehind('"write_record", ');
  await page.keyboard.type('"');
  await options.filter({ hasText: "collection" }).waitFor();
  expect((await options.locator(".cm-completionLabel").allInnerTexts()).sort()).toEqual(["collection", "data", "to"]);
  await choose("collection");
  await choose("orders");
  await page.keyboard.type(', "da');
  await choose("data");
  expect(await readEditor(page)).toContain('{"type": "write_record", "collection": "orders", "data": {  }');
  await page.keyboard.type('"number": "{{');
  await choose("mapped.order");
  await page.locator(".editor-state", { hasText: "Valid" }).waitFor();
  expect(JSON.parse(await readEditor(page)).actions).toEqual([{ type: "write_record", collection: "orders", data: { number: "{{mapped.order}}" } }]);
});

test("a field's rule is shown to the pointer, and to the caret below the text", async () => {
  await caretBehind('"scheme": "ho');
  await page.locator(".editor-rule", { hasText: "trigger.verify.scheme" }).waitFor();
  await editorOf(page).getByText('"map"').hover();
  await page.locator(".cm-rule", { hasText: "Names for values in the provider's body" }).waitFor();
});

test("a problem is marked at its line during typing, and the list below links to it", async () => {
  const text = await readEditor(page);
  await writeEditor(page, text.replace('"orders"', '"Orders!"'));
  await page.getByRole("heading", { name: "1 problem to fix" }).waitFor();
  await page.locator(".cm-lintRange-error").first().waitFor();
  await page.locator(".problem-place", { hasText: "actions.0.collection" }).click();
  await page.locator(".cm-activeLine", { hasText: "Orders!" }).waitFor();
  // Problems are in the order of their lines.
  await writeEditor(page, text.replace('"orders"', '"Orders!"').replace('"receiver"', '"receivr"'));
  await page.getByRole("heading", { name: "2 problems to fix" }).waitFor();
  expect((await page.locator(".problem-place").allInnerTexts()).map((place) => place.includes("actions.0"))).toEqual([false, true]);
  await writeEditor(page, text.replace('"orders",', '"orders"'));
  await page.locator(".problems", { hasText: "A comma is missing" }).waitFor();
  await writeEditor(page, text);
  await page.locator(".editor-state", { hasText: "Valid" }).waitFor();
});

test("the page's shortcuts are letters in the text, and Escape and Tab leave it", async () => {
  await editorOf(page).click();
  await page.keyboard.press("ControlOrMeta+End");
  await page.keyboard.type("gr?/j");
  expect(page.url()).toContain("/relays/sold");
  expect(await readEditor(page)).toEndWith("}gr?/j");
  for (let times = 0; times < 5; times++) await page.keyboard.press("Backspace");
  await page.keyboard.press("Escape");
  await page.keyboard.press("Tab");
  expect(await page.evaluate(() => document.activeElement?.classList.contains("editor-host"))).toBe(false);
});

test("a draft survives the page, shows its age, and can be discarded and restored", async () => {
  const draft = await readEditor(page);
  await page.reload();
  await page.getByText(/This is your draft from/).waitFor();
  expect(await readEditor(page)).toBe(draft);
  await page.getByRole("button", { name: "Discard changes" }).click();
  await editorOf(page).getByText('"grant_credits"').waitFor();
  await page.getByRole("button", { name: "Undo" }).click();
  await editorOf(page).getByText('"write_record"').waitFor();
});

test("Ctrl S saves and removes the draft", async () => {
  await editorOf(page).click();
  await page.keyboard.press("ControlOrMeta+s");
  await page.getByText("Saved sold as version 2").first().waitFor();
  await page.getByText("Unsaved changes").waitFor({ state: "detached" });
  await page.getByRole("button", { name: "I stored the secret" }).click();
  expect(await page.evaluate(() => Object.keys(localStorage).filter((key) => key.startsWith("relay.draft.")))).toEqual([]);
});

test("another user's save is shown next to mine, parts of it can be accepted, and the visible text is saved", async () => {
  const text = await readEditor(page);
  await writeEditor(page, text.replace("data.id", "data.mine"));
  const theirs = JSON.parse(text.replace('"orders"', '"orders_eu"'));
  await api("POST", "/collections", { name: "orders_eu", kind: "shared", fields: { number: { type: "text" } } });
  expect((await api("PUT", "/relays/sold", { definition: theirs, version: 2 })).status).toBe(200);
  await page.getByRole("button", { name: "Save", exact: true }).click();
  const dialog = page.getByRole("dialog", { name: "The relay changed while you edited it" });
  await dialog.getByRole("textbox", { name: "Your unsaved version" }).waitFor();
  const takes = dialog.getByRole("button", { name: "Use their version here" });
  expect(await takes.count()).toBe(2);
  await takes.last().click();
  await dialog.getByRole("button", { name: "Overwrite with my version" }).click();
  await page.getByText("Saved sold as version 4").first().waitFor();
  const saved = (await api("GET", "/relays/sold")).body.relay.definition;
  expect(saved.trigger.map.order).toBe("data.mine");
  expect(saved.actions[0].collection).toBe("orders_eu");
});

test("the history shows each version's changes, and restores one after a preview", async () => {
  await page.getByRole("link", { name: "History" }).click();
  await page.getByRole("listitem", { name: "Version 4" }).getByText("in force").waitFor();
  await page.getByRole("button", { name: "Version 2", exact: true }).click();
  await page.locator(".diff-right", { hasText: "write_record" }).waitFor();
  await page.getByRole("button", { name: "Restore version 1…" }).click();
  const dialog = page.getByRole("dialog", { name: "Restore version 1" });
  await dialog.locator(".diff-right", { hasText: "grant_credits" }).waitFor();
  await dialog.getByRole("button", { name: "Restore version 1", exact: true }).click();
  await page.getByText("Restored version 1 of sold as version 5.").waitFor();
  await page.getByRole("listitem", { name: "Version 5" }).getByText("Content of version 1 restored.").waitFor();
  expect((await api("GET", "/relays/sold")).body.relay.definition.actions).toEqual([{ type: "grant_credits", amount: 1 }]);
});

test("a small screen edits the same without sideways scrolling", async () => {
  await page.setViewportSize({ width: 390, height: 800 });
  await page.getByRole("link", { name: "Definition" }).click();
  await writeEditor(page, (await readEditor(page)).replace('"amount": 1', '"amount": 0'));
  await page.getByRole("heading", { name: "1 problem to fix" }).waitFor();
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390);
  await page.getByRole("button", { name: "Discard changes" }).click();
});

const windows: [string, number, number, string][] = [
  ["a tall window", 1280, 1400, ".editor-foot"],
  ["a tall and narrow window", 390, 1900, ".editor-foot"],
  ["a window shorter than the page", 1280, 860, ".outcome-line"],
  ["a narrow window shorter than the page", 390, 800, ".outcome-line"],
];

test.each(windows)("in %s nothing visible moves when the editor loads", async (_, width, height, seen) => {
  let arrive = () => {};
  const meant = new Promise<void>((resolve) => {
    arrive = resolve;
  });
  const place = () => page.locator(seen).boundingBox();
  await page.setViewportSize({ width, height });
  await page.goto(at("relays/new?step=template"));
  await page.getByRole("button", { name: /^Paid checkout/ }).click();
  await page.route(/\/chunk-/, async (route) => {
    await meant;
    await route.fallback();
  });
  await page.getByRole("button", { name: "Use this template" }).click();
  const before = await place();
  expect(before?.height).toBeGreaterThan(0);
  // The findings appear below the text.
  await page.getByRole("list", { name: "Warnings" }).waitFor();
  expect(await place()).toEqual(before);
  expect(await page.locator(".editor textarea").inputValue()).toContain("payment_intent");
  arrive();
  await readEditor(page);
  await page.locator(".editor textarea").waitFor({ state: "detached" });
  expect(await place()).toEqual(before);
  await page.unrouteAll();
  await page.getByRole("button", { name: "Other starting points…" }).click();
});

test("without the editor a plain text field works, and unchecked text is never called valid", async () => {
  expect(complaints).toEqual([]);
  await page.goto(at("relays/sold?tab=definition"));
  await readEditor(page);
  // Lists the loaded files, to prove that the page consists of several chunks.
  const chunks = await page.evaluate(() => performance.getEntriesByType("resource").map(({ name }) => name));
  await page.reload();
  await page.route(/\.js$/, async (route) => {
    const answer = await route.fetch();
    return (await answer.text()).includes("cm-content") ? route.abort() : route.fulfill({ response: answer });
  });
  expect(chunks.length).toBeGreaterThan(2);
  await page.reload();
  await page.getByText("The editor could not load. You can edit this plain text instead.").waitFor();
  const area = page.getByRole("textbox", { name: "Definition as JSON" });
  await page.route("**/relays/validate", (route) => route.fulfill({ status: 502 }));
  await area.fill((await area.inputValue()).replace('"amount": 1', '"amount": 3'));
  await page.locator(".editor-state", { hasText: "Not checked" }).waitFor();
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page.getByText("Saved sold as version 6").first().waitFor();
});
