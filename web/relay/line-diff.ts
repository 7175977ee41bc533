/**
 * Differences inside a changed line: parts of both sides and parts of one side. A long common part is only counted, so
 * that a change deep inside a long value is visible.
 */
import { diffParts, type Side } from "./sequence-diff.ts";

/** Part of a line. `at` is its offset in the line. */
export type LinePart =
  | { kind: "same" | "changed"; at: number; text: string }
  | { kind: "skipped"; characters: number };

interface LineDiff {
  left: LinePart[];
  right: LinePart[];
}

const WORD = /[\p{L}\p{N}]+|\s+|[^\p{L}\p{N}\s]/gu;
/** Characters that stay visible at each end of a common part. */
const CONTEXT_CHARS = 80;
/** A longer word is compared by character. */
const MAX_WORD_CHARS = 40;

export function diffLine(left: string, right: string): LineDiff {
  const parts = diffParts(wordsOf(left), wordsOf(right));
  const sides: LineDiff = { left: [], right: [] };
  const at = { left: 0, right: 0 };
  for (const { kind, items } of parts) {
    const text = items.join("");
    for (const side of sidesOf(kind)) {
      add(sides[side], kind === "same" ? "same" : "changed", at[side], text);
      at[side] += text.length;
    }
  }
  return { left: shorten(sides.left), right: shorten(sides.right) };
}

function sidesOf(kind: Side): ("left" | "right")[] {
  return kind === "same" ? ["left", "right"] : [kind];
}

function wordsOf(text: string): string[] {
  return (text.match(WORD) ?? []).flatMap((word) => (word.length > MAX_WORD_CHARS ? [...word] : [word]));
}

function add(parts: LinePart[], kind: "same" | "changed", at: number, text: string): void {
  const last = parts.at(-1);
  if (last?.kind === kind) last.text += text;
  else if (text !== "") parts.push({ kind, at, text });
}

/** Removes the middle of long common parts. */
function shorten(parts: readonly LinePart[]): LinePart[] {
  return parts.flatMap((part): LinePart[] => {
    if (part.kind !== "same") return [part];
    const letters = [...part.text];
    const characters = letters.length - 2 * CONTEXT_CHARS;
    if (characters <= CONTEXT_CHARS) return [part];
    const [head, tail] = [letters.slice(0, CONTEXT_CHARS).join(""), letters.slice(-CONTEXT_CHARS).join("")];
    return [
      { ...part, text: head },
      { kind: "skipped", characters },
      { ...part, at: part.at + part.text.length - tail.length, text: tail },
    ];
  });
}
