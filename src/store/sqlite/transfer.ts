/** Implements both ends of a move on SQLite: a database that rows are moved from, and a new one that they are moved to. */
import { Database } from "bun:sqlite";
import { existsSync } from "node:fs";
import { writeKeyRow } from "../dedupe/segment.ts";
import { MARK, readMark, UNMARK } from "../transfer/mark.ts";
import {
  type Cell,
  moves,
  quote,
  rowsAtOnce,
  type SourceEnd,
  type TargetEnd,
  TransferRefused,
  type TransferTable,
} from "../transfer/tables.ts";
import { openDatabaseFile, readSchemaVersion } from "./database-file.ts";

const BUSY_TIMEOUT_MS = 5_000;
/** Keys in one row of the deduplication log. */
const KEYS_A_ROW = 4_096;

const KINDS: Readonly<Record<string, TransferTable["columns"][number]["kind"]>> = {
  INTEGER: "integer",
  TEXT: "text",
  BLOB: "bytes",
};
/** SQLite's name for a value of each kind. */
const TYPES = { integer: "integer", text: "text", bytes: "blob" } as const;

export class SqliteEnd implements SourceEnd {
  readonly shown: string;
  readonly database: Database;
  readonly isNew: boolean;

  /**
   * Opens the file and takes its write lock. `making` means that the file is new and not in its place yet. Throws if another process holds the write
   * lock.
   */
  constructor(file: string, options: { making: boolean }) {
    this.shown = file;
    this.isNew = options.making;
    this.database = new Database(file, { strict: true, readwrite: true, create: false });
    this.database.run(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
    this.database.run("PRAGMA foreign_keys = OFF");
    // A new file needs no durability until its end: it is deleted if the move fails.
    if (options.making)
      for (const pragma of ["journal_mode = MEMORY", "synchronous = OFF"])
        this.database.run(`PRAGMA ${pragma}`);
    else this.database.run("PRAGMA synchronous = FULL");
    try {
      this.database.run("BEGIN IMMEDIATE");
    } catch (error) {
      this.database.close();
      throw error;
    }
  }

  /** Lists the tables to move, each after the tables that its rows refer to. */
  listTables(): TransferTable[] {
    const names = this.#all<{ name: string; sql: string }>(
      "SELECT name, sql FROM sqlite_master WHERE type = 'table' ORDER BY name",
    ).filter(({ name }) => moves(name));
    const found: TransferTable[] = [];
    const add = ({ name, sql }: { name: string; sql: string }): void => {
      if (found.some((table) => table.name === name)) return;
      for (const { table } of this.#all<{ table: string }>(`PRAGMA foreign_key_list(${quote(name)})`)) {
        const parent = names.find((one) => one.name === table && table !== name);
        if (parent !== undefined) add(parent);
      }
      found.push(this.#readTable(name, sql));
    };
    for (const one of names) add(one);
    return found;
  }

  #readTable(name: string, sql: string): TransferTable {
    const info = this.#all<{ name: string; type: string; pk: number; hidden: number }>(
      `PRAGMA table_xinfo(${quote(name)})`,
    ).filter(({ hidden }) => hidden === 0);
    const columns = info.map((column) => {
      const kind = KINDS[column.type.toUpperCase()];
      if (kind === undefined) throw new Error(`${name}.${column.name} is of a type that does not move.`);
      return { name: column.name, kind };
    });
    const key = info.filter(({ pk }) => pk > 0).sort((one, other) => one.pk - other.pk);
    const order = (key.length > 0 ? key : info).map((column) => column.name);
    return { name, columns, order, counted: /\bAUTOINCREMENT\b/i.test(sql) };
  }

  async count({ name, columns }: TransferTable): Promise<number> {
    const odd = columns.map(
      (column) => `typeof(${quote(column.name)}) NOT IN ('${TYPES[column.kind]}', 'null')`,
    );
    const [row] = this.#all<{ count: number; odd: number }>(
      `SELECT count(*) AS count, count(*) FILTER (WHERE ${odd.join(" OR ")}) AS odd FROM ${quote(name)}`,
    );
    if (row === undefined || row.odd > 0)
      throw new TransferRefused(
        `${row?.odd} rows of the table ${name} in ${this.shown} have a value of the wrong type for their column, which no version of this service writes. Fix or delete them first, with SQL.`,
      );
    return row.count;
  }

  async *rows(table: TransferTable): AsyncGenerator<readonly Cell[][]> {
    const { name, columns, order } = table;
    const cells = columns.map((column, at) => {
      const cell = quote(column.name);
      return `${column.kind === "integer" ? `CAST(${cell} AS TEXT)` : cell} AS c${at}`;
    });
    const statement = this.database.prepare<Record<string, Cell>, []>(
      `SELECT ${cells.join(", ")} FROM ${quote(name)} ORDER BY ${order.map(quote).join(", ")}`,
    );
    try {
      let part: Cell[][] = [];
      for (const row of statement.iterate()) {
        part.push(columns.map((_, at) => row[`c${at}`] ?? null));
        if (part.length < rowsAtOnce(table)) continue;
        yield part;
        part = [];
      }
      if (part.length > 0) yield part;
    } finally {
      statement.finalize();
    }
  }

  async lastNumber({ name }: TransferTable): Promise<string | null> {
    const [row] = this.#all<{ seq: string }>(
      "SELECT CAST(seq AS TEXT) AS seq FROM sqlite_sequence WHERE name = ?1",
      name,
    );
    return row === undefined || row.seq === "0" ? null : row.seq;
  }

  async mark(shown: string, nowMs: number): Promise<void> {
    this.database.query(MARK).run(shown, nowMs);
    this.database.run("COMMIT");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.database.close();
  }

  #all<Row>(sql: string, ...values: string[]): Row[] {
    const statement = this.database.prepare<Row, string[]>(sql);
    try {
      return statement.all(...values);
    } finally {
      statement.finalize();
    }
  }
}

