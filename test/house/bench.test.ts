/**
 * Tests the benchmark: a failed measure loses no other measure's figures, the list matches scripts/bench/measure, and pages name existing measures.
 */
import { expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { bench } from "../../scripts/bench/bench.ts";
import { compareAmounts, compareWithBar, type Figure } from "../../scripts/bench/figure.ts";
import { LeftOut, type Measure, type Run } from "../../scripts/bench/measure.ts";
import { MEASURES } from "../../scripts/bench/measures.ts";
import { readOptions } from "../../scripts/bench/options.ts";
import { PROJECT_ROOT } from "./source-tree.ts";

const RUN: Run = {
  tiny: false,
  seconds: 1,
  warmUpSeconds: 1,
  rounds: 1,
  sustainedSeconds: 1,
  rows: 1,
  stores: "",
  relay: [],
  database: null,
  verbose: false,
};
const FAST = compareAmounts("fast", "ms", 1, { name: "its limit", amount: 2 }, { atMost: 5 });
const SLOW = compareAmounts("slow", "ms", 9, null, { atMost: 5 });

const measureOf = (name: string, ...figures: (Figure | Error)[]): Measure => ({
  name,
  what: `what ${name} measures`,
  pinned: false,
  measure: async () =>
    figures.map((one) => {
      if (one instanceof Error) throw one;
      return one;
    }),
});

async function runBench(measures: readonly Measure[], { tiny = false, mustMeet = false, markdown = false } = {}) {
  const printed: string[] = [];
  const report = { head: ["version 1"], mustMeet, markdown, print: (text: string) => void printed.push(text) };
  return { code: await bench(measures, { ...RUN, tiny }, report), text: printed.join("\n") };
}

test("a failed measure is reported, and the other measures' figures are printed when they end", async () => {
  const broken = measureOf("broken", new Error("relay=none was rejected"));
  const { code, text } = await runBench([measureOf("first", FAST), broken, measureOf("last", FAST)]);
  expect(code).toBe(1);
  const order = ["version 1", "== first: what first measures (1 of 3)", "1.00 ms", "== broken", "error: relay=none was rejected", "== last"];
  const places = order.map((part) => text.indexOf(part));
  expect([places, places.includes(-1)]).toEqual([places.toSorted((one, other) => one - other), false]);
  expect(text.endsWith("2 of 2 goals met.\nBroken: 1 of 3 measures\n  broken: relay=none was rejected")).toBe(true);
});

test("a missing tool is no failure, and a missed goal is one only if goals must be met", async () => {
  const measures = [measureOf("slow", SLOW), measureOf("screens", new LeftOut("no browser"))];
  const plain = await runBench(measures);
  expect(plain.code).toBe(0);
  expect(plain.text.endsWith("0 of 1 goals met. Missed:\n  slow: 9.00 ms; the goal is ≤ 5 ms\nLeft out: screens, no browser")).toBe(true);
  expect((await runBench(measures, { mustMeet: true })).code).toBe(1);
});

test("a tiny round judges no goal", async () => {
  const { code, text } = await runBench([measureOf("slow", SLOW)], { tiny: true, mustMeet: true });
  expect([code, text.includes("MISSED"), text.endsWith("1 figures; no goal is judged.")]).toEqual([0, false, true]);
});

test("the Markdown table names its environment and each figure's measure", async () => {
  const { text } = await runBench([measureOf("first", FAST)], { markdown: true });
  expect(text).toContain("- version 1\n\n| what |");
  expect(text).toContain("| fast | 1.00 ms | its limit: 2.00 ms | 0.50 |  | ≤ 5 ms met | `--only first` |");
});

test("a slower machine has a higher bar, and a faster one keeps the plain bar", () => {
  expect(compareWithBar("x", 30, 25, 1.5)).toMatchObject({ ratio: "0.80", met: true });
  expect(compareWithBar("x", 30, 25, 1)).toMatchObject({ ratio: "1.20", met: false, limit: "bar: 25 ms" });
});

test("each file in scripts/bench/measure is one measure of the list", () => {
  const files = readdirSync(join(PROJECT_ROOT, "scripts/bench/measure")).map((file) => file.replace(/\.ts$/, ""));
  expect(MEASURES.map(({ name }) => name).toSorted()).toEqual(files.toSorted());
});

test("an unknown measure is rejected, and --help lists all of them", () => {
  expect(readOptions(["--only", "ingest,speed"])).toEqual({
    text: 'There is no measure "speed". npm run bench -- --help lists them.',
    code: 2,
  });
  const help = readOptions(["--help"]);
  const text = "text" in help ? help.text : "";
  expect(MEASURES.filter(({ name, what }) => !text.includes(`  ${name} `) || !text.includes(what))).toEqual([]);
});

test("a page or a script that names a measure names one that exists", () => {
  const pages = ["ARCHITECTURE.md", "SPEED.md", "README.md", "scripts/check.ts", "scripts/bench/options.ts"];
  const named = pages.flatMap((page) =>
    [...readFileSync(join(PROJECT_ROOT, page), "utf8").matchAll(/--only"?,? "?([a-z,-]+)/g)].flatMap(([, names = ""]) => names.split(",")),
  );
  const known = MEASURES.map(({ name }) => name);
  expect(named.length).toBeGreaterThan(10);
  expect(named.filter((name) => !known.includes(name))).toEqual([]);
});
