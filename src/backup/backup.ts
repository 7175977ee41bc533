/**
 * One backup: a checked copy of the whole database in one file, made beside a running server without holding anyone up. The master key is
 * no part of it, so that a backup that gets lost opens no secret; it is written to a file of its own when asked for.
 */
import { existsSync, realpathSync, statSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { findMasterKey, placeKeyFile } from "../secret/master-key.ts";
import { copyDatabase } from "../store/database-copy.ts";
import { BackupRefused, databaseFile } from "./place.ts";

export interface BackupRequest {
  dataDir: string;
  /** The new file. */
  file: string;
  /** Whether a file of this name may be replaced. */
  replace: boolean;
  /** Whether the master key is written to `<file>.key` too. */
  withKey: boolean;
  /** RELAY_MASTER_KEY, or null. */
  masterKey: string | null;
}

interface BackupMade {
  file: string;
  bytes: number;
  schema: number;
  /** Rows by table. */
  rows: Readonly<Record<string, number>>;
  keyFile: string | null;
}

/** Makes it. Throws BackupRefused or DatabaseRefused; then no file of that name was made or changed. */
export async function makeBackup(request: BackupRequest): Promise<BackupMade> {
  const { dataDir, file, replace, withKey } = request;
  requirePlace(dataDir, file);
  const key = withKey ? await requireKey(request) : null;
  const keyFile = `${file}.key`;
  if (key !== null && !replace && existsSync(keyFile)) throw refuseKeyFile(keyFile);
  const { schema, rows } = await copyDatabase(databaseFile(dataDir), file, { replace });
  if (key !== null && !placeKeyFile(keyFile, key, { replace })) throw refuseKeyFile(keyFile);
  return { file, bytes: statSync(file).size, schema, rows, keyFile: key === null ? null : keyFile };
}

/** Not over the data directory's own files, nor a folder. */
function requirePlace(dataDir: string, file: string): void {
  if (existsSync(file) && statSync(file).isDirectory()) {
    throw new BackupRefused(
      `${file} is a folder: name a file in it, such as ${join(file, "relay-backup.db")}.`,
    );
  }
  if (realFolder(dirname(file)) === realFolder(dataDir)) {
    throw new BackupRefused(
      `${file} is among the data directory's own files: write it elsewhere, such as ${join(dataDir, "backups", basename(file))}.`,
    );
  }
}

function realFolder(folder: string): string {
  return existsSync(folder) ? realpathSync(folder) : resolve(folder);
}

async function requireKey({ dataDir, masterKey }: BackupRequest): Promise<Uint8Array> {
  const key = await findMasterKey(dataDir, masterKey);
  if (key !== null) return key;
  throw new BackupRefused(
    `There is no master key in ${dataDir}: set RELAY_MASTER_KEY if it is kept elsewhere, or leave --with-key out.`,
  );
}

function refuseKeyFile(keyFile: string): BackupRefused {
  return new BackupRefused(`${keyFile} exists already: name another file, or replace it with --force.`);
}
