/**
 * Formats lists in columns. A pipe gets every value whole, under its heading, for scripts. A terminal cuts the widest values with …, and leaves out
 * the last columns that do not fit. It shows how long ago a time was, and the ending of an id, which every command accepts.
 */

import { NAMED_COMMAND } from "../../../base/shared/named-command.ts";
import { plain } from "../../../base/text.ts";
import { paint, type Screen, type Tone, toneOf } from "./screen.ts";
import { formatClocks, formatTimes } from "./time-text.ts";

export interface Column<Item> {
  heading: string;
  /** Returns the whole value, as a pipe gets it. */
  value(item: Item): string;
  /** The tone of a state: `true` paints its word's own tone, and a function chooses one. */
  tone?: true | ((item: Item) => Tone | null);
  /** True for a number, which is aligned right and never cut. */
  right?: true;
  /** True for the last column if it is a sentence that must stay whole. It wraps within its column. */
  wrap?: true;
  /** True for foreign text, whose times and ids stay unchanged. */
  raw?: true;
}

const GAP = "  ";
/** The least width to which a column is cut. No relative time and no ending of an id is longer. */
const LEAST_CUT = 10;
/** The least width where times and ids are not shortened: the length of an id. */
const LEAST_CUT_WHOLE = 36;
/** The least width of a sentence in its column. On a narrower screen it moves below the row. */
const LEAST_WRAPPED = 36;

/** The number of characters that identify an id. */
const SHOWN_ENDING = 8;
const ID = /\b[a-z]{3}_[0-9a-f]{32}\b/g;

/** Replaces each id in the text with its ending. */
function shortenIds(text: string): string {
  return text.replace(ID, (id) => id.slice(-SHOWN_ENDING));
}

/** Formats the table for a pipe, with every value whole. */
function writeTable(headings: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [headings, ...rows].map((row) => row.map(plain));
  const widths = headings.map((_, column) =>
    Math.max(...lines.map((line) => [...(line[column] ?? "")].length)),
  );
  return lines
    .map((line) =>
      line
        .map((cell, column) => cell + " ".repeat((widths[column] ?? 0) - [...cell].length))
        .join(GAP)
        .trimEnd(),
    )
    .join("\n");
}

interface DrawnTable {
  text: string;
  /** The headings of the columns that did not fit. */
  left: string[];
}

interface DrawnColumn<Item> {
  column: Column<Item>;
  cells: string[];
}

/** Draws the table. With `uncut`, times and ids are not shortened. */
export function drawTable<Item>(
  columns: readonly Column<Item>[],
  items: readonly Item[],
  { screen, nowMs, uncut }: { screen: Screen; nowMs: number; uncut: boolean },
): DrawnTable {
  const width = screen.columns;
  if (width === null && !screen.colour)
    return {
      text: writeTable(
        columns.map(({ heading }) => heading),
        items.map((item) => columns.map(({ value }) => value(item))),
      ),
      left: [],
    };
  const shortensAt = width === null || uncut ? null : nowMs;
  // Empty columns are left out, so the others get their width.
  const filled = columns
    .map((column) => ({ column, cells: items.map((item) => plain(formatCell(column, item, shortensAt))) }))
    .filter(({ cells }) => width === null || cells.some((cell) => cell !== ""));
  const sentence = width !== null && filled.at(-1)?.column.wrap === true ? filled.pop() : undefined;
  const leastCut = uncut ? LEAST_CUT_WHOLE : LEAST_CUT;
  const widths = chooseWidths(filled, width ?? Number.POSITIVE_INFINITY, leastCut);
  const shown = filled.slice(0, widths.length);
  const head = shown.map(({ column }, at) => pad(column.heading, widths[at] ?? 0, column, "quiet", screen));
  const rows = items.map((item, row) =>
    shown.map(({ column, cells }, at) => {
      const text = cells[row] ?? "";
      return pad(text, widths[at] ?? 0, column, toneIn(column, item, text), screen);
    }),
  );
  const lines =
    sentence === undefined || width === null
      ? [head, ...rows].map((cells) => cells.join(GAP).trimEnd())
      : addSentences(sentence, items, { head, rows }, screen, width);
  return { text: lines.join("\n"), left: filled.slice(widths.length).map(({ column }) => column.heading) };
}

