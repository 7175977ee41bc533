/**
 * Records the hash of each migration's text in the database. A migration never changes after its release. Another hash means that a build between
 * two releases wrote the database, so its tables can differ from this version's.
 */

/** A migration as a file of the migrations folder defines it. */
export interface Migration {
  number: number;
  name: string;
  sql: string;
  /** The SHA-256 of the text. It is computed when the executable is compiled, because every start compares it. */
  hash: string;
}

/** A row of `schema_migration`. `hash` is absent before schema 51. */
export interface AppliedMigration {
  number: number;
  name: string;
  hash?: string | null;
}

/** Stores the hash of a migration that has none. */
export const RECORD_HASH = "UPDATE schema_migration SET hash = ?2 WHERE number = ?1 AND hash IS NULL";

/** Returns the SHA-256 of a migration's text in hex. Line endings do not change it. */
export function hashMigration(sql: string): string {
  return new Bun.CryptoHasher("sha256").update(sql.replaceAll("\r\n", "\n")).digest("hex");
}

/** Lists the migrations whose applied text differs from this version's, such as `migration 49 (plan-end) has another text here`. */
export function listEdited(applied: readonly AppliedMigration[], migrations: readonly Migration[]): string[] {
  const rows = new Map(applied.map((row) => [row.number, row]));
  return migrations.flatMap(({ number, hash }) => {
    const row = rows.get(number);
    if (row === undefined || (row.hash ?? null) === null || row.hash === hash) return [];
    return [`migration ${number} (${row.name}) has another text here`];
  });
}
