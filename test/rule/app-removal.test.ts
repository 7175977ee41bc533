/** Removing an app from the store. The app disappears at once, its rows go in steps that survive interruption, and other apps keep every row. */
import { describe, expect, test } from "bun:test";
import { countApp, deleteApp, emptyApp, endRemoval, listRemovals } from "../../src/engine/maintenance/app-removal.ts";
import { createApp, findApp, listApps } from "../../src/platform/account/app.ts";
import { findEnvironment, findEnvironmentById } from "../../src/platform/account/environment.ts";
import type { SqlValue } from "../../src/store/port.ts";
import type { DirectDatabase } from "../kit/direct-database.ts";
import { openTestStore, refusalOf, type TestStore } from "../kit/fresh-store.ts";

/**
 * Fills every table that has an environment column, also tables of later migrations. Environments 1 and 2 belong to the app, 3 and 4 to another app.
 */
async function fill({ store, direct }: TestStore): Promise<void> {
  await store.write("app", async (tx) => {
    for (const id of ["gone", "kept"]) await createApp(tx, { id, name: `The ${id}`, environments: ["development", "production"], nowMs: 1 });
  });
  const ids = await store.read((tx) => tx.all<{ id: number }>("SELECT id FROM environment WHERE app_id IN ('gone', 'kept') ORDER BY id"));
  const tables = await tablesOf(direct);
  const statements: [sql: string, values: SqlValue[]][] = [];
  let number = 1_000;
  for (const { id: environmentId } of ids)
    for (const [table, columns] of tables) {
      for (let row = 0; row < 3; row++) {
        const values = columns.map(({ name, type }) => {
          number += 1;
          if (name === "environment_id") return environmentId;
          if (name === "person_id") return `per_${environmentId}_${row}`;
          if (name === "relay_id" || (name === "id" && table === "relay")) return `rly_${environmentId}_${row}`;
          if (name === "id" && table === "person") return `per_${environmentId}_${row}`;
          if ((name === "key" && table === "relay_name") || name === "name_key") return environmentId * 10 + row;
          if (name === "revoked_at" || name === "resolved_at" || name === "cleared_at") return null;
          if (name === "dedupe_hash") return null;
          if (name === "state") return table === "event" ? (["queued", "done", "dead"][row] ?? "") : "running";
          return type === "bytes" ? new TextEncoder().encode(String(number)) : type === "text" ? String(number) : number;
        });
        const names = columns.map(({ name }) => name).join(", ");
        const marks = columns.map((_, at) => `?${at + 1}`).join(", ");
        statements.push([`INSERT INTO ${table} (${names}) VALUES (${marks}) ON CONFLICT DO NOTHING`, values]);
      }
    }
  statements.push(
    ["INSERT INTO run (event_seq, number, started_at) SELECT seq, 1, 0 FROM event WHERE seq > 0 ON CONFLICT DO NOTHING", []],
    ["INSERT INTO effect (event_seq, key, state) SELECT seq, 'k', 'done' FROM event WHERE seq > 0 ON CONFLICT DO NOTHING", []],
  );
  await direct.runUnchecked(statements);
}

async function tablesOf(direct: DirectDatabase) {
  return [...(await direct.tables())].filter(([table, columns]) => table !== NODES && columns.some(({ name }) => name === "environment_id"));
}

/** Counts the rows of each table in these environments. */
async function held({ store, direct }: TestStore, environments: string): Promise<Record<string, number>> {
  const rows: Record<string, number> = {};
  for (const [table] of await tablesOf(direct)) {
    const sql = `SELECT count(*) AS count FROM ${table} WHERE environment_id IN (SELECT id FROM environment WHERE ${environments})`;
    rows[table] = (await store.read((tx) => tx.get<{ count: number }>(sql)))?.count ?? 0;
  }
  return rows;
}

/** The table of node leases. The counts leave it out, because nodes remove the leases of deleted environments themselves. */
const NODES = "node_lease";

const BY = { by: "owner:ann@example.com", nowMs: 2 };

