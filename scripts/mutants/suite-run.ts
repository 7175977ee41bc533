/** Runs tests in a private tree, up to the first that fails. It never judges a mutant. */
import { join } from "node:path";
import type { PrivateTree } from "./private-tree.ts";

/** A mutant may make a test loop without end: Bun's own limit of a test ends one that waits, this one that computes. */
const SUITE_MS = 10 * 60_000;
const TEST_MS = 60_000;

/** A file of tests, and where it keeps its stores. */
export interface Suite {
  file: string;
  on: "sqlite" | "postgres";
}

/** The process that runs now, for whoever has to end it. */
let running: Bun.Subprocess | null = null;

/** Ends what runs, with all that it started; resolves once it has ended. */
export async function endRunning(): Promise<void> {
  running?.kill("SIGTERM");
  await running?.exited;
}

/**
 * The first test of the suite that fails twice; null: all pass. A test that a busy machine makes fail once says nothing of a mutant; it is run
 * again by itself, and with the whole suite where it fails only behind the others.
 */
export async function findFailure(tree: PrivateTree, suite: Suite): Promise<string | null> {
  const first = await findFirstFailure(tree, suite);
  if (first === null) return null;
  const name = first.split(" > ").at(-1) ?? "";
  return (await findFirstFailure(tree, suite, name)) ?? (await findFirstFailure(tree, suite));
}

/** `only`: the end of the name of the tests that are run; all by default. */
async function findFirstFailure(
  tree: PrivateTree,
  { file, on }: Suite,
  only: string | null = null,
): Promise<string | null> {
  const command = ["test", "--no-orphans", "--bail=1", `--timeout=${TEST_MS}`, `./${file}`];
  if (only !== null) command.push("--test-name-pattern", `${RegExp.escape(only)}$`);
  const { code, said, isLate } = await run(tree, command, on === "postgres" ? { TEST_STORE: on } : {});
  if (code === 0) return null;
  if (isLate) return `no end within ${SUITE_MS / 60_000} minutes`;
  const [test] = /^\(fail\) .*$/m.exec(said) ?? [];
  if (test !== undefined) return test.replace(/^\(fail\) /, "").replace(/ \[[\d.]+m?s\]$/, "");
  return NONE_RAN.test(said) ? null : (/^error: .*$/m.exec(said)?.[0] ?? `it ended with ${code}`);
}

/** Of a name that no test bears, as of a file that cannot be read. */
const NONE_RAN = /regex .* matched 0 tests/;

/** Every test that fails in the whole suite, as the test command names it. */
export async function listFailures(tree: PrivateTree): Promise<string[]> {
  const { said } = await run(tree, [join("scripts", "test.ts")], {}, Number.POSITIVE_INFINITY);
  const [, list = ""] = /^\d+ failed:\n((?: {2}.*\n)*)/m.exec(said) ?? [];
  return list.split("\n").flatMap((line) => (line === "" ? [] : [line.trim().replace(/: .*$/, "")]));
}

async function run(
  { root, scratch }: PrivateTree,
  args: readonly string[],
  env: Record<string, string>,
  mostMs = SUITE_MS,
): Promise<{ code: number; said: string; isLate: boolean }> {
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
  const said = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
  const code = await child.exited;
  clearTimeout(timer);
  running = null;
  return { code, said: Bun.stripANSI(said.join("\n")), isLate };
}
