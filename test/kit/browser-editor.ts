/** Operates the definition editor as a person does: it reads the lines that the page shows and replaces the whole text. */
import type { Locator, Page } from "playwright-core";

export function editorOf(page: Page): Locator {
  return page.locator(".cm-content:not([aria-hidden])").first();
}

export async function readEditor(page: Page): Promise<string> {
  await showJson(page);
  const lines = editorOf(page).locator(".cm-line");
  await lines.first().waitFor();
  return (await lines.evaluateAll((all) => all.map((line) => line.textContent ?? ""))).join("\n");
}

/** Shows the JSON if the page shows another view of the definition. */
export async function showJson(page: Page): Promise<void> {
  await editorOf(page).waitFor({ state: "attached" });
  const json = page.getByRole("group", { name: "View" }).getByRole("button", { name: "JSON", exact: true });
  if (!(await editorOf(page).isVisible()) && (await json.count()) > 0) await json.click();
}

/** Replaces the whole text, as a paste does. */
export async function writeEditor(page: Page, text: string): Promise<void> {
  await showJson(page);
  await editorOf(page).click();
  await page.keyboard.press("ControlOrMeta+a");
  await page.keyboard.insertText(text);
}
