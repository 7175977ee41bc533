/**
 * The entry point of the executable. It connects the command line to the service and exits with the command's code. It is also the process that
 * migrates for a server. It imports the service when a command uses it, because most of the time of a short command is the loading of code.
 */

import { afterUnlessEnded } from "./base/clock.ts";
import { MIGRATION_WORD } from "./base/own-executable.ts";
import { hidePasswords } from "./base/process-list.ts";
import { processWorld, type World } from "./interfaces/cli/io.ts";
import { runCommandLine } from "./interfaces/cli/run.ts";

/** The time after which the compiler treats code as usual. The build lets code that runs only at a start stay in the interpreter. */
const START_MS = 250;

const line = process.argv.slice(2);
hidePasswords();
const startService: World["startService"] = async (config, ports) =>
  (await import("./service.ts")).startService(config, ports);
const readManual: World["readManual"] = async () => (await import("./boot/documentation.ts")).readManual();
afterUnlessEnded(START_MS, () => Bun.unsafe.setJITPolicy(1));
process.exitCode = await run();

async function run(): Promise<number> {
  const [word, file = ""] = line;
  if (word === MIGRATION_WORD) return await (await import("./boot/migration.ts")).runMigration(file);
  return await runCommandLine(line, processWorld({ startService, readManual }));
}
