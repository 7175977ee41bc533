/** Reads a command line: the command, its options and its arguments. An error for an unknown word suggests the nearest known one. */
import { parseArgs } from "node:util";
import { findNearestName } from "../../../base/text.ts";
import { type Command, Input, type Option, UsageError } from "../command.ts";
import type { Io } from "../io.ts";

/** The word that the script of a shell's completion calls, followed by `=` with the current word and then the words before it. */
export const COMPLETE_WORD = "__complete";

export const HELP: Option = { name: "help", help: "show this help" };
/** The options that control the display. Every command takes them. */
export const SHOWING: readonly Option[] = [
  { name: "no-pager", help: "print long output without a pager" },
  { name: "whole", help: "print complete times and ids in a terminal too" },
];

/** Replaces an alias at the beginning of the line: `calls list` becomes `requests list`, and `calls` becomes `requests`. */
export function resolveAlias(line: readonly string[], commands: readonly Command[]): readonly string[] {
  for (const { words, aliases = [] } of commands) {
    const alias = aliases.find((one) => one.every((word, at) => line[at] === word));
    if (alias !== undefined) return [...words, ...line.slice(alias.length)];
  }
  if (commands.some(({ words }) => words[0] === line[0])) return line;
  const renamed = commands.find(({ aliases = [] }) => aliases.some(([noun]) => noun === line[0]));
  return renamed === undefined ? line : [...renamed.words.slice(0, 1), ...line.slice(1)];
}

/** Finds the command whose words or alias begin the line, and returns it with the remaining words. Returns null if there is none. */
export function findCommand(
  given: readonly string[],
  commands: readonly Command[],
): { command: Command; rest: readonly string[] } | null {
  const line = resolveAlias(given, commands);
  for (const command of [...commands].sort((one, other) => other.words.length - one.words.length)) {
    if (command.words.every((word, index) => line[index] === word)) {
      return { command, rest: line.slice(command.words.length) };
    }
  }
  return null;
}

/** Creates the error for a line that begins with no command. */
export function rejectUnknownCommand(given: readonly string[], commands: readonly Command[]): UsageError {
  const line = resolveAlias(given, commands);
  const [first = "", second] = line;
  const meant = findMeant(line, commands);
  if (meant !== null)
    return new UsageError(`relay ${line.slice(0, 2).join(" ")} is not a command: did you mean ${meant}?`);
  const elsewhere = IN_DASHBOARD[`${first} ${second}`];
  if (elsewhere !== undefined)
    return new UsageError(`relay ${first} ${second} is not a command: ${elsewhere}`);
  const group = commands.filter((command) => command.words.length > 1 && command.words[0] === first);
  if (group.length > 0) {
    const known = group.map((command) => command.words[1] ?? "");
    const near = second === undefined ? null : findNearestName(second, known);
    if (near !== null)
      return new UsageError(`relay ${first} does not know ${second}: did you mean relay ${first} ${near}?`);
    const what =
      second === undefined || second.startsWith("-") ? "needs a subcommand" : `does not know ${second}`;
    const choice = known.length === 1 ? `relay ${first} ${known[0]}` : `one of ${known.join(", ")}`;
    return new UsageError(`relay ${first} ${what}: write ${choice}.`);
  }
  const near = findNearestName(first, [...new Set(commands.map((command) => command.words[0] ?? ""))]);
  return new UsageError(
    first.startsWith("-")
      ? `relay does not know ${first}: write a command first; relay --help lists them.`
      : `relay does not know the command ${first}${near === null ? "; relay --help lists them." : `: did you mean relay ${near}?`}`,
  );
}

const ERASE =
  "erasing a person cannot be undone, so only the person's page in the dashboard does it (Erase…). The page shows the person and the data first, and asks for the address. Until then, relay people suspend blocks the person.";

/** The hint for words that look like a command but exist only in the dashboard, with the reason. */
const IN_DASHBOARD: Readonly<Record<string, string>> = {
  "people erase": ERASE,
  "people delete": ERASE,
  "people remove": ERASE,
  "people forget": ERASE,
};

