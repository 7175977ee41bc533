/** Finds the command that starts this program as a new process. */
import { join } from "node:path";

/** The argument that makes this program the process that migrates for a server. It is not a command of the command line. */
export const MIGRATION_WORD = "--bring-database-to-schema";

/** Returns only the path of a compiled executable. Otherwise returns the runtime and the main file. */
export function ownCommand(): string[] {
  // Checks the main module, because the other modules of an executable name the folder from which they were built.
  const isEmbedded = /^\/\$bunfs\/|^[A-Z]:[\\/]~BUN[\\/]/i.test(Bun.main);
  return isEmbedded ? [process.execPath] : [process.execPath, join(import.meta.dir, "../main.ts")];
}
