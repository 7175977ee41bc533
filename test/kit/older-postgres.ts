/** Creates a PostgreSQL database as an earlier version left it. */
import { SQL } from "bun";
import { POSTGRES_MIGRATIONS } from "../../src/store/migrate/migrations.ts";
import { type FreshDatabase, freshDatabase } from "./postgres.ts";

const TABLE = 'CREATE TABLE schema_migration (number bigint PRIMARY KEY, name text COLLATE "C" NOT NULL, applied_at bigint NOT NULL)';

/** Creates the tables of that schema and runs these statements. */
export async function olderDatabase(schema: number, statements: readonly string[] = []): Promise<FreshDatabase> {
  const fresh = await freshDatabase({ empty: true });
  await using old = new SQL(fresh.url, { max: 1 });
  await old.unsafe(TABLE);
  for (const { number, name, sql } of POSTGRES_MIGRATIONS.filter((one) => one.number <= schema)) {
    await old.unsafe(sql).simple();
    await old`INSERT INTO schema_migration VALUES (${number}, ${name}, 0)`;
  }
  for (const statement of statements) await old.unsafe(statement);
  return fresh;
}
