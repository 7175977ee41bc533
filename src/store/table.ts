/**
 * A table said once: its columns, named as the code names them, give the row's type, what is selected, and its inserts and updates with named
 * parameters. What is kept as JSON or as 0 and 1 is read and written here alone. A statement that is more than a row stays written by hand in
 * the room whose noun it serves.
 */
import { type Json, parseJson, writeJson } from "../base/json.ts";
import { Refusal } from "../base/refusal.ts";
import type { PlainTopic, Reader, SqlNames, SqlValue, Writer } from "./port.ts";

/** A column whose values are `Value` in code. `key`: the rows are told apart by it; `given`: the database numbers the rows itself. */
interface Column<Value> {
  readonly kept: "plain" | "flag" | "json";
  /** Never there: it carries the type. */
  readonly value?: Value;
  readonly given?: true;
  /** Of JSON: how its text is read. */
  readonly read?: (text: string) => Value;
}

interface GivenColumn<Value> extends Column<Value> {
  readonly given: true;
}

const PLAIN = { kept: "plain" } as const;

export const integer = (): Column<number> => PLAIN;
export const text = <Text extends string = string>(): Column<Text> => PLAIN;
export const bytes = (): Column<Uint8Array> => PLAIN;
/** Kept as 0 and 1. */
export const flag = (): Column<boolean> => ({ kept: "flag" });
/** Kept as JSON text; what is read is believed to be a `Value`, because nothing else was ever written. `read`: where others write too. */
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

/** A row as it is read: `RowOf<typeof RELAY>`. */
export type RowOf<One> =
  One extends Selection<infer All> ? { -readonly [Name in keyof All]: ValueOf<All[Name]> } : never;
/** A row as it is inserted: without what the database gives. */
export type NewRowOf<One> = One extends Table<infer All> ? Omit<RowOf<One>, Given<All>> : never;

interface TableWords<All extends Columns> {
  name: string;
  /** What names one row. */
  key: readonly (keyof All & string)[];
  /** Told after the commit of every insert, update and delete made here. */
  topic?: PlainTopic;
  columns: All;
}

/** Says a table. Column names in the database are the code's names in snake_case. */
export function defineTable<const All extends Columns>(words: TableWords<All>): Table<All> {
  return new Table(words);
}

/** Some columns of a table, or all of them: its reading side. */
class Selection<All extends Columns> {
  readonly name: string;
  /** `id, environment_id AS environmentId, …`: to be read by `read` where the statement is written by hand. */
  readonly columns: string;
  protected readonly names: readonly string[];
  /** Those whose stored value is not the code's. */
  protected readonly kept: readonly (readonly [name: string, kept: "flag" | "json"])[];
  readonly #said: All;
  /** By what follows the table's name: the same text each time, so that it is put together and prepared once. */
  readonly #selects = new Map<string, string>();

  constructor(name: string, columns: All) {
    this.name = name;
    this.#said = columns;
    this.names = Object.keys(columns);
    this.columns = this.columnsOf();
    this.kept = Object.entries(columns).flatMap(([column, { kept }]) =>
      kept === "plain" ? [] : [[column, kept] as const],
    );
  }

