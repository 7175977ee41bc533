/** What a look at a data directory finds: one line a check, with what to do about it. */
import type { Clock } from "../ground/clock.ts";

type FindingState = "ok" | "warn" | "fail";

export interface Finding {
  /** Such as `database` or `free disk space`. */
  check: string;
  state: FindingState;
  /** What is so, in one sentence. */
  message: string;
  /** What to do; null where nothing is. */
  todo: string | null;
}

/** What is looked at. */
export interface Patient {
  dataDir: string;
  /** RELAY_MASTER_KEY, or null. */
  masterKey: string | null;
  /** The public origin as far as it is known; null: it is not. */
  baseUrl: string | null;
  /** How often backups are to be made, as far as it is known; null: it is not, or off. */
  backupEveryMs: number | null;
  /** Leaves out what takes long on a large database. */
  quick: boolean;
  clock: Clock;
}

export function fine(check: string, message: string): Finding {
  return { check, state: "ok", message, todo: null };
}

export function worry(check: string, message: string, todo: string): Finding {
  return { check, state: "warn", message, todo };
}

export function failure(check: string, message: string, todo: string): Finding {
  return { check, state: "fail", message, todo };
}
