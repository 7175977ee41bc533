/**
 * Measures a flood of rejected requests: how many of 10,000 a second the server rejects, and its CPU for each. It also measures how long an
 * accepted request takes during the flood, next to the same server at rest.
 */
import { createHmac } from "node:crypto";
import { join } from "node:path";
import { DEFAULT_LIMITS } from "../../../src/base/limit.ts";
import { type Figure, quantile } from "../figure.ts";
import type { Measure, Run } from "../measure.ts";
import { type ProductReady, SECRET, scratch, start } from "../process.ts";

const RATE = 10_000;
const ACCEPTED_EVERY_MS = 100;

interface Flood {
  sent: number;
  statuses: Record<string, number>;
  seconds: number;
}

/** Sends accepted requests until `ended` resolves. Returns the milliseconds of each. */
async function accept({ port, paths: [path] }: ProductReady, ended: Promise<unknown>): Promise<number[]> {
  const took: number[] = [];
  let isOver = false;
  void ended.then(() => {
    isOver = true;
  });
  while (!isOver) {
    const body = JSON.stringify({ id: crypto.randomUUID(), type: "order.paid", amount: 4200 });
    const signature = createHmac("sha256", SECRET).update(body).digest("hex");
    const headers = { "content-type": "application/json", "x-signature": signature };
    const begun = performance.now();
    const { status } = await fetch(`http://127.0.0.1:${port}${path}`, { method: "POST", headers, body });
    if (status !== 200) throw new Error(`A valid request got status ${status}.`);
    took.push(performance.now() - begun);
    await Bun.sleep(ACCEPTED_EVERY_MS);
  }
  return took;
}

async function flood({ port }: ProductReady, path: string, seconds: number): Promise<Flood> {
  const options = { port, path, rate: RATE, seconds };
  const words = Object.entries(options).flatMap(([name, value]) => [`--${name}`, String(value)]);
  const child = Bun.spawn([process.execPath, join(import.meta.dir, "../flood.ts"), ...words], {
    stdout: "pipe",
    stderr: "inherit",
  });
  const text = await new Response(child.stdout).text();
  if (text === "") throw new Error(`The flood ended without a result (exit code ${await child.exited}).`);
  return JSON.parse(text) as Flood;
}

interface Kind {
  why: string;
  pathOf(ready: ProductReady): string;
  /** The cap of unverified requests a minute; an empty text raises it. */
  cap: string;
}

const ofRelay = ({ paths: [path = ""] }: ProductReady): string => path;
const KINDS: readonly Kind[] = [
  { why: "wrong signature", pathOf: ofRelay, cap: "" },
  {
    why: "over the cap of their address",
    pathOf: ofRelay,
    cap: String(DEFAULT_LIMITS.unverifiedCallsPerMinute),
  },
  { why: "no such receiver", pathOf: () => "/hooks/bench/ordres-0", cap: "" },
];

async function measureKind({ why, pathOf, cap }: Kind, run: Run): Promise<Figure[]> {
  using folder = scratch();
  const args = [folder.path, "1", SECRET, "running", "", cap];
  await using server = await start<ProductReady>("product.ts", ...args);
  const { ready } = server;
  await flood(ready, pathOf(ready), run.tiny ? run.warmUpSeconds : 1);
  const atRest = await accept(ready, Bun.sleep(run.seconds * 1000));
  const before = await server.cpuMs();
  const sending = flood(ready, pathOf(ready), run.seconds);
  const during = await accept(ready, sending);
  const { statuses, seconds } = await sending;
  const rejected = Object.entries(statuses).reduce(
    (sum, [status, count]) => sum + (status === "200" ? 0 : count),
    0,
  );
  const cpuMicros = (((await server.cpuMs()) - before) * 1000) / rejected;
  const [rate, restMs, floodMs] = [rejected / seconds, quantile(atRest, 0.99), quantile(during, 0.99)];
  return [
    {
      what: `requests rejected, ${why}`,
      value: `${Math.round(rate)}/s`,
      limit: `sent: ${RATE}/s`,
      ratio: (rate / RATE).toFixed(2),
      cpu: cpuMicros.toFixed(0),
    },
    {
      what: "response time of an accepted request during this flood, p99",
      value: `${floodMs.toFixed(1)} ms`,
      limit: `the same server at rest: ${restMs.toFixed(1)} ms`,
      ratio: (floodMs / restMs).toFixed(2),
    },
  ];
}

export const refused: Measure = {
  name: "refused",
  what: "a flood of rejected requests: CPU of each, and accepted requests during the flood",
  pinned: true,
  async measure(run) {
    const figures: Figure[] = [];
    for (const kind of KINDS) figures.push(...(await measureKind(kind, run)));
    return figures;
  },
};
