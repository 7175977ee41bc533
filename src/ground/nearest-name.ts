/** Which known name a mistyped one most resembles, for "did you mean". It never suggests something far off. */

/** Longer names are never typing mistakes of ours, and comparing them would cost. */
const MAX_COMPARED_CHARS = 64;

/** The known name nearest to `given`, or null when none is near: at most a third of it, and at most three letters, differ. */
export function findNearestName(given: string, known: readonly string[]): string | null {
  if (given.length === 0 || given.length > MAX_COMPARED_CHARS) return null;
  const plain = fold(given);
  let nearest: string | null = null;
  let least = Math.min(3, Math.max(1, Math.floor(given.length / 3))) + 1;
  for (const name of known) {
    const distance = countEdits(plain, fold(name));
    if (distance < least) {
      least = distance;
      nearest = name;
    }
  }
  return nearest;
}

/** Case and word joints do not count: `Person-Email` is `person_email`. */
function fold(name: string): string {
  return name.toLowerCase().replaceAll(/[-_ .]/g, "");
}

/** Insertions, deletions, replacements and swaps of neighbours between two short texts (optimal string alignment). */
function countEdits(left: string, right: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: right.length + 1 }, (_, index) => index);
  for (let row = 1; row <= left.length; row++) {
    const now = [row];
    for (let column = 1; column <= right.length; column++) {
      const same = left[row - 1] === right[column - 1];
      let edits = Math.min(
        at(last, column) + 1,
        at(now, column - 1) + 1,
        at(last, column - 1) + (same ? 0 : 1),
      );
      if (
        row > 1 &&
        column > 1 &&
        left[row - 1] === right[column - 2] &&
        left[row - 2] === right[column - 1]
      ) {
        edits = Math.min(edits, at(beforeLast, column - 2) + 1);
      }
      now.push(edits);
    }
    beforeLast = last;
    last = now;
  }
  return at(last, right.length);
}

function at(row: readonly number[], index: number): number {
  return row[index] ?? Number.POSITIVE_INFINITY;
}
