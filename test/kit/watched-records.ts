/** A store with a collection, relays that watch it, and capture over them; each test file or test its own. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createApp } from "../../src/account/app.ts";
import { type Environment, type EnvironmentName, requireEnvironment } from "../../src/account/environment.ts";
import { Capture } from "../../src/capture/capture.ts";
import { type JsonObject, parseJson } from "../../src/ground/json.ts";
import { createLog, type Log } from "../../src/ground/log.ts";
import { createCollection } from "../../src/records/collection.ts";
import { requireCollectionDefinition } from "../../src/records/collection-definition.ts";
import { deleteRecord, type RecordRow, updateRecord, writeRecord } from "../../src/records/record.ts";
import type { Origin, Store } from "../../src/store/port.ts";
import { openSqlite } from "../../src/store/sqlite.ts";
import { makeRelayKit, type RelayKit } from "./relay-kit.ts";
import { settle, VirtualClock } from "./virtual-clock.ts";

interface Fired {
  relay: string;
  state: string;
  // biome-ignore lint/suspicious/noExplicitAny: a test reads into the payload and asserts what it finds
  payload: any;
  text: string;
  truncated: number;
  preview: string | null;
}

export interface WatchedRecords extends AsyncDisposable {
  file: string;
  store: Store;
  clock: VirtualClock;
  kit: RelayKit;
  log: Log;
  logged: string[];
  woken: string[];
  environment(name?: EnvironmentName): Promise<Environment>;
  /** A relay over `notes` that only calls a URL; `trigger` overrides. */
  watch(name: string, trigger?: object, environment?: EnvironmentName): Promise<void>;
  write(data: JsonObject, origin?: Origin, people?: People): Promise<RecordRow>;
  update(record: RecordRow, data: JsonObject, origin?: Origin): Promise<RecordRow>;
  remove(record: RecordRow, origin?: Origin): Promise<void>;
  start(): Promise<void>;
  stop(): Promise<void>;
  /** Wakes capture and lets it drain. */
  drain(): Promise<void>;
  /** Events in their order. */
  fired(): Promise<Fired[]>;
  count(table: string): Promise<number>;
}

interface People {
  ownerId?: string;
  recipientId?: string;
}

const NOTES = {
  name: "notes",
  kind: "private",
  fields: {
    title: { type: "text" },
    status: { type: "text" },
    size: { type: "number" },
    done: { type: "boolean" },
    extra: { type: "json" },
  },
};

/** Opens the store with collection `notes` in both environments of the app `app_test`; capture runs. */
export async function openWatchedRecords(): Promise<WatchedRecords> {
  const directory = mkdtempSync(join(tmpdir(), "relay-watch-"));
  const file = join(directory, "relay.db");
  const clock = new VirtualClock(Date.UTC(2026, 0, 15, 12));
  const store = await openSqlite(file, { clock });
  const logged: string[] = [];
  const log = createLog({ clock, format: "json", sink: (line) => logged.push(line) });
  const names: EnvironmentName[] = ["development", "production"];
  await store.write("app", async (tx) => {
    const nowMs = clock.now();
    const app = await createApp(tx, { id: "app_test", name: "Test", environments: names, nowMs });
    const definition = requireCollectionDefinition(NOTES);
    for (const { id } of app.environments) await createCollection(tx, id, definition, nowMs);
  });
  const environment = (name: EnvironmentName = "development") => store.read((tx) => requireEnvironment(tx, "app_test", name));
  const { id: environmentId } = await environment();
  const kit = makeRelayKit({ store, clock, environment, explain: () => "" });
  const woken: string[] = [];
  store.listen((touched) => woken.push(...(touched.get("event") ?? [])));
  let capture: Capture | null = null;
  const at = { environmentId, collection: "notes", by: "key:key_1" };
  const start = async (): Promise<void> => {
    capture = new Capture({ store, clock, log });
    await capture.start();
  };
  const stop = async (): Promise<void> => {
    await capture?.stop();
    capture = null;
  };
  await start();
  return {
    file,
    store,
    clock,
    kit,
    log,
    logged,
    woken,
    environment,
    start,
    stop,
    async watch(name, trigger = {}, environmentName = "development") {
      const whole = { kind: "data_change", collection: "notes", on: ["created"], ...trigger };
      const actions = [{ type: "call_url", url: "https://example.com/notice" }];
      await kit.create({ name, trigger: whole, actions }, {}, environmentName);
    },
    write: (data, origin = "app", people = {}) =>
      store.write(origin, (tx) => writeRecord(tx, { ...at, data, ownerId: null, recipientId: null, ...people, nowMs: clock.now() })),
    update: (record, data, origin = "app") =>
      store.write(origin, async (tx) => (await updateRecord(tx, { ...at, recordId: record.id, data, nowMs: clock.now() })).after),
    async remove(record, origin = "app") {
      await store.write(origin, (tx) => deleteRecord(tx, { ...at, recordId: record.id }));
    },
    async drain() {
      capture?.wake();
      await settle(40);
    },
    fired: () => store.read(async (tx) => (await tx.all<FiredRow>(FIRED)).map((row) => ({ ...row, payload: parseJson(row.text) }))),
    count: async (table) => (await store.read((tx) => tx.get<{ count: number }>(`SELECT count(*) AS count FROM ${table}`)))?.count ?? 0,
    async [Symbol.asyncDispose]() {
      await stop();
      await store.close();
      rmSync(directory, { recursive: true });
    },
  };
}

type FiredRow = Omit<Fired, "payload">;
const FIRED = "SELECT relay_name AS relay, state, payload AS text, truncated, preview FROM event WHERE trigger = 'data_change' ORDER BY seq";
