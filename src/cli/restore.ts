/** `relay restore`: puts a backup in the place of a stopped server's database, and keeps what was there. */
import { restoreBackup } from "../backup/restore.ts";
import { countEvents, explained } from "./backup-words.ts";
import type { Command } from "./command.ts";
import { DATA_DIR, readDataDir, underCwd } from "./service-option.ts";

export const restore: Command = {
  words: ["restore"],
  summary: "put a backup in the place of a stopped server's database",
  details:
    "Refused while a server uses the data directory, for a backup of a newer version, for a file that is damaged, and where the master key does not open its secrets. What was there is kept in backups/.",
  arguments: [{ name: "file", help: "the backup" }],
  options: [
    DATA_DIR,
    {
      name: "key",
      value: "<file>",
      help: "the master key that was kept with it, for a data directory that has none",
    },
    { name: "json", help: "write JSON instead of text" },
  ],
  examples: [
    "relay restore /mnt/backup/relay.db",
    "relay restore relay.db --key relay.db.key --data-dir /var/lib/relay",
  ],
  async run(input, world) {
    const dataDir = readDataDir(input, world);
    const keyFile = input.text("key");
    const done = await explained(() =>
      restoreBackup({
        file: underCwd(input.first(), world),
        dataDir,
        keyFile: keyFile === null ? null : underCwd(keyFile, world),
        masterKey: world.env.RELAY_MASTER_KEY || null,
        clock: world.clock,
      }),
    );
    if (input.on("json")) {
      world.say(JSON.stringify(done, null, 2));
      return 0;
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
    return 0;
  },
};
