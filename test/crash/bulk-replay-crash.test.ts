/**
 * Kills the process that runs a bulk replay: `relay serve` with SIGKILL at random moments, and a second server that takes over from one that hangs.
 * Each event is replayed once and its work is done once, however often the process is killed. `RELAY_CRASH_KILLS` makes the loop longer.
 */
import { Database } from "bun:sqlite";
import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runCommand } from "../kit/cli-io.ts";
import { type CliProcess, startCli } from "../kit/cli-process.ts";
import { HOOK_SECRET, receiverDefinition, signedCall } from "../kit/relay-definition.ts";
import { rounds } from "../kit/rounds.ts";

const KILLS = Number(process.env.RELAY_CRASH_KILLS ?? rounds({ slice: 1, soak: 3, long: 6 }));
const EVENTS = 600;
const GRANT = { type: "grant_credits", amount: 1 };
const write = (collection: string) => ({ type: "write_record", collection, data: { order: "{{mapped.event_id}}" } });
const define = (collection: string) =>
  receiverDefinition({ map: { event_id: "id", person_email: "email" }, actions: [write("before"), GRANT, write(collection)] });

let home: string;
let server: CliProcess;
let base: string;
let key: string;

async function serve(): Promise<CliProcess> {
  const started = startCli(["serve", "--port", "0"], { cwd: home });
  base = `http://127.0.0.1:${/127\.0\.0\.1:(\d+)/.exec(await started.line("127.0.0.1:"))?.[1]}`;
  return started;
}

async function api(method: string, path: string, body?: unknown) {
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const sent = body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) };
  const response = await fetch(`${base}/api/apps/shop/development${path}`, { method, headers, ...sent });
  const answer = await response.json();
  if (!response.ok) throw new Error(`${path}: ${JSON.stringify(answer)}`);
  // biome-ignore lint/suspicious/noExplicitAny: a test reads answers by their fields
  return answer as any;
}

/** Counts rows of the database while the server runs. */
function count(sql: string): number {
  using database = new Database(join(home, ".relay", "relay.db"), { readonly: true });
  return database.query<{ count: number }, []>(`SELECT count(*) AS count FROM ${sql}`).get()?.count ?? 0;
}
async function rest(): Promise<void> {
  while (count("event WHERE state IN ('queued', 'running')") > 0) await Bun.sleep(100);
}

beforeEach(async () => {
  home = mkdtempSync(join(tmpdir(), "relay-bulk-"));
  server = await serve();
  await runCommand(["apps", "create", "Shop", "--id", "shop"], { cwd: home });
  const made = await runCommand(["keys", "create", "--app", "shop", "--environment", "development"], { cwd: home });
  key = /relay_dev_\w+/.exec(`${made.said} ${made.told}`)?.[0] ?? "";
  for (const name of ["before", "after"]) await api("POST", "/collections", { name, kind: "shared", fields: { order: { type: "text" } } });
  await api("POST", "/relays", { definition: define("nowhere"), secret: HOOK_SECRET });
  const lines = Array.from({ length: EVENTS }, (_, at) => JSON.stringify(signedCall({ id: `order-${at}`, email: `p${at % 7}@example.com` })));
  await api("POST", "/relays/orders/import-missed", lines.join("\n"));
  await rest();
  expect(count("event WHERE state = 'dead'")).toBe(EVENTS);
  const { relay } = await api("GET", "/relays/orders");
  await api("PUT", "/relays/orders", { definition: define("after"), version: relay.version });
});
afterEach(async () => {
  await server[Symbol.asyncDispose]();
  rmSync(home, { recursive: true, force: true });
});

function expectOnce(): void {
  expect({
    done: count("event WHERE state = 'done'"),
    once: count("event WHERE replays = 1"),
    audited: count("audit WHERE action = 'event.replayed'"),
    ended: count("audit WHERE action = 'replay.ended'"),
    credits: count("credit"),
    records: count("record"),
  }).toEqual({ done: EVENTS, once: EVENTS, audited: EVENTS, ended: 1, credits: EVENTS, records: 2 * EVENTS });
}

test(`a bulk replay replays each event once over ${KILLS} kills`, async () => {
  const { id } = (await api("POST", "/bulk-replays", { state: "dead", perSecond: 100 })).replay;
  const seen: number[] = [];
  for (let kill = 0; kill < KILLS; kill++) {
    await Bun.sleep(1_000 + Math.random() * ((EVENTS / 100 / KILLS) * 800));
    await server[Symbol.asyncDispose]();
    seen.push(count("event WHERE replays > 0"));
    server = await serve();
    // The server answers other requests while the replay runs.
    expect((await api("GET", `/bulk-replays/${id}`)).replay.replayed).toBeGreaterThanOrEqual(seen.at(-1) ?? 0);
  }
  while ((await api("GET", `/bulk-replays/${id}`)).replay.state === "running") await Bun.sleep(200);
  await rest();
  expect((await api("GET", `/bulk-replays/${id}`)).replay).toMatchObject({ state: "done", matched: EVENTS, replayed: EVENTS, leftOut: {} });
  expectOnce();
});

/** Stops the process while it holds no database lock, because no other process could take the lock from it. */
async function stopBetweenWrites(process: CliProcess): Promise<void> {
  using database = new Database(join(home, ".relay", "relay.db"));
  database.run("PRAGMA busy_timeout = 0");
  for (;;) {
    process.kill("SIGSTOP");
    await Bun.sleep(20);
    try {
      database.run("BEGIN IMMEDIATE");
      database.run("ROLLBACK");
      return;
    } catch {
      process.kill("SIGCONT");
      await Bun.sleep(5);
    }
  }
}

test("a second server takes over from one that hangs during a bulk replay, and the first one does nothing more", async () => {
  await api("POST", "/bulk-replays", { state: "dead", perSecond: 200 });
  await Bun.sleep(1_500);
  const hung = server;
  rmSync(join(home, ".relay", "runner.lock"));
  await stopBetweenWrites(hung);
  server = await serve();
  hung.kill("SIGCONT");
  while (count("bulk_replay WHERE state = 'running'") > 0) await Bun.sleep(100);
  await rest();
  await hung[Symbol.asyncDispose]();
  expectOnce();
});
