/**
 * Lists in columns. In a pipe every value stands whole, under its heading, as scripts have it; on a terminal the columns that say most stay, what
 * is long is cut with …, times say how long ago, and an id is its ending, which every command takes.
 */
import { plain } from "../../../base/text.ts";
import { NAMED_COMMAND } from "../named-command.ts";
import { paint, type Screen, type Tone, toneOf } from "./screen.ts";
import { sayClocks, sayTimes } from "./time-text.ts";

export interface Column<Item> {
  heading: string;
  /** Whole, as a pipe gets it. */
  value(item: Item): string;
  /** The lower, the longer it stays where the terminal is narrow; its place where absent, from 1 on. */
  keep?: number;
  /** A state, painted as what its word means, or in this tone. */
  tone?: true | ((item: Item) => Tone | null);
  /** A count. */
  right?: true;
  /** It may be cut to so many columns where there is no room, so that others stay. */
  cut?: number;
  /** A sentence that is read whole, the last column: it goes on below itself where there is no room. */
  wrap?: true;
  /** Written by others: a time or an id in it is theirs. */
  raw?: true;
}

const GAP = "  ";
/** With less room beside the others, a sentence stands below them. */
const LEAST_WRAPPED = 36;

/** How much of an id says which one is meant. */
const SHOWN_ENDING = 8;
const ID = /\b[a-z]{3}_[0-9a-f]{32}\b/g;

/** The text with each of its ids as its ending. */
function shortenIds(text: string): string {
  return text.replace(ID, (id) => id.slice(-SHOWN_ENDING));
}

/** As in a pipe: every value whole. */
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
  /** The headings that found no room. */
  left: string[];
}

/** `whole`: times and ids are not shortened. */
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
  // A column that says nothing takes no room from those that do.
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

/** One item by itself, as it comes: its values as the screen says them, none cut; a time is that of the day. */
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

/** `nowMs`: times and ids are shortened; null: they stand whole. */
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
/** Stands for a space within a command while lines are made. */
const GLUE = "\uE000";

/** The text in lines of at most so many columns, broken between words where it can be; a command that has room on a line stays on one. */
export function wrapTo(text: string, columns: number): string {
  const glued = text.replaceAll(COMMAND, (command) =>
    Bun.stringWidth(command) > columns ? command : command.replaceAll(" ", GLUE),
  );
  return Bun.wrapAnsi(glued, columns, { hard: true, trim: true }).replaceAll(GLUE, " ");
}

/** The beginning of the text that this many columns hold, with … where it was cut. */
export function cutTo(text: string, columns: number): string {
  return Bun.stringWidth(text) <= columns ? text : Bun.sliceAnsi(text, 0, columns, "…");
}

/** How wide each column is; null: it is left out. The most telling ones come first, and each has at least what it may be cut to. */
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
  // What is left goes to whoever is cut most, a column at a time.
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
