/**
 * One command line from its words to its exit code: 0 done, 1 refused or failed, 2 wrongly written. What went wrong is one sentence on
 * standard error; a stack only where RELAY_DEBUG is set. And the words of help: the list of commands, and one command's own page.
 */
import { explainCode } from "../ground/result-code.ts";
import { VERSION } from "../release/change.ts";
import { type Command, type Option, UsageError } from "./command.ts";
import { findCommand, HELP, parseCommand, refuseUnknown, showArgument } from "./parse.ts";
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

/** `relay --help`. */
function writeHelp(commands: readonly Command[], version: string): string {
  const rows = commands.map((command): [string, string] => [
    ["relay", ...command.words, ...(command.arguments ?? []).map(showArgument)].join(" "),
    command.summary,
  ]);
  return [
    `relay ${version}: when a provider says X, do Y, exactly once.`,
    "",
    ...columns([["relay", "in a terminal, the same as relay dev --open"], ...rows]),
    "",
    "relay <command> --help shows its options; one that names a RELAY_… variable can be set by it, and a flag wins.",
    "Exit codes: 0 done, 1 refused or failed, 2 the command line itself is wrong, 3 something differs that you are to decide (pull, status).",
  ].join("\n");
}

/** `relay <command> --help`. */
function writeCommandHelp(command: Command): string {
  const { summary, details, arguments: wanted = [], options, examples = [] } = command;
  const usage = ["relay", ...command.words, ...wanted.map(showArgument)].join(" ");
  const lines = [`${usage} [options]`, "", capital(summary)];
  if (details !== undefined) lines.push("", details);
  if (wanted.length > 0) {
    lines.push("", ...columns(wanted.map((argument) => [showArgument(argument), argument.help])));
  }
  lines.push("", ...columns([...options, HELP].map((option) => [showOption(option), describe(option)])));
  if (examples.length > 0) lines.push("", ...examples.map((example) => `  ${example}`));
  return lines.join("\n");
}

function showOption({ name, value }: Option): string {
  return value === undefined ? `--${name}` : `--${name} ${value}`;
}

function describe({ help, env, otherwise, list }: Option): string {
  const notes = [
    ...(list === true ? ["may be repeated"] : []),
    ...(otherwise === undefined ? [] : [`default ${otherwise}`]),
    ...(env === undefined ? [] : [env]),
  ];
  return notes.length === 0 ? help : `${help} (${notes.join("; ")})`;
}

function columns(rows: readonly (readonly [string, string])[]): string[] {
  const width = Math.max(...rows.map(([left]) => left.length));
  return rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`);
}

function capital(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}

/** What a code of a refusal or an event's result means and what to do, as its page says; null for what is no code. */
function writeCodeHelp(word: string): string | null {
  const entry = explainCode(word);
  return entry === null ? null : `${word}\n\n${entry.when}\n${entry.todo}`;
}
