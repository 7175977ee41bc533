/** A new database with the schema in it, copied from one that is made once for all tests: to make it takes ten times as long. */
import { constants, copyFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { systemClock } from "../../src/base/clock.ts";
import { SQLITE_MIGRATIONS } from "../../src/store/migrate/migrations.ts";
import { openSqlite } from "../../src/store/sqlite/sqlite.ts";

const PROJECT = resolve(import.meta.dir, "../..");
const STORE = join(PROJECT, "src/store");
/** A copy of another schema may be in use by a run that began earlier. */
const UNUSED_MS = 86_400_000;
let made: string | null = null;

/** Puts it there, unless a database is there already. */
export async function placeSchema(file: string): Promise<void> {
  if (existsSync(file)) return;
  made ??= await makeSchema();
  copyFileSync(made, file, constants.COPYFILE_FICLONE);
}

/** Made beside its place and put there in one step: of two processes that do it at once, each has a whole one. */
async function makeSchema(): Promise<string> {
  const hash = new Bun.CryptoHasher("sha256", Bun.version);
  for (const { number, name, sql } of SQLITE_MIGRATIONS) hash.update(`${number} ${name}\n${sql}\n`);
  for (const name of [...new Bun.Glob("**/*.ts").scanSync(STORE)].sort()) hash.update(readFileSync(join(STORE, name)));
  // Trees of earlier releases that share these packages remove what they do not know from a folder named "schema".
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
