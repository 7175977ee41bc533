/**
 * Forward-only numbered migrations, embedded in the executable, each applied in one transaction, a new database's all in one.
 * A database written by a newer version is refused, never touched.
 */
import type { Clock } from "../ground/clock.ts";
import { MIGRATIONS, type Migration } from "./migration.ts";
import type { SqliteConnection } from "./sqlite-connection.ts";

export class MigrationRefused extends Error {}

/** The number of the newest migration this executable knows. */
export const SCHEMA_VERSION = MIGRATIONS.at(-1)?.number ?? 0;

/** Brings the database to this executable's schema; answers the numbers applied. `before` runs once if any is due on a used database, given the schema it has. */
export async function migrate(
  connection: SqliteConnection,
  clock: Clock,
  before?: (from: number) => Promise<void>,
): Promise<number[]> {
  connection.exec(
    "CREATE TABLE IF NOT EXISTS schema_migration (number INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at INTEGER NOT NULL)",
  );
  const current =
    (await connection.get<{ number: number | null }>("SELECT max(number) AS number FROM schema_migration"))
      ?.number ?? 0;
  if (current > SCHEMA_VERSION) {
    throw new MigrationRefused(
      `The database was written by a newer version (schema ${current}, this executable knows ${SCHEMA_VERSION}); use that version or restore a backup.`,
    );
  }
  const due = MIGRATIONS.filter((migration) => migration.number > current);
  if (due.length > 0 && current > 0 && before !== undefined) await before(current);
  // A new database gets its schema whole or not at all: a start that is killed leaves nothing that looks used.
  for (const together of current === 0 ? [due] : due.map((one) => [one]))
    apply(connection, together, clock.now());
  return due.map((migration) => migration.number);
}

/** One transaction. */
function apply(connection: SqliteConnection, migrations: readonly Migration[], nowMs: number): void {
  connection.exec("BEGIN IMMEDIATE");
  try {
    for (const { number, name, sql } of migrations) {
      const { database } = connection;
      // Another process was faster.
      if (database.query("SELECT 1 FROM schema_migration WHERE number = ?1").get(number) !== null) continue;
      database.exec(sql);
      database
        .query("INSERT INTO schema_migration (number, name, applied_at) VALUES (?1, ?2, ?3)")
        .run(number, name, nowMs);
    }
    connection.exec("COMMIT");
  } catch (error) {
    if (connection.inTransaction) connection.exec("ROLLBACK");
    throw error;
  }
}
