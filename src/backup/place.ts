/** Where backups are kept in a data directory and what they are called. It makes and removes nothing. */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { toIso } from "../ground/clock.ts";

/** What made a copy that nobody asked for by name. */
export type BackupReason = "scheduled" | "before-restore";

export interface NamedBackup {
  file: string;
  /** When it was made, milliseconds since the epoch, as its name says. */
  atMs: number;
}

const NAME = /^scheduled-(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)(\d{3})Z\.db$/;

export function databaseFile(dataDir: string): string {
  return join(dataDir, "relay.db");
}

export function backupFolder(dataDir: string): string {
  return join(dataDir, "backups");
}

/** `backups/scheduled-20300101T120000000Z.db`: its reason and when, so that names sort by time. */
export function backupFile(dataDir: string, reason: BackupReason, atMs: number): string {
  return join(backupFolder(dataDir), `${reason}-${toIso(atMs).replaceAll(/[-:.]/g, "")}.db`);
}

/** The scheduled ones, newest first. */
export function listScheduledBackups(dataDir: string): NamedBackup[] {
  return listNames(dataDir)
    .flatMap((name) => {
      const [match, year, month, day, hour, minute, second, ms] = NAME.exec(name) ?? [];
      if (match === undefined) return [];
      const atMs = Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}.${ms}Z`);
      return Number.isNaN(atMs) ? [] : [{ file: join(backupFolder(dataDir), name), atMs }];
    })
    .sort((one, other) => other.atMs - one.atMs);
}

/** What a scheduled backup that was cut off left behind. */
export function listScheduledParts(dataDir: string): string[] {
  return listNames(dataDir)
    .filter((name) => /^\.scheduled-.*\.part(-journal)?$/.test(name))
    .map((name) => join(backupFolder(dataDir), name));
}

function listNames(dataDir: string): string[] {
  try {
    return readdirSync(backupFolder(dataDir));
  } catch {
    return [];
  }
}
