/**
 * No statement of a start, a poll or a caretaker walks through a table that grows. The statements are those that a service really runs, on a
 * connection that notes them; SQLite's own plan says how each would be answered. What walks along an index on purpose stands in BOUNDED.
 */

import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { HOUR_MS } from "../../src/ground/limit.ts";
import { CALL, GRANT, sendEvent, WRITE } from "../kit/event-flow.ts";
import { BROKEN, FakeCaller } from "../kit/fake-caller.ts";
import { makeOrders, receiverDefinition, saveRelay } from "../kit/relay-definition.ts";
import { type RunningService, startRunningService } from "../kit/running-service.ts";

/** Tables whose rows people make one by one, or that hold one row: a walk through them ends soon, however long the service runs. */
const SMALL = new Set([
  "access_slug",
  "api_key",
  "app",
  "capture_switch",
  "collection",
  "environment",
  "event_last",
  "key_run",
  "master_key_proof",
  "owner",
  "plan",
  "product",
  "ran_actions",
  "record_watch",
  "relay",
  "runner_lease",
  "schedule_cursor",
  "schema_migration",
  "sender_domain",
]);

/** Walks that end soon although their table grows: how the plan says it, how the statement goes on, and why. */
const BOUNDED: readonly { step: RegExp; sql: RegExp; why: string }[] = [
  {
    step: /^SCAN event USING INDEX event_running$/,
    sql: /WHERE state = 'running' ORDER BY seq LIMIT/,
    why: "the index holds what runs now, 32 events at most, and the rest of a process that died",
  },
  {
    step: /^SCAN event$/,
    sql: /FROM event ORDER BY seq DESC LIMIT 1\)/,
    why: "it takes the newest event and stops",
  },
  {
    step: /^SCAN event_clock_back$/,
    sql: /FROM event_clock_back ORDER BY seq LIMIT 64$/,
    why: "the table holds the times the clock was set back while events came, and it takes some and stops",
  },
  {
    step: /^SCAN problem USING INDEX problem_(by_)?standing$/,
    sql: /WHERE cleared_at IS NULL/,
    why: "the index holds the problems that stand, a few for each relay",
  },
  {
    step: /^SCAN alert USING INDEX alert_open$/,
    sql: /WHERE resolved_at IS NULL LIMIT/,
    why: "it takes the first two thousand open alerts and stops",
  },
  {
    step: /^SCAN email USING (COVERING )?INDEX email_intended$/,
    sql: /WHERE state = 'intended'/,
    why: "the index holds the mails that are on their way, one a place of the runner at most",
  },
  {
    step: /^SCAN bulk_replay USING INDEX bulk_replay_running$/,
    sql: /WHERE state = 'running'/,
    why: "the index holds the bulk replays under way, one an environment",
  },
  {
    step: /^SCAN erasure USING INDEX erasure_open$/,
    sql: /ORDER BY seq LIMIT/,
    why: "the index holds the erasures that are not done yet, and it takes the oldest and stops",
  },
  {
    step: /^SCAN dedupe$/,
    sql: /SELECT 1 FROM dedupe LIMIT 1/,
    why: "it asks whether there is any",
  },
  {
    step: /^SCAN record_change$/,
    sql: /FROM record_change (ORDER BY seq )?LIMIT/,
    why: "it takes the oldest ones and stops",
  },
];

/** Every statement that any connection of this process prepares while `work` runs. */
async function noteStatements(noted: Set<string>, work: () => Promise<void>): Promise<void> {
  const { prepare } = Database.prototype;
  Database.prototype.prepare = function (this: Database, sql: string, ...rest: never[]) {
    noted.add(sql);
    return Reflect.apply(prepare, this, [sql, ...rest]);
  } as typeof prepare;
  try {
    await work();
  } finally {
    Database.prototype.prepare = prepare;
  }
}

const PLANNED = /^\s*(SELECT|INSERT|UPDATE|DELETE|WITH|REPLACE)\b/i;

test("no statement of a start, a poll or a caretaker scans a table that grows", async () => {
  const statements = new Set<string>();
  await using running = await liveThroughAll(statements);
  using database = new Database(await fileOf(running), { readonly: true });
  const grows = new Set(
    database
      .query<{ name: string }, []>("SELECT name FROM sqlite_master WHERE type = 'table'")
      .all()
      .flatMap(({ name }) => (SMALL.has(name) ? [] : [name])),
  );
  const scans: string[] = [];
  const used = new Set<string>();
  for (const sql of [...statements].filter((one) => PLANNED.test(one))) {
    for (const { detail } of database.query<{ detail: string }, []>(`EXPLAIN QUERY PLAN ${sql}`).all()) {
      const scanned = /^SCAN (\w+)/.exec(detail)?.[1];
      if (scanned === undefined || !grows.has(realTable(sql, scanned))) continue;
      const bounded = BOUNDED.find((one) => one.step.test(detail) && one.sql.test(sql));
      if (bounded === undefined) scans.push(`${detail}: ${sql.replace(/\s+/g, " ")}`);
      else used.add(bounded.why);
    }
  }
  expect(scans).toEqual([]);
  expect(BOUNDED.map(({ why }) => why).filter((why) => !used.has(why))).toEqual([]);
  // That it saw what a service does by itself: a start's rescue, a poll, and the last of the caretakers.
  for (const seen of [
    "WHERE state = 'running'",
    "INDEXED BY event_retry",
    "FROM record_change",
    "FROM audit WHERE seq >",
    "DELETE FROM recent_call",
    "previous_secret_until",
    "waiting.mailed_at",
    "freelist_count",
  ])
    expect([seen, [...statements].some((sql) => sql.includes(seen))]).toEqual([seen, true]);
}, 60_000);

/** A plan names a table by its alias. */
function realTable(sql: string, name: string): string {
  return new RegExp(`(?:FROM|JOIN) (\\w+) AS ${name}\\b`).exec(sql)?.[1] ?? name;
}

async function fileOf(running: RunningService): Promise<string> {
  const [file] = await running.rows<{ file: string }>("PRAGMA database_list");
  return file?.file ?? "missing";
}

/** A service through all that it does by itself: two starts, every road of a run, ticks, captured changes, rounds of every caretaker. */
async function liveThroughAll(statements: Set<string>): Promise<RunningService> {
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
  await noteStatements(statements, async () => {
    for (const name of ["orders", "notices"]) await sendEvent(running, `a ${name}`, { email: "ada@example.com" }, name);
    await running.hook("orders", { headers: { "x-signature": "0".repeat(64) }, body: "{}" });
    await clock.advance(2 * HOUR_MS);
    // What a killed process left, while the clock was set back and then far ahead.
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
