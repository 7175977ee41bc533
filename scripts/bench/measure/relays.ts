/** Measures how many webhooks a second fifty paused relays store, next to one, and the pages that their commits write. */
import { loadAlternately } from "../alternate-load.ts";
import { compareRates, type Figure } from "../figure.ts";
import type { Measure } from "../measure.ts";
import { scratch } from "../process.ts";

const LEAST_SHARE = 0.85;

export const relays: Measure = {
  name: "relays",
  what: "signed webhooks that fifty relays store in a second, next to one relay",
  pinned: true,
  async measure(run) {
    using one = scratch();
    using fifty = scratch();
    const [single, many] = await loadAlternately(
      { path: one.path, relays: "1" },
      { path: fifty.path, relays: "50" },
      run,
    );
    const pages: Figure = {
      what: "pages that the commit of a group writes, fifty relays",
      value: String(many.pages),
      limit: `one relay: ${single.pages}`,
    };
    return [
      compareRates("webhooks stored by fifty relays", many.rounds, "one relay", single.rounds, LEAST_SHARE),
      pages,
    ];
  },
};
