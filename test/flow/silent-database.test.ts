/** Tests a server whose database is silent or blocks it, also during the start: a signal still ends the server. */
import { expect, test } from "bun:test";
import { SQL } from "bun";
import { WRITER_LOCK } from "../../src/store/postgres/writer-lock.ts";
import { startCli } from "../kit/cli-process.ts";
import { makeFolder } from "../kit/data-directory.ts";
import { freshDatabase } from "../kit/postgres.ts";
import { openPostgresProxy } from "../kit/postgres-proxy.ts";

const serve = (databaseUrl: string) =>
  startCli(["serve", "--port", "0"], {
    cwd: makeFolder(),
    env: { RELAY_DATABASE: databaseUrl, RELAY_MASTER_KEY: "ab".repeat(32) },
  });

async function startServer(databaseUrl: string) {
  const server = serve(databaseUrl);
  await server.line("service started");
  return server;
}

test("a silent database does not prevent the end", async () => {
  await using database = await freshDatabase();
  using proxy = await openPostgresProxy(database.url);
  await using server = await startServer(proxy.url);
  proxy.cut();
  server.kill("SIGTERM");
  // The exit is clean, or forced as below, because both take about the same time.
  expect([0, 1]).toContain(await server.exited);
  // The message comes from the waiting connection, or from the one that checks the database.
  expect(server.lines().join("\n")).toMatch(/The database (gave no answer for|answers neither open requests nor)/);
});

test("a blocked server reports that it stopped waiting, and ends", async () => {
  await using database = await freshDatabase();
  await using server = await startServer(database.url);
  await using other = new SQL({ url: database.url, max: 1 });
  await other.unsafe(`SELECT pg_advisory_lock(${WRITER_LOCK})`);
  server.kill("SIGTERM");
  expect(await server.exited).toBe(1);
  await server.line("The service waits too long for an answer, so it ends now");
});

test("a starting server that waits for a lock ends", async () => {
  await using database = await freshDatabase();
  await using other = new SQL({ url: database.url, max: 1 });
  await other.unsafe(`SELECT pg_advisory_lock(${WRITER_LOCK})`);
  await using server = serve(database.url);
  await server.line("the start takes its time; receivers answer 503 until it is through");
  server.kill("SIGTERM");
  expect(await server.exited).toBe(1);
  await server.line("The start waits too long for an answer, so it ends now: start the server again.");
});
