/** The arguments of `npm run bench`: which measures run and for how long. It also has the text of `--help`. */
import { join } from "node:path";
import { parseArgs } from "node:util";
import type { Measure, Run } from "./measure.ts";
import { MEASURES } from "./measures.ts";

export interface Options extends Omit<Run, "stores"> {
  measures: readonly Measure[];
  /** The folder of filled stores, which is not removed; null for a temporary one. */
  stores: string | null;
  /** Makes a missed goal a failure. */
  mustMeet: boolean;
  markdown: boolean;
}

type Size = Pick<Run, "seconds" | "warmUpSeconds" | "rounds" | "sustainedSeconds" | "rows">;

const FULL: Size = { seconds: 15, warmUpSeconds: 3, rounds: 3, sustainedSeconds: 60, rows: 1_000_000 };
const QUICK: Size = { seconds: 3, warmUpSeconds: 2, rounds: 1, sustainedSeconds: 10, rows: 100_000 };
const TINY: Size = { seconds: 0.3, warmUpSeconds: 0.2, rounds: 1, sustainedSeconds: 0.5, rows: 2_000 };

const HELP = `npm run bench measures the speed of the service. Each figure is next to a limit measured in the same run.

npm run bench                        all measures; an hour on two quiet processors
npm run bench -- --only ingest,lag   these measures
npm run bench -- --quick             short rounds
npm run bench -- --tiny              seconds: shows only that each measure works; no goal is judged

  --rounds 3            rounds of the product and its limit, in turns
  --seconds 15          length of one load
  --rows 1000000        events in a filled store
  --store <folder>      keeps filled stores for the next run
  --database <url>      the PostgreSQL to measure on; its user must be able to create databases
  --executable <file>   the executable that start measures, instead of the source
  --goals               a missed goal is a failure (exit code 1)
  --markdown            also prints the figures as a Markdown table
  --verbose             prints each request of lag and dashboard

Measures:
${MEASURES.map(({ name, what }) => `  ${name.padEnd(16)} ${what}`).join("\n")}`;

/** Returns the chosen options, or the text to print instead of a run. */
export function readOptions(words: readonly string[]): Options | { text: string; code: number } {
  const { values } = parseArgs({
    args: [...words],
    options: {
      help: { type: "boolean", default: false },
      quick: { type: "boolean", default: false },
      tiny: { type: "boolean", default: false },
      goals: { type: "boolean", default: false },
      markdown: { type: "boolean", default: false },
      verbose: { type: "boolean", default: false },
      only: { type: "string" },
      rows: { type: "string" },
      store: { type: "string" },
      executable: { type: "string" },
      rounds: { type: "string" },
      seconds: { type: "string" },
      database: { type: "string" },
    },
  });
  if (values.help) return { text: HELP, code: 0 };
  const names = values.only?.split(",") ?? MEASURES.map(({ name }) => name);
  const unknown = names.find((name) => !MEASURES.some((one) => one.name === name));
  if (unknown !== undefined)
    return { text: `There is no measure "${unknown}". npm run bench -- --help lists them.`, code: 2 };
  const size = values.tiny ? TINY : values.quick ? QUICK : FULL;
  const source = [process.execPath, join(import.meta.dir, "../../src/main.ts")];
  return {
    ...size,
    seconds: Number(values.seconds ?? size.seconds),
    rounds: Number(values.rounds ?? size.rounds),
    rows: Number(values.rows ?? size.rows),
    sustainedSeconds: Number(values.seconds ?? size.sustainedSeconds),
    tiny: values.tiny,
    verbose: values.verbose,
    mustMeet: values.goals,
    markdown: values.markdown,
    measures: MEASURES.filter(({ name }) => names.includes(name)),
    relay: values.executable === undefined ? source : [values.executable],
    database: values.database ?? null,
    stores: values.store ?? null,
  };
}
