/**
 * Runs all checks, on a developer's machine and before a release. They are format and lint, types, tests, build, the executable in an empty
 * folder, the size of the dashboard, a tiny round of each measure of the bench, and the time bounds. It stops at the first step that fails and
 * names it.
 *
 *     npm run check              everything
 *     npm run check -- --fast    format, types, the rules of the codebase, golden files, and the tests of changed files: about a minute
 */
import { listChangedTests } from "./changed-tests.ts";
import { runStep, toolCommand } from "./step.ts";

const BENCH = [process.execPath, "scripts/bench/main.ts"];

interface Step {
  name: string;
  command: readonly string[];
}

const FORMAT: Step = {
  name: "format and lint",
  command: toolCommand("@biomejs/biome/bin/biome", "check", "--error-on-warnings", "."),
};

const STEPS: readonly Step[] = [
  FORMAT,
  { name: "types", command: toolCommand("typescript-compiler/bin/tsc", "--noEmit") },
  { name: "tests", command: [process.execPath, "scripts/test.ts"] },
  { name: "compile", command: [process.execPath, "scripts/build.ts"] },
  { name: "smoke", command: [process.execPath, "scripts/smoke.ts"] },
  { name: "what the dashboard loads", command: [process.execPath, "scripts/page-size.ts"] },
  { name: "each measure of the bench", command: [...BENCH, "--tiny"] },
  {
    name: "how long requests block the event loop, and how quick the dashboard is",
    command: [...BENCH, "--only", "lag,dashboard,screens,payload", "--rows", "100000", "--goals"],
  },
  { name: "files an act opens", command: [process.execPath, "scripts/act/act-files.ts"] },
];

/** Returns the steps of `--fast`. The type checker stores its results between two runs. */
function fastSteps(): Step[] {
  const cache = "node_modules/.cache/types.tsbuildinfo";
  const rules = [
    "layer",
    "source",
    "export",
    "pointer",
    "refusal",
    "released",
    "time-limit",
    "commit",
    "words",
  ];
  const always = [...rules.map((name) => `test/house/${name}.test.ts`), "test/golden/"];
  return [
    FORMAT,
    {
      name: "types",
      command: toolCommand(
        "typescript-compiler/bin/tsc",
        "--noEmit",
        "--incremental",
        "--tsBuildInfoFile",
        cache,
      ),
    },
    {
      name: "rules of the codebase, golden files, tests of changed files",
      command: [process.execPath, "scripts/test.ts", "--sqlite", ...always, ...listChangedTests()],
    },
  ];
}

const isFast = process.argv.includes("--fast");
for (const { name, command } of isFast ? fastSteps() : STEPS) {
  console.log(`== ${name}`);
  const code = await runStep(command);
  if (code !== 0) {
    console.log(`check failed: ${name}`);
    process.exit(1);
  }
}
console.log("check passed");
