/**
 * Replaces `INDEXED BY`, which PostgreSQL does not have. Its planner assumes that rows are spread evenly. For a relay with a tenth of all events, it
 * scans all events from the newest on. If the relay's events are old, that reads far too many. So the statement compares and sorts by the index's
 * first column in a form that no other index supports. The rows stay the same.
 */

import { POSTGRES_MIGRATIONS } from "../migrate/migrations.ts";
import { type Comparison, findComparison, findSorted, placesOf } from "../sql/select.ts";
import { isSign, isWord, next, split, type Token } from "../sql/token.ts";

/** The columns of each index, by its name, from the last migration that created it. */
const COLUMNS: ReadonlyMap<string, readonly string[]> = new Map(
  POSTGRES_MIGRATIONS.flatMap(({ sql }) => [
    ...sql.matchAll(/CREATE (?:UNIQUE )?INDEX (\w+) ON \w+ \(([^()]+)\)/g),
  ]).map(([, name = "", columns = ""]) => [name, columns.split(", ")]),
);

/**
 * The limit of rows for each value in `list`. Callers bound these rows further by a span. The limit makes the server use the index even if it expects
 * a million rows.
 */
const MOST_LED = 5_000;

/** Removes each INDEXED BY, and rewrites its SELECT so that the server uses that index. */
export function followIndexes(tokens: Token[]): void {
  for (let at = 0; at < tokens.length; at++) {
    if (!isWord(tokens[at], "INDEXED")) continue;
    const by = next(tokens, at);
    const name = next(tokens, by);
    if (!isWord(tokens[by], "BY") || name < 0) continue;
    const columns = COLUMNS.get(tokens[name]?.text ?? "");
    tokens.splice(at, name + 1 - at);
    if (columns !== undefined) follow(tokens, at, columns);
  }
}

function follow(tokens: Token[], from: number, [first = "", ...others]: readonly string[]): void {
  const places = placesOf(tokens, from);
  const comparison = findComparison(tokens, places, first);
  if (comparison === null) return;
  const sorted = findSorted(tokens, places, others);
  if (comparison.with === "value" && sorted === null) return;
  const key = sorted === null ? "" : (tokens[sorted]?.text ?? "");
  const bounds = boundsOf(tokens, places, key);
  if (sorted !== null) sortBy(tokens, sorted, comparison);
  if (comparison.with === "list" && comparison.table !== "" && sorted !== null)
    list(tokens, comparison, key, bounds);
  else compare(tokens, comparison);
}

/** Returns the other conditions on the column, such as `AND seq < ?2`. */
function boundsOf(tokens: readonly Token[], places: readonly number[], column: string): Token[] {
  return places.flatMap((place, index) => {
    const [at = -1, to = -1] = places.slice(index + 1);
    const isBound = tokens[place]?.text === column && /^(=|[<>]=?)$/.test(tokens[at]?.text ?? "");
    const value = tokens[to];
    if (!isBound || value?.kind !== "value") return [];
    return [...split(` AND ${column} ${tokens[at]?.text} `), { ...value }];
  });
}

/** Collects the row numbers from the index, value by value. With a join, the server would read the tables in the other order. */
function list(
  tokens: Token[],
  { table, first, start, from, end }: Comparison,
  key: string,
  bounds: readonly Token[],
): void {
  tokens.splice(
    start,
    end - start,
    ...split(`${table}.${key} = ANY(ARRAY(SELECT led.${key} FROM `),
    ...tokens.slice(from, end),
    ...split(
      ` AS place (value) CROSS JOIN LATERAL (SELECT ${key} FROM ${table} WHERE ${first} = ANY(ARRAY[place.value])`,
    ),
    ...bounds,
    ...split(` ORDER BY ${first}, ${key} LIMIT ${MOST_LED}) AS led))`),
  );
}

function sortBy(tokens: Token[], at: number, { first, table, with: what }: Comparison): void {
  const sorted = tokens[at];
  if (sorted === undefined) return;
  // Rows for several values are few and come in another order. `+ 0` keeps the server from using another index for the order.
  if (what === "list") sorted.text += " + 0";
  else {
    const way = isWord(tokens[next(tokens, at)], "DESC") ? " DESC" : "";
    const start = isSign(tokens[at - 1], ".") ? at - 2 : at;
    const column = table === "" ? first : `${table}.${first}`;
    tokens.splice(start, 0, ...split(`${column}${way}, `));
  }
}

function compare(tokens: Token[], { at, from, end, with: what }: Comparison): void {
  const compared = tokens.slice(from, end);
  const copies = compared.map((token) => ({ ...token }));
  const written =
    what === "list"
      ? [...split("= ANY(ARRAY"), ...compared, ...split(")")]
      : what === "given"
        ? [...split("= ANY(ARRAY["), ...compared, ...split("])")]
        : // Writes the value twice, so that it has the column's type. An array of one value would not.
          [...split("IN ("), ...compared, ...split(", "), ...copies, ...split(")")];
  tokens.splice(at, end - at, ...written);
}
