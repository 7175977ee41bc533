/**
 * Defines what a move copies: the tables with the service's rows, their columns, and the checksum that compares both ends. Tables about the database
 * itself (migrations, deduplication keys, leases) do not move.
 */

/** A value of a row. An integer is a string of its digits, so that none is rounded. */
export type Cell = string | Uint8Array | null;

export interface TransferTable {
  name: string;
  columns: readonly { name: string; kind: "integer" | "text" | "bytes" }[];
  /** The columns by which both ends sort the rows. */
  order: readonly string[];
  /** True if row numbers are never used twice. The last number then moves too. */
  counted: boolean;
}

/** Tables that belong to one database and do not move. */
const OWN: ReadonlySet<string> = new Set([
  "schema_migration",
  "capture_switch",
  "runner_lease",
  "dedupe",
  "dedupe_log",
  "dedupe_page",
  "dedupe_segment",
  "event_block",
  "ready_block",
  "limit_window",
  "node",
  "node_lease",
  "writer_commit",
  "writer_scope",
  "writer_turn",
]);

export function moves(table: string): boolean {
  return !OWN.has(table) && !table.startsWith("sqlite_");
}

/** Returns how many rows are read and written together. Rows of files can hold megabytes. */
export function rowsAtOnce({ name }: TransferTable): number {
  return name === "file" ? 8 : 500;
}

/** A move that was refused, with a sentence for a person. Neither database was changed. */
export class TransferRefused extends Error {}

/** The checksum of a table's rows in order. */
export interface TableSum {
  rows: number;
  digest: string;
}

/** Computes the checksum. The same rows in the same order have the same checksum. */
export class RowSum {
  readonly #hash = new Bun.CryptoHasher("sha256");
  #rows = 0;

  add(row: readonly Cell[]): void {
    this.#rows += 1;
    for (const cell of row) {
      if (cell === null) this.#hash.update("-");
      else {
        const length = typeof cell === "string" ? Buffer.byteLength(cell) : cell.length;
        this.#hash.update(`${typeof cell === "string" ? "t" : "b"}${length}:`);
        this.#hash.update(cell);
      }
    }
  }

  get sum(): TableSum {
    return { rows: this.#rows, digest: this.#hash.copy().digest("hex") };
  }
}

/** A database that rows are moved from, or were moved to. No other process writes to it while it is open. */
export interface SourceEnd extends AsyncDisposable {
  /** The database's name for messages, without its password. */
  readonly shown: string;
  count(table: TransferTable): Promise<number>;
  /** Yields the rows in parts, in the table's order. */
  rows(table: TransferTable): AsyncIterable<readonly Cell[][]>;
  /** Returns the last row number that a counted table assigned, or null if there is none. */
  lastNumber(table: TransferTable): Promise<string | null>;
  /** Marks the database as moved. No service starts on it until the mark is removed. */
  mark(shown: string, nowMs: number): Promise<void>;
}

export interface TargetEnd extends SourceEnd {
  /** True if rows may be written to it. */
  readonly isNew: boolean;
  /** Returns the text as the target stores it, with each character that it cannot store replaced. */
  asHeld(text: string): string;
  /** Prepares for the first row: deletes the rows of a new database and turns its triggers off. */
  begin(tables: readonly TransferTable[]): Promise<void>;
  add(table: TransferTable, rows: readonly Cell[][]): Promise<void>;
  setLastNumber(table: TransferTable, last: string): Promise<void>;
  /** Runs after the last row. Turns the triggers on again, so that the database can be read and used. */
  settle(tables: readonly TransferTable[]): Promise<void>;
  /** Makes the move permanent. */
  finish(): Promise<void>;
}

/** Quotes the name of a table or column, as both databases do. */
export function quote(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}
