/**
 * Counts the files of src that execute lines for one act. The service runs under coverage once without the act and once with it. A file counts
 * when one of its lines ran more often with the act. Prints one row for each act next to its goal, and the files with `--names`. It judges
 * nothing.
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const ACTS = [
  { act: "save", words: "save a relay", goal: 45 },
  { act: "webhook", words: "webhook to result", goal: 38 },
  { act: "tick", words: "a schedule's tick", goal: 30 },
  { act: "show", words: "show an event", goal: 18 },
] as const;

type Hits = Map<string, number[]>;

async function measure(act: string, times: number): Promise<Hits> {
  const folder = mkdtempSync(join(tmpdir(), "relay-act-"));
  const child = Bun.spawn(
    [
      process.execPath,
      "test",
      "--timeout=60000",
      "--coverage",
      "--coverage-reporter=lcov",
      `--coverage-dir=${folder}`,
      "./scripts/act/one-act.test.ts",
    ],
    { env: { ...process.env, ACT: act, TIMES: String(times) }, stdout: "ignore", stderr: "pipe" },
  );
  const output = await new Response(child.stderr).text();
  if ((await child.exited) !== 0) throw new Error(`The act ${act} failed:\n${output}`);
  const hits: Hits = new Map();
  let file = "";
  for (const line of readFileSync(join(folder, "lcov.info"), "utf8").split("\n")) {
    if (line.startsWith("SF:")) file = line.slice(3);
    if (!line.startsWith("DA:") || !file.startsWith("src/")) continue;
    const [number = 0, count = 0] = line.slice(3).split(",").map(Number);
    const counts = hits.get(file) ?? [];
    counts[number] = count;
    hits.set(file, counts);
  }
  rmSync(folder, { recursive: true });
  return hits;
}

// The run without an act is the baseline of the other acts. The tick has its own baseline, because its store already has a schedule.
const baseline = measure("save", 0);
for (const { act, words, goal } of ACTS) {
  const [without, once] = await Promise.all([act === "tick" ? measure(act, 0) : baseline, measure(act, 3)]);
  const files = [...once].filter(([file, counts]) =>
    counts.some((count, line) => count > (without.get(file)?.[line] ?? 0)),
  );
  const names = files.map(([file]) => file.slice(4)).sort();
  console.log(`${words}: ${names.length} files (goal ${goal})`);
  if (process.argv.includes("--names")) console.log(names.map((name) => `  ${name}`).join("\n"));
}
