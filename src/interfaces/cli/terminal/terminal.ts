/**
 * What every command shows by: a list in columns, a line of one that goes on, one thing in full; each as JSON, as a pipe gets it, or drawn for a
 * terminal. Values come from payloads too, so every one is made plain first.
 */
import { writeJson } from "../../../base/json.ts";
import { plain } from "../../../base/text.ts";
import type { Input } from "../command.ts";
import type { World } from "../io.ts";
import { tellUnknownName } from "../line/known-name.ts";
import { type Count, type Listing, nextLimit, sayMore } from "./listing.ts";
import { paint, type Screen, toneOf } from "./screen.ts";
import { type Column, drawLine, drawTable, wrapTo } from "./table.ts";
import { addAgo } from "./time-text.ts";

interface Shown<Item> {
  columns: readonly Column<Item>[];
  /** What to tell when there is nothing. */
  none: string;
}

/** Writes the items in columns, or says `none` on standard error; with --json, the items as they are. */
export async function sayList<Item>(
  input: Input,
  world: World,
  listed: readonly Item[] | Listing<Item>,
  { columns, none }: Shown<Item>,
): Promise<void> {
  const { items, of, isCut } = "items" in listed ? listed : { items: listed, of: null, isCut: false };
  if (isCut && of === null) world.tell(sayMore(items.length));
  if (input.on("json")) return world.say(writeJson({ items }, 2));
  if (items.length === 0) {
    world.tell(none);
    return await tellUnknownName(input, world);
  }
  const { screen } = world;
  const drawn = drawTable(columns, items, {
    screen,
    nowMs: world.clock.now(),
    whole: input.on("whole"),
  });
  const notes = [
    ...(of === null ? [] : [sayCut(items.length, of)]),
    ...(drawn.left.length === 0
      ? []
      : [
          `No room for ${drawn.left.join(", ")}: a wider terminal or --json shows ${drawn.left.length === 1 ? "it" : "them"}.`,
        ]),
  ];
  const width = screen.columns;
  const below = notes.map((note) => paint(width === null ? note : wrapTo(note, width), "quiet", screen));
  await show(input, world, [drawn.text, ...(below.length === 0 ? [] : ["", ...below])].join("\n"));
}

/** `20 of 6,063: --limit 200 shows more.` */
function sayCut(shown: number, { total, atLeast }: Count): string {
  const next = nextLimit(shown, atLeast ? undefined : total);
  return `${say(shown)} of ${atLeast ? "more than " : ""}${say(total)}: --limit ${next} shows ${!atLeast && next >= total ? "them all" : "more"}.`;
}

function say(count: number): string {
  return count.toLocaleString("en");
}

/** Writes what was drawn, on a terminal that it is too long for through the pager. */
export async function show(input: Input, world: World, text: string): Promise<void> {
  if (input.on("no-pager") || !(await world.page(text))) world.draw(text);
}

/** Whether everything stands as in a pipe. */
function isPlain({ columns, colour }: Screen): boolean {
  return columns === null && !colour;
}

/** One item as a line of its own, its values in the order of the columns. */
export function sayLine<Item>(
  input: Input,
  world: World,
  columns: readonly Column<Item>[],
  item: Item,
): void {
  const { screen } = world;
  if (input.on("json")) world.say(writeJson(item));
  else if (isPlain(screen))
    world.say(
      columns
        .map(({ value }) => plain(value(item)))
        .join("  ")
        .trimEnd(),
    );
  else world.draw(drawLine(columns, item, { screen, whole: input.on("whole") }));
}

/**
 * Shows one thing: its title, then what is known of it, a name, two spaces or more, and the words. On a terminal names are quiet, words go on below
 * themselves, and a time says how long ago it was. `payload`: what is shown whole, below.
 */
export async function saySheet(
  input: Input,
  world: World,
  lines: readonly string[],
  payload: string | null = null,
): Promise<void> {
  const { screen } = world;
  if (isPlain(screen)) return world.say(lines.join("\n"));
  const nowMs = world.clock.now();
  const drawn = lines.flatMap((line, at) => {
    const told = input.on("whole") ? line : addAgo(line, nowMs);
    return drawFact(told, at === 0, screen);
  });
  await show(input, world, [...drawn, ...(payload === null ? [] : ["", payload])].join("\n"));
}

const FACT = /^( +)(\S(?:.*?\S)??)( {2,})(.*)$/;
/** A state at the end of a line, or behind the first word of an action's. */
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

/** The state that words begin with. */
function paintWord(words: string, screen: Screen): string {
  const word = /^[\w ]+(?=[:,·]|$)/.exec(words)?.[0] ?? "";
  return paint(word, toneOf(word.trim().toLowerCase()), screen) + words.slice(word.length);
}

function paintState(line: string, screen: Screen): string {
  const [, before = "", word = "", after = ""] = ENDS_IN_STATE.exec(line) ?? ACTION.exec(line) ?? [];
  const tone = toneOf(word);
  return tone === null ? line : `${before}${paint(word, tone, screen)}${after}`;
}
