/** Shows, sets, tests and removes the S3 endpoint that Settings › Backups also shows (`relay backups endpoint`). */
import { writeJson } from "../../../base/json.ts";
import { createLog } from "../../../base/log.ts";
import { BackupCopies, makeCopyStarter } from "../../../operator/backup/backup-copies.ts";
import {
  type CopyTargetInput,
  changeCopyTarget,
  findCopyTarget,
  readEndpoint,
  removeCopyTarget,
  viewCopyTarget,
} from "../../../operator/backup/copy-target.ts";
import { MAX_BACKUPS_KEPT } from "../../../operator/backup/stored-schedule.ts";
import { COMMAND_LINE, formatActor } from "../../../platform/account/api-key.ts";
import { parseAllowList } from "../../../platform/outbound/address.ts";
import type { Store } from "../../../store/port.ts";
import { type Command, type Input, type Option, UsageError } from "../command.ts";
import { JSON_OUTPUT, openSealerHere, readAllowPrivate, withStore } from "../data-directory.ts";
import type { Io } from "../io.ts";
import { ALLOW_PRIVATE, DATA, readDataDir } from "../service-option.ts";
import { printSheet } from "../terminal/terminal.ts";
import { explained, requireFileDatabase } from "./backup-copy.ts";
import {
  ENDPOINT_SECRETS,
  findKeyId,
  findPassphrase,
  findSecretKey,
  readKeyId,
  readNewPassphrase,
  readSecretKey,
  requireCopyUrl,
} from "./copy-option.ts";

const USUAL_KEEP = 30;
/** A line of help that is short, because the server's own option explains the hosts. */
const ALLOWED_HOSTS: Option = {
  name: ALLOW_PRIVATE.name,
  value: "<hosts>",
  env: "RELAY_ALLOW_PRIVATE",
  help: "private hosts to allow",
};
const SETTINGS = ["endpoint", "region", "keep"] as const;

type Target = NonNullable<Awaited<ReturnType<typeof viewCopyTarget>>>;

export const backupsEndpoint: Command = {
  words: ["backups", "endpoint"],
  summary: "show, set, test or remove the S3 endpoint of copies",
  details: ENDPOINT_SECRETS,
  arguments: [{ name: "url", help: "the bucket and folder, such as s3://my-backups/relay", optional: true }],
  options: [
    { name: "endpoint", value: "<url>", help: "such as https://s3.example.com" },
    { name: "region", value: "<name>", help: "the region of the bucket, at first us-east-1" },
    { name: "keep", value: "<number>", help: `copies to keep, at first ${USUAL_KEEP}` },
    { name: "test", help: "write, read and delete a small object" },
    { name: "remove", help: "remove it and its secrets; the copies stay" },
    ALLOWED_HOSTS,
    JSON_OUTPUT,
    ...DATA,
  ],
  examples: [
    "relay backups endpoint s3://my-backups/relay --endpoint https://s3.example.com",
    "relay backups endpoint --test --data-dir /var/lib/relay",
  ],
  async run(input, io) {
    requireFileDatabase(input);
    const sets = input.positionals.length > 0 || SETTINGS.some((name) => input.given(name));
    const removes = input.on("remove");
    if (removes && (sets || input.on("test")))
      throw new UsageError(
        "--remove changes nothing else: run another command for the test or the settings.",
      );
    await explained(() =>
      withStore(input, io, async (store) => {
        if (removes) return await remove(store, input, io);
        if (sets) await set(store, input, io);
        if (input.on("test")) await test(store, input, io);
        await show(store, input, io);
      }),
    );
  },
};

