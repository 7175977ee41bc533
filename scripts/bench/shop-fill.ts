/**
 * Fills a store like a busy shop's after a month. It has a million events of several relays with their runs; three in a hundred failed or are dead,
 * in clusters. It has 200,000 people with their holdings, payments, records and mail, and a year of audit entries. The rows are written in SQL
 * because they are only read. Only the dedupe keys are missing.
 */
import { Database } from "bun:sqlite";
import { DAY_MS, HOUR_MS } from "../../src/base/limit.ts";

/** Number of people for a million events. Smaller stores have proportionally fewer. */
const PEOPLE = 200_000;
const CLUSTER = 40_000;
/** Length of the first part of a cluster, in which every signup becomes dead and every refund fails. */
const CLUSTER_BAD = 4_000;

/** The shop's relays, and the range of each 100 events that belongs to each. */
export const SHOP = {
  "orders-paid": { kind: "receiver", from: 0, to: 40 },
  signups: { kind: "receiver", from: 40, to: 65 },
  newsletter: { kind: "receiver", from: 65, to: 75 },
  shipping: { kind: "receiver", from: 75, to: 85 },
  refunds: { kind: "receiver", from: 85, to: 90 },
  "order-written": { kind: "data_change", from: 90, to: 99 },
  nightly: { kind: "schedule", from: 99, to: 100 },
} as const;

/** Returns the id of a filled row. A higher number means a newer row. */
export const rowId = (prefix: string, number: number): string =>
  `${prefix}_${number.toString(16).padStart(32, "0")}`;
const id = (prefix: string, number = "i"): string => `'${prefix}_' || printf('%032x', ${number})`;
const fail = (code: string, message: string): string =>
  `[{"type":"write_record","outcome":"failed","code":"${code}","message":"${message}"}]`;

/** The id of person 1, whose timeline has thousands of entries. The others have a few each. */
export const BUSY = rowId("per", 1);

