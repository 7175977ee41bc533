/** A real store on its own database for one test file, with an app and its environments, under a virtual clock. */
import { afterAll } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createLog, type Log } from "../../src/base/log.ts";
import { Refusal } from "../../src/base/refusal.ts";
import { createApp } from "../../src/platform/account/app.ts";
import { type Environment, type EnvironmentName, requireEnvironment } from "../../src/platform/account/environment.ts";
import type { Store } from "../../src/store/port.ts";
import { openPostgres } from "../../src/store/postgres/postgres.ts";
import { openSqlite } from "../../src/store/sqlite/sqlite.ts";
import { chooseDatabase, ON_POSTGRES } from "./chosen-store.ts";
import { type DirectDatabase, openDirectDatabase } from "./direct-database.ts";
import { placeSchema } from "./schema-copy.ts";
import { START_MS, VirtualClock } from "./virtual-clock.ts";

export interface FreshStore {
  store: Store;
  clock: VirtualClock;
  /** Reads the current state of an environment of the app `app_test`. */
  environment(name: EnvironmentName): Promise<Environment>;
  /** Counts the rows of a table. */
  count(table: string): Promise<number>;
  /** Access to the store's database that bypasses the store. */
  direct: DirectDatabase;
}

/** Opens a store with the app `app_test` (development, production, local). It is removed after the file's last test. */
export async function openFreshStore(): Promise<FreshStore> {
  const opened = await openTestStore();
  afterAll(() => opened[Symbol.asyncDispose]());
  return opened;
}

/** A store that its test closes, with what the layers above the store need. */
export interface TestStore extends FreshStore, AsyncDisposable {
  file: string;
  log: Log;
  logged: string[];
  /** Relays that have waiting events according to the store's notifications, in order. */
  woken: string[];
}

export async function openTestStore(options: { startMs?: number; environments?: readonly EnvironmentName[] } = {}): Promise<TestStore> {
  const { startMs = START_MS, environments = ["development", "production", "local"] } = options;
  const directory = mkdtempSync(join(tmpdir(), "relay-rule-"));
  const clock = new VirtualClock(startMs);
  const file = join(directory, "relay.db");
  const chosen = ON_POSTGRES ? await chooseDatabase() : null;
  if (chosen === null) await placeSchema(file);
  const store = chosen === null ? await openSqlite(file, { clock }) : await openPostgres(chosen.database, { clock });
  await store.write("app", (tx) => createApp(tx, { id: "app_test", name: "Test", environments, nowMs: startMs }));
  const logged: string[] = [];
  const woken: string[] = [];
  store.listen((touched) => woken.push(...(touched.get("event") ?? [])));
  return {
    file,
    store,
    clock,
    log: createLog({ clock, format: "json", sink: (line) => logged.push(line) }),
    logged,
    woken,
    environment: (name) => store.read((tx) => requireEnvironment(tx, "app_test", name)),
    direct: openDirectDatabase(chosen ?? { file }, () => store),
    count: async (table) => (await store.read((tx) => tx.get<{ count: number }>(`SELECT count(*) AS count FROM ${table}`)))?.count ?? 0,
    async [Symbol.asyncDispose]() {
      await store.close();
      await chosen?.dispose();
      rmSync(directory, { recursive: true });
    },
  };
}

/** Returns the Refusal that the work throws. Throws if the work succeeds or fails with something else. */
export async function refusalOf(work: () => unknown): Promise<Refusal> {
  try {
    await work();
  } catch (error) {
    if (error instanceof Refusal) return error;
    throw error;
  }
  throw new Error("The work was not refused.");
}
