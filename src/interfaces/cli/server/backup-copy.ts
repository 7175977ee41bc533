/** Lists backups and their copies, and copies a backup to the S3 endpoint of Settings › Backups (`relay backups list` and `relay backups copy`). */
import { join } from "node:path";
import { toIso, toIsoOrNull } from "../../../base/clock.ts";
import { formatBackupAdvice } from "../../../base/database-url.ts";
import { writeJson } from "../../../base/json.ts";
import { MINUTE_MS } from "../../../base/limit.ts";
import { BackupRefused, backupFolder, listBackups } from "../../../operator/backup/backup.ts";
import { findFailure, listCopies, recordCopy } from "../../../operator/backup/copy-state.ts";
import { CopyStore } from "../../../operator/backup/copy-store.ts";
import { type CopyTarget, openCopyTarget } from "../../../operator/backup/copy-target.ts";
import { formatBytes } from "../../../operator/doctor/finding.ts";
import { type Command, CommandFailure, type Input, UsageError } from "../command.ts";
import { JSON_OUTPUT, openSealerHere, withStore } from "../data-directory.ts";
import type { Io } from "../io.ts";
import { DATA, readDatabase, readDataDir } from "../service-option.ts";
import { printList } from "../terminal/terminal.ts";
import { COPY_OPTIONS, LIST_SECRETS, openCopyStore, requireCopyUrl } from "./copy-option.ts";

/** The time in which the endpoint must take a part of 8 MB. */
const STALL_MS = 5 * MINUTE_MS;

export const backupsList: Command = {
  words: ["backups", "list"],
  summary: "list backups and their copies",
  details: `Without --remote, the command lists the backups of the data directory, and which of them were copied. With --remote it lists the copies in the bucket of Settings › Backups, or of the s3:// URL. ${LIST_SECRETS}`,
  arguments: [{ name: "url", help: "a bucket and folder, such as s3://my-backups/relay", optional: true }],
  options: [{ name: "remote", help: "list the copies in the bucket" }, ...COPY_OPTIONS, JSON_OUTPUT, ...DATA],
  examples: [
    "relay backups list",
    "relay backups list --remote s3://my-backups/relay --endpoint https://s3.example.com",
  ],
  async run(input, io) {
    if (input.on("remote")) return await explained(() => listRemote(input, io));
    if (input.positionals.length > 0) throw new UsageError("A URL needs --remote.");
    requireFileDatabase(input);
    const dataDir = readDataDir(input, io);
    const rows = await withStore(input, io, (store) => store.read(listCopies));
    const failure = findFailure(rows);
    const items = listBackups(dataDir).map(({ name, atMs, bytes }) => {
      const row = rows.find((one) => one.name === name);
      return {
        name,
        at: toIso(atMs),
        bytes,
        copiedAt: toIsoOrNull(row?.copiedAt ?? null),
        failure: row?.failure ?? null,
      };
    });
    await printList(input, io, items, {
      columns: [
        { heading: "BACKUP", value: ({ name }) => name },
        { heading: "SIZE", value: ({ bytes }) => formatBytes(bytes) },
        { heading: "MADE", value: ({ at }) => at },
        { heading: "COPIED", value: ({ copiedAt }) => copiedAt ?? "" },
      ],
      none: `There is no backup in ${backupFolder(dataDir)}: make one with relay backup.`,
    });
    if (failure !== null && !input.on("json"))
      io.inform(`The last copy failed at ${toIso(failure.atMs)}: ${failure.message}`);
  },
};

