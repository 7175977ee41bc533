/** Opens a database of an earlier release with today's code, compares its rows, and uses everything that the service can do. */

import { expect } from "bun:test";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { examine } from "../../src/operator/doctor/examine.ts";
import { createSession } from "../../src/platform/account/session.ts";
import { SCHEMA_VERSION } from "../../src/store/migrate/migrations.ts";
import type { Reader } from "../../src/store/port.ts";
import { lookInto } from "../../src/store/postgres/inspection.ts";
import { openPostgres } from "../../src/store/postgres/postgres.ts";
import { openDatabaseFile } from "../../src/store/sqlite/database-file.ts";
import { openSqlite } from "../../src/store/sqlite/sqlite.ts";
import { FakeCaller, OK } from "../kit/fake-caller.ts";
import { signedCall } from "../kit/relay-definition.ts";
import { type BareService, startBareService } from "../kit/running-service.ts";
import { signStripe } from "../kit/shop.ts";
import { settle, VirtualClock } from "../kit/virtual-clock.ts";
import type { OldDatabase } from "./fixture.ts";

const MINUTE_MS = 60_000;
/** The server was off for a day, after which each person can get emails again. */
const OFF_MS = 24 * 60 * MINUTE_MS;
/** The current secret of `notices`. */
const OTHER_SECRET = "another-secret-of-the-same-sender";

/** Tables and columns whose existing rows an upgrade changes. */
const CHANGED = new Set([
  "schema_migration",
  "event_block",
  // Migrations 47 and 51.
  "signature_memory.until",
  "signature_memory.secret",
  // Migration 52 moves these to plan_cancellation and purchase.
  "subscription.ended_ref",
  "subscription.ended_event_id",
  "subscription.paid_event_id",
]);

/** Rows that an upgrade removes: migration 52 drops subscriptions of cancellations that ended nothing. */
const REMOVED: Readonly<Record<string, string>> = { subscription: "billed_by = 'relay' AND event_id IS NULL AND status = 'ended'" };

/** Names that migration 57 replaced. */
const RENAMED: Readonly<Record<string, string>> = {
  key_recent: "dedupe_log",
  key_run: "dedupe_segment",
  "key_run.run": "segment",
  "key_run.pieces": "pages",
  key_piece: "dedupe_page",
  gone_secret: "retired_secret",
  "gone_secret.swept": "cursor",
  ran_actions: "action_list",
  event_clock_back: "clock_rollback",
  recent_call: "recent_request",
  unknown_call: "unknown_request",
  record_watched: "past_record_watch",
  "erasure.sought": "target",
  "relay.fruitless": "streaks",
  "event.came_by": "source",
};

/** Opens and closes the database. Every row from before must exist unchanged. */
export async function migrateKeepingRows(old: OldDatabase): Promise<void> {
  const before = await readTables(old);
  const clock = new VirtualClock(old.head.nowMs);
  const store = await (old.database === null ? openSqlite(join(old.dataDir, "relay.db"), { clock }) : openPostgres(old.database, { clock }));
  expect(await store.read((tx) => tx.get("SELECT max(number) AS number, count(*) - count(hash) AS unknown FROM schema_migration"))).toEqual({
    number: SCHEMA_VERSION,
    unknown: 0,
  });
  await store.close();
  const after = await readAgain(old, before);
  for (const [table, { rows }] of before) if (!CHANGED.has(table)) expect({ table, rows: after.get(table)?.rows }).toEqual({ table, rows });
}

type Tables = Map<string, { columns: string[]; rows: string[] }>;

