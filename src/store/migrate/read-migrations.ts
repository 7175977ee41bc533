/** Reads the migration files for the list in migrations.ts. A macro: Bun runs it when it compiles that file, so the executable needs no folder. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { pack } from "../../base/packed.ts";
import { hashMigration, type Migration } from "./migration-record.ts";

/** The migrations of a folder. Their texts are packed, because a start reads only the rest. */
export interface MigrationFolder {
  heads: Omit<Migration, "sql">[];
  texts: string;
}

/** Returns the files of a folder of the project in the order of their numbers. A file's name is `NNNN-name.sql`. */
export function readMigrations(folder: string): MigrationFolder {
  const path = join(import.meta.dir, "../../..", folder);
  const files = readdirSync(path).filter((file) => file.endsWith(".sql"));
  const all = files.sort().map((file) => ({ file, sql: readFileSync(join(path, file), "utf8") }));
  const heads = all.map(({ file, sql }) => ({
    number: Number(file.slice(0, 4)),
    name: file.slice(5, -".sql".length),
    hash: hashMigration(sql),
  }));
  return { heads, texts: pack(all.map(({ sql }) => sql)) };
}
