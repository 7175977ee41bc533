/**
 * Copies the whole database into one checked file while the server runs (`relay backup`). `relay restore` replaces a stopped server's
 * database with such a file and saves the previous database.
 */

import { type DatabaseUrl, sayHowBack, sayHowElse } from "../../../base/database-url.ts";
import { writeJson } from "../../../base/json.ts";
import { BackupRefused, makeBackup } from "../../../operator/backup/backup.ts";
import { restoreBackup } from "../../../operator/backup/restore.ts";
import type { CopyStep } from "../../../store/sqlite/database-copy.ts";
import { DatabaseRefused } from "../../../store/sqlite/database-file.ts";
import { type Command, CommandFailure, type Input } from "../command.ts";
import { JSON_OUTPUT } from "../data-directory.ts";
import type { World } from "../io.ts";
import { DATA, readDatabase, readDataDir, underCwd } from "../service-option.ts";
import { CopyProgress } from "../terminal/progress.ts";

/** Runs `work` and shows its progress. It turns a refusal into the command's error. */
async function explained<Result>(
  world: World,
  work: (onStep: (step: CopyStep) => void) => Promise<Result>,
): Promise<Result> {
  await using progress = new CopyProgress(world);
  try {
    return await work(progress.onStep);
  } catch (error) {
    if (error instanceof BackupRefused || error instanceof DatabaseRefused) {
      throw new CommandFailure("backup_refused", error.message);
    }
    throw error;
  }
}

function refuseShared(input: Input, say: (database: DatabaseUrl) => string): void {
  const database = readDatabase(input);
  if (database !== null) throw new CommandFailure("backup_refused", say(database));
}

/** Formats a count, such as `1 event` or `12 events`. */
function countEvents(rows: Readonly<Record<string, number>>): string {
  const count = rows.event ?? 0;
  return count === 1 ? "1 event" : `${count} events`;
}

export const backup: Command = {
  words: ["backup"],
  summary: "copy the database into one checked file",
  details:
    "While the server runs. The file holds everything but the master key, which opens the secrets in it: keep master.key (or RELAY_MASTER_KEY) in another place, once. relay serve --backup-every makes backups by itself.",
  arguments: [{ name: "file", help: "the file to write", of: "file" }],
  options: [
    ...DATA,
    { name: "with-key", help: "write the master key to <file>.key too; whoever has both reads every secret" },
    { name: "force", help: "replace a file of that name" },
    JSON_OUTPUT,
  ],
  examples: [
    "relay backup /mnt/backup/relay.db",
    "relay backup relay.db --with-key --data-dir /var/lib/relay",
  ],
  async run(input, world) {
    refuseShared(input, sayHowElse);
    const made = await explained(world, (onStep) =>
      makeBackup({
        dataDir: readDataDir(input, world),
        file: underCwd(input.first(), world),
        replace: input.on("force"),
        withKey: input.on("with-key"),
        onStep,
        masterKey: world.env.RELAY_MASTER_KEY || null,
      }),
    );
    if (input.on("json")) world.say(writeJson(made, 2));
    else {
      world.say(made.file);
      world.tell(`Checked: ${countEvents(made.rows)}, ${made.bytes} bytes, schema ${made.schema}.`);
      world.tell(
        made.keyFile === null
          ? "The master key is not in it: keep master.key (or RELAY_MASTER_KEY) too, in another place; without it the backup's secrets stay shut."
          : `The master key is in ${made.keyFile}: keep it apart from the backup; whoever has both reads every secret.`,
      );
    }
  },
};

export const restore: Command = {
  words: ["restore"],
  summary: "put a backup in a stopped server's place",
  details:
    "Refused while a server uses the data directory, for a backup of a newer version, for a file that is damaged, and where the master key does not open its secrets. What was there is kept in backups/.",
  arguments: [{ name: "file", help: "the backup", of: "file" }],
  options: [
    ...DATA,
    {
      name: "key",
      value: "<file>",
      help: "the master key that was kept with it, for a data directory that has none",
      of: "file",
    },
    JSON_OUTPUT,
  ],
  examples: [
    "relay restore /mnt/backup/relay.db",
    "relay restore relay.db --key relay.db.key --data-dir /var/lib/relay",
  ],
  async run(input, world) {
    refuseShared(input, sayHowBack);
    const dataDir = readDataDir(input, world);
    const keyFile = input.text("key");
    const done = await explained(world, (onStep) =>
      restoreBackup({
        file: underCwd(input.first(), world),
        dataDir,
        keyFile: keyFile === null ? null : underCwd(keyFile, world),
        masterKey: world.env.RELAY_MASTER_KEY || null,
        clock: world.clock,
        onStep,
      }),
    );
    if (input.on("json")) {
      world.say(writeJson(done, 2));
      return;
    }
    world.say(`Restored ${countEvents(done.rows)} into ${dataDir}.`);
    if (done.kept !== null) {
      const how = done.keptAsItLay ? " as it lay, unchecked" : "";
      world.tell(`What was there is kept${how} in ${done.kept}: remove it when you no longer need it.`);
    }
    if (done.keyPlaced) world.tell("The master key was put beside it.");
    if (done.waitingEvents > 0) {
      world.tell(
        `${done.waitingEvents} events wait in it and run when the server starts; one that ran after the backup was made runs again, and a call_url posts the same id again.`,
      );
    }
    world.tell(
      "Next: relay doctor looks it over, then start the server; keys and passwords are as they were then.",
    );
  },
};
