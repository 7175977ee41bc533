/** Makes the database refuse rows, as if the service had a fault. It uses a trigger in the SQL of either database. */
import type { Store } from "../../src/store/port.ts";
import { ON_POSTGRES } from "./chosen-store.ts";

/**
 * Refuses rows from now on. `on` is an event such as `BEFORE INSERT ON run`, and `when` is a condition on the row NEW. The store creates the trigger
 * itself, after the writes that came before.
 */
export async function refuseRows(store: Store, on: string, when: string): Promise<void> {
  await store.write("erasure", async (tx) => {
    if (!ON_POSTGRES) {
      await tx.run(`CREATE TRIGGER boom ${on} WHEN ${when} BEGIN SELECT RAISE(ABORT, 'boom'); END`);
      return;
    }
    await tx.run("CREATE FUNCTION boom() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''boom''; END'");
    await tx.run(`CREATE TRIGGER boom ${on} FOR EACH ROW WHEN (${when}) EXECUTE FUNCTION boom()`);
  });
}

/** Makes every transaction that stored an event fail at its end, after all of its work, until `takeRowsAgain`. */
export async function refuseCommits(store: Store): Promise<void> {
  if (!ON_POSTGRES) {
    // A transaction writes the keys of its events last.
    await store.write("erasure", async (tx) => {
      for (const [name, on] of Object.entries({ boom: "INSERT", boom_too: "UPDATE" }))
        await tx.run(`CREATE TRIGGER ${name} BEFORE ${on} ON dedupe_log BEGIN SELECT RAISE(ABORT, 'boom'); END`);
    });
    return;
  }
  await store.write("erasure", async (tx) => {
    await tx.run("CREATE FUNCTION boom() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''boom''; END'");
    await tx.run("CREATE CONSTRAINT TRIGGER boom AFTER INSERT ON event DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION boom()");
  });
}

export async function takeRowsAgain(store: Store): Promise<void> {
  await store.write("erasure", async (tx) => {
    if (ON_POSTGRES) await tx.run("DROP FUNCTION boom CASCADE");
    else for (const name of ["boom", "boom_too"]) await tx.run(`DROP TRIGGER IF EXISTS ${name}`);
  });
}
