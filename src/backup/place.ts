/** Where backups are kept in a data directory and what they are called, and why one is not made. */
import { readdirSync } from "node:fs";
import { basename, join } from "node:path";
import { toIso } from "../ground/clock.ts";

/** Why a backup or a restore was not made: one sentence for the person who asked for it. */
export class BackupRefused extends Error {}

/** What made a copy that nobody asked for by name. */
type BackupReason = "scheduled" | "before-restore";

export interface NamedBackup {
  file: string;
  /** When it was made, milliseconds since the epoch, as its name says. */
  atMs: number;
}

const NAME = /^scheduled-(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)(\d{3})Z\.db$/;
const SCHEDULED_PART = /^\.scheduled-.*\.part(-journal)?$/;
const ANY_PART = /^\.(scheduled|before-restore|before-migration)-.*\.part(-journal)?$/;
const STAGED_PART = /^\.(relay\.db|master\.key)\..*\.part(-journal)?$/;

export function databaseFile(dataDir: string): string {
  return join(dataDir, "relay.db");
}

function backupFolder(dataDir: string): string {
  return join(dataDir, "backups");
}

/** `backups/scheduled-20300101T120000000Z.db`: its reason and when, so that names sort by time. */
export function backupFile(dataDir: string, reason: BackupReason, atMs: number): string {
  return join(backupFolder(dataDir), `${reason}-${toIso(atMs).replaceAll(/[-:.]/g, "")}.db`);
}

/** The scheduled ones, newest first. */
export function listScheduledBackups(dataDir: string): NamedBackup[] {
  return listMatches(backupFolder(dataDir), NAME)
    .map((file) => ({ file, atMs: readTime(basename(file)) }))
    .filter(({ atMs }) => !Number.isNaN(atMs))
    .sort((one, other) => other.atMs - one.atMs);
}

/** What a scheduled backup that was cut off left behind. */
export function listScheduledParts(dataDir: string): string[] {
  return listMatches(backupFolder(dataDir), SCHEDULED_PART);
}

/** Whatever a backup, restore or migration that was cut off left in this directory; only while nobody makes any. */
export function listAllParts(dataDir: string): string[] {
  return [...listMatches(backupFolder(dataDir), ANY_PART), ...listMatches(dataDir, STAGED_PART)];
}

/** NaN where the name says no time there is. */
function readTime(name: string): number {
  const [, year, month, day, hour, minute, second, ms] = NAME.exec(name) ?? [];
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
