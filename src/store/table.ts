/**
 * Defines a table once: its columns give the row's type, the SELECT list, and inserts and updates with named parameters. Only this file converts
 * JSON and flags. A statement that is more than one row's is written by hand in the module of its noun.
 */
import { type Json, parseJson, writeJson } from "../base/json.ts";
import { Refusal } from "../base/refusal.ts";
import type { PlainTopic, Reader, SqlNames, SqlValue, Writer } from "./port.ts";

/** A column whose values are `Value` in code. The database itself numbers a `given` column. */
interface Column<Value> {
  readonly kept: "plain" | "flag" | "json";
  /** The column's type; no code sets this property. */
  readonly value?: Value;
  readonly given?: true;
  /** Parses the text of a JSON column. */
  readonly read?: (text: string) => Value;
}

interface GivenColumn<Value> extends Column<Value> {
  readonly given: true;
}

const PLAIN = { kept: "plain" } as const;

export const integer = (): Column<number> => PLAIN;
export const text = <Text extends string = string>(): Column<Text> => PLAIN;
export const bytes = (): Column<Uint8Array> => PLAIN;
/** A boolean that is stored as 0 and 1. */
export const flag = (): Column<boolean> => ({ kept: "flag" });
/** A value that is stored as JSON text. If `read` is absent, the stored value is trusted to be a `Value`, because only this code writes it. */
export const json = <Value>(read?: (text: string) => Value): Column<Value> =>
  read === undefined ? { kept: "json" } : { kept: "json", read };
export const orNull = <Value>(column: Column<Value>): Column<Value | null> => column as Column<Value | null>;
/** A number that the database gives to each new row. */
export const given = (): GivenColumn<number> => ({ kept: "plain", given: true });

type Columns = Readonly<Record<string, Column<unknown>>>;
type ValueOf<One> = One extends { readonly value?: infer Value } ? Value : never;
type Given<All extends Columns> = {
  [Name in keyof All]: All[Name] extends { readonly given: true } ? Name : never;
}[keyof All];

/** The type of a row that is read: `RowOf<typeof RELAY>`. */
export type RowOf<One> =
  One extends Selection<infer All> ? { -readonly [Name in keyof All]: ValueOf<All[Name]> } : never;
/** The type of a row that is inserted, without the columns that the database numbers. */
export type NewRowOf<One> = One extends Table<infer All> ? Omit<RowOf<One>, Given<All>> : never;

interface TableWords<All extends Columns> {
  name: string;
  /** The columns that identify a row. */
  key: readonly (keyof All & string)[];
  /** The topic that inserts, updates and deletes of this table notify. */
  topic?: PlainTopic;
  columns: All;
}

/** Defines a table. Column names in the database are the code's names in snake_case. */
export function defineTable<const All extends Columns>(words: TableWords<All>): Table<All> {
  return new Table(words);
}

/** The columns whose stored value differs from the code's. */
type Kept = readonly (readonly [name: string, kept: "flag" | "json"])[];

/** Reads all or some columns of a table. Texts are made at their first use, because a process uses few of all tables. */
class Selection<All extends Columns> {
  readonly name: string;
  protected readonly names: readonly string[];
  /** The columns by name. */
  protected readonly definitions: All;
  #columns: string | undefined;
  #kept: Kept | undefined;
  /** Caches each SELECT by the text after the table's name, so that it is built and prepared once. */
  readonly #selects = new Map<string, string>();

  constructor(name: string, columns: All) {
    this.name = name;
    this.definitions = columns;
    this.names = Object.keys(columns);
  }

  /** `id, environment_id AS environmentId, …`, for a statement written by hand whose rows `read` converts. */
  get columns(): string {
    this.#columns ??= this.columnsOf();
    return this.#columns;
  }

