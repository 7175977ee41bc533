/**
 * Tries an upgrade on an empty in-memory copy of the tables. A statement that would fail, or unexpected tables afterwards, are found before the
 * database changes.
 */
import { Database } from "bun:sqlite";
import type { Migration } from "../migrate/migration-record.ts";
import { listDifferences, readSqliteShape, TABLES } from "../migrate/schema-difference.ts";

/** Lists what would go wrong: the migration that fails, or the differences from this version's tables afterwards. Empty for a safe upgrade. */
export async function rehearseUpgrade(
  tables: readonly { sql: string }[],
  due: readonly Migration[],
): Promise<string[]> {
  using copy = new Database(":memory:");
  for (const { sql } of tables) copy.run(sql);
  for (const { number, name, sql } of due) {
    try {
      runMigration(copy, sql);
    } catch (error) {
      return [`step ${number} (${name}) fails with "${(error as Error).message}"`];
    }
  }
  const all = async <Row>(sql: string): Promise<Row[]> => copy.query<Row, []>(sql).all();
  const found = await readSqliteShape({ all, get: async () => null });
  return listDifferences(found, TABLES.sqlite);
}

/** Selects the statements that created the tables, indexes and triggers, in an order in which they can run again. */
export const TABLE_STATEMENTS =
  "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY type <> 'table', rowid";

const ADD_WHERE_MISSING = /^ALTER TABLE (\w+) ADD COLUMN IF NOT EXISTS (\w+) /gm;

/** Runs a migration's statements. SQLite has no ADD COLUMN IF NOT EXISTS, so such a line runs only if the column is missing. */
export function runMigration(database: Database, sql: string): void {
  const hasColumn = database.query("SELECT 1 FROM pragma_table_xinfo(?1) WHERE name = ?2");
  const fitting = sql.replaceAll(ADD_WHERE_MISSING, (_line, table: string, column: string) =>
    hasColumn.get(table, column) === null ? `ALTER TABLE ${table} ADD COLUMN ${column} ` : "-- ",
  );
  hasColumn.finalize();
  database.run(fitting);
}
