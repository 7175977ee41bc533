/**
 * Runs one command line from its words to its exit code: 0 done, 1 refused or failed, 2 invalid command line. An error is one sentence on
 * stderr, with a stack only if RELAY_DEBUG is set.
 */
import { maskPasswords } from "../../base/database-url.ts";
import { VERSION, VERSION_WORDS } from "../../base/release/version.ts";
import { type Command, type Input, UsageError } from "./command.ts";
import type { Io } from "./io.ts";
import {
  COMPLETE_WORD,
  findCommand,
  parseCommand,
  rejectUnknownCommand,
  resolveAlias,
} from "./line/parse.ts";
import { loadCommands } from "./load-command.ts";
import { PIPE } from "./terminal/screen.ts";

/** Runs `relay <line>`. Never throws. Errors, help and completion import their own code, so that no other command loads it. */
export async function runCommandLine(line: readonly string[], io: Io): Promise<number> {
  try {
    return await run(line, io);
  } catch (error) {
    const [{ blameAnswer }, { printRefusal }] = await Promise.all([
      import("./api/read-answer.ts"),
      import("./refusal-text.ts"),
    ]);
    printRefusal(blameAnswer(error), line, io);
    if (io.env.RELAY_DEBUG !== undefined && error instanceof Error)
      io.inform(maskPasswords(error.stack ?? ""));
    return error instanceof UsageError ? 2 : 1;
  }
}

async function run(line: readonly string[], io: Io): Promise<number> {
  const [first = ""] = line;
  if (VERSION_WORDS.includes(first)) return await show(io, VERSION);
  const found = findCommand(line, await loadCommands(first));
  return found === null ? await runAnyLine(line, io) : await runCommand(found, io);
}

/** Runs a line that begins with no command of `loadCommands`: help, completion, or the earlier name of a command. */
async function runAnyLine(line: readonly string[], io: Io): Promise<number> {
  const { screen } = io;
  const [{ COMMANDS, GROUPS }, { writeCodeHelp, writeHelp }] = await Promise.all([
    import("./registry.ts"),
    import("./line/help.ts"),
  ]);
  if (line.length === 0) {
    if (io.interactive) return await run(["dev", "--open"], io);
    io.inform(writeHelp(GROUPS, VERSION, PIPE));
    return 2;
  }
  if (line[0] === COMPLETE_WORD) {
    const { completeLine } = await import("./line/completion.ts");
    await completeLine(line.slice(1), COMMANDS, io);
    return 0;
  }
  if (line[0] === "--help" || line[0] === "-h") return await show(io, writeHelp(GROUPS, VERSION, screen));
  const explained = line[0] === "help" && line.length === 2 ? writeCodeHelp(line[1] ?? "", screen) : null;
  if (explained !== null) return await show(io, explained);
  if (line[0] === "help") return await run([...line.slice(1), "--help"], io);
  const found = findCommand(line, COMMANDS);
  return found === null ? await helpOfNoun(line, COMMANDS, io) : await runCommand(found, io);
}

async function runCommand(
  { command, rest }: { command: Command; rest: readonly string[] },
  io: Io,
): Promise<number> {
  const input: Input = parseCommand(command, rest, io.env);
  if (input.given("help")) {
    const { writeCommandHelp } = await import("./line/help.ts");
    return await show(io, writeCommandHelp(command, io.screen));
  }
  try {
    const code = await command.run(input, io);
    return typeof code === "number" ? code : 0;
  } catch (error) {
    const { withNearName } = await import("./line/known-name.ts");
    throw await withNearName(error, command, input, io);
  }
}

/** Shows the commands of a noun, such as `relay keys --help`. */
async function helpOfNoun(line: readonly string[], commands: readonly Command[], io: Io): Promise<number> {
  const [noun = "", asked] = resolveAlias(line, commands);
  const found = commands.filter(({ words }) => words.length > 1 && words[0] === noun);
  const isHelp = line.length === 2 && (asked === "--help" || asked === "-h");
  if (found.length === 0 || !isHelp) throw rejectUnknownCommand(line, commands);
  const { writeNounHelp } = await import("./line/help.ts");
  return await show(io, writeNounHelp(noun, found, io.screen));
}

/** Shows help through a pager if it is long, as every command does. */
async function show(io: Io, text: string): Promise<number> {
  if (!(await io.page(text))) io.draw(text);
  return 0;
}
