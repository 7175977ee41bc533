/**
 * Which database the kits open. `npm test` runs the suites of the rooms above the store on both: the second time TEST_STORE names PostgreSQL.
 * A test of what only a database file has says so with `testOfFile`.
 */
import { test } from "bun:test";
import type { DatabaseUrl } from "../../src/ground/database-url.ts";
import { PostgresConnection } from "../../src/store/postgres-connection.ts";
import { freshDatabase } from "./postgres.ts";

export const ON_POSTGRES = process.env.TEST_STORE === "postgres";

/** Of what SQLite alone has: its file, its locks, its plans. */
export const testOfFile = (name: string, work: () => void | Promise<void>): void => {
  if (!ON_POSTGRES) test(name, work);
};

/** A database of its own on the tests' server, with the schema in it. */
export async function chooseDatabase(): Promise<{ database: DatabaseUrl; dispose: () => Promise<void> }> {
  const fresh = await freshDatabase();
  return { database: fresh.place, dispose: async () => fresh[Symbol.asyncDispose]() };
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
