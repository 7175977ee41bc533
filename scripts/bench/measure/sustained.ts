/** Measures events received and completed for a minute. If the service cannot keep up, a queue remains. */
import { drainBare, drainProduct, restOf } from "../drain.ts";
import { compareRates } from "../figure.ts";
import type { Measure } from "../measure.ts";

export const sustained: Measure = {
  name: "sustained",
  what: "the same as run for a minute: the queue must be empty at its end",
  pinned: true,
  async measure({ sustainedSeconds, warmUpSeconds }) {
    const load = { seconds: sustainedSeconds, warmUpSeconds };
    const limit = await drainBare(load);
    const product = await drainProduct(4, load);
    const what = `events received and done for ${sustainedSeconds} s, 4 relays`;
    return [
      compareRates(what, [product], "bare server D (the same work)", [limit], 0.6),
      ...restOf([product]),
    ];
  },
};
