/** Whether the disk of a PostgreSQL has room: asked by a file that the server makes for a moment and that leaves nothing behind. */
import { systemClock } from "../../base/clock.ts";
import { DiskSpace } from "../disk-space.ts";
import type { Store } from "../port.ts";
import { causesOf } from "./error.ts";

const ASK_EVERY_MS = 5_000;
const TROUBLE = "The database's disk is full: make room there, and writes go on by themselves.";
/** As much memory as the server takes before it writes a file, which lies where the database does, and rows for about a megabyte. */
const LITTLE_MEMORY =
  "SELECT set_config('work_mem', '64kB', true) AS memory, set_config('temp_tablespaces', '', true) AS place";
const FILE = "SELECT count(*) AS rows FROM generate_series(1, ?1)";
const ROWS = 60_000;
/** By temp_file_limit. */
const FILE_REFUSED = "53400";

/** The room of the server that `read` reads. `onChange` receives the trouble when a group finds no room, and null when it ends. */
export function makeDiskSpace(read: Store["read"], onChange: (trouble: string | null) => void): DiskSpace {
  return new DiskSpace({
    clock: systemClock,
    ask: () => takesFile(read),
    everyMs: ASK_EVERY_MS,
    trouble: TROUBLE,
    onChange,
  });
}

async function takesFile(read: Store["read"]): Promise<boolean> {
  try {
    await read(async (tx) => {
      await tx.get(LITTLE_MEMORY);
      await tx.get(FILE, ROWS);
    });
    return true;
  } catch (error) {
    // A server that lets it make no such file does not say.
    return [...causesOf(error)].some(({ errno }) => errno === FILE_REFUSED);
  }
}