async function show(store: Store, input: Input, io: Io): Promise<void> {
  const target = await store.read(viewCopyTarget);
  const isTested = input.on("test");
  if (input.on("json")) return io.print(writeJson({ target, ...(isTested ? { tested: true } : {}) }, 2));
  if (target === null)
    return io.inform(
      "No S3 endpoint is set: relay backups endpoint s3://bucket/folder --endpoint <url> sets one.",
    );
  const { endpoint, region, accessKeyId, keep } = target;
  await printSheet(input, io, [
    `${formatUrl(target)}  at ${endpoint}`,
    `  region ${region}, access key ID ${accessKeyId}, keeps ${keep} ${keep === 1 ? "copy" : "copies"}`,
  ]);
  if (isTested) io.inform("The connection works: Relay wrote, read and deleted an object.");
}

async function set(store: Store, input: Input, io: Io): Promise<void> {
  const before = await store.read(findCopyTarget);
  const given = await readTarget(input, io, before);
  const sealer = await openSealerHere(store, input, io);
  const allow = parseAllowList(readAllowPrivate(input, io));
  const change = { nowMs: io.clock.now(), by: formatActor(COMMAND_LINE), sealer, allow };
  await store.write("dashboard", (tx) => changeCopyTarget(tx, change, given));
  if (given.passphrase !== undefined)
    io.inform("Store the passphrase and master.key in another place: a restore needs both.");
}

/** Returns the endpoint to store. It asks for a secret only if none is stored that fits. */
async function readTarget(
  input: Input,
  io: Io,
  before: Awaited<ReturnType<typeof findCopyTarget>>,
): Promise<CopyTargetInput> {
  const [text] = input.positionals;
  const url = text === undefined ? null : requireCopyUrl(text);
  const bucket = url?.bucket ?? before?.bucket;
  if (bucket === undefined)
    throw new UsageError("No bucket is set: name it and its folder, such as s3://my-backups/relay.");
  const endpointText = input.text("endpoint") ?? before?.endpoint;
  if (endpointText === undefined)
    throw new UsageError(
      "No endpoint is set: name it, such as --endpoint https://s3.eu-central-1.amazonaws.com.",
    );
  const keep = input.number("keep", { from: 1, to: MAX_BACKUPS_KEPT }) ?? before?.keep ?? USUAL_KEEP;
  const endpoint = readEndpoint(endpointText);
  const stored = before?.endpoint === endpoint ? before.accessKeyId : null;
  const accessKeyId = findKeyId(io) ?? stored ?? (await readKeyId(io));
  const secretAccessKey = accessKeyId === stored ? findSecretKey(io) : await readSecretKey(io);
  const passphrase = before === null ? await readNewPassphrase(io) : findPassphrase(io);
  return {
    endpoint,
    bucket,
    region: input.text("region") ?? before?.region ?? "",
    prefix: url?.key ?? before?.prefix ?? "",
    accessKeyId,
    keep,
    ...(secretAccessKey === undefined ? {} : { secretAccessKey }),
    ...(passphrase === undefined ? {} : { passphrase }),
  };
}

/** Tests the endpoint as the service does, in a separate process and after the check of its addresses. */
async function test(store: Store, input: Input, io: Io): Promise<void> {
  const { clock } = io;
  const dataDir = readDataDir(input, io);
  const log = createLog({ clock, format: "text", sink: (line) => io.inform(line) });
  const start = makeCopyStarter(dataDir, io.env.RELAY_MASTER_KEY || null);
  const allowPrivate = readAllowPrivate(input, io);
  await new BackupCopies({ dataDir, store, clock, log, allowPrivate, start }).test();
}

async function remove(store: Store, input: Input, io: Io): Promise<void> {
  const target = await store.read(viewCopyTarget);
  const change = { nowMs: io.clock.now(), by: formatActor(COMMAND_LINE) };
  await store.write("dashboard", (tx) => removeCopyTarget(tx, change));
  const removed = target === null ? null : formatUrl(target);
  if (input.on("json")) io.print(writeJson({ removed }, 2));
  io.inform(
    removed === null
      ? "No S3 endpoint is set: nothing changed."
      : `${removed} is removed. The copies in the bucket stay, and the server copies no more backups.`,
  );
}

function formatUrl({ bucket, prefix }: Target): string {
  return `s3://${bucket}${prefix === "" ? "" : `/${prefix}`}`;
}
