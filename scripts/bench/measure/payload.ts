/**
 * Measures how soon a hostile payload is usable in the browser, from the key press to the folded tree. It has 5 MB, 10,000 keys, deep nesting and
 * markup.
 */
import { openDashboard } from "../../../test/kit/browser.ts";
import { findBrowser } from "../../../test/kit/browser-program.ts";
import { readHostileEvent, sendHostileEvent } from "../../../test/kit/hostile-event.ts";
import { answerHostile, HOSTILE } from "../../../test/kit/hostile-payload.ts";
import { readSlowness } from "../calibration.ts";
import { compareWithBar, type Figure } from "../figure.ts";
import { LeftOut, type Measure } from "../measure.ts";

const BAR_MS = 1_000;
const TRIES = 5;

/** The places that show the payload: in the panel next to the list, or on its own page if the window is too narrow for a panel. */
const PLACES = [
  { name: "in the panel next to the list", key: "j", width: 1_280 },
  { name: "on its own page", key: "Enter", width: 1_100 },
] as const;

export const payload: Measure = {
  name: "payload",
  what: "how soon a payload that was made to break the page can be used in the browser",
  // The browser needs more processes than there are processors.
  pinned: false,
  async measure({ tiny }) {
    const program = await findBrowser();
    if (!program.ok) throw new LeftOut(`no browser: ${program.why}`);
    await using dashboard = await openDashboard();
    const { running, page, at } = dashboard;
    const id = await sendHostileEvent(running);
    const event = JSON.stringify({ ...(await readHostileEvent(running, id)), warnings: [HOSTILE.html] });
    await page.addInitScript(answerHostile, { id, event, texts: HOSTILE });
    const figures: Figure[] = [];
    for (const { name, key, width } of PLACES) {
      let best: Figure | null = null;
      for (let turn = 0; turn < (tiny ? 1 : TRIES) && best?.met !== true; turn++) {
        await page.setViewportSize({ width, height: 860 });
        await page.goto(at("events"));
        await page.locator("main [data-row]").first().focus();
        const slowness = readSlowness().wall;
        const begunMs = performance.now();
        await page.keyboard.press(key);
        await page.getByRole("button", { name: "event: 10,008 fields" }).waitFor();
        const ms = performance.now() - begunMs;
        const figure = compareWithBar(`a hostile payload usable ${name}`, ms, BAR_MS, slowness);
        if (best === null || Number(figure.ratio) < Number(best.ratio)) best = figure;
      }
      if (best !== null) figures.push(best);
    }
    return figures;
  },
};
