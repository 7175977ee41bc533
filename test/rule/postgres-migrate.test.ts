/** Creation and upgrade of PostgreSQL's schema, and the effect of a user's direct writes with SQL. */
import { afterEach, expect, test } from "bun:test";
import { SQL } from "bun";
import { systemClock } from "../../src/base/clock.ts";
import { MigrationRefused, POSTGRES_MIGRATIONS, SCHEMA_VERSION } from "../../src/store/migrate/migrations.ts";
import type { Store } from "../../src/store/port.ts";
import { openPostgres } from "../../src/store/postgres/postgres.ts";
import { type FreshDatabase, freshDatabase } from "../kit/postgres.ts";

const opened: AsyncDisposable[] = [];

afterEach(async () => {
  for (const one of opened.splice(0).reverse()) await one[Symbol.asyncDispose]();
});

async function openDatabase(options: { empty?: boolean } = {}): Promise<FreshDatabase> {
  const fresh = await freshDatabase(options);
  opened.push(fresh);
  return fresh;
}

async function openStore({ place }: FreshDatabase, onMigrate?: (schema: object) => void): Promise<Store> {
  const store = await openPostgres(place, { clock: systemClock, ...(onMigrate === undefined ? {} : { onMigrate }) });
  opened.push({ [Symbol.asyncDispose]: () => store.close() });
  return store;
}

/** Opens a connection like psql, which the service does not know. */
function openDirect({ url }: FreshDatabase): SQL {
  const direct = new SQL(url, { max: 1 });
  opened.push({ [Symbol.asyncDispose]: () => direct.close() });
  return direct;
}

test("one of several nodes that start at once on an empty database creates the schema, and all use it", async () => {
  const fresh = await openDatabase({ empty: true });
  const told: object[] = [];
  const stores = await Promise.all([1, 2, 3].map(() => openStore(fresh, (schema) => told.push(schema))));
  for (const store of stores)
    expect(await store.read((tx) => tx.get("SELECT max(number) AS number FROM schema_migration"))).toEqual({ number: SCHEMA_VERSION });
  const direct = openDirect(fresh);
  expect((await direct`SELECT count(*)::int AS count FROM schema_migration`)[0].count).toBe(
    (await direct`SELECT count(DISTINCT number)::int AS count FROM schema_migration`)[0].count,
  );
  expect(told).toEqual([{ from: 0, to: SCHEMA_VERSION }]);
});

test("a node that waited while another made the schema of an empty database sees that schema", async () => {
  const fresh = await openDatabase({ empty: true });
  const [holder, looking] = [openDirect(fresh), openDirect(fresh)];
  const told: object[] = [];
  const later = SCHEMA_VERSION + 1;
  let opening: Promise<unknown> = Promise.resolve();
  await holder.begin(async (tx) => {
    await tx.unsafe(`SELECT pg_advisory_xact_lock(${0x72656c62})`);
    opening = openStore(fresh, (schema) => told.push(schema)).catch((error: unknown) => error);
    for (let waits = 0; waits === 0; )
      [{ waits }] =
        await looking`SELECT count(*)::int AS waits FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`;
    // The change is so small that the server does not interrupt the waiting session.
    await tx.unsafe("CREATE TABLE schema_migration (number bigint PRIMARY KEY, name text NOT NULL, applied_at bigint NOT NULL)");
    await tx`INSERT INTO schema_migration VALUES (${later}, 'later', 0)`;
  });
  expect(await opening).toBeInstanceOf(MigrationRefused);
  expect({ told, tables: [...(await looking`SELECT tablename FROM pg_tables WHERE schemaname = 'public'`)] }).toEqual({
    told: [],
    tables: [{ tablename: "schema_migration" }],
  });
});

test("a migration ignores the transaction timeout of its user", async () => {
  const database = await openDatabase({ empty: true });
  const holder = openDirect(database);
  const name = new URL(database.url).pathname.slice(1);
  // Servers before 17 have no such setting.
  for (const { setting } of await holder.unsafe("SELECT name AS setting FROM pg_settings WHERE name = 'transaction_timeout'"))
    await holder.unsafe(`ALTER DATABASE ${name} SET ${setting} = '150ms'`);
  await holder.unsafe(`SELECT pg_advisory_lock(${0x72656c62})`);
  const opening = openStore(database);
  await Bun.sleep(600);
  await holder.unsafe("SELECT pg_advisory_unlock_all()");
  await opening;
});

test("a database of a newer version is refused and unchanged", async () => {
  const fresh = await openDatabase();
  const direct = openDirect(fresh);
  await direct`INSERT INTO schema_migration (number, name, applied_at) VALUES (${SCHEMA_VERSION + 1}, 'later', 0)`;
  const refused = await openPostgres(fresh.place, { clock: systemClock }).catch((error: unknown) => error);
  expect(refused).toBeInstanceOf(MigrationRefused);
  expect((refused as Error).message).toStartWith(
    `The database was written by a newer version (schema ${SCHEMA_VERSION + 1}, this executable knows ${SCHEMA_VERSION}): start that version`,
  );
  expect((await direct`SELECT max(number)::int AS number FROM schema_migration`)[0].number).toBe(SCHEMA_VERSION + 1);
});

const insertRecord = (id: string): string =>
  `INSERT INTO record (id, environment_id, collection, data, written_by, created_at, updated_at) VALUES ('${id}', 1, 'orders', '{}', 'sql', 1, 1)`;

