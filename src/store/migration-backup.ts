/** The copy that is made before a migration touches a used database: without it on the disk, nothing is migrated. */
import { dirname, join } from "node:path";
import { type Clock, toIso } from "../ground/clock.ts";
import { copyDatabase } from "./database-copy.ts";
import { MigrationRefused } from "./migrate.ts";

/** Copies the database into `backups/` beside it. Throws MigrationRefused where that fails. */
export async function backupBeforeMigration(file: string, clock: Clock): Promise<void> {
  const name = `before-migration-${toIso(clock.now()).replaceAll(/[-:.]/g, "")}.db`;
  const copy = join(dirname(file), "backups", name);
  try {
    await copyDatabase(file, copy, { replace: false });
  } catch (error) {
    throw new MigrationRefused(
      `The database has to be brought to this version's schema, and is left as it is because no copy of it could be kept first: ${(error as Error).message}`,
    );
  }
}
