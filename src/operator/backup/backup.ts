/**
 * Makes a backup: a checked copy of the complete database in one file, next to a running server and without blocking other work. The master
 * key is not in it, so a lost backup reveals no secret; on request it goes to a separate file. This file also names the backups of a data
 * directory.
 */
import { existsSync, readdirSync, realpathSync, statSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { toIso } from "../../base/clock.ts";
import { findMasterKey, writeKeyFile } from "../../platform/secret/master-key.ts";
import { type CopyStep, copyDatabase } from "../../store/sqlite/database-copy.ts";

/** The reason why a backup or a restore was not made, in one sentence for the person. */
export class BackupRefused extends Error {}

export interface BackupRequest {
  dataDir: string;
  /** The new file. */
  file: string;
  /** True if an existing file is replaced. */
  replace: boolean;
  /** True if the master key is also written to `<file>.key`. */
  withKey: boolean;
  /** RELAY_MASTER_KEY, or null. */
  masterKey: string | null;
  onStep?: (step: CopyStep) => void;
}

interface BackupMade {
  file: string;
  bytes: number;
  schema: number;
  /** Rows by table. */
  rows: Readonly<Record<string, number>>;
  keyFile: string | null;
}

/** Makes the backup. Throws BackupRefused or DatabaseRefused, and then no file was created or changed. */
export async function makeBackup(request: BackupRequest): Promise<BackupMade> {
  const { dataDir, file, replace, withKey, onStep } = request;
  requireBackupPath(dataDir, file);
  const key = withKey ? await requireKey(request) : null;
  const keyFile = `${file}.key`;
  if (key !== null && !replace && existsSync(keyFile)) throw rejectKeyFile(keyFile);
  const { schema, rows } = await copyDatabase(databaseFile(dataDir), file, { replace, onStep });
  if (key !== null && !writeKeyFile(keyFile, key, { replace })) throw rejectKeyFile(keyFile);
  return { file, bytes: statSync(file).size, schema, rows, keyFile: key === null ? null : keyFile };
}

/** Throws for a file of the data directory itself, or a folder. */
function requireBackupPath(dataDir: string, file: string): void {
  if (existsSync(file) && statSync(file).isDirectory()) {
    throw new BackupRefused(
      `${file} is a folder: name a file in it, such as ${join(file, "relay-backup.db")}.`,
    );
  }
  if (resolveFolder(dirname(file)) === resolveFolder(dataDir)) {
    throw new BackupRefused(
      `${file} is among the data directory's own files: write it elsewhere, such as ${join(dataDir, "backups", basename(file))}.`,
    );
  }
}

function resolveFolder(folder: string): string {
  return existsSync(folder) ? realpathSync(folder) : resolve(folder);
}

async function requireKey({ dataDir, masterKey }: BackupRequest): Promise<Uint8Array> {
  const key = await findMasterKey(dataDir, masterKey);
  if (key !== null) return key;
  throw new BackupRefused(
    `There is no master key in ${dataDir}: set RELAY_MASTER_KEY if it is kept elsewhere, or leave --with-key out.`,
  );
}

function rejectKeyFile(keyFile: string): BackupRefused {
  return new BackupRefused(`${keyFile} exists already: name another file, or replace it with --force.`);
}

/** The reason why the service made a copy. */
type BackupReason = "scheduled" | "by-hand" | "before-restore" | "before-move";

export interface ScheduledBackup {
  file: string;
  /** The time when it was made, from its name, in milliseconds since the epoch. */
  atMs: number;
}

const SCHEDULED_NAME = /^scheduled-(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)(\d{3})Z\.db$/;
const PARTIAL_SCHEDULED = /^\.scheduled-.*\.part(-journal)?$/;
const PARTIAL_BACKUP = /^\.(scheduled|by-hand|before-restore|before-migration)-.*\.part(-journal)?$/;
const PARTIAL_RESTORE = /^\.(relay\.db|master\.key)\..*\.part(-journal)?$/;

export function databaseFile(dataDir: string): string {
  return join(dataDir, "relay.db");
}

export function backupFolder(dataDir: string): string {
  return join(dataDir, "backups");
}

/** Makes a name such as `backups/scheduled-20300101T120000000Z.db`, so that names sort by time. */
export function backupFile(dataDir: string, reason: BackupReason, atMs: number): string {
  return join(backupFolder(dataDir), `${reason}-${toIso(atMs).replaceAll(/[-:.]/g, "")}.db`);
}

/** Lists the scheduled backups, newest first. */
export function listScheduledBackups(dataDir: string): ScheduledBackup[] {
  return listMatches(backupFolder(dataDir), SCHEDULED_NAME)
    .map((file) => ({ file, atMs: parseBackupTime(basename(file)) }))
    .filter(({ atMs }) => !Number.isNaN(atMs))
    .sort((one, other) => other.atMs - one.atMs);
}

interface BackupFile {
  name: string;
  /** The time when it was written, in milliseconds since the epoch. */
  atMs: number;
  bytes: number;
}

const BACKUP_NAME = /^[\w.-]+\.db$/;

/** Lists every copy in backups/, newest first. */
export function listBackups(dataDir: string): BackupFile[] {
  return listMatches(backupFolder(dataDir), BACKUP_NAME)
    .filter((file) => !basename(file).startsWith("."))
    .flatMap((file) => {
      const stat = statSync(file, { throwIfNoEntry: false });
      return stat === undefined ? [] : [{ name: basename(file), atMs: stat.mtimeMs, bytes: stat.size }];
    })
    .sort((one, other) => other.atMs - one.atMs);
}

/** Lists what an interrupted scheduled backup left. */
export function listPartialScheduled(dataDir: string): string[] {
  return listMatches(backupFolder(dataDir), PARTIAL_SCHEDULED);
}

/** Lists what an interrupted backup, restore or migration left in this directory. Use it only while none runs. */
export function listPartialFiles(dataDir: string): string[] {
  return [...listMatches(backupFolder(dataDir), PARTIAL_BACKUP), ...listMatches(dataDir, PARTIAL_RESTORE)];
}

/** Returns NaN where the name has no valid time. */
function parseBackupTime(name: string): number {
  const [, year, month, day, hour, minute, second, ms] = SCHEDULED_NAME.exec(name) ?? [];
  return Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}.${ms}Z`);
}

function listMatches(folder: string, pattern: RegExp): string[] {
  try {
    return readdirSync(folder)
      .filter((name) => pattern.test(name))
      .map((name) => join(folder, name));
  } catch {
    return [];
  }
}
