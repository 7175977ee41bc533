/** Tests what owners see of the server: its start options, its limits in words, and backups on request. */
import { expect } from "bun:test";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { DEFAULT_LIMITS } from "../../src/base/limit.ts";
import { createOwner } from "../../src/platform/account/owner.ts";
import { createSession } from "../../src/platform/account/session.ts";
import { runScenarios } from "../kit/api-scenario.ts";
import { startApi } from "../kit/api-server.ts";
import { ON_POSTGRES, testOfFile } from "../kit/chosen-store.ts";
import { poll } from "../kit/patience.ts";
import { startRunningService } from "../kit/running-service.ts";

runScenarios([
  {
    name: "an owner sees how the server was started and the effect of each limit",
    request: "GET /api/server",
    call: { session: true },
    status: 200,
    answer: { server: { mode: "server", baseUrlGiven: false, trustedProxies: [] } },
    also: (_api, { json }) => {
      expect(json.server.limits).toHaveLength(Object.keys(DEFAULT_LIMITS).length);
      for (const { value, usual, variable, counts, hit } of json.server.limits) {
        expect([value, variable.startsWith("RELAY_LIMIT_")]).toEqual([usual, true]);
        for (const sentence of [counts, hit]) expect(sentence).toMatch(/^[A-Z].*\.$/);
      }
    },
  },
  {
    name: "an owner sees changes of the whole server, and none of an environment",
    given: async (api) => {
      const made = await api.call("/api/owners", { method: "POST", session: true, body: { email: "cleo@example.com" } });
      await api.call(`/api/owners/${made.json.owner.id}`, { method: "DELETE", session: true });
      await api.call(`${api.E}/access/beta`, { method: "PUT", session: true, body: { title: "Beta" } });
    },
    request: "GET /api/audit?target=owner:cleo@example.com",
    call: { session: true },
    status: 200,
    also: async (api, { json }) => {
      expect(json.items.map(({ action, actor }: { action: string; actor: string }) => `${action} ${actor}`)).toEqual([
        "owner.removed owner:ann@example.com",
        "owner.created owner:ann@example.com",
      ]);
      const all = await api.call("/api/audit?limit=200", { session: true });
      expect(all.text).not.toContain("access");
    },
  },
  { name: "a key sees nothing of the whole server's", request: "GET /api/audit", status: 403, answer: { code: "forbidden" } },
  ...(ON_POSTGRES
    ? []
    : [
        {
          name: "a single process with its own database is no node",
          request: "GET /api/nodes",
          call: { session: true },
          status: 200,
          answer: { nodes: [] },
        },
      ]),
  {
    name: "without backups the list is empty and says so",
    request: "GET /api/backups",
    call: { session: true },
    status: 200,
    answer: { backups: { schedule: null, files: [], running: null, failed: null } },
  },
]);

/** Checks that no backup is running. */
const hasEnded = ({ backups }: { backups: { running: unknown } }): boolean => backups.running === null;

/** Starts a server whose backups end when the test says so. */
async function startWithBackups(backup: { everyMs: number; keep: number } | null = { everyMs: 86_400_000, keep: 7 }) {
  const made: { file: string; end: (error?: Error) => void }[] = [];
  const startBackup = (file: string) => {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    made.push({ file, end: (error) => (error === undefined ? resolve() : reject(error)) });
    return { done: promise, stop: () => reject(new Error("stopped")) };
  };
  const config = { backup, baseUrl: null };
  const running = await startRunningService({ config, ports: { startBackup } });
  const token = await running.service.store.write("app", async (tx) => {
    const nowMs = running.clock.now();
    const owner = await createOwner(tx, { email: "ann@example.com", passwordHash: null, nowMs });
    return (await createSession(tx, owner.id, nowMs)).token;
  });
  const ask = async (method: string, path = "", body?: unknown) => {
    const headers = { cookie: `relay_session=${token}`, origin: running.service.url, "content-type": "application/json" };
    const sent = body === undefined ? {} : { body: JSON.stringify(body) };
    const answer = await fetch(`${running.service.url}/api/backups${path}`, { method, headers, ...sent });
    // biome-ignore lint/suspicious/noExplicitAny: a test reads answers by their fields
    const { backups, code } = (await answer.json()) as any;
    return { status: answer.status, backups, code };
  };
  return { running, made, ask };
}

