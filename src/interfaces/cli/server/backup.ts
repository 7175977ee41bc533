/**
 * Copies the whole database into one checked file while the server runs (`relay backup`). `relay restore` replaces a stopped server's
 * database with such a file and saves the previous database.
 */

import { type DatabaseUrl, formatBackupAdvice, formatRestoreAdvice } from "../../../base/database-url.ts";
import { writeJson } from "../../../base/json.ts";
import { BackupRefused, makeBackup } from "../../../operator/backup/backup.ts";
import { type RestoreRequest, restoreBackup } from "../../../operator/backup/restore.ts";
import { formatBytes } from "../../../operator/doctor/finding.ts";
import type { CopyStep } from "../../../store/sqlite/database-copy.ts";
import { DatabaseRefused } from "../../../store/sqlite/database-file.ts";
import { type Command, CommandFailure, type Input, UsageError } from "../command.ts";
import { JSON_OUTPUT } from "../data-directory.ts";
import type { Io } from "../io.ts";
import { DATA, readDatabase, readDataDir, underCwd } from "../service-option.ts";
import { count } from "../sync/plan-lines.ts";
import { CopyProgress } from "../terminal/progress.ts";
import { COPY_OPTIONS, openCopyStore, RESTORE_SECRETS, readCopyUrl, readPassphrase } from "./copy-option.ts";

/** Runs `work` and shows its progress. It turns a refusal into the command's error. */
async function explained<Result>(
  io: Io,
  work: (onStep: (step: CopyStep) => void) => Promise<Result>,
): Promise<Result> {
  await using progress = new CopyProgress(io);
  try {
    return await work(progress.onStep);
  } catch (error) {
    if (error instanceof BackupRefused || error instanceof DatabaseRefused) {
      throw new CommandFailure("backup_refused", error.message);
    }
    throw error;
  }
}

function requireFileDatabase(input: Input, say: (database: DatabaseUrl) => string): void {
  const database = readDatabase(input);
  if (database !== null) throw new CommandFailure("backup_refused", say(database));
}

export const backup: Command = {
  words: ["backup"],
  summary: "copy the database into one checked file",
  details:
    "The server can run meanwhile. The file contains everything except the master key, which opens the secrets in it. Store master.key (or RELAY_MASTER_KEY) once in another place. relay backups schedule sets automatic backups.",
  arguments: [{ name: "file", help: "the file to write", of: "file" }],
  options: [
    ...DATA,
    {
      name: "with-key",
      help: "also write the master key to <file>.key; both files together open every secret",
    },
    { name: "force", help: "replace an existing file" },
    JSON_OUTPUT,
  ],
  examples: [
    "relay backup /mnt/backup/relay.db",
    "relay backup relay.db --with-key --data-dir /var/lib/relay",
  ],
  async run(input, io) {
    requireFileDatabase(input, formatBackupAdvice);
    const made = await explained(io, (onStep) =>
      makeBackup({
        dataDir: readDataDir(input, io),
        file: underCwd(input.first(), io),
        replace: input.on("force"),
        withKey: input.on("with-key"),
        onStep,
        masterKey: io.env.RELAY_MASTER_KEY || null,
      }),
    );
    if (input.on("json")) io.print(writeJson(made, 2));
    else {
      io.print(made.file);
      io.inform(
        `Checked: ${count(made.rows.event ?? 0, "event")}, ${formatBytes(made.bytes)}, schema ${made.schema}.`,
      );
      io.inform(
        made.keyFile === null
          ? "The backup does not contain the master key: store master.key (or RELAY_MASTER_KEY) in another place. Without it the secrets of the backup cannot be opened."
          : `The master key is in ${made.keyFile}: store it in another place than the backup, because both files together open every secret.`,
      );
    }
  },
};

/** Returns the file to restore, or the URL of a copy and its download. Asks for the secrets first, because the download runs in the locked directory. */
async function readSource(input: Input, io: Io): Promise<Pick<RestoreRequest, "file" | "download">> {
  const text = input.first();
  const url = readCopyUrl(text);
  if (url === null) return { file: underCwd(text, io) };
  if (url.key === "")
    throw new UsageError(
      `${text} names no object: relay backups list --remote shows the copies of a bucket.`,
    );
  const copies = await openCopyStore(input, io, url.bucket);
  const passphrase = await readPassphrase(io);
  return { file: text, download: (file) => copies.download(url.key, passphrase, file) };
}

export const restore: Command = {
  words: ["restore"],
  summary: "restore a backup into a stopped server",
  details: `The command saves the previous database in backups/. It refuses while a server uses the data directory. It also refuses a damaged file, a backup of a newer version, and a backup whose secrets the master key does not open. ${RESTORE_SECRETS}`,
  arguments: [{ name: "file", help: "the backup to restore: a file, or an s3:// URL of a copy", of: "file" }],
  options: [
    ...DATA,
    {
      name: "key",
      value: "<file>",
      help: "the master key of the backup, if the data directory has none",
      of: "file",
    },
    ...COPY_OPTIONS,
    JSON_OUTPUT,
  ],
  examples: [
    "relay restore relay.db --key relay.db.key --data-dir /var/lib/relay",
    "relay restore s3://my-backups/relay/<copy> --endpoint https://s3.example.com",
  ],
  async run(input, io) {
    requireFileDatabase(input, formatRestoreAdvice);
    const dataDir = readDataDir(input, io);
    const keyFile = input.text("key");
    const done = await explained(io, async (onStep) =>
      restoreBackup({
        ...(await readSource(input, io)),
        dataDir,
        keyFile: keyFile === null ? null : underCwd(keyFile, io),
        masterKey: io.env.RELAY_MASTER_KEY || null,
        clock: io.clock,
        onStep,
      }),
    );
    if (input.on("json")) {
      io.print(writeJson(done, 2));
      return;
    }
    io.print(`Restored ${count(done.rows.event ?? 0, "event")} into ${dataDir}.`);
    if (done.kept !== null) {
      const how = done.keptAsItLay ? " unchanged and unchecked" : "";
      io.inform(
        `The previous database is saved${how} in ${done.kept}: remove it when you no longer need it.`,
      );
    }
    if (done.keyPlaced) io.inform("Relay copied the master key into the data directory.");
    if (done.waitingEvents > 0) {
      io.inform(
        `${count(done.waitingEvents, "event")} of the backup will run when the server starts. An event that ran after the backup runs again, and call_url sends the same id again.`,
      );
    }
    io.inform(
      "Next: check the data directory with relay doctor, then start the server. Keys and passwords are those of the backup.",
    );
  },
};
