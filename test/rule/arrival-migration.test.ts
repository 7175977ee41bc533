/** The migration that gives earlier grants and payments their place in the order of arrival. */
import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { SQL } from "bun";
import { numberedId } from "../../src/base/id.ts";
import { POSTGRES_MIGRATIONS, SQLITE_MIGRATIONS } from "../../src/store/migrate/migrations.ts";
import { runMigration } from "../../src/store/sqlite/migration-rehearsal.ts";
import { ON_POSTGRES } from "../kit/chosen-store.ts";
import { freshDatabase } from "../kit/postgres.ts";

const event = (seq: number) => numberedId("evt", 1_700_000_000_000 + seq, seq);
const FORMER = "evt_0199b7a1f3c07d3e8a5b6c7d8e9f0a1b";
const sub = (number: number) => `sub_${String(number).padStart(32, "0")}`;
const text = (value: string | number | null) => (value === null ? "NULL" : typeof value === "number" ? String(value) : `'${value}'`);

function subscription(id: number, plan: string, more: Record<string, string | number | null>): string {
  const row = { id: sub(id), environment_id: 1, person_id: "per_1", plan, billed_by: "relay", relay_name: "shop", started_at: 5, ...more };
  return `INSERT INTO subscription (${Object.keys(row).join(", ")}) VALUES (${Object.values(row).map(text).join(", ")})`;
}

function payment(ref: string, eventId: string | null, of: number | null): string {
  const data = JSON.stringify({ granted: { entitlement: "pro", credits: 0, ...(of === null ? {} : { subscription: sub(of) }) } });
  const row = { id: `prc_${ref}`, environment_id: 1, kind: "purchase", ref, item_kind: "plan", item: "pro", person_id: "per_1" };
  const rest = { origin: eventId === null ? "payment" : "relay", event_id: eventId, data, created_at: 5 };
  const all = { ...row, ...rest };
  return `INSERT INTO purchase (${Object.keys(all).join(", ")}) VALUES (${Object.values(all).map(text).join(", ")})`;
}

const ROWS = [
  // An active subscription: event 300 started it, and event 1,048,577 paid for it last.
  subscription(1, "pro", { status: "active", event_id: event(300), paid_event_id: event(1_048_577) }),
  // Three ended subscriptions: by event 250 under a ref, manually, and by a cancellation that found nothing to end.
  subscription(2, "pro", { status: "ended", event_id: event(200), ended_at: 9, ended_event_id: event(250), ended_ref: "bye" }),
  subscription(3, "pro", { status: "ended", event_id: event(100), ended_at: 9 }),
  subscription(4, "team", { status: "ended", event_id: null, ended_at: 9, ended_event_id: event(400) }),
  payment("started", event(300), 1),
  payment("renewed", event(1_048_577), 1),
  payment("canceled", event(200), 2),
  payment("by-hand", event(100), 3),
  payment("former", FORMER, 1),
  payment("card", null, null),
  `INSERT INTO access_grant (id, environment_id, person_id, entitlement, source, source_ref, event_id, granted_at)
    VALUES ('grt_plan', 1, 'per_1', 'pro', 'plan', '${sub(1)}', '${event(300)}', 5), ('grt_relay', 1, 'per_1', 'pro', 'relay', 'shop', '${event(310)}', 5)`,
];
const APP = [
  "INSERT INTO app (id, name, created_at) VALUES ('a', 'A', 1)",
  "INSERT INTO environment (id, app_id, name, created_at) VALUES (1, 'a', 'local', 1)",
];

interface Opened extends AsyncDisposable {
  exec(sql: string): Promise<unknown>;
  rows(sql: string): Promise<Record<string, unknown>[]>;
}

/** Opens a database of the release before the migration, with the statements that upgrade it. */
async function openBefore(): Promise<Opened & { next: string }> {
  const all = ON_POSTGRES ? POSTGRES_MIGRATIONS : SQLITE_MIGRATIONS;
  const at = all.findIndex(({ name }) => name === "arrival");
  const opened = ON_POSTGRES ? await openPostgres() : openFile();
  await opened.exec("CREATE TABLE schema_migration (number bigint PRIMARY KEY, name text NOT NULL, applied_at bigint NOT NULL, hash text)");
  for (const { sql } of all.slice(0, at)) await opened.exec(sql);
  return { ...opened, next: all[at]?.sql ?? "" };
}

function openFile(): Opened {
  const database = new Database(":memory:");
  return {
    exec: async (sql) => runMigration(database, sql),
    rows: async (sql) => database.query<Record<string, unknown>, []>(sql).all(),
    [Symbol.asyncDispose]: async () => database.close(),
  };
}

async function openPostgres(): Promise<Opened> {
  const fresh = await freshDatabase({ empty: true });
  const direct = new SQL(fresh.url, { max: 1 });
  return {
    exec: (sql) => direct.unsafe(sql).simple(),
    rows: async (sql) => [...(await direct.unsafe(sql))],
    async [Symbol.asyncDispose]() {
      await direct.close();
      await fresh[Symbol.asyncDispose]();
    },
  };
}

test("payments, plan keys and cancellations of earlier versions get the arrival order of their events", async () => {
  await using before = await openBefore();
  for (const sql of [...APP, ...ROWS]) await before.exec(sql);
  await before.exec(before.next);
  const purchases = await before.rows("SELECT ref, arrival FROM purchase ORDER BY ref");
  expect(Object.fromEntries(purchases.map(({ ref, arrival }) => [ref, Number(arrival)]))).toEqual({
    "by-hand": 0,
    canceled: 200,
    card: 0,
    former: 0,
    renewed: 1_048_577,
    started: 300,
  });
  const grants = await before.rows("SELECT id, arrival FROM access_grant ORDER BY id");
  expect(grants.map(({ id, arrival }) => `${id} ${arrival}`)).toEqual(["grt_plan 1048577", "grt_relay null"]);
  const cancellations = await before.rows("SELECT plan, arrival, ref, event_id AS by FROM plan_cancellation ORDER BY seq");
  expect(cancellations.map(({ plan, arrival, ref, by }) => `${plan} ${arrival} "${ref}" ${by}`).sort()).toEqual([
    `pro 250 "bye" ${event(250)}`,
    `team 400 "" ${event(400)}`,
  ]);
  const left = await before.rows("SELECT id FROM subscription ORDER BY id");
  expect(left.map(({ id }) => id)).toEqual([sub(1), sub(2), sub(3)]);
});
