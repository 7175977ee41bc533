/**
 * Which database the kits open. `npm test` runs the suites of the rooms above the store on both: the second time TEST_STORE names PostgreSQL.
 * A test of what only a database file has says so with `testOfFile`.
 */
import { test } from "bun:test";
import { SQL } from "bun";
import type { DatabaseUrl } from "../../src/ground/database-url.ts";
import { PostgresConnection } from "../../src/store/postgres-connection.ts";
import { freshDatabase } from "./postgres.ts";

export const ON_POSTGRES = process.env.TEST_STORE === "postgres";

/** Of what SQLite alone has: its file, its locks, its plans. */
export const testOfFile = (name: string, work: () => void | Promise<void>, timeoutMs?: number): void => {
  if (!ON_POSTGRES) test(name, work, timeoutMs);
};

/** The schema's columns, as rows of `tableName` and `columnName`. */
export const COLUMNS = ON_POSTGRES
  ? "(SELECT table_name AS tableName, column_name AS columnName FROM information_schema.columns WHERE table_schema = 'public') AS columns"
  : "(SELECT m.name AS tableName, c.name AS columnName FROM sqlite_master m JOIN pragma_table_info(m.name) c WHERE m.type = 'table') AS columns";

/** Every table, by name. */
export const TABLES = `SELECT DISTINCT tableName AS name FROM ${COLUMNS} ORDER BY tableName`;

/** A database of its own on the tests' server, with the schema in it. */
export async function chooseDatabase(): Promise<{ url: string; database: DatabaseUrl; dispose: () => Promise<void> }> {
  const fresh = await freshDatabase();
  return { url: fresh.url, database: fresh.place, dispose: async () => fresh[Symbol.asyncDispose]() };
}

const BY_HAND = `new (require("bun:sqlite").Database)(process.argv[1]).run(process.argv[2])`;

/** In a database that is named by its file or its URL. */
export async function writeByHand(database: string, sql: string): Promise<void> {
  if (database.startsWith("postgres")) {
    const hand = new SQL(database, { max: 1 });
    await hand.unsafe(sql);
    await hand.close();
    return;
  }
  const hand = Bun.spawn([process.execPath, "-e", BY_HAND, database, sql]);
  if ((await hand.exited) !== 0) throw new Error(`It could not be written by hand: ${sql}`);
}

let asked = 0;

/** Statements that a PostgreSQL has not answered yet: what waits for one is not at rest, however often the loop turns. */
export const unanswered = (): number => asked;

if (ON_POSTGRES) {
  const { prototype } = PostgresConnection;
  for (const name of ["get", "all", "run", "script"] as const) {
    const ask = prototype[name] as (...words: unknown[]) => Promise<unknown>;
    Object.defineProperty(prototype, name, {
      value(this: PostgresConnection, ...words: unknown[]) {
        asked += 1;
        const answered = ask.apply(this, words);
        const done = (): void => {
          asked -= 1;
        };
        answered.then(done, done);
        return answered;
      },
    });
  }
}
