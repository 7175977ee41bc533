/**
 * The one gate, locally and in CI: format and lint, types, tests, compile, a smoke of the executable in an empty folder, what the dashboard loads, a
 * tiny round of each measure of the bench, and the bars in milliseconds: how long requests block the event loop and how quick the dashboard is. It
 * stops at the first step that fails and says which.
 */
import { runStep, toolCommand } from "./step.ts";

const BENCH = [process.execPath, "scripts/bench/main.ts"];

const STEPS: readonly { name: string; command: readonly string[] }[] = [
  {
    name: "format and lint",
    command: toolCommand("@biomejs/biome/bin/biome", "check", "--error-on-warnings", "."),
  },
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

for (const { name, command } of STEPS) {
  console.log(`== ${name}`);
  const code = await runStep(command);
  if (code !== 0) {
    console.log(`check failed: ${name}`);
    process.exit(1);
  }
}
console.log("check passed");
