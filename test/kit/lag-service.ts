/**
 * A process of its own: a service on a store filled as full as years of use would, that measures how long its event loop was held in one
 * stretch. The measure is the thread's own CPU time between two turns of the loop (never more than the time that passed), so that a busy
 * machine or a slow disk is nobody's fault. Lines on standard input: `reset`, `worst` (answers milliseconds).
 */
import { Database } from "bun:sqlite";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { mintApiKey } from "../../src/account/api-key.ts";
import { createApp } from "../../src/account/app.ts";
import { createOwner } from "../../src/account/owner.ts";
import { createSession } from "../../src/account/session.ts";
import { createPersonSession } from "../../src/client/person-session.ts";
import { systemClock } from "../../src/ground/clock.ts";
import { numberedId } from "../../src/ground/id.ts";
import { startService } from "../../src/service.ts";
import { openSqlite } from "../../src/store/sqlite.ts";
import { RAISED_LIMITS, serviceConfig } from "./service-config.ts";

/** Ids of the filled rows: `rowId("per", 3)`; the higher the number, the newer the row. */
export function rowId(prefix: string, number: number): string {
  return `${prefix}_${number.toString(16).padStart(32, "0")}`;
}

/** Events' ids carry their time, so that what lists by time is asked in earnest. */
export function eventId(number: number, firstMs: number): string {
  return numberedId("evt", firstMs + number, number);
}

const ID = (prefix: string, number = "i"): string => `'${prefix}_' || printf('%032x', ${number})`;

/** Person 1 holds much of everything; persons 2 to 7 are there to be erased. */
const RECORDS_OF_ONE = 20_000;
const ERASED_RECORDS = 20_000;
export const COLLECTIONS_TO_DELETE = ["gone1", "gone2", "gone3"];

/** Rows are filled as of now, the events' ids one a millisecond until then. */
const firstMs = (nowMs: number): number => nowMs - 1_100_000;

