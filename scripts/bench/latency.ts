/** How soon after its arrival an event's call leaves an idle server, beside that server's own answer; and what one call out costs. */
import { compareAmounts, type Figure, median, at as quantile } from "./figure.ts";
import { type ProductReady, SECRET, scratch, start } from "./process.ts";

interface Latency {
  /** From the call's first byte sent to the called URL's first byte received. */
  called: number[];
  /** From the same moment to the receiver's answer. */
  answered: number[];
  /** CPU of the service for one event with its call, from the receiver's socket to the result, µs. */
  cpuMicros: number;
}

export async function measureLatency(calls: number): Promise<Figure[]> {
  const { called, answered, cpuMicros } = await callOneByOne(calls);
  const [first = 0, ...rest] = called;
  const [firstAnswer = 0, ...answers] = answered;
  const compare = (name: string, value: number, limit: number): Figure =>
    compareAmounts(
      `arrival to called URL, ${name}`,
      "ms",
      value,
      { name: "its answer", amount: limit },
      { timesAtMost: 1.5 },
    );
  return [
    compare("idle, p50", median(rest), median(answers)),
    compare("idle, p99", quantile(rest, 0.99), quantile(answers, 0.99)),
    compare("the first after a start", first, firstAnswer),
    compareAmounts("  CPU of an event with its call", "µs", cpuMicros, null),
  ];
}

/** One call at a time on an idle server, the first one of its start first. */
async function callOneByOne(calls: number): Promise<Latency> {
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
  const startProduct = () =>
    start<ProductReady>("product.ts", folder.path, "1", SECRET, "calls", `http://127.0.0.1:${sink.port}/`);
  // The first start makes the relay; the second is a start as it is on every other day.
  await (await startProduct())[Symbol.asyncDispose]();
  await using server = await startProduct();
  const latency: Latency = { called: [], answered: [], cpuMicros: 0 };
  await Bun.sleep(500);
  let cpuAtFirst = 0;
  for (let index = 0; index <= calls; index++) {
    const body = JSON.stringify({ id: `call_${index}`, type: "order.paid", amount: 1 });
    const signature = new Bun.CryptoHasher("sha256", SECRET).update(body).digest("hex");
    const arrived = new Promise<number>((resolve) => arrivals.set(`call_${index}`, resolve));
    const begun = performance.now();
    const answer = fetch(`http://127.0.0.1:${server.ready.port}${server.ready.paths[0]}`, {
      method: "POST",
      headers: { "x-signature": signature, "content-type": "application/json" },
      body,
    }).then(() => performance.now());
    latency.answered.push((await answer) - begun);
    latency.called.push((await arrived) - begun);
    if (index === 0) cpuAtFirst = await server.cpuMs();
  }
  latency.cpuMicros = (1_000 * ((await server.cpuMs()) - cpuAtFirst)) / calls;
  await sink.stop(true);
  return latency;
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
