/** Fills a store as years of use do, for the most expensive calls of every route. */
import { Database } from "bun:sqlite";
import { numberedId } from "../../src/base/id.ts";

/** Returns the id of a filled row, such as `rowId("per", 3)`. A higher number means a newer row. */
export function rowId(prefix: string, number: number): string {
  return `${prefix}_${number.toString(16).padStart(32, "0")}`;
}

/** Returns the id of a filled event. An event's id contains its time, because lists by time read it. */
export function eventId(number: number, firstMs: number): string {
  return numberedId("evt", firstMs + number, number);
}

const ID = (prefix: string, number = "i"): string => `'${prefix}_' || printf('%032x', ${number})`;

/** Number of the last large event. Large events have 31 KB each. */
export const LAST_WIDE_EVENT = 1_003_000;
/** Number of the first large record. Large records have 250 KB each. */
export const FIRST_WIDE_RECORD = 9_000_001;
/** Least number of rows of a kind, because some calls name specific rows. */
const LEAST_ROWS = 20;

/** Records of each of the persons 1 to 7. Person 1 also has many rows of other kinds, and persons 2 to 7 exist to be erased. */
const RECORDS_OF_A_PERSON = 20_000;
/** A person without purchases and access, whose address is similar to many others. */
export const PERSON_WITHOUT_HOLDINGS = rowId("per", 0);
/** The same with the longest addresses, which differ only in a few digits. */
export const PERSON_WITH_LONG_ADDRESS = rowId("per", 900_001);
export const COLLECTIONS_TO_DELETE = ["gone1", "gone2", "gone3"];

/** Returns the time of the first filled event. Each later event's id is one millisecond later. */
export const firstEventMs = (nowMs: number): number => nowMs - 1_100_000;

/**
 * Fills a new file with SQL. `share` is the fraction of the rows that years of use bring. Environment 1 of the file's first app gets most of them.
 */
export function fillStore(file: string, { nowMs, share }: { nowMs: number; share: number }): void {
  const database = new Database(file);
  for (const pragma of ["journal_mode = OFF", "synchronous = OFF", "cache_size = -200000", "foreign_keys = OFF"]) {
    database.exec(`PRAGMA ${pragma}`);
  }
  const scale = (count: number): number => Math.max(LEAST_ROWS, Math.round(count * share));
  // Inserts `count` rows. `select` reads the row's number from `i`.
  const insertAll = (count: number, into: string, select: string): void => {
    database
      .query(
        `INSERT INTO ${into} WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1) SELECT ${select.replaceAll("NOW", String(nowMs)).replaceAll("FIRST", String(firstEventMs(nowMs)))} FROM n`,
      )
      .run(count);
  };
  const insert = (count: number, into: string, select: string): void => insertAll(scale(count), into, select);
  database.exec("BEGIN; UPDATE capture_switch SET captured = 0");
  const people = "person (id, environment_id, email, email_key, status, attributes, created_by, created_at, updated_at)";
  insert(60_000, people, `${ID("per")}, 1 + (i % 2), 'p' || i || '@example.com', 'p' || i || '@example.com', 'active', '{}', 'test', NOW, NOW`);
  database.exec("UPDATE person SET environment_id = 1 WHERE id < 'per_000000000000000000000000000000ff'");
  database.exec(
    `INSERT INTO ${people} VALUES ('${PERSON_WITHOUT_HOLDINGS}', 1, 'p10-@example.com', 'p10-@example.com', 'active', '{}', 'test', ${nowMs}, ${nowMs})`,
  );
  const domain = Array(6).fill("d".repeat(29)).join(".");
  const longAddress = `'${"a".repeat(58)}' || (900000 + i) || '@${domain}.test'`;
  insertAll(300, people, `${ID("per", "i + 900000")}, 1, ${longAddress}, ${longAddress}, 'active', '{}', 'test', NOW, NOW`);
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
    `i + ${LAST_WIDE_EVENT - scale(3_000)}, 1, 2, 2, 'receiver', 'done', '{"event":"' || replace(hex(zeroblob(15500)), '0', 'a') || '"}', FIRST + i + ${LAST_WIDE_EVENT - scale(3_000)}, NOW, NULL, NULL`,
  );
  const crowd = {
    trigger: { kind: "receiver", verify: { scheme: "hooks" }, map: { event_id: "id", note: "data.note" } },
    // A relay with the largest number of actions, most of which name catalog items.
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
  insert(1_000, "run (event_seq, number, started_at, finished_at, outcome, results)", `${LAST_WIDE_EVENT}, i, NOW, NOW, 'failed', ${longRun}`);
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
    `${ID("rec", `i + ${FIRST_WIDE_RECORD - 1}`)}, 1, 'wide', '{"text":"' || replace(hex(zeroblob(125000)), '0', 'b') || '"}', NULL, 'test', NOW, NOW`,
  );
  for (const person of [1, 2, 3, 4, 5, 6, 7]) {
    insert(
      RECORDS_OF_A_PERSON,
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
  insertAll(3, files, `${ID("fil", "i + 100000")}, 1, 'big.bin', 'application/octet-stream', 5242880, zeroblob(5242880), NOW`);
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
  insert(
    5_000,
    "person_customer (environment_id, space, customer_id, person_id, arrival, event_id, created_at)",
    `1, 'busy', 'cus_' || i, ${ID("per", "1")}, i, NULL, NOW`,
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