  protected get kept(): Kept {
    this.#kept ??= Object.entries(this.definitions).flatMap(([column, { kept }]) =>
      kept === "plain" ? [] : [[column, kept] as const],
    );
    return this.#kept;
  }

  /** Returns a selection of only these columns. */
  pick<Name extends keyof All & string>(...names: readonly Name[]): Selection<Pick<All, Name>> {
    const picked = Object.fromEntries(names.map((name) => [name, this.definitions[name]]));
    return new Selection(this.name, picked as Pick<All, Name>);
  }

  /** Returns `columns`, each after a table's name or alias, for a join. */
  columnsOf(alias?: string): string {
    const before = alias === undefined ? "" : `${alias}.`;
    return this.names
      .map((name) => (snake(name) === name ? `${before}${name}` : `${before}${snake(name)} AS ${name}`))
      .join(", ");
  }

  /** Returns the first row of `SELECT … FROM table rest`, or null. `rest` names its values as `$name`. */
  async get(tx: Reader, rest: string, values: SqlNames = {}): Promise<RowOf<Selection<All>> | null> {
    const row = await tx.get<StoredRow>(this.#select(rest), values);
    return row === null ? null : this.read(row);
  }

  /** Returns the row with these values, or null. */
  async find(tx: Reader, values: Partial<RowOf<Selection<All>>>): Promise<RowOf<Selection<All>> | null> {
    const named = values as Readonly<Record<string, SqlValue>>;
    return await this.get(tx, `WHERE ${whereOf(Object.keys(named))}`, named);
  }

  /** Returns the row as `find` does, or throws `not_found` with this sentence. */
  async require(
    tx: Reader,
    values: Partial<RowOf<Selection<All>>>,
    sentence: string,
  ): Promise<RowOf<Selection<All>>> {
    const row = await this.find(tx, values);
    if (row !== null) return row;
    throw new Refusal("not_found", sentence);
  }

  /** Returns every row of `SELECT … FROM table rest`. */
  async all(tx: Reader, rest: string, values: SqlNames = {}): Promise<RowOf<Selection<All>>[]> {
    const rows = await tx.all<StoredRow>(this.#select(rest), values);
    return rows.map((row) => this.read(row));
  }

  #select(rest: string): string {
    const known = this.#selects.get(rest);
    if (known !== undefined) return known;
    const sql = `SELECT ${this.columns} FROM ${this.name} ${rest}`;
    this.#selects.set(rest, sql);
    return sql;
  }

  /** Converts a row that was selected with `columns`. Other fields stay unchanged. Throws on invalid JSON. */
  read<Stored extends object>(stored: Stored): RowOf<Selection<All>> & Omit<Stored, keyof All> {
    const row = stored as StoredRow;
    for (const [name, kept] of this.kept) {
      const value = row[name];
      if (value === null) continue;
      if (value === undefined) throw new Error(`${name} of ${this.name} was not selected.`);
      row[name] =
        kept === "flag" ? value === 1 : (this.definitions[name]?.read ?? parseJson)(value as string);
    }
    return row as RowOf<Selection<All>> & Omit<Stored, keyof All>;
  }
}

/** The statement that adds a row to a table. */
interface Insert {
  /** The columns that the database does not number. */
  names: readonly string[];
  sql: string;
  /** The same, which returns the columns that the database numbers. */
  sqlGiven: string;
}

class Table<All extends Columns> extends Selection<All> {
  readonly #topic: PlainTopic | null;
  readonly #key: readonly string[];
  #insertion: Insert | undefined;
  readonly #updates = new Map<string, string>();

  constructor({ name, key, topic, columns }: TableWords<All>) {
    super(name, columns);
    this.#topic = topic ?? null;
    this.#key = key;
  }

  get #insert(): Insert {
    if (this.#insertion !== undefined) return this.#insertion;
    const names = this.names.filter((column) => this.definitions[column]?.given !== true);
    const given = this.names.filter((column) => this.definitions[column]?.given === true);
    const sql = `INSERT INTO ${this.name} (${names.map(snake).join(", ")})
      VALUES (${names.map((column) => `$${column}`).join(", ")})`;
    this.#insertion = { names, sql, sqlGiven: `${sql} RETURNING ${given.map(snake).join(", ")}` };
    return this.#insertion;
  }

