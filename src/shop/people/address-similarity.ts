/** Compares email addresses: the spellings that one person uses for an address, and the number of typos between two. It reads no table. */

/** The parts of an address key. `letters`: the local part without dots and without a plus tag. */
export interface AddressParts {
  local: string;
  base: string;
  letters: string;
  domain: string;
}

export function splitAddress(emailKey: string): AddressParts {
  const at = emailKey.lastIndexOf("@");
  const local = emailKey.slice(0, at);
  const [base = ""] = local.split("+");
  return { local, base, letters: base.replaceAll(".", ""), domain: emailKey.slice(at + 1) };
}

/** The longest local part whose spellings and typos are listed. It bounds the lists. */
const MAX_CHARS = 24;

/** Lists the beginnings of addresses that have the same letters before the @: with another dot, a plus tag or another domain. */
export function listSpellings({ local, base, letters }: AddressParts): string[] {
  const chars = Array.from(letters);
  const dotted =
    chars.length > MAX_CHARS
      ? []
      : chars.slice(1).map((_, at) => `${chars.slice(0, at + 1).join("")}.${chars.slice(at + 1).join("")}`);
  const tagged = [base, letters].map((one) => `${one}+`);
  return [...new Set([...[local, base, letters, ...dotted].map((one) => `${one}@`), ...tagged])];
}

const TYPED = Array.from("abcdefghijklmnopqrstuvwxyz0123456789.-_");

/** Lists the addresses of the same domain that are one typo away: a character missing, extra, wrong or swapped with its neighbor. */
export function listTypos({ local, domain }: AddressParts): string[] {
  const chars = Array.from(local);
  if (chars.length > MAX_CHARS) return [];
  const found = new Set<string>();
  const put = (from: number, to: number, middle: string): void => {
    found.add([...chars.slice(0, from), middle, ...chars.slice(to)].join(""));
  };
  for (let at = 0; at <= chars.length; at++) {
    for (const char of TYPED) put(at, at, char);
    if (at === chars.length) break;
    put(at, at + 1, "");
    for (const char of TYPED) put(at, at + 1, char);
    if (at + 1 < chars.length) put(at, at + 2, `${chars[at + 1]}${chars[at]}`);
  }
  found.delete(local);
  return [...found].map((one) => `${one}@${domain}`);
}

/**
 * Counts the typos between two texts, at most `most + 1`. A swap of two neighbors is one typo. It compares only characters whose places differ by at
 * most `most`, because a larger difference is too many typos already.
 */
export function countTypos(left: string, right: string, most: number): number {
  const [from, to] = [Array.from(left), Array.from(right)];
  const tooMany = most + 1;
  if (Math.abs(from.length - to.length) > most) return tooMany;
  const width = 2 * most + 1;
  // Each list has the counts of one character of `from`, with the places of `to` from `row - most` to `row + most`.
  let before: number[] = [];
  let last = Array.from({ length: width }, (_, at) => (at < most ? tooMany : at - most));
  for (let row = 1; row <= from.length; row++) {
    const next: number[] = [];
    for (let at = 0; at < width; at++) {
      const place = row + at - most;
      const isSame = from[row - 1] === to[place - 1];
      const isSwap =
        row > 1 && place > 1 && from[row - 1] === to[place - 2] && from[row - 2] === to[place - 1];
      const steps = [
        (next[at - 1] ?? tooMany) + 1,
        (last[at + 1] ?? tooMany) + 1,
        (last[at] ?? tooMany) + (isSame ? 0 : 1),
        isSwap ? (before[at] ?? tooMany) + 1 : tooMany,
      ];
      next.push(place < 0 || place > to.length ? tooMany : Math.min(...steps));
    }
    if (Math.min(...next) > most) return tooMany;
    [before, last] = [last, next];
  }
  return Math.min(last[to.length - from.length + most] ?? tooMany, tooMany);
}
