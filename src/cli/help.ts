/** The words of help: the list of commands, and one command's own page. */
import { explainCode } from "../ground/result-code.ts";
import type { Command, Option } from "./command.ts";
import { HELP, showArgument } from "./parse.ts";

/** `relay --help`. */
export function writeHelp(commands: readonly Command[], version: string): string {
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
    "Exit codes: 0 done, 1 refused or failed, 2 the command line itself is wrong.",
  ].join("\n");
}

/** `relay <command> --help`. */
export function writeCommandHelp(command: Command): string {
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
export function writeCodeHelp(word: string): string | null {
  const entry = explainCode(word);
  return entry === null ? null : `${word}\n\n${entry.when}\n${entry.todo}`;
}
