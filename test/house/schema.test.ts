/**
 * The whole schema after the last migration stands in test/golden/schema.sql, and what each migration is in test/golden/migrations.txt: one that
 * is released is never edited. After a new one: UPDATE_GOLDEN=1 npm test -- test/house/schema.test.ts
 */
import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { MIGRATIONS } from "../../src/store/migrate.ts";
import { openSqlite } from "../../src/store/sqlite.ts";
import { VirtualClock } from "../kit/virtual-clock.ts";
import { PROJECT_ROOT } from "./source-tree.ts";

const golden = join(PROJECT_ROOT, "test/golden/schema.sql");

async function schemaAfterLastMigration(): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), "relay-schema-"));
  const file = join(folder, "relay.db");
  const store = await openSqlite(file, { clock: new VirtualClock(0) });
  await store.close();
  const database = new Database(file, { readonly: true });
  const rows = database.query<{ sql: string }, []>("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY tbl_name, type DESC, name").all();
  database.close();
  rmSync(folder, { recursive: true });
  return `${rows.map((row) => `${row.sql};`).join("\n\n")}\n`;
}

test("the schema after the last migration is the golden one", async () => {
  const schema = await schemaAfterLastMigration();
  if (process.env["UPDATE_GOLDEN"] !== undefined) writeFileSync(golden, schema);
  expect(schema).toBe(readFileSync(golden, "utf8"));
});

test("every migration file is in the list, numbered without a gap", () => {
  const files = readdirSync(join(PROJECT_ROOT, "migrations"))
    .filter((name) => name.endsWith(".sql"))
    .sort();
  const listed = MIGRATIONS.map(({ number, name }) => `${String(number).padStart(4, "0")}-${name}.sql`);
  expect(files).toEqual(listed);
  expect(MIGRATIONS.map(({ number }) => number)).toEqual(MIGRATIONS.map((_, index) => index + 1));
});

test("no migration was edited: a database that had it before would be another than one that gets it now", () => {
  const golden = join(PROJECT_ROOT, "test/golden/migrations.txt");
  const known = readFileSync(golden, "utf8").trimEnd().split("\n");
  const files = ["migrations", "migrations/postgres"].flatMap((folder) =>
    readdirSync(join(PROJECT_ROOT, folder))
      .filter((name) => name.endsWith(".sql"))
      .sort()
      .map((name) => `${folder}/${name}`),
  );
  const now = files.map((file) => `${new Bun.CryptoHasher("sha256").update(readFileSync(join(PROJECT_ROOT, file))).digest("hex")} ${file}`);
  const added = now.filter((line) => !known.some((one) => one.split(" ")[1] === line.split(" ")[1]));
  if (process.env["UPDATE_GOLDEN"] !== undefined)
    writeFileSync(golden, `${[...known, ...added].sort((one, other) => one.slice(65).localeCompare(other.slice(65), "en")).join("\n")}\n`);
  expect(now.toSorted()).toEqual(readFileSync(golden, "utf8").trimEnd().split("\n").toSorted());
});
