/** Runs tests in a private tree until the first failure. It never judges a mutant. */
import { join } from "node:path";
import type { PrivateTree } from "./private-tree.ts";

/** The limit of a suite without a mutant. */
const SUITE_MS = 10 * 60_000;
const TEST_MS = 60_000;

/** A file of tests, and the store that it runs on. */
export interface Suite {
  file: string;
  on: "sqlite" | "postgres";
}

/** The running process, so that a signal can end it. */
let running: Bun.Subprocess | null = null;

/** Ends the running process and all processes that it started. Resolves when it has ended. */
export async function endRunning(): Promise<void> {
  running?.kill("SIGTERM");
  await running?.exited;
}

/**
 * Returns the first test of the suite that fails twice, or null if all pass. One failure on a busy machine proves nothing about a mutant. So the
 * test runs again by itself, and then with the whole suite if it fails only after the others. A mutant can make a test compute forever, which Bun's
 * limit of a test does not end: a suite that takes longer than `mostMs` fails at once.
 */
export async function findFailure(
  tree: PrivateTree,
  suite: Suite,
  mostMs = SUITE_MS,
): Promise<string | null> {
  const first = await findFirstFailure(tree, suite, mostMs);
  if (first === null || first.isLate) return first?.name ?? null;
  const name = first.name.split(" > ").at(-1) ?? "";
  const repeated = await findFirstFailure(tree, suite, mostMs, name);
  return (repeated ?? (await findFirstFailure(tree, suite, mostMs)))?.name ?? null;
}

/** A failed test, or the reason why the suite failed without one. `isLate`: the suite took longer than its limit. */
interface Failure {
  name: string;
  isLate: boolean;
}

/** `only` is the end of the name of the tests to run. The default is all tests. */
async function findFirstFailure(
  tree: PrivateTree,
  { file, on }: Suite,
  mostMs: number,
  only: string | null = null,
): Promise<Failure | null> {
  const command = ["test", "--no-orphans", "--bail=1", `--timeout=${TEST_MS}`, `./${file}`];
  if (only !== null) command.push("--test-name-pattern", `${RegExp.escape(only)}$`);
  const { code, output, isLate } = await run(
    tree,
    command,
    on === "postgres" ? { TEST_STORE: on } : {},
    mostMs,
  );
  if (code === 0) return null;
  if (isLate) return { name: `no end within ${Math.round(mostMs / 1_000)} s`, isLate };
  const [test] = /^\(fail\) .*$/m.exec(output) ?? [];
  if (test !== undefined)
    return { name: test.replace(/^\(fail\) /, "").replace(/ \[[\d.]+m?s\]$/, ""), isLate };
  if (NONE_RAN.test(output)) return null;
  return { name: /^error: .*$/m.exec(output)?.[0] ?? `it ended with ${code}`, isLate };
}

/** The message that is printed if no test has the name, for example because the file cannot be read. */
const NONE_RAN = /regex .* matched 0 tests/;

/** Lists every test that fails in the whole suite, with the names that the test command prints. */
export async function listFailures(tree: PrivateTree): Promise<string[]> {
  const { output } = await run(tree, [join("scripts", "test.ts")], {}, Number.POSITIVE_INFINITY);
  const [, list = ""] = /^\d+ failed:\n((?: {2}.*\n)*)/m.exec(output) ?? [];
  return list.split("\n").flatMap((line) => (line === "" ? [] : [line.trim().replace(/: .*$/, "")]));
}

async function run(
  { root, scratch }: PrivateTree,
  args: readonly string[],
  env: Record<string, string>,
  mostMs: number,
): Promise<{ code: number; output: string; isLate: boolean }> {
  const child = Bun.spawn([process.execPath, ...args], {
    cwd: root,
    env: { ...process.env, TMPDIR: scratch, ...env },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  running = child;
  let isLate = false;
  const end = (): void => {
    isLate = true;
    child.kill("SIGKILL");
  };
  const timer = mostMs === Number.POSITIVE_INFINITY ? undefined : setTimeout(end, mostMs);
  const output = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
  const code = await child.exited;
  clearTimeout(timer);
  running = null;
  return { code, output: Bun.stripANSI(output.join("\n")), isLate };
}
