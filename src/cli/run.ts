/**
 * One command line from its words to its exit code: 0 done, 1 refused or failed, 2 wrongly written. What went wrong is one sentence on
 * standard error; a stack only where RELAY_DEBUG is set.
 */
import { VERSION } from "../release/change.ts";
import { UsageError } from "./command.ts";
import { writeCodeHelp, writeCommandHelp, writeHelp } from "./help.ts";
import { findCommand, parseCommand, refuseUnknown } from "./parse.ts";
import { sayRefusal } from "./refusal-words.ts";
import { COMMANDS } from "./registry.ts";
import type { World } from "./world.ts";

/** Runs `relay <line>`. Never throws. */
export async function runCommandLine(line: readonly string[], world: World): Promise<number> {
  try {
    return await run(line, world);
  } catch (error) {
    sayRefusal(error, line, world);
    if (world.env.RELAY_DEBUG !== undefined && error instanceof Error) world.tell(error.stack ?? "");
    return error instanceof UsageError ? 2 : 1;
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
  const explained = line[0] === "help" && line.length === 2 ? writeCodeHelp(line[1] ?? "") : null;
  if (explained !== null) return show(world, explained);
  if (line[0] === "help") return await run([...line.slice(1), "--help"], world);
  const found = findCommand(line, COMMANDS);
  if (found === null) return helpOfGroup(line, world);
  const input = parseCommand(found.command, found.rest, world.env);
  if (input.given("help")) return show(world, writeCommandHelp(found.command));
  const code = await found.command.run(input, world);
  return typeof code === "number" ? code : 0;
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
