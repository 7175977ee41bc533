/** A data directory with data of every kind, and the rows of its tables to compare after a backup or a restore. */
import { Database } from "bun:sqlite";
import { existsSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Clock } from "../../src/base/clock.ts";
import { mintApiKey } from "../../src/platform/account/api-key.ts";
import { createApp } from "../../src/platform/account/app.ts";
import { loadMasterKey } from "../../src/platform/secret/master-key.ts";
import { Sealer } from "../../src/platform/secret/seal.ts";
import type { Store } from "../../src/store/port.ts";
import { openSqlite } from "../../src/store/sqlite/sqlite.ts";

/** Creates a folder for one test file. Remove it after the last test. */
export function makeFolder(): string {
  return mkdtempSync(join(tmpdir(), "relay-data-"));
}

/**
 * Opens the directory's store and adds `events` events. The first time, it also creates the master key, an app, API keys and relays with sealed
 * secrets.
 */
export async function openFilled(dataDir: string, clock: Clock, events = 20): Promise<Store> {
  const sealer = new Sealer(await loadMasterKey(dataDir, null));
  const store = await openSqlite(join(dataDir, "relay.db"), { clock });
  await store.write("app", async (tx) => {
    if ((await tx.get("SELECT 1 FROM app")) !== null) return;
    const nowMs = clock.now();
    const { environments } = await createApp(tx, {
      id: "shop",
      name: "Shop",
      environments: ["development", "production"],
      nowMs,
    });
    for (const environment of environments) {
      await mintApiKey(tx, { environment, kind: "secret", name: "test", nowMs });
      const id = `rly_${environment.name}`;
      await tx.run(
        `INSERT INTO relay (id, environment_id, name, definition, origin_kind, origin_at, secret_kind, secret, secret_set_at,
           active_since, created_at, updated_at) VALUES (?1, ?2, 'orders', ?3, 'dashboard', ?4, 'minted', ?5, ?4, ?4, ?4, ?4)`,
        id,
        environment.id,
        JSON.stringify({ name: "orders", trigger: { kind: "receiver" }, actions: [] }),
        nowMs,
        sealer.seal("a secret of some length", `relay:${id}:receiver`),
      );
    }
  });
  for (let number = 0; number < events; number++) await addEvent(store, number, clock.now());
  return store;
}

/** Adds one event with enough text to fill database pages. */
export async function addEvent(store: Store, number: number, nowMs: number, more: { state?: string; finishedAt?: number } = {}): Promise<void> {
  const { state = "done", finishedAt = nowMs } = more;
  await store.write("app", (tx) =>
    tx.run(
      `INSERT INTO event (environment_id, relay_key, name_key, trigger, state, payload, created_at, finished_at)
       SELECT environment.id, key, name_key, 'receiver', ?3, ?1, ?2, ?4 FROM environment, relay_key
       WHERE environment.name = 'development' AND relay_id = 'rly_development'`,
      JSON.stringify({ event: { number, text: "x".repeat(500) }, mapped: {} }),
      nowMs,
      state,
      state === "queued" ? null : finishedAt,
    ),
  );
}

/** Reads every table's rows as text, with SQLite itself. */
export function dumpTables(file: string): Record<string, string[]> {
  if (!existsSync(file)) return {};
  using database = new Database(file, { readwrite: true, create: false });
  const tables = database.query<{ name: string }, []>("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").all();
  return Object.fromEntries(
    tables.map(({ name }) => [
      name,
      database
        .query(`SELECT * FROM "${name}"`)
        .all()
        .map((row) => Bun.inspect(row))
        .sort(),
    ]),
  );
}

/** Returns whether SQLite's integrity check of the file passes. */
export function isWhole(file: string): boolean {
  using database = new Database(file, { readwrite: true, create: false });
  const rows = database.query<Record<string, string>, []>("PRAGMA integrity_check").all();
  return rows.length === 1 && Object.values(rows[0] ?? {})[0] === "ok";
}
