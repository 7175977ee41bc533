/** Implements both ends of a move on PostgreSQL, in one transaction under the writer lock of all nodes. Triggers are off in that transaction. */

import { type Clock, sleep, systemClock } from "../../base/clock.ts";
import type { DatabaseUrl } from "../../base/database-url.ts";
import { StoreUnavailable } from "../port.ts";
import {
  LET_WRITE,
  MARK,
  NO_MORE_WRITES,
  readMark,
  requireNotTransferred,
  UNMARK,
} from "../transfer/mark.ts";
import {
  type Cell,
  moves,
  quote,
  rowsAtOnce,
  type TargetEnd,
  TransferRefused,
  type TransferTable,
} from "../transfer/tables.ts";
import { PostgresConnection } from "./connection.ts";
import { AS_LONG_AS_IT_TAKES } from "./connection-option.ts";
import { requireFitServer } from "./inspection.ts";
import { migratePostgres } from "./migrate.ts";
import { WRITER_LOCK } from "./writer-lock.ts";

/** The time to watch a node that may have ended. A live node updates its row more often than this. */
const NODE_WITHIN_MS = 10_000;
const LOOK_EVERY_MS = 1_000;

export class PostgresEnd implements TargetEnd {
  readonly shown: string;
  readonly isNew = true;
  readonly #connection: PostgresConnection;

  private constructor(shown: string, connection: PostgresConnection) {
    this.shown = shown;
    this.#connection = connection;
  }

  /**
   * Opens the database and brings it to this version's schema. Throws TransferRefused if a node runs on it, DatabaseTransferred, MigrationRefused or
   * StoreUnavailable.
   */
  static async open(url: DatabaseUrl, clock: Clock): Promise<PostgresEnd> {
    const connection = await PostgresConnection.open(url, "relay move");
    try {
      await requireFitServer(connection);
      await migratePostgres(connection, clock);
      await connection.script(
        `SET lock_timeout = '15s'; SET idle_in_transaction_session_timeout = 0; ${AS_LONG_AS_IT_TAKES}`,
      );
      await requireNotTransferred(connection);
      const dead = await rejectNodes(connection, String(url));
      // Locks for the session, so that the transaction's snapshot begins after the lock.
      await connection.script(`SELECT pg_advisory_lock(${WRITER_LOCK})`);
      await connection.script("BEGIN ISOLATION LEVEL REPEATABLE READ");
      rejectOther(await connection.all<Node>(NODES), dead, String(url));
    } catch (error) {
      await connection.close();
      throw error;
    }
    return new PostgresEnd(String(url), connection);
  }

  /** Removes the mark. Returns where the rows were moved to, or null if they were not moved. */
  static async unmark(url: DatabaseUrl): Promise<string | null> {
    const connection = await PostgresConnection.open(url, "relay move");
    try {
      const exists = await connection.get("SELECT 1 WHERE to_regclass('schema_migration') IS NOT NULL");
      const mark = exists === null ? null : await readMark(connection);
      if (mark !== null) await connection.script(`BEGIN; ${UNMARK}; ${LET_WRITE}; COMMIT`);
      return mark?.to ?? null;
    } finally {
      await connection.close();
    }
  }

