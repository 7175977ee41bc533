/**
 * What `INDEXED BY` says, to a database that cannot be told which index to take. It weighs them by averages: of a relay with a tenth of all events
 * it believes that every tenth event is one, walks all events from the newest on to find it, and where the relay's are old, through all there are.
 * So the index's first column is compared and sorted by in a way that no other index can follow. The rows stay the same.
 */

import { POSTGRES_MIGRATIONS } from "../migrate/migrations.ts";
import { type Comparison, findComparison, findSorted, placesOf } from "../sql/select.ts";
import { isSign, isWord, next, split, type Token } from "../sql/token.ts";

/** The columns of each index, by its name, as the last migration that made one of that name says it. */
const COLUMNS: ReadonlyMap<string, readonly string[]> = new Map(
  POSTGRES_MIGRATIONS.flatMap(({ sql }) => [
    ...sql.matchAll(/CREATE (?:UNIQUE )?INDEX (\w+) ON \w+ \(([^()]+)\)/g),
  ]).map(([, name = "", columns = ""]) => [name, columns.split(", ")]),
);

/** What is led through several places is a span of that many rows at most; a bound makes the server take the index even where it believes in a million. */
const MOST_LED = 5_000;

/** Takes the words away, and writes what they say into the SELECT that they stand in. */
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

/** What the column is asked for beside, as `AND seq < ?2`. */
function boundsOf(tokens: readonly Token[], places: readonly number[], column: string): Token[] {
  return places.flatMap((place, index) => {
    const [at = -1, to = -1] = places.slice(index + 1);
    const isBound = tokens[place]?.text === column && /^(=|[<>]=?)$/.test(tokens[at]?.text ?? "");
    const value = tokens[to];
    if (!isBound || value?.kind !== "value") return [];
    return [...split(` AND ${column} ${tokens[at]?.text} `), { ...value }];
  });
}

/** The rows' own numbers, gathered from the index place by place: a join would be made the other way round. */
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
  // Rows of several come from the index in another order, and are few: no order that another index has is the one that is asked for.
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
  const again = compared.map((token) => ({ ...token }));
  const written =
    what === "list"
      ? [...split("= ANY(ARRAY"), ...compared, ...split(")")]
      : what === "given"
        ? [...split("= ANY(ARRAY["), ...compared, ...split("])")]
        : // Two places of a value have its column's type, which a list made of it would not.
          [...split("IN ("), ...compared, ...split(", "), ...again, ...split(")")];
  tokens.splice(at, end - at, ...written);
}
