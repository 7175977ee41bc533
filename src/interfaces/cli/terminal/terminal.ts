/**
 * Prints what commands show: a list in columns, a line of a running list, or one item in full. Each is JSON, text for a pipe, or drawn for
 * a terminal. It removes control characters from every value, because values also come from payloads.
 */
import { writeJson } from "../../../base/json.ts";
import { formatCount, plain } from "../../../base/text.ts";
import type { Input } from "../command.ts";
import type { Io } from "../io.ts";
import { printUnknownName } from "../line/known-name.ts";
import { type Count, formatMore, type Listing, nextLimit } from "./listing.ts";
import { paint, type Screen, toneOf } from "./screen.ts";
import { type Column, drawLine, drawTable, wrapTo } from "./table.ts";
import { addAgo } from "./time-text.ts";

interface Shown<Item> {
  columns: readonly Column<Item>[];
  /** The message for an empty list. */
  none: string;
}

/** Writes the items in columns, or `none` on stderr. With --json it writes the items unchanged. */
export async function printList<Item>(
  input: Input,
  io: Io,
  listed: readonly Item[] | Listing<Item>,
  { columns, none }: Shown<Item>,
): Promise<void> {
  const { items, of, isCut } = "items" in listed ? listed : { items: listed, of: null, isCut: false };
  if (isCut && of === null) io.inform(formatMore(items.length));
  if (input.on("json")) return io.print(writeJson({ items }, 2));
  if (items.length === 0) {
    io.inform(none);
    return await printUnknownName(input, io);
  }
  const { screen } = io;
  const drawn = drawTable(columns, items, {
    screen,
    nowMs: io.clock.now(),
    uncut: input.on("whole"),
  });
  const notes = [
    ...(of === null ? [] : [formatCut(items.length, of)]),
    ...(drawn.left.length === 0
      ? []
      : [
          `Hidden: ${drawn.left.join(", ")}. A wider terminal or --json shows ${drawn.left.length === 1 ? "this column" : "these columns"}.`,
        ]),
  ];
  const width = screen.columns;
  const below = notes.map((note) => paint(width === null ? note : wrapTo(note, width), "quiet", screen));
  await show(input, io, [drawn.text, ...(below.length === 0 ? [] : ["", ...below])].join("\n"));
}

/** Formats the count, such as `20 of 6,063: --limit 200 shows more.` */
function formatCut(shown: number, { total, atLeast }: Count): string {
  const next = nextLimit(shown, atLeast ? undefined : total);
  return `${formatCount(shown)} of ${atLeast ? "more than " : ""}${formatCount(total)}: --limit ${next} shows ${!atLeast && next >= total ? "all" : "more"}.`;
}

/** Writes drawn text, through the pager if it is too long for the terminal. */
export async function show(input: Input, io: Io, text: string): Promise<void> {
  if (input.on("no-pager") || !(await io.page(text))) io.draw(text);
}

/** Reports whether output is formatted as for a pipe. */
function isPlain({ columns, colour }: Screen): boolean {
  return columns === null && !colour;
}

/** Writes one item on one line, with its values in the order of the columns. */
export function printLine<Item>(input: Input, io: Io, columns: readonly Column<Item>[], item: Item): void {
  const { screen } = io;
  if (input.on("json")) io.print(writeJson(item));
  else if (isPlain(screen))
    io.print(
      columns
        .map(({ value }) => plain(value(item)))
        .join("  ")
        .trimEnd(),
    );
  else io.draw(drawLine(columns, item, { screen, uncut: input.on("whole") }));
}

/**
 * Shows one item: its title, then a line for each fact: a name, two spaces or more, and the words. On a terminal, names are dim, words wrap
 * within their column, and a time also shows how long ago it was. `payload` follows in full.
 */
export async function printSheet(
  input: Input,
  io: Io,
  lines: readonly string[],
  payload: string | null = null,
): Promise<void> {
  const { screen } = io;
  if (isPlain(screen)) return io.print(lines.join("\n"));
  const nowMs = io.clock.now();
  const drawn = lines.flatMap((line, at) => {
    const shown = input.on("whole") ? line : addAgo(line, nowMs);
    return drawFact(shown, at === 0, screen);
  });
  await show(input, io, [...drawn, ...(payload === null ? [] : ["", payload])].join("\n"));
}

const FACT = /^( +)(\S(?:.*?\S)??)( {2,})(.*)$/;
/** A state at the end of a line, or after the first word of an action's line. */
const ENDS_IN_STATE = /^(.*: )(\w+)$/;
const ACTION = /^( {4}\w+ )(\w+)(.*)$/;

function drawFact(line: string, isTitle: boolean, screen: Screen): string[] {
  const width = screen.columns ?? Number.POSITIVE_INFINITY;
  if (isTitle) {
    const [title = "", state = "", ...rest] = line.split("  ");
    const word = /^[^:,]*/.exec(state)?.[0] ?? "";
    const painted = paint(word, toneOf(word.toLowerCase()), screen) + state.slice(word.length);
    return [[paint(title, "strong", screen), painted, ...rest].filter((part) => part !== "").join("  ")];
  }
  const [, indent = "", name = "", gap = "", words = ""] = FACT.exec(line) ?? [];
  const hang = indent.length + Bun.stringWidth(name) + gap.length;
  if (words !== "" && hang < width / 2) {
    const [first = "", ...below] = wrapTo(words, width - hang).split("\n");
    return [
      `${indent}${paint(name, "quiet", screen)}${gap}${paintWord(first, screen)}`,
      ...below.map((part) => " ".repeat(hang) + part),
    ];
  }
  const spaces = /^ */.exec(line)?.[0].length ?? 0;
  const [first = "", ...below] = wrapTo(line.slice(spaces), width - spaces).split("\n");
  return [
    paintState(" ".repeat(spaces) + first, screen),
    ...below.map((part) => `${" ".repeat(spaces + 2)}${part}`),
  ];
}

/** Paints the state at the beginning of the words. */
function paintWord(words: string, screen: Screen): string {
  const word = /^[\w ]+(?=[:,·]|$)/.exec(words)?.[0] ?? "";
  return paint(word, toneOf(word.trim().toLowerCase()), screen) + words.slice(word.length);
}

function paintState(line: string, screen: Screen): string {
  const [, before = "", word = "", after = ""] = ENDS_IN_STATE.exec(line) ?? ACTION.exec(line) ?? [];
  const tone = toneOf(word);
  return tone === null ? line : `${before}${paint(word, tone, screen)}${after}`;
}
