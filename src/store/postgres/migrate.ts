/**
 * PostgreSQL's schema: one file that makes all of it, then numbered migrations side by side with SQLite's, each applied in one transaction under
 * a lock of their own, so that of several nodes that start at once one migrates and the others wait. A database written by a newer version is
 * refused, never touched.
 */
import { type Clock, Loop, systemClock } from "../../base/clock.ts";
import type { DatabaseUrl } from "../../base/database-url.ts";
import {
  type AppliedMigration,
  hashMigration,
  listEdited,
  RECORD_HASH,
} from "../migrate/migration-record.ts";
import { differs, listDifferences, TABLES } from "../migrate/schema-difference.ts";
import type { Reader } from "../port.ts";
import { MigrationRefused, SCHEMA_VERSION } from "../sqlite/migrate.ts";
import { MOVED_NUMBER, refuseMoved } from "../transfer/mark.ts";
import { PostgresConnection } from "./connection.ts";
import { AS_LONG_AS_IT_TAKES } from "./connection-option.ts";
import { causesOf } from "./error.ts";
import { refuseUnfit, UnfitServer } from "./inspection.ts";
import { LOOK_EVERY_MS, PostgresSilence } from "./liveness.ts";
import { POSTGRES_MIGRATIONS } from "./schema.ts";
import { readPostgresShape } from "./schema-shape.ts";
import { WRITER_LOCK } from "./writer-lock.ts";

/** Of the advisory lock of who migrates: another one than the writers'. */
const MIGRATION_LOCK = 0x72656c62;

/** One that waits for the others' migration, and one whose statement runs long, waits as long as it takes. */
const ALONE = `SET lock_timeout = 0; SET idle_in_transaction_session_timeout = 15000; ${AS_LONG_AS_IT_TAKES}`;
/** A process that is gone, or cut off, holds its locks no longer than this; not every server that speaks PostgreSQL's protocol knows the words. */
const NOTICED =
  "SET client_connection_check_interval = 2000; SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3";
/** Who waits for a table's lock holds up whoever comes behind: longer than any statement of a node takes, and no longer. */
const LOCKS = "SET LOCAL lock_timeout = 35000";
/** A writer that had read a table would wait for the migration to write to it, and the migration for what it had read. */
const ALONE_WRITING = `SELECT pg_advisory_xact_lock(${WRITER_LOCK})`;
/** By SQLSTATE: a table, a function or another thing of the name is there. */
const NAME_TAKEN = /^(?:42P07|42723|42710)$/;
/** By SQLSTATE: a statement names a table, column or function that is missing, is there already, or has another type. */
const UNFIT_TABLES = /^42(?:701|703|704|710|723|804|883|P01|P07)$/;
const STOPPED = "The start was ended before the database was brought to this version's schema.";

export interface PostgresMigrationWatch {
  /** Throws what stands against a migration of what is there, before anything is changed. */
  look?: (tx: Reader) => Promise<void>;
  /** Told before the database is changed, and by what it throws it is not; `from` 0: an empty one. */
  onMigrate?: (schema: { from: number; to: number }) => void;
  /** Told of each step as it begins; `step` null: it waits until no other node migrates. */
  onMigrationStep?: (at: { from: number; step: string | null }) => void;
  /** Ends it. */
  stopped?: Promise<unknown> | undefined;
}

/** The same over a connection of its own, which is given up where the server falls silent. Throws UnfitServer too. */
export async function bringToSchema(
  place: DatabaseUrl,
  clock: Clock,
  migration: PostgresMigrationWatch,
): Promise<void> {
  const connection = await PostgresConnection.open(place, "relay migration");
  const silence = new PostgresSilence(place, { isPatient: true });
  const looks = new Loop({
    clock: systemClock,
    everyMs: LOOK_EVERY_MS,
    turn: async () => silence.look([connection]),
    onError(error) {
      throw error;
    },
  });
  void looks.start(LOOK_EVERY_MS);
  void migration.stopped?.then(() => connection.giveUp(STOPPED));
  try {
    await refuseUnfit(connection);
    await migratePostgres(connection, clock, migration);
  } finally {
    await looks.stop();
    await connection.close();
  }
}

/**
 * Brings the database to this executable's schema. Throws StoreUnavailable, MigrationRefused of a newer database, and SchemaDiffers where the tables
 * are not those of their version; each leaves the database as it is.
 */
