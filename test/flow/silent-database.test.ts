/** A server whose database has fallen silent, or lets it wait, also while it starts: it ends when it is told to. */
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

test("a silent one is given up, whatever waits for it", async () => {
  await using database = await freshDatabase();
  using proxy = await openPostgresProxy(database.url);
  await using server = await startServer(proxy.url);
  proxy.cut();
  server.kill("SIGTERM");
  // In order, or as below, since both take about as long.
  expect([0, 1]).toContain(await server.exited);
  // By the connection that waited, or by the one that was opened to ask whether the database is there.
  expect(server.lines().join("\n")).toMatch(/The database (gave no answer for|answers neither what it was asked nor)/);
});

test("where it would wait for longer it says that it waited for long enough, and ends", async () => {
  await using database = await freshDatabase();
  await using server = await startServer(database.url);
  await using other = new SQL({ url: database.url, max: 1 });
  await other.unsafe(`SELECT pg_advisory_lock(${WRITER_LOCK})`);
  server.kill("SIGTERM");
  expect(await server.exited).toBe(1);
  await server.line("What the service waits for says nothing, so it ends now");
});

test("one that is only starting, and waits for a lock that somebody holds there, ends by itself", async () => {
  await using database = await freshDatabase();
  await using other = new SQL({ url: database.url, max: 1 });
  await other.unsafe(`SELECT pg_advisory_lock(${WRITER_LOCK})`);
  await using server = serve(database.url);
  await server.line("the start takes its time; receivers answer 503 until it is through");
  server.kill("SIGTERM");
  expect(await server.exited).toBe(1);
  await server.line("The start waits for something that gives no answer, so it ends now: the next start begins anew.");
});
