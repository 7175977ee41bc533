/** The findings of relay doctor: one line for each check, with what to do. */
import type { Clock } from "../../base/clock.ts";
import type { DatabaseUrl } from "../../base/database-url.ts";
import { MINUTE_MS } from "../../base/limit.ts";

type FindingState = "ok" | "warn" | "fail";

export interface Finding {
  /** The name of the check, such as `database` or `free disk space`. */
  check: string;
  state: FindingState;
  /** The result in one sentence. */
  message: string;
  /** The next step; null if there is nothing to do. */
  todo: string | null;
}

/** The target and the options of the checks. */
export interface DoctorTarget {
  dataDir: string;
  /** The PostgreSQL database with the rows; null for relay.db of the data directory. */
  database: DatabaseUrl | null;
  /** RELAY_MASTER_KEY, or null. */
  masterKey: string | null;
  /** The public origin; null if it is not known. */
  baseUrl: string | null;
  /** The private hosts that the running server may call. */
  allowPrivate: readonly string[];
  /** The interval of scheduled backups; null if it is not known, or if backups are off. */
  backupEveryMs: number | null;
  /** True if checks that take long on a large database are skipped. */
  quick: boolean;
  /** The time from which this program was built, as ISO 8601; null if it is not known. */
  builtAt: string | null;
  /** Returns the metrics of the server that runs on the data directory, as Prometheus' text; null if none answers. */
  readMetrics(): Promise<string | null>;
  clock: Clock;
}

export function pass(check: string, message: string): Finding {
  return { check, state: "ok", message, todo: null };
}

export function warn(check: string, message: string, todo: string): Finding {
  return { check, state: "warn", message, todo };
}

export function fail(check: string, message: string, todo: string): Finding {
  return { check, state: "fail", message, todo };
}

const BYTE_UNITS = ["bytes", "KiB", "MiB", "GiB", "TiB"] as const;

/** Formats a size, as in `512 bytes` or `3.4 MiB`. */
export function formatBytes(bytes: number): string {
  let size = bytes;
  let unit = 0;
  while (size >= 1024 && unit < BYTE_UNITS.length - 1) {
    size /= 1024;
    unit += 1;
  }
  return `${unit === 0 ? size : size.toFixed(1)} ${BYTE_UNITS[unit]}`;
}

/** Formats a duration in its largest unit, rounded down, as in `under a minute`, `12 minutes`, `3 hours` or `2 days`. */
export function formatDuration(ms: number): string {
  const minutes = Math.floor(ms / MINUTE_MS);
  if (minutes < 1) return "under a minute";
  if (minutes < 60) return formatCount(minutes, "minute");
  if (minutes < 48 * 60) return formatCount(Math.floor(minutes / 60), "hour");
  return formatCount(Math.floor(minutes / (24 * 60)), "day");
}

/** Formats a number with its noun, as in `1 event` or `3 events`. */
export function formatCount(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}
