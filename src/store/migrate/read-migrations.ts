/** Reads the migration files for the list in migrations.ts. A macro: Bun runs it when it compiles that file, so the executable needs no folder. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { hashMigration, type Migration } from "./migration-record.ts";

/** Returns the files of a folder of the project in the order of their numbers. A file's name is `NNNN-name.sql`. */
export function readMigrations(folder: string): Migration[] {
  const path = join(import.meta.dir, "../../..", folder);
  const files = readdirSync(path).filter((file) => file.endsWith(".sql"));
  return files.sort().map((file) => {
    const sql = readFileSync(join(path, file), "utf8");
    return {
      number: Number(file.slice(0, 4)),
      name: file.slice(5, -".sql".length),
      sql,
      hash: hashMigration(sql),
    };
  });
}
