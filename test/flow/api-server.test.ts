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
async function startWithBackups() {
  const made: { file: string; end: (error?: Error) => void }[] = [];
  const startBackup = (file: string) => {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    made.push({ file, end: (error) => (error === undefined ? resolve() : reject(error)) });
    return { done: promise, stop: () => reject(new Error("stopped")) };
  };
  const config = { backup: { everyMs: 86_400_000, keep: 7 }, baseUrl: null };
  const running = await startRunningService({ config, ports: { startBackup } });
  const token = await running.service.store.write("app", async (tx) => {
    const nowMs = running.clock.now();
    const owner = await createOwner(tx, { email: "ann@example.com", passwordHash: null, nowMs });
    return (await createSession(tx, owner.id, nowMs)).token;
  });
  const ask = async (method: string) => {
    const headers = { cookie: `relay_session=${token}`, origin: running.service.url };
    const answer = await fetch(`${running.service.url}/api/backups`, { method, headers });
    // biome-ignore lint/suspicious/noExplicitAny: a test reads answers by their fields
    return { status: answer.status, backups: ((await answer.json()) as any).backups };
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