export function fillShop(
  file: string,
  {
    environmentId,
    rows,
    spreadMs,
    nowMs,
  }: { environmentId: number; rows: number; spreadMs: number; nowMs: number },
): void {
  using database = new Database(file);
  for (const pragma of [
    "journal_mode = OFF",
    "synchronous = OFF",
    "cache_size = -200000",
    "foreign_keys = OFF",
  ])
    database.exec(`PRAGMA ${pragma}`);
  const share = rows / 1_000_000;
  const people = Math.max(100, Math.floor(PEOPLE * share));
  const keys = database
    .query<{ name: string; key: number; nameKey: number }, [number]>(
      "SELECT name, relay_key.key AS key, name_key AS nameKey FROM relay JOIN relay_key ON relay_id = relay.id WHERE environment_id = ?1",
    )
    .all(environmentId);
  const ofRelay = (what: (name: keyof typeof SHOP) => string | number): string => {
    const cases = Object.entries(SHOP).map(
      ([name, { to }]) => `WHEN i % 100 < ${to} THEN ${what(name as keyof typeof SHOP)}`,
    );
    return `CASE ${cases.join(" ")} END`;
  };
  const keyOf = (name: string) => keys.find((one) => one.name === name);
  /** Words that `insert` replaces in its SQL. `AT` becomes the time of a row, spread evenly. */
  const fillIn = { NOW: nowMs, ENV: environmentId, PEOPLE: people };
  const insert = (count: number, into: string, select: string, spread = spreadMs): void => {
    const wanted = Math.max(1, Math.floor(count));
    const at = `(${nowMs - spread} + CAST(i * ${spread / wanted} AS INTEGER))`;
    let text = select.replaceAll("AT", at);
    for (const [word, value] of Object.entries(fillIn)) text = text.replaceAll(word, String(value));
    database
      .query(
        `INSERT INTO ${into} WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1) SELECT ${text} FROM n`,
      )
      .run(wanted);
  };
  const person = "1 + CASE WHEN i % 211 = 0 THEN 0 ELSE (i * 7919) % PEOPLE END";

  database.exec("BEGIN; UPDATE capture_switch SET captured = 0");
  insert(
    people,
    "person (id, environment_id, email, email_key, status, attributes, created_by, created_at, updated_at)",
    `${id("per")}, ENV, 'customer' || i || '@mail.example', 'customer' || i || '@mail.example',
     CASE WHEN i % 50 = 0 THEN 'invited' WHEN i % 997 = 0 THEN 'suspended' ELSE 'active' END,
     json_object('name', 'Customer ' || i, 'city', 'Town ' || (i % 300)), 'relay:signups', AT, AT`,
    300 * DAY_MS,
  );
  insert(
    people,
    "person_token (environment_id, token, person_id, created_at)",
    `ENV, 'store-token-' || i, ${id("per")}, AT`,
  );

  const inCluster = `i % ${CLUSTER} < ${CLUSTER_BAD}`;
  const state = `CASE WHEN ${inCluster} AND i % 100 BETWEEN 40 AND 64 THEN 'dead' WHEN ${inCluster} AND i % 100 BETWEEN 85 AND 89 THEN 'failed'
      WHEN i > ${rows - 20_000 * share} AND i % 100 BETWEEN 65 AND 74 THEN 'queued' WHEN i > ${rows - 600} AND i % 100 BETWEEN 75 AND 84 THEN 'queued' ELSE 'done' END`;
  const retries = `i > ${rows - 600} AND i % 100 BETWEEN 75 AND 84`;
  insert(
    rows,
    `event (seq, environment_id, relay_key, name_key, "trigger", state, attempts, runs, reason, payload, created_at, started_at, finished_at, person_id,
       next_attempt_at)`,
    `i, ENV, ${ofRelay((name) => keyOf(name)?.key ?? 0)}, ${ofRelay((name) => keyOf(name)?.nameKey ?? 0)}, ${ofRelay((name) => `'${SHOP[name].kind}'`)},
     ${state}, CASE ${state} WHEN 'dead' THEN 7 WHEN 'queued' THEN CASE WHEN ${retries} THEN 3 ELSE 0 END ELSE 1 END, 1,
     CASE ${state} WHEN 'dead' THEN 'collection_missing' WHEN 'failed' THEN 'person_not_found' END,
     '{"event":{"id":"msg_' || i || '","type":"order.paid","data":{"order":"cs_live_' || printf('%08x', i * 2654435761 % 4294967296) || '","amount":' || (i % 9900)
       || ',"email":"customer' || (${person}) || '@mail.example","note":"' || printf('%.*c', 180, 'x') || '"}},"mapped":{"event_id":"msg_' || i
       || '","event_type":"order.paid","order":"cs_live_' || printf('%08x', i * 2654435761 % 4294967296) || '","amount":' || (i % 9900) || '}}',
     AT, AT + 5, CASE WHEN ${state} <> 'queued' THEN AT + 45 END,
     CASE WHEN i % 100 < 85 THEN ${id("per", person)} END, CASE WHEN ${retries} THEN NOW + ${8 * HOUR_MS} END`,
  );
  const failed = fail("collection_missing", "There is no collection members in this environment.");
  const unknown = fail("person_not_found", "Nobody has the address that the call named.").replace(
    "write_record",
    "person",
  );
  const done = `[{"type":"write_record","outcome":"ok","result":{"id":"rec_00000000000000000000000000000001","collection":"orders"}}]`;
  insert(
    rows - 20_000 * share,
    "run (event_seq, number, started_at, finished_at, outcome, results)",
    `i, 1, AT + 5, AT + 45, CASE WHEN ${state} IN ('dead', 'failed') THEN 'failed' ELSE 'ok' END,
     CASE ${state} WHEN 'dead' THEN '${failed}' WHEN 'failed' THEN '${unknown}' ELSE '${done}' END`,
  );
  fillHoldings(insert, { rows, share, people, person });
  database.exec("UPDATE capture_switch SET captured = 1; COMMIT");
}

