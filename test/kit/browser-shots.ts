/** Saves screenshots of browser tests in the folder that RELAY_SHOTS names. A person looks at them; no test compares them. */
import type { Page } from "playwright-core";

const FOLDER = process.env.RELAY_SHOTS;
/** Size of the page that openDashboard opens, in px. */
const USUAL = { width: 1280, height: 860 };

/** Saves the page in light and dark at each width (px) as `<name>-<scheme>-<width>.png`, then restores the usual size. */
export async function shoot(page: Page, name: string, { widths = [390, 1280], fullPage = false } = {}): Promise<void> {
  if (FOLDER === undefined) return;
  for (const colorScheme of ["light", "dark"] as const)
    for (const width of widths) {
      await page.emulateMedia({ colorScheme });
      await page.setViewportSize({ width, height: 900 });
      await page.waitForTimeout(200);
      await page.screenshot({ path: `${FOLDER}/${name}-${colorScheme}-${width}.png`, fullPage });
    }
  await page.setViewportSize(USUAL);
}
