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

export async function takeRowsAgain(store: Store): Promise<void> {
  await store.write("erasure", async (tx) => void (await tx.run(ON_POSTGRES ? "DROP FUNCTION boom CASCADE" : "DROP TRIGGER boom")));
}
