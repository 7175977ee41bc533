/** What `backup` and `restore` say alike. */
import { BackupRefused } from "../backup/place.ts";
import { DatabaseRefused } from "../store/database-file.ts";
import { CommandFailure } from "./command.ts";

/** Runs `work`; what it refuses in a sentence becomes the command's. */
export async function explained<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof BackupRefused || error instanceof DatabaseRefused) {
      throw new CommandFailure("backup_refused", error.message);
    }
    throw error;
  }
}

/** `1 event`, `12 events`. */
export function countEvents(rows: Readonly<Record<string, number>>): string {
  const count = rows.event ?? 0;
  return count === 1 ? "1 event" : `${count} events`;
}
