/** Reads the part of a SELECT behind one of its tables: which column it compares with what, and by which column it sorts. */
import { closing, isSign, isWord, next, type Token } from "./token.ts";

/** A comparison of the index's first column with a value. */
export interface Comparison {
  first: string;
  /** The table's name before the column. Empty if the column is written without one. */
  table: string;
  /** The positions of the column (with its table), of the operator, of the value, and the position behind the value. */
  start: number;
  at: number;
  from: number;
  end: number;
  /** `value`: one value. `given`: a column of another table, or the result of a SELECT. `list`: all rows of a SELECT. */
  with: "value" | "given" | "list";
}

/**
 * Lists the positions of the SELECT's own tokens from `from` on, without spaces. It lists the opening parenthesis of an expression, but nothing
 * inside.
 */
export function placesOf(tokens: readonly Token[], from: number): number[] {
  const places: number[] = [];
  for (let at = next(tokens, from - 1); at >= 0 && at < tokens.length; at = next(tokens, at)) {
    if (isSign(tokens[at], ")") || ["UNION", "EXCEPT"].some((word) => isWord(tokens[at], word))) break;
    places.push(at);
    if (isSign(tokens[at], "(")) at = closing(tokens, at);
  }
  return places;
}

export function findComparison(
  tokens: readonly Token[],
  places: readonly number[],
  column: string,
): Comparison | null {
  for (const [index, place] of places.entries()) {
    const [at = -1, from = -1] = places.slice(index + 1);
    if (tokens[place]?.text !== column || from < 0) continue;
    const before = isSign(tokens[places[index - 1] ?? -1], ".") ? places[index - 2] : undefined;
    const table = before === undefined ? "" : (tokens[before]?.text ?? "");
    const found = { first: column, table, start: before ?? place, at, from };
    const isOpen = isSign(tokens[from], "(");
    if (isWord(tokens[at], "IN") && isOpen && isWord(tokens[next(tokens, from)], "SELECT"))
      return { ...found, end: closing(tokens, from) + 1, with: "list" };
    if (!isSign(tokens[at], "=")) continue;
    if (isOpen) return { ...found, end: closing(tokens, from) + 1, with: "given" };
    if (tokens[from]?.kind !== "word") return { ...found, end: from + 1, with: "value" };
    const last = isSign(tokens[next(tokens, from)], ".") ? next(tokens, next(tokens, from)) : from;
    return { ...found, end: last + 1, with: "given" };
  }
  return null;
}

/** Returns the position of the column in ORDER BY, if it is the only one and is in `columns`. Otherwise returns null. */
export function findSorted(
  tokens: readonly Token[],
  places: readonly number[],
  columns: readonly string[],
): number | null {
  const order = places.findIndex((at) => isWord(tokens[at], "ORDER"));
  if (order < 0) return null;
  const [by = -1, one = -1, dot = -1, two = -1] = places.slice(order + 1);
  if (!isWord(tokens[by], "BY")) return null;
  const at = isSign(tokens[dot], ".") ? two : one;
  const after = tokens[next(tokens, next(tokens, at))];
  const isOnly = !isSign(tokens[next(tokens, at)], ",") && !isSign(after, ",");
  return isOnly && columns.includes(tokens[at]?.text ?? "") ? at : null;
}