/** Reads every table's rows. */
async function readTables(old: OldDatabase): Promise<Tables> {
  const listColumns =
    old.database === null
      ? `SELECT m.name AS "table", c.name FROM sqlite_schema m JOIN pragma_table_info(m.name) c WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite%' ORDER BY 1, c.cid`
      : `SELECT table_name AS "table", column_name AS name FROM information_schema.columns WHERE table_schema = 'public' AND table_name !~ '^(node|writer)' ORDER BY 1, ordinal_position`;
  return await readDatabase(old, async (tx) => {
    const columns = await tx.all<{ table: string; name: string }>(listColumns);
    const tables: Tables = new Map();
    for (const [table, own] of Map.groupBy(columns, (column) => column.table)) {
      const names = own.map(({ name }) => name).filter((name) => !CHANGED.has(`${table}.${name}`));
      tables.set(table, { columns: names, rows: await readRows(tx, table, names.map(quote), table) });
    }
    return tables;
  });
}

/** Reads the same tables and columns after the upgrade, under the names from before it. */
async function readAgain(old: OldDatabase, before: Tables): Promise<Tables> {
  return await readDatabase(old, async (tx) => {
    const tables: Tables = new Map();
    for (const [table, { columns }] of before) {
      if (CHANGED.has(table)) continue;
      const selected = columns.map((name) => `${quote(RENAMED[`${table}.${name}`] ?? name)} AS ${quote(name)}`);
      tables.set(table, { columns, rows: await readRows(tx, RENAMED[table] ?? table, selected, table) });
    }
    return tables;
  });
}

/** Reads the rows that an upgrade keeps. `former`: the table's name before the upgrade. */
async function readRows(tx: Reader, table: string, selected: readonly string[], former: string): Promise<string[]> {
  const rows = await tx.all(`SELECT ${selected.join(", ")} FROM ${quote(table)} WHERE NOT (${REMOVED[former] ?? "1 = 0"})`);
  return rows.map((row) => Bun.inspect(row)).sort();
}

function quote(name: string): string {
  return `"${name}"`;
}

async function readDatabase<Result>({ dataDir, database }: OldDatabase, read: (tx: Reader) => Promise<Result>): Promise<Result> {
  if (database === null) {
    using file = openDatabaseFile(join(dataDir, "relay.db"));
    return await read(file);
  }
  await using there = await lookInto(database);
  return await read(there);
}

/** Starts today's service on the database. Waiting events end, every action runs, every list can be read, and doctor finds no failure. */
export async function useEverything(old: OldDatabase): Promise<void> {
  const { head, dataDir, database } = old;
  const clock = new VirtualClock(head.nowMs + OFF_MS);
  const mailer = { send: async () => ({ kind: "sent" }) as const };
  const config = { dataDir, database, clock, baseUrl: BASE_URL };
  await using running = await startBareService({ config, ports: { caller: new FakeCaller(OK), mailer, resolveTxt: async () => [] } });
  const shop = new Shop(running, clock, head.keys);
  await shop.releaseWhatWaits();
  await shop.runEveryAction();
  await shop.replay();
  await shop.readEveryList();
  await shop.useMembers();
  const findings = await examine({
    dataDir,
    database,
    masterKey: null,
    baseUrl: config.baseUrl,
    backupEveryMs: null,
    quick: false,
    allowPrivate: [],
    readMetrics: async () => null,
    builtAt: null,
    clock,
  });
  // The tests' PostgreSQL runs without fsync.
  expect(findings.filter(({ check, state }) => state === "fail" && check !== "durability")).toEqual([]);
  expect(findings.find(({ check }) => check === "tables")?.state).toBe("ok");
  if (existsSync(join(dataDir, "backups"))) expect(readdirSync(join(dataDir, "backups"))).toEqual([`before-migration-to-${SCHEMA_VERSION}.db`]);
}

const BASE_URL = "https://relay.example.test";
const LIVE = "/api/apps/shop/production";

class Shop {
  readonly #running: BareService;
  readonly #clock: VirtualClock;
  readonly #keys: OldDatabase["head"]["keys"];

  constructor(running: BareService, clock: VirtualClock, keys: OldDatabase["head"]["keys"]) {
    this.#running = running;
    this.#clock = clock;
    this.#keys = keys;
  }