function fill(file: string, nowMs: number): void {
  const database = new Database(file);
  for (const pragma of ["journal_mode = OFF", "synchronous = OFF", "cache_size = -200000", "foreign_keys = OFF"]) {
    database.exec(`PRAGMA ${pragma}`);
  }
  // `WITH … INSERT` takes the rows of n.
  const insert = (count: number, into: string, select: string): void => {
    database
      .query(
        `INSERT INTO ${into} WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1) SELECT ${select.replaceAll("NOW", String(nowMs)).replaceAll("FIRST", String(firstMs(nowMs)))} FROM n`,
      )
      .run(count);
  };
  database.exec("BEGIN; UPDATE capture_switch SET captured = 0");
  insert(
    60_000,
    "person (id, environment_id, email, email_key, status, attributes, created_by, created_at, updated_at)",
    `${ID("per")}, 1 + (i % 2), 'p' || i || '@example.com', 'p' || i || '@example.com', 'active', '{}', 'test', NOW, NOW`,
  );
  database.exec("UPDATE person SET environment_id = 1 WHERE id < 'per_000000000000000000000000000000ff'");
  const event = "event (seq, environment_id, relay_key, name_key, trigger, state, payload, created_at, finished_at, person_id, next_attempt_at)";
  database.exec("INSERT INTO relay_name VALUES (1, 1, 'busy'), (2, 1, 'wide'); INSERT INTO relay_key VALUES (1, 'rly_busy', 1), (2, 'rly_wide', 2)");
  insert(
    120_000,
    event,
    `i, 1, 1, 1, 'receiver', CASE i % 4 WHEN 0 THEN 'failed' WHEN 1 THEN 'dead' WHEN 2 THEN 'queued' ELSE 'done' END, '{"event":{"a":1}}', FIRST + i, NOW, ${ID("per", "1")}, NOW + 86400000`,
  );
  insert(
    3_000,
    event,
    `i + 1000000, 1, 2, 2, 'receiver', 'done', '{"event":"' || replace(hex(zeroblob(15500)), '0', 'a') || '"}', FIRST + i + 1000000, NOW, NULL, NULL`,
  );
  const crowd = {
    trigger: { kind: "receiver", verify: { scheme: "hooks" }, map: { event_id: "id", note: "data.note" } },
    // As many as a relay may have, which name the catalog throughout.
    actions: [
      { type: "write_record", collection: "notes", data: { note: "{{mapped.note}}" } },
      { type: "call_url", url: "https://example.com/notice" },
      ...Array.from({ length: 8 }, (_, at) => ({ type: "grant_access", entitlement: at === 0 ? "access:beta" : `access:s${at}` })),
    ],
  };
  insert(
    950,
    "relay (id, environment_id, name, definition, origin_kind, origin_at, active_since, created_at, updated_at)",
    `${ID("rly")}, 1, 'crowd' || i, json_set('${JSON.stringify(crowd)}', '$.name', 'crowd' || i), 'dashboard', NOW, NOW, NOW - i, NOW`,
  );
  const longRun = `json_array(${Array.from({ length: 10 }, () => `json_object('type','call_url','answer', hex(zeroblob(1000)))`).join(",")})`;
  insert(1_000, "run (event_seq, number, started_at, finished_at, outcome, results)", `123000, i, NOW, NOW, 'failed', ${longRun}`);
  for (const [name, kind] of [
    ["notes", "private"],
    ["wide", "shared"],
    ["watched", "private"],
    ...COLLECTIONS_TO_DELETE.map((one) => [one, "private"]),
  ]) {
    database
      .query("INSERT INTO collection (environment_id, name, kind, fields, created_at, updated_at) VALUES (1, ?1, ?2, ?3, ?4, ?4)")
      .run(name as string, kind as string, '{"text":{"type":"text"},"json":{"type":"json"},"file":{"type":"file"}}', nowMs);
  }
  const record = "record (id, environment_id, collection, data, owner_id, written_by, created_at, updated_at)";
  insert(
    300,
    record,
    `${ID("rec", "i + 9000000")}, 1, 'wide', '{"text":"' || replace(hex(zeroblob(125000)), '0', 'b') || '"}', NULL, 'test', NOW, NOW`,
  );
  for (const person of [1, 2, 3, 4, 5, 6, 7]) {
    insert(
      person === 1 ? RECORDS_OF_ONE : ERASED_RECORDS,
      record,
      `${ID("rec", `i + ${person * 1_000_000}`)}, 1, 'notes', '{"text":"note ' || i || '"}', ${ID("per", String(person))}, 'test', NOW, NOW`,
    );
  }
  COLLECTIONS_TO_DELETE.forEach((name, at) => {
    insert(
      20_000,
      record,
      `${ID("rec", `i + ${(at + 20) * 1_000_000}`)}, 1, '${name}', '{"text":"note ' || i || '"}', ${ID("per", "1")}, 'test', NOW, NOW`,
    );
  });
  const files = "file (id, environment_id, name, media_type, bytes, content, created_at)";
  insert(20_000, files, `${ID("fil")}, 2, 'a.txt', 'text/plain', 1, x'61', NOW`);
  insert(3, files, `${ID("fil", "i + 100000")}, 1, 'big.bin', 'application/octet-stream', 5242880, zeroblob(5242880), NOW`);
  const grant = "access_grant (id, environment_id, person_id, entitlement, source, granted_at, expires_at, revoked_at)";
  insert(60_000, grant, `${ID("grt")}, 1, ${ID("per")}, 'access:beta', 'hand', NOW, CASE WHEN i < 30000 THEN NOW - 1 END, NULL`);
  insert(20_000, grant, `${ID("grt", "i + 100000")}, 1, ${ID("per", "1")}, 'access:e' || (i % 7), 'hand', NOW, NULL, NULL`);
  database.exec(`INSERT INTO access_slug (environment_id, slug, title, created_at) VALUES (1, 'beta', 'Beta', ${nowMs})`);
  insert(
    20_000,
    "credit (id, environment_id, person_id, amount, balance, reason, source, created_at)",
    `${ID("crd")}, 1, ${ID("per", "1")}, 1, i, 'test', 'hand', NOW`,
  );
  insert(
    60_000,
    "purchase (id, environment_id, kind, ref, item_kind, item, person_id, origin, created_at)",
    `${ID("prc")}, 1, 'purchase', 'ref' || i, 'product', 'book', ${ID("per")}, 'payment', NOW`,
  );
  insert(
    60_000,
    "subscription (id, environment_id, person_id, plan, status, billed_by, started_at)",
    `${ID("sub")}, 1, ${ID("per")}, 'pro', 'ended', 'relay', NOW`,
  );
  insert(5_000, "person_token (environment_id, token, person_id, created_at)", `1, 'token' || i, ${ID("per", "1")}, NOW`);
  const email = "email (id, environment_id, person_id, recipient, sender, kind, subject, text, state, created_at)";
  insert(60_000, email, `${ID("eml")}, 1, ${ID("per", "i + 10")}, 'p@example.com', 'a@example.com', 'event', 'hi', 'text', 'sent', NOW`);
  insert(
    1_000,
    email,
    `${ID("eml", "i + 100000")}, 1, ${ID("per", "1")}, 'p@example.com', 'a@example.com', 'event', 'hi', hex(zeroblob(5000)), 'sent', NOW`,
  );
  insert(
    60_000,
    "audit (environment_id, at, actor, action, target, before, after)",
    `1, NOW, 'owner:a@example.com', 'relay.updated', 'relay:busy', '{"a":1}', '{"a":2}'`,
  );
  insert(
    500,
    "audit (environment_id, at, actor, action, target, before, after)",
    `1, NOW, 'owner:a@example.com', 'relay.updated', 'relay:wide', json_object('definition', hex(zeroblob(64000))), json_object('definition', hex(zeroblob(64000)))`,
  );
  insert(
    60_000,
    "problem (id, environment_id, code, target, message, raised_at, cleared_at)",
    `${ID("prb")}, 1 + (i % 2), 'relay_failed', 'relay:' || i, 'It failed.', NOW, CASE WHEN i > 5000 THEN NOW END`,
  );
  insert(
    60_000,
    "alert (id, environment_id, code, target, message, at, last_at, mailed_at)",
    `${ID("alr")}, 1 + (i % 2), 'relay_failed', 'relay:' || i, 'It failed.', NOW, NOW, NOW`,
  );
  insert(
    20_000,
    "api_key (id, environment_id, kind, name, key_hash, hint, created_at, revoked_at)",
    `${ID("key")}, 1 + (i % 2), 'secret', 'old', randomblob(32), 'sk_dev_x', NOW, NOW`,
  );
  insert(
    20_000,
    "person_session (token_hash, id, environment_id, person_id, created_at, expires_at)",
    `randomblob(32), ${ID("ses")}, 1, ${ID("per", "1")}, NOW, NOW + 86400000`,
  );
  insert(1_000, "app (id, name, created_at)", `'app' || i, 'App', NOW`);
  database.exec("UPDATE capture_switch SET captured = 1; COMMIT");
  database.close();
}

