/** The numbered migrations of both databases, embedded in the executable: each file of the folders is one. */

import type { Migration } from "./migration-record.ts";
import { readMigrations } from "./read-migrations.ts" with { type: "macro" };

export class MigrationRefused extends Error {}

export const SQLITE_MIGRATIONS: readonly Migration[] = readMigrations("migrations");
/** The first creates the complete schema of its number, because PostgreSQL was supported from that schema on. The others have SQLite's numbers. */
export const POSTGRES_MIGRATIONS: readonly Migration[] = readMigrations("migrations/postgres");

/** The number of the newest migration, on both databases. */
export const SCHEMA_VERSION = SQLITE_MIGRATIONS.at(-1)?.number ?? 0;
