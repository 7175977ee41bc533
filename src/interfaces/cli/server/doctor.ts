/** Checks a data directory and advises how to fix what it finds (`relay doctor`). It changes nothing. */
import { BUILT_AT } from "../../../base/release/build.ts";
import { examine } from "../../../operator/doctor/examine.ts";
import type { Command } from "../command.ts";
import { JSON_OUTPUT, readNearUrl, readRunningAllowPrivate, readRunningUrl } from "../data-directory.ts";
import {
  BACKUP_EVERY,
  BASE_URL,
  DATA,
  readBackupPeriod,
  readBaseUrl,
  readDatabase,
  readDataDir,
} from "../service-option.ts";
import { printList } from "../terminal/terminal.ts";
import { askNearServer } from "./near-server.ts";

export const doctor: Command = {
  words: ["doctor"],
  summary: "check a data directory, and say what to fix",
  details:
    "The command changes nothing. A server can run meanwhile. The exit code is 1 if a check fails, and 0 for warnings.",
  options: [
    JSON_OUTPUT,
    { name: "quick", help: "skip the checks that take long on a large database" },
    ...DATA,
    BASE_URL,
    BACKUP_EVERY,
  ],
  examples: ["relay doctor", "relay doctor --quick --json"],
  async run(input, io) {
    const dataDir = readDataDir(input, io);
    const items = await examine({
      dataDir,
      database: readDatabase(input),
      masterKey: io.env.RELAY_MASTER_KEY || null,
      baseUrl: readBaseUrl(input) ?? readRunningUrl(dataDir),
      allowPrivate: readRunningAllowPrivate(dataDir),
      backupEveryMs: readBackupPeriod(input),
      quick: input.on("quick"),
      builtAt: BUILT_AT,
      readMetrics: () => readMetrics(readNearUrl(dataDir)),
      clock: io.clock,
    });
    await printList(input, io, items, {
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
      none: "No check ran.",
    });
    return items.some(({ state }) => state === "fail") ? 1 : 0;
  },
};

/** Reads the metrics of the server on this machine. Returns null without a server, and for another program at its address. */
async function readMetrics(url: string | null): Promise<string | null> {
  const answer = url === null ? null : await askNearServer(`${url}/metrics`);
  return answer?.status === 200 ? answer.text : null;
}
