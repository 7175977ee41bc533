/**
 * Brings a SQLite database to this executable's schema. Each migration is one transaction. A new database gets the schema after all of them in one.
 * Rows that must move first do so in small transactions, so that a killed start can continue. A database of a newer version is refused unchanged.
 */
import schema from "../../../migrations/schema/sqlite.sql" with { type: "text" };
import type { Clock } from "../../base/clock.ts";
import { yieldToEventLoop } from "../index-scan.ts";
import {
  type AppliedMigration,
  listEdited,
  type Migration,
  RECORD_HASH,
} from "../migrate/migration-record.ts";
import { MigrationRefused, SCHEMA_VERSION, SQLITE_MIGRATIONS } from "../migrate/migrations.ts";
import { differs, listDifferences, readSqliteShape, TABLES } from "../migrate/schema-difference.ts";
import type { Reader } from "../port.ts";
import { MOVED_NUMBER, requireNotTransferred } from "../transfer/mark.ts";
import type { SqliteConnection } from "./connection.ts";
import { countMoving, moveEvents } from "./event-move.ts";
import { rehearseUpgrade, runMigration, TABLE_STATEMENTS } from "./migration-rehearsal.ts";

/** Moves rows before a migration's statements run, in small transactions, because one transaction with all of them would block other writers. */
interface RowMove {
  /** Moves some rows in an open transaction. Returns how many, 0 when none are left. */
  step: (connection: SqliteConnection) => Promise<number>;
  /** Estimates how many rows the steps move. */
  count: (connection: SqliteConnection) => Promise<number>;
}

/** The applied migrations. It exists before the first one. */
const OWN_TABLE =
  "CREATE TABLE IF NOT EXISTS schema_migration (number INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at INTEGER NOT NULL, hash TEXT)";

const ROW_MOVES: Readonly<Record<number, RowMove>> = { 26: { step: moveEvents, count: countMoving } };

/**
 * Receives the progress of a migration once a second: the rows that this process moved so far, and an estimate of all. `of` is null when the
 * migration's statements begin. They report nothing until they end, which can take a minute on a large database.
 */
export type MigrationProgress = (progress: { name: string; rows: number; of: number | null }) => void;

/**
 * Applies the migrations that are due and returns their numbers. `before` runs once, with the current schema number, if any is due on a used
 * database. Throws MigrationRefused for a newer database and SchemaDiffers for unexpected tables. Both leave the database unchanged.
 */
export async function migrate(
  connection: SqliteConnection,
  clock: Clock,
  before: (from: number) => Promise<void> = async () => undefined,
  onProgress: MigrationProgress = () => undefined,
): Promise<number[]> {
  connection.exec(OWN_TABLE);
  const { current, faults } = await inReadTransaction(connection, async () => ({
    current: (await listApplied(connection)).at(-1)?.number ?? 0,
    faults: await listTableFaults(connection),
  }));
  await requireNotTransferred(connection);
  if (current > SCHEMA_VERSION) {
    throw new MigrationRefused(
      `The database was written by a newer version (schema ${current}, this executable knows ${SCHEMA_VERSION}): start that version, or use relay restore with the copy that its migration stored in backups/.`,
    );
  }
  if (faults.length > 0) throw differs(faults);
  const due = SQLITE_MIGRATIONS.filter((migration) => migration.number > current);
  if (due.length > 0 && current > 0) await before(current);
  // A new database gets its schema in one transaction, so that a killed start leaves nothing that looks used.
  for (const step of current === 0 ? [due] : due.map((one) => [one])) {
    if (current > 0) for (const one of step) await moveRows(connection, clock, one, onProgress);
    apply(connection, step, clock.now());
  }
  return due.map((migration) => migration.number);
}

/**
 * Lists how the tables differ from those of their version, or would differ from this version's after an upgrade. Empty for a database that can be
 * opened, and for a new or newer one, which the caller handles. `parts` compares indexes and triggers too.
 */
