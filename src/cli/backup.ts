/** `relay backup`: the whole database in one checked file, while the server runs. */
import { makeBackup } from "../backup/backup.ts";
import { countEvents, explained } from "./backup-words.ts";
import type { Command } from "./command.ts";
import { DATA_DIR, readDataDir, underCwd } from "./service-option.ts";

export const backup: Command = {
  words: ["backup"],
  summary: "copy the database into one checked file, while the server runs",
  details:
    "The file holds everything but the master key, which opens the secrets in it: keep master.key (or RELAY_MASTER_KEY) in another place, once. relay serve --backup-every makes backups by itself.",
  arguments: [{ name: "file", help: "the file to write" }],
  options: [
    DATA_DIR,
    { name: "with-key", help: "write the master key to <file>.key too; whoever has both reads every secret" },
    { name: "force", help: "replace a file of that name" },
    { name: "json", help: "write JSON instead of text" },
  ],
  examples: [
    "relay backup /mnt/backup/relay.db",
    "relay backup relay.db --with-key --data-dir /var/lib/relay",
  ],
  async run(input, world) {
    const made = await explained(() =>
      makeBackup({
        dataDir: readDataDir(input, world),
        file: underCwd(input.first(), world),
        replace: input.on("force"),
        withKey: input.on("with-key"),
        masterKey: world.env.RELAY_MASTER_KEY || null,
      }),
    );
    if (input.on("json")) world.say(JSON.stringify(made, null, 2));
    else {
      world.say(made.file);
      world.tell(`Checked: ${countEvents(made.rows)}, ${made.bytes} bytes, schema ${made.schema}.`);
      world.tell(
        made.keyFile === null
          ? "The master key is not in it: keep master.key (or RELAY_MASTER_KEY) too, in another place; without it the backup's secrets stay shut."
          : `The master key is in ${made.keyFile}: keep it apart from the backup; whoever has both reads every secret.`,
      );
    }
    return 0;
  },
};
