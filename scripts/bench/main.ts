/**
 * The bench: every figure of the product beside the bare limit measured in the same run, as a ratio, since machines differ. Product and limit
 * take turns after three seconds of warming up, with the same client, bodies and durability; a ratio is the median of the rounds' ratios. Of growth
 * the rounds' seconds are turns of a second each, of two servers that are up at once.
 *
 * bun scripts/bench/main.ts [--quick] [--only ingest,run,latency,call,lone,refused,growth,start,sustained,dashboard] [--rows 1000000] [--store <folder to keep>]
 *   [--database postgres://…: on PostgreSQL alone, where --only takes ingest,run] [--executable dist/relay] [--rounds 3] [--seconds 15]
 */
import { join } from "node:path";
import { parseArgs } from "node:util";
import { measureDashboard } from "./dashboard.ts";
import { type Figure, printFigures, tellGoals } from "./figure.ts";
import { measureGrowth, measureStart } from "./filled.ts";
import { measureIngest, measureRun, measureSustained } from "./ingest.ts";
import { measureCall, measureLatency } from "./latency.ts";
import { measureLone } from "./lone.ts";
import { measurePostgres } from "./postgres.ts";
import { scratch } from "./process.ts";
import { measureRefused } from "./refused.ts";

const { values } = parseArgs({
  options: {
    quick: { type: "boolean", default: false },
    only: { type: "string" },
    rows: { type: "string" },
    store: { type: "string" },
    executable: { type: "string" },
    rounds: { type: "string", default: "3" },
    seconds: { type: "string" },
    database: { type: "string" },
  },
});
const { quick } = values;
const turns = { seconds: Number(values.seconds ?? (quick ? 3 : 15)), rounds: Number(values.rounds) };
const rows = Number(values.rows ?? (quick ? 100_000 : 1_000_000));
const source = [process.execPath, join(import.meta.dir, "../../src/main.ts")];
const service = values.executable === undefined ? source : [values.executable];

using folder = scratch();
const store = values.store ?? join(folder.path, "filled");

const MEASURES: Readonly<Record<string, () => Promise<Figure[]>>> = {
  ingest: () => measureIngest(turns),
  run: () => measureRun(turns),
  latency: () => measureLatency(quick ? 200 : 1_000),
  call: () => measureCall(turns.rounds),
  lone: () => measureLone(),
  refused: () => measureRefused(turns.seconds),
  growth: () => measureGrowth(store, rows, turns),
  start: () => measureStart(store, rows, { rounds: Math.max(5, turns.rounds), service }),
  dashboard: () => measureDashboard(values.store ?? null, rows, { browser: !quick }),
  sustained: () => measureSustained(Number(values.seconds ?? (quick ? 10 : 60))),
};

const { database } = values;
const chosen = values.only?.split(",") ?? null;
if (database !== undefined) {
  const measured = await measurePostgres(database, { ...turns, only: chosen });
  printFigures(measured);
  console.log(`\n${tellGoals(measured)}`);
  process.exit();
}
const only = chosen ?? Object.keys(MEASURES);
for (const name of only) {
  if (!Object.hasOwn(MEASURES, name))
    throw new Error(`--only ${name} is not known: one or more of ${Object.keys(MEASURES).join()}`);
}
const figures: Figure[] = [];
const begun = performance.now();
for (const [at, name] of Object.keys(MEASURES)
  .filter((one) => only.includes(one))
  .entries()) {
  const spent = at === 0 ? "" : `, ${Math.round((performance.now() - begun) / 1000)} s so far`;
  console.error(`measuring ${name} (${at + 1} of ${only.length}${spent})`);
  figures.push(...((await MEASURES[name]?.()) ?? []));
}
printFigures(figures);
console.log(`\n${tellGoals(figures)}`);
console.log(`
What people use instead, less work each, measured elsewhere on two shared cores: Node-RED 2,250/s, adnanh/webhook 300/s with a stored row,
Directus flow 43 to 184/s, n8n 8 to 37/s; queues alone: plainjob 2,800/s, graphile-worker 1,500/s, BullMQ with fsync 3,400/s.`);
