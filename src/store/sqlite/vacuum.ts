/** Looking after the file: room that deleted rows left is given back in small steps, and the log is cut to nothing. */
import type { Reader, Writer } from "../port.ts";
import type { SqliteConnection } from "./connection.ts";

/** One step is a transaction of half a megabyte moved at most, so that nobody waits long for the writer. */
const PAGES_A_STEP = 128;
/** Free pages that are kept: a megabyte, or this part of the file. */
const PAGES_KEPT = 256;
const PART_KEPT = 1 / 16;

/** Gives back up to `PAGES_A_STEP` pages; answers whether there are more to give. `everything`: it keeps none. */
export async function giveBackPages(
  tx: Writer,
  { everything = false }: { everything?: boolean } = {},
): Promise<boolean> {
  const keptOf = everything ? () => 0 : keptPagesOf;
  const before = await countPages(tx);
  if (before.free <= keptOf(before.all)) return false;
  await tx.all(`PRAGMA incremental_vacuum(${PAGES_A_STEP})`);
  const after = await countPages(tx);
  // A file made without incremental vacuum gives nothing back.
  return after.free < before.free && after.free > keptOf(after.all);
}

/**
 * Moves the whole log into the database and cuts it to nothing, unless a transaction is open or another process reads from the log: then
 * the next time does it. Call while no read of this process is open; it waits for nobody.
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