  /** Releases the event that was cut off, the retry, the paused event, the held event and the record that SQL wrote. */
  async releaseWhatWaits(): Promise<void> {
    await this.must("POST", "/relays/paused/resume");
    const { settings } = await this.must("GET", `${LIVE}/settings`);
    await this.must("PUT", `${LIVE}/settings`, { version: settings.version, held: false });
    await this.#clock.advance(MINUTE_MS);
    await this.must("POST", "/relays/down/retry");
    await this.rest();
    const rows = await this.#running.rows<{ waits: string }>(
      `SELECT DISTINCT relay_name.name || ' ' || event.state || ' ' || coalesce(event.reason, 'without a reason') AS waits FROM event
       JOIN relay_name ON relay_name.key = name_key WHERE event.state NOT IN ('done', 'failed', 'dead') ORDER BY 1`,
    );
    // The processor bills one person's plan, and production has no sender domain.
    expect(rows.map(({ waits }) => waits)).toEqual(["gives queued sender_domain_required", "invoice queued billed_by_processor"]);
    const [written] = await this.#running.rows<{ count: number }>(
      "SELECT count(*) AS count FROM record WHERE data LIKE '%waits_1%' OR data LIKE '%held_1%' OR data LIKE '%hangs_1%' OR data LIKE '%retried%'",
    );
    expect(written?.count).toBe(4);
  }

  async runEveryAction(): Promise<void> {
    const email = "ada@example.com";
    await this.#done("gives", signedCall({ id: "new_gives", type: "given", email }), 4);
    await this.#done("notices", signedCall({ id: "new_notice", email }, OTHER_SECRET), 1);
    await this.#done("ends", signedCall({ id: "new_end", email }), 1);
    const customer = { customer_details: { email }, payment_intent: "pi_new", payment_status: "paid" };
    await this.#done("checkout", await this.#stripe("evt_new_buy", "checkout.session.completed", customer), 5);
    await this.#done("refund", await this.#stripe("evt_new_refund", "charge.refunded", { billing_details: { email }, payment_intent: "pi_new" }), 1);
    await this.#done("invoice", await this.#stripe("evt_new_invoice", "invoice.paid", { customer_email: email, id: "in_new" }), 1);
    const { items } = await this.must("GET", `/persons?email=${encodeURIComponent(email)}`);
    const end = { metadata: { person: items[0].id } };
    await this.#done("cancellation", await this.#stripe("evt_new_end", "customer.subscription.deleted", end), 1);
  }

  #stripe(id: string, type: string, object: object) {
    return signStripe({ clock: this.#clock }, id, type, object);
  }

  /** Checks that an event runs to its end with this many steps, each of them done. */
  async #done(relay: string, { headers, body }: { headers: Record<string, string>; body: string }, steps: number): Promise<void> {
    const response = await fetch(`${this.#running.service.url}/hooks/shop/${relay}`, { method: "POST", headers, body });
    const { eventId } = (await response.json()) as { eventId: string };
    await this.#clock.advance(1_000);
    await this.rest();
    const { event } = await this.must("GET", `/events/${eventId}`);
    const outcomes = event.runs.at(-1)?.results.map(({ type, outcome, message }: { type: string; outcome: string; message?: string }) => {
      return outcome === "done" ? outcome : `${type} ${outcome}: ${message}`;
    });
    expect({ relay, state: event.state, outcomes }).toEqual({ relay, state: "done", outcomes: Array.from({ length: steps }, () => "done") });
  }

  /** Replays an event of each earlier state, and plans a replay of all dead ones. */
  async replay(): Promise<void> {
    for (const state of ["done", "dead"]) {
      const { items } = await this.must("GET", `/events?state=${state}&limit=200`);
      const old = items.at(-1);
      await this.must("POST", `/events/${old.id}/replay`);
      await this.#clock.advance(1_000);
      await this.rest();
      expect((await this.must("GET", `/events/${old.id}`)).event.state).toBe(state);
    }
    await this.must("POST", "/bulk-replays/plan", { state: "dead" });
  }

  /** Reads every path of the API that names only the environment, and one item of each kind. */
  async readEveryList(): Promise<void> {
    const response = await fetch(`${this.#running.service.url}/openapi.json`);
    const { paths } = (await response.json()) as { paths: Record<string, Record<string, { parameters?: { required?: boolean; in: string }[] }>> };
    const open = Object.entries(paths).filter(
      ([path, { get }]) =>
        get !== undefined &&
        /^\/api\/apps\/\{appId\}\/\{environment\}\/[^{]*$/.test(path) &&
        !/stream|mcp/.test(path) &&
        !get.parameters?.some((one) => one.in === "query" && one.required === true),
    );
    expect(open.length).toBeGreaterThan(20);
    for (const [path] of open) await this.must("GET", path.replace("{appId}", "shop").replace("{environment}", "development"));
    for (const one of ["relays/gives", "relays/gives/versions", "collections/notes/records"]) await this.must("GET", `/${one}`);
    const { items } = await this.must("GET", "/persons");
    for (const { id } of items) for (const of of ["", "/story", "/access", "/grants", "/credits"]) await this.must("GET", `/persons/${id}${of}`);
  }

  /** Checks that each former owner is an owner of everything, that a role binds at once, and that one owner stays. */
  async useMembers(): Promise<void> {
    const { store, url } = this.#running.service;
    const owners = await this.#running.rows<{ id: string }>("SELECT id FROM owner ORDER BY created_at, id");
    expect(owners.length).toBeGreaterThan(1);
    const nowMs = this.#clock.now();
    const cookies = await store.write("dashboard", (tx) => Promise.all(owners.map(async ({ id }) => (await createSession(tx, id, nowMs)).token)));
    const ask = async (who: number, method: string, path: string, body?: unknown): Promise<number> => {
      const headers = { cookie: `__Host-relay_session=${cookies[who]}`, origin: BASE_URL, "content-type": "application/json" };
      const response = await fetch(url + path, { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
      await response.body?.cancel();
      return response.status;
    };
    const become = (who: number, of: number, role: string) => ask(who, "PUT", `/api/owners/${owners[of]?.id}`, { memberships: [{ role }] });
    for (const who of owners.keys()) expect([who, await ask(who, "GET", "/api/owners")]).toEqual([who, 200]);
    for (const of of owners.keys()) if (of > 0) expect(await become(0, of, "viewer")).toBe(200);
    expect([await ask(1, "GET", "/api/owners"), await ask(1, "GET", `${LIVE}/events`)]).toEqual([403, 200]);
    expect(await become(0, 0, "viewer")).toBe(409);
    // A secret key from before the upgrade keeps its rights.
    await this.must("GET", "/events?q=ada");
  }

  /** Sends a management request to development, or to the whole path if it begins with /api. Throws unless it is accepted. */
  // biome-ignore lint/suspicious/noExplicitAny: a test reads answers by their fields
  async must(method: string, path: string, body?: unknown): Promise<any> {
    const whole = path.startsWith("/api/") ? path : `/api/apps/shop/development${path}`;
    const response = await fetch(this.#running.service.url + whole, {
      method,
      headers: {
        authorization: `Bearer ${path.startsWith(LIVE) ? this.#keys.live : this.#keys.dev}`,
        ...(body === undefined ? {} : { "content-type": "application/json" }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    if (response.status >= 300) throw new Error(`${method} ${path} was refused with ${response.status}: ${text}`);
    return text === "" ? null : JSON.parse(text);
  }

  /** Waits until no event runs or is due. */
  async rest(): Promise<void> {
    for (let turn = 0; turn < 20_000; turn++) {
      await settle();
      const [row] = await this.#running.rows<{ count: number }>(
        `SELECT count(*) AS count FROM event JOIN relay_key ON relay_key.key = relay_key JOIN relay ON relay.id = relay_id
         JOIN environment ON environment.id = event.environment_id
         WHERE event.state = 'running' OR (event.state = 'queued' AND next_attempt_at IS NULL AND relay.state = 'active' AND held_at IS NULL)`,
      );
      if (row?.count === 0) return;
      if (turn > 200) await Bun.sleep(1);
    }
    throw new Error("The service did not come to rest.");
  }
}
