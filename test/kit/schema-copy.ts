/** Creates a database with the schema by copying one that is made once for all tests. Making it takes ten times as long. */
import { constants, copyFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import schema from "../../migrations/schema/sqlite.sql" with { type: "text" };
import tables from "../../migrations/tables.json" with { type: "json" };
import { systemClock } from "../../src/base/clock.ts";
import { SQLITE_MIGRATIONS } from "../../src/store/migrate/migrations.ts";
import { openSqlite } from "../../src/store/sqlite/sqlite.ts";

const PROJECT = resolve(import.meta.dir, "../..");
const STORE = join(PROJECT, "src/store");
/** Age at which a copy is removed. A run that began earlier may still use a copy of another schema. */
const UNUSED_MS = 86_400_000;
let made: string | null = null;

/** Puts a database there, unless one exists. */
export async function placeSchema(file: string): Promise<void> {
  if (existsSync(file)) return;
  made ??= await makeSchema();
  copyFileSync(made, file, constants.COPYFILE_FICLONE);
}

/** Makes the database in a draft folder and then renames it in one step. If two processes do so at once, each gets a complete one. */
async function makeSchema(): Promise<string> {
  const hash = new Bun.CryptoHasher("sha256", Bun.version);
  for (const { number, name, sql } of SQLITE_MIGRATIONS) hash.update(`${number} ${name}\n${sql}\n`);
  hash.update(schema).update(JSON.stringify(tables));
  for (const name of [...new Bun.Glob("**/*.ts").scanSync(STORE)].sort()) hash.update(readFileSync(join(STORE, name)));
  // Checkouts of earlier releases that share these packages remove unknown files from a folder named "schema".
  const folder = join(PROJECT, "node_modules/.cache/test-schema");
  const file = join(folder, `${hash.digest("hex").slice(0, 16)}.db`);
  if (existsSync(file)) return file;
  mkdirSync(folder, { recursive: true });
  const draft = mkdtempSync(join(folder, ".draft-"));
  await (await openSqlite(join(draft, "relay.db"), { clock: systemClock })).close();
  renameSync(join(draft, "relay.db"), file);
  rmSync(draft, { recursive: true });
  for (const name of readdirSync(folder)) {
    const other = join(folder, name);
    if (name.endsWith(".db") && statSync(other).mtimeMs < Date.now() - UNUSED_MS) rmSync(other, { force: true });
  }
  return file;
}
