/** Reads the pages of docs/ for written.ts. A macro: Bun runs it when it compiles that file, so the executable needs no folder. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { pack } from "../../base/packed.ts";

const FOLDER = join(import.meta.dir, "../../../docs");
const END = ".md";

/** Returns the text of each page by its ID, packed. */
export function packWrittenPages(): string {
  const files = readdirSync(FOLDER).filter((file) => file.endsWith(END));
  return pack(
    Object.fromEntries(
      files
        .sort()
        .map((file) => [file.slice(0, -END.length), readFileSync(join(FOLDER, file), "utf8")] as const),
    ),
  );
}
