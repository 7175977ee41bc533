/** Runs a service through all its background work, and records the SQL statements that it sends to the database file. */
import { Database } from "bun:sqlite";
import { HOUR_MS } from "../../src/base/limit.ts";
import { SqliteConnection } from "../../src/store/sqlite/connection.ts";
import { CALL, GRANT, sendEvent, WRITE } from "./event-flow.ts";
import { BROKEN, FakeCaller } from "./fake-caller.ts";
import { makeOrders, receiverDefinition, saveRelay } from "./relay-definition.ts";
import { type RunningService, startRunningService } from "./running-service.ts";

/** Tables with one row, or with rows that people create one by one. A scan of them stays short however long the service runs. */
export const SMALL = new Set([
  "access_slug",
  "action_list",
  "api_key",
  "app",
  "backup_copy",
  "capture_switch",
  "collection",
  "dedupe_segment",
  "environment",
  "event_last",
  "master_key_proof",
  "owner",
  "plan",
  "product",
  "record_watch",
  "relay",
  "runner_lease",
  "schedule_cursor",
  "schema_migration",
  "sender_domain",
]);

/** The statements of this process: those that modules send to the database file, and those that any connection prepares. */
export class RecordedStatements {
  readonly asked = new Set<string>();
  readonly prepared = new Set<string>();

  /** Records the statements while `work` runs. */
  async during(work: () => Promise<void>): Promise<void> {
    const { asked, prepared } = this;
    const { prepare } = Database.prototype;
    Database.prototype.prepare = function (this: Database, sql: string, ...rest: never[]) {
      prepared.add(sql);
      return Reflect.apply(prepare, this, [sql, ...rest]);
    } as typeof prepare;
    const { get, all, run, post, runEach } = SqliteConnection.prototype;
    const ways = { get, all, run, post, runEach };
    for (const [name, way] of Object.entries(ways))
      Object.assign(SqliteConnection.prototype, {
        [name](this: SqliteConnection, sql: string, ...values: never[]) {
          asked.add(sql);
          return Reflect.apply(way, this, [sql, ...values]);
        },
      });
    try {
      await work();
    } finally {
      Database.prototype.prepare = prepare;
      Object.assign(SqliteConnection.prototype, ways);
    }
  }
}

/** Starts a service and runs all its background work: two starts, every kind of run, ticks, captured changes and each maintenance job. */
export async function runAllWork(statements: RecordedStatements): Promise<RunningService> {
  const caller = new FakeCaller();
  caller.reply = () => BROKEN;
  const running = await startRunningService({ ports: { caller } });
  const { clock } = running;
  await makeOrders(running);
  const map = { event_id: "id", person_email: "email" };
  await saveRelay(running, receiverDefinition({ map, actions: [WRITE, GRANT] }));
  await saveRelay(running, { ...receiverDefinition({ map, actions: [CALL] }), name: "notices" });
  for (const [name, trigger] of Object.entries({
    hourly: { kind: "schedule", every: "1h" },
    watcher: { kind: "data_change", collection: "orders", on: ["created"] },
  }))
    await running.api("POST", "/relays", { definition: { name, trigger, actions: [CALL] } });
  await running.api("POST", "/collections/orders/records", { data: { order: "x" } });
  const file = await fileOf(running);
  await statements.during(async () => {
    for (const name of ["orders", "notices"]) await sendEvent(running, `a ${name}`, { email: "ada@example.com" }, name);
    await running.hook("orders", { headers: { "x-signature": "0".repeat(64) }, body: "{}" });
    await clock.advance(2 * HOUR_MS);
    // Simulates a killed process whose clock was set back and then far ahead.
    using other = new Database(file);
    other.run("UPDATE event SET state = 'running' WHERE name_key = (SELECT key FROM relay_name WHERE name = 'notices')");
    clock.jump(-24 * HOUR_MS);
    await clock.advance(10_000);
    clock.jump(120 * 24 * HOUR_MS);
    await running.restart();
    for (const at of [5, 6]) {
      await sendEvent(running, `b ${at}`, { email: "ada@example.com" });
      await clock.advance(1.1 * HOUR_MS);
    }
  });
  return running;
}