testOfFile("repeated clicks request one backup, which is audited and listed when it is complete", async () => {
  const { running, made, ask } = await startWithBackups();
  await using _ = running;
  const first = await ask("POST");
  expect([first.status, first.backups.schedule, first.backups.running.name]).toEqual([
    202,
    { everyHours: 24, keep: 7 },
    "by-hand-20260115T120000000Z.db",
  ]);
  await ask("POST");
  expect(made).toHaveLength(1);
  const rows = await running.rows<{ action: string; target: string }>("SELECT action, target FROM audit WHERE action = 'backup.started'");
  expect(rows).toEqual([{ action: "backup.started", target: "backup:by-hand-20260115T120000000Z.db" }]);
  const file = made[0]?.file ?? "";
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, "a copy");
  made[0]?.end();
  const { backups } = await poll(() => ask("GET"), hasEnded);
  expect(backups).toMatchObject({ running: null, failed: null, files: [{ name: "by-hand-20260115T120000000Z.db", bytes: 6 }] });
  expect(backups.folder).toBe(join(running.dataDir, "backups"));
});

testOfFile("a stored schedule makes backups without a restart, is audited, and is checked", async () => {
  const { running, made, ask } = await startWithBackups(null);
  await using _ = running;
  const saved = await ask("PUT", "/schedule", { everyHours: 6, keep: 3 });
  expect([saved.status, saved.backups.schedule, saved.backups.scheduleGiven]).toEqual([200, { everyHours: 6, keep: 3 }, false]);
  await poll(
    async () => made.length,
    (count) => count === 1,
  );
  expect(made[0]?.file).toContain("scheduled-");
  made[0]?.end();
  for (const body of [
    { everyHours: 0, keep: 3 },
    { everyHours: 721, keep: 3 },
    { everyHours: 6, keep: 0 },
    { everyHours: 6, keep: 1_001 },
    { keep: 3 },
  ])
    expect((await ask("PUT", "/schedule", body)).status).toBe(400);
  expect((await ask("PUT", "/schedule", { everyHours: null, keep: 3 })).backups.schedule).toBeNull();
  const rows = await running.rows<{ before: string; after: string }>(
    "SELECT before, after FROM audit WHERE action = 'backup.scheduled' ORDER BY seq",
  );
  expect(rows.map(({ before, after }) => [JSON.parse(before), JSON.parse(after)])).toEqual([
    [
      { everyHours: null, keep: 7 },
      { everyHours: 6, keep: 3 },
    ],
    [
      { everyHours: 6, keep: 3 },
      { everyHours: null, keep: 3 },
    ],
  ]);
});

testOfFile("a schedule of the command line wins over the stored one", async () => {
  const { running, ask } = await startWithBackups();
  await using _ = running;
  const refused = await ask("PUT", "/schedule", { everyHours: 6, keep: 3 });
  expect([refused.status, refused.code]).toEqual([409, "backup_refused"]);
  expect((await ask("GET")).backups).toMatchObject({ schedule: { everyHours: 24, keep: 7 }, scheduleGiven: true });
});

testOfFile("a failed backup shows its reason until the next one begins", async () => {
  const { running, made, ask } = await startWithBackups();
  await using _ = running;
  await ask("POST");
  made[0]?.end(new Error("The disk is full."));
  expect((await poll(() => ask("GET"), hasEnded)).backups).toMatchObject({ running: null, failed: { message: "The disk is full." } });
  expect((await ask("POST")).backups).toMatchObject({ failed: null });
  expect(existsSync(made[0]?.file ?? "")).toBe(false);
});

testOfFile("a backup whose process cannot start counts as failed, and the next one can start", async () => {
  let isBroken = true;
  const startBackup = () => {
    if (isBroken) throw new Error("There are too many processes.");
    return { done: Promise.resolve(), stop: () => undefined };
  };
  await using api = await startApi({}, { startBackup });
  const ask = async (method: string) => await api.call("/api/backups", { method, session: true });
  expect((await ask("POST")).status).toBe(202);
  const answer = await poll(
    () => ask("GET"),
    ({ json }) => hasEnded(json),
  );
  expect(answer.json.backups).toMatchObject({ running: null, failed: { message: "There are too many processes." } });
  isBroken = false;
  expect((await ask("POST")).json.backups).toMatchObject({ failed: null });
});
