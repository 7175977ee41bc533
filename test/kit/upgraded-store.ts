/** Opens a store on each database as an earlier version left it. */
import { Database } from "bun:sqlite";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../src/base/clock.ts";
import { SQLITE_MIGRATIONS } from "../../src/store/migrate/migrations.ts";
import type { Store } from "../../src/store/port.ts";
import { openPostgres } from "../../src/store/postgres/postgres.ts";
import { openSqlite } from "../../src/store/sqlite/sqlite.ts";
import { olderDatabase } from "./older-postgres.ts";

const TABLE = "CREATE TABLE schema_migration (number INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at INTEGER NOT NULL)";

interface Upgrade {
  on: string;
  /** Opens a store with the tables of that schema and the rows of these statements. The statements must be valid on both databases. */
  open: (schema: number, statements: readonly string[]) => Promise<AsyncDisposable & { store: Store }>;
}

export const UPGRADES: readonly Upgrade[] = [
  {
    on: "a database file",
    async open(schema, statements) {
      const folder = mkdtempSync(join(tmpdir(), "relay-upgraded-"));
      const file = join(folder, "relay.db");
      const old = new Database(file, { create: true, readwrite: true });
      old.run("PRAGMA journal_mode = WAL");
      old.run(TABLE);
      for (const { number, name, sql } of SQLITE_MIGRATIONS.filter((one) => one.number <= schema)) {
        old.run(sql);
        old.run("INSERT INTO schema_migration VALUES (?1, ?2, 0)", [number, name]);
      }
      for (const statement of statements) old.run(statement);
      old.close();
      const store = await openSqlite(file, { clock: systemClock });
      return {
        store,
        async [Symbol.asyncDispose]() {
          await store.close();
          rmSync(folder, { recursive: true });
        },
      };
    },
  },
  {
    on: "PostgreSQL",
    async open(schema, statements) {
      const older = await olderDatabase(
        schema,
        statements.map((statement) => statement.replace(/\bx'([0-9a-f]*)'/g, "'\\x$1'::bytea")),
      );
      const store = await openPostgres(older.place, { clock: systemClock });
      return {
        store,
        async [Symbol.asyncDispose]() {
          await store.close();
          await older[Symbol.asyncDispose]();
        },
      };
    },
  },
];