/** Watches the loop from `reset` to `worst`: every turn looks how much of its own CPU time the thread took since the turn before. */
function watchLoop(): { reset(): void; worstMs(): number } {
  let worst = 0;
  let wall = performance.now();
  let cpu = threadCpuMs();
  const look = (): void => {
    const wallNow = performance.now();
    const cpuNow = threadCpuMs();
    worst = Math.max(worst, Math.min(wallNow - wall, cpuNow - cpu));
    wall = wallNow;
    cpu = cpuNow;
  };
  let watching = false;
  const turn = (): void => {
    if (!watching) return;
    look();
    setImmediate(turn);
  };
  return {
    reset: () => {
      look();
      worst = 0;
      if (watching) return;
      watching = true;
      setImmediate(turn);
    },
    worstMs: () => {
      look();
      watching = false;
      return worst;
    },
  };
}

function threadCpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}

async function main(): Promise<void> {
  const dataDir = mkdtempSync(join(tmpdir(), "relay-lag-"));
  const file = join(dataDir, "relay.db");
  const clock = systemClock;
  const nowMs = clock.now();
  const store = await openSqlite(file, { clock });
  const seeded = await store.write("dashboard", async (tx) => {
    const { environments } = await createApp(tx, {
      id: "shop",
      name: "Shop",
      environments: ["development", "production"],
      nowMs,
    });
    const [environment] = environments;
    if (environment === undefined) throw new Error("no environment");
    const owner = await createOwner(tx, { email: "ann@example.com", passwordHash: null, nowMs });
    const { token: session } = await createSession(tx, owner.id, nowMs);
    const key = async (kind: "secret" | "app") => (await mintApiKey(tx, { environment, kind, name: "test", origins: [], nowMs })).token;
    return { session, secret: await key("secret"), app: await key("app") };
  });
  await store.close();
  fill(file, nowMs);
  const running = await startService(serviceConfig(dataDir, { limits: RAISED_LIMITS, clock }), {
    logSink: () => undefined,
    printRun: () => undefined,
  });
  const person = await running.store.write("app", (tx) => createPersonSession(tx, { environmentId: 1, personId: rowId("per", 1), nowMs }));
  const loop = watchLoop();
  process.stdout.write(`${JSON.stringify({ url: running.url, person: person.token, firstMs: firstMs(nowMs), ...seeded })}\n`);
  for await (const line of createInterface({ input: process.stdin })) {
    if (line === "reset") loop.reset();
    process.stdout.write(`${line === "reset" ? 0 : loop.worstMs()}\n`);
  }
  await running[Symbol.asyncDispose]();
  rmSync(dataDir, { recursive: true, force: true });
  process.exit(0);
}

if (import.meta.main) await main();
