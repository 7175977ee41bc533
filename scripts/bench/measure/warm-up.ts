/**
 * Measures the first 10,000 events after a start next to the later ones of the same server, and the same for a bare server. Its code is small, so the
 * difference is what the runtime takes to compile the product. The runtime's last compiler, FTL, takes most of it, so the product runs without it too.
 */
import { join } from "node:path";
import { compareRates, type Figure, median, type Round } from "../figure.ts";
import { BARE_PATHS } from "../full-load.ts";
import type { Measure, Run } from "../measure.ts";
import {
  type Client,
  type ProductReady,
  SECRET,
  type Started,
  scratch,
  start,
  startClient,
  startWith,
} from "../process.ts";

const EVENTS = 10_000;
/** The parts before the later ones, in which the runtime still compiles. */
const SKIPPED = 5;
const LATER = 5;
const LEAST_SHARE = 0.8;
const WITHOUT_FTL = { BUN_JSC_useFTLJIT: "0" };

interface Turns {
  first: Round;
  later: Round;
}

async function loadFromStart(
  server: Started<unknown>,
  to: Pick<ProductReady, "port" | "paths">,
  client: Client,
  { tiny, seconds }: Run,
): Promise<Turns> {
  const limit = tiny ? 100 : EVENTS;
  const parts: Round[] = [];
  while (parts.length < SKIPPED + LATER) {
    const before = await server.cpuMs();
    const { ok, perSecond } = await client.load([to], { seconds: Math.max(seconds, 60), limit });
    parts.push({ perSecond, cpuMicros: (1_000 * ((await server.cpuMs()) - before)) / ok });
  }
  const [first = { perSecond: 0, cpuMicros: 0 }] = parts;
  const last = parts.slice(SKIPPED);
  const later = {
    perSecond: median(last.map(({ perSecond }) => perSecond)),
    cpuMicros: median(last.map(({ cpuMicros }) => cpuMicros)),
  };
  return { first, later };
}

async function product(env: Record<string, string>, kind: string, client: Client, run: Run): Promise<Turns> {
  using folder = scratch();
  await using server = await startWith<ProductReady>(env, "product.ts", folder.path, "4", SECRET, kind);
  return await loadFromStart(server, server.ready, client, run);
}

async function bare(client: Client, run: Run): Promise<Turns> {
  using folder = scratch();
  await using server = await start<number>("bare.ts", "D", join(folder.path, "bare.db"), SECRET);
  return await loadFromStart(server, { port: server.ready, paths: BARE_PATHS }, client, run);
}

export const warmUp: Measure = {
  name: "warm-up",
  what: "the first 10,000 events after a start, next to the later ones of the same server",
  pinned: true,
  async measure(run) {
    await using client = startClient(SECRET);
    // The first load compiles the client.
    await bare(client, run);
    const measured: Record<string, Turns[]> = {};
    const add = (what: string, turns: Turns): void => {
      measured[what] = [...(measured[what] ?? []), turns];
    };
    for (let round = 0; round < run.rounds; round++) {
      add("stored by paused relays", await product({}, "paused", client, run));
      add("stored by paused relays, without FTL", await product(WITHOUT_FTL, "paused", client, run));
      add("received and done", await product({}, "running", client, run));
      add("received and done, without FTL", await product(WITHOUT_FTL, "running", client, run));
      add("received and done by bare server D", await bare(client, run));
    }
    return Object.entries(measured).map(
      ([what, turns]): Figure =>
        compareRates(
          `first 10,000 events ${what}`,
          turns.map(({ first }) => first),
          "later",
          turns.map(({ later }) => later),
          what.includes("bare") ? undefined : LEAST_SHARE,
        ),
    );
  },
};
