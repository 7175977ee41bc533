/**
 * The events of a relay's name, as the rooms ask for them: `event INDEXED BY event_of_relay`, as if that index were led by the name. In SQLite it is
 * led by a block of 2,048 numbers and the name behind, so that the newest events of all relays stand side by side and a group writes few pages of
 * it; `event_block` says which blocks hold any of a name. A statement is written so that it goes from block to block. The rows stay the same.
 */
import { type Comparison, findComparison, findSorted, placesOf } from "../sql/select.ts";
import { closing, isSign, isWord, next, split, type Token } from "../sql/token.ts";

export const BLOCK_INDEX = "event_of_relay";
/** As the migration that made the index says it. */
const BLOCK_BITS = 11;

/** Writes what leads through the blocks into each SELECT that names the index. */
export function followBlocks(sql: string): string {
  const tokens = split(sql);
  for (let at = 0; at < tokens.length; at++) {
    if (!isWord(tokens[at], "INDEXED") || tokens[next(tokens, next(tokens, at))]?.text !== BLOCK_INDEX)
      continue;
    const places = placesOf(tokens, at);
    const comparison = findComparison(tokens, places, "name_key");
    if (comparison === null || places.some((place) => isWord(tokens[place], "OR")))
      throw new Error(`${BLOCK_INDEX} is named and no name_key is compared, whatever else is: ${sql}`);
    follow(tokens, at, places, comparison);
  }
  return tokens.map(({ text }) => text).join("");
}

/** Whether the number of an event stands there, and not another table's. */
function isOfEvents(tokens: readonly Token[], places: readonly number[], index: number): boolean {
  const [place = -1, before = -1, table = -1] = [places[index], places[index - 1], places[index - 2]];
  return tokens[place]?.text === "seq" && (!isSign(tokens[before], ".") || isWord(tokens[table], "EVENT"));
}

/** What is added is written into tokens that are there, so that every place stays what it was. */
function follow(tokens: Token[], at: number, places: readonly number[], comparison: Comparison): void {
  const table = tokens.findLast((token, place) => place < at && isWord(token, "EVENT"));
  if (table !== undefined) table.text = "event_block CROSS JOIN event";
  for (const index of places.keys()) {
    const [sign = -1, from = -1] = places.slice(index + 1);
    const operator = tokens[sign]?.text ?? "";
    if (!isOfEvents(tokens, places, index) || !/^(=|[<>]=?)$/.test(operator)) continue;
    const last = endOf(tokens, places, from);
    const bound = tokens.slice(from, last + 1).map(({ text }) => text);
    append(
      tokens,
      last,
      ` AND event_block.block ${operator.replace(/^[<>]$/, "$&=")} ((${bound.join("")}) >> ${BLOCK_BITS})`,
    );
  }
  const sorted = comparison.with === "list" ? null : findSorted(tokens, places, ["seq"]);
  if (sorted !== null) {
    const way = isWord(tokens[next(tokens, sorted)], "DESC") ? " DESC" : "";
    prepend(tokens, isSign(tokens[sorted - 1], ".") ? sorted - 2 : sorted, `event_block.block${way}, `);
  }
  // A plus keeps the kind of the block's column out of the comparison, with which SQLite would not follow the index.
  append(
    tokens,
    comparison.end - 1,
    ` AND event.name_key = event_block.of_name AND (event.seq >> ${BLOCK_BITS}) = +event_block.block`,
  );
  for (let name = comparison.start; name < comparison.at; name++) {
    const token = tokens[name];
    if (token !== undefined) token.text = name === comparison.start ? "event_block.of_name " : "";
  }
}

/** Where what is compared ends, from `from` on. */
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