describe("an app that is deleted", () => {
  // Interrupts the steps as a kill does. Each step is a transaction, and the next process starts again.
  test.each([1, 30])("loses every row in every table when its steps are interrupted after %i, and the other app keeps all rows", async (cutAfter) => {
    await using fresh = await openTestStore({ environments: [] });
    const { store } = fresh;
    await fill(fresh);
    const [GONE, KEPT] = ["name <> 'local' AND (app_id = 'gone' OR deleted_at IS NOT NULL)", "app_id = 'kept'"];
    const before = await held(fresh, KEPT);
    const full = await held(fresh, GONE);
    expect(Object.entries(full).filter(([, count]) => count === 0)).toEqual([]);

    const contents = await countApp(store, "gone");
    expect(contents.environments.map(({ held: all }) => all.every(({ count }) => count > 0))).toEqual([true, true]);
    await store.write("dashboard", (tx) => deleteApp(tx, { appId: "gone", confirm: "gone", force: true, contents, ...BY }));
    const nobody = await store.read(async (tx) => [
      await findApp(tx, "gone"),
      await findEnvironment(tx, "gone", "production"),
      (await listApps(tx)).some(({ id }) => id === "gone"),
      (await listRemovals(tx)).map(({ id }) => id),
    ]);
    expect(nobody).toEqual([null, null, false, ["gone"]]);

    for (let step = 0; step < cutAfter; step++) await store.write("erasure", (tx) => emptyApp(tx, "gone"));
    while (await store.write("erasure", (tx) => emptyApp(tx, "gone")));
    expect(await store.write("erasure", (tx) => endRemoval(tx, "gone", 3))).toBe(true);
    expect(Object.entries(await held(fresh, GONE)).filter(([, count]) => count > 0)).toEqual([]);
    expect(await held(fresh, KEPT)).toEqual(before);
    for (const table of ["run", "effect"]) expect(await fresh.count(`${table} WHERE event_seq NOT IN (SELECT seq FROM event)`)).toBe(0);
    const whole = await store.read((tx) => tx.all<{ action: string }>("SELECT action FROM audit WHERE environment_id = 0 ORDER BY seq"));
    expect(whole.map(({ action }) => action)).toEqual(["app.deleted", "app.emptied"]);
    const again = await store.write("app", (tx) => createApp(tx, { id: "gone", name: "Anew", environments: ["production"], nowMs: 4 }));
    // An environment's number is never used again, so late writes never reach the new app.
    const numbers = await store.read((tx) => tx.all<{ id: number }>("SELECT id FROM environment WHERE deleted_at IS NOT NULL"));
    expect(numbers.map(({ id }) => id)).not.toContain(again.environments[0]?.id);
  });

  test("keeps an event that is running, and is not complete before that event ends", async () => {
    await using fresh = await openTestStore({ environments: [] });
    const { store } = fresh;
    await fill(fresh);
    await store.write("app", (tx) => tx.run("UPDATE event SET state = 'running' WHERE state = 'dead'"));
    const contents = await countApp(store, "gone");
    await store.write("dashboard", (tx) => deleteApp(tx, { appId: "gone", confirm: "gone", force: true, contents, ...BY }));
    while (await store.write("erasure", (tx) => emptyApp(tx, "gone")));
    expect(await store.write("erasure", (tx) => endRemoval(tx, "gone", 3))).toBe(false);
    await store.write("app", (tx) => tx.run("UPDATE event SET state = 'failed' WHERE state = 'running'"));
    while (await store.write("erasure", (tx) => emptyApp(tx, "gone")));
    expect(await store.write("erasure", (tx) => endRemoval(tx, "gone", 3))).toBe(true);
  });

  const REFUSED: readonly [what: string, appId: string, confirm: string, force: boolean, code: string, says: RegExp][] = [
    ["an unknown id", "nobody", "nobody", false, "not_found", /relay apps list/],
    ["text that differs from its id", "gone", "The gone", true, "invalid_input", /^confirm is not the app's id: write gone/],
    [
      "a production that holds events",
      "gone",
      "gone",
      false,
      "in_use",
      /^The production environment of gone has events, so nothing was deleted\. .*dashboard/,
    ],
  ];
  test.each(REFUSED)("refuses %s", async (_what, appId, confirm, force, code, says) => {
    await using fresh = await openTestStore({ environments: [] });
    const { store } = fresh;
    await fill(fresh);
    const contents = await countApp(store, "gone");
    const refusal = await refusalOf(() => store.write("dashboard", (tx) => deleteApp(tx, { appId, confirm, force, contents, ...BY })));
    expect([refusal.code, refusal.message]).toEqual([code, expect.stringMatching(says)]);
    expect(await store.read(async (tx) => [(await findApp(tx, "gone"))?.id, (await findEnvironmentById(tx, 0)) === null])).toEqual(["gone", true]);
  });
});