  /** Throws TransferRefused unless the database has exactly these tables and columns. */
  async requireTables(tables: readonly TransferTable[]): Promise<void> {
    const rows = await this.#connection.all<{ table: string; column: string }>(
      `SELECT c.table_name AS "table", c.column_name AS "column" FROM information_schema.columns AS c
       JOIN information_schema.tables AS t ON t.table_schema = c.table_schema AND t.table_name = c.table_name
       WHERE c.table_schema = current_schema() AND t.table_type = 'BASE TABLE' AND c.is_generated = 'NEVER'`,
    );
    const existing = new Set(
      rows.filter(({ table }) => moves(table)).map(({ table, column }) => `${table}.${column}`),
    );
    const wanted = new Set(
      tables.flatMap(({ name, columns }) => columns.map((column) => `${name}.${column.name}`)),
    );
    const [other] = [...existing.symmetricDifference(wanted)];
    if (other !== undefined)
      throw new TransferRefused(
        `The tables of ${this.shown} differ from those of this version (${other}), so another program changed them: name a new database.`,
      );
  }

  async count({ name }: TransferTable): Promise<number> {
    const row = await this.#connection.get<{ count: number }>(`SELECT count(*) AS count FROM ${quote(name)}`);
    return row?.count ?? 0;
  }

  async *rows(table: TransferTable): AsyncGenerator<readonly Cell[][]> {
    const { name, columns, order } = table;
    const cells = columns.map(({ name: column, kind }, at) => {
      const cell = quote(column);
      return `${kind === "integer" ? `${cell}::text` : cell} AS c${at}`;
    });
    await this.#connection.script(
      `DECLARE moved NO SCROLL CURSOR FOR SELECT ${cells.join(", ")} FROM ${quote(name)} ORDER BY ${order.map(quote).join(", ")}`,
    );
    for (;;) {
      const found = await this.#connection.all<Record<string, Cell>>(
        `FETCH FORWARD ${rowsAtOnce(table)} FROM moved`,
      );
      if (found.length === 0) break;
      yield found.map((row) => columns.map((_, at) => row[`c${at}`] ?? null));
    }
    await this.#connection.script("CLOSE moved");
  }

  async lastNumber({ name, order: [column = ""] }: TransferTable): Promise<string | null> {
    const row = await this.#connection.get<{ sequence: string }>(
      "SELECT pg_get_serial_sequence(?1, ?2) AS sequence",
      quote(name),
      column,
    );
    if (row === null) return null;
    const last = await this.#connection.get<{ last: string }>(
      `SELECT last_value::text AS last FROM ${row.sequence} WHERE is_called`,
    );
    return last?.last ?? null;
  }

  /** Replaces U+0000, which PostgreSQL cannot store in a text. */
  asHeld(text: string): string {
    return text.includes("\0") ? text.replaceAll("\0", "\ufffd") : text;
  }

  async begin(tables: readonly TransferTable[]): Promise<void> {
    for (const { name } of tables)
      await this.#connection.script(`ALTER TABLE ${quote(name)} DISABLE TRIGGER USER`);
    await this.#connection.script("DELETE FROM event_last");
  }

  /** Sends all rows as one value: a JSON list of lists, with bytes in base64. */
  async add({ name, columns }: TransferTable, rows: readonly Cell[][]): Promise<void> {
    const written = JSON.stringify(
      rows.map((row) =>
        row.map((cell) => (cell instanceof Uint8Array ? Buffer.from(cell).toString("base64") : cell)),
      ),
    );
    const cells = columns.map(({ kind }, at) => {
      if (kind === "bytes") return `decode(given.item ->> ${at}, 'base64')`;
      return kind === "integer" ? `(given.item ->> ${at})::bigint` : `given.item ->> ${at}`;
    });
    await this.#connection.run(
      `INSERT INTO ${quote(name)} (${columns.map((column) => quote(column.name)).join(", ")})
       SELECT ${cells.join(", ")} FROM json_array_elements(?1::text::json) AS given (item)`,
      written,
    );
  }

  async setLastNumber({ name, order: [column = ""] }: TransferTable, last: string): Promise<void> {
    await this.#connection.run(
      "SELECT setval(pg_get_serial_sequence(?1, ?2), ?3::text::bigint)",
      quote(name),
      column,
      last,
    );
  }

  async settle(tables: readonly TransferTable[]): Promise<void> {
    for (const { name } of tables)
      await this.#connection.script(`ALTER TABLE ${quote(name)} ENABLE TRIGGER USER`);
    for (const table of tables.filter(({ counted }) => !counted)) await this.#numberOn(table);
    await this.#connection.run(CONTINUE_EVENTS);
  }

  /** Sets the sequences of identity columns, so that a new row gets the number after the greatest one. */
  async #numberOn({ name, columns }: TransferTable): Promise<void> {
    const numbered = await this.#connection.all<{ column: string }>(
      `SELECT column_name AS "column" FROM information_schema.columns
       WHERE table_schema = current_schema() AND table_name = ?1 AND is_identity = 'YES'`,
      name,
    );
    for (const { column } of numbered.filter((one) => columns.some((known) => known.name === one.column)))
      await this.#connection.run(
        `SELECT setval(pg_get_serial_sequence(?1, ?2), max(${quote(column)})) FROM ${quote(name)} HAVING count(*) > 0`,
        quote(name),
        column,
      );
  }

  async finish(): Promise<void> {
    await this.#commit();
    await this.#connection.script("ANALYZE");
  }

  async mark(shown: string, nowMs: number): Promise<void> {
    await this.#connection.run(MARK, shown, nowMs);
    await this.#connection.script(NO_MORE_WRITES);
    await this.#commit();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#connection.close();
  }

  async #commit(): Promise<void> {
    const [answer] = await this.#connection.script("COMMIT");
    if (answer?.command === "ROLLBACK")
      throw new StoreUnavailable("The database rolled back the transaction.");
  }
}

/** Sets the sequence behind the number of every event that there ever was. */
const CONTINUE_EVENTS = `SELECT setval('event_number', last) FROM (
  SELECT greatest(event_last.seq, (SELECT max(seq) FROM event)) AS last FROM event_last) AS used WHERE last > 0`;

interface Node {
  id: string;
  host: string;
  pid: number;
  seenAt: number;
}

const NODES = `SELECT id, host, pid, seen_at AS "seenAt" FROM node WHERE seen_at > now_ms() - ${NODE_WITHIN_MS}`;

/**
 * Throws TransferRefused if a node runs. A node that stopped has deleted its row. Each node with a row is watched until a live one would have updated
 * it. Returns the dead nodes.
 */
async function rejectNodes(connection: PostgresConnection, shown: string): Promise<readonly Node[]> {
  const first = await connection.all<Node>(NODES);
  for (let now = first, waited = 0; now.length > 0 && waited < NODE_WITHIN_MS; waited += LOOK_EVERY_MS) {
    // Waits in real time under any clock, because the nodes do.
    await sleep(systemClock, LOOK_EVERY_MS);
    now = await connection.all<Node>(NODES);
    rejectOther(now, first, shown);
  }
  return first;
}

/** Throws TransferRefused if a node is new or has updated its row since `known` was read. */
function rejectOther(now: readonly Node[], known: readonly Node[], shown: string): void {
  const alive = now.find(({ id, seenAt }) => known.find((one) => one.id === id)?.seenAt !== seenAt);
  if (alive === undefined) return;
  throw new TransferRefused(
    `A server runs on ${shown} (process ${alive.pid} of ${alive.host}): stop every one, then move.`,
  );
}
