/** Measures how many webhooks a second a receiver stores for ten followers of which one takes them, next to a receiver that nothing follows. */
import { compareRates } from "../figure.ts";
import { type Loaded, loadWarm } from "../full-load.ts";
import type { Measure, Run } from "../measure.ts";
import { type ProductReady, SECRET, scratch, start } from "../process.ts";

const LEAST_SHARE = 0.85;

async function product(kind: "paused" | "followed", run: Run): Promise<Loaded> {
  using folder = scratch();
  await using server = await start<ProductReady>("product.ts", folder.path, "1", SECRET, kind);
  return await loadWarm(server, server.ready.port, server.ready.paths, run);
}

export const followers: Measure = {
  name: "followers",
  what: "signed webhooks that a receiver stores in a second for one of its ten followers",
  pinned: true,
  async measure(run) {
    const [single, followed]: [Loaded[], Loaded[]] = [[], []];
    for (let round = 0; round < run.rounds; round++) {
      single.push(await product("paused", run));
      followed.push(await product("followed", run));
    }
    const what = "webhooks stored for one of ten followers, 64 connections";
    return [compareRates(what, followed, "one receiver without followers", single, LEAST_SHARE)];
  },
};