  /** Adds the row, with a value for every column. `conflict`: what follows, such as `ON CONFLICT DO NOTHING`. Returns how many rows were added. */
  async insert(tx: Writer, row: NewRowOf<Table<All>>, conflict = ""): Promise<number> {
    this.#notify(tx, row);
    const { names, sql } = this.#insert;
    return await tx.run(conflict === "" ? sql : `${sql} ${conflict}`, this.#write(row, names));
  }

  /** Inserts as `insert` does, without a row count, so that later writes need not wait for it. */
  async post(tx: Writer, row: NewRowOf<Table<All>>): Promise<void> {
    this.#notify(tx, row);
    const { names, sql } = this.#insert;
    await tx.post(sql, this.#write(row, names));
  }

  /** Adds rows one after another, as `insert` does. */
  async insertEach(tx: Writer, rows: readonly NewRowOf<Table<All>>[]): Promise<void> {
    for (const row of rows) this.#notify(tx, row);
    const { names, sql } = this.#insert;
    const written = rows.map((row) => this.#write(row, names));
    await tx.postEach(sql, written);
  }

  /** Inserts as `insert` does and returns the number that the database gave, by its column's name. */
  async insertGiven(tx: Writer, row: NewRowOf<Table<All>>): Promise<Pick<RowOf<Selection<All>>, Given<All>>> {
    this.#notify(tx, row);
    const { names, sqlGiven } = this.#insert;
    const added = await tx.get<StoredRow>(sqlGiven, this.#write(row, names));
    if (added === null) throw new Error(`An INSERT into ${this.name} returned no row.`);
    return added as Pick<RowOf<Selection<All>>, Given<All>>;
  }

  /** Overwrites every column of the row with its key. Returns how many rows changed, 0 or 1. */
  async update(tx: Writer, row: RowOf<Selection<All>>): Promise<number> {
    this.#notify(tx, row);
    return await this.#set(tx, this.names, this.#write(row, this.names));
  }

  /** Overwrites only the columns in `changes` of the row with this key. Returns how many rows changed, 0 or 1. */
  async change(
    tx: Writer,
    key: Partial<RowOf<Selection<All>>>,
    changes: Partial<RowOf<Selection<All>>>,
  ): Promise<number> {
    this.#notify(tx, key);
    const names = Object.keys(changes);
    return await this.#set(tx, names, { ...this.#write(changes, names), ...this.#keyOf(key) });
  }

  /** Deletes the row with this key. Returns how many rows were deleted, 0 or 1. */
  async delete(tx: Writer, key: Partial<RowOf<Selection<All>>>): Promise<number> {
    this.#notify(tx, key);
    return await tx.run(`DELETE FROM ${this.name} WHERE ${whereOf(this.#key)}`, this.#keyOf(key));
  }

  async #set(tx: Writer, names: readonly string[], values: SqlNames): Promise<number> {
    const set = names.filter((name) => !this.#key.includes(name));
    const known = set.join();
    let sql = this.#updates.get(known);
    if (sql === undefined) {
      sql = `UPDATE ${this.name} SET ${set.map((name) => `${snake(name)} = $${name}`).join(", ")} WHERE ${whereOf(this.#key)}`;
      this.#updates.set(known, sql);
    }
    return await tx.run(sql, values);
  }

  #keyOf(row: object): SqlNames {
    const values = row as Record<string, SqlValue | undefined>;
    return Object.fromEntries(this.#key.map((name) => [name, this.#require(name, values[name])]));
  }

  /** Returns the stored form of the row, with a value for each of these columns. */
  #write(row: object, names: readonly string[]): SqlNames {
    const values = { ...row } as StoredRow;
    for (const name of names) this.#require(name, values[name]);
    for (const [name, kept] of this.kept) {
      const value = values[name];
      if (value === null || value === undefined) continue;
      values[name] = kept === "flag" ? Number(value) : writeJson(value as Json);
    }
    return values as SqlNames;
  }

  /** Throws on an undefined value, because SQLite would store it as NULL. */
  #require<Value>(column: string, value: Value | undefined): Value {
    if (value !== undefined) return value;
    throw new Error(`Missing parameter "${column}" of ${this.name}.`);
  }

  /** Notifies the table's topic, with the row's environment if it has one. */
  #notify(tx: Writer, row: { environmentId?: unknown }): void {
    if (this.#topic === null) return;
    tx.notify(this.#topic, typeof row.environmentId === "number" ? row.environmentId : undefined);
  }
}

function whereOf(names: readonly string[]): string {
  return names.map((name) => `${snake(name)} = $${name}`).join(" AND ");
}

type StoredRow = Record<string, unknown>;

/** Converts `environmentId` to `environment_id`. `last24h` stays one word. */
function snake(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
