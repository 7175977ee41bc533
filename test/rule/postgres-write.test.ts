/** The same series of writes leaves the same rows in both databases. It covers triggers and texts that PostgreSQL parses differently. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Origin, SqlNames, Store } from "../../src/store/port.ts";
import { type BothStores, openBothStores } from "../kit/both-stores.ts";

let both: BothStores;
let sqlite: Store;
let postgres: Store;

beforeAll(async () => {
  both = await openBothStores();
  ({ sqlite, postgres } = both);
});

afterAll(() => both[Symbol.asyncDispose]());

interface Step {
  by?: Origin;
  sql: string;
  values?: SqlNames;
}

const insert = (table: string, values: SqlNames, by: Origin = "app"): Step => {
  const names = Object.keys(values);
  return { by, sql: `INSERT INTO ${table} (${names.join(", ")}) VALUES (${names.map((name) => `$${name}`).join(", ")})`, values };
};

const recordOf = (id: string, collection: string, data: string, more: SqlNames = {}, by: Origin = "app"): Step =>
  insert("record", { id, environment_id: 1, collection, data, written_by: "key:k", created_at: 5, updated_at: 6, ...more }, by);

const relayOf = (id: string, name: string, definition: unknown): Step =>
  insert("relay", {
    ...{ id, environment_id: 1, name, definition: JSON.stringify(definition) },
    ...{ origin_kind: "file", origin_at: 1, active_since: 1, created_at: 1, updated_at: 1 },
  });

const watching = (collection: string, on: string[], where?: unknown): unknown => ({
  trigger: { kind: "data_change", collection, on, ...(where === undefined ? {} : { where }) },
  actions: [],
});

const eventOf = (seq: number): Step =>
  insert("event", { seq, environment_id: 1, name_key: 1, relay_key: 1, trigger: "schedule", state: "queued", created_at: seq, payload: "{}" });

const WORLD: readonly Step[] = [
  insert("app", { id: "shop", name: "Shop", created_at: 1 }),
  insert("environment", { app_id: "shop", name: "development", created_at: 1 }),
  insert("environment", { app_id: "shop", name: "production", created_at: 1 }),
  relayOf("rel_orders", "orders", watching("orders", ["created", "updated", "deleted"], { status: "paid" })),
  relayOf("rel_notes", "notes", watching("notes", ["created", "created"])),
  relayOf("rel_hook", "hook", { trigger: { kind: "receiver" }, actions: [] }),
];

/** Scripts that must leave the same rows, by their subject. Each starts where the previous one ended. */
const SCRIPTS: readonly (readonly [what: string, steps: readonly Step[]])[] = [
  ["an app, its environments, and what its relays watch", WORLD],
  [
    "changes of each kind that a relay watches, and changes that no relay watches",
    [
      recordOf("rec_1", "orders", '{"status":"paid"}', { owner_id: "per_1" }),
      recordOf("rec_2", "orders", '{"status":"open"}'),
      recordOf("rec_3", "notes", '{"text":"é€😀"}', { recipient_id: "per_2" }),
      recordOf("rec_4", "other", "{}"),
      { sql: `UPDATE record SET data = '{"status":"sent"}', updated_at = 9, written_by = 'dashboard' WHERE id = 'rec_1'` },
      { sql: "UPDATE record SET updated_at = 10 WHERE collection = 'orders'" },
      { sql: "UPDATE record SET owner_id = 'per_2', recipient_id = NULL WHERE id = 'rec_1'" },
      { sql: "UPDATE record SET owner_id = 'per_2', recipient_id = NULL WHERE id = 'rec_2'" },
      { sql: "UPDATE record SET recipient_id = 'per_3' WHERE id = 'rec_2'" },
      { sql: "UPDATE record SET data = '{}' WHERE id = 'rec_3'" },
      { sql: "DELETE FROM record WHERE id = 'rec_2'" },
      { sql: "DELETE FROM record WHERE id = 'rec_3'" },
    ],
  ],
  [
    "writes of a relay and an erasure are not captured, and later writes are",
    [
      recordOf("rec_5", "orders", '{"a":1}', {}, "relay"),
      { by: "relay", sql: `UPDATE record SET data = '{"a":2}' WHERE id = 'rec_5'` },
      { by: "erasure", sql: "DELETE FROM record WHERE id = 'rec_5'" },
      recordOf("rec_6", "orders", '{"a":3}', {}, "dashboard"),
      recordOf("rec_7", "orders", '{"a":4}', {}, "receipt"),
    ],
  ],
  [
    "a relay that watches something else now, and one that watches nothing",
    [
      { sql: "UPDATE relay SET definition = $to WHERE id = 'rel_orders'", values: { to: JSON.stringify(watching("other", ["deleted"])) } },
      recordOf("rec_8", "orders", "{}"),
      { sql: "DELETE FROM record WHERE id = 'rec_4'" },
      { sql: "UPDATE relay SET definition = $to WHERE id = 'rel_notes'", values: { to: '{"trigger":{"kind":"receiver"}}' } },
      { sql: "UPDATE relay SET definition = $to WHERE id = 'rel_orders'", values: { to: JSON.stringify(watching("orders", ["created"])) } },
      { sql: "UPDATE relay SET state = 'paused' WHERE id = 'rel_orders'" },
    ],
  ],
  [
    "a relay that was deleted and created again has its name's number, and its own new number",
    [
      { sql: "DELETE FROM relay WHERE id = 'rel_notes'" },
      relayOf("rel_again", "notes", watching("notes", ["updated"])),
      relayOf("rel_new", "new", { trigger: { kind: "schedule" }, actions: [] }),
    ],
  ],
  [
    "the files that a record names",
    [
      recordOf("rec_a", "pictures", '{"one":"fil_1","two":"fil_2","again":"fil_1","deep":{"x":"fil_9"},"list":["fil_8"],"n":5,"t":true,"z":null}'),
      recordOf("rec_b", "pictures", '{"text":"no \\"fil_3"}'),
      recordOf("rec_c", "pictures", '{"nul":"a\\u0000b","half":"\\ud800","pair":"\\ud83d\\ude00","slash":"\\\\u0000","f":"fil_4"}'),
      recordOf("rec_d", "pictures", 'not JSON, "fil_5'),
      { sql: `UPDATE record SET data = '{"one":"fil_2","new":"fil_6"}' WHERE id = 'rec_a'` },
      { sql: `UPDATE record SET data = '{"one":"fil_7"}' WHERE id = 'rec_b'` },
      { sql: "UPDATE record SET data = '{}' WHERE id = 'rec_c'" },
      { sql: "DELETE FROM record WHERE id = 'rec_b'" },
    ],
  ],
  [
    "the number of stored bytes",
    [
      insert("file", { id: "fil_1", environment_id: 1, name: "a", media_type: "t", bytes: 700, content: new Uint8Array([0, 255]), created_at: 1 }),
      insert("file", { id: "fil_2", environment_id: 2, name: "b", media_type: "t", bytes: 90, content: new Uint8Array(), created_at: 1 }),
      recordOf("rec_e", "kept", '{"t":"€€€"}', { owner_id: "per_9" }),
      recordOf("rec_f", "kept", '{"t":"x"}', { owner_id: "per_9", environment_id: 2 }),
      { sql: `UPDATE record SET data = '{"t":"longer"}', owner_id = 'per_8' WHERE id = 'rec_e'` },
      { sql: "UPDATE record SET owner_id = NULL WHERE id = 'rec_f'" },
      { sql: "UPDATE record SET owner_id = 'per_8' WHERE id = 'rec_f'" },
      { sql: "DELETE FROM record WHERE collection = 'kept'" },
      { sql: "DELETE FROM file WHERE id = 'fil_1'" },
      { sql: "DELETE FROM record WHERE environment_id = 1" },
    ],
  ],
  [
    "the last number of an event stays when the newest events are deleted",
    [
      ...[1, 2, 3, 4, 5].map(eventOf),
      { sql: "DELETE FROM event WHERE seq = 2" },
      { sql: "DELETE FROM event WHERE seq IN (4, 5)" },
      eventOf(6),
      { sql: "DELETE FROM event" },
    ],
  ],
  [
    "sessions, networks and codes of a suspended or erased person",
    ["per_1", "per_2", "per_3"]
      .flatMap((id, number): Step[] => [
        insert("person", {
          ...{ id, environment_id: 1, email: `${id}@x.test`, email_key: `${id}@x.test`, status: "active" },
          ...{ created_by: "dashboard", created_at: 1, updated_at: 1 },
        }),
        insert("person_session", {
          ...{ token_hash: new Uint8Array([number]), id: `ses_${id}`, environment_id: 1, person_id: id },
          ...{ created_at: 1, expires_at: 2 },
        }),
        insert("person_network", { person_id: id, network_digest: new Uint8Array([7]), seen_at: 1 }),
        insert("person_code", {
          ...{ environment_id: 1, email_key: `${id}@x.test`, code_digest: new Uint8Array([1]) },
          ...{ network_digest: new Uint8Array([2]), expires_at: 9 },
        }),
      ])
      .concat([
        { sql: "UPDATE person SET status = 'suspended' WHERE id = 'per_1'" },
        { sql: "UPDATE person SET status = 'erased', email = NULL, email_key = NULL WHERE id = 'per_2'" },
        { sql: "UPDATE person SET status = 'invited' WHERE id = 'per_3'" },
      ]),
  ],
  [
    "the end of a grant, which is a generated column",
    (
      [
        [null, null],
        [50, null],
        [null, 40],
        [50, 40],
        [30, 40],
      ] as const
    ).map(([expires_at, revoked_at], number) =>
      insert("access_grant", {
        ...{ id: `grn_${number}`, environment_id: 1, person_id: "per_1", entitlement: "club", source: "hand", source_ref: "x" },
        ...{ granted_at: 1, expires_at, revoked_at },
      }),
    ),
  ],
  [
    "an app that is deleted, with everything that depends on it",
    [{ sql: "DELETE FROM relay WHERE environment_id = 1" }, { sql: "DELETE FROM environment" }, { sql: "DELETE FROM app" }],
  ],
];

