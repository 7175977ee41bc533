/** Formats help: the commands in groups, one command's own page, and the meaning of a code. */
import { explainCode } from "../../../base/result-code.ts";
import type { Command, Option } from "../command.ts";
import { paint, type Screen } from "../terminal/screen.ts";
import { wrapTo } from "../terminal/table.ts";
import { HELP, SHOWING, showArgument } from "./parse.ts";

export interface Group {
  title: string;
  commands: readonly Command[];
}

/** Formats the page of `relay --help`. */
export function writeHelp(groups: readonly Group[], version: string, screen: Screen): string {
  const rows = groups.map(({ commands }) =>
    commands.map(({ words, summary }): [string, string] => [["relay", ...words].join(" "), summary]),
  );
  const width = Math.max(...rows.flat().map(([name]) => name.length));
  return [
    `relay ${version}: when a provider says X, do Y, exactly once.`,
    ...groups.flatMap(({ title }, at) => [
      "",
      paint(title, "strong", screen),
      ...columns(rows[at] ?? [], screen, width),
    ]),
    "",
    ...[
      "relay alone, in a terminal, is relay dev --open.",
      "relay help <command> shows its options and examples, relay help <code> what a code means and what to do. An option that names a RELAY_… variable can be set by it, and a flag wins: relay config shows what is in force. Ids may be written as their endings.",
      "On a terminal: --whole shows times and ids whole, --no-pager writes without a pager; NO_COLOR, FORCE_COLOR and PAGER are heeded.",
      "Exit codes: 0 done, 1 refused or failed, 2 the command line itself is wrong, 3 something differs that you are to decide (pull, status).",
    ].map((line) => wrapTo(line, screen.columns ?? PAPER)),
  ].join("\n");
}

/** Formats the page of `relay help <command>`. */
export function writeCommandHelp(command: Command, screen: Screen): string {
  const { summary, details, arguments: wanted = [], options, examples = [] } = command;
  const usage = ["relay", ...command.words, ...wanted.map(showArgument)].join(" ");
  const shows = options.some(({ name }) => name === "json") ? SHOWING : [];
  const lines = [paint(`${usage} [options]`, "strong", screen), "", fold(capital(summary), screen)];
  if (details !== undefined)
    lines.push(
      "",
      details
        .split("\n")
        .map((line) => fold(line, screen))
        .join("\n"),
    );
  if (wanted.length > 0)
    lines.push(
      "",
      ...columns(
        wanted.map((argument) => [showArgument(argument), argument.help]),
        screen,
      ),
    );
  lines.push(
    "",
    ...columns(
      [...options, HELP, ...shows].map((option) => [showOption(option), describe(option)]),
      screen,
    ),
  );
  if (examples.length > 0)
    lines.push("", paint("Examples", "quiet", screen), ...examples.map((example) => `  ${example}`));
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

/** Formats names on the left and words on the right. On a terminal, long words wrap within their column. */
function columns(rows: readonly (readonly [string, string])[], screen: Screen, least = 0): string[] {
  const left = Math.max(least, ...rows.map(([name]) => name.length));
  const indent = left + 4;
  const room = (screen.columns ?? Number.POSITIVE_INFINITY) - indent;
  const beside = room >= MIN_WORDS;
  return rows.flatMap(([name, words]) => {
    if (room === Number.POSITIVE_INFINITY) return [`  ${name.padEnd(left)}  ${words}`];
    const [first = "", ...below] = wrapTo(words, beside ? room : room + left - 2).split("\n");
    if (!beside) return [`  ${name}`, ...[first, ...below].map((part) => `      ${part}`)];
    return [`  ${name.padEnd(left)}  ${first}`, ...below.map((part) => " ".repeat(indent) + part)];
  });
}

const MIN_WORDS = 24;
/** The most columns of the list of commands, in a file too. */
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

function capital(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}

/** Formats the meaning of a code and what to do, as the code's page does. Returns null for any other word. */
export function writeCodeHelp(word: string, screen: Screen): string | null {
  const entry = explainCode(word);
  return entry === null ? null : [word, "", fold(entry.when, screen), fold(entry.todo, screen)].join("\n");
}
