/** Measures how many events a second four relays and fifty relays receive and complete. The bare limit runs between them in each round. */
import { type Drained, drainBare, drainProduct, restOf } from "../drain.ts";
import { compareRates } from "../figure.ts";
import type { Measure } from "../measure.ts";

export const run: Measure = {
  name: "run",
  what: "webhooks received and done in a second, each with one record, 4 relays and 50",
  pinned: true,
  async measure(bench) {
    const few: Drained[] = [];
    const limits: Drained[] = [];
    const many: Drained[] = [];
    for (let round = 0; round < bench.rounds; round++) {
      few.push(await drainProduct(4, bench));
      limits.push(await drainBare(bench));
      many.push(await drainProduct(50, bench));
    }
    return [
      compareRates("events received and done, 4 relays", few, "bare server D (the same work)", limits, 0.6),
      ...restOf(few),
      compareRates("events received and done, 50 relays", many, "bare server D", limits, 0.6),
      ...restOf(many),
    ];
  },
};
