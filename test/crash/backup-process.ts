/**
 * One backup, restore or migration in a separate process that a test kills: `bun backup-process.ts <backup|restore|migrate> <data folder> [file]`. It
 * prints `ready` once everything is loaded, and `done` at the end.
 */
import { join } from "node:path";
import { systemClock } from "../../src/base/clock.ts";
import { makeBackup } from "../../src/operator/backup/backup.ts";
import { restoreBackup } from "../../src/operator/backup/restore.ts";
import { openSqlite } from "../../src/store/sqlite/sqlite.ts";

const [what, dataDir = "", file = ""] = process.argv.slice(2);
const clock = systemClock;
process.stdout.write("ready\n");
if (what === "backup") {
  await makeBackup({ dataDir, file, replace: true, withKey: false, masterKey: null });
} else if (what === "restore") {
  await restoreBackup({ file, dataDir, keyFile: null, masterKey: null, clock });
} else {
  await (await openSqlite(join(dataDir, "relay.db"), { clock })).close();
}
process.stdout.write("done\n");
