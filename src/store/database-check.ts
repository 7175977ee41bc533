/**
 * Whether a database file is whole: SQLite's own checks, the rows that refer to others, the schema's history and what every database of
 * this service holds. It reads only.
 */
import { DatabaseRefused, openDatabaseFile, readSchemaVersion, refuseUnreadable } from "./database-file.ts";
import { SCHEMA_VERSION } from "./migrate.ts";
import type { Reader } from "./port.ts";

const SHOWN_FAULTS = 5;

/** A file that was read through and found whole. */
export interface CheckedDatabase {
  schema: number;
  /** Rows by table. */
  rows: Readonly<Record<string, number>>;
}

/** Reads the whole file. Throws DatabaseRefused: missing, no database of this service, newer than this executable, or damaged. */
export async function checkDatabase(file: string): Promise<CheckedDatabase> {
  try {
    using database = openDatabaseFile(file);
    const schema = await readSchemaVersion(database);
    if (schema === null) {
      throw new DatabaseRefused(
        "foreign",
        `${file} is not a database of this service: name a file that relay backup made.`,
      );
    }
    if (schema > SCHEMA_VERSION) {
      throw new DatabaseRefused(
        "newer",
        `${file} was written by a newer version (schema ${schema}, this executable knows ${SCHEMA_VERSION}): use that version.`,
      );
    }
    const faults = await findFaults(database);
    if (faults.length > 0) {
      throw new DatabaseRefused("damaged", `${file} is damaged (${faults.join("; ")}): use another copy.`);
    }
    return { schema, rows: await countRows(database) };
  } catch (error) {
    throw refuseUnreadable(file, error);
  }
}

/** What is wrong inside, at most a few of each; none: it is whole. `quick` leaves out what takes longest, indexes against their tables. */
export async function findFaults(tx: Reader, options: { quick?: boolean } = {}): Promise<string[]> {
  const pragma = options.quick === true ? "quick_check" : "integrity_check";
  const pages = await tx.all<Record<string, string>>(`PRAGMA ${pragma}(${SHOWN_FAULTS})`);
  const found = pages.flatMap((row) => Object.values(row)).filter((text) => text !== "ok");
  if (found.length > 0) return found;
  const dangling = await tx.all<{ table: string; parent: string }>("PRAGMA foreign_key_check");
  if (dangling.length > 0) {
    const pairs = [...new Set(dangling.map(({ table, parent }) => `${table} to ${parent}`))];
    found.push(`${dangling.length} rows refer to rows that are not there: ${pairs.join(", ")}`);
  }
  const history = await tx.all<{ number: number }>("SELECT number FROM schema_migration ORDER BY number");
  if (history.some(({ number }, index) => number !== index + 1)) {
    found.push("its list of migrations has a gap");
  }
  const switches = await tx.all<{ captured: number }>("SELECT captured FROM capture_switch");
  if (switches.length !== 1 || switches[0]?.captured !== 1)
    found.push("its capture switch is not as it must be");
  return found;
}

/** Rows by table. */
async function countRows(tx: Reader): Promise<Record<string, number>> {
  const tables = await tx.all<{ name: string }>(
    "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name",
  );
  const rows: Record<string, number> = {};
  for (const { name } of tables) {
    const counted = await tx.get<{ count: number }>(`SELECT count(*) AS count FROM "${name}"`);
    rows[name] = counted?.count ?? 0;
  }
  return rows;
}
