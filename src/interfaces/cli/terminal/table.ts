/**
 * Formats lists in columns. A pipe gets every value whole, under its heading, for scripts. A terminal shows the most important columns and
 * cuts long values with …. It shows how long ago a time was, and the ending of an id, which every command accepts.
 */
import { plain } from "../../../base/text.ts";
import { NAMED_COMMAND } from "../named-command.ts";
import { paint, type Screen, type Tone, toneOf } from "./screen.ts";
import { sayClocks, sayTimes } from "./time-text.ts";

export interface Column<Item> {
  heading: string;
  /** Returns the whole value, as a pipe gets it. */
  value(item: Item): string;
  /** The priority of the column on a narrow terminal: a lower number stays longer. Default: its position, starting with 1. */
  keep?: number;
  /** The tone of a state: `true` paints its word's own tone, and a function chooses one. */
  tone?: true | ((item: Item) => Tone | null);
  /** True for a count, which is aligned right. */
  right?: true;
  /** The least width to which the column may be cut, so that others stay. */
  cut?: number;
  /** True for the last column if it is a sentence that must stay whole. It wraps within its column. */
  wrap?: true;
  /** True for foreign text, whose times and ids stay unchanged. */
  raw?: true;
}

const GAP = "  ";
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

interface Drawn {
  text: string;
  /** The headings of the columns that did not fit. */
  left: string[];
}

/** Draws the table. With `whole`, times and ids are not shortened. */
export function drawTable<Item>(
  columns: readonly Column<Item>[],
  items: readonly Item[],
  { screen, nowMs, whole }: { screen: Screen; nowMs: number; whole: boolean },
): Drawn {
  const width = screen.columns;
  if (width === null && !screen.colour)
    return {
      text: writeTable(
        columns.map(({ heading }) => heading),
        items.map((item) => columns.map(({ value }) => value(item))),
      ),
      left: [],
    };
  const isShort = width !== null && !whole;
  const cells = columns.map((column) =>
    items.map((item) => plain(sayCell(column, item, isShort ? nowMs : null))),
  );
  // Empty columns are left out, so the others get their width.
  const full = columns.map((_, at) => width === null || (cells[at] ?? []).some((cell) => cell !== ""));
  const natural = columns.map(({ heading }, at) =>
    Math.max(Bun.stringWidth(heading), ...(cells[at] ?? []).map((cell) => Bun.stringWidth(cell))),
  );
  const last = columns.length - 1;
  const wraps = columns[last]?.wrap === true && full[last] === true && width !== null;
  const fitted = wraps ? full.map((one, at) => one && at !== last) : full;
  const widths = chooseWidths(columns, natural, fitted, width ?? Number.POSITIVE_INFINITY);
  const used = widths.reduce<number>((sum, room) => sum + (room === null ? 0 : room + GAP.length), 0);
  const beside = wraps && width - used >= LEAST_WRAPPED;
  const line = (write: (at: number, room: number) => string): string =>
    widths
      .flatMap((room, at) => (room === null ? [] : [write(at, room)]))
      .join(GAP)
      .trimEnd();
  const head = line((at, room) => pad(columns[at]?.heading ?? "", room, columns[at], "quiet", screen));
  const rows = items.map((item, row) =>
    line((at, room) => {
      const column = columns[at];
      const text = cells[at]?.[row] ?? "";
      return pad(text, room, column, toneIn(column, item, text), screen);
    }),
  );
  const indent = beside ? used : GAP.length;
  const sentences = wraps
    ? (cells[last] ?? []).map((cell) => wrapTo(cell, Math.max(1, width - indent)).split("\n"))
    : [];
  const tell = (part: string, at: number): string => {
    const item = items[at];
    const tone = item === undefined ? null : toneIn(columns[last], item, cells[last]?.[at] ?? "");
    return paint(part, tone, screen);
  };
  const lines = [
    beside ? `${padEnd(head, used)}${paint(columns[last]?.heading ?? "", "quiet", screen)}` : head,
    ...rows.flatMap((row, at) => {
      const sentence = sentences[at] ?? [];
      const below = (beside ? sentence.slice(1) : sentence).filter((part) => part !== "");
      return [
        beside ? `${padEnd(row, used)}${tell(sentence[0] ?? "", at)}`.trimEnd() : row,
        ...below.map((part) => " ".repeat(indent) + tell(part, at)),
      ];
    }),
  ];
  return {
    text: lines.join("\n"),
    left: columns.flatMap(({ heading }, at) => (fitted[at] && widths[at] === null ? [heading] : [])),
  };
}

