/** Diff of two texts by line. It also compares each changed line with its counterpart. */
import { diffLine, type LinePart } from "./line-diff.ts";
import { diffParts, type Side } from "./sequence-diff.ts";

interface DiffLine {
  kind: Side;
  text: string;
  /** Differences from the counterpart on the other side, if the line has one. */
  parts?: readonly LinePart[];
  /** True if both lines look the same although they differ, for example in the encoding of a letter. */
  looksSame?: boolean;
}

/** Returns the lines of both texts in order. A changed line contains its differences from its counterpart. */
export function diffLines(left: string, right: string): DiffLine[] {
  const lines: DiffLine[] = [];
  let taken: DiffLine[] = [];
  for (const { kind, items } of diffParts(left.split("\n"), right.split("\n"))) {
    const run = items.map((text): DiffLine => ({ kind, text }));
    lines.push(...run);
    if (kind === "right") pair(taken, run);
    taken = kind === "left" ? run : [];
  }
  return lines;
}

/** Pairs lines of the same field, such as `"url": …`. Lines without a field are paired in order. */
function pair(left: readonly DiffLine[], right: readonly DiffLine[]): void {
  const free = new Set(right);
  for (const line of left) {
    const like = [...free].find((one) => fieldOf(one) === fieldOf(line));
    if (like === undefined) continue;
    free.delete(like);
    const parts = diffLine(line.text, like.text);
    const looksSame = line.text.normalize("NFKC") === like.text.normalize("NFKC");
    Object.assign(line, { parts: parts.left, looksSame });
    Object.assign(like, { parts: parts.right, looksSame });
  }
}

function fieldOf({ text }: DiffLine): string {
  return /^\s*"(?:[^"\\]|\\.)*":/.exec(text)?.[0] ?? "";
}

/** Equal lines that stay around each difference. */
const CONTEXT_LINES = 3;

type ShortDiffLine = DiffLine | { kind: "gap"; lines: number };

/** Returns the differences with a few equal lines around each. Longer equal parts are only counted. */
export function shortenDiff(lines: readonly DiffLine[]): ShortDiffLine[] {
  const isNear = (at: number): boolean =>
    lines.slice(Math.max(0, at - CONTEXT_LINES), at + CONTEXT_LINES + 1).some(({ kind }) => kind !== "same");
  const short: ShortDiffLine[] = [];
  for (const [at, line] of lines.entries()) {
    const last = short.at(-1);
    if (isNear(at)) short.push(line);
    else if (last?.kind === "gap") last.lines += 1;
    else short.push({ kind: "gap", lines: 1 });
  }
  return short;
}
