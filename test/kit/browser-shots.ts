/** Pictures of what a browser test stands before, kept where RELAY_SHOTS names a folder: for somebody's eyes, compared with nothing. */
import type { Page } from "playwright-core";

const FOLDER = process.env.RELAY_SHOTS;
/** As openDashboard opens its page. */
const USUAL = { width: 1280, height: 860 };

/** A picture of the page in light and in dark at each width (px), `<name>-<scheme>-<width>.png`; the page has its usual size afterwards. */
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
