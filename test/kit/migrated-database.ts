/** Makes the schema by running every SQLite migration, not from migrations/schema/sqlite.sql, which may be older than a new migration. */
import { Database } from "bun:sqlite";
import { SQLITE_MIGRATIONS } from "../../src/store/migrate/migrations.ts";
import { runMigration } from "../../src/store/sqlite/migration-rehearsal.ts";

/** Opens a database in memory after all migrations. The caller closes it. */
export function openMigrated(): Database {
  const database = new Database(":memory:");
  database.run("CREATE TABLE schema_migration (number INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at INTEGER NOT NULL, hash TEXT)");
  for (const { sql } of SQLITE_MIGRATIONS) runMigration(database, sql);
  return database;
}