/** Inserts the holdings of people, their mail, and the audit entries. */
function fillHoldings(
  insert: (count: number, into: string, select: string, spreadMs?: number) => void,
  { rows, share, people, person }: { rows: number; share: number; people: number; person: string },
): void {
  const whom = id("per", person);
  for (const [name, kind, at] of [
    ["orders", "shared", 1],
    ["notes", "private", 2],
    ["tickets", "addressed", 3],
  ] as const) {
    insert(
      1,
      "collection (environment_id, name, kind, fields, created_at, updated_at)",
      `ENV, '${name}', '${kind}', '{"text":{"type":"text"},"amount":{"type":"number"}}', NOW, NOW`,
    );
    insert(
      200_000 * share,
      "record (id, environment_id, collection, data, owner_id, recipient_id, written_by, created_at, updated_at)",
      `${id("rec", `i + ${at * 10_000_000}`)}, ENV, '${name}', json_object('text', 'order ' || i || printf('%.*c', 100, 'y'), 'amount', i),
       ${kind === "shared" ? "NULL" : whom}, ${kind === "addressed" ? whom : "NULL"}, 'relay:orders-paid', AT, AT`,
    );
  }
  insert(
    300_000 * share,
    "access_grant (id, environment_id, person_id, entitlement, source, relay_name, granted_at, expires_at)",
    `${id("grt")}, ENV, ${whom}, CASE i % 3 WHEN 0 THEN 'access:pro' WHEN 1 THEN 'access:beta' ELSE 'purchase:book' END, 'relay', 'orders-paid', AT,
     CASE i % 2 WHEN 0 THEN AT + ${40 * DAY_MS} END`,
  );
  insert(
    200_000 * share,
    "credit (id, environment_id, person_id, amount, balance, reason, source, relay_name, created_at)",
    `${id("crd")}, ENV, ${whom}, 10, 10, 'Bonus', 'relay', 'orders-paid', AT`,
  );
  insert(
    200_000 * share,
    "purchase (id, environment_id, kind, ref, item_kind, item, person_id, origin, relay_name, amount_minor, currency, created_at)",
    `${id("prc")}, ENV, CASE i % 20 WHEN 0 THEN 'refund' ELSE 'purchase' END, 'cs_live_' || i, 'product', 'book', ${whom}, 'relay', 'orders-paid', 4900, 'EUR', AT`,
  );
  insert(
    Math.min(people, 50_000 * share),
    "subscription (id, environment_id, person_id, plan, status, billed_by, started_at)",
    `${id("sub")}, ENV, ${id("per")}, 'pro', CASE i % 3 WHEN 0 THEN 'ended' ELSE 'active' END, 'relay', AT`,
  );
  insert(
    400_000 * share,
    "email (id, environment_id, person_id, recipient, sender, kind, subject, text, state, relay_name, created_at, finished_at)",
    `${id("eml")}, ENV, ${whom}, 'customer' || (${person}) || '@mail.example', 'shop@shop.example', 'event', 'Your order ' || i, 'Thank you.' || printf('%.*c', 300, 'z'),
     CASE i % 200 WHEN 0 THEN 'failed' ELSE 'sent' END, 'orders-paid', AT, AT`,
  );
  insert(
    rows,
    "audit (environment_id, at, actor, action, target, event_id, before, after)",
    `ENV, AT, CASE i % 50 WHEN 0 THEN 'owner:ann@example.com' ELSE 'relay:orders-paid' END,
     CASE i % 50 WHEN 0 THEN 'record.changed' ELSE 'run' END, CASE i % 50 WHEN 0 THEN 'record:rec_' || i ELSE 'relay:orders-paid' END,
     CASE i % 50 WHEN 0 THEN NULL ELSE 'evt_' || printf('%032x', i) END, CASE i % 50 WHEN 0 THEN '{"amount":1}' END, '{"outcome":"ok","amount":2}'`,
    364 * DAY_MS,
  );
  for (const [count, cleared] of [
    [5_000, "AT + 60000"],
    [6, "NULL"],
  ] as const)
    insert(
      count * Math.max(share, 0.2),
      "problem (id, environment_id, code, target, message, raised_at, cleared_at)",
      `${id("prb", `i + ${cleared === "NULL" ? 1_000_000 : 0}`)}, ENV, 'template_empty', 'relay:orders-' || i, 'A template came out empty.', AT, ${cleared}`,
    );
  insert(
    5_000 * share,
    "alert (id, environment_id, code, target, message, count, at, last_at, mailed_at, resolved_at)",
    `${id("alr")}, ENV, 'relay_failed', 'relay:signups', 'An event of signups failed for good.', 1 + i % 40, AT, AT, AT, CASE WHEN i % 100 > 0 THEN AT + 1 END`,
  );
  insert(
    1_000,
    "recent_request (environment_id, slot, seq, at, first_at, relay_name, outcome, code, cause, source, count)",
    `ENV, i, i, AT, AT, 'orders-paid', CASE i % 3 WHEN 0 THEN 'refused' WHEN 1 THEN 'ignored' ELSE 'duplicate' END,
     CASE i % 3 WHEN 0 THEN 'signature_invalid' WHEN 1 THEN 'when_no_match' ELSE 'duplicate' END, 'The signature does not match.', '203.0.113.7', 1`,
    2 * DAY_MS,
  );
  insert(1, "access_slug (environment_id, slug, title, created_at)", "ENV, 'pro', 'Pro', NOW");
  insert(1, "access_slug (environment_id, slug, title, created_at)", "ENV, 'beta', 'Beta', NOW");
  insert(
    40,
    "product (environment_id, name, title, key, created_at, updated_at)",
    "ENV, CASE i WHEN 1 THEN 'book' ELSE 'book-' || i END, 'Book', 'book-' || i, NOW, NOW",
  );
  insert(
    5,
    "plan (environment_id, name, title, created_at, updated_at)",
    "ENV, CASE i WHEN 1 THEN 'pro' ELSE 'pro-' || i END, 'Pro', NOW, NOW",
  );
}