  /** These columns alone, for who needs no more of a row. */
  pick<Name extends keyof All & string>(...names: readonly Name[]): Selection<Pick<All, Name>> {
    const picked = Object.fromEntries(names.map((name) => [name, this.#said[name]]));
    return new Selection(this.name, picked as Pick<All, Name>);
  }

  /** As `columns`, each behind a table's name or alias, for a join. */
  columnsOf(alias?: string): string {
    const before = alias === undefined ? "" : `${alias}.`;
    return this.names
      .map((name) => (snake(name) === name ? `${before}${name}` : `${before}${snake(name)} AS ${name}`))
      .join(", ");
  }

  /** The first row of `SELECT … FROM table rest`, or null; `rest` names its values as `$name`. */
  async get(tx: Reader, rest: string, values: SqlNames = {}): Promise<RowOf<Selection<All>> | null> {
    const row = await tx.get<StoredRow>(this.#select(rest), values);
    return row === null ? null : this.read(row);
  }

  /** The row that has these values, or null. */
  async find(tx: Reader, values: Partial<RowOf<Selection<All>>>): Promise<RowOf<Selection<All>> | null> {
    const named = values as Readonly<Record<string, SqlValue>>;
    return await this.get(tx, `WHERE ${whereOf(Object.keys(named))}`, named);
  }

  /** As `find`; refuses with `not_found`, in this sentence. */
  async require(
    tx: Reader,
    values: Partial<RowOf<Selection<All>>>,
    sentence: string,
  ): Promise<RowOf<Selection<All>>> {
    const row = await this.find(tx, values);
    if (row !== null) return row;
    throw new Refusal("not_found", sentence);
  }

  /** Every row of `SELECT … FROM table rest`. */
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

  /** The row as code has it, of one that was selected with `columns`; further fields stay as they are. Throws on JSON that is none. */
  read<Stored extends object>(stored: Stored): RowOf<Selection<All>> & Omit<Stored, keyof All> {
    const row = stored as StoredRow;
    for (const [name, kept] of this.kept) {
      const value = row[name];
      if (value === null) continue;
      if (value === undefined) throw new Error(`${name} of ${this.name} was not selected.`);
      row[name] = kept === "flag" ? value === 1 : (this.#said[name]?.read ?? parseJson)(value as string);
    }
    return row as RowOf<Selection<All>> & Omit<Stored, keyof All>;
  }
}

class Table<All extends Columns> extends Selection<All> {
  readonly #topic: PlainTopic | null;
  readonly #key: readonly string[];
  readonly #inserted: readonly string[];
  readonly #insert: string;
  readonly #insertGiven: string;
  readonly #updates = new Map<string, string>();

  constructor({ name, key, topic, columns }: TableWords<All>) {
    super(name, columns);
    this.#topic = topic ?? null;
    this.#key = key;
    const inserted = this.names.filter((column) => columns[column]?.given !== true);
    const given = this.names.filter((column) => columns[column]?.given === true);
    this.#inserted = inserted;
    this.#insert = `INSERT INTO ${name} (${inserted.map(snake).join(", ")})
      VALUES (${inserted.map((column) => `$${column}`).join(", ")})`;
    this.#insertGiven = `${this.#insert} RETURNING ${given.map(snake).join(", ")}`;
  }

  /** Adds the row, with a value for every column. `conflict`: what follows, such as `ON CONFLICT DO NOTHING`. Answers how many were added. */
  async insert(tx: Writer, row: NewRowOf<Table<All>>, conflict = ""): Promise<number> {
    this.#tell(tx, row);
    return await tx.run(
      conflict === "" ? this.#insert : `${this.#insert} ${conflict}`,
      this.#write(row, this.#inserted),
    );
  }

  /** As `insert`, where nobody asks how many were added: who writes on need not wait for it. */
  async post(tx: Writer, row: NewRowOf<Table<All>>): Promise<void> {
    this.#tell(tx, row);
    await tx.post(this.#insert, this.#write(row, this.#inserted));
  }

  /** Adds rows one after another, as `insert` does. */
  async insertEach(tx: Writer, rows: readonly NewRowOf<Table<All>>[]): Promise<void> {
    for (const row of rows) this.#tell(tx, row);
    const written = rows.map((row) => this.#write(row, this.#inserted));
    await tx.postEach(this.#insert, written);
  }

  /** As `insert`, and answers the number that the database gave, by its column's name. */
  async insertGiven(tx: Writer, row: NewRowOf<Table<All>>): Promise<Pick<RowOf<Selection<All>>, Given<All>>> {
    this.#tell(tx, row);
    const added = await tx.get<StoredRow>(this.#insertGiven, this.#write(row, this.#inserted));
    if (added === null) throw new Error(`An inserted row of ${this.name} answered nothing.`);
    return added as Pick<RowOf<Selection<All>>, Given<All>>;
  }

  /** Writes every column of the row over the one with its key. Answers how many there were: 0 or 1. */
  async update(tx: Writer, row: RowOf<Selection<All>>): Promise<number> {
    this.#tell(tx, row);
    return await this.#set(tx, this.names, this.#write(row, this.names));
  }

  /** Writes the columns that `changes` names, and no other, over the row with this key. Answers how many there were: 0 or 1. */
  async change(
    tx: Writer,
    key: Partial<RowOf<Selection<All>>>,
    changes: Partial<RowOf<Selection<All>>>,
  ): Promise<number> {
    this.#tell(tx, key);
    const names = Object.keys(changes);
    return await this.#set(tx, names, { ...this.#write(changes, names), ...this.#keyOf(key) });
  }

  /** Removes the row with this key. Answers how many there were: 0 or 1. */
  async delete(tx: Writer, key: Partial<RowOf<Selection<All>>>): Promise<number> {
    this.#tell(tx, key);
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

  /** The row as it is kept, with a value for each of these columns. */
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

  /** SQLite would take `undefined` for NULL. */
  #require<Value>(column: string, value: Value | undefined): Value {
    if (value !== undefined) return value;
    throw new Error(`Missing parameter "${column}" of ${this.name}.`);
  }

  /** Names the row's environment where the row does. */
  #tell(tx: Writer, row: { environmentId?: unknown }): void {
    if (this.#topic === null) return;
    tx.notify(this.#topic, typeof row.environmentId === "number" ? row.environmentId : undefined);
  }
}

function whereOf(names: readonly string[]): string {
  return names.map((name) => `${snake(name)} = $${name}`).join(" AND ");
}

type StoredRow = Record<string, unknown>;

/** `environmentId` → `environment_id`; `last24h` stays one word. */
function snake(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