for (const [what, steps] of SCRIPTS)
  test(what, async () => {
    for (const { by = "app", sql, values } of steps) {
      const counts = await Promise.all(
        [sqlite, postgres].map((store) => store.write(by, (tx) => (values === undefined ? tx.run(sql) : tx.run(sql, values)))),
      );
      expect(counts[1]).toBe(counts[0] ?? -1);
    }
    const [there, here] = [await readRows(sqlite), await readRows(postgres)];
    expect(here).toEqual(there);
    expect(Object.values(there).flat().length).toBeGreaterThan(0);
  });

const TABLES = [
  ...["app", "environment", "relay", "relay_name", "relay_key", "record", "record_change", "record_watch", "past_record_watch", "record_file"],
  ...["stored_bytes", "file", "event", "event_last", "person", "person_session", "person_network", "person_code", "access_grant"],
];

async function readRows(store: Store): Promise<Record<string, unknown[]>> {
  return await store.read(async (tx) => {
    const tables: Record<string, unknown[]> = {};
    for (const table of TABLES) {
      const rows = await tx.all<Record<string, unknown>>(`SELECT * FROM ${table}`);
      const plain = rows.map((row) =>
        Object.fromEntries(
          Object.entries(row).map(([name, value]) => [name, value instanceof Uint8Array ? Buffer.from(value).toString("hex") : value]),
        ),
      );
      tables[table] = plain.sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
    }
    return tables;
  });
}

