/** A store with as many events as years of use create. Measures of one run share it. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Run } from "./measure.ts";
import { type ProductReady, SECRET, start } from "./process.ts";

/** The number of relays of a filled store, as the argument of product.ts. */
export const FILLED_RELAYS = "4";

interface FilledStore {
  path: string;
  ready: ProductReady;
}

/** Fills the run's store with events, unless an earlier measure did. */
export async function fillStore({ stores, rows }: Pick<Run, "stores" | "rows">): Promise<FilledStore> {
  const path = join(stores, `events-${rows}`);
  mkdirSync(path, { recursive: true });
  console.error(`  filling a store with ${rows} events`);
  const args = [path, FILLED_RELAYS, SECRET, "paused", String(rows)];
  await using server = await start<ProductReady>("product.ts", ...args);
  return { path, ready: server.ready };
}
