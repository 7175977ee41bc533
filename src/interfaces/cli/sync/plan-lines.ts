/** The lines of a plan, of a sync, a promote and a pull: a sign and a thing, what differs in it, and what stays as it is. */
import { writeJson } from "../../../base/json.ts";
import { plain } from "../../../base/text.ts";
import type { World } from "../io.ts";
import { paint, type Tone } from "../terminal/screen.ts";

const MAX_VALUE_CHARS = 160;

const TONES = {
  "+": "good",
  "~": "going",
  "!": "wait",
  "-": "strong",
  "?": "quiet",
  "=": "quiet",
  x: "bad",
} as const satisfies Record<string, Tone>;
export type Sign = keyof typeof TONES;

/** `+ relay orders  created`. */
export function sayThing(world: World, sign: Sign, words: string): void {
  world.draw(`${paint(sign, TONES[sign], world.screen)} ${words}`);
}

export function sayUnchanged(world: World, things: number): void {
  if (things > 0) sayThing(world, "=", `${count(things, "thing")} unchanged`);
}

/** A line for what each field was, and one for what it is to be. */
export function sayDiff(
  world: World,
  diff: readonly { field: string; before?: unknown; after?: unknown }[],
): void {
  for (const { field, before, after } of diff) {
    if (before !== undefined) world.say(`    - ${plain(field)}: ${showValue(before)}`);
    if (after !== undefined) world.say(`    + ${plain(field)}: ${showValue(after)}`);
  }
}

/** Whatever stands in a file stays on its line. */
export function showValue(value: unknown): string {
  const text = plain(writeJson(value));
  return text.length > MAX_VALUE_CHARS ? `${text.slice(0, MAX_VALUE_CHARS)}…` : text;
}

/** `relay orders`. */
export function nameThing({ kind, name }: { kind: string; name: string }): string {
  return `${plain(kind)} ${plain(name)}`;
}

/** `1 thing`, `12 things`. */
export function count(many: number, what: string): string {
  return `${many} ${what}${many === 1 ? "" : "s"}`;
}
