/** Measures the CPU time of one outbound call, of the product and of a bare keep-alive client, as medians of turns. */
import { compareAmounts, median } from "../figure.ts";
import type { Measure } from "../measure.ts";
import { start } from "../process.ts";

const MOST_MICROS = 200;

export const call: Measure = {
  name: "call",
  what: "CPU that one outbound call takes, next to a bare client",
  pinned: true,
  async measure({ tiny, rounds }) {
    const sink = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      async fetch(request) {
        await request.arrayBuffer();
        return new Response("ok");
      },
    });
    const costs: { product: number[]; bare: number[] } = { product: [], bare: [] };
    const counts = tiny ? ["20", "10"] : ["3000", "1000"];
    for (let round = 0; round < rounds; round++) {
      for (const [kind, of] of Object.entries(costs)) {
        await using caller = await start<number>(
          "caller.ts",
          kind,
          `http://localhost:${sink.port}/`,
          ...counts,
        );
        of.push(caller.ready);
      }
    }
    await sink.stop(true);
    const limit = { name: "a bare client", amount: median(costs.bare) };
    return [
      compareAmounts("CPU of an outbound call", "µs", median(costs.product), limit, { atMost: MOST_MICROS }),
    ];
  },
};
