/**
 * Rewrites statements that read a relay's events by `event INDEXED BY event_of_relay`, or its due events by `event_ready`. Callers write them as if
 * the relay were the index's first column. On SQLite these indexes begin with a block of 2,048 event numbers, then the relay. New events of all relays
 * then share a few pages. A table lists the blocks of each relay. A rewritten statement goes from block to block and returns the same rows.
 */
import { type Comparison, findComparison, findSorted, placesOf } from "../sql/select.ts";
import { closing, isSign, isWord, next, split, type Token } from "../sql/token.ts";

/** An index in blocks: its column of the relay, and the table that lists the blocks, with the column of the relay there. */
interface BlockIndex {
  column: string;
  blocks: string;
  of: string;
  /** The index holds few events, so that a statement may read all of it, in any order. */
  whole?: true;
}

const BLOCK_INDEXES: ReadonlyMap<string, BlockIndex> = new Map([
  ["event_of_relay", { column: "name_key", blocks: "event_block", of: "of_name" }],
  ["event_ready", { column: "relay_key", blocks: "ready_block", of: "of_relay", whole: true }],
]);
const NAMES_INDEX = new RegExp(`INDEXED\\s+BY\\s+(${[...BLOCK_INDEXES.keys()].join("|")})\\b`);

/** The bits of a number within a block, as in the migration that made the index. */
const BLOCK_BITS = 11;

/** Adds the join with the table of blocks to each SELECT that names such an index. */
export function followBlocks(sql: string): string {
  if (!NAMES_INDEX.test(sql)) return sql;
  const tokens = split(sql);
  for (let at = 0; at < tokens.length; at++) {
    if (!isWord(tokens[at], "INDEXED")) continue;
    const name = tokens[next(tokens, next(tokens, at))]?.text ?? "";
    const index = BLOCK_INDEXES.get(name);
    if (index === undefined) continue;
    const places = placesOf(tokens, at);
    const comparison = findComparison(tokens, places, index.column);
    if (comparison === null && index.whole) continue;
    if (comparison === null || places.some((place) => isWord(tokens[place], "OR")))
      throw new Error(`${name} is named and no ${index.column} is compared, whatever else is: ${sql}`);
    follow(tokens, at, places, comparison, index);
  }
  return tokens.map(({ text }) => text).join("");
}

/** Returns whether the token is the `seq` of an event, not of another table. */
function isOfEvents(tokens: readonly Token[], places: readonly number[], index: number): boolean {
  const [place = -1, before = -1, table = -1] = [places[index], places[index - 1], places[index - 2]];
  return tokens[place]?.text === "seq" && (!isSign(tokens[before], ".") || isWord(tokens[table], "EVENT"));
}

/** Writes the additions into existing tokens, so that all positions stay valid. */
function follow(
  tokens: Token[],
  at: number,
  places: readonly number[],
  comparison: Comparison,
  { column, blocks, of }: BlockIndex,
): void {
  const table = tokens.findLast((token, place) => place < at && isWord(token, "EVENT"));
  if (table !== undefined) table.text = `${blocks} CROSS JOIN event`;
  for (const index of places.keys()) {
    const [sign = -1, from = -1] = places.slice(index + 1);
    const operator = tokens[sign]?.text ?? "";
    if (!isOfEvents(tokens, places, index) || !/^(=|[<>]=?)$/.test(operator)) continue;
    const last = endOf(tokens, places, from);
    const bound = tokens.slice(from, last + 1).map(({ text }) => text);
    append(
      tokens,
      last,
      ` AND ${blocks}.block ${operator.replace(/^[<>]$/, "$&=")} ((${bound.join("")}) >> ${BLOCK_BITS})`,
    );
  }
  const sorted = comparison.with === "list" ? null : findSorted(tokens, places, ["seq"]);
  if (sorted !== null) {
    const way = isWord(tokens[next(tokens, sorted)], "DESC") ? " DESC" : "";
    prepend(tokens, isSign(tokens[sorted - 1], ".") ? sorted - 2 : sorted, `${blocks}.block${way}, `);
  }
  // The plus removes the type affinity of the block's column from the comparison. With it, SQLite would not use the index.
  append(
    tokens,
    comparison.end - 1,
    ` AND event.${column} = ${blocks}.${of} AND (event.seq >> ${BLOCK_BITS}) = +${blocks}.block`,
  );
  for (let name = comparison.start; name < comparison.at; name++) {
    const token = tokens[name];
    if (token !== undefined) token.text = name === comparison.start ? `${blocks}.${of} ` : "";
  }
}

/** Returns the position of the last token of the compared value that begins at `from`. */
function endOf(tokens: readonly Token[], places: readonly number[], from: number): number {
  let last = from;
  for (const place of places.slice(places.indexOf(from))) {
    if (tokens[place]?.kind === "word" && ENDS.test(tokens[place].text)) break;
    last = isSign(tokens[place], "(") ? closing(tokens, place) : place;
    if (tokens[place]?.text === "?")
      throw new Error("A bound of events that are led to is a value with a number or a name.");
  }
  return last;
}

const ENDS = /^(AND|WHERE|CROSS|LEFT|JOIN|GROUP|ORDER|LIMIT)$/i;

function append(tokens: readonly Token[], at: number, text: string): void {
  const token = tokens[at];
  if (token !== undefined) token.text += text;
}

function prepend(tokens: readonly Token[], at: number, text: string): void {
  const token = tokens[at];
  if (token !== undefined) token.text = text + token.text;
}
