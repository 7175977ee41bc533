/**
 * Measures the CPU time of one outbound call, of the product and of a bare keep-alive client, as medians of turns. Also counts the connections that
 * rounds of calls open to one origin.
 */
import { compareAmounts, compareCount, median } from "../figure.ts";
import type { Measure } from "../measure.ts";
import { start } from "../process.ts";

const MOST_MICROS = 200;
/** The calls that a server runs at once by default. */
const AT_ONCE = 32;

export const call: Measure = {
  name: "call",
  what: "CPU and connections of outbound calls, next to a bare client",
  pinned: true,
  async measure({ tiny, rounds }) {
    const connections = new Set<number>();
    const sink = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      async fetch(request, server) {
        connections.add(server.requestIP(request)?.port ?? 0);
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
    connections.clear();
    const together = tiny ? "64" : "4704";
    const url = `http://localhost:${sink.port}/`;
    await using _caller = await start<number>("caller.ts", "product", url, together, "0", String(AT_ONCE));
    const opened = connections.size;
    await sink.stop(true);
    const limit = { name: "a bare client", amount: median(costs.bare) };
    return [
      compareAmounts("CPU of an outbound call", "µs", median(costs.product), limit, { atMost: MOST_MICROS }),
      compareCount(
        `connections of ${together} calls to one origin, in rounds of ${AT_ONCE}`,
        opened,
        AT_ONCE,
      ),
    ];
  },
};