async function listRemote(input: Input, io: Io): Promise<void> {
  const [text] = input.positionals;
  const url = text === undefined ? null : requireCopyUrl(text);
  const target = url === null ? await openTarget(input, io) : null;
  const bucket = url?.bucket ?? target?.bucket ?? "";
  const copies =
    target !== null
      ? new CopyStore(target)
      : await openCopyStore(input, io, bucket, url?.key.replace(/\/+$/, "") ?? "");
  const items = (await copies.list()).map(({ key, name, atMs, bytes }) => ({
    url: `s3://${bucket}/${key}`,
    name,
    at: toIso(atMs),
    bytes,
  }));
  await printList(input, io, items, {
    columns: [
      { heading: "COPY", value: (item) => item.url },
      { heading: "SIZE", value: ({ bytes }) => formatBytes(bytes) },
      { heading: "MADE", value: ({ at }) => at },
    ],
    none: "There is no copy in the bucket.",
  });
}

export const backupsCopy: Command = {
  words: ["backups", "copy"],
  summary: "copy a backup to the S3 endpoint, encrypted",
  details:
    "A server copies each new backup automatically. The command copies one at once, to the endpoint and with the passphrase of Settings › Backups, and removes the oldest copies.",
  arguments: [
    { name: "name", help: "a backup of relay backups list; without it, the newest", optional: true },
  ],
  options: [{ name: "test", help: "only write, read and delete a small object" }, JSON_OUTPUT, ...DATA],
  examples: ["relay backups copy", "relay backups copy --data-dir /var/lib/relay"],
  async run(input, io) {
    requireFileDatabase(input);
    await explained(async () => {
      const target = await openTarget(input, io);
      if (input.on("test")) {
        await new CopyStore(target).test();
        return io.print(input.on("json") ? writeJson({ tested: true }, 2) : "The connection works.");
      }
      const copy = await copyBackup(input, io, target);
      if (input.on("json")) return io.print(writeJson(copy, 2));
      io.print(`Copied ${copy.name} to ${copy.url}, encrypted: ${formatBytes(copy.bytes)}.`);
      io.inform("The passphrase and master.key are not in the copy: store both in another place.");
    });
  },
};

async function copyBackup(input: Input, io: Io, target: CopyTarget) {
  const dataDir = readDataDir(input, io);
  const backups = listBackups(dataDir);
  const name = input.positionals[0] ?? backups[0]?.name;
  if (name === undefined) throw new BackupRefused("There is no backup yet: make one with relay backup.");
  if (!backups.some((one) => one.name === name))
    throw new BackupRefused(`There is no backup ${name}: relay backups list shows the ones that exist.`);
  const copies = new CopyStore(target);
  const limit = () =>
    io.endWithin(STALL_MS, "The endpoint took no data for 5 minutes: check it and the network.\n");
  let cancel = limit();
  const copy = await copies.upload(join(backupFolder(dataDir), name), target.passphrase, () => {
    cancel();
    cancel = limit();
  });
  await withStore(input, io, (store) =>
    store.write("app", (tx) => recordCopy(tx, { name, bytes: copy.bytes, nowMs: io.clock.now() })),
  );
  await copies.prune(target.keep, copy.key).catch((error: Error) => {
    throw new BackupRefused(
      `The copy is in the bucket, but Relay cannot remove older ones. ${error.message}`,
    );
  });
  cancel();
  return { name, url: `s3://${target.bucket}/${copy.key}`, bytes: copy.bytes };
}

/** Returns the endpoint that an owner set. Throws BackupRefused if there is none. */
async function openTarget(input: Input, io: Io): Promise<CopyTarget> {
  requireFileDatabase(input);
  const target = await withStore(input, io, async (store) => {
    const sealer = await openSealerHere(store, input, io);
    return await store.read((tx) => openCopyTarget(tx, sealer));
  });
  if (target !== null) return target;
  throw new BackupRefused(
    "No S3 endpoint is set: set one in Settings › Backups or with relay backups endpoint.",
  );
}

/** Refuses on PostgreSQL, where the server makes no backups. */
export function requireFileDatabase(input: Input): void {
  const database = readDatabase(input);
  if (database !== null) throw new CommandFailure("backup_refused", formatBackupAdvice(database));
}

/** Runs `work`, and turns BackupRefused into the error of the command. */
export async function explained(work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (error instanceof BackupRefused) throw new CommandFailure("backup_refused", error.message);
    throw error;
  }
}
