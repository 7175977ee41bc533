/**
 * Forward-only numbered migrations, embedded in the executable, each applied in one transaction, a new database's all in one. Where rows have
 * to move before one, they do so in transactions of their own, and a start that is killed between two of them goes on at the next.
 * A database written by a newer version is refused, never touched.
 */
import type { Clock } from "../../base/clock.ts";
import { turnLoop } from "../index-scan.ts";
import {
  type AppliedMigration,
  hashMigration,
  listEdited,
  RECORD_HASH,
} from "../migrate/migration-record.ts";
import { differs, listDifferences, readSqliteShape, TABLES } from "../migrate/schema-difference.ts";
import type { Reader } from "../port.ts";
import { MOVED_NUMBER, refuseMoved } from "../transfer/mark.ts";
import type { SqliteConnection } from "./connection.ts";
import { countMoving, moveEvents } from "./event-move.ts";
import { rehearseUpgrade, runMigration, TABLE_STATEMENTS } from "./migration-rehearsal.ts";

export class MigrationRefused extends Error {}

interface Migration {
  number: number;
  name: string;
  sql: string;
  /** What is to be done before it: a small step in an open transaction, which answers how many rows it dealt with, 0 at the end. */
  step?: (connection: SqliteConnection) => Promise<number>;
  /** About how many rows its steps deal with. */
  count?: (connection: SqliteConnection) => Promise<number>;
}

/**
 * Told of a migration that is made in steps, once a second: rows dealt with so far by this process, of about so many. `of` null: its statements
 * begin, of which nothing is told before they end; on a large database one of them may take a minute.
 */
export type MigrationProgress = (progress: { name: string; rows: number; of: number | null }) => void;

export const MIGRATIONS: readonly Migration[] = [
  { number: 1, name: "base", sql: base },
  { number: 2, name: "relay", sql: relay },
  { number: 3, name: "event", sql: event },
  { number: 4, name: "record", sql: record },
  { number: 5, name: "people", sql: people },
  { number: 6, name: "selling", sql: selling },
  { number: 7, name: "mail", sql: mail },
  { number: 8, name: "capture", sql: capture },
  { number: 9, name: "client", sql: client },
  { number: 10, name: "watch", sql: watch },
  { number: 11, name: "lease", sql: lease },
  { number: 12, name: "schedule-mark", sql: scheduleMark },
  { number: 13, name: "event-form", sql: eventForm },
  { number: 14, name: "signin", sql: signin },
  { number: 15, name: "mail-end", sql: mailEnd },
  { number: 16, name: "walk", sql: walk },
  { number: 17, name: "erasure", sql: erasure },
  { number: 18, name: "memory", sql: memory },
  { number: 19, name: "stored", sql: stored },
  { number: 20, name: "receiver-health", sql: receiverHealth },
  { number: 21, name: "key", sql: key },
  { number: 22, name: "record-watch", sql: recordWatch },
  { number: 23, name: "unknown-call", sql: unknownCall },
  { number: 24, name: "relay-run", sql: relayRun },
  { number: 25, name: "event-row", sql: eventRow },
  { number: 26, name: "event-moved", sql: eventMoved, step: moveEvents, count: countMoving },
  { number: 27, name: "synced", sql: synced },
  { number: 28, name: "approval", sql: approval },
  { number: 29, name: "login", sql: login },
  { number: 30, name: "event-came", sql: eventCame },
  { number: 31, name: "call-fold", sql: callFold },
  { number: 32, name: "event-unhappy", sql: eventUnhappy },
  { number: 33, name: "bulk-replay", sql: bulkReplay },
  { number: 34, name: "bulk-replay-ended", sql: bulkReplayEnded },
  { number: 35, name: "session-seen", sql: sessionSeen },
  { number: 36, name: "story", sql: story },
  { number: 37, name: "app-deleted", sql: appDeleted },
  { number: 38, name: "handshake-call", sql: handshakeCall },
  { number: 39, name: "sync-minute", sql: syncMinute },
  { number: 40, name: "writer-commit", sql: writerCommit },
  { number: 41, name: "record-trigger", sql: recordTrigger },
  { number: 42, name: "record-file", sql: recordFile },
  { number: 43, name: "node-compared", sql: nodeCompared },
  { number: 44, name: "cancelled-ref", sql: cancelledRef },
  { number: 45, name: "event-trigger", sql: eventTrigger },
  { number: 46, name: "event-block", sql: eventBlock },
  { number: 47, name: "gone-secret", sql: goneSecret },
  { number: 48, name: "promoted", sql: promoted },
  { number: 49, name: "plan-end", sql: planEnd },
  { number: 50, name: "moved-event", sql: movedEvent },
  { number: 51, name: "as-released", sql: asReleased },
  { number: 52, name: "arrival", sql: arrival },
  { number: 53, name: "hold-release", sql: holdRelease },
  { number: 54, name: "owner-network", sql: ownerNetwork },
  { number: 55, name: "moved-purchase", sql: movedPurchase },
  { number: 56, name: "limit-window", sql: limitWindow },
];

