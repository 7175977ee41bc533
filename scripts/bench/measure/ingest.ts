/** Measures how many webhooks a second the receiver stores at full load, next to bare servers that take turns with it. */
import { join } from "node:path";
import { compareAmounts, compareRates, type Figure } from "../figure.ts";
import { BARE_PATHS, type Loaded, loadWarm } from "../full-load.ts";
import type { Measure, Run } from "../measure.ts";
import { type ProductReady, SECRET, scratch, start } from "../process.ts";

const MOST_RESIDENT_MIB = 200;

async function bare(variant: string, run: Run): Promise<Loaded> {
  using folder = scratch();
  await using server = await start<number>("bare.ts", variant, join(folder.path, "bare.db"), SECRET);
  return await loadWarm(server, server.ready, BARE_PATHS, run);
}

interface Ingested extends Loaded {
  residentMiB: number;
}

/** Measures the receiver without runs: the relays are paused. */
async function product(run: Run): Promise<Ingested> {
  using folder = scratch();
  await using server = await start<ProductReady>("product.ts", folder.path, "4", SECRET, "paused");
  const loaded = await loadWarm(server, server.ready.port, server.ready.paths, run);
  return { ...loaded, residentMiB: await server.residentMiB() };
}

const OTHERS = {
  "bare server A: HTTP, HMAC and JSON, stores nothing": "A",
  "bare server B: A and one commit a request": "B",
  "bare server E: C behind Elysia": "E",
};

export const ingest: Measure = {
  name: "ingest",
  what: "signed webhooks that the receiver stores in a second, and how soon it responds",
  pinned: true,
  async measure(run) {
    const turns: { indexed: Loaded; product: Ingested; plain: Loaded }[] = [];
    for (let round = 0; round < run.rounds; round++) {
      turns.push({
        indexed: await bare("C", run),
        product: await product(run),
        plain: await bare("N", run),
      });
    }
    const products = turns.map((turn) => turn.product);
    const indexed = turns.map((turn) => turn.indexed);
    const plain = turns.map((turn) => turn.plain);
    const what = "webhooks stored, 64 connections";
    const figures: Figure[] = [
      compareRates(what, products, "bare server C (group commit, unique index)", indexed, 1),
      compareRates(what, products, "bare server N (group commit, no index)", plain, 0.55),
    ];
    const [last, limit] = [products.at(-1), indexed.at(-1)];
    if (last !== undefined && limit !== undefined) {
      figures.push(
        compareAmounts("response time of these, p50", "ms", last.p50Ms, { name: "C", amount: limit.p50Ms }),
        compareAmounts("response time of these, p99", "ms", last.p99Ms, { name: "C", amount: limit.p99Ms }),
        compareAmounts("resident memory after these", "MiB", last.residentMiB, null, {
          atMost: MOST_RESIDENT_MIB,
        }),
      );
    }
    for (const [name, variant] of Object.entries(OTHERS))
      figures.push(compareRates(name, [await bare(variant, run)], "C", indexed.slice(-1)));
    return figures;
  },
};