const WORLD = `
  INSERT INTO app (id, name, created_at) VALUES ('shop', 'Shop', 1);
  INSERT INTO environment (id, app_id, name, created_at) VALUES (1, 'shop', 'production', 1);
  INSERT INTO relay (id, environment_id, name, definition, origin_kind, origin_at, active_since, created_at, updated_at)
  VALUES ('rel_1', 1, 'orders', '{"trigger":{"kind":"data_change","collection":"orders","on":["created","deleted"]}}', 'file', 1, 1, 1, 1);`;

test("writes with SQL are captured", async () => {
  const fresh = await openDatabase();
  const direct = openDirect(fresh);
  await direct.unsafe(WORLD);
  await direct.unsafe(insertRecord("rec_1"));
  await direct`DELETE FROM record`;
  const rows = await direct`SELECT change, record_id AS id FROM record_change ORDER BY seq`;
  expect([...rows]).toEqual([
    { change: "created", id: "rec_1" },
    { change: "deleted", id: "rec_1" },
  ]);
});

test("every node reloads after a write with SQL", async () => {
  const fresh = await openDatabase();
  const stores = await Promise.all([openStore(fresh), openStore(fresh)]);
  const seen = stores.map(
    (store) =>
      new Promise<boolean>((resolve) => {
        store.watch(({ foreignChange }) => {
          if (foreignChange) resolve(true);
        });
      }),
  );
  await openDirect(fresh).unsafe(WORLD);
  expect(await Promise.all(seen)).toEqual([true, true]);
});

test("a change in an open SQL transaction comes before later changes, because the service waits for its end", async () => {
  const fresh = await openDatabase();
  const store = await openStore(fresh);
  const direct = openDirect(fresh);
  const looking = openDirect(fresh);
  await direct.unsafe(WORLD);
  let isWritten = false;
  let written = Promise.resolve();
  await direct.begin(async (tx) => {
    await tx.unsafe(insertRecord("rec_sql"));
    written = store
      .write("app", (own) => own.run(insertRecord("rec_service")))
      .then(() => {
        isWritten = true;
      });
    for (let waits = 0; waits === 0; )
      [{ waits }] =
        await looking`SELECT count(*)::int AS waits FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`;
    expect(isWritten).toBe(false);
  });
  await written;
  const rows = await looking`SELECT record_id AS id FROM record_change ORDER BY seq`;
  expect(rows.map(({ id }: { id: string }) => id)).toEqual(["rec_sql", "rec_service"]);
});

test("a database of 0.9.0, which already has the triggers of a later migration, is upgraded to this schema", async () => {
  const fresh = await openDatabase({ empty: true });
  const direct = openDirect(fresh);
  const [whole] = POSTGRES_MIGRATIONS;
  const triggers = POSTGRES_MIGRATIONS.find(({ name }) => name === "record-trigger");
  await direct.unsafe('CREATE TABLE schema_migration (number bigint PRIMARY KEY, name text COLLATE "C" NOT NULL, applied_at bigint NOT NULL)');
  for (const one of [whole, triggers]) await direct.unsafe(one?.sql ?? "").simple();
  await direct`INSERT INTO schema_migration (number, name, applied_at) VALUES (39, 'whole', 0)`;
  const store = await openStore(fresh);
  expect(await store.read((tx) => tx.get("SELECT max(number) AS number FROM schema_migration"))).toEqual({ number: SCHEMA_VERSION });
});

test("a node of 0.17.0 that still runs writes and reads the renamed tables under their former names", async () => {
  const fresh = await openDatabase();
  const store = await openStore(fresh);
  const hash = new Uint8Array([1]);
  await store.write("relay", async (tx) => {
    await tx.run("INSERT INTO event_clock_back (seq) VALUES (?1)", 7);
    for (const usedAt of [1, 2])
      await tx.run(
        `INSERT INTO ran_actions (fingerprint, actions, used_at) VALUES ('f', '[]', ?1)
         ON CONFLICT (fingerprint) DO UPDATE SET used_at = max(ran_actions.used_at, excluded.used_at)`,
        usedAt,
      );
    await tx.run(
      `INSERT INTO gone_secret (environment_id, relay_name, secret, until, swept) VALUES (1, 'orders', ?1, 5, ?1)
       ON CONFLICT (environment_id, relay_name, secret) DO UPDATE SET until = excluded.until, swept = excluded.swept`,
      hash,
    );
    await tx.run(
      `INSERT INTO recent_call (environment_id, slot, seq, first_at, at, relay_name, outcome, code, cause, source)
       VALUES (1, 0, 1, 0, 0, 'orders', 'refused', 'bad_signature', '', '::1')`,
    );
    await tx.run("INSERT INTO unknown_call (environment_id, name, seq, first_at, at, source, count) VALUES (1, 'order', 1, 0, 0, '::1', 1)");
    await tx.run("DELETE FROM record_watched WHERE until <= ?1", 1);
  });
  const read = (sql: string) => store.read((tx) => tx.all(sql));
  expect(await read("SELECT seq FROM clock_rollback")).toEqual([{ seq: 7 }]);
  expect(await read("SELECT used_at FROM action_list")).toEqual([{ used_at: 2 }]);
  expect(await read("SELECT until, cursor FROM retired_secret")).toEqual([{ until: 5, cursor: hash }]);
  expect(await read("SELECT relay_name, count FROM recent_request")).toEqual([{ relay_name: "orders", count: 1 }]);
  expect(await read("SELECT name FROM unknown_request")).toEqual([{ name: "order" }]);
});
