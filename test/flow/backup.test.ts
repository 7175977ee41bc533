/** Tests backup, doctor and restore as processes and commands next to a running service, and a service that starts on the restored copy. */
import { afterAll, describe, expect, test } from "bun:test";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../src/base/clock.ts";
import { makeBackupStarter } from "../../src/operator/backup/schedule.ts";
import { runCommand } from "../kit/cli-io.ts";
import { dumpTables, isWhole } from "../kit/data-directory.ts";
import { requireExecutable } from "../kit/executable-build.ts";
import { APP, startRunningService } from "../kit/running-service.ts";
import { serviceConfig } from "../kit/service-config.ts";

const folder = mkdtempSync(join(tmpdir(), "relay-backup-flow-"));
afterAll(() => rmSync(folder, { recursive: true }));
const RELAY = [requireExecutable("relay")];
const TOKEN = "a token of the sender, Long enough 4 all";

const run = (...line: string[]) => runCommand(line, { cwd: folder, clock: systemClock });

/** Runs the command in a separate process. */
async function runProcess(...line: string[]): Promise<{ code: number; said: string; told: string }> {
  const child = Bun.spawn([...RELAY, ...line], { stdout: "pipe", stderr: "pipe", cwd: folder, env: process.env });
  const [said, told, code] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text(), child.exited]);
  return { code, said: said.trim(), told };
}

test("a backup of a running service restores into a new folder and serves as before, with its secrets", async () => {
  const dataDir = join(folder, "first");
  await using running = await startRunningService({ config: { dataDir } });
  const made = await running.api("POST", "/relays", {
    definition: {
      name: "orders",
      trigger: { kind: "receiver", verify: { scheme: "shared_token" }, map: { event_id: "id" } },
      actions: [{ type: "write_record", collection: "orders", data: { id: "{{mapped.event_id}}" } }],
    },
    secret: TOKEN,
  });
  expect(made.status).toBe(201);
  const send = (service: typeof running, id: string) =>
    service.hook("orders", { headers: { "x-webhook-token": TOKEN }, body: JSON.stringify({ id }) });
  expect((await send(running, "one")).body).toMatchObject({ received: true });
  await running.drain();

  const file = join(folder, "backup.db");
  const { code, said, told } = await runProcess("backup", file, "--with-key", "--data-dir", dataDir);
  expect({ code, said }).toEqual({ code: 0, said: file });
  expect(told).toMatch(/1 event/);
  expect(isWhole(file)).toBe(true);
  expect(told).not.toContain((await Bun.file(`${file}.key`).text()).trim());
  const then = dumpTables(file);

  expect((await send(running, "two")).body).toMatchObject({ received: true });
  const refused = await runProcess("restore", file, "--data-dir", dataDir);
  expect(refused).toMatchObject({
    code: 1,
    said: "",
    told: expect.stringMatching(/in use by relay serve, process/),
  });
  expect((await runProcess("doctor", "--data-dir", dataDir, "--json")).code).toBe(0);

  const elsewhere = join(folder, "second");
  const restored = await run("restore", file, "--key", `${file}.key`, "--data-dir", elsewhere);
  expect(restored).toMatchObject({ code: 0, said: `Restored 1 event into ${elsewhere}.` });
  expect(dumpTables(join(elsewhere, "relay.db"))).toEqual(then);
  await serveRestored(elsewhere, running.keys.development ?? "");
});

/** Checks that the restored service has the event, its relay's secret and the old key. */
async function serveRestored(dataDir: string, key: string): Promise<void> {
  const { startService } = await import("../../src/service.ts");
  await using service = await startService(serviceConfig(dataDir, { concurrency: 4 }), { printRun: () => undefined, logSink: () => undefined });
  const post = async (id: string) => {
    const response = await fetch(`${service.url}/hooks/${APP}/orders`, {
      method: "POST",
      headers: { "x-webhook-token": TOKEN },
      body: JSON.stringify({ id }),
    });
    return (await response.json()) as { received: boolean; duplicate?: boolean };
  };
  expect(await post("one")).toMatchObject({ received: true, duplicate: true });
  const second = await post("two");
  expect(second.received).toBe(true);
  expect(second.duplicate).toBeUndefined();
  const list = await fetch(`${service.url}/api/apps/${APP}/development/events`, {
    headers: { authorization: `Bearer ${key}` },
  });
  expect(((await list.json()) as { items: unknown[] }).items).toHaveLength(2);
}

describe("in a separate process", () => {
  test("the server creates its backup, and returns a failure as the command's sentence", async () => {
    const dataDir = join(folder, "third");
    await using running = await startRunningService({ config: { dataDir } });
    const start = makeBackupStarter(dataDir, RELAY);
    const file = join(dataDir, "backups", "scheduled-20300101T000000000Z.db");
    await start(file).done;
    expect(isWhole(file)).toBe(true);
    expect(await running.rows("SELECT id FROM app")).toHaveLength(1);
    await expect(start(file).done).rejects.toThrow(/exists already/);
  });

  test("a stopped backup leaves no file of that name", async () => {
    await using running = await startRunningService({ config: { dataDir: join(folder, "fourth") } });
    expect(running.keys.development).toBeDefined();
    const file = join(folder, "fourth", "backups", "scheduled-20300101T000000000Z.db");
    const process = makeBackupStarter(join(folder, "fourth"), RELAY)(file);
    process.stop();
    await expect(process.done).rejects.toThrow(/SIGTERM|143/);
    expect(existsSync(file)).toBe(false);
  });
});
