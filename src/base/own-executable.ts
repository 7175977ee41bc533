/** How this program is called again as a process of its own. */
import { join } from "node:path";

/** The compiled executable alone, which has no other file to name; else the runtime with the main file. */
export function ownCommand(): string[] {
  // Of the modules in an executable only the main one says where it is: the others name the folder they were built from.
  const isEmbedded = /^\/\$bunfs\/|^[A-Z]:[\\/]~BUN[\\/]/i.test(Bun.main);
  return isEmbedded ? [process.execPath] : [process.execPath, join(import.meta.dir, "../main.ts")];
}
