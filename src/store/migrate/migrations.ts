/** The numbered migrations of both databases, embedded in the executable: each file of the folders is one. */

import { unpack } from "../../base/packed.ts";
import type { Migration } from "./migration-record.ts";
import { readMigrations } from "./read-migrations.ts" with { type: "macro" };
import type { MigrationFolder } from "./read-migrations.ts";

export class MigrationRefused extends Error {}

class EmbeddedMigration implements Migration {
  readonly number: number;
  readonly name: string;
  readonly hash: string;
  readonly #readText: () => string;

  constructor({ number, name, hash }: MigrationFolder["heads"][number], readText: () => string) {
    this.number = number;
    this.name = name;
    this.hash = hash;
    this.#readText = readText;
  }

  get sql(): string {
    return this.#readText();
  }
}

export const SQLITE_MIGRATIONS: readonly Migration[] = listMigrations(readMigrations("migrations"));
/** The first creates the complete schema of its number, because PostgreSQL was supported from that schema on. The others have SQLite's numbers. */
export const POSTGRES_MIGRATIONS: readonly Migration[] = listMigrations(
  readMigrations("migrations/postgres"),
);

/** The number of the newest migration, on both databases. */
export const SCHEMA_VERSION = SQLITE_MIGRATIONS.at(-1)?.number ?? 0;

/** Makes the list. The first text that is read unpacks all. */
function listMigrations({ heads, texts }: MigrationFolder): Migration[] {
  let unpacked: readonly string[] | undefined;
  const readText = (index: number): string => {
    unpacked ??= unpack<string[]>(texts);
    return unpacked[index] ?? "";
  };
  return heads.map((head, index) => new EmbeddedMigration(head, () => readText(index)));
}
