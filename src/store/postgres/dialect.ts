/**
 * Translates the SQL of this service's modules from SQLite's dialect to PostgreSQL's. It covers the few expressions that the two databases write
 * differently. Modules use nothing that only one of them has. Each text is translated once.
 */

import { closing, forCalls, hasComma, isSign, isWord, next, split, type Token } from "../sql/token.ts";
import { followIndexes } from "./index-hint.ts";

/** A statement for PostgreSQL: its text with the placeholders `$1`, `$2`, …, and the value of each. */
interface Translated {
  text: string;
  /** The name of a named value, or the index of a positional one from 0, for each placeholder. */
  places: readonly (string | number)[];
}

const remembered = new Map<string, Translated>();

/** Translates a statement, or returns the remembered translation. */
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
        // A `?` without a number gets the number after the greatest one before it.
        const number = name === "" ? last + 1 : Number(name);
        last = Math.max(last, number);
        places.push(number - 1);
      }
      // Each use gets its own placeholder, because PostgreSQL gives a placeholder one type: `$1 IS NULL OR seq < $1` would need two.
      const [before, after] = token.around ?? ["", ""];
      return `${before}$${places.length}${after}`;
    })
    .join("");
  return { text, places };
}

/** Quotes names such as `environmentId`, which PostgreSQL would otherwise convert to lowercase. */
function quoteNames(tokens: Token[]): void {
  for (const token of tokens)
    if (token.kind === "word" && /[a-z]/.test(token.text) && /[A-Z]/.test(token.text)) {
      token.kind = "quoted";
      token.text = `"${token.text}"`;
    }
}

/** Replaces CROSS JOIN … ON, which fixes the order of tables in SQLite, with a plain JOIN. */
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

/** Rewrites `IS $value`, which compares in SQLite. In PostgreSQL, IS only tests for NULL and a few other keywords. */
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

/** Rewrites max and min of several values as greatest and least. The aggregates max and min stay. */
function pickGreatest(tokens: Token[]): void {
  forCalls(tokens, /^(max|min)$/i, (name, open, close) => {
    if (!hasComma(tokens, open, close)) return;
    name.text = /^max$/i.test(name.text) ? "greatest" : "least";
  });
}

/** Casts sums and averages. PostgreSQL returns the sum of bigint as numeric, which the driver would return as text. */
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

/** Rewrites a limit of -1, which means no limit in SQLite. */
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

/** Gives a type to a value that is only tested for NULL, because PostgreSQL cannot infer it. */
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

/** Makes lower(value) change only ASCII letters, as SQLite does. Columns already have the collation "C", but values have the database's. */
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

/** Names each subquery in FROM. PostgreSQL before version 16 requires a name. */
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

/** Words that can follow a table without an alias. */
const FOLLOWS =
  /^(WHERE|GROUP|ORDER|LIMIT|OFFSET|HAVING|UNION|EXCEPT|INTERSECT|JOIN|LEFT|INNER|CROSS|NATURAL|ON|USING|RETURNING|WINDOW|SET)$/i;

/** Rewrites `x'00'` as bytea. In PostgreSQL it is a bit string. */
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
