/**
 * Brings a used database to this version's schema before a server opens it, in a separate process. The copy before it and the statements of a
 * migration block a thread for seconds or minutes, and the port must answer in that time. The process ends with the server. It can be killed at
 * any moment, as a start can.
 */
import { existsSync, readdirSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { systemClock } from "../base/clock.ts";
import { fileErrorCode } from "../base/durable-file.ts";
import { MIGRATION_WORD, ownCommand } from "../base/own-executable.ts";
import { Refusal } from "../base/refusal.ts";
import { SYSTEM } from "../base/system.ts";
import { removePartialFiles } from "../operator/backup/restore.ts";
import { MigrationRefused, SCHEMA_VERSION } from "../store/migrate/migrations.ts";
import { SchemaDiffers } from "../store/migrate/schema-difference.ts";
import { type Reader, StoreUnavailable } from "../store/port.ts";
import { UpgradeBackupFailed } from "../store/sqlite/database-copy.ts";
import { openDatabaseFile, readSchemaVersion } from "../store/sqlite/database-file.ts";
import type { MigrationProgress } from "../store/sqlite/migrate.ts";
import { openSqlite, type SqliteOptions } from "../store/sqlite/sqlite.ts";
import { DatabaseTransferred, requireNotTransferred } from "../store/transfer/mark.ts";

/** A line that the process prints. */
type Line =
  | { begins: Parameters<MigrationWatch["onMigrate"]> }
  | { progress: Parameters<MigrationProgress>[0] }
  | { failed: Failure };

/** `refused` names the kind of a failure that a person must fix; null for other failures. */
interface Failure {
  message: string;
  code: string;
  refused: "copy" | "schema" | "tables" | null;
}

export type MigrationWatch = Pick<Required<SqliteOptions>, "onMigrate" | "onMigrationProgress">;

/**
 * Returns the schema of a used database that must be migrated to this version's. Returns null if there is none, or if opening the database will
 * report a problem. A refusal of `inspect` is thrown. If `inspect` cannot read an earlier schema, the checks run after the migration.
 */
export async function findDueMigration(
  file: string,
  inspect: (tx: Reader) => Promise<void>,
): Promise<number | null> {
  if (!existsSync(file)) return null;
  let from: number | null = null;
  try {
    using database = openDatabaseFile(file);
    from = await readSchemaVersion(database);
    if (from !== null) await requireNotTransferred(database);
    if (from !== null && from < SCHEMA_VERSION) await inspect(database);
  } catch (error) {
    if (error instanceof Refusal || error instanceof DatabaseTransferred) throw error;
  }
  return from !== null && from < SCHEMA_VERSION ? from : null;
}

/** Resolves when the database is migrated. Throws the failure of the process, or an error if `stopped` ends it. */
export async function migrateInChild(
  file: string,
  { onMigrate, onMigrationProgress }: MigrationWatch,
  stopped: Promise<unknown> | undefined,
): Promise<void> {
  const { RELAY_MASTER_KEY: _key, RELAY_DATABASE: _database, ...env } = process.env;
  const child = Bun.spawn([...ownCommand(), MIGRATION_WORD, file], {
    env,
    stdin: "pipe",
    stdout: "pipe",
    stderr: "pipe",
  });
  let isStopped = false;
  void stopped?.then(() => {
    isStopped = true;
    child.kill("SIGKILL");
  });
  const output = new Response(child.stderr).text();
  let failure: Error | null = null;
  for await (const text of linesOf(child.stdout)) {
    const line = JSON.parse(text) as Line;
    if ("begins" in line) onMigrate(...line.begins);
    else if ("progress" in line) onMigrationProgress(line.progress);
    else failure = asError(line.failed);
  }
  const code = await child.exited;
  if (isStopped) {
    removePartialFiles(dirname(file));
    throw new Error("The start was stopped before the migration of the database ended.");
  }
  if (failure !== null) throw failure;
  if (code === 0) return;
  const words = (await output).trim().split("\n")[0] || `it ended with ${child.signalCode ?? code}`;
  throw new Error(`The migration to this version's schema failed: ${words}`);
}

/** Runs in the process that `migrateInChild` starts. Returns its exit code. */
export async function runMigration(file: string): Promise<number> {
  // A signal to the process group is for the server, which ends this process.
  for (const signal of SYSTEM.stopSignals) process.on(signal, () => undefined);
  process.stdin.on("end", () => process.exit(1)).resume();
  const say = (line: Line): void => void process.stdout.write(`${JSON.stringify(line)}\n`);
  try {
    const onMigrationProgress: MigrationProgress = (progress) => say({ progress });
    const onMigrate: MigrationWatch["onMigrate"] = (...begins) => say({ begins });
    await (await openSqlite(file, { clock: systemClock, onMigrate, onMigrationProgress })).close();
    process.stdin.pause();
    return 0;
  } catch (error) {
    const { message } = error as Error;
    say({ failed: { message, code: codeOf(error), refused: refusalOf(error) } });
    process.stdin.pause();
    return 1;
  }
}

/** Returns the bytes that are copied so far into `backups/`, or null if no copy is in progress. */
export function readCopyBytes(file: string): number | null {
  const folder = join(dirname(file), "backups");
  try {
    const parts = readdirSync(folder).filter((name) => /^\.before-migration-.*\.part$/.test(name));
    return parts.length === 0 ? null : Math.max(...parts.map((name) => statSync(join(folder, name)).size));
  } catch {
    return null;
  }
}

function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return "";
  return fileErrorCode(error) || codeOf(error.cause);
}

function refusalOf(error: unknown): Failure["refused"] {
  if (error instanceof UpgradeBackupFailed) return "copy";
  if (error instanceof MigrationRefused) return "schema";
  return error instanceof SchemaDiffers ? "tables" : null;
}

function asError({ message, code, refused }: Failure): Error {
  if (refused === "copy") return new UpgradeBackupFailed(message);
  if (refused === "schema") return new MigrationRefused(message);
  if (refused === "tables") return new SchemaDiffers(message);
  const cause = Object.assign(new Error(message), { code });
  return code === "" ? cause : new StoreUnavailable(message, { cause });
}

async function* linesOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const bytes of stream) {
    const lines = (rest + decoder.decode(bytes, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    yield* lines;
  }
}