export async function migratePostgres(
  connection: PostgresConnection,
  clock: Clock,
  {
    look = async () => undefined,
    onMigrate = () => undefined,
    onMigrationStep = () => undefined,
  }: PostgresMigrationWatch = {},
): Promise<void> {
  const from = await readSchema(connection);
  if (from === SCHEMA_VERSION) return await requireTables(connection);
  if (from > 0 && from < SCHEMA_VERSION) await look(connection);
  onMigrationStep({ from, step: null });
  await connection.script(ALONE);
  await connection.script(NOTICED).catch((error: unknown) => {
    if (connection.lost) throw error;
  });
  await connection.script(`BEGIN; SELECT pg_advisory_xact_lock(${MIGRATION_LOCK}); ${LOCKS}`);
  try {
    const current = await readSchema(connection);
    if (current > SCHEMA_VERSION)
      throw new MigrationRefused(
        `The database was written by a newer version (schema ${current}, this executable knows ${SCHEMA_VERSION}): start that version, or restore a dump from before its migration.`,
      );
    if (current < SCHEMA_VERSION) onMigrate({ from: current, to: SCHEMA_VERSION });
    if (current === 0)
      await connection.script(
        'CREATE TABLE IF NOT EXISTS schema_migration (number bigint PRIMARY KEY, name text COLLATE "C" NOT NULL, applied_at bigint NOT NULL, hash text COLLATE "C")',
      );
    for (const { number, name, sql } of POSTGRES_MIGRATIONS) {
      if (number <= current) continue;
      onMigrationStep({ from: current, step: name });
      await runMigration(connection, { number, name, sql }, current);
      await connection.run(
        "INSERT INTO schema_migration (number, name, applied_at) VALUES (?1, ?2, ?3)",
        number,
        name,
        clock.now(),
      );
    }
    for (const { number, sql } of POSTGRES_MIGRATIONS)
      await connection.run(RECORD_HASH, number, hashMigration(sql));
    if (current > 0) await requireTables(connection);
    await connection.script("COMMIT");
  } catch (error) {
    if (!connection.lost) await connection.script("ROLLBACK");
    throw from === 0 ? tellOthers(error) : error;
  }
}

/** Throws SchemaDiffers where a statement does not fit the tables of a used database. */
async function runMigration(
  connection: PostgresConnection,
  { number, name, sql }: (typeof POSTGRES_MIGRATIONS)[number],
  current: number,
): Promise<void> {
  try {
    await connection.script(`${ALONE_WRITING}; ${sql}`);
  } catch (error) {
    const [first] = [...causesOf(error)];
    if (current === 0 || typeof first?.errno !== "string" || !UNFIT_TABLES.test(first.errno)) throw error;
    throw differs([`step ${number} (${name}) fails with "${first.message}"`]);
  }
}

/** How the tables of a database with this executable's schema number differ from this executable's. `parts`: of indexes and triggers too. */
export async function listTableFaults(tx: Reader, options: { parts?: boolean } = {}): Promise<string[]> {
  const applied = await tx.all<AppliedMigration>(
    `SELECT * FROM schema_migration WHERE number < ${MOVED_NUMBER} ORDER BY number`,
  );
  return [
    ...listEdited(applied, POSTGRES_MIGRATIONS),
    ...listDifferences(await readPostgresShape(tx), TABLES.postgres, options),
  ];
}

async function requireTables(connection: PostgresConnection): Promise<void> {
  const faults = await listTableFaults(connection);
  if (faults.length > 0) throw differs(faults);
}

/** The schema begins where all its names are free. */
function tellOthers(error: unknown): unknown {
  const [first] = [...causesOf(error)];
  if (first === undefined || typeof first.errno !== "string" || !NAME_TAKEN.test(first.errno)) return error;
  const why = `The database cannot be taken. It holds what another program made: ${first.message}.`;
  return new UnfitServer(`${why} To do: give this service a database of its own.`, { cause: error });
}

/**
 * The number of its newest migration; 0: it has no schema yet. A session remembers names that it did not find, and hears what others made when it
 * locks a table: reading pg_class locks it. Without that, a node that waited for another's migration would not see the schema and make it again.
 */
async function readSchema(connection: PostgresConnection): Promise<number> {
  const there = await connection.get("SELECT 1 FROM pg_class WHERE oid = to_regclass('schema_migration')");
  if (there === null) return 0;
  await refuseMoved(connection);
  const row = await connection.get<{ number: number | null }>(
    `SELECT max(number) AS number FROM schema_migration WHERE number < ${MOVED_NUMBER}`,
  );
  return row?.number ?? 0;
}
