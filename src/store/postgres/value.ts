/** Converts values for PostgreSQL and back, so that modules get the same types as from SQLite. */
import type { SqlArguments, SqlNames, SqlValue } from "../port.ts";

/** Orders the values by the placeholders of a translated statement. Throws if one is missing. */
export function arrange(sql: string, places: readonly (string | number)[], values: SqlArguments): unknown[] {
  const [first] = values;
  const names =
    typeof first === "object" && first !== null && !(first instanceof Uint8Array)
      ? (first as SqlNames)
      : null;
  return places.map((place) => {
    const value = typeof place === "number" ? (values[place] as SqlValue | undefined) : names?.[place];
    if (value === undefined) throw new Error(`Missing parameter "${place}" of: ${sql}`);
    return asPostgresTakes(value);
  });
}

/**
 * Converts a value for PostgreSQL. U+0000, which a text cannot contain there, becomes the replacement character, as half a surrogate pair does in
 * both databases.
 */
export function asPostgresTakes(value: SqlValue): unknown {
  if (typeof value === "string") return value.includes("\0") ? value.replaceAll("\0", "\ufffd") : value;
  if (typeof value === "boolean") return value ? 1 : 0;
  return value;
}

/** Converts the bigints and booleans of a row to numbers, as SQLite returns them. Every integer that this service stores is a safe integer. */
export function asSqliteGives(row: Record<string, unknown>): void {
  for (const name in row) {
    const value = row[name];
    if (typeof value === "bigint") row[name] = Number(value);
    else if (typeof value === "boolean") row[name] = value ? 1 : 0;
  }
}
