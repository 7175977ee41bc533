/** The tests' PostgreSQL. Each store has its own database, and a server can crash and restart with the committed data. */
import { expect, test } from "bun:test";
import { SQL } from "bun";
import { freshDatabase, startPostgres } from "../kit/postgres.ts";

test("each fresh database is separate, and deleted when it is no longer used", async () => {
  await using first = await freshDatabase();
  const asked = new SQL(first.url, { max: 1 });
  let name: string;
  {
    await using second = await freshDatabase();
    name = new URL(second.url).pathname.slice(1);
    expect(second.url).not.toBe(first.url);
    const both = await asked`SELECT count(*)::int AS count FROM pg_database WHERE datname IN (${name}, current_database())`;
    expect(both[0].count).toBe(2);
  }
  expect((await asked`SELECT 1 FROM pg_database WHERE datname = ${name}`).length).toBe(0);
  await asked.close();
});

test("a server that loses power has the committed data after its start", async () => {
  await using server = await startPostgres();
  const before = new SQL(server.url, { max: 1 });
  await before`CREATE TABLE kept AS SELECT 7 AS number`;
  await server.stop();
  await expect(before`SELECT 1`.execute()).rejects.toThrow();
  await server.start();
  const after = new SQL(server.url, { max: 1 });
  expect([...(await after`SELECT number FROM kept`)]).toEqual([{ number: 7 }]);
  await after.close();
  await before.close();
});