/** The number of the newest migration this executable knows. */
export const SCHEMA_VERSION = MIGRATIONS.at(-1)?.number ?? 0;

/**
 * Brings the database to this executable's schema; answers the numbers applied. `before` runs once if any is due on a used database, given the
 * schema it has. Throws MigrationRefused of a newer database, and SchemaDiffers where the tables are not those of their version; both leave the
 * database as it is.
 */
export async function migrate(
  connection: SqliteConnection,
  clock: Clock,
  before: (from: number) => Promise<void> = async () => undefined,
  onProgress: MigrationProgress = () => undefined,
): Promise<number[]> {
  connection.exec(
    "CREATE TABLE IF NOT EXISTS schema_migration (number INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at INTEGER NOT NULL, hash TEXT)",
  );
  const { current, faults } = await inOneView(connection, async () => ({
    current: (await listApplied(connection)).at(-1)?.number ?? 0,
    faults: await listTableFaults(connection),
  }));
  await refuseMoved(connection);
  if (current > SCHEMA_VERSION) {
    throw new MigrationRefused(
      `The database was written by a newer version (schema ${current}, this executable knows ${SCHEMA_VERSION}): start that version, or go back with relay restore and the copy that its migration left in backups/.`,
    );
  }
  if (faults.length > 0) throw differs(faults);
  const due = MIGRATIONS.filter((migration) => migration.number > current);
  if (due.length > 0 && current > 0) await before(current);
  // A new database gets its schema whole or not at all: a start that is killed leaves nothing that looks used.
  for (const together of current === 0 ? [due] : due.map((one) => [one])) {
    if (current > 0) for (const one of together) await takeSteps(connection, clock, one, onProgress);
    apply(connection, together, clock.now());
  }
  return due.map((migration) => migration.number);
}

/**
 * How the tables of a database differ from those of its version, or would differ from this version's after an upgrade; none: it may be opened. Not
 * asked of a new or a newer database. `parts`: of indexes and triggers too.
 */
export async function listTableFaults(tx: Reader, options: { parts?: boolean } = {}): Promise<string[]> {
  const applied = await listApplied(tx);
  const current = applied.at(-1)?.number ?? 0;
  if (current === 0 || current > SCHEMA_VERSION) return [];
  const edited = listEdited(applied, MIGRATIONS);
  const due = MIGRATIONS.filter((migration) => migration.number > current);
  const differences =
    due.length === 0
      ? listDifferences(await readSqliteShape(tx), TABLES.sqlite, options)
      : await rehearseUpgrade(await tx.all<{ sql: string }>(TABLE_STATEMENTS), due);
  return [...edited, ...differences];
}

function listApplied(tx: Reader): Promise<AppliedMigration[]> {
  return tx.all(`SELECT * FROM schema_migration WHERE number < ${MOVED_NUMBER} ORDER BY number`);
}

/** Another process may be migrating: what is read in `work` is of one moment. */
async function inOneView<Result>(connection: SqliteConnection, work: () => Promise<Result>): Promise<Result> {
  connection.exec("BEGIN");
  try {
    return await work();
  } finally {
    connection.exec("COMMIT");
  }
}

const TELL_EVERY_MS = 1_000;

/** A transaction a step, and a turn of the loop behind each, so that a signal is heard and what was told is said before the statements. */
async function takeSteps(
  connection: SqliteConnection,
  clock: Clock,
  { number, name, step, count }: Migration,
  onProgress: MigrationProgress,
): Promise<void> {
  let toldMs = clock.monotonicMs();
  const of = (await count?.(connection)) ?? 0;
  for (let rows = 0, done = 1; step !== undefined && done > 0; rows += done) {
    connection.exec("BEGIN IMMEDIATE");
    try {
      // Another process was faster.
      done = isApplied(connection, number) ? 0 : await step(connection);
      connection.exec("COMMIT");
    } catch (error) {
      if (connection.inTransaction) connection.exec("ROLLBACK");
      throw error;
    }
    if (clock.monotonicMs() - toldMs >= TELL_EVERY_MS) {
      toldMs = clock.monotonicMs();
      onProgress({ name, rows: rows + done, of });
    }
    await turnLoop();
  }
  onProgress({ name, rows: 0, of: null });
  await turnLoop();
}

function isApplied({ database }: SqliteConnection, number: number): boolean {
  return database.query("SELECT 1 FROM schema_migration WHERE number = ?1").get(number) !== null;
}

