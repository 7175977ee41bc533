/** Access to the database of a test's store as another process has it: it reads, writes and breaks the tables, on SQLite and PostgreSQL. */
import { Database } from "bun:sqlite";
import type { Clock } from "../../src/base/clock.ts";
import type { DatabaseUrl } from "../../src/base/database-url.ts";
import { type SqlValue, type Store, StoreUnavailable, type Topic } from "../../src/store/port.ts";
import { PostgresConnection } from "../../src/store/postgres/connection.ts";
import { CHANGES_CHANNEL } from "../../src/store/postgres/notification.ts";
import { openPostgres } from "../../src/store/postgres/postgres.ts";
import { followBlocks } from "../../src/store/sqlite/index-hint.ts";
import { openSqlite } from "../../src/store/sqlite/sqlite.ts";

export interface DirectDatabase {
  /** Runs a statement as another process does. An open store has received its change notification once this resolves. */
  run(sql: string, ...values: SqlValue[]): Promise<void>;
  /** Opens the store as another process does. */
  open(clock: Clock): Promise<Store>;
  /** Returns the query plan, its steps separated by `; `. */
  explain(sql: string): Promise<string>;
  /** Returns the tables, each with the columns that a statement can write. */
  tables(): Promise<ReadonlyMap<string, readonly Column[]>>;
  /** Runs statements in one transaction, in which the database checks only unique keys. */
  runUnchecked(statements: readonly (readonly [sql: string, values: readonly SqlValue[]])[]): Promise<void>;
  /** Makes every `INSERT` into the table, or `DELETE` from it, fail with this message until `fix`. `where` limits this to matching rows. */
  breakWrites(what: "INSERT" | "DELETE", table: string, message: string, where?: string): Promise<void>;
  fix(table: string): Promise<void>;
  /**
   * Leaves space on the store's disk for about this many rows of 4 kB. On PostgreSQL only inserts into this table fail after that. The returned
   * function frees the disk again.
   */
  fillDisk(store: Store, more: { table: string; rows: number }): Promise<{ freeSpace: () => Promise<void> }>;
  /** Makes every write of the store fail while `work` runs. */
  whileUnwritable(work: () => Promise<void>): Promise<void>;
}

interface Column {
  name: string;
  type: "number" | "text" | "bytes";
}

export function openDirectDatabase(at: { file: string } | { database: DatabaseUrl }, store: () => Store): DirectDatabase {
  return "file" in at ? besideFile(at.file) : besidePostgres(at.database, store);
}

function besideFile(file: string): DirectDatabase {
  const exec = async (sql: string): Promise<void> => {
    using connection = new Database(file, { readwrite: true });
    connection.exec(sql);
  };
  return {
    async run(sql, ...values) {
      using connection = new Database(file, { readwrite: true });
      connection.query(sql).run(...values);
    },
    open: (clock) => openSqlite(file, { clock }),
    async tables() {
      using connection = new Database(file);
      const rows = connection
        .query<{ tbl: string; name: string; type: string }, []>(
          "SELECT m.name AS tbl, c.name, c.type FROM sqlite_master m, pragma_table_xinfo(m.name) c WHERE m.type = 'table' AND c.hidden = 0 ORDER BY 1, c.cid",
        )
        .all();
      return groupColumns(rows);
    },
    async runUnchecked(statements) {
      using connection = new Database(file, { readwrite: true });
      for (const pragma of ["foreign_keys = OFF", "ignore_check_constraints = ON", "busy_timeout = 5000"]) connection.exec(`PRAGMA ${pragma}`);
      connection.transaction(() => {
        for (const [sql, values] of statements) connection.query(sql).run(...values);
      })();
    },
    // An EXPLAIN leaves a Bun connection's next reads on an old snapshot, so it gets a separate connection.
    async explain(sql) {
      using connection = new Database(file);
      const steps = connection.query<{ detail: string }, []>(followBlocks(`EXPLAIN QUERY PLAN ${sql}`)).all();
      return steps.map((step) => step.detail).join("; ");
    },
    breakWrites: (what, table, message, where) =>
      exec(
        `CREATE TRIGGER broken_${table} BEFORE ${what} ON ${table} ${where === undefined ? "" : `WHEN ${where}`} BEGIN SELECT RAISE(ABORT, '${message}'); END`,
      ),
    fix: (table) => exec(`DROP TRIGGER broken_${table}`),
    async fillDisk(store, { rows }) {
      const [pages] = await store.read((tx) => tx.all<{ page_count: number }>("PRAGMA page_count"));
      // The limit applies only to the connection that sets it, so the store's own connection sets it.
      const limit = (count: number) => store.write("app", (tx) => tx.get(`PRAGMA max_page_count = ${count}`));
      await limit((pages?.page_count ?? 0) + rows);
      return { freeSpace: async () => void (await limit(1_000_000)) };
    },
    async whileUnwritable(work) {
      const other = new Database(file);
      other.exec("BEGIN IMMEDIATE");
      try {
        await work();
      } finally {
        other.exec("ROLLBACK");
        other.close();
      }
    },
  };
}

