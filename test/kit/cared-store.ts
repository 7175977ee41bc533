/** A store with caretakers over it, an app with a relay in it, and events of any age put in by hand. */
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createApp } from "../../src/account/app.ts";
import { Caretakers } from "../../src/caretaker/caretakers.ts";
import { insertEvent, keyOfEventId } from "../../src/event/insert.ts";
import { makeWholePayload } from "../../src/event/payload.ts";
import { createLog } from "../../src/ground/log.ts";
import type { Store } from "../../src/store/port.ts";
import { openSqlite } from "../../src/store/sqlite.ts";
import { VirtualClock } from "./virtual-clock.ts";

const HOUR_MS = 3_600_000;

export interface CaredStore extends AsyncDisposable {
  file: string;
  store: Store;
  clock: VirtualClock;
  caretakers: Caretakers;
  logged: string[];
  environmentId: number;
  /** Stores an event of `relay` that arrived at `atMs`, in the state given, and what a run leaves beside it. Answers its seq. */
  put(event: { relay?: string; key?: string; atMs: number; state?: string; text?: string }): Promise<number>;
  /** Puts a relay's row there. */
  addRelay(name: string, state: "active" | "paused"): Promise<void>;
  /** Lets the next round begin and end. */
  round(): Promise<void>;
  count(table: string): Promise<number>;
  /** Bytes of the database file and of its log. */
  size(): { database: number; log: number };
}

export async function openCaredStore(): Promise<CaredStore> {
  const directory = mkdtempSync(join(tmpdir(), "relay-care-"));
  const file = join(directory, "relay.db");
  const clock = new VirtualClock(Date.UTC(2026, 0, 15, 12));
  const store = await openSqlite(file, { clock });
  const logged: string[] = [];
  const log = createLog({ clock, format: "json", sink: (line) => logged.push(line) });
  const app = await store.write("app", (tx) => createApp(tx, { id: "app_test", name: "Test", environments: ["development"], nowMs: clock.now() }));
  const environmentId = app.environments[0]?.id ?? 0;
  const caretakers = new Caretakers({ store, clock, log });
  caretakers.start();
  return {
    file,
    store,
    clock,
    caretakers,
    logged,
    environmentId,
    put: ({ relay = "shop", key, atMs, state = "done", text = "x" }) =>
      store.write("app", async (tx) => {
        const { id } = await insertEvent(tx, {
          environmentId,
          relayId: `rly_${relay}`,
          relayName: relay,
          trigger: "receiver",
          payload: makeWholePayload({ event: { text }, mapped: {} }),
          unsigned: false,
          dedupe: key === undefined ? null : keyOfEventId(environmentId, relay, key),
          nowMs: atMs,
        });
        const row = await tx.get<{ seq: number }>("UPDATE event SET state = ?2 WHERE id = ?1 RETURNING seq", id, state);
        const seq = row?.seq ?? 0;
        if (state === "queued") return seq;
        await tx.run("INSERT INTO run (event_seq, number, started_at, results) VALUES (?1, 1, ?2, '[]')", seq, atMs);
        await tx.run("INSERT INTO effect (event_seq, key, state) VALUES (?1, 'write_record', 'done')", seq);
        return seq;
      }),
    async addRelay(name, state) {
      await store.write("app", (tx) =>
        tx.run(
          `INSERT INTO relay (id, environment_id, name, definition, state, origin_kind, origin_at, active_since, created_at, updated_at)
           VALUES (?1, ?2, ?3, '{"trigger":{"kind":"receiver"}}', ?4, 'dashboard', 0, 0, 0, 0)`,
          `rly_${name}`,
          environmentId,
          name,
          state,
        ),
      );
    },
    async round() {
      await clock.advance(HOUR_MS + 60_000);
      for (let pause = 0; pause < 50; pause++) await clock.advance(10);
    },
    count: async (table) => (await store.read((tx) => tx.get<{ count: number }>(`SELECT count(*) AS count FROM ${table}`)))?.count ?? 0,
    size: () => ({ database: statSync(file).size, log: statSync(`${file}-wal`).size }),
    async [Symbol.asyncDispose]() {
      await caretakers.stop();
      await store.close();
      rmSync(directory, { recursive: true });
    },
  };
}
