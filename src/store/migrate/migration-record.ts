/**
 * The record of which text of each migration a database got, by the text's hash. A migration never changes after its release. A database with
 * another hash was written by a build between two releases, and its tables may differ from this version's.
 */

/** A migration, as far as the record needs it. */
interface MigrationText {
  number: number;
  name: string;
  sql: string;
}

/** A row of `schema_migration`; `hash` is absent before schema 51. */
export interface AppliedMigration {
  number: number;
  name: string;
  hash?: string | null;
}

/** Stores the hash of a migration that has none: of the text whose tables the database has now. */
export const RECORD_HASH = "UPDATE schema_migration SET hash = ?2 WHERE number = ?1 AND hash IS NULL";

/** The SHA-256 of a migration's text in hex, the same whatever ends its lines. */
export function hashMigration(sql: string): string {
  return new Bun.CryptoHasher("sha256").update(sql.replaceAll("\r\n", "\n")).digest("hex");
}

/** The migrations that the database got with another text than this version has, such as `migration 49 (plan-end) has another text here`. */
export function listEdited(
  applied: readonly AppliedMigration[],
  migrations: readonly MigrationText[],
): string[] {
  return migrations.flatMap(({ number, sql }) => {
    const row = applied.find((one) => one.number === number);
    if (row === undefined || (row.hash ?? null) === null || row.hash === hashMigration(sql)) return [];
    return [`migration ${number} (${row.name}) has another text here`];
  });
}