/** Adds a column of sentences: next to the other columns if it has enough width there, otherwise below each row. */
function addSentences<Item>(
  { column, cells }: DrawnColumn<Item>,
  items: readonly Item[],
  { head, rows }: { head: readonly string[]; rows: readonly (readonly string[])[] },
  screen: Screen,
  width: number,
): string[] {
  const start = head.reduce((sum, cell) => sum + Bun.stringWidth(cell) + GAP.length, 0);
  const fits = width - start >= LEAST_WRAPPED;
  const indent = fits ? start : GAP.length;
  const join = (line: readonly string[], part: string): string =>
    fits ? [...line, part].join(GAP).trimEnd() : line.join(GAP).trimEnd();
  const lines = [join(head, paint(column.heading, "quiet", screen))];
  for (const [at, item] of items.entries()) {
    const cell = cells[at] ?? "";
    const parts = wrapTo(cell, Math.max(1, width - indent))
      .split("\n")
      .map((part) => paint(part, toneIn(column, item, cell), screen));
    lines.push(join(rows[at] ?? [], parts[0] ?? ""));
    const below = fits ? parts.slice(1) : parts.filter((part) => part !== "");
    lines.push(...below.map((part) => " ".repeat(indent) + part));
  }
  return lines;
}

/** Draws one item as it arrives. Its values are not cut, and a time shows only the time of day. */
export function drawLine<Item>(
  columns: readonly Column<Item>[],
  item: Item,
  { screen, uncut }: { screen: Screen; uncut: boolean },
): string {
  const isShort = screen.columns !== null && !uncut;
  return columns
    .map((column) => {
      const text = plain(
        isShort && column.raw !== true ? shortenIds(formatClocks(column.value(item))) : column.value(item),
      );
      return paint(text, toneIn(column, item, text), screen);
    })
    .filter((cell) => cell !== "" || !isShort)
    .join(GAP)
    .trimEnd();
}

/** Formats a cell. With `nowMs`, times and ids are shortened. With null they stay whole. */
function formatCell<Item>({ value, raw }: Column<Item>, item: Item, nowMs: number | null): string {
  const text = value(item);
  return nowMs === null || raw === true ? text : shortenIds(formatTimes(text, nowMs));
}

function toneIn<Item>({ tone }: Column<Item>, item: Item, text: string): Tone | null {
  if (tone === undefined) return null;
  return tone === true ? toneOf(text) : tone(item);
}

function pad<Item>(
  text: string,
  room: number,
  column: Column<Item>,
  tone: Tone | null,
  screen: Screen,
): string {
  const shown = cutTo(text, room);
  const space = " ".repeat(Math.max(0, room - Bun.stringWidth(shown)));
  const painted = paint(shown, tone, screen);
  return column.right === true ? space + painted : painted + space;
}

const COMMAND = new RegExp(NAMED_COMMAND, "g");
/** The placeholder for a space within a command while the text wraps. */
const GLUE = "\uE000";

/** Wraps the text to this width, between words if possible. A command stays on one line if it fits. */
export function wrapTo(text: string, columns: number): string {
  const glued = text.replaceAll(COMMAND, (command) =>
    Bun.stringWidth(command) > columns ? command : command.replaceAll(" ", GLUE),
  );
  return Bun.wrapAnsi(glued, columns, { hard: true, trim: true }).replaceAll(GLUE, " ");
}

/** Cuts the text to this width, and marks the cut with …. */
export function cutTo(text: string, columns: number): string {
  return Bun.stringWidth(text) <= columns ? text : Bun.sliceAnsi(text, 0, columns, "…");
}

/**
 * Returns the widths of the columns that fit. It cuts the widest columns first, none below its least width, and then leaves out the last column.
 */
function chooseWidths<Item>(
  columns: readonly DrawnColumn<Item>[],
  width: number,
  leastCut: number,
): number[] {
  const widths = columns.map(({ column, cells }) =>
    Math.min(width, Math.max(...[column.heading, ...cells].map((text) => Bun.stringWidth(text)))),
  );
  const least = columns.map(({ column }, at) =>
    column.right === true ? (widths[at] ?? 0) : Math.min(widths[at] ?? 0, leastCut),
  );
  let missing = widths.reduce((sum, one) => sum + one + GAP.length, -GAP.length) - width;
  while (missing > 0) {
    const spare = widths.map((one, at) => (one > (least[at] ?? 0) ? one : 0));
    const widest = Math.max(...spare);
    if (widest === 0) return chooseWidths(columns.slice(0, -1), width, leastCut);
    widths[spare.lastIndexOf(widest)] = widest - 1;
    missing--;
  }
  return widths;
}
