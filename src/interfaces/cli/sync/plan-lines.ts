/** Formats the lines of a plan: a sign and an item, its differences, and the number of unchanged items. */
import { writeJson } from "../../../base/json.ts";
import { formatCount, plain } from "../../../base/text.ts";
import type { Io } from "../io.ts";
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

/** Prints a line such as `+ relay orders  created`. */
export function printThing(io: Io, sign: Sign, words: string): void {
  io.draw(`${paint(sign, TONES[sign], io.screen)} ${words}`);
}

export function printUnchanged(io: Io, things: number): void {
  if (things > 0) printThing(io, "=", `${count(things, "item")} unchanged`);
}

/** Prints a line for each field's value before, and one for the value after. */
export function printDiff(
  io: Io,
  diff: readonly { field: string; before?: unknown; after?: unknown }[],
): void {
  for (const { field, before, after } of diff) {
    if (before !== undefined) io.print(`    - ${plain(field)}: ${showValue(before)}`);
    if (after !== undefined) io.print(`    + ${plain(field)}: ${showValue(after)}`);
  }
}

/** Formats a value on one line, without control characters. */
export function showValue(value: unknown): string {
  const text = plain(writeJson(value));
  return text.length > MAX_VALUE_CHARS ? `${text.slice(0, MAX_VALUE_CHARS)}…` : text;
}

/** Formats an item, such as `relay orders`. */
export function nameThing({ kind, name }: { kind: string; name: string }): string {
  return `${plain(kind)} ${plain(name)}`;
}

/** Formats a count, such as `1 thing` or `12 things`. */
export function count(amount: number, what: string): string {
  return `${formatCount(amount)} ${what}${amount === 1 ? "" : "s"}`;
}

/** Formats who changed an item. A server of an earlier version sends no name. */
export function formatWho({ by, byName }: { by: string; byName?: string | null }): string {
  if (!byName) return plain(by);
  return plain(by.startsWith("key:") ? `key ${byName}` : byName);
}

const SHORT_COMMIT_CHARS = 7;

/** Formats a commit, such as `commit 1a2b3c4`. */
export function formatCommit(commit: string): string {
  const short = commit.slice(0, SHORT_COMMIT_CHARS);
  return commit.endsWith("-dirty")
    ? `commit ${short} with changes that are not committed`
    : `commit ${short}`;
}
