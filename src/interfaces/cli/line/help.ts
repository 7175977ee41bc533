/** Formats help: the list of commands, the page of a noun or of one command, and the meaning of a code. */
import { formatKinds, listMeanings, listParts } from "../../../base/code/code.ts";
import type { Command, Option } from "../command.ts";
import { paint, type Screen } from "../terminal/screen.ts";
import { wrapTo } from "../terminal/table.ts";
import { HELP, SHOWING, showArgument } from "./parse.ts";

/** A part of the list of commands. Each line shows the names of related commands. */
export interface Group {
  title: string;
  lines: readonly { summary: string; commands: readonly Command[] }[];
}

/** The options that many commands share, in their order in help. */
const GLOBAL_OPTIONS: readonly string[] = [
  "json",
  "app",
  "environment",
  "profile",
  "url",
  "data-dir",
  "database",
  "whole",
  "no-pager",
  "help",
];

/** Formats the page of `relay --help`. */
export function writeHelp(groups: readonly Group[], version: string, screen: Screen): string {
  const rows = groups.map(({ lines }) =>
    lines.map(({ commands, summary }): [string, string] => [
      [...new Set(commands.map(({ words }) => words[0] ?? ""))].join(", "),
      capitalize(summary),
    ]),
  );
  const width = Math.max(...rows.flat().map(([names]) => names.length));
  return [
    `relay ${version}: turns signed webhooks into actions, each exactly once.`,
    "",
    ...groups.flatMap(({ title }, at) => [
      paint(title, "strong", screen),
      ...columns(rows[at] ?? [], screen, width),
    ]),
    "",
    ...[
      "relay help <command> explains a command, relay help <code> a code.",
      "relay docs commands describes all options, variables and exit codes.",
    ].map((line) => wrapTo(line, screen.columns ?? PAPER)),
  ].join("\n");
}

/** Formats the page of `relay help <noun>`: a line for each command of the noun. */
export function writeNounHelp(noun: string, commands: readonly Command[], screen: Screen): string {
  const rows = commands.map(({ words, summary }): [string, string] => [
    ["relay", ...words].join(" "),
    capitalize(summary),
  ]);
  return [
    paint(`relay ${noun} <command> [options]`, "strong", screen),
    "",
    ...columns(rows, screen),
    "",
    fold(`relay help ${noun} <command> shows the options and examples of a command.`, screen),
  ].join("\n");
}

/** Formats the page of `relay help <command>`. */
export function writeCommandHelp(command: Command, screen: Screen): string {
  const { words, aliases = [], summary, details, arguments: wanted = [], options, examples = [] } = command;
  const usage = ["relay", ...words, ...wanted.map(showArgument)].join(" ");
  const shows = options.some(({ name }) => name === "json") ? SHOWING : [];
  const own = options.filter(({ name }) => !GLOBAL_OPTIONS.includes(name));
  const shared = [...options, ...shows, HELP].filter(({ name }) => GLOBAL_OPTIONS.includes(name));
  const inOrder = shared.toSorted(
    (one, other) => GLOBAL_OPTIONS.indexOf(one.name) - GLOBAL_OPTIONS.indexOf(other.name),
  );
  const argumentRows = wanted.map((argument): Row => [showArgument(argument), argument.help]);
  const target = describeDefaultTarget(options);
  return [
    paint(`${usage} [options]`, "strong", screen),
    "",
    fold(`${capitalize(summary)}.`, screen),
    ...aliases.map((alias) => fold(`Earlier name: relay ${alias.join(" ")}.`, screen)),
    ...(details === undefined ? [] : ["", ...details.split("\n").map((line) => fold(line, screen))]),
    ...writeBlock("Arguments", columns(argumentRows, screen), screen),
    ...writeBlock(
      "Options",
      columns(
        own.map((option) => [showOption(option), describe(option)]),
        screen,
      ),
      screen,
    ),
    ...writeBlock(
      "Examples",
      examples.map((example) => `  ${example}`),
      screen,
    ),
    ...writeBlock(
      "Global options",
      columns(
        inOrder.map((option) => [showOption(option), describeShortly(option)]),
        screen,
      ),
      screen,
    ),
    ...(target === null ? [] : [fold(target, screen)]),
  ].join("\n");
}

/** Formats a titled block below an empty line, or nothing if it has no lines. */
function writeBlock(title: string, lines: readonly string[], screen: Screen): string[] {
  return lines.length === 0 ? [] : ["", paint(title, "strong", screen), ...lines];
}

/** Describes the target of a command whose options name none. */
function describeDefaultTarget(options: readonly Option[]): string | null {
  const names = options.map(({ name }) => name);
  if (!names.includes("data-dir")) return null;
  return names.includes("profile")
    ? "  Default target: .relay in this folder, else the default profile."
    : "  Default data directory: .relay in this folder.";
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

/** Describes a shared option without its default, which `relay docs commands` has. */
function describeShortly({ help, env }: Option): string {
  return env === undefined ? help : `${help} (${env})`;
}

type Row = readonly [name: string, words: string];

/** Formats names on the left and words on the right. On a terminal, long words wrap within their column. */
function columns(rows: readonly Row[], screen: Screen, least = 0): string[] {
  const left = Math.max(least, ...rows.map(([name]) => name.length));
  const indent = left + 4;
  const room = (screen.columns ?? Number.POSITIVE_INFINITY) - indent;
  const fits = room >= MIN_WORDS;
  return rows.flatMap(([name, words]) => {
    if (room === Number.POSITIVE_INFINITY) return [`  ${name.padEnd(left)}  ${words}`];
    const [first = "", ...below] = wrapTo(words, fits ? room : room + left - 2).split("\n");
    if (!fits) return [`  ${name}`, ...[first, ...below].map((part) => `      ${part}`)];
    return [`  ${name.padEnd(left)}  ${first}`, ...below.map((part) => " ".repeat(indent) + part)];
  });
}

const MIN_WORDS = 24;
/** The columns of the list of commands in a file. */
const PAPER = 80;

/** Wraps a line to the screen's width, and indents each part as the line is indented. */
function fold(line: string, { columns: width }: Screen): string {
  if (width === null) return line;
  const indent = /^ */.exec(line)?.[0] ?? "";
  return wrapTo(line.trimStart(), width - indent.length)
    .split("\n")
    .map((part) => indent + part)
    .join("\n");
}

function capitalize(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}`;
}

/** Formats each meaning of a code, as the code's page does. Returns null for any other word. */
export function writeCodeHelp(word: string, screen: Screen): string | null {
  const meanings = listMeanings(word);
  if (meanings.length === 0) return null;
  return meanings
    .map((meaning) => {
      const rows = listParts(meaning).map(({ label, text }): Row => [label, text]);
      const head = `${paint(word, "strong", screen)} (${formatKinds(meaning)})`;
      return [head, "", ...columns(rows, screen)].join("\n");
    })
    .join("\n\n");
}