export async function fileOf(running: RunningService): Promise<string> {
  const [file] = await running.rows<{ file: string }>("PRAGMA database_list");
  return file?.file ?? "missing";
}

/** Sends the requests that people cause: every list with its filters, counts, searches, a bulk replay and an erasure. */
export async function queryAll(running: RunningService, statements: RecordedStatements): Promise<void> {
  const [{ id: person } = { id: "nobody" }] = await running.rows<{ id: string }>("SELECT id FROM person ORDER BY id LIMIT 1");
  const [event] = await running.rows<{ at: number }>("SELECT created_at AS at FROM event ORDER BY seq LIMIT 1");
  const at = encodeURIComponent(new Date(event?.at ?? 0).toISOString());
  const events = [
    "",
    "relay=orders",
    `person=${person}`,
    "trigger=receiver",
    "trigger=schedule",
    "state=dead",
    "state=done",
    "q=ada",
    "mapped=event_id:a",
    `since=${at}`,
  ];
  const both = ["state=dead", "state=done", "state=queued", "trigger=schedule", "trigger=schedule&state=dead", `since=${at}`, `until=${at}`].map(
    (other) => `relay=orders&${other}`,
  );
  const [newest] = await running.rows<{ seq: number }>("SELECT max(seq) AS seq FROM event JOIN relay_name ON key = name_key WHERE name = 'orders'");
  await statements.during(async () => {
    for (const path of [
      ...[
        "/relays",
        "/relays/orders",
        "/relays/orders/funnel",
        "/relays/orders/checklist",
        "/relays/orders/retry",
        "/relays/orders/versions",
        "/relays/orders/sender",
        "/overview",
        "/url-times",
      ],
      ...[...events, ...both].map((filter) => `/events?limit=50&${filter}`),
      ...[...events, ...both].map((filter) => `/events/counts?${filter}`),
      ...["", "relay=orders", "trigger=receiver", "trigger=schedule", "state=dead", "relay=orders&state=done"].map(
        (filter) => `/events/histogram?${filter}`,
      ),
      ...["", "kind=run", "target=relay:orders", "actor=nobody"].map((filter) => `/audit?${filter}`),
      ...[
        "/problems",
        "/problems?all=true",
        "/alerts",
        "/alerts?open=true",
        "/calls",
        "/calls/counts",
        "/unknown-calls",
        "/find?q=ada",
        "/find?q=evt_",
      ],
      ...["/collections", "/collections/orders/records", "/collections/orders/records?q=x", `/collections/orders/records?owner=${person}`, "/files"],
      ...["/persons", "/persons?q=ada", "/persons?status=invited", "/persons?access=true", "/persons?email=ada@example.com"],
      ...["", "/story", "/access", "/access/access:pro", "/grants", "/credits", "/mail-stop"].map((of) => `/persons/${person}${of}`),
      ...["/grants", "/grants?entitlement=access:pro", "/purchases", "/purchases?ref=x", "/subscriptions", "/subscriptions?status=active"],
      ...["/emails", `/emails?person=${person}`, "/emails?state=sent", "/emails?kind=event", "/bulk-replays", "/mail/stops"],
    ])
      await running.api("GET", path);
    for (const chosen of [{ state: "dead" }, { state: "failed", relay: "orders" }]) {
      await running.api("POST", "/bulk-replays/plan", chosen);
      await running.api("POST", "/bulk-replays", { ...chosen, perSecond: 10 });
      await running.clock.advance(2_000);
    }
    // Simulates a failed last attempt of the newest event.
    const retryMs = running.clock.now() + 60_000;
    await running.service.store.write("app", (tx) =>
      tx.run("UPDATE event SET state = 'queued', next_attempt_at = ?1 WHERE seq = ?2", retryMs, newest?.seq ?? 0),
    );
    const { body } = await running.api("POST", "/relays/orders/retry");
    if (body.tried !== 1) throw new Error(`Not one was tried now: ${JSON.stringify(body)}`);
    await running.api("DELETE", `/persons/${person}`);
    await running.clock.advance(5_000);
  });
}
