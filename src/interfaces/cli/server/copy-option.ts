/** The options that name a bucket with encrypted copies, and the secrets that open it. Secrets come from variables or a prompt, never from arguments. */
import { BackupRefused } from "../../../operator/backup/backup.ts";
import { CopyStore } from "../../../operator/backup/copy-store.ts";
import { readBucket, readEndpoint, readRegion } from "../../../operator/backup/copy-target.ts";
import { type Input, type Option, UsageError } from "../command.ts";
import type { Io } from "../io.ts";

const KEY_ID = "AWS_ACCESS_KEY_ID";
const SECRET_KEY = "AWS_SECRET_ACCESS_KEY";
const PASSPHRASE = "RELAY_BACKUP_PASSPHRASE";

/** The options of the endpoint, for commands that take an s3:// URL. */
export const COPY_OPTIONS: readonly Option[] = [
  { name: "endpoint", value: "<url>", help: "the S3 endpoint of an s3:// URL" },
  { name: "region", value: "<name>", otherwise: "us-east-1", help: "the region of the bucket" },
];

export const LIST_SECRETS = `For an s3:// URL, Relay reads the keys of the bucket from ${KEY_ID} and ${SECRET_KEY}, and asks for those that are not set.`;
export const ENDPOINT_SECRETS = `Secrets come from ${KEY_ID}, ${SECRET_KEY} and ${PASSPHRASE}. In a terminal, Relay asks for missing ones.`;
export const RESTORE_SECRETS = `${LIST_SECRETS} It does the same for the passphrase (${PASSPHRASE}).`;

/** The bucket and the key of an s3:// URL. */
interface CopyUrl {
  bucket: string;
  key: string;
}

/** Returns null for a text that is no s3:// URL. Throws UsageError for a URL without a bucket. */
export function readCopyUrl(text: string): CopyUrl | null {
  const [, bucket, key = ""] = /^s3:\/\/([^/]*)\/?(.*)$/.exec(text) ?? [];
  if (bucket === undefined) return null;
  if (bucket === "") throw new UsageError(`${text} names no bucket: write s3://bucket/key.`);
  return { bucket: readBucket(bucket), key };
}

/** Returns the bucket and the key of an s3:// URL. Throws UsageError for any other text. */
export function requireCopyUrl(text: string): CopyUrl {
  const url = readCopyUrl(text);
  if (url === null) throw new UsageError(`${text} is no s3:// URL: write s3://bucket/folder.`);
  return url;
}

/** Opens the bucket. `prefix` limits a list. Throws UsageError for a missing endpoint, BackupRefused for missing keys. */
export async function openCopyStore(input: Input, io: Io, bucket: string, prefix = ""): Promise<CopyStore> {
  const endpoint = input.text("endpoint");
  if (endpoint === null)
    throw new UsageError(
      "An s3:// URL needs --endpoint, such as --endpoint https://s3.eu-central-1.amazonaws.com.",
    );
  return new CopyStore({
    endpoint: readEndpoint(endpoint),
    bucket,
    region: readRegion(input.text("region") ?? undefined),
    prefix,
    accessKeyId: await readKeyId(io),
    secretAccessKey: await readSecretKey(io),
  });
}

export async function readKeyId(io: Io): Promise<string> {
  return await readSecret(io, KEY_ID, "Access key ID");
}

export async function readSecretKey(io: Io): Promise<string> {
  return await readSecret(io, SECRET_KEY, "Secret access key");
}

/** Returns the passphrase of the copies. Throws BackupRefused if there is none. */
export async function readPassphrase(io: Io): Promise<string> {
  return await readSecret(io, PASSPHRASE, "Passphrase of the copies");
}

/** Returns a passphrase for new copies. It asks twice, because no copy opens with a mistyped one. Throws BackupRefused. */
export async function readNewPassphrase(io: Io): Promise<string> {
  const passphrase = await readPassphrase(io);
  if (findPassphrase(io) !== undefined) return passphrase;
  if ((await io.askSecret("The same passphrase again")) === passphrase) return passphrase;
  throw new BackupRefused("The two passphrases differ, so nothing was stored: run the command again.");
}

/** Returns the access key ID of the variable; undefined if it is not set. */
export function findKeyId(io: Io): string | undefined {
  return findSecret(io, KEY_ID);
}

export function findSecretKey(io: Io): string | undefined {
  return findSecret(io, SECRET_KEY);
}

export function findPassphrase(io: Io): string | undefined {
  return findSecret(io, PASSPHRASE);
}

function findSecret({ env }: Io, variable: string): string | undefined {
  return env[variable]?.trim() || undefined;
}

async function readSecret(io: Io, variable: string, question: string): Promise<string> {
  const given = findSecret(io, variable) ?? (await io.askSecret(question));
  if (given !== null) return given;
  throw new BackupRefused(
    `${variable} is not set: set this variable, or run the command in a terminal, which asks.`,
  );
}
