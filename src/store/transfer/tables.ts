/**
 * What moves from one database to the other: every table with rows of the service, its columns as both have them, and the sum by which two ends are
 * compared. What a database keeps for itself (its migrations, its memory of keys, who runs it) does not move.
 */

/** An integer as its digits, so that none is rounded. */
export type Cell = string | Uint8Array | null;

export interface TransferTable {
  name: string;
  columns: readonly { name: string; kind: "integer" | "text" | "bytes" }[];
  /** In this order both ends read their rows. */
  order: readonly string[];
  /** Its rows' numbers are never given twice: the last one moves too. */
  counted: boolean;
}

/** A database's own, on either side. */
const OWN: ReadonlySet<string> = new Set([
  "schema_migration",
  "capture_switch",
  "runner_lease",
  "dedupe",
  "event_block",
  "key_piece",
  "key_recent",
  "key_run",
  "limit_window",
  "node",
  "node_lease",
  "writer_commit",
  "writer_turn",
]);

export function moves(table: string): boolean {
  return !OWN.has(table) && !table.startsWith("sqlite_");
}

/** Rows that are read and written together; those of files hold megabytes. */
export function rowsAtOnce({ name }: TransferTable): number {
  return name === "file" ? 8 : 500;
}

/** Refused in a sentence; neither database is changed. */
export class TransferRefused extends Error {}

/** Of a table's rows, in order. */
export interface TableSum {
  rows: number;
  digest: string;
}

/** Adds up rows: the same rows in the same order have the same sum. */
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

/** A database that rows are moved from, or were moved to. While it is open nobody else writes to it. */
export interface SourceEnd extends AsyncDisposable {
  /** For people; no password. */
  readonly shown: string;
  count(table: TransferTable): Promise<number>;
  /** In parts, in the table's order. */
  rows(table: TransferTable): AsyncIterable<readonly Cell[][]>;
  /** The last number that was given to a row of a counted table; null: none yet. */
  lastNumber(table: TransferTable): Promise<string | null>;
  /** The rows are elsewhere from now on: no service begins on this database any more, until `unmark`. */
  mark(shown: string, nowMs: number): Promise<void>;
}

export interface TargetEnd extends SourceEnd {
  /** Whether rows may be written to it at all. */
  readonly isNew: boolean;
  /** How a text stands there: a character that it cannot hold is replaced. */
  asHeld(text: string): string;
  /** Before the first row: what its own making put there is taken away, and nothing happens by itself while rows come. */
  begin(tables: readonly TransferTable[]): Promise<void>;
  add(table: TransferTable, rows: readonly Cell[][]): Promise<void>;
  setLastNumber(table: TransferTable, last: string): Promise<void>;
  /** After the last row: it is as a service finds it, and may be read again. */
  settle(tables: readonly TransferTable[]): Promise<void>;
  /** All of it is there for good. */
  finish(): Promise<void>;
}
