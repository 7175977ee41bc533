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
    const existing = new Map(table.columns.map(splitColumn));
    return columns.map(splitColumn).flatMap(([column, type]) => {
      const other = existing.get(column);
      if (other === undefined) return [`${name} has no column ${column}`];
      return other === type ? [] : [`${name}.${column} is ${other} and must be ${type}`];
    });
  });
}

function splitColumn(column: string): readonly [name: string, type: string] {
  const at = column.indexOf(" ");
  return [column.slice(0, at), column.slice(at + 1)];
}

/** Reads the tables of a SQLite database, without SQLite's own. */
export async function readSqliteShape(tx: Reader): Promise<SchemaShape> {
  const columns = await tx.all<{ table: string; column: string }>(
    `SELECT m.name AS "table", c.name || ' ' || c.type || iif(c."notnull", ' not null', '') AS "column"
     FROM sqlite_schema m JOIN pragma_table_xinfo(m.name) c WHERE m.type = 'table' AND ${NOT_ITS_OWN} ORDER BY m.name, c.cid`,
  );
  const others = await tx.all<NamedPart>(
    `SELECT m.tbl_name AS "table", m.type AS kind, m.name AS name FROM sqlite_schema m
     WHERE m.type IN ('index', 'trigger') AND ${NOT_ITS_OWN} ORDER BY m.name`,
  );
  return makeShape(columns, others);
}

const NOT_ITS_OWN = "m.name NOT LIKE 'sqlite\\_%' ESCAPE '\\'";

/** An index or trigger of a table. */
export interface NamedPart {
  table: string;
  kind: "index" | "trigger";
  name: string;
}

/** Groups columns, indexes and triggers by their table. */
export function makeShape(
  columns: readonly { table: string; column: string }[],
  parts: readonly NamedPart[],
): SchemaShape {
  const partsOf = Map.groupBy(parts, ({ table }) => table);
  const named = (table: string, kind: NamedPart["kind"]): string[] =>
    (partsOf.get(table) ?? []).filter((part) => part.kind === kind).map(({ name }) => name);
  const tables = [...Map.groupBy(columns, ({ table }) => table)].map(([table, own]) => [
    table,
    {
      columns: own.map(({ column }) => column),
      indexes: named(table, "index"),
      triggers: named(table, "trigger"),
    },
  ]);
  return Object.fromEntries(tables);
}
