/**
 * Kills the server at each step of a request that a receiver and two followers take: before each statement that writes, after each commit, and around
 * the call that a follower sends. After a restart the request has an event of each relay or of none, all of them if it was acknowledged. A repeated
 * request then adds what is missing and nothing twice.
 */
import { Database } from "bun:sqlite";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { cpSync, existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runCommand } from "../kit/cli-io.ts";
import { type CliProcess, startCli } from "../kit/cli-process.ts";
import { RELAY_NAME } from "../kit/event-sql.ts";
import { requireExecutable } from "../kit/executable-build.ts";
import { untilNoneLeft } from "../kit/patience.ts";
import { HOOK_SECRET, receiverDefinition, TOKEN_RECIPE, tokenCall } from "../kit/relay-definition.ts";
import { rounds } from "../kit/rounds.ts";

/** The distance between the steps of two rounds. */
const STRIDE = rounds({ slice: 5, soak: 1 });
const MAX_STEPS = 200;
const NAMES = ["calls", "grants", "stripe"];
const write = { type: "write_record", collection: "orders", data: { order: "{{mapped.event_id}}" } };

let home: string;
let calls: string[] = [];
const sink = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  async fetch(request) {
    calls.push(request.headers.get("webhook-id") ?? "");
    await request.text();
    return new Response("ok");
  },
});

const baseOf = async (server: CliProcess): Promise<string> => `http://127.0.0.1:${/127\.0\.0\.1:(\d+)/.exec(await server.line("127.0.0.1:"))?.[1]}`;

beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), "relay-follower-"));
  await using server = startCli(["dev", "--port", "0"], { cwd: home });
  const base = await baseOf(server);
  const made = await runCommand(["keys", "create"], { cwd: home });
  const key = /relay_dev_\w+/.exec(`${made.said} ${made.told}`)?.[0] ?? "";
  const save = async (path: string, body: object): Promise<void> => {
    const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
    const response = await fetch(`${base}/api/apps/local/local${path}`, { method: "POST", headers, body: JSON.stringify(body) });
    expect([path, response.status, await response.text()]).toEqual([path, 201, expect.anything()]);
  };
  await save("/collections", { name: "orders", kind: "shared", fields: { order: { type: "text" } } });
  const map = { event_id: "id" };
  await save("/relays", { definition: receiverDefinition({ name: "stripe", map, verify: TOKEN_RECIPE, actions: [write] }), secret: HOOK_SECRET });
  const verify = { scheme: "receiver", receiver: "stripe" };
  const call = { type: "call_url", url: `http://127.0.0.1:${sink.port}/` };
  const credits = { type: "grant_credits", amount: 1 };
  await save("/relays", { definition: receiverDefinition({ name: "calls", map, verify, actions: [write, call, write] }) });
  await save("/relays", {
    definition: receiverDefinition({
      name: "grants",
      map: { ...map, person_email: "email" },
      verify,
      trustUnsignedEvents: true,
      actions: [credits, write],
    }),
  });
  server.kill("SIGTERM");
  await server.exited;
});
afterAll(async () => {
  await sink.stop(true);
  rmSync(home, { recursive: true, force: true });
});

/** Sends the request. Returns the status, or null if the server died. */
async function send(base: string): Promise<{ status: number; events: { relay: string }[] } | null> {
  try {
    const delivery = tokenCall("t1", { id: "evt_1", email: "ada@example.com" }, Math.floor(Date.now() / 1000));
    const response = await fetch(`${base}/hooks/local/stripe`, { method: "POST", ...sent(delivery) });
    return { status: response.status, events: ((await response.json()) as { events?: { relay: string }[] }).events ?? [] };
  } catch {
    return null;
  }
}

/** The first delivery, which every repetition sends again. */
let first: ReturnType<typeof tokenCall> | null = null;
function sent(delivery: ReturnType<typeof tokenCall>): ReturnType<typeof tokenCall> {
  first ??= delivery;
  return first;
}

/** Reads the store while no server writes to it, or while one does. */
function read<Row>(folder: string, sql: string): Row[] {
  using database = new Database(join(folder, ".relay", "relay.db"), { readonly: true });
  return database.query<Row, []>(sql).all();
}
const relaysOf = (folder: string): string[] =>
  read<{ relay: string }>(folder, `SELECT ${RELAY_NAME} AS relay FROM event`)
    .map(({ relay }) => relay)
    .sort();
const untilRest = (folder: string): Promise<number> =>
  untilNoneLeft(() => read<{ count: number }>(folder, "SELECT count(*) AS count FROM event WHERE state IN ('queued', 'running')")[0]?.count ?? 0);

test("a kill at any step leaves the event of each relay or of none, and nothing twice", async () => {
  let killed = 0;
  for (let step = 1; step <= MAX_STEPS; step += STRIDE) {
    const folder = mkdtempSync(join(tmpdir(), "relay-follower-step-"));
    try {
      cpSync(join(home, ".relay"), join(folder, ".relay"), { recursive: true });
      const armed = join(folder, "armed");
      [calls, first] = [[], null];
      let acknowledged = false;
      let survived = false;
      {
        await using server = startCli(["dev", "--port", "0"], {
          cwd: folder,
          env: { STEP_FILE: armed, STEP_AT: String(step) },
          command: [requireExecutable("stepped")],
        });
        const base = await baseOf(server);
        writeFileSync(armed, "");
        acknowledged = (await send(base))?.status === 200;
        if (acknowledged) {
          const ended = server.exited.then(() => "ended" as const);
          survived = (await Promise.race([ended, untilRest(folder)])) !== "ended";
        }
      }
      expect(existsSync(armed)).toBe(true);
      if (survived) break;
      killed += 1;
      const stored = relaysOf(folder);
      expect({ step, stored: stored.length === 0 && !acknowledged ? NAMES : stored }).toEqual({ step, stored: NAMES });
      await using server = startCli(["dev", "--port", "0"], { cwd: folder });
      const again = await send(await baseOf(server));
      expect({ step, status: again?.status, relays: again?.events.map(({ relay }) => relay).sort() }).toEqual({ step, status: 200, relays: NAMES });
      await untilRest(folder);
      expect({
        step,
        relays: relaysOf(folder),
        unfinished: read(folder, "SELECT state FROM event WHERE state <> 'done'"),
        records: read(folder, "SELECT 1 FROM record").length,
        credits: read(folder, "SELECT 1 FROM credit").length,
        uses: read(folder, "SELECT 1 FROM signature_memory").length,
        calls: new Set(calls).size,
      }).toEqual({ step, relays: NAMES, unfinished: [], records: 4, credits: 1, uses: 1, calls: 1 });
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  }
  expect(killed).toBeGreaterThan(2);
});
