/**
 * Runs one command line from its words to its exit code: 0 done, 1 refused or failed, 2 invalid command line. An error is one sentence on
 * stderr, with a stack only if RELAY_DEBUG is set.
 */
import { maskPasswords } from "../../base/database-url.ts";
import { VERSION } from "../../base/release/change.ts";
import { blameAnswer } from "./api/read-answer.ts";
import { type Command, UsageError } from "./command.ts";
import type { World } from "./io.ts";
import { COMPLETE_WORD, completeLine } from "./line/completion.ts";
import { writeCodeHelp, writeCommandHelp, writeHelp, writeNounHelp } from "./line/help.ts";
import { withNearName } from "./line/known-name.ts";
import { findCommand, parseCommand, rejectUnknownCommand, resolveAlias } from "./line/parse.ts";
import { sayRefusal } from "./refusal-text.ts";
import { serve } from "./server/serve.ts";
import { PIPE } from "./terminal/screen.ts";

/** A process that runs `serve` for months loads only that command, to save memory. */
const OF_SERVER = { GROUPS: [], COMMANDS: [serve] };

const VERSION_WORDS: readonly (string | undefined)[] = ["--version", "-v", "version"];

/** Runs `relay <line>`. Never throws. */
export async function runCommandLine(line: readonly string[], world: World): Promise<number> {
  try {
    return await run(line, world);
  } catch (error) {
    sayRefusal(blameAnswer(error), line, world);
    if (world.env.RELAY_DEBUG !== undefined && error instanceof Error)
      world.tell(maskPasswords(error.stack ?? ""));
    return error instanceof UsageError ? 2 : 1;
  }
}

async function run(line: readonly string[], world: World): Promise<number> {
  const { screen } = world;
  const { COMMANDS, GROUPS } = line[0] === "serve" ? OF_SERVER : await import("./registry.ts");
  if (line.length === 0) {
    if (world.interactive) return await run(["dev", "--open"], world);
    world.tell(writeHelp(GROUPS, VERSION, PIPE));
    return 2;
  }
  if (line[0] === COMPLETE_WORD) {
    await completeLine(line.slice(1), COMMANDS, world);
    return 0;
  }
  if (VERSION_WORDS.includes(line[0])) return await show(world, VERSION);
  if (line[0] === "--help" || line[0] === "-h") return await show(world, writeHelp(GROUPS, VERSION, screen));
  const explained = line[0] === "help" && line.length === 2 ? writeCodeHelp(line[1] ?? "", screen) : null;
  if (explained !== null) return await show(world, explained);
  if (line[0] === "help") return await run([...line.slice(1), "--help"], world);
  const found = findCommand(line, COMMANDS);
  if (found === null) return await helpOfNoun(line, COMMANDS, world);
  const input = parseCommand(found.command, found.rest, world.env);
  if (input.given("help")) return await show(world, writeCommandHelp(found.command, screen));
  try {
    const code = await found.command.run(input, world);
    return typeof code === "number" ? code : 0;
  } catch (error) {
    throw await withNearName(error, found.command, input, world);
  }
}

/** Shows the commands of a noun, such as `relay keys --help`. */
async function helpOfNoun(
  line: readonly string[],
  commands: readonly Command[],
  world: World,
): Promise<number> {
  const [noun = "", asked] = resolveAlias(line, commands);
  const found = commands.filter(({ words }) => words.length > 1 && words[0] === noun);
  const isHelp = line.length === 2 && (asked === "--help" || asked === "-h");
  if (found.length === 0 || !isHelp) throw rejectUnknownCommand(line, commands);
  return await show(world, writeNounHelp(noun, found, world.screen));
}

/** Shows help through a pager if it is long, as every command does. */
async function show(world: World, text: string): Promise<number> {
  if (!(await world.page(text))) world.draw(text);
  return 0;
}