/** Draws one item as it arrives. Its values are not cut, and a time shows only the time of day. */
export function drawLine<Item>(
  columns: readonly Column<Item>[],
  item: Item,
  { screen, whole }: { screen: Screen; whole: boolean },
): string {
  const isShort = screen.columns !== null && !whole;
  return columns
    .map((column) => {
      const text = plain(
        isShort && column.raw !== true ? shortenIds(sayClocks(column.value(item))) : column.value(item),
      );
      return paint(text, toneIn(column, item, text), screen);
    })
    .filter((cell) => cell !== "" || !isShort)
    .join(GAP)
    .trimEnd();
}

/** Formats a cell. With `nowMs`, times and ids are shortened. With null they stay whole. */
function sayCell<Item>({ value, raw }: Column<Item>, item: Item, nowMs: number | null): string {
  const text = value(item);
  return nowMs === null || raw === true ? text : shortenIds(sayTimes(text, nowMs));
}

function toneIn<Item>(column: Column<Item> | undefined, item: Item, text: string): Tone | null {
  const tone = column?.tone;
  return tone === undefined ? null : tone === true ? toneOf(text) : tone(item);
}

function pad<Item>(
  text: string,
  room: number,
  column: Column<Item> | undefined,
  tone: Tone | null,
  screen: Screen,
): string {
  const shown = cutTo(text, room);
  const space = " ".repeat(Math.max(0, room - Bun.stringWidth(shown)));
  const painted = paint(shown, tone, screen);
  return column?.right === true ? space + painted : painted + space;
}

function padEnd(line: string, columns: number): string {
  return line + " ".repeat(Math.max(0, columns - Bun.stringWidth(line)));
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
 * Chooses the width of each column, or null for a column that is left out. Columns of high priority come first, and each gets at least its
 * minimal width.
 */
function chooseWidths<Item>(
  columns: readonly Column<Item>[],
  natural: readonly number[],
  full: readonly boolean[],
  width: number,
): (number | null)[] {
  const least = columns.map(({ cut, heading }, at) =>
    cut === undefined
      ? (natural[at] ?? 0)
      : Math.min(natural[at] ?? 0, Math.max(cut, Bun.stringWidth(heading))),
  );
  const byTelling = columns
    .map(({ keep }, at) => ({ at, keep: keep ?? at + 1 }))
    .filter(({ at }) => full[at])
    .sort((one, other) => one.keep - other.keep || one.at - other.at);
  const widths: (number | null)[] = columns.map(() => null);
  let left = width + GAP.length;
  for (const { at } of byTelling) {
    const first = widths.every((room) => room === null);
    const room = first ? Math.min(least[at] ?? 0, width) : (least[at] ?? 0);
    if (room + GAP.length > left) continue;
    widths[at] = room;
    left -= room + GAP.length;
  }
  // The remaining width goes to the narrowest cut column, one character at a time.
  for (; left > 0; left--) {
    let next: number | null = null;
    for (const { at } of byTelling) {
      const room = widths[at] ?? null;
      if (room === null || room >= (natural[at] ?? 0)) continue;
      if (next === null || room < (widths[next] ?? 0)) next = at;
    }
    if (next === null || left === Number.POSITIVE_INFINITY) break;
    widths[next] = (widths[next] ?? 0) + 1;
  }
  return left === Number.POSITIVE_INFINITY ? natural.map((room, at) => (full[at] ? room : null)) : widths;
}
