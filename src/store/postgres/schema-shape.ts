/** Reads the tables of a PostgreSQL database, in the schema of the service's own tables. */

import { makeShape, type NamedPart, type SchemaShape } from "../migrate/schema-difference.ts";
import type { Reader } from "../port.ts";

const OWN = "c.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'schema_migration'::regclass)";

/** Reads tables with their columns, valid indexes and triggers, except those that a constraint creates. */
export async function readPostgresShape(tx: Reader): Promise<SchemaShape> {
  const columns = await tx.all<{ table: string; place: number; column: string }>(
    `SELECT c.relname AS "table", a.attnum AS place, a.attname || ' ' || format_type(a.atttypid, a.atttypmod) || CASE WHEN a.attnotnull THEN ' not null' ELSE '' END AS "column"
     FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
     WHERE ${OWN} AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped`,
  );
  const parts = await tx.all<NamedPart>(
    `SELECT c.relname AS "table", 'index' AS kind, i.relname AS name FROM pg_index x JOIN pg_class c ON c.oid = x.indrelid JOIN pg_class i ON i.oid = x.indexrelid
     WHERE ${OWN} AND x.indisvalid AND NOT EXISTS (SELECT 1 FROM pg_constraint WHERE conindid = x.indexrelid AND contype IN ('p', 'u', 'x'))
     UNION ALL SELECT c.relname, 'trigger', t.tgname FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid WHERE ${OWN} AND NOT t.tgisinternal`,
  );
  // Sorts here, because the server may give a user too little space to sort.
  columns.sort((one, other) => compare(one.table, other.table) || one.place - other.place);
  parts.sort((one, other) => compare(one.name, other.name));
  const tables = Map.groupBy(columns, ({ table }) => table);
  return makeShape(
    [...tables].map(([table, own]) => [table, own.map(({ column }) => column)]),
    parts,
  );
}

function compare(one: string, other: string): number {
  return one < other ? -1 : Number(one > other);
}
