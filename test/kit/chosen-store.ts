/**
 * Which database the kits open. `npm test` runs the suites of the rooms above the store on both: the second time TEST_STORE names PostgreSQL.
 * A test of what only a database file has says so with `testOfFile`.
 */
import { test } from "bun:test";
import type { DatabaseUrl } from "../../src/base/database-url.ts";
import { PostgresConnection } from "../../src/store/postgres/connection.ts";
import { takeDatabase } from "./database-pool.ts";

export const ON_POSTGRES = process.env.TEST_STORE === "postgres";

/** Of what SQLite alone has: its file, its locks, its plans. */
export const testOfFile = (name: string, work: () => void | Promise<void>, timeoutMs?: number): void => {
  if (!ON_POSTGRES) test(name, work, timeoutMs);
};

/** How often a model's property is tried: PostgreSQL answers each question of a try from another process, and has fewer of them. */
export const roundsOf = (ofFile: number): number => (ON_POSTGRES ? Math.ceil(ofFile / 4) : ofFile);

/** The schema's columns, as rows of `tableName` and `columnName`; what requests count for a limit is no row that one of them writes. */
export const COLUMNS = ON_POSTGRES
  ? "(SELECT table_name AS tableName, column_name AS columnName FROM information_schema.columns WHERE table_schema = 'public' AND table_name <> 'limit_window') AS columns"
  : "(SELECT m.name AS tableName, c.name AS columnName FROM sqlite_master m JOIN pragma_table_info(m.name) c WHERE m.type = 'table') AS columns";

/** Every table, by name. */
export const TABLES = `SELECT DISTINCT tableName AS name FROM ${COLUMNS} ORDER BY tableName`;

/** A database on the tests' server that no other test uses meanwhile, with the schema in it. */
export async function chooseDatabase(): Promise<{ url: string; database: DatabaseUrl; dispose: () => Promise<void> }> {
  const fresh = await takeDatabase();
  return { url: fresh.url, database: fresh.place, dispose: async () => fresh[Symbol.asyncDispose]() };
}

const opening = new Set<Promise<unknown>>();
const open = new Set<PostgresConnection>();

/** Resolves once a PostgreSQL has answered all that it was asked: who waits for it is not at rest, however often the loop turns. Whether there was anything. */
export async function untilAnswered(): Promise<boolean> {
  const waits: Promise<unknown>[] = [...opening];
  for (const connection of open) {
    if (connection.lost) open.delete(connection);
    else if (connection.unanswered > 0) waits.push(connection.idle());
  }
  await Promise.all(waits);
  return waits.length > 0;
}

/** For how many milliseconds each PostgreSQL that has not answered yet was silent. */
export function listSilences(): number[] {
  return [...open].map(({ silentMs }) => Math.round(silentMs)).filter((ms) => ms > 0);
}

if (ON_POSTGRES) {
  const connect = PostgresConnection.open.bind(PostgresConnection);
  PostgresConnection.open = async (...words) => {
    const connecting = connect(...words);
    const ended: Promise<unknown> = connecting.then(
      (connection) => open.add(connection),
      () => undefined,
    );
    opening.add(ended);
    void ended.then(() => opening.delete(ended));
    return await connecting;
  };
}