/** JSON as senders write it, with a path, and the value that both databases find there. */
const FOUND: readonly (readonly [json: string, path: string])[] = [
  ['{"a":{"b":"c"}}', "$.a.b"],
  ['{"a":{"b":"c"}}', "$.a.x"],
  ['{"a":[1,{"b":"two"}]}', "$.a[1].b"],
  ['{"a.b":"dotted","\\u00e9":"é"}', '$."a.b"'],
  ['{"a":true,"b":false,"c":null}', "$.a"],
  ['{"a":true,"b":false,"c":null}', "$.b"],
  ['{"a":true,"b":false,"c":null}', "$.c"],
  ['{"a":{"b":[1,"x"]}}', "$.a"],
  ['{"big":"a\\u0000b","want":"found"}', "$.want"],
  ['{"half":"\\udc00\\ud800","want":"found"}', "$.want"],
  ['{"pair":"\\ud83d\\ude00"}', "$.pair"],
  ['{"slash":"\\\\u0000\\\\\\\\u0000"}', "$.slash"],
];

test.each(FOUND)("in %s both databases find the same at %s", async (json, path) => {
  const ask = (store: Store) =>
    store.read((tx) =>
      tx.get<{ found: unknown; length: number; valid: number }>(
        "SELECT CAST(CAST($json AS TEXT) ->> CAST($path AS TEXT) AS TEXT) AS found, json_array_length(CAST($json AS TEXT)) AS length, CASE WHEN json_valid(CAST($json AS TEXT)) THEN 1 ELSE 0 END AS valid",
        { json, path },
      ),
    );
  expect(await ask(postgres)).toEqual(await ask(sqlite));
});

test.each([['["x",1,null,true,{"a":2},1.5]'], ['{"a":"x","b":[1],"c":false}'], ['"alone"'], ["[]"], ['["a\\u0000","b"]']])(
  "both databases walk %s in the same way",
  async (json) => {
    const ask = (store: Store) =>
      store.read((tx) =>
        tx.all("SELECT CAST(key AS TEXT) AS key, type, CASE WHEN type = 'text' THEN length(atom) END AS length FROM json_each(CAST($json AS TEXT))", {
          json,
        }),
      );
    const [there, here] = [await ask(sqlite), await ask(postgres)];
    // SQLite counts characters only up to U+0000.
    expect(here).toEqual(json.includes("u0000") ? [{ ...(there[0] as object), length: 2 }, ...there.slice(1)] : there);
  },
);

test("both databases lowercase only ASCII letters, in a value and in a column", async () => {
  await Promise.all(
    [sqlite, postgres].map((store) => store.write("app", (tx) => tx.run("INSERT INTO app (id, name, created_at) VALUES ('letters', 'ÉcoLE', 1)"))),
  );
  const ask = (store: Store) =>
    store.read((tx) =>
      tx.all("SELECT lower(name) AS name, lower($name) AS value FROM app WHERE instr(lower(name), lower($name)) > 0", { name: "ÉCO" }),
    );
  expect(await ask(postgres)).toEqual([{ name: "École", value: "Éco" }]);
  expect(await ask(sqlite)).toEqual([{ name: "École", value: "Éco" }]);
});

test("a text with U+0000 is written with U+FFFD there, whatever surrounds it", async () => {
  await postgres.write("app", (tx) => tx.run("INSERT INTO app (id, name, created_at) VALUES ('nul', $name, 1)", { name: "a\u0000b€" }));
  expect(await postgres.read((tx) => tx.get("SELECT name FROM app WHERE id = 'nul'"))).toEqual({ name: "a\uFFFDb€" });
});
