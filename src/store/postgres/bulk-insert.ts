/**
 * Writes many rows of one INSERT as one statement. Values that all rows share are sent once, the others as one text for each column. The statement's
 * text is then the same for any number of rows, with or without nulls. That matters because the server stores each different text.
 */
import type { SqlArguments, SqlNames, SqlValue } from "../port.ts";
import { toPostgres } from "./dialect.ts";
import { arrange, asPostgresTakes } from "./value.ts";

/** The types of columns, by `<table>.<column>`. */
type ColumnTypes = ReadonlyMap<string, string>;

/** Selects `name` and `type` of every column. */
export const COLUMN_TYPES = `SELECT relname || '.' || attname AS name, format_type(atttypid, NULL) AS type
  FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
  WHERE relkind = 'r' AND relnamespace <> 'pg_catalog'::regnamespace AND pg_table_is_visible(attrelid) AND attnum > 0 AND NOT attisdropped`;

/** Bounds a statement, because the server holds its values in memory several times. */
const MOST_ROWS = 128;
const SEPARATOR = "\u0001";
const NOTHING = "\u0002";

export interface Statement {
  text: string;
  values: unknown[];
}

interface Column {
  name: string;
  type: string;
  place: string | number;
  /** True if two rows of a statement ever differed in this column. The flag never becomes false again, which limits the number of texts. */
  varies: boolean;
}

/** A parsed INSERT of one row whose values are all parameters. */
interface Insert {
  /** The statement as the code wrote it. */
  sql: string;
  before: string;
  rest: string;
  columns: readonly Column[];
  readonly texts: Map<string, string>;
}

const INSERT = /^(\s*INSERT INTO (\w+) \(([^()]*)\)\s*)VALUES\s*\(([^()]*)\)(.*)$/is;

export class RowWriter {
  readonly #types: ColumnTypes;
  readonly #known = new Map<string, Insert | null>();

  /** `types` are the rows of COLUMN_TYPES. */
  constructor(types: readonly Record<string, unknown>[] = []) {
    this.#types = new Map(types.map(({ name, type }) => [String(name), String(type)]));
  }

  /** Writes the rows as few statements, because a statement costs more than its rows. If `sql` is no such INSERT, each row is its own statement. */
  write(sql: string, rows: readonly SqlArguments[]): Statement[] {
    const insert = rows.length > 1 ? this.#read(sql) : null;
    if (insert === null) return rows.map((row) => writeAlone(sql, row));
    const statements: Statement[] = [];
    for (let at = 0; at < rows.length; at += MOST_ROWS) {
      const some = rows.slice(at, at + MOST_ROWS);
      // Writes a single row plainly, because string_to_array turns an empty text into an empty list.
      if (some.length === 1) statements.push(writeAlone(sql, some[0] as SqlArguments));
      else {
        const values = fillSafely(insert, some);
        statements.push({ text: textOf(insert), values });
      }
    }
    return statements;
  }

  #read(sql: string): Insert | null {
    let insert = this.#known.get(sql);
    if (insert === undefined) {
      insert = readInsert(sql, this.#types);
      this.#known.set(sql, insert);
    }
    return insert;
  }
}

function writeAlone(sql: string, row: SqlArguments): Statement {
  const { text, places } = toPostgres(sql);
  return { text, values: places.length === 0 ? [] : arrange(sql, places, row) };
}

function readInsert(sql: string, types: ColumnTypes): Insert | null {
  const { text, places } = toPostgres(sql);
  const [, before = "", table = "", names = "", row = "", rest = ""] = INSERT.exec(text) ?? [];
  if (table === "" || rest.includes("$")) return null;
  const columns: Column[] = [];
  const marks = row.split(",");
  for (const [at, column] of names.split(",").entries()) {
    const name = column.trim();
    const place = places[Number(/^\s*\$(\d+)\s*$/.exec(marks[at] ?? "")?.[1]) - 1];
    const type = types.get(`${table}.${name}`);
    if (place === undefined || type === undefined) return null;
    // The first column always varies, because its list gives the number of rows.
    columns.push({ name, type, place, varies: at === 0 });
  }
  return marks.length === columns.length ? { sql, before, rest, columns, texts: new Map() } : null;
}

function fillSafely(insert: Insert, rows: readonly SqlArguments[]): string[] {
  const values = fill(insert, rows, SEPARATOR, NOTHING);
  if (values !== null) return values;
  // A value contains a separator, so this uses random separators.
  const own = crypto.randomUUID();
  return fill(insert, rows, `${SEPARATOR}${own}`, `${NOTHING}${own}`) as string[];
}

/**
 * Returns the two separators and one value for each column: the values of all rows if the column varies, else the common value. Returns null if a
 * value contains a separator.
 */
function fill(
  { sql, columns }: Insert,
  rows: readonly SqlArguments[],
  separator: string,
  nothing: string,
): string[] | null {
  const values = [separator, nothing];
  for (const column of columns) {
    const first = givenIn(sql, column, rows[0] as SqlArguments);
    const given = [first];
    for (let at = 1; at < rows.length; at++) given.push(givenIn(sql, column, rows[at] as SqlArguments));
    column.varies ||= given.some((value) => value !== first);
    const written = column.varies ? given : [first];
    const texts = written.map((value) => (value === null ? nothing : asText(value)));
    for (const [at, text] of texts.entries())
      if (text.includes(separator) || (text === nothing && written[at] !== null)) return null;
    values.push(texts.length === 1 ? (texts[0] as string) : texts.join(separator));
  }
  return values;
}

function givenIn(sql: string, { place }: Column, values: SqlArguments): SqlValue {
  const value = typeof place === "number" ? values[place] : (values[0] as SqlNames)[place];
  if (value === undefined) throw new Error(`Missing parameter "${place}" of: ${sql}`);
  return value as SqlValue;
}

function asText(value: NonNullable<SqlValue>): string {
  const taken = asPostgresTakes(value);
  return taken instanceof Uint8Array ? `\\x${taken.toHex()}` : String(taken);
}

/** Writes the statement's text. `OFFSET 0` makes the server compute the common values once, not for each row. */
function textOf({ before, rest, columns, texts }: Insert): string {
  const which = columns.map(({ varies }) => (varies ? "1" : "0")).join("");
  let text = texts.get(which);
  if (text === undefined) {
    const [picked, common, own, names]: [string[], string[], string[], string[]] = [[], [], [], []];
    for (const [at, { type, varies }] of columns.entries()) {
      const mark = `$${at + 3}`;
      picked.push(varies ? `own.c${at}::${type}` : `common.c${at}`);
      if (!varies) common.push(`nullif(${mark}, $2)::${type} AS c${at}`);
      else {
        own.push(`string_to_array(${mark}, $1, $2)`);
        names.push(`c${at}`);
      }
    }
    const commonPart = common.length === 0 ? "" : `(SELECT ${common.join(", ")} OFFSET 0) AS common, `;
    text = `${before}SELECT ${picked.join(", ")} FROM ${commonPart}unnest(${own.join(", ")}) AS own(${names.join(", ")})${rest}`;
    texts.set(which, text);
  }
  return text;
}
