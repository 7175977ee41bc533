/**
 * A store with the maintenance jobs, an app, a relay and inserted events of any age. It has no service, so nothing else changes the rows that a
 * job counts.
 */

import { statSync } from "node:fs";
import { HOUR_MS } from "../../src/base/limit.ts";
import { insertEvent, keyOfEventId, makePayload } from "../../src/engine/event/insert.ts";
import { MaintenanceJobs } from "../../src/engine/maintenance/maintenance.ts";
import { relayOf } from "./event-sql.ts";
import { openTestStore, type TestStore } from "./fresh-store.ts";

export interface MaintainedStore extends TestStore {
  caretakers: MaintenanceJobs;
  environmentId: number;
  /** Stores an event of `relay` that arrived at `atMs`, in the state given, and the other rows of a run. Returns its seq. */
  put(event: { relay?: string; key?: string; atMs: number; state?: string; text?: string }): Promise<number>;
  /** Inserts the row of a relay. */
  addRelay(name: string, state: "active" | "paused"): Promise<void>;
  /** Runs the next round to its end. */
  round(): Promise<void>;
  /** Size of the database file and of its log in bytes. */
  size(): { database: number; log: number };
}

/** Opens the store. `newestMs` is the arrival of the newest event that an earlier process stored. */
export async function openMaintainedStore({ newestMs = null }: { newestMs?: number | null } = {}): Promise<MaintainedStore> {
  const opened = await openTestStore({ environments: ["development"] });
  const { file, store, clock, log } = opened;
  const environmentId = (await opened.environment("development")).id;
  const caretakers = new MaintenanceJobs({ store, clock, log, newestMs });
  caretakers.start();
  return {
    ...opened,
    caretakers,
    environmentId,
    put: ({ relay = "shop", key, atMs, state = "done", text = "x" }) =>
      store.write("app", async (tx) => {
        const { seq } = await insertEvent(tx, {
          ...(await relayOf(tx, environmentId, `rly_${relay}`, relay)),
          trigger: "receiver",
          payload: makePayload({ event: { text }, mapped: {} }),
          unsigned: false,
          dedupe: key === undefined ? null : keyOfEventId(environmentId, relay, key),
          nowMs: atMs,
        });
        await tx.run("UPDATE event SET state = ?2 WHERE seq = ?1", seq, state);
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
    size: () => ({ database: statSync(file).size, log: statSync(`${file}-wal`).size }),
    async [Symbol.asyncDispose]() {
      await caretakers.stop();
      await opened[Symbol.asyncDispose]();
    },
  };
}
