/** Compares two texts line by line: what both have, what only one has. For texts of a screen or ten; beyond that it compares nothing. */

interface DiffLine {
  kind: "same" | "left" | "right";
  text: string;
}

const MAX_LINES = 2_000;

/** Lines of the longest common subsequence as `same`, the others by side, in order. */
export function diffLines(left: string, right: string): DiffLine[] {
  const [a, b] = [left.split("\n"), right.split("\n")];
  if (a.length * b.length > MAX_LINES * MAX_LINES) {
    return [
      ...a.map((text): DiffLine => ({ kind: "left", text })),
      ...b.map((text): DiffLine => ({ kind: "right", text })),
    ];
  }
  const width = b.length + 1;
  const common = new Uint32Array((a.length + 1) * width);
  const at = (row: number, column: number): number => common[row * width + column] ?? 0;
  for (let row = a.length - 1; row >= 0; row--) {
    for (let column = b.length - 1; column >= 0; column--) {
      common[row * width + column] =
        a[row] === b[column]
          ? at(row + 1, column + 1) + 1
          : Math.max(at(row + 1, column), at(row, column + 1));
    }
  }
  const lines: DiffLine[] = [];
  let [row, column] = [0, 0];
  while (row < a.length || column < b.length) {
    const [mine, theirs] = [a[row], b[column]];
    if (mine !== undefined && mine === theirs) {
      lines.push({ kind: "same", text: mine });
      row += 1;
      column += 1;
    } else if (mine !== undefined && (theirs === undefined || at(row + 1, column) >= at(row, column + 1))) {
      lines.push({ kind: "left", text: mine });
      row += 1;
    } else if (theirs !== undefined) {
      lines.push({ kind: "right", text: theirs });
      column += 1;
    }
  }
  return lines;
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
