/** How soon after its arrival an event's call leaves an idle server, beside that server's own answer; and what one call out costs. */
import { compareAmounts, type Figure, median, at as quantile } from "./figure.ts";
import { type ProductReady, SECRET, scratch, start } from "./process.ts";

interface Latency {
  /** From the call's first byte sent to the called URL's first byte received. */
  called: number[];
  /** From the same moment to the receiver's answer. */
  answered: number[];
}

/** Starts beside the one that goes on: the first call of one alone says more of the machine's moment than of the service. */
const MORE_STARTS = 6;

export async function measureLatency(calls: number): Promise<Figure[]> {
  const { first, rest, cpuMicros } = await callOneByOne(calls);
  const compare = (name: string, value: number, limit: number): Figure =>
    compareAmounts(
      `arrival to called URL, ${name}`,
      "ms",
      value,
      { name: "its answer", amount: limit },
      { timesAtMost: 1.5 },
    );
  return [
    compare("idle, p50", median(rest.called), median(rest.answered)),
    compare("idle, p99", quantile(rest.called, 0.99), quantile(rest.answered, 0.99)),
    compare(`the first after a start, of ${MORE_STARTS + 1}`, median(first.called), median(first.answered)),
    compareAmounts("  CPU of an event with its call", "µs", cpuMicros, null),
  ];
}

/** One call at a time on an idle server, the first one of its start first. `cpuMicros`: of the service for one event, from the socket to the result. */
async function callOneByOne(calls: number): Promise<{ first: Latency; rest: Latency; cpuMicros: number }> {
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
  // The first start makes the relay; those that follow are a start as it is on every other day.
  await (await startProduct())[Symbol.asyncDispose]();
  for (let index = 0; index < MORE_STARTS; index++) {
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

/** µs of CPU of one call out, the product's and a bare keep-alive client's, medians of turns. */
export async function measureCall(rounds: number): Promise<Figure[]> {
  const sink = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      await request.arrayBuffer();
      return new Response("ok");
    },
  });
  const costs: { product: number[]; bare: number[] } = { product: [], bare: [] };
  for (let round = 0; round < rounds; round++) {
    for (const [kind, of] of Object.entries(costs)) {
      await using run = await start<number>("call.ts", kind, `http://localhost:${sink.port}/`, "3000");
      of.push(run.ready);
    }
  }
  await sink.stop(true);
  const limit = { name: "a bare client", amount: median(costs.bare) };
  return [compareAmounts("CPU of a call out", "µs", median(costs.product), limit, { atMost: 200 })];
}
