/** Rows that the database refuses, as a fault of the service would have it: a trigger in the words of either. */
import type { Store } from "../../src/store/port.ts";
import { ON_POSTGRES } from "./chosen-store.ts";

/** In a write of the store itself, behind what was written before: `on` is such as `BEFORE INSERT ON run`, `when` is asked of the row as NEW. */
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

/** The end of every transaction that stored an event, behind all of its work, until `takeRowsAgain`. */
export async function refuseCommits(store: Store): Promise<void> {
  if (!ON_POSTGRES) {
    // The keys of its events are the last that a transaction writes.
    await store.write("erasure", async (tx) => {
      for (const [name, on] of Object.entries({ boom: "INSERT", boom_too: "UPDATE" }))
        await tx.run(`CREATE TRIGGER ${name} BEFORE ${on} ON key_recent BEGIN SELECT RAISE(ABORT, 'boom'); END`);
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
