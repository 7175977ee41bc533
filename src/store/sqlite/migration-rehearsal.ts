/**
 * An upgrade of a SQLite database tried on an empty copy of its tables, in memory, before anything of the database is changed. A statement that would
 * fail, or tables that would come out otherwise than this version's, are found while the database is as it was.
 */
import { Database } from "bun:sqlite";
import { listDifferences, readSqliteShape, TABLES } from "../migrate/schema-difference.ts";

/** What would differ from this version's tables after the upgrade: a step that fails, or what is missing afterwards. None: it may be made. */
export async function rehearseUpgrade(
  tables: readonly { sql: string }[],
  due: readonly { number: number; name: string; sql: string }[],
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

/** The statements that made the tables, indexes and triggers of a database, in an order in which they run again. */
export const TABLE_STATEMENTS =
  "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY type <> 'table', rowid";

const ADD_WHERE_MISSING = /^ALTER TABLE (\w+) ADD COLUMN IF NOT EXISTS (\w+) /gm;

/** Runs a migration's statements. SQLite has no ADD COLUMN IF NOT EXISTS, so such a line runs where the column is missing. */
export function runMigration(database: Database, sql: string): void {
  const hasColumn = database.query("SELECT 1 FROM pragma_table_xinfo(?1) WHERE name = ?2");
  const fitting = sql.replaceAll(ADD_WHERE_MISSING, (_line, table: string, column: string) =>
    hasColumn.get(table, column) === null ? `ALTER TABLE ${table} ADD COLUMN ${column} ` : "-- ",
  );
  hasColumn.finalize();
  database.run(fitting);
}
