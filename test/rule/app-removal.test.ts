/** An app's end in the store: it is nobody's at once, every table is emptied of it whenever its steps are cut off, and another app keeps every row. */
import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { createApp, findApp, listApps } from "../../src/account/app.ts";
import { findEnvironment, findEnvironmentById } from "../../src/account/environment.ts";
import { countApp, deleteApp, emptyApp, endRemoval, listRemovals } from "../../src/caretaker/app-removal.ts";
import { openTestStore, refusalOf, type TestStore } from "../kit/fresh-store.ts";

/** Environments 1 and 2 are the app's, 3 and 4 another's: rows in every table that has an environment, whatever the next migration adds. */
async function fill({ store, file }: Pick<TestStore, "store" | "file">): Promise<Database> {
  await store.write("app", async (tx) => {
    for (const id of ["gone", "kept"]) await createApp(tx, { id, name: `The ${id}`, environments: ["development", "production"], nowMs: 1 });
  });
  const database = new Database(file, { readwrite: true });
  for (const pragma of ["foreign_keys = OFF", "ignore_check_constraints = ON", "busy_timeout = 5000", "synchronous = OFF"])
    database.exec(`PRAGMA ${pragma}`);
  const ids = database.query<{ id: number }, []>("SELECT id FROM environment WHERE app_id IN ('gone', 'kept') ORDER BY id").all();
  let number = 1_000;
  database.exec("BEGIN");
  for (const { id: environmentId } of ids)
    for (const table of tablesOf(database)) {
      const columns = database
        .query<{ name: string; type: string; hidden: number }, []>(`PRAGMA table_xinfo(${table})`)
        .all()
        .filter(({ hidden }) => hidden === 0);
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
          if (name === "state") return table === "event" ? ["queued", "done", "dead"][row] : "running";
          return type === "BLOB" ? new TextEncoder().encode(String(number)) : type === "TEXT" ? String(number) : number;
        });
        const names = columns.map(({ name }) => name).join(", ");
        database.query(`INSERT OR IGNORE INTO ${table} (${names}) VALUES (${values.map(() => "?").join(", ")})`).run(...(values as string[]));
      }
    }
  database.exec(
    "COMMIT; INSERT OR IGNORE INTO run (event_seq, number, started_at) SELECT seq, 1, 0 FROM event; INSERT OR IGNORE INTO effect (event_seq, key, state) SELECT seq, 'k', 'done' FROM event",
  );
  return database;
}

function tablesOf(database: Database): string[] {
  const sql = `SELECT DISTINCT m.name FROM sqlite_master m, pragma_table_info(m.name) c WHERE m.type = 'table' AND c.name = 'environment_id' ORDER BY m.name`;
  return database
    .query<{ name: string }, []>(sql)
    .all()
    .map(({ name }) => name);
}

/** Rows by table, of these environments. */
function held(database: Database, environments: string): Record<string, number> {
  return Object.fromEntries(
    tablesOf(database).map((table) => {
      const sql = `SELECT count(*) AS count FROM ${table} WHERE environment_id IN (SELECT id FROM environment WHERE ${environments})`;
      return [table, database.query<{ count: number }, []>(sql).get()?.count ?? 0];
    }),
  );
}

const BY = { by: "owner:ann@example.com", nowMs: 2 };

describe("an app that is deleted", () => {
  // Where its steps are cut off, as by a kill: each is a transaction, and the next process begins again.
  test.each([1, 30])("is emptied of every row in every table when its steps are cut off after %i; the other keeps all", async (cutAfter) => {
    await using fresh = await openTestStore({ environments: [] });
    const { store } = fresh;
    using database = await fill(fresh);
    const [GONE, KEPT] = ["name <> 'local' AND (app_id = 'gone' OR deleted_at IS NOT NULL)", "app_id = 'kept'"];
    const before = held(database, KEPT);
    const full = held(database, GONE);
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
    expect(Object.entries(held(database, GONE)).filter(([, count]) => count > 0)).toEqual([]);
    expect(held(database, KEPT)).toEqual(before);
    for (const table of ["run", "effect"])
      expect(database.query(`SELECT count(*) AS left FROM ${table} WHERE event_seq NOT IN (SELECT seq FROM event)`).get()).toEqual({ left: 0 });
    const whole = database.query<{ action: string }, []>("SELECT action FROM audit WHERE environment_id = 0 ORDER BY seq").all();
    expect(whole.map(({ action }) => action)).toEqual(["app.deleted", "app.emptied"]);
    const again = await store.write("app", (tx) => createApp(tx, { id: "gone", name: "Anew", environments: ["production"], nowMs: 4 }));
    // A number is never given twice, so that nothing that comes late is the new app's.
    const numbers = database.query<{ id: number }, []>("SELECT id FROM environment WHERE deleted_at IS NOT NULL").all();
    expect(numbers.map(({ id }) => id)).not.toContain(again.environments[0]?.id);
  });

  test("keeps an event that is running until it ends, and is not over before", async () => {
    await using fresh = await openTestStore({ environments: [] });
    const { store } = fresh;
    using database = await fill(fresh);
    database.exec("UPDATE event SET state = 'running' WHERE state = 'dead'");
    const contents = await countApp(store, "gone");
    await store.write("dashboard", (tx) => deleteApp(tx, { appId: "gone", confirm: "gone", force: true, contents, ...BY }));
    while (await store.write("erasure", (tx) => emptyApp(tx, "gone")));
    expect(await store.write("erasure", (tx) => endRemoval(tx, "gone", 3))).toBe(false);
    database.exec("UPDATE event SET state = 'failed' WHERE state = 'running'");
    while (await store.write("erasure", (tx) => emptyApp(tx, "gone")));
    expect(await store.write("erasure", (tx) => endRemoval(tx, "gone", 3))).toBe(true);
  });

  const REFUSED: readonly [what: string, appId: string, confirm: string, force: boolean, code: string, says: RegExp][] = [
    ["an id that is none", "nobody", "nobody", false, "not_found", /relay apps list/],
    ["another text than its id", "gone", "The gone", true, "invalid_input", /^confirm is not the app's id: write gone/],
    [
      "a production that holds events",
      "gone",
      "gone",
      false,
      "in_use",
      /^The production environment of gone holds events, so nothing was deleted: .*dashboard/,
    ],
  ];
  test.each(REFUSED)("is not: %s", async (_what, appId, confirm, force, code, says) => {
    await using fresh = await openTestStore({ environments: [] });
    const { store } = fresh;
    using _database = await fill(fresh);
    const contents = await countApp(store, "gone");
    const refusal = await refusalOf(() => store.write("dashboard", (tx) => deleteApp(tx, { appId, confirm, force, contents, ...BY })));
    expect([refusal.code, refusal.message]).toEqual([code, expect.stringMatching(says)]);
    expect(await store.read(async (tx) => [(await findApp(tx, "gone"))?.id, (await findEnvironmentById(tx, 0)) === null])).toEqual(["gone", true]);
  });
});
