/**
 * Chooses the database that the kits open. `npm test` runs the suites above the store on both: the second time TEST_STORE names PostgreSQL. A test of
 * something that only a database file has uses `testOfFile`.
 */
import { test } from "bun:test";
import type { DatabaseUrl } from "../../src/base/database-url.ts";
import { PostgresConnection } from "../../src/store/postgres/connection.ts";
import { takeDatabase } from "./database-pool.ts";

export const ON_POSTGRES = process.env.TEST_STORE === "postgres";

/** Defines a test of something that only SQLite has: its file, its locks, its query plans. */
export const testOfFile = (name: string, work: () => void | Promise<void>, timeoutMs?: number): void => {
  if (!ON_POSTGRES) test(name, work, timeoutMs);
};

/** Number of runs of a model's property. PostgreSQL gets fewer, because each query there is a round trip to another process. */
export const roundsOf = (ofFile: number): number => (ON_POSTGRES ? Math.ceil(ofFile / 4) : ofFile);

/** The schema's columns, as rows of `tableName` and `columnName`. `limit_window` is left out, because it holds only the counters of limits. */
export const COLUMNS = ON_POSTGRES
  ? "(SELECT table_name AS tableName, column_name AS columnName FROM information_schema.columns WHERE table_schema = 'public' AND table_name <> 'limit_window') AS columns"
  : "(SELECT m.name AS tableName, c.name AS columnName FROM sqlite_master m JOIN pragma_table_info(m.name) c WHERE m.type = 'table') AS columns";

/** Names of all tables, sorted. */
export const TABLES = `SELECT DISTINCT tableName AS name FROM ${COLUMNS} ORDER BY tableName`;

/** Takes a database with the schema on the tests' server. No other test uses it until `dispose`. */
export async function chooseDatabase(): Promise<{ url: string; database: DatabaseUrl; dispose: () => Promise<void> }> {
  const fresh = await takeDatabase();
  return { url: fresh.url, database: fresh.place, dispose: async () => fresh[Symbol.asyncDispose]() };
}

const opening = new Set<Promise<unknown>>();
const open = new Set<PostgresConnection>();

/**
 * Resolves once PostgreSQL has answered every pending query. Returns whether there was one. Turns of the event loop do not show whether the service
 * is idle while it waits for PostgreSQL.
 */
export async function untilAnswered(): Promise<boolean> {
  const waits: Promise<unknown>[] = [...opening];
  for (const connection of open) {
    if (connection.lost) open.delete(connection);
    else if (connection.unanswered > 0) waits.push(connection.idle());
  }
  await Promise.all(waits);
  return waits.length > 0;
}

/** Returns for how many milliseconds each PostgreSQL connection with a pending query has been silent. */
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
