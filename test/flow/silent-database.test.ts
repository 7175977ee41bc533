/** A server whose database has fallen silent: it ends when it is told to. */
import { expect, test } from "bun:test";
import { startCli } from "../kit/cli-process.ts";
import { makeFolder } from "../kit/data-directory.ts";
import { freshDatabase } from "../kit/postgres.ts";
import { openRoad } from "../kit/postgres-road.ts";

const ENDS_WITHIN_MS = 30_000;

test("it says that it waited for long enough, and ends", async () => {
  await using database = await freshDatabase();
  using road = await openRoad(database.url);
  await using server = startCli(["serve", "--port", "0"], {
    cwd: makeFolder(),
    env: { RELAY_DATABASE: road.url, RELAY_MASTER_KEY: "ab".repeat(32) },
  });
  await server.line("service started");
  road.cut();
  const begun = performance.now();
  server.kill("SIGTERM");
  expect(await server.exited).toBe(1);
  expect(performance.now() - begun).toBeLessThan(ENDS_WITHIN_MS);
  await server.line("What the service waits for says nothing, so it ends now");
}, 60_000);