export async function listTableFaults(tx: Reader, options: { parts?: boolean } = {}): Promise<string[]> {
  const applied = await listApplied(tx);
  const current = applied.at(-1)?.number ?? 0;
  if (current === 0 || current > SCHEMA_VERSION) return [];
  const edited = listEdited(applied, SQLITE_MIGRATIONS);
  const due = SQLITE_MIGRATIONS.filter((migration) => migration.number > current);
  const differences =
    due.length === 0
      ? listDifferences(await readSqliteShape(tx), TABLES.sqlite, options)
      : await rehearseUpgrade(await tx.all<{ sql: string }>(TABLE_STATEMENTS), due);
  return [...edited, ...differences];
}

function listApplied(tx: Reader): Promise<AppliedMigration[]> {
  return tx.all(`SELECT * FROM schema_migration WHERE number < ${MOVED_NUMBER} ORDER BY number`);
}

/** Runs `work` on one snapshot, because another process may be migrating the database. */
async function inReadTransaction<Result>(
  connection: SqliteConnection,
  work: () => Promise<Result>,
): Promise<Result> {
  connection.exec("BEGIN");
  try {
    return await work();
  } finally {
    connection.exec("COMMIT");
  }
}

const REPORT_EVERY_MS = 1_000;

/** Moves a migration's rows, one transaction a step. It yields after each step, so that signals and progress reports are handled. */
async function moveRows(
  connection: SqliteConnection,
  clock: Clock,
  { number, name }: Migration,
  onProgress: MigrationProgress,
): Promise<void> {
  let reportedMs = clock.monotonicMs();
  const move = ROW_MOVES[number];
  const of = (await move?.count(connection)) ?? 0;
  for (let rows = 0, done = 1; move !== undefined && done > 0; rows += done) {
    connection.exec("BEGIN IMMEDIATE");
    try {
      // Another process can have applied it first.
      done = isApplied(connection, number) ? 0 : await move.step(connection);
      connection.exec("COMMIT");
    } catch (error) {
      if (connection.inTransaction) connection.exec("ROLLBACK");
      throw error;
    }
    if (clock.monotonicMs() - reportedMs >= REPORT_EVERY_MS) {
      reportedMs = clock.monotonicMs();
      onProgress({ name, rows: rows + done, of });
    }
    await yieldToEventLoop();
  }
  onProgress({ name, rows: 0, of: null });
  await yieldToEventLoop();
}

function isApplied({ database }: SqliteConnection, number: number): boolean {
  return database.query("SELECT 1 FROM schema_migration WHERE number = ?1").get(number) !== null;
}

/** Applies migrations in one transaction. A new database gets their result, the tables of this version, in a fraction of the time. */
function apply(connection: SqliteConnection, migrations: readonly Migration[], nowMs: number): void {
  const { database } = connection;
  connection.exec("BEGIN IMMEDIATE");
  try {
    const isNew = database.query("SELECT 1 FROM schema_migration").get() === null;
    if (isNew) {
      // The first start of an older version, which was killed, can have left the table without its newer columns.
      database.run("DROP TABLE schema_migration");
      database.run(OWN_TABLE);
      database.run(schema);
    }
    for (const { number, name, sql } of migrations) {
      // Another process can have applied it first.
      if (isApplied(connection, number)) continue;
      if (!isNew) runMigration(database, sql);
      database
        .query("INSERT INTO schema_migration (number, name, applied_at) VALUES (?1, ?2, ?3)")
        .run(number, name, nowMs);
    }
    if (isApplied(connection, SCHEMA_VERSION)) recordHashes(connection);
    connection.exec("COMMIT");
  } catch (error) {
    if (connection.inTransaction) connection.exec("ROLLBACK");
    throw error;
  }
}

/** Records this version's hashes. Its tables now match this version, whichever release applied each migration. */
function recordHashes({ database }: SqliteConnection): void {
  const record = database.query(RECORD_HASH);
  for (const { number, hash } of SQLITE_MIGRATIONS) record.run(number, hash);
}
