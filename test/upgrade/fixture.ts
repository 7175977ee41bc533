/** Restores a database of an earlier release from its fixture: the file that the release wrote, or its rows in tables that its migrations made. */
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SQL } from "bun";
import type { DatabaseUrl } from "../../src/base/database-url.ts";
import { POSTGRES_MIGRATIONS } from "../../src/store/migrate/migrations.ts";
import { freshDatabase } from "../kit/postgres.ts";

/** Facts about the database that test/upgrade/fill.ts stores with it. */
interface Head {
  release: string;
  /** The clock's time when the database was copied. */
  nowMs: number;
  keys: { dev: string; live: string; app: string };
  people: Record<string, string>;
  masterKey: string;
  /** Texts of PostgreSQL's migrations by number, if the release had another text than today. */
  migrations: Record<string, string>;
}

export interface OldDatabase extends AsyncDisposable {
  head: Head;
  dataDir: string;
  /** Null selects relay.db in the data directory. */
  database: DatabaseUrl | null;
}

/** Restores the database of a fixture into a data directory, or into a database of the tests' PostgreSQL server. */
export async function openFixture(file: string): Promise<OldDatabase> {
  const bytes = Buffer.from(Bun.zstdDecompressSync(await Bun.file(file).bytes()));
  const end = bytes.indexOf("\n");
  const head = JSON.parse(bytes.toString("utf8", 0, end)) as Head;
  const content = bytes.subarray(end + 1);
  const dataDir = mkdtempSync(join(tmpdir(), "relay-upgrade-"));
  chmodSync(dataDir, 0o700);
  writeFileSync(join(dataDir, "master.key"), `${head.masterKey}\n`, { mode: 0o600 });
  const remove = (): void => rmSync(dataDir, { recursive: true, force: true });
  if (content.toString("latin1", 0, 6) === "SQLite") {
    writeFileSync(join(dataDir, "relay.db"), content, { mode: 0o600 });
    return { head, dataDir, database: null, [Symbol.asyncDispose]: async () => remove() };
  }
  const fresh = await freshDatabase({ empty: true });
  await putRows(fresh.url, head, JSON.parse(content.toString("utf8")) as Dump);
  return {
    head,
    dataDir,
    database: fresh.place,
    async [Symbol.asyncDispose]() {
      await fresh[Symbol.asyncDispose]();
      remove();
    },
  };
}

interface Dump {
  tables: { name: string; columns: { name: string; type: string }[]; rows: (string | null)[][] }[];
  sequences: { name: string; last: string }[];
}

async function putRows(url: string, head: Head, { tables, sequences }: Dump): Promise<void> {
  await using sql = new SQL(url, { max: 1 });
  const history = tables.find(({ name }) => name === "schema_migration");
  const newest = Math.max(...(history?.rows ?? []).map(([number]) => Number(number)));
  await sql.unsafe('CREATE TABLE schema_migration (number bigint PRIMARY KEY, name text COLLATE "C" NOT NULL, applied_at bigint NOT NULL)');
  for (const { number, sql: text } of POSTGRES_MIGRATIONS) if (number <= newest) await sql.unsafe(head.migrations[number] ?? text).simple();
  await sql.unsafe("SET session_replication_role = replica");
  await sql.unsafe(`TRUNCATE ${tables.map(({ name }) => `"${name}"`).join(", ")}`);
  for (const { name, columns, rows } of tables) {
    const names = columns.map((column) => `"${column.name}"`).join(", ");
    const values = columns.map(({ type }, at) => `(row->>${at})::${type}`).join(", ");
    await sql.unsafe(`INSERT INTO "${name}" (${names}) OVERRIDING SYSTEM VALUE SELECT ${values} FROM jsonb_array_elements($1::text::jsonb) AS row`, [
      JSON.stringify(rows),
    ]);
  }
  for (const { name, last } of sequences) await sql.unsafe("SELECT setval($1::text::regclass, $2::text::bigint)", [`"${name}"`, last]);
}
