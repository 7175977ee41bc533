/** Compares two texts line by line, and a changed line with its like. */
import { diffLine, type LinePart } from "./line-diff.ts";
import { diffParts, type Side } from "./sequence-diff.ts";

interface DiffLine {
  kind: Side;
  text: string;
  /** Of a line that has its like on the other side: what differs between the two. */
  parts?: readonly LinePart[];
  /** Whether the two look the same and are not, as of one letter with two spellings. */
  looksSame?: boolean;
}

/** The lines of both, in order; a changed line of one side knows what differs from its like on the other. */
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

/** Lines of the same field are each other's like: `"url": …`. Lines without one are paired in their order. */
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

/** Equal lines around each difference that are kept. */
const CONTEXT_LINES = 3;

type ShortDiffLine = DiffLine | { kind: "gap"; lines: number };

/** The differences with a few equal lines around each; longer equal stretches are only counted. */
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
