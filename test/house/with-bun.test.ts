/** The launcher of the package scripts: it passes arguments, exit codes and signals on, and installs nothing that is there. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { startCli } from "../kit/cli-process.ts";
import { PROJECT_ROOT } from "./source-tree.ts";

const LAUNCHER = join(PROJECT_ROOT, "scripts", "with-bun.mjs");
const node = Bun.which("node");
const RUNTIMES = [["Bun", process.execPath] as const, ...(node === null ? [] : [["Node", node] as const])];

test.each(RUNTIMES)(
  "under %s it runs Bun with the arguments and ends with its code",
  async (_name, runtime) => {
    const script = "console.log(process.versions.bun, process.argv.slice(1).join(' ')); process.exit(7)";
    await using run = startCli(["-e", script, "one", "two words"], {
      cwd: PROJECT_ROOT,
      command: [runtime, LAUNCHER],
    });
    expect(await run.line("one")).toBe(`${Bun.version} one two words`);
    expect(await run.exited).toBe(7);
  },
);

test.each(RUNTIMES)("under %s a signal reaches Bun, and its code comes back", async (_name, runtime) => {
  const script =
    "process.on('SIGTERM', () => process.exit(3)); setInterval(() => {}, 1000); console.log('up')";
  await using run = startCli(["-e", script], { cwd: PROJECT_ROOT, command: [runtime, LAUNCHER] });
  await run.line("up");
  run.kill("SIGTERM");
  expect(await run.exited).toBe(3);
});
