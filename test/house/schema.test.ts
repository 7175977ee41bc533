/**
 * Checks that migrations/schema/sqlite.sql, from which a new database is made, is the result of all migrations, and that its tables and columns equal
 * migrations/tables.json.
 * After a new migration, run: UPDATE_GOLDEN=1 npm test -- test/house/schema.test.ts test/house/postgres-schema.test.ts
 */
import { expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { hashMigration } from "../../src/store/migrate/migration-record.ts";
import { SQLITE_MIGRATIONS } from "../../src/store/migrate/migrations.ts";
import { readSqliteShape } from "../../src/store/migrate/schema-difference.ts";
import type { Reader } from "../../src/store/port.ts";
import { openDatabaseFile } from "../../src/store/sqlite/database-file.ts";
import { readExpected } from "../kit/expected-schema.ts";
import { openMigrated } from "../kit/migrated-database.ts";
import { VirtualClock } from "../kit/virtual-clock.ts";
import { PROJECT_ROOT } from "./source-tree.ts";

const FILE = join(PROJECT_ROOT, "migrations/schema/sqlite.sql");

/** Selects the statements of the schema. The table of the migrations exists before any of them. */
const STATEMENTS = `SELECT sql FROM sqlite_schema
  WHERE sql IS NOT NULL AND name <> 'schema_migration' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'
  ORDER BY tbl_name, type = 'trigger', type DESC, name`;

/** Opens a new database, before a start has changed it. The store is imported late, because UPDATE_GOLDEN writes the schema that it imports. */
async function withSchema<Result>(look: (tx: Reader) => Promise<Result>): Promise<Result> {
  const folder = mkdtempSync(join(tmpdir(), "relay-schema-"));
  const file = join(folder, "relay.db");
  const { openSqlite } = await import("../../src/store/sqlite/sqlite.ts");
  const store = await openSqlite(file, { clock: new VirtualClock(0) });
  await store.close();
  using database = openDatabaseFile(file);
  const result = await look(database);
  rmSync(folder, { recursive: true });
  return result;
}

/** Returns the statements that make the schema of a migrated database, and its rows. */
function writeSchema(): string {
  using database = openMigrated();
  const statements = database.query<{ sql: string }, []>(STATEMENTS).all();
  const tables = database.query<{ name: string }, []>("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name").all();
  const rows = tables.flatMap(({ name }) => {
    const found = database.query<Record<string, string | number | null>, []>(`SELECT * FROM "${name}"`).all();
    return found.map((row) => `INSERT INTO ${name} (${Object.keys(row).join(", ")}) VALUES (${Object.values(row).map(literal).join(", ")})`);
  });
  return `${[...statements.map(({ sql }) => sql), ...rows].join(";\n\n")};\n`;
}

function literal(value: string | number | null): string {
  return typeof value === "string" ? `'${value.replaceAll("'", "''")}'` : String(value);
}

test("a new database gets the tables and rows that all migrations make", async () => {
  const schema = writeSchema();
  if (process.env["UPDATE_GOLDEN"] !== undefined) writeFileSync(FILE, schema);
  expect(readFileSync(FILE, "utf8")).toBe(schema);
  const found = await withSchema((tx) => tx.all<{ sql: string }>(STATEMENTS));
  expect(schema.startsWith(found.map(({ sql }) => `${sql};`).join("\n\n"))).toBe(true);
});

test("a new database records every migration with the hash of its text", async () => {
  const rows = await withSchema((tx) =>
    tx.all<{ number: number; name: string; hash: string }>("SELECT number, name, hash FROM schema_migration ORDER BY number"),
  );
  expect(rows).toEqual(SQLITE_MIGRATIONS.map(({ number, name, sql }) => ({ number, name, hash: hashMigration(sql) })));
});

test("a start and doctor compare with the schema after the last migration", async () => {
  const found = await withSchema(readSqliteShape);
  expect(found).toEqual(readExpected("sqlite", found));
});

test("the migrations are numbered without a gap", () => {
  expect(SQLITE_MIGRATIONS.map(({ number }) => number)).toEqual(SQLITE_MIGRATIONS.map((_, index) => index + 1));
});
