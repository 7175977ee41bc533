/** Checks a data directory and advises how to fix what it finds (`relay doctor`). It changes nothing. */
import { examine } from "../../../operator/doctor/examine.ts";
import type { Command } from "../command.ts";
import { JSON_OUTPUT, readRunningUrl } from "../data-directory.ts";
import {
  BACKUP_EVERY,
  BASE_URL,
  DATA,
  readBackupPeriod,
  readBaseUrl,
  readDatabase,
  readDataDir,
} from "../service-option.ts";
import { sayList } from "../terminal/terminal.ts";

export const doctor: Command = {
  words: ["doctor"],
  summary: "look a data directory over, and what to do",
  details:
    "Works beside a running server and without one, and changes nothing. Exit code 1 when something fails; warnings alone are 0.",
  options: [
    JSON_OUTPUT,
    { name: "quick", help: "leave out what takes long on a large database" },
    ...DATA,
    BASE_URL,
    BACKUP_EVERY,
  ],
  examples: ["relay doctor", "relay doctor --quick --json"],
  async run(input, world) {
    const dataDir = readDataDir(input, world);
    const items = await examine({
      dataDir,
      database: readDatabase(input),
      masterKey: world.env.RELAY_MASTER_KEY || null,
      baseUrl: readBaseUrl(input) ?? readRunningUrl(dataDir),
      backupEveryMs: readBackupPeriod(input),
      quick: input.on("quick"),
      clock: world.clock,
    });
    await sayList(input, world, items, {
      columns: [
        { heading: "CHECK", value: ({ check }) => check },
        { heading: "STATE", value: ({ state }) => state, tone: true },
        {
          heading: "FOUND",
          value: ({ message, todo }) => (todo === null ? message : `${message} To do: ${todo}.`),
          wrap: true,
          // Leaves the times and ids in a check's message unchanged.
          raw: true,
        },
      ],
      none: "Nothing was looked at.",
    });
    return items.some(({ state }) => state === "fail") ? 1 : 0;
  },
};
