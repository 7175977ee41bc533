/** Measures the time from an event's arrival to the call of its endpoint URL on an idle server, next to that server's own response. */
import { compareAmounts, type Figure, median, quantile } from "../figure.ts";
import type { Measure } from "../measure.ts";
import { type ProductReady, SECRET, scratch, start } from "../process.ts";

interface Latency {
  /** Milliseconds from the first byte of the request to the first byte at the endpoint URL. */
  called: number[];
  /** Milliseconds from the first byte of the request to the response of the receiver. */
  answered: number[];
}

interface Counts {
  calls: number;
  /** Starts before the one that gets all further calls. A single first call says more about the machine's state than about the service. */
  moreStarts: number;
}

export const latency: Measure = {
  name: "latency",
  what: "from a webhook's arrival to the call of its endpoint URL, on an idle server",
  pinned: true,
  async measure({ tiny, seconds }) {
    const counts = tiny ? { calls: 10, moreStarts: 1 } : { calls: seconds < 15 ? 200 : 1_000, moreStarts: 6 };
    const { first, rest, cpuMicros } = await callOneByOne(counts);
    const compare = (which: string, value: number, limit: number): Figure =>
      compareAmounts(
        `from arrival to the endpoint URL, ${which}`,
        "ms",
        value,
        { name: "the response to the sender", amount: limit },
        { timesAtMost: 1.5 },
      );
    const firsts = `the first after a start, median of ${counts.moreStarts + 1} starts`;
    return [
      compare("p50", median(rest.called), median(rest.answered)),
      compare("p99", quantile(rest.called, 0.99), quantile(rest.answered, 0.99)),
      compare(firsts, median(first.called), median(first.answered)),
      compareAmounts("server CPU of an event with its call", "µs", cpuMicros, null),
    ];
  },
};

/**
 * Sends one webhook at a time. The first one after each start counts separately. `cpuMicros` is the service's CPU for one event, from the socket
 * to the result.
 */
async function callOneByOne({
  calls,
  moreStarts,
}: Counts): Promise<{ first: Latency; rest: Latency; cpuMicros: number }> {
  using folder = scratch();
  const arrivals = new Map<string, (at: number) => void>();
  const sink = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      const at = performance.now();
      const notice = (await request.json()) as { id: string; event: { mapped: { event_id: string } } };
      arrivals.get(notice.event.mapped.event_id)?.(at);
      return new Response("ok");
    },
  });
  const url = `http://127.0.0.1:${sink.port}/`;
  const startProduct = () => start<ProductReady>("product.ts", folder.path, "1", SECRET, "calls", url);
  const callOnce = async (name: string, { port, paths }: ProductReady, into: Latency): Promise<void> => {
    const body = JSON.stringify({ id: name, type: "order.paid", amount: 1 });
    const signature = new Bun.CryptoHasher("sha256", SECRET).update(body).digest("hex");
    const arrived = new Promise<number>((resolve) => arrivals.set(name, resolve));
    const begun = performance.now();
    const answer = fetch(`http://127.0.0.1:${port}${paths[0]}`, {
      method: "POST",
      headers: { "x-signature": signature, "content-type": "application/json" },
      body,
    }).then(() => performance.now());
    into.answered.push((await answer) - begun);
    into.called.push((await arrived) - begun);
  };
  const first: Latency = { called: [], answered: [] };
  const rest: Latency = { called: [], answered: [] };
  // The first start creates the relay and is not measured.
  await (await startProduct())[Symbol.asyncDispose]();
  for (let index = 0; index < moreStarts; index++) {
    await using server = await startProduct();
    await Bun.sleep(500);
    await callOnce(`start_${index}`, server.ready, first);
  }
  await using server = await startProduct();
  await Bun.sleep(500);
  await callOnce("first", server.ready, first);
  const cpuAtFirst = await server.cpuMs();
  for (let index = 0; index < calls; index++) await callOnce(`call_${index}`, server.ready, rest);
  const cpuMicros = (1_000 * ((await server.cpuMs()) - cpuAtFirst)) / calls;
  await sink.stop(true);
  return { first, rest, cpuMicros };
}
