/**
 * PostgreSQL's schema: one file that makes all of it, then numbered migrations side by side with SQLite's, each applied in one transaction under
 * a lock of their own, so that of several nodes that start at once one migrates and the others wait. A database written by a newer version is
 * refused, never touched.
 */
import type { Clock } from "../ground/clock.ts";
import { MigrationRefused, SCHEMA_VERSION } from "./migrate.ts";
import { MOVED_NUMBER, refuseMoved } from "./moved-mark.ts";
import type { PostgresConnection } from "./postgres-connection.ts";
import { POSTGRES_MIGRATIONS } from "./postgres-schema.ts";

/** Of the advisory lock of who migrates: another one than the writers'. */
const MIGRATION_LOCK = 0x72656c62;

/** Brings the database to this executable's schema. `onMigrate` is told before it is changed, and by what it throws it is not. Throws StoreUnavailable or MigrationRefused. */
export async function migratePostgres(
  connection: PostgresConnection,
  clock: Clock,
  onMigrate: (schema: { from: number; to: number }) => void = () => undefined,
): Promise<void> {
  // What waits for another node's migration waits as long as it takes.
  await connection.script(
    "SET lock_timeout = 0; SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0",
  );
  if ((await readSchema(connection)) === SCHEMA_VERSION) return;
  await connection.script(`BEGIN; SELECT pg_advisory_xact_lock(${MIGRATION_LOCK})`);
  try {
    const current = await readSchema(connection);
    if (current > SCHEMA_VERSION)
      throw new MigrationRefused(
        `The database was written by a newer version (schema ${current}, this executable knows ${SCHEMA_VERSION}): start that version, or restore a dump from before its migration.`,
      );
    if (current < SCHEMA_VERSION) onMigrate({ from: current, to: SCHEMA_VERSION });
    if (current === 0)
      await connection.script(
        'CREATE TABLE IF NOT EXISTS schema_migration (number bigint PRIMARY KEY, name text COLLATE "C" NOT NULL, applied_at bigint NOT NULL)',
      );
    for (const { number, name, sql } of POSTGRES_MIGRATIONS) {
      if (number <= current) continue;
      await connection.script(sql);
      await connection.run(
        "INSERT INTO schema_migration (number, name, applied_at) VALUES (?1, ?2, ?3)",
        number,
        name,
        clock.now(),
      );
    }
    await connection.script("COMMIT");
  } catch (error) {
    if (!connection.lost) await connection.script("ROLLBACK");
    throw error;
  }
}

/** The number of its newest migration; 0: it has no schema yet. */
async function readSchema(connection: PostgresConnection): Promise<number> {
  const there = await connection.get("SELECT 1 WHERE to_regclass('schema_migration') IS NOT NULL");
  if (there === null) return 0;
  await refuseMoved(connection);
  const row = await connection.get<{ number: number | null }>(
    `SELECT max(number) AS number FROM schema_migration WHERE number < ${MOVED_NUMBER}`,
  );
  return row?.number ?? 0;
}
