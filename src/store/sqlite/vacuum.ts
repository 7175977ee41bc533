/** Shrinks the database file: frees the space of deleted rows in small steps, and empties the log. */
import type { Reader, Writer } from "../port.ts";
import type { SqliteConnection } from "./connection.ts";

/** Pages that one step moves, half a megabyte at most, so that no caller waits long for the writer. */
const PAGES_A_STEP = 128;
/** Free pages that stay in the file: a megabyte, or PART_KEPT of the file if that is more. */
const PAGES_KEPT = 256;
const PART_KEPT = 1 / 16;

/** Frees up to `PAGES_A_STEP` pages. Returns whether more can be freed. With `everything`, no free page stays. */
export async function giveBackPages(
  tx: Writer,
  { everything = false }: { everything?: boolean } = {},
): Promise<boolean> {
  const keptOf = everything ? () => 0 : keptPagesOf;
  const before = await countPages(tx);
  if (before.free <= keptOf(before.all)) return false;
  await tx.all(`PRAGMA incremental_vacuum(${PAGES_A_STEP})`);
  const after = await countPages(tx);
  // A file that was made without incremental vacuum frees nothing.
  return after.free < before.free && after.free > keptOf(after.all);
}

/**
 * Moves the whole log into the database and truncates it. If a transaction is open or another process reads from the log, a later call does it. No
 * read of this process may be open. It never waits.
 */
export function emptyLog(writer: SqliteConnection): void {
  if (!writer.inTransaction) writer.exec("PRAGMA wal_checkpoint(TRUNCATE)");
}

function keptPagesOf(pages: number): number {
  return Math.max(PAGES_KEPT, Math.floor(pages * PART_KEPT));
}

async function countPages(tx: Reader): Promise<{ all: number; free: number }> {
  const row = await tx.get<{ pages: number; free: number }>(
    "SELECT (SELECT page_count FROM pragma_page_count) AS pages, (SELECT freelist_count FROM pragma_freelist_count) AS free",
  );
  return { all: row?.pages ?? 0, free: row?.free ?? 0 };
}
