/** Documents the command line from its registry: every command with its options and examples, and every variable. */
import { writeTable } from "./markdown.ts";
import { writeBlock } from "./schema-table.ts";

/** The parts of a command that the pages use. The elements of the registry of commands have this shape. */
interface DocumentedCommand {
  words: readonly string[];
  summary: string;
  details?: string;
  arguments?: readonly { name: string; help: string; optional?: boolean; many?: boolean }[];
  options: readonly DocumentedOption[];
  examples?: readonly string[];
}

interface DocumentedOption {
  name: string;
  value?: string;
  env?: string;
  otherwise?: string;
  help: string;
}

/** Documents variables that have no flag. */
export function writeOwnVariables(
  variables: readonly { name: string; otherwise: string; help: string }[],
): string {
  const rows = variables.map(({ name, otherwise, help }) => [`\`${name}\``, otherwise, `${help}.`]);
  return writeTable(["variable", "default", "meaning"], rows);
}

/** An option of at least this many commands is documented once for all of them. */
const MANY = 8;

export function writeCommands(commands: readonly DocumentedCommand[]): string {
  const shared = listShared(commands);
  const rows = shared.map((option) => [showOption(option), formatHelp(option)]);
  return [
    "## Options of many commands",
    writeTable(["", "meaning"], rows),
    ...commands.map((command) => writeCommand(command, shared)),
  ].join("\n\n");
}

/** Lists options that many commands have with the same text. */
function listShared(commands: readonly DocumentedCommand[]): readonly DocumentedOption[] {
  const counted = new Map<string, { option: DocumentedOption; count: number }>();
  for (const option of commands.flatMap(({ options }) => options)) {
    const key = keyOf(option);
    counted.set(key, { option, count: (counted.get(key)?.count ?? 0) + 1 });
  }
  return [...counted.values()].filter(({ count }) => count >= MANY).map(({ option }) => option);
}

function keyOf(option: DocumentedOption): string {
  return `${showOption(option)} ${formatHelp(option)}`;
}

function showOption({ name, value }: DocumentedOption): string {
  return `\`--${name}${value === undefined ? "" : ` ${value}`}\``;
}

function writeCommand(command: DocumentedCommand, shared: readonly DocumentedOption[]): string {
  const { words, summary, details, options, examples = [], arguments: wanted = [] } = command;
  const rows = [
    ...wanted.map(({ name, help, optional, many }) => {
      const shown = `${name}${many === true ? "…" : ""}`;
      return [optional === true ? `\`[${shown}]\`` : `\`<${shown}>\``, help];
    }),
    ...options
      .filter((option) => !shared.some((one) => keyOf(one) === keyOf(option)))
      .map((option) => [showOption(option), formatHelp(option)]),
  ];
  return [
    `## relay ${words.join(" ")}`,
    `${summary.charAt(0).toUpperCase()}${summary.slice(1)}.`,
    ...(details === undefined ? [] : [writeDetails(details)]),
    ...(rows.length === 0 ? [] : [writeTable(["", "meaning"], rows)]),
    ...(examples.length === 0 ? [] : [writeBlock("sh command", examples.join("\n"))]),
  ].join("\n\n");
}

/** Formats each line as a paragraph, and indented lines as a list. */
function writeDetails(details: string): string {
  return details
    .replace(/\n(?! )/g, "\n\n")
    .replace(/(^|\n)(?! )([^\n]*)\n {2}/g, "$1$2\n\n  ")
    .replace(/^ {2}/gm, "- ");
}

function formatHelp({ help, env, otherwise }: DocumentedOption): string {
  const notes = [
    ...(otherwise === undefined ? [] : [`default ${otherwise}`]),
    ...(env === undefined ? [] : [`\`${env}\``]),
  ];
  return notes.length === 0 ? help : `${help} (${notes.join("; ")})`;
}

/** Lists every environment variable that an option reads, once. */
export function writeVariables(commands: readonly DocumentedCommand[]): string {
  const known = new Map<string, DocumentedOption>();
  for (const { options } of commands)
    for (const option of options)
      if (option.env !== undefined && !known.has(option.env)) known.set(option.env, option);
  const rows = [...known].map(([variable, { name, otherwise = "", help }]) => [
    `\`${variable}\``,
    `\`--${name}\``,
    otherwise,
    help,
  ]);
  return writeTable(["variable", "flag", "default", "meaning"], rows);
}
