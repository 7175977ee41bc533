/**
 * Brings a PostgreSQL database to this executable's schema, in one transaction under an advisory lock. When several nodes start at once, one
 * migrates and the others wait. A database of a newer version is refused unchanged.
 */
import { type Clock, Loop, systemClock } from "../../base/clock.ts";
import type { DatabaseUrl } from "../../base/database-url.ts";
import {
  type AppliedMigration,
  listEdited,
  type Migration,
  RECORD_HASH,
} from "../migrate/migration-record.ts";
import { MigrationRefused, POSTGRES_MIGRATIONS, SCHEMA_VERSION } from "../migrate/migrations.ts";
import { differs, listDifferences, TABLES } from "../migrate/schema-difference.ts";
import type { Reader } from "../port.ts";
import { MOVED_NUMBER, requireNotTransferred } from "../transfer/mark.ts";
import { PostgresConnection } from "./connection.ts";
import { AS_LONG_AS_IT_TAKES } from "./connection-option.ts";
import { causesOf, UnfitServer } from "./error.ts";
import { requireFitServer } from "./inspection.ts";
import { LOOK_EVERY_MS, PostgresLiveness } from "./liveness.ts";
import { readPostgresShape } from "./schema-shape.ts";
import { WRITER_LOCK } from "./writer-lock.ts";

/** The number of the advisory lock for migrations. The writer lock has another number. */
const MIGRATION_LOCK = 0x72656c62;

/** Lifts the session's time limits, for a wait behind another node's migration and for a long statement. */
const NO_TIMEOUT = `SET lock_timeout = 0; SET idle_in_transaction_session_timeout = 15000; ${AS_LONG_AS_IT_TAKES}`;
/** Lets the server end the session of a dead or disconnected process soon, so that it frees its locks. Some compatible servers reject the settings. */
const DETECT_DISCONNECT =
  "SET client_connection_check_interval = 2000; SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3";
/** Limits the wait for a table's lock, because other sessions queue behind it. The limit is longer than any statement of a node. */
const TABLE_LOCK_TIMEOUT = "SET LOCAL lock_timeout = 35000";
/** Takes the writer lock before a migration's statements, because a writer that has read a table could otherwise deadlock with the migration. */
const TAKE_WRITER_LOCK = `SELECT pg_advisory_xact_lock(${WRITER_LOCK})`;
/** SQLSTATE codes of a table, function or other object whose name is taken. */
const NAME_TAKEN = /^(?:42P07|42723|42710)$/;
/** SQLSTATE codes of a table, column or function that is missing, already exists, or has another type. */
const UNFIT_TABLES = /^42(?:701|703|704|710|723|804|883|P01|P07)$/;
const STOPPED = "The start was stopped before the migration of the database ended.";

export interface PostgresMigrationOptions {
  /** Checks a used database before its migration. An error that it throws stops the migration, before the database changes. */
  check?: (tx: Reader) => Promise<void>;
  /** Runs before the database changes; `from` is 0 for an empty one. An error that it throws leaves the database unchanged. */
  onMigrate?: (schema: { from: number; to: number }) => void;
  /** Runs as each migration begins. `step` is null while this node waits for another node's migration. */
  onMigrationStep?: (at: { from: number; step: string | null }) => void;
  /** Ends the migration when it resolves. */
  stopped?: Promise<unknown> | undefined;
}

/** Migrates over its own connection, which is closed if the server stops responding. Throws as `migratePostgres` does, and UnfitServer. */
export async function migrateServer(
  place: DatabaseUrl,
  clock: Clock,
  migration: PostgresMigrationOptions,
): Promise<void> {
  const connection = await PostgresConnection.open(place, "relay migration");
  const silence = new PostgresLiveness(place, { isPatient: true });
  const looks = new Loop({
    clock: systemClock,
    everyMs: LOOK_EVERY_MS,
    turn: async () => silence.check([connection]),
    onError(error) {
      throw error;
    },
  });
  void looks.start(LOOK_EVERY_MS);
  void migration.stopped?.then(() => connection.giveUp(STOPPED));
  try {
    await requireFitServer(connection);
    await migratePostgres(connection, clock, migration);
  } finally {
    await looks.stop();
    await connection.close();
  }
}