/** Returns a command of two words that the line contains in the wrong place or order, or null. */
function findMeant(line: readonly string[], commands: readonly Command[]): string | null {
  const begun = line.filter((word) => !word.startsWith("-")).slice(0, 2);
  for (const words of [begun, begun.toReversed()]) {
    if (findCommand(words, commands)?.command.words.length === 2) return `relay ${words.join(" ")}`;
  }
  return null;
}

/** Parses the command's input. Throws UsageError. */
export function parseCommand(command: Command, rest: readonly string[], env: Io["env"]): Input {
  const options = [...command.options, HELP, ...SHOWING];
  const { tokens } = parseArgs({
    args: [...rest],
    strict: false,
    allowPositionals: true,
    tokens: true,
    options: Object.fromEntries([
      ...options.map((option) => [
        option.name,
        { type: option.value === undefined ? ("boolean" as const) : ("string" as const) },
      ]),
      ["help", { type: "boolean" as const, short: "h" }],
    ]),
  });
  const given = new Map<string, string[]>();
  const positionals: string[] = [];
  for (const token of tokens) {
    if (token.kind === "positional") positionals.push(token.value);
    if (token.kind === "option") readOption(command, options, given, token);
  }
  if (!given.has("help")) checkArguments(command, positionals);
  return new Input(positionals, given, options, env);
}

function readOption(
  command: Command,
  options: readonly Option[],
  given: Map<string, string[]>,
  token: { name: string; rawName: string; value?: string | undefined; inlineValue?: boolean | undefined },
): void {
  const option = options.find(({ name }) => name === token.name);
  if (option === undefined) throw rejectOption(command, options, token.rawName);
  if (option.value === undefined && token.value !== undefined) {
    throw new UsageError(`--${option.name} takes no value: write only --${option.name}.`);
  }
  if (option.value !== undefined && (token.value === undefined || token.value === "")) {
    throw new UsageError(`--${option.name} is missing its value: write --${option.name} ${option.value}.`);
  }
  if (option.value !== undefined && token.inlineValue !== true && token.value?.startsWith("--") === true) {
    throw new UsageError(
      `--${option.name} is followed by ${token.value}: write its value, --${option.name} ${option.value}.`,
    );
  }
  given.set(option.name, [...(given.get(option.name) ?? []), token.value ?? "on"]);
}

function rejectOption(command: Command, options: readonly Option[], rawName: string): UsageError {
  const words = ["relay", ...command.words].join(" ");
  const why = command.refuses?.[rawName.replace(/^-+/, "")];
  if (why !== undefined) return new UsageError(`${words} takes no ${rawName}: ${why}.`);
  const near = findNearestName(
    rawName.replace(/^-+/, ""),
    options.map(({ name }) => name),
  );
  const todo = near === null ? `${words} --help lists what it takes.` : `did you mean --${near}?`;
  return new UsageError(`${words} does not know ${rawName}: ${todo}`);
}

function checkArguments(command: Command, positionals: readonly string[]): void {
  const wanted = command.arguments ?? [];
  const words = ["relay", ...command.words].join(" ");
  const missing = wanted[positionals.length];
  if (missing !== undefined && missing.optional !== true && missing.many !== true) {
    throw new UsageError(
      `${words} needs <${missing.name}>, ${missing.help}: write ${words} ${wanted.map(showArgument).join(" ")}.`,
    );
  }
  const extra = wanted.some(({ many }) => many === true) ? undefined : positionals[wanted.length];
  if (extra !== undefined) {
    throw new UsageError(
      `${words} does not take ${JSON.stringify(extra)}: ${words} --help shows what it takes.`,
    );
  }
}

/** Formats an argument for help, such as `<name>` or `[files]`. */
export function showArgument({ name, optional, many }: NonNullable<Command["arguments"]>[number]): string {
  const dots = many === true ? "…" : "";
  return optional === true ? `[${name}${dots}]` : `<${name}${dots}>`;
}
