/**
 * Replaces a data directory's database by a backup. The directory has the complete old or the complete new database, wherever the process
 * is killed. The new one is made and checked next to the old one, the old one's log is folded into it, and one rename decides. A directory
 * in use is never touched, and the old database is always saved.
 */
import { copyFileSync, existsSync, mkdirSync, readFileSync, realpathSync, rmdirSync, rmSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { type Clock, sleep } from "../../base/clock.ts";
import { partOf, placeFile, syncFile, syncFolder } from "../../base/durable-file.ts";
import { SYSTEM } from "../../base/system.ts";
import { findMasterKey, masterKeyFile, readKey, writeKeyFile } from "../../platform/secret/master-key.ts";
import { Sealer } from "../../platform/secret/seal.ts";
import { testMasterKey } from "../../rules/relay/master-key-proof.ts";
import { type CopyStep, copyDatabase, holdDatabase } from "../../store/sqlite/database-copy.ts";
import {
  checkDatabase,
  type DatabaseRefusal,
  DatabaseRefused,
  openDatabaseFile,
} from "../../store/sqlite/database-file.ts";
import { listLockFiles, lockDataDirectory } from "../../store/sqlite/directory-lock.ts";
import { BackupRefused, backupFile, databaseFile, listPartialFiles } from "./backup.ts";

/** A time longer than another command waits for the database, so that no command continues with the replaced file. */
const HOLD_AFTER_RESTORE_MS = 1_500;
const UNCOPYABLE: ReadonlySet<DatabaseRefusal> = new Set(["damaged", "newer", "foreign"]);

export interface RestoreRequest {
  /** The backup: its file, or its URL if `download` is given. */
  file: string;
  /** Writes the backup into this new file, in the locked data directory. */
  download?: (file: string) => Promise<void>;
  dataDir: string;
  /** A file with its master key, or null. */
  keyFile: string | null;
  /** RELAY_MASTER_KEY, or null. */
  masterKey: string | null;
  clock: Clock;
  onStep?: (step: CopyStep) => void;
}

interface Restored {
  schema: number;
  /** Rows by table. */
  rows: Readonly<Record<string, number>>;
  /** The file that has the previous database; null if there was none. */
  kept: string | null;
  /** True if that file was copied unchecked, because the database was damaged or of a newer version. */
  keptAsItLay: boolean;
  /** Waiting events that run when the server starts. */
  waitingEvents: number;
  keyPlaced: boolean;
}

/** Restores the backup. Throws BackupRefused, DatabaseRefused or DataDirectoryTaken, and then the directory is unchanged. */
export async function restoreBackup(request: RestoreRequest): Promise<Restored> {
  const { file, dataDir, clock, download } = request;
  if (download === undefined) await requireBackup(file, dataDir);
  const lockFiles = listLockFiles(dataDir).filter((path) => !existsSync(path));
  const firstNew = mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const lock = lockDataDirectory(dataDir, "relay restore", clock.now());
  try {
    removePartialFiles(dataDir);
    return download === undefined ? await restoreLocked(request) : await restoreDownload(request, download);
  } catch (error) {
    lock.release();
    for (const path of lockFiles) rmSync(path, { force: true });
    if (firstNew !== undefined) removeEmptyFolders(dataDir, firstNew);
    throw error;
  } finally {
    lock.release();
  }
}

/** Removes the folders from `folder` up to `first`, which this restore created. A folder with a file of another program stays. */
function removeEmptyFolders(folder: string, first: string): void {
  try {
    rmdirSync(folder);
  } catch {
    return;
  }
  if (resolve(folder) !== resolve(first)) removeEmptyFolders(dirname(folder), first);
}

async function requireBackup(file: string, dataDir: string): Promise<void> {
  await checkDatabase(file);
  requireSeparateFile(file, databaseFile(dataDir));
}

/** Restores from a downloaded file, and removes it. */
async function restoreDownload(
  request: RestoreRequest,
  download: (file: string) => Promise<void>,
): Promise<Restored> {
  const { file: url, dataDir } = request;
  const file = partOf(databaseFile(dataDir));
  try {
    await download(file);
    await checkDatabase(file);
    return await restoreLocked({ ...request, file });
  } catch (error) {
    // The sentence names the copy, because the file is gone.
    if (error instanceof DatabaseRefused)
      throw new DatabaseRefused(error.reason, error.message.replaceAll(file, url));
    throw error;
  } finally {
    rmSync(file, { force: true });
  }
}

async function restoreLocked(request: RestoreRequest): Promise<Restored> {
  const { file, dataDir, onStep } = request;
  const staged = partOf(databaseFile(dataDir));
  try {
    const { schema, rows } = await copyDatabase(file, staged, { replace: false, onStep });
    const key = await requireFittingKey({ ...request, database: staged });
    const waitingEvents = await countWaitingEvents(staged);
    const old = await replaceDatabase(request, () => {
      if (key !== null) placeKey(dataDir, key);
      placeFile(staged, databaseFile(dataDir), { replace: true });
    });

    return { schema, rows, ...old, waitingEvents, keyPlaced: key !== null };
  } finally {
    rmSync(staged, { force: true });
  }
}

/** Keeps the old database, and calls `place` when only its one file is left. */
async function replaceDatabase(
  { dataDir, clock }: RestoreRequest,
  place: () => void,
): Promise<{ kept: string | null; keptAsItLay: boolean }> {
  const database = databaseFile(dataDir);
  if (!existsSync(database)) {
    // The new database would read a log that was left without its database.
    removeSideFiles(database);
    place();
    return { kept: null, keptAsItLay: false };
  }
  const kept = backupFile(dataDir, "before-restore", clock.now());
  const held = holdDatabase(database);
  if (held !== null) {
    try {
      if (await tryCopy(() => held.copyTo(kept))) {
        removeSideFiles(database);
        if (!SYSTEM.replacesOpenFiles) held[Symbol.dispose]();
        place();
        await sleep(clock, HOLD_AFTER_RESTORE_MS);
        return { kept, keptAsItLay: false };
      }
    } finally {
      held[Symbol.dispose]();
    }
  }
  copyDamaged(database, kept);
  removeSideFiles(database);
  place();
  return { kept, keptAsItLay: true };
}

/** Returns false where the database cannot be copied and checked. */
async function tryCopy(keep: () => Promise<unknown>): Promise<boolean> {
  try {
    await keep();
    return true;
  } catch (error) {
    if (error instanceof DatabaseRefused && UNCOPYABLE.has(error.reason)) return false;
    throw error;
  }
}

function removeSideFiles(database: string): void {
  for (const ending of SIDE_FILES) rmSync(database + ending, { force: true });
  syncFolder(dirname(database));
}

/** Removes what a killed restore left; the lock ensures that none runs. A server's start uses it too. */
export function removePartialFiles(dataDir: string): void {
  for (const file of listPartialFiles(dataDir)) rmSync(file, { force: true });
}

function requireSeparateFile(file: string, database: string): void {
  if (!existsSync(database) || realpathSync(file) !== realpathSync(database)) return;
  throw new BackupRefused(`${file} is the data directory's own database: name a backup.`);
}

async function countWaitingEvents(file: string): Promise<number> {
  using database = openDatabaseFile(file);
  const table = await database.get("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'event'");
  if (table === null) return 0;
  const row = await database.get<{ count: number }>(
    "SELECT count(*) AS count FROM event WHERE state IN ('queued', 'running')",
  );
  return row?.count ?? 0;
}

interface KeyRequest {
  /** The database that is being restored. */
  database: string;
  dataDir: string;
  keyFile: string | null;
  masterKey: string | null;
}

/**
 * Checks that the database's secrets open with the key that the server will use. Returns the key to put into the directory first, or
 * null. Throws BackupRefused for a missing or different key.
 */
async function requireFittingKey(request: KeyRequest): Promise<Uint8Array | null> {
  const { dataDir, keyFile, masterKey } = request;
  const given = keyFile === null ? null : readGivenKey(keyFile);
  const presentKey = await findMasterKey(dataDir, masterKey);
  if (given !== null && presentKey !== null && !Buffer.from(given).equals(presentKey)) {
    throw new BackupRefused(
      `${masterKey === null ? masterKeyFile(dataDir) : "RELAY_MASTER_KEY"} is another key than ${keyFile}: move it away first if nothing needs it any more.`,
    );
  }
  const key = given ?? presentKey;
  using database = openDatabaseFile(request.database);
  const state = await testMasterKey(database, key === null ? null : new Sealer(key));
  if (state === "foreign") throw new BackupRefused(formatKeyRefusal(request, key !== null));
  return presentKey === null ? given : null;
}

/** Writes the key into a directory without one. */
function placeKey(dataDir: string, key: Uint8Array): void {
  const file = masterKeyFile(dataDir);
  if (writeKeyFile(file, key, { replace: false })) return;
  throw new BackupRefused(`${file} was just created by another command: run the command again.`);
}

function readGivenKey(file: string): Uint8Array {
  if (!existsSync(file)) throw new BackupRefused(`There is no file ${file}: check its path.`);
  return readKey(readFileSync(file, "utf8"), file);
}

function formatKeyRefusal({ dataDir, keyFile }: KeyRequest, found: boolean): string {
  const remedy = "the master.key of the server that made the backup";
  if (keyFile !== null)
    return `The key in ${keyFile} does not open the secrets of this backup: name ${remedy} with --key <file>.`;
  const what = found
    ? `The master.key in ${dataDir} does not open the secrets of this backup`
    : `${dataDir} has no master.key`;
  return `${what}: copy ${remedy} into ${dataDir}, or name it with --key <file>.`;
}

/** The endings of the files that SQLite keeps next to a database. */
const SIDE_FILES: readonly string[] = ["-wal", "-shm", "-journal"];

/** Copies the database and its side files to `kept` with the same endings. They are durable when it returns. */
function copyDamaged(database: string, kept: string): void {
  mkdirSync(dirname(kept), { recursive: true, mode: 0o700 });
  for (const ending of ["", ...SIDE_FILES]) {
    if (!existsSync(database + ending)) continue;
    copyFileSync(database + ending, kept + ending);
    syncFile(kept + ending);
  }
  syncFolder(dirname(kept));
}
