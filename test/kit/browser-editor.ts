/** Operates the definition editor as a person does: it reads the lines that the page shows and replaces the whole text. */
import type { Locator, Page } from "playwright-core";

export function editorOf(page: Page): Locator {
  return page.locator(".cm-content:not([aria-hidden])").first();
}

export async function readEditor(page: Page): Promise<string> {
  const lines = editorOf(page).locator(".cm-line");
  await lines.first().waitFor();
  return (await lines.evaluateAll((all) => all.map((line) => line.textContent ?? ""))).join("\n");
}

/** Replaces the whole text, as a paste does. */
export async function writeEditor(page: Page, text: string): Promise<void> {
  await editorOf(page).click();
  await page.keyboard.press("ControlOrMeta+a");
  await page.keyboard.insertText(text);
}
