/**
 * The bench: every figure of the service next to a limit measured in the same run, as a ratio, because machines differ. The service and its limit
 * take turns after a warm-up, with the same client, bodies and durability. A ratio is the median of the rounds' ratios.
 *
 * Each measure prints its figures when it ends. A measure that breaks is reported, the others still run, and the exit code is 1.
 *
 * To add a measure, write a file in scripts/bench/measure/ that exports one Measure (measure.ts), and add a line to measures.ts. A measure:
 *
 * - returns figures (figure.ts): what was measured, the limit of the same run, the ratio, the goal. A time in milliseconds has no
 *   fixed goal: `compareWithBar` scales its bar by the slowness of this machine, which calibration.ts measures in the same run.
 * - has a round for `--tiny`, which `npm run check` runs so that no measure stops working without notice. It lasts a second or two.
 * - throws LeftOut when this machine lacks what it needs.
 *
 * bun scripts/bench/main.ts --help
 */
import { bench } from "./bench.ts";
import { describeMachine } from "./machine.ts";
import { type Options, readOptions } from "./options.ts";
import { endOnSignals, scratch } from "./process.ts";

const options = readOptions(process.argv.slice(2));
if ("text" in options) {
  console.log(options.text);
  process.exit(options.code);
}
endOnSignals();
process.exit(await measureAll(options));

/** Runs the measures. It removes filled stores afterwards, unless `--store` names a folder. */
async function measureAll({ measures, stores, mustMeet, markdown, ...run }: Options): Promise<number> {
  using folder = scratch();
  return await bench(
    measures,
    { ...run, stores: stores ?? folder.path },
    { head: describeMachine(new Date(), measures), mustMeet, markdown, print: (text) => console.log(text) },
  );
}
