/**
 * Puts each mutant of `test/mutants` into a private copy of the project, one at a time, and runs its nearest tests until one fails. Prints one
 * line for each mutant and ends with `N killed, N survived`. The command fails if a mutant survives or cannot be judged.
 *
 * npm run mutants -- [--only <ids or areas>] [--full: survivors meet the whole suite] [--list] [--base <folder>: the source and tests of another
 *   tree] [--table <file>: the results as Markdown]
 */
import { writeFileSync } from "node:fs";
import { constants } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { type Mutant, mutate, readMutants } from "./list.ts";
import { copyTree } from "./private-tree.ts";
import { endRunning, findFailure, listFailures, type Suite } from "./suite-run.ts";

const { values } = parseArgs({
  options: {
    only: { type: "string" },
    full: { type: "boolean", default: false },
    list: { type: "boolean", default: false },
    base: { type: "string" },
    table: { type: "string" },
  },
});
const only = values.only?.split(",") ?? null;
const mutants = readMutants(process.cwd()).filter(
  ({ id, area }) => only === null || only.includes(id) || only.includes(area),
);
if (mutants.length === 0) {
  console.log(`No mutant or area is called ${values.only}: --list names them.`);
  process.exit(1);
}
if (values.list) {
  for (const { area, id, why } of mutants) console.log(`${area.padEnd(10)} ${id.padEnd(26)} ${why}`);
  process.exit(0);
}

/** `by` is the test that failed, or the reason why the mutant cannot be judged. */
interface Verdict {
  mutant: Mutant;
  state: "killed" | "survived" | "not judged";
  by: string;
  seconds: number;
}

const tree = copyTree(values.base ?? process.cwd());
let isEnding = false;
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
  process.once(signal, async () => {
    isEnding = true;
    await endRunning();
    tree[Symbol.dispose]();
    process.exit(128 + constants.signals[signal]);
  });
process.once("exit", () => tree[Symbol.dispose]());

/** The shortest limit of a suite with a mutant, and how often its time without one fits into the limit. */
const MIN_SUITE_MS = 120_000;
const SUITE_TIMES = 10;

/** The result of a suite without a mutant: a failing test or null, and the time that it took. */
interface Baseline {
  failure: string | null;
  tookMs: number;
}
const baselines = new Map<string, Baseline>();
const verdicts: Verdict[] = [];
for (const mutant of mutants) {
  const begunMs = performance.now();
  const { state, by } = await evaluate(mutant);
  if (isEnding) await new Promise<never>(() => undefined);
  const seconds = (performance.now() - begunMs) / 1_000;
  verdicts.push({ mutant, state, by, seconds });
  const count = `${String(verdicts.length).padStart(String(mutants.length).length)}/${mutants.length}`;
  console.log(`${count} ${state} ${mutant.id} (${seconds.toFixed(1)} s)${by === "" ? "" : `: ${by}`}`);
}
const count = (wanted: Verdict["state"]): number => verdicts.filter(({ state }) => state === wanted).length;
if (values.table !== undefined) writeFileSync(values.table, writeTable());
for (const { mutant } of verdicts.filter(({ state }) => state === "survived"))
  console.log(`\n${mutant.id} in ${mutant.file}: ${mutant.why}\n- ${mutant.before}\n+ ${mutant.after}`);
const unjudged = count("not judged");
console.log(
  `${count("killed")} killed, ${count("survived")} survived${unjudged > 0 ? `, ${unjudged} not judged` : ""}`,
);
process.exit(count("killed") === mutants.length ? 0 : 1);

async function evaluate(mutant: Mutant): Promise<Pick<Verdict, "state" | "by">> {
  const mutated = mutate(tree.root, mutant);
  if ("fault" in mutated) return { state: "not judged", by: mutated.fault };
  const on = mutant.on ?? "sqlite";
  const broken: string[] = [];
  for (const file of mutant.suites) {
    const suite: Suite = { file, on };
    const { failure, tookMs } = await measureBaseline(suite);
    if (failure !== null) {
      broken.push(`${file} fails without a mutant: ${failure}`);
      continue;
    }
    const failed = await withMutant(mutant, mutated.text, () =>
      findFailure(tree, suite, Math.max(MIN_SUITE_MS, SUITE_TIMES * tookMs)),
    );
    if (failed !== null) return { state: "killed", by: `${file} > ${failed}` };
  }
  if (values.full) {
    const before = await listKnownFailures();
    const failed = await withMutant(mutant, mutated.text, () => listFailures(tree));
    const fresh = failed.find((name) => !before.includes(name));
    if (fresh !== undefined) return { state: "killed", by: `${fresh} (in the whole suite)` };
  }
  return broken.length > 0
    ? { state: "not judged", by: broken.join("; ") }
    : { state: "survived", by: mutant.why };
}

async function withMutant<Result>(
  { file }: Mutant,
  text: string,
  work: () => Promise<Result>,
): Promise<Result> {
  const path = join(tree.root, file);
  const original = await Bun.file(path).text();
  writeFileSync(path, text);
  const result = await work();
  writeFileSync(path, original);
  return result;
}

/** Runs the suite without a mutant, once. A suite that fails without one kills none. */
async function measureBaseline(suite: Suite): Promise<Baseline> {
  const name = `${suite.file} ${suite.on}`;
  const known = baselines.get(name);
  if (known !== undefined) return known;
  const begunMs = performance.now();
  const failure = await findFailure(tree, suite);
  const baseline = { failure, tookMs: performance.now() - begunMs };
  baselines.set(name, baseline);
  return baseline;
}

let known: string[] | null = null;

async function listKnownFailures(): Promise<string[]> {
  known ??= await listFailures(tree);
  return known;
}

function writeTable(): string {
  const rows = verdicts.map(
    ({ mutant, state, by, seconds }) =>
      `| ${mutant.area} | ${mutant.id} | ${state} | ${by.replaceAll("|", "\\|")} | ${seconds.toFixed(1)} |`,
  );
  return `| area | mutant | result | by | s |\n|---|---|---|---|---|\n${rows.join("\n")}\n`;
}