/** One transaction. */
function apply(connection: SqliteConnection, migrations: readonly Migration[], nowMs: number): void {
  connection.exec("BEGIN IMMEDIATE");
  try {
    for (const { number, name, sql } of migrations) {
      const { database } = connection;
      // Another process was faster.
      if (isApplied(connection, number)) continue;
      runMigration(database, sql);
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

/** A database whose tables are this version's has, in effect, the texts of this version, whichever release applied them. */
function recordHashes({ database }: SqliteConnection): void {
  const record = database.query(RECORD_HASH);
  for (const { number, sql } of MIGRATIONS) record.run(number, hashMigration(sql));
}

import base from "../../../migrations/0001-base.sql" with { type: "text" };
import relay from "../../../migrations/0002-relay.sql" with { type: "text" };
import event from "../../../migrations/0003-event.sql" with { type: "text" };
import record from "../../../migrations/0004-record.sql" with { type: "text" };
import people from "../../../migrations/0005-people.sql" with { type: "text" };
import selling from "../../../migrations/0006-selling.sql" with { type: "text" };
import mail from "../../../migrations/0007-mail.sql" with { type: "text" };
import capture from "../../../migrations/0008-capture.sql" with { type: "text" };
import client from "../../../migrations/0009-client.sql" with { type: "text" };
import watch from "../../../migrations/0010-watch.sql" with { type: "text" };
import lease from "../../../migrations/0011-lease.sql" with { type: "text" };
import scheduleMark from "../../../migrations/0012-schedule-mark.sql" with { type: "text" };
import eventForm from "../../../migrations/0013-event-form.sql" with { type: "text" };
import signin from "../../../migrations/0014-signin.sql" with { type: "text" };
import mailEnd from "../../../migrations/0015-mail-end.sql" with { type: "text" };
import walk from "../../../migrations/0016-walk.sql" with { type: "text" };
import erasure from "../../../migrations/0017-erasure.sql" with { type: "text" };
import memory from "../../../migrations/0018-memory.sql" with { type: "text" };
import stored from "../../../migrations/0019-stored.sql" with { type: "text" };
import receiverHealth from "../../../migrations/0020-receiver-health.sql" with { type: "text" };
import key from "../../../migrations/0021-key.sql" with { type: "text" };
import recordWatch from "../../../migrations/0022-record-watch.sql" with { type: "text" };
import unknownCall from "../../../migrations/0023-unknown-call.sql" with { type: "text" };
import relayRun from "../../../migrations/0024-relay-run.sql" with { type: "text" };
import eventRow from "../../../migrations/0025-event-row.sql" with { type: "text" };
import eventMoved from "../../../migrations/0026-event-moved.sql" with { type: "text" };
import synced from "../../../migrations/0027-synced.sql" with { type: "text" };
import approval from "../../../migrations/0028-approval.sql" with { type: "text" };
import login from "../../../migrations/0029-login.sql" with { type: "text" };
import eventCame from "../../../migrations/0030-event-came.sql" with { type: "text" };
import callFold from "../../../migrations/0031-call-fold.sql" with { type: "text" };
import eventUnhappy from "../../../migrations/0032-event-unhappy.sql" with { type: "text" };
import bulkReplay from "../../../migrations/0033-bulk-replay.sql" with { type: "text" };
import bulkReplayEnded from "../../../migrations/0034-bulk-replay-ended.sql" with { type: "text" };
import sessionSeen from "../../../migrations/0035-session-seen.sql" with { type: "text" };
import story from "../../../migrations/0036-story.sql" with { type: "text" };
import appDeleted from "../../../migrations/0037-app-deleted.sql" with { type: "text" };
import handshakeCall from "../../../migrations/0038-handshake-call.sql" with { type: "text" };
import syncMinute from "../../../migrations/0039-sync-minute.sql" with { type: "text" };
import writerCommit from "../../../migrations/0040-writer-commit.sql" with { type: "text" };
import recordTrigger from "../../../migrations/0041-record-trigger.sql" with { type: "text" };
import recordFile from "../../../migrations/0042-record-file.sql" with { type: "text" };
import nodeCompared from "../../../migrations/0043-node-compared.sql" with { type: "text" };
import cancelledRef from "../../../migrations/0044-cancelled-ref.sql" with { type: "text" };
import eventTrigger from "../../../migrations/0045-event-trigger.sql" with { type: "text" };
import eventBlock from "../../../migrations/0046-event-block.sql" with { type: "text" };
import goneSecret from "../../../migrations/0047-gone-secret.sql" with { type: "text" };
import promoted from "../../../migrations/0048-promoted.sql" with { type: "text" };
import planEnd from "../../../migrations/0049-plan-end.sql" with { type: "text" };
import movedEvent from "../../../migrations/0050-moved-event.sql" with { type: "text" };
import asReleased from "../../../migrations/0051-as-released.sql" with { type: "text" };
import arrival from "../../../migrations/0052-arrival.sql" with { type: "text" };
import holdRelease from "../../../migrations/0053-hold-release.sql" with { type: "text" };
import ownerNetwork from "../../../migrations/0054-owner-network.sql" with { type: "text" };
import movedPurchase from "../../../migrations/0055-moved-purchase.sql" with { type: "text" };
import limitWindow from "../../../migrations/0056-limit-window.sql" with { type: "text" };