/** A new file with this version's schema, or one that an earlier move filled. */
export class NewSqliteEnd extends SqliteEnd implements TargetEnd {
  #triggers: { name: string; sql: string }[] = [];
  #keys: { hash: Uint8Array; value: number }[] = [];

  asHeld(text: string): string {
    return text;
  }

  async begin(): Promise<void> {
    this.#triggers = this.database
      .query<{ name: string; sql: string }, []>("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
      .all();
    for (const { name } of this.#triggers) this.database.run(`DROP TRIGGER ${quote(name)}`);
    this.database.run("DELETE FROM event_last");
  }

  async add({ name, columns }: TransferTable, rows: readonly Cell[][]): Promise<void> {
    const marks = columns.map((_, at) => `?${at + 1}`);
    const names = columns.map((column) => quote(column.name));
    const insert = this.database.prepare(
      `INSERT INTO ${quote(name)} (${names.join(", ")}) VALUES (${marks.join(", ")})`,
    );
    for (const row of rows) insert.run(...row);
    insert.finalize();
    if (name !== "event") return;
    const [seq, hash] = ["seq", "dedupe_hash"].map((one) =>
      columns.findIndex((column) => column.name === one),
    );
    for (const row of rows) {
      const [number, key] = [row[seq ?? -1], row[hash ?? -1]];
      if (key instanceof Uint8Array) this.#keys.push({ hash: key, value: Number(number) });
      if (this.#keys.length === KEYS_A_ROW) this.#writeKeys();
    }
  }

  /** Writes the keys to the deduplication log, as if each had been added with its event. */
  #writeKeys(): void {
    const row = writeKeyRow(this.#keys.splice(0));
    if (row.length > 0) this.database.query("INSERT INTO dedupe_log (keys) VALUES (?1)").run(row);
  }

  async setLastNumber({ name }: TransferTable, last: string): Promise<void> {
    this.database.query("DELETE FROM sqlite_sequence WHERE name = ?1").run(name);
    this.database
      .query("INSERT INTO sqlite_sequence (name, seq) VALUES (?1, CAST(?2 AS INTEGER))")
      .run(name, last);
  }

  async settle(): Promise<void> {
    this.#writeKeys();
    // Adds the rows that a trigger would have written with each event.
    this.database.run(
      "INSERT INTO event_block (of_name, block) SELECT DISTINCT name_key, seq >> 11 FROM event INDEXED BY event_of_relay",
    );
    this.database.run(
      "INSERT INTO ready_block (of_relay, block) SELECT DISTINCT relay_key, seq >> 11 FROM event INDEXED BY event_ready WHERE state = 'queued' AND next_attempt_at IS NULL",
    );
    for (const { sql } of this.#triggers) this.database.run(sql);
    this.database.run("COMMIT");
    const dangling = this.database
      .query<{ table: string; parent: string }, []>("PRAGMA foreign_key_check")
      .all();
    const [first] = dangling;
    if (first !== undefined)
      throw new TransferRefused(
        `${dangling.length} rows refer to rows that are not there (of ${first.table} to ${first.parent}): nothing was moved.`,
      );
  }

  /** Does nothing, because the caller puts the file into its place. */
  async finish(): Promise<void> {}
}

/** Returns whether the rows of the file were moved away. If so, it also moves the log into the file, so that the file is complete by itself. */
export async function foldMarked(file: string): Promise<boolean> {
  if (!existsSync(file)) return false;
  using database = openDatabaseFile(file);
  if ((await readSchemaVersion(database)) === null || (await readMark(database)) === null) return false;
  using connection = new Database(file, { readwrite: true, create: false });
  connection.run("PRAGMA journal_mode = DELETE");
  return true;
}

/** Removes the mark. Returns where the rows were moved to, or null if they were not moved. */
export async function unmarkFile(file: string): Promise<string | null> {
  using database = openDatabaseFile(file);
  const mark = (await readSchemaVersion(database)) === null ? null : await readMark(database);
  if (mark === null) return null;
  using connection = new Database(file, { readwrite: true, create: false });
  connection.run(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
  connection.run("PRAGMA synchronous = FULL");
  connection.run(UNMARK);
  return mark.to;
}
