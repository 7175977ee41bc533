/** Reads a folder of JSON files for a macro: Bun runs it when it compiles the file that imports it, so the executable needs no folder. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { pack } from "./packed.ts";

/** Returns the files of a folder of the project, in alphabetical order of their names. The caller's tests check that each is a `File`. */
export function readJsonFolder<File>(folder: string): File[] {
  const path = join(import.meta.dir, "../..", folder);
  const names = readdirSync(path).filter((name) => name.endsWith(".json"));
  return names.sort().map((name) => JSON.parse(readFileSync(join(path, name), "utf8")) as File);
}

/** Returns the same, packed. */
export function packJsonFolder(folder: string): string {
  return pack(readJsonFolder(folder));
}
