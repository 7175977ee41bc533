/** Runs tests in a private tree, up to the first that fails. It never judges a mutant. */
import { join } from "node:path";
import type { PrivateTree } from "./private-tree.ts";

/** A mutant may make a test loop without end: Bun's own limit of a test ends one that waits, this one that computes. */
const SUITE_MS = 10 * 60_000;
const TEST_MS = 60_000;

/** The process that runs now, for whoever has to end it. */
let running: Bun.Subprocess | null = null;

/** Ends what runs, with all that it started; resolves once it has ended. */
export async function endRunning(): Promise<void> {
  running?.kill("SIGTERM");
  await running?.exited;
}

/** The first test of the suite that fails, as `name`; null: all pass. */
export async function findFailure(
  tree: PrivateTree,
  suite: string,
  on: "sqlite" | "postgres",
): Promise<string | null> {
  const command = ["test", "--no-orphans", "--bail=1", `--timeout=${TEST_MS}`, `./${suite}`];
  const { code, said, isLate } = await run(tree, command, on === "postgres" ? { TEST_STORE: on } : {});
  if (code === 0) return null;
  if (isLate) return `no end within ${SUITE_MS / 60_000} minutes`;
  const [test] = /^\(fail\) .*$/m.exec(said) ?? [];
  if (test !== undefined) return test.replace(/^\(fail\) /, "").replace(/ \[[\d.]+m?s\]$/, "");
  return /^error: .*$/m.exec(said)?.[0] ?? `it ended with ${code}`;
}

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
