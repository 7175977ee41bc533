/**
 * Compares a database's tables with those of this version, which the schema tests write into migrations/tables.json. A database with the right
 * number but other columns would fail after the start, so it is refused at the start.
 */
import tables from "../../../migrations/tables.json" with { type: "json" };
import type { Reader } from "../port.ts";

/** The tables of a database by name. */
export type SchemaShape = Readonly<Record<string, TableShape>>;

interface TableShape {
  /** Each as its name and type, such as `version INTEGER not null`. */
  columns: readonly string[];
  /** Names, without the indexes that a constraint creates. */
  indexes: readonly string[];
  triggers: readonly string[];
}

/** This version's tables in either database. */
export const TABLES: Readonly<Record<"sqlite" | "postgres", SchemaShape>> = tables;

/** Means that the tables are not those of their version. The message says what differs and what to do. The database is unchanged. */
export class SchemaDiffers extends Error {}

const SHOWN = 5;

/** Makes the error for differences such as `relay has no column promoted_version`. */
export function differs(differences: readonly string[]): SchemaDiffers {
  const more = differences.length > SHOWN ? `; and ${differences.length - SHOWN} more` : "";
  return new SchemaDiffers(
    `The tables of this database are not those of its version, and this executable knows no repair: ${differences.slice(0, SHOWN).join("; ")}${more}. Nothing was changed. To do: start the version that wrote the database, or restore a backup that a released version made.`,
  );
}

/**
 * Lists missing tables and columns and columns of another type, such as `relay has no column promoted_version`. `parts` adds missing indexes and
 * triggers. Additional tables and columns are allowed, because they belong to the operator.
 */
export function listDifferences(found: SchemaShape, wanted: SchemaShape, { parts = false } = {}): string[] {
  const differences = listColumnDifferences(found, wanted);
  if (!parts) return differences;
  for (const [name, { indexes, triggers }] of Object.entries(wanted)) {
    const table = found[name];
    if (table === undefined) continue;
    for (const [kind, names, existing] of [
      ["index", indexes, table.indexes],
      ["trigger", triggers, table.triggers],
    ] as const)
      for (const one of names) if (!existing.includes(one)) differences.push(`${name} has no ${kind} ${one}`);
  }
  return differences;
}

function listColumnDifferences(found: SchemaShape, wanted: SchemaShape): string[] {
  return Object.entries(wanted).flatMap(([name, { columns }]) => {
    const table = found[name];
    if (table === undefined) return [`there is no table ${name}`];
    if (isSame(table.columns, columns)) return [];
    const existing = new Map(table.columns.map(splitColumn));
    return columns.map(splitColumn).flatMap(([column, type]) => {
      const other = existing.get(column);
      if (other === undefined) return [`${name} has no column ${column}`];
      return other === type ? [] : [`${name}.${column} is ${other} and must be ${type}`];
    });
  });
}

/** Reports whether both lists are equal, which is usual and takes a tenth of the time that the comparison by name takes. */
function isSame(found: readonly string[], wanted: readonly string[]): boolean {
  return found.length === wanted.length && found.join("\n") === wanted.join("\n");
}

function splitColumn(column: string): readonly [name: string, type: string] {
  const at = column.indexOf(" ");
  return [column.slice(0, at), column.slice(at + 1)];
}

/** Reads the tables of a SQLite database, without SQLite's own. SQLite makes one text of a table's columns, because every start reads them all. */
export async function readSqliteShape(tx: Reader): Promise<SchemaShape> {
  const tables = await tx.all<{ table: string; columns: string }>(
    `SELECT m.name AS "table",
       (SELECT group_concat(c.name || ' ' || c.type || iif(c."notnull", ' not null', ''), char(10) ORDER BY c.cid) FROM pragma_table_xinfo(m.name) c) AS columns
     FROM sqlite_schema m WHERE m.type = 'table' AND ${NOT_ITS_OWN} ORDER BY m.name`,
  );
  const others = await tx.all<NamedPart>(
    `SELECT m.tbl_name AS "table", m.type AS kind, m.name AS name FROM sqlite_schema m
     WHERE m.type IN ('index', 'trigger') AND ${NOT_ITS_OWN} ORDER BY m.name`,
  );
  return makeShape(
    tables.map(({ table, columns }) => [table, columns.split("\n")]),
    others,
  );
}

const NOT_ITS_OWN = "m.name NOT LIKE 'sqlite\\_%' ESCAPE '\\'";

/** An index or trigger of a table. */
export interface NamedPart {
  table: string;
  kind: "index" | "trigger";
  name: string;
}

/** Adds indexes and triggers to the columns of each table. */
export function makeShape(
  tables: readonly (readonly [table: string, columns: readonly string[]])[],
  parts: readonly NamedPart[],
): SchemaShape {
  const shape: Record<string, { columns: readonly string[]; indexes: string[]; triggers: string[] }> = {};
  for (const [table, columns] of tables) shape[table] = { columns, indexes: [], triggers: [] };
  for (const { table, kind, name } of parts)
    shape[table]?.[kind === "index" ? "indexes" : "triggers"].push(name);
  return shape;
}
