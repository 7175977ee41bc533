/** The definition's editor as a person's hands and eyes meet it: a page in its shadow root, which is read line by line and written over whole. */
import type { Locator, Page } from "playwright-core";

export function editorOf(page: Page): Locator {
  return page.locator(".cm-content:not([aria-hidden])").first();
}

export async function readEditor(page: Page): Promise<string> {
  const lines = editorOf(page).locator(".cm-line");
  await lines.first().waitFor();
  return (await lines.evaluateAll((all) => all.map((line) => line.textContent ?? ""))).join("\n");
}

/** As a paste over all of it. */
export async function writeEditor(page: Page, text: string): Promise<void> {
  await editorOf(page).click();
  await page.keyboard.press("ControlOrMeta+a");
  await page.keyboard.insertText(text);
}
