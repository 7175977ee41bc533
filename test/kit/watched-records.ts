/**
 * A store with a collection, relays that watch it, and change capture. It has no service, because tests stop and start capture between two writes,
 * and a service's runner would take the events that they check.
 */

import { type JsonObject, parseJson } from "../../src/base/json.ts";
import { Capture } from "../../src/engine/change-capture/capture.ts";
import type { Environment, EnvironmentName } from "../../src/platform/account/environment.ts";
import { createCollection } from "../../src/shop/records/collection.ts";
import { requireCollectionDefinition } from "../../src/shop/records/collection-definition.ts";
import { deleteRecord, type NewRecord, updateRecord, writeRecord } from "../../src/shop/records/record.ts";
import type { Origin } from "../../src/store/port.ts";
import { RELAY_NAME } from "./event-sql.ts";
import { openTestStore, type TestStore } from "./fresh-store.ts";
import { PATIENCE_MS } from "./patience.ts";
import { makeRelayKit, type RelayKit } from "./relay-kit.ts";
import { settle } from "./virtual-clock.ts";

interface Fired {
  relay: string;
  state: string;
  // biome-ignore lint/suspicious/noExplicitAny: a test reads into the payload and asserts what it finds
  payload: any;
  text: string;
  truncated: number;
  preview: string | null;
}

export interface WatchedRecords extends TestStore {
  kit: RelayKit;
  environment(name?: EnvironmentName): Promise<Environment>;
  /** Creates a relay on `notes` that only calls a URL. `trigger` overrides its trigger. */
  watch(name: string, trigger?: object, environment?: EnvironmentName): Promise<void>;
  write(data: JsonObject, origin?: Origin, people?: People): Promise<NewRecord>;
  update(record: NewRecord, data: JsonObject, origin?: Origin): Promise<NewRecord>;
  remove(record: NewRecord, origin?: Origin): Promise<void>;
  start(): Promise<void>;
  stop(): Promise<void>;
  /** Wakes capture and lets it drain. It repeats that if the database was busy for too long, because capture's own next look waits for the clock. */
  drain(turns?: number): Promise<void>;
  /** Returns the events in order. */
  fired(): Promise<Fired[]>;
}

interface People {
  ownerId?: string;
  recipientId?: string;
}

const MIN_TURNS = 10;
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

/** Opens the store with collection `notes` in both environments of the app `app_test`, and starts capture. */
export async function openWatchedRecords(): Promise<WatchedRecords> {
  const opened = await openTestStore({ environments: ["development", "production"] });
  const { store, clock, log } = opened;
  const environment = (name: EnvironmentName = "development") => opened.environment(name);
  const definition = requireCollectionDefinition(NOTES);
  for (const name of ["development", "production"] as const) {
    const { id } = await environment(name);
    await store.write("app", (tx) => createCollection(tx, id, definition, clock.now()));
  }
  const { id: environmentId } = await environment();
  const kit = makeRelayKit(opened);
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
    ...opened,
    kit,
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
    async drain(turns = Number.POSITIVE_INFINITY) {
      const endsAtMs = performance.now() + PATIENCE_MS;
      for (let turn = 0; turn < turns; turn++) {
        capture?.wake();
        await settle(40);
        if (capture === null || (await opened.count("record_change")) === 0) return;
        // A turn can take long on a busy machine, so there are always several.
        if (turn >= MIN_TURNS && performance.now() > endsAtMs) throw new Error("Capture did not read every change.");
      }
    },
    fired: () => store.read(async (tx) => (await tx.all<FiredRow>(FIRED)).map((row) => ({ ...row, payload: parseJson(row.text) }))),
    async [Symbol.asyncDispose]() {
      await stop();
      await opened[Symbol.asyncDispose]();
    },
  };
}

type FiredRow = Omit<Fired, "payload">;
const FIRED = `SELECT ${RELAY_NAME} AS relay, state, payload AS text, truncated, preview FROM event WHERE trigger = 'data_change' ORDER BY seq`;
