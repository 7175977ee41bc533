/**
 * The entry point of the executable. It connects the command line to the service and exits with the command's code. It is also the process that
 * migrates for a server.
 */

import { hidePasswords } from "./base/process-list.ts";
import { MIGRATION_WORD, runMigration } from "./boot/migration.ts";
import { processWorld } from "./interfaces/cli/io.ts";
import { runCommandLine } from "./interfaces/cli/run.ts";
import { startService } from "./service.ts";

const line = process.argv.slice(2);
const [word, file = ""] = line;
hidePasswords();
/** Loads the documentation when a command needs it, which most commands do not. */
const readManual = async () => (await import("./boot/documentation.ts")).readManual();
const run =
  word === MIGRATION_WORD
    ? runMigration(file)
    : runCommandLine(line, processWorld({ startService, readManual }));
run.then((code) => {
  process.exitCode = code;
});
