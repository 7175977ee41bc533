/**
 * Checks that no statement of a start, a poll or a maintenance job scans a growing table. A recording connection collects the statements of a real
 * service, and SQLite's query plan shows each scan. BOUNDED lists intentional index scans.
 */

import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { fileOf, RecordedStatements, runAllWork, SMALL } from "../kit/service-lifecycle.ts";

/** Lists scans that end soon although their table grows: the plan's text, the statement's text, and the reason. */
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
    step: /^SCAN clock_rollback$/,
    sql: /FROM clock_rollback ORDER BY seq LIMIT 64$/,
    why: "the table holds the times the clock was set back while events came, and it takes some and stops",
  },
  {
    step: /^SCAN problem USING INDEX problem_open(_target)?$/,
    sql: /WHERE cleared_at IS NULL/,
    why: "the index holds the problems that stand, a few for each relay",
  },
  {
    step: /^SCAN rejected_delivery USING INDEX rejected_delivery_missing$/,
    sql: /rejected_delivery\.arrived_at IS NULL/,
    why: "the index holds the event ids that are missing after an outage, at most 1,000 for each relay",
  },
  {
    step: /^SCAN alert USING INDEX alert_open$/,
    sql: /WHERE resolved_at IS NULL LIMIT/,
    why: "it takes the first two thousand open alerts and stops",
  },
  {
    step: /^SCAN alert_channel USING INDEX sqlite_autoindex_alert_channel_1$/,
    sql: /FROM alert_channel WHERE retry_at IS NULL/,
    why: "the table holds the alert channels, at most 20 for each environment",
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
    step: /^SCAN relay_key$/,
    sql: /AS relayId FROM relay_key\s+WHERE \(SELECT seq FROM ready_block/,
    why: "the table has a row for each relay that a person ever created, and one index entry answers for each",
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

const PLANNED = /^\s*(SELECT|INSERT|UPDATE|DELETE|WITH|REPLACE)\b/i;

test("no statement of a start, a poll or a maintenance job scans a growing table", async () => {
  const noted = new RecordedStatements();
  const statements = noted.prepared;
  await using running = await runAllWork(noted);
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
  // Proves that the recording covers a start's recovery, a poll, and the last maintenance jobs.
  for (const seen of [
    "WHERE state = 'running'",
    "INDEXED BY event_retry",
    "FROM record_change",
    "FROM audit WHERE seq >",
    "DELETE FROM recent_request",
    "previous_secret_until",
    "waiting.mailed_at",
    "freelist_count",
  ])
    expect([seen, [...statements].some((sql) => sql.includes(seen))]).toEqual([seen, true]);
});

/** Resolves an alias in the plan to its table. */
function realTable(sql: string, name: string): string {
  return new RegExp(`(?:FROM|JOIN) (\\w+) AS ${name}\\b`).exec(sql)?.[1] ?? name;
}