/**
 * Brings the database to this executable's schema. Throws StoreUnavailable, MigrationRefused for a newer database and SchemaDiffers for unexpected
 * tables. Each leaves the database unchanged.
 */
export async function migratePostgres(
  connection: PostgresConnection,
  clock: Clock,
  {
    check = async () => undefined,
    onMigrate = () => undefined,
    onMigrationStep = () => undefined,
  }: PostgresMigrationOptions = {},
): Promise<void> {
  const from = await readSchema(connection);
  if (from === SCHEMA_VERSION) return await requireTables(connection);
  if (from > 0 && from < SCHEMA_VERSION) await check(connection);
  onMigrationStep({ from, step: null });
  await connection.script(NO_TIMEOUT);
  await connection.script(DETECT_DISCONNECT).catch((error: unknown) => {
    if (connection.lost) throw error;
  });
  await connection.script(`BEGIN; SELECT pg_advisory_xact_lock(${MIGRATION_LOCK}); ${TABLE_LOCK_TIMEOUT}`);
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
    for (const migration of POSTGRES_MIGRATIONS) {
      const { number, name } = migration;
      if (number <= current) continue;
      onMigrationStep({ from: current, step: name });
      await runMigration(connection, migration, current);
      await connection.run(
        "INSERT INTO schema_migration (number, name, applied_at) VALUES (?1, ?2, ?3)",
        number,
        name,
        clock.now(),
      );
    }
    for (const { number, hash } of POSTGRES_MIGRATIONS) await connection.run(RECORD_HASH, number, hash);
    if (current > 0) await requireTables(connection);
    await connection.script("COMMIT");
  } catch (error) {
    if (!connection.lost) await connection.script("ROLLBACK");
    throw from === 0 ? explainTakenName(error) : error;
  }
}

/** Throws SchemaDiffers if a statement does not fit the tables of a used database. */
async function runMigration(
  connection: PostgresConnection,
  { number, name, sql }: Migration,
  current: number,
): Promise<void> {
  try {
    await connection.script(`${TAKE_WRITER_LOCK}; ${sql}`);
  } catch (error) {
    const [first] = [...causesOf(error)];
    if (current === 0 || typeof first?.errno !== "string" || !UNFIT_TABLES.test(first.errno)) throw error;
    throw differs([`step ${number} (${name}) fails with "${first.message}"`]);
  }
}

/** Lists how the tables differ from this executable's, in a database with its schema number. `parts` compares indexes and triggers too. */
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

/** Returns a clearer error if a new schema fails because another program's objects have its names. */
function explainTakenName(error: unknown): unknown {
  const [first] = [...causesOf(error)];
  if (first === undefined || typeof first.errno !== "string" || !NAME_TAKEN.test(first.errno)) return error;
  const why = `The database cannot be used. It contains objects of another program: ${first.message}.`;
  return new UnfitServer(`${why} To do: give this service its own database.`, { cause: error });
}

/**
 * Returns the number of the newest applied migration, or 0 without a schema. A session caches names that it did not find until it locks a table.
 * Reading pg_class does that, so that a node that waited for another node's migration sees the new schema.
 */
async function readSchema(connection: PostgresConnection): Promise<number> {
  const table = await connection.get("SELECT 1 FROM pg_class WHERE oid = to_regclass('schema_migration')");
  if (table === null) return 0;
  await requireNotTransferred(connection);
  const row = await connection.get<{ number: number | null }>(
    `SELECT max(number) AS number FROM schema_migration WHERE number < ${MOVED_NUMBER}`,
  );
  return row?.number ?? 0;
}
