/** Opens a store on each database, with the same schema and no rows. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../src/base/clock.ts";
import type { Store } from "../../src/store/port.ts";
import { openPostgres } from "../../src/store/postgres/postgres.ts";
import { openSqlite } from "../../src/store/sqlite/sqlite.ts";
import { freshDatabase } from "./postgres.ts";
import { placeSchema } from "./schema-copy.ts";

export interface BothStores extends AsyncDisposable {
  sqlite: Store;
  postgres: Store;
}

export async function openBothStores(): Promise<BothStores> {
  const folder = mkdtempSync(join(tmpdir(), "relay-both-"));
  const fresh = await freshDatabase();
  await placeSchema(join(folder, "relay.db"));
  const sqlite = await openSqlite(join(folder, "relay.db"), { clock: systemClock });
  const postgres = await openPostgres(fresh.place, { clock: systemClock });
  return {
    sqlite,
    postgres,
    async [Symbol.asyncDispose]() {
      await sqlite.close();
      await postgres.close();
      rmSync(folder, { recursive: true });
      await fresh[Symbol.asyncDispose]();
    },
  };
}
