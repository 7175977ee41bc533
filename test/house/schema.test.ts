/**
 * Checks that the schema after the last migration equals test/golden/schema.sql, and its tables and columns equal migrations/tables.json.
 * After a new migration, run: UPDATE_GOLDEN=1 npm test -- test/house/schema.test.ts test/house/postgres-schema.test.ts
 */
import { expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SQLITE_MIGRATIONS } from "../../src/store/migrate/migrations.ts";
import { readSqliteShape } from "../../src/store/migrate/schema-difference.ts";
import type { Reader } from "../../src/store/port.ts";
import { openDatabaseFile } from "../../src/store/sqlite/database-file.ts";
import { openSqlite } from "../../src/store/sqlite/sqlite.ts";
import { readExpected } from "../kit/expected-schema.ts";
import { VirtualClock } from "../kit/virtual-clock.ts";
import { PROJECT_ROOT } from "./source-tree.ts";

const golden = join(PROJECT_ROOT, "test/golden/schema.sql");

/** Opens a database with every migration, before a start has changed it. */
async function withSchema<Result>(look: (tx: Reader) => Promise<Result>): Promise<Result> {
  const folder = mkdtempSync(join(tmpdir(), "relay-schema-"));
  const file = join(folder, "relay.db");
  const store = await openSqlite(file, { clock: new VirtualClock(0) });
  await store.close();
  using database = openDatabaseFile(file);
  const result = await look(database);
  rmSync(folder, { recursive: true });
  return result;
}

test("the schema after the last migration equals the golden file", async () => {
  const rows = await withSchema((tx) =>
    tx.all<{ sql: string }>("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY tbl_name, type DESC, name"),
  );
  const schema = `${rows.map((row) => `${row.sql};`).join("\n\n")}\n`;
  if (process.env["UPDATE_GOLDEN"] !== undefined) writeFileSync(golden, schema);
  expect(schema).toBe(readFileSync(golden, "utf8"));
});

test("a start and doctor compare with the schema after the last migration", async () => {
  const found = await withSchema(readSqliteShape);
  expect(found).toEqual(readExpected("sqlite", found));
});

test("the migrations are numbered without a gap", () => {
  expect(SQLITE_MIGRATIONS.map(({ number }) => number)).toEqual(SQLITE_MIGRATIONS.map((_, index) => index + 1));
});
