/**
 * One command line from its words to its exit code: 0 done, 1 refused or failed, 2 wrongly written. What went wrong is one sentence on
 * standard error; a stack only where RELAY_DEBUG is set.
 */
import { VERSION } from "../release/change.ts";
import { DatabaseRefused } from "../store/database-file.ts";
import { DataDirectoryTaken } from "../store/lock.ts";
import { MigrationRefused } from "../store/migrate.ts";
import { StoreUnavailable } from "../store/port.ts";
import { isForPeople, UsageError } from "./command.ts";
import { writeCommandHelp, writeHelp } from "./help.ts";
import { findCommand, parseCommand, refuseUnknown } from "./parse.ts";
import { COMMANDS } from "./registry.ts";
import type { World } from "./world.ts";

/** Runs `relay <line>`. Never throws. */
export async function runCommandLine(line: readonly string[], world: World): Promise<number> {
  try {
    return await run(line, world);
  } catch (error) {
    const code = explain(error, world);
    if (world.env.RELAY_DEBUG !== undefined && error instanceof Error) world.tell(error.stack ?? "");
    return code;
  }
}

async function run(line: readonly string[], world: World): Promise<number> {
  if (line.length === 0) {
    if (world.interactive) return await run(["dev", "--open"], world);
    world.tell(writeHelp(COMMANDS, VERSION));
    return 2;
  }
  if (line[0] === "--version" || line[0] === "-v") return show(world, VERSION);
  if (line[0] === "--help" || line[0] === "-h") return show(world, writeHelp(COMMANDS, VERSION));
  if (line[0] === "help") return await run([...line.slice(1), "--help"], world);
  const found = findCommand(line, COMMANDS);
  if (found === null) return helpOfGroup(line, world);
  const input = parseCommand(found.command, found.rest, world.env);
  if (input.given("help")) return show(world, writeCommandHelp(found.command));
  return await found.command.run(input, world);
}

/** `relay keys --help` shows the commands of that word. */
function helpOfGroup(line: readonly string[], world: World): number {
  const group = COMMANDS.filter(({ words }) => words.length > 1 && words[0] === line[0]);
  const asked = line.length === 2 && (line[1] === "--help" || line[1] === "-h");
  if (group.length === 0 || !asked) throw refuseUnknown(line, COMMANDS);
  return show(world, group.map(writeCommandHelp).join("\n\n"));
}

function show(world: World, text: string): number {
  world.say(text);
  return 0;
}

/** The store's own refusals, whose message is a sentence for a person. */
function isOfStore(error: unknown): error is Error {
  return [DataDirectoryTaken, DatabaseRefused, MigrationRefused].some((kind) => error instanceof kind);
}

function explain(error: unknown, world: World): number {
  if (error instanceof UsageError) {
    world.tell(error.message);
    return 2;
  }
  if (isForPeople(error) || isOfStore(error)) {
    world.tell(error.message);
  } else if (error instanceof StoreUnavailable || isDatabaseTrouble(error)) {
    world.tell(
      `The database cannot be used now: ${error.message.replace(/\.?$/, ".")} Check the disk and the data directory's rights.`,
    );
  } else if (isFileTrouble(error)) {
    world.tell(
      `${error.path} cannot be used (${error.message}): check that the path is right and may be written.`,
    );
  } else {
    const message = error instanceof Error ? error.message : String(error);
    world.tell(`Something went wrong that should not: ${message} (RELAY_DEBUG=1 shows where).`);
  }
  return 1;
}

/** The database's own error, from before there is a store to tell of it. */
function isDatabaseTrouble(error: unknown): error is Error {
  return error instanceof Error && "code" in error && /^SQLITE_/.test(String(error.code));
}

/** The system refused a file or folder that the person named, or that lies where they said. */
function isFileTrouble(error: unknown): error is Error & { path: string } {
  const { code, path } = error as { code?: unknown; path?: unknown };
  return (
    error instanceof Error &&
    typeof path === "string" &&
    /^(EACCES|EEXIST|EISDIR|ENOENT|ENOTDIR|EPERM|EROFS|ENOSPC)$/.test(String(code))
  );
}
