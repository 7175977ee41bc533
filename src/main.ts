/**
 * The entry point of the executable. It connects the command line to the service and exits with the command's code. It is also the process that
 * migrates for a server. It imports the service when a command uses it, because most of the time of a short command is the loading of code.
 */

import { afterUnlessEnded } from "./base/clock.ts";
import { MIGRATION_WORD } from "./base/own-executable.ts";
import { hidePasswords } from "./base/process-list.ts";
import { VERSION, VERSION_WORDS } from "./base/release/version.ts";
import type { Io } from "./interfaces/cli/io.ts";

/** The time after which the compiler treats code as usual. The build lets code that runs only at a start stay in the interpreter. */
const START_MS = 250;

const line = process.argv.slice(2);
hidePasswords();
afterUnlessEnded(START_MS, () => Bun.unsafe.setJITPolicy(1));
process.exitCode = await run();

async function run(): Promise<number> {
  const [word = "", file = ""] = line;
  if (VERSION_WORDS.includes(word)) return await printVersion();
  if (word === MIGRATION_WORD) return await (await import("./boot/migration.ts")).runMigration(file);
  const [{ processIo }, { runCommandLine }] = await Promise.all([
    import("./interfaces/cli/io.ts"),
    import("./interfaces/cli/run.ts"),
  ]);
  return await runCommandLine(line, processIo({ startService, readManual }));
}

/** Prints the version without the command line. Returns 1 if standard output cannot be written. */
async function printVersion(): Promise<number> {
  return await Bun.write(Bun.stdout, `${VERSION}\n`).then(
    () => 0,
    () => 1,
  );
}

function startService(...start: Parameters<Io["startService"]>): ReturnType<Io["startService"]> {
  return import("./service.ts").then((service) => service.startService(...start));
}

async function readManual(): ReturnType<Io["readManual"]> {
  return (await import("./boot/documentation.ts")).readManual();
}
