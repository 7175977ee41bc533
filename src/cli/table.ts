/** Lists on a terminal: aligned columns with a heading, or JSON. Values come from payloads too, so control characters are taken out. */
import { writeJson } from "../ground/json.ts";
import type { Input } from "./command.ts";
import type { World } from "./world.ts";

interface Columns<Item> {
  headings: readonly string[];
  row: (item: Item) => readonly string[];
  /** What to tell when there is nothing. */
  none: string;
}

/** Writes the rows under their headings, or says `none` on standard error; with --json, the items as they are. */
export function sayList<Item>(
  input: Input,
  world: World,
  items: readonly Item[],
  { headings, row, none }: Columns<Item>,
): void {
  if (input.on("json")) world.say(writeJson({ items }, 2));
  else if (items.length === 0) world.tell(none);
  else world.say(writeTable(headings, items.map(row)));
}

function writeTable(headings: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [headings, ...rows].map((row) => row.map(plain));
  const widths = headings.map((_, column) =>
    Math.max(...lines.map((line) => [...(line[column] ?? "")].length)),
  );
  return lines
    .map((line) =>
      line
        .map((cell, column) => cell + " ".repeat((widths[column] ?? 0) - [...cell].length))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}

/** The text on one line, safe for a terminal: an escape sequence from a payload must not reach it. */
export function plain(text: string): string {
  return text.replaceAll(/\s+/g, " ").replaceAll(/\p{C}/gu, "?");
}
