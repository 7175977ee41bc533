/**
 * SQL as the rooms write it, in PostgreSQL's words. It knows the few things that the two databases say in different words and mean alike; what
 * only one of them can do is written in the room so that both take it. A text is translated once.
 */

import { closing, forCalls, hasComma, isSign, isWord, next, split, type Token } from "../sql/token.ts";
import { followIndexes } from "./index-hint.ts";

/** A statement for PostgreSQL: its text, with `$1`, `$2`, …, and which of the given values stands at each of them. */
interface Translated {
  text: string;
  /** By place: the name of a named value, or the number, from 0, of a counted one. */
  places: readonly (string | number)[];
}

const remembered = new Map<string, Translated>();

/** Translates it, or remembers how. */
export function toPostgres(sql: string): Translated {
  let known = remembered.get(sql);
  if (known === undefined) {
    known = translate(sql);
    remembered.set(sql, known);
  }
  return known;
}

function translate(sql: string): Translated {
  const tokens = split(sql);
  for (const step of STEPS) step(tokens);
  const places: (string | number)[] = [];
  let last = 0;
  const text = tokens
    .map((token) => {
      if (token.kind !== "value") return token.text;
      const name = token.text.slice(1);
      if (token.text.startsWith("$")) places.push(name);
      else {
        // A mark without a number stands for the one after the greatest before it.
        const number = name === "" ? last + 1 : Number(name);
        last = Math.max(last, number);
        places.push(number - 1);
      }
      // Each mark has a place of its own, since PostgreSQL gives a place one type: `$1 IS NULL OR seq < $1` would have two.
      const [before, after] = token.around ?? ["", ""];
      return `${before}$${places.length}${after}`;
    })
    .join("");
  return { text, places };
}

/** Names that the code gave, `environmentId`: PostgreSQL would write them small. */
function quoteNames(tokens: Token[]): void {
  for (const token of tokens)
    if (token.kind === "word" && /[a-z]/.test(token.text) && /[A-Z]/.test(token.text)) {
      token.kind = "quoted";
      token.text = `"${token.text}"`;
    }
}

/** SQLite's way to say in which order tables are read. */
function joinPlainly(tokens: Token[]): void {
  for (let at = 0; at < tokens.length; at++) {
    if (!isWord(tokens[at], "CROSS")) continue;
    const join = next(tokens, at);
    let after = next(tokens, join);
    if (!isWord(tokens[join], "JOIN") || after < 0) continue;
    if (isSign(tokens[after], "(")) after = closing(tokens, after);
    let end = next(tokens, after);
    if (isWord(tokens[end], "AS")) end = next(tokens, end);
    if (!isWord(tokens[end], "ON")) end = next(tokens, end);
    const cross = tokens[at];
    if (isWord(tokens[end], "ON") && cross !== undefined) cross.text = "";
  }
}

/** `IS $value` is a comparison in SQLite, and a test for NULL and the like alone in PostgreSQL. */
function compareWithNull(tokens: Token[]): void {
  for (let at = 0; at < tokens.length; at++) {
    const token = tokens[at];
    if (token === undefined || !isWord(token, "IS")) continue;
    const not = next(tokens, at);
    const isNot = isWord(tokens[not], "NOT");
    const other = tokens[isNot ? next(tokens, not) : not];
    if (other === undefined || (other.kind === "word" && /^(NULL|TRUE|FALSE|DISTINCT)$/i.test(other.text)))
      continue;
    token.text = isNot ? "IS DISTINCT FROM" : "IS NOT DISTINCT FROM";
    const word = tokens[not];
    if (isNot && word !== undefined) word.text = "";
  }
}

/** The greatest of several values, beside the greatest of many rows. */
function pickGreatest(tokens: Token[]): void {
  forCalls(tokens, /^(max|min)$/i, (name, open, close) => {
    if (!hasComma(tokens, open, close)) return;
    name.text = /^max$/i.test(name.text) ? "greatest" : "least";
  });
}

/** The sum of large numbers has a type without bounds there, which would be read as a text. */
function boundSums(tokens: Token[]): void {
  forCalls(tokens, /^(sum|avg)$/i, (name, _, close) => {
    let end = close;
    for (;;) {
      const word = next(tokens, end);
      if (!isWord(tokens[word], "FILTER") && !isWord(tokens[word], "OVER")) break;
      end = closing(tokens, next(tokens, word));
    }
    const last = tokens[end];
    if (last !== undefined) last.text += /^sum$/i.test(name.text) ? "::bigint" : "::double precision";
  });
}