function groupColumns(rows: readonly { tbl: string; name: string; type: string }[]): ReadonlyMap<string, readonly Column[]> {
  const typeOf = (word: string) => (/^TEXT$/i.test(word) ? "text" : /^(BLOB|bytea)$/i.test(word) ? "bytes" : "number");
  const tables = new Map<string, Column[]>();
  for (const { tbl, name, type } of rows) tables.set(tbl, [...(tables.get(tbl) ?? []), { name, type: typeOf(type) }]);
  return tables;
}

/** Waits until the store has received the notifications of this connection. PostgreSQL delivers them in order. */
async function untilHeard(connection: PostgresConnection, store: Store): Promise<void> {
  const isOpen = await store.read(async () => true).catch((error) => !(error instanceof StoreUnavailable));
  if (!isOpen) return;
  const mark = `heard ${crypto.randomUUID()}` as Topic;
  const heard = Promise.withResolvers<void>();
  const stop = store.listen(() => heard.resolve(), [mark]);
  await connection.run("SELECT pg_notify(?1, ?2)", CHANGES_CHANNEL, JSON.stringify({ topics: { [mark]: null } }));
  await heard.promise;
  stop();
}

function besidePostgres(database: DatabaseUrl, store: () => Store): DirectDatabase {
  const use = async <Result>(work: (connection: PostgresConnection) => Promise<Result>): Promise<Result> => {
    const connection = await PostgresConnection.open(database, "psql");
    try {
      return await work(connection);
    } finally {
      await connection.close();
    }
  };
  const script = async (sql: string): Promise<void> => {
    await use((connection) => connection.script(sql));
  };
  /** Creates a trigger that raises an error. A `when` that is not empty limits it to matching rows. */
  const refuse = (name: string, on: string, { message, state, when }: { message: string; state: string; when: string }) =>
    script(
      `CREATE FUNCTION ${name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ${when} RAISE EXCEPTION '${message}' USING ERRCODE = '${state}'; ${when === "" ? "" : "END IF;"} RETURN NEW; END $$;
       CREATE TRIGGER ${name} BEFORE ${on} EXECUTE FUNCTION ${name}()`,
    );
  const fix = (name: string) => script(`DROP FUNCTION ${name} CASCADE`);
  return {
    run: async (sql, ...values) => {
      await use(async (connection) => {
        await connection.run(sql, ...values);
        await untilHeard(connection, store());
      });
    },
    open: (clock) => openPostgres(database, { clock }),
    tables: () =>
      use(async (connection) => {
        const rows = await connection.all<{ tbl: string; name: string; type: string }>(
          `SELECT table_name AS tbl, column_name AS name, data_type AS type FROM information_schema.columns
           WHERE table_schema = 'public' AND is_generated = 'NEVER' ORDER BY table_name, ordinal_position`,
        );
        return groupColumns(rows);
      }),
    runUnchecked: (statements) =>
      use(async (connection) => {
        await connection.script(
          `DO $$ DECLARE one record; BEGIN
             FOR one IN SELECT conrelid::regclass AS tbl, conname FROM pg_constraint WHERE contype = 'c' AND connamespace = 'public'::regnamespace
             LOOP EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', one.tbl, one.conname); END LOOP;
           END $$;
           SET session_replication_role = replica; BEGIN`,
        );
        for (const [sql, values] of statements) await connection.run(sql, ...values);
        await connection.script("COMMIT");
      }),
    explain: (sql) =>
      use(async (connection) => {
        // Tests have small tables, for which the planner would read every row.
        await connection.script("SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off");
        // Earlier tests filled pages of the pooled database that a new one does not have.
        await connection.script("VACUUM (ANALYZE)");
        const steps = await connection.all<Record<string, string>>(`EXPLAIN (COSTS OFF) ${sql}`);
        return steps.map((step) => Object.values(step)[0]?.trim()).join("; ");
      }),
    breakWrites: (what, table, message, where) =>
      refuse(`broken_${table}`, `${what} ON ${table} FOR EACH ROW`, {
        message,
        state: "P0001",
        when: where === undefined ? "" : `IF ${where} THEN`,
      }),
    fix: (table) => fix(`broken_${table}`),
    async fillDisk(store, { table, rows }) {
      const before = await store.read((tx) => tx.get<{ count: number }>(`SELECT count(*) AS count FROM ${table}`));
      const when = `IF (SELECT count(*) FROM ${table}) >= ${(before?.count ?? 0) + rows} THEN`;
      await refuse("disk_is_full", `INSERT ON ${table} FOR EACH ROW`, {
        message: "could not extend file: No space left on device",
        state: "53100",
        when,
      });
      return { freeSpace: () => fix("disk_is_full") };
    },
    async whileUnwritable(work) {
      // A transaction updates this table only when it takes the writer lock over from another node.
      await script("UPDATE writer_turn SET node = ''");
      await refuse("unwritable", "UPDATE ON writer_turn FOR EACH STATEMENT", { message: "the disk is full", state: "53100", when: "" });
      try {
        await work();
      } finally {
        await fix("unwritable");
      }
    },
  };
}
