/** Tests the checks and output of `relay ready`, and the responses of a port during a slow start. */
import { expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { createLog } from "../../src/base/log.ts";
import { startWithRetries } from "../../src/boot/start-retry.ts";
import { recordRunning } from "../../src/interfaces/cli/data-directory.ts";
import { runCommand } from "../kit/cli-io.ts";
import { makeFolder } from "../kit/data-directory.ts";
import { placeOf } from "../kit/postgres.ts";
import { startBareService } from "../kit/running-service.ts";
import { settle, VirtualClock } from "../kit/virtual-clock.ts";

test("asks the service of the data directory at its own address, unless an address is given", async () => {
  const running = await startBareService();
  const { service } = running;
  const dataDir = makeFolder();
  const ready = (...line: string[]) => runCommand(["ready", ...line], { cwd: dataDir });
  const forget = recordRunning(dataDir, { url: "https://relay.example.com", near: service.url, limits: {}, allowPrivate: [] });
  expect(await ready("--data-dir", dataDir)).toMatchObject({ code: 0, said: "ready" });
  expect(await ready("--port", String(service.port))).toMatchObject({ code: 0, said: "ready" });
  expect(await ready("--port", "1", "--data-dir", dataDir)).toMatchObject({
    code: 1,
    told: expect.stringContaining(
      "Nothing answers at http://127.0.0.1:1: start relay serve or relay dev, or name its address with --host and --port.",
    ),
  });
  // A killed process leaves its note in the data directory.
  await running[Symbol.asyncDispose]();
  const told = `Nothing answers at ${service.url}, the last address of the service on ${dataDir}: start relay serve or relay dev`;
  expect(await ready("--data-dir", dataDir)).toMatchObject({ code: 1, told: expect.stringContaining(told) });
  forget();
  rmSync(dataDir, { recursive: true });
});

const slow: [string, Parameters<typeof startWithRetries>[0]["database"], string][] = [
  ["a file", null, "The service is starting and reads its database: the disk is slow or busy, or the last run left a long log to read."],
  [
    "PostgreSQL",
    placeOf("postgres://relay:secret@db.example/relay"),
    "The service is starting and waits for an answer of its database: another session may hold a lock, or the database is busy.",
  ],
];

test.each(slow)("a slow start on %s says on its port why it may wait", async (_, database, problem) => {
  const [clock, dataDir] = [new VirtualClock(0), makeFolder()];
  const logged: { port?: number }[] = [];
  const log = createLog({ format: "json", clock, sink: (line) => logged.push(JSON.parse(line)) });
  const { promise: started, resolve: start } = Promise.withResolvers<string>();
  const starting = startWithRetries({ host: "127.0.0.1", port: 0, dataDir, database, clock }, log, new Promise(() => undefined), () => started);
  await clock.advance(5_000);
  await settle();
  const answer = await fetch(`http://127.0.0.1:${logged[0]?.port}/readyz`);
  expect([answer.status, await answer.json()]).toEqual([503, { ready: false, problem }]);
  start("through");
  expect(await starting).toBe("through");
  rmSync(dataDir, { recursive: true });
});
