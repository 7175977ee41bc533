/** Runs measures one after another and prints the figures of each when it ends. A broken measure does not affect the figures of the others. */
import type { Figure } from "./figure.ts";
import { LeftOut, type Measure, type Run } from "./measure.ts";
import { pinProcesses } from "./pin.ts";
import { formatGoals, formatMarkdown, formatTable } from "./table.ts";

interface Report {
  /** Lines that describe what the figures are measured on. */
  head: readonly string[];
  /** Makes a missed goal a failure. */
  mustMeet: boolean;
  /** Prints the figures as a Markdown table too. */
  markdown: boolean;
  print(text: string): void;
}

interface Trouble {
  name: string;
  why: string;
}

interface Outcome {
  measured: { name: string; figures: Figure[] }[];
  broken: Trouble[];
  leftOut: Trouble[];
}

/** Runs the measures. Returns the exit code: 1 when a measure is broken, or when a goal that must be met is missed. */
export async function bench(measures: readonly Measure[], run: Run, report: Report): Promise<number> {
  const { head, mustMeet, markdown, print } = report;
  print(head.join("\n"));
  const { measured, broken, leftOut } = await measureEach(measures, run, print);
  const figures = measured.flatMap((one) => one.figures);
  if (markdown) print(`\n${formatMarkdown(head, measured)}`);
  print(`\n${run.tiny ? `${figures.length} figures; no goal is judged.` : formatGoals(figures)}`);
  for (const { name, why } of leftOut) print(`Left out: ${name}, ${why}`);
  if (broken.length > 0) print(`Broken: ${broken.length} of ${measures.length} measures`);
  for (const { name, why } of broken) print(`  ${name}: ${why}`);
  const isMissed = mustMeet && figures.some(({ met }) => met === false);
  return broken.length > 0 || isMissed ? 1 : 0;
}

async function measureEach(measures: readonly Measure[], run: Run, print: Report["print"]): Promise<Outcome> {
  const outcome: Outcome = { measured: [], broken: [], leftOut: [] };
  for (const [at, measure] of measures.entries()) {
    const { name, what } = measure;
    const begun = performance.now();
    print(`\n== ${name}: ${what} (${at + 1} of ${measures.length})`);
    try {
      const figures = await measureOne(measure, run);
      outcome.measured.push({ name, figures });
      print(formatTable(figures));
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      const isLeftOut = error instanceof LeftOut;
      outcome[isLeftOut ? "leftOut" : "broken"].push({ name, why });
      print(isLeftOut ? `left out: ${why}` : `broken: ${Bun.inspect(error)}`);
    }
    print(`took ${Math.round((performance.now() - begun) / 1_000)} s`);
  }
  return outcome;
}

async function measureOne(measure: Measure, run: Run): Promise<Figure[]> {
  using _ = measure.pinned ? pinProcesses() : null;
  const figures = await measure.measure(run);
  return run.tiny ? figures.map(({ goal: _goal, met: _met, ...rest }) => rest) : figures;
}
