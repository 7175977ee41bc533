/** Diff of two lists of texts. Lists beyond some thousands of items are compared only at their beginning and end. */

export type Side = "same" | "left" | "right";

const MAX_ITEMS = 2_000;

/** Run of items that both sides or one side has. */
interface DiffPart {
  kind: Side;
  items: string[];
}

/** Returns the longest common subsequence as `same` and the other items by side, in order. It skips the common beginning and end. */
export function diffParts(left: readonly string[], right: readonly string[]): DiffPart[] {
  let start = 0;
  while (start < left.length && start < right.length && left[start] === right[start]) start += 1;
  let end = 0;
  const most = Math.min(left.length, right.length) - start;
  while (end < most && left[left.length - 1 - end] === right[right.length - 1 - end]) end += 1;
  const parts: DiffPart[] = [];
  const add = (kind: Side, item: string): void => {
    const last = parts.at(-1);
    if (last?.kind === kind) last.items.push(item);
    else parts.push({ kind, items: [item] });
  };
  for (const item of left.slice(0, start)) add("same", item);
  addCompared(left.slice(start, left.length - end), right.slice(start, right.length - end), add);
  for (const item of left.slice(left.length - end)) add("same", item);
  return parts;
}

function addCompared(
  a: readonly string[],
  b: readonly string[],
  add: (kind: Side, item: string) => void,
): void {
  if (a.length * b.length > MAX_ITEMS * MAX_ITEMS) {
    for (const item of a) add("left", item);
    for (const item of b) add("right", item);
    return;
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
  let [row, column] = [0, 0];
  while (row < a.length || column < b.length) {
    const [left, right] = [a[row], b[column]];
    if (left !== undefined && left === right) {
      add("same", left);
      row += 1;
      column += 1;
    } else if (left !== undefined && (right === undefined || at(row + 1, column) >= at(row, column + 1))) {
      add("left", left);
      row += 1;
    } else if (right !== undefined) {
      add("right", right);
      column += 1;
    }
  }
}