/** A limit of -1 is none. */
function limitNothing(tokens: Token[]): void {
  for (let at = 0; at < tokens.length; at++) {
    const value = tokens[next(tokens, at)];
    if (isWord(tokens[at], "LIMIT") && value?.kind === "value") value.around = ["nullif(", ", -1)"];
    const minus = tokens[next(tokens, at)];
    const number = tokens[next(tokens, next(tokens, at))];
    if (!isWord(tokens[at], "LIMIT") || !isSign(minus, "-") || number?.text !== "1") continue;
    minus.text = "ALL";
    number.text = "";
  }
}

/** A value that is only asked whether it is there has no type otherwise. */
function typeTests(tokens: Token[]): void {
  for (let at = 0; at < tokens.length; at++) {
    const token = tokens[at];
    const is = next(tokens, at);
    const not = next(tokens, is);
    const word = isWord(tokens[not], "NOT") ? next(tokens, not) : not;
    if (token?.kind === "value" && isWord(tokens[is], "IS") && isWord(tokens[word], "NULL"))
      token.around = ["", "::text"];
  }
}

/** A value has the database's idea of small letters, a column that of bytes, which is SQLite's: the letters of ASCII alone. */
function lowerBytes(tokens: Token[]): void {
  forCalls(tokens, /^lower$/i, (_, open, close) => {
    const at = next(tokens, open);
    const value = tokens[at];
    if (value?.kind === "value" && next(tokens, at) === close) value.around = ["", ' COLLATE "C"'];
  });
}

const TYPES: Readonly<Record<string, string>> = {
  INTEGER: "bigint",
  REAL: "double precision",
  BLOB: "bytea",
};

function castToOwnTypes(tokens: Token[]): void {
  forCalls(tokens, /^cast$/i, (_, open, close) => {
    const type = tokens.slice(open, close).findLast(({ kind }) => kind === "word");
    if (type !== undefined) type.text = TYPES[type.text.toUpperCase()] ?? type.text;
  });
}

/** A table that is a SELECT has to have a name before PostgreSQL 16. */
function nameTables(tokens: Token[]): void {
  let made = 0;
  for (let at = 0; at < tokens.length; at++) {
    if (!isWord(tokens[at], "FROM") && !isWord(tokens[at], "JOIN")) continue;
    const open = next(tokens, at);
    const inner = tokens[next(tokens, open)];
    if (
      !isSign(tokens[open], "(") ||
      !(isWord(inner, "SELECT") || isWord(inner, "VALUES") || isWord(inner, "WITH"))
    )
      continue;
    const close = closing(tokens, open);
    const after = tokens[next(tokens, close)];
    const isNamed =
      after !== undefined &&
      (after.kind === "quoted" || (after.kind === "word" && !FOLLOWS.test(after.text)));
    const last = tokens[close];
    if (!isNamed && last !== undefined) last.text += ` AS unnamed_${++made}`;
  }
}

/** What may follow a table without a name. */
const FOLLOWS =
  /^(WHERE|GROUP|ORDER|LIMIT|OFFSET|HAVING|UNION|EXCEPT|INTERSECT|JOIN|LEFT|INNER|CROSS|NATURAL|ON|USING|RETURNING|WINDOW|SET)$/i;

/** `x'00'` is a list of bits there. */
function writeBytes(tokens: Token[]): void {
  for (let at = 0; at < tokens.length; at++) {
    const [mark, text] = [tokens[at], tokens[at + 1]];
    if (mark === undefined || text?.kind !== "text" || !isWord(mark, "X")) continue;
    mark.text = "";
    text.text = `'\\x${text.text.slice(1)}::bytea`;
  }
}

const STEPS: readonly ((tokens: Token[]) => void)[] = [
  followIndexes,
  writeBytes,
  joinPlainly,
  typeTests,
  compareWithNull,
  pickGreatest,
  boundSums,
  limitNothing,
  castToOwnTypes,
  lowerBytes,
  nameTables,
  quoteNames,
];
