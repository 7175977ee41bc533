/** How values cross to PostgreSQL and back, so that the rooms meet those that SQLite gives. */
import type { SqlArguments, SqlNames, SqlValue } from "../port.ts";

/** The values by the places of a translated statement. Throws where one is missing. */
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

/** A text there has no U+0000: the mark of what cannot be written takes its place, as it does for half a surrogate in both databases. */
export function asPostgresTakes(value: SqlValue): unknown {
  if (typeof value === "string") return value.includes("\0") ? value.replaceAll("\0", "\ufffd") : value;
  if (typeof value === "boolean") return value ? 1 : 0;
  return value;
}

/** Large integers come as BigInt and truth values as themselves; every one that the house keeps is a safe integer. */
export function asSqliteGives(row: Record<string, unknown>): void {
  for (const name in row) {
    const value = row[name];
    if (typeof value === "bigint") row[name] = Number(value);
    else if (typeof value === "boolean") row[name] = value ? 1 : 0;
  }
}
