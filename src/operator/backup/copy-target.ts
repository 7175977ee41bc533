/**
 * The S3 endpoint that an owner set in Settings › Backups. It is one row of the server, and each change is audited without its secrets. The secret
 * access key and the passphrase are sealed, and are never shown again.
 */
import { type Static, Type } from "typebox";
import { toIso } from "../../base/clock.ts";
import { Refusal } from "../../base/refusal.ts";
import { fields, time } from "../../base/schema.ts";
import { breaksOneLine } from "../../base/text.ts";
import { SERVER_SCOPE, writeAudit } from "../../platform/audit/audit.ts";
import type { AllowList } from "../../platform/outbound/address.ts";
import type { Sealer } from "../../platform/secret/seal.ts";
import type { Reader, Writer } from "../../store/port.ts";
import { bytes, defineTable, integer, type RowOf, text } from "../../store/table.ts";
import { requireAllowedHost } from "./copy-address.ts";
import { forgetCopies } from "./copy-state.ts";
import type { CopyPlace } from "./copy-store.ts";
import { MAX_BACKUPS_KEPT } from "./stored-schedule.ts";

const BACKUP_TARGET = defineTable({
  name: "backup_target",
  key: ["one"],
  columns: {
    one: integer(),
    endpoint: text(),
    bucket: text(),
    region: text(),
    prefix: text(),
    accessKeyId: text(),
    secretAccessKey: bytes(),
    passphrase: bytes(),
    keep: integer(),
    setAt: integer(),
  },
});
type TargetRow = RowOf<typeof BACKUP_TARGET>;

const USUAL_REGION = "us-east-1";
const MAX_TEXT_CHARS = 1_000;
const MIN_PASSPHRASE_CHARS = 12;
const SECRET_CONTEXT = "backup target: secret access key";
const PASSPHRASE_CONTEXT = "backup target: passphrase";

export const copyTargetView = Type.Object({
  endpoint: Type.String(),
  bucket: Type.String(),
  region: Type.String(),
  prefix: Type.String(),
  accessKeyId: Type.String(),
  /** The number of copies to keep in the bucket. */
  keep: Type.Integer(),
  /** The time since which backups are copied there. */
  setAt: time,
});

/** A new endpoint. An absent or empty secret stays, if one is stored for this endpoint and access key ID. */
export const copyTargetInput = fields({
  endpoint: Type.String({
    maxLength: 300,
    description: "the URL of an S3 endpoint, such as https://s3.eu-central-1.amazonaws.com",
  }),
  bucket: Type.String({ maxLength: 100, description: "the name of the bucket" }),
  region: Type.Optional(
    Type.String({ maxLength: 60, description: `the region of the bucket; ${USUAL_REGION} if it is absent` }),
  ),
  prefix: Type.Optional(
    Type.String({ maxLength: 300, description: "a folder in the bucket; absent or empty for none" }),
  ),
  accessKeyId: Type.String({ maxLength: 128, description: "the access key ID" }),
  secretAccessKey: Type.Optional(
    Type.String({
      maxLength: 200,
      description: "the secret access key, which is never shown again; absent to keep the stored one",
    }),
  ),
  passphrase: Type.Optional(
    Type.String({
      maxLength: 500,
      description: `the passphrase that encrypts the copies, at least ${MIN_PASSPHRASE_CHARS} characters, never shown again; absent to keep the stored one`,
    }),
  ),
  keep: Type.Integer({
    minimum: 1,
    maximum: MAX_BACKUPS_KEPT,
    description: `the number of copies to keep, 1 to ${MAX_BACKUPS_KEPT}`,
  }),
});
export type CopyTargetInput = Static<typeof copyTargetInput>;

/** The endpoint with its open secrets. */
export interface CopyTarget extends CopyPlace {
  passphrase: string;
  keep: number;
}

/** Returns the endpoint without its secrets, or null if none is set. */
export async function findCopyTarget(
  tx: Reader,
): Promise<Omit<TargetRow, "one" | "secretAccessKey" | "passphrase"> | null> {
  const row = await BACKUP_TARGET.find(tx, { one: 1 });
  if (row === null) return null;
  const { endpoint, bucket, region, prefix, accessKeyId, keep, setAt } = row;
  return { endpoint, bucket, region, prefix, accessKeyId, keep, setAt };
}

/** Formats the endpoint for the API; null if none is set. */
export async function viewCopyTarget(tx: Reader): Promise<Static<typeof copyTargetView> | null> {
  const target = await findCopyTarget(tx);
  return target === null ? null : { ...target, setAt: toIso(target.setAt) };
}

/** Returns the endpoint with its secrets, or null if none is set. Throws if another master key sealed them. */
export async function openCopyTarget(tx: Reader, sealer: Sealer): Promise<CopyTarget | null> {
  const row = await BACKUP_TARGET.find(tx, { one: 1 });
  if (row === null) return null;
  const { endpoint, bucket, region, prefix, accessKeyId, keep } = row;
  return {
    ...{ endpoint, bucket, region, prefix, accessKeyId, keep },
    secretAccessKey: sealer.unseal(row.secretAccessKey, SECRET_CONTEXT),
    passphrase: sealer.unseal(row.passphrase, PASSPHRASE_CONTEXT),
  };
}

interface TargetChange {
  nowMs: number;
  by: string;
  sealer: Sealer;
  /** The private hosts that the operator allows. */
  allow: AllowList;
}

/** Stores the endpoint, audited. Throws `invalid_input`. */
export async function changeCopyTarget(
  tx: Writer,
  change: TargetChange,
  input: CopyTargetInput,
): Promise<void> {
  const { nowMs, sealer } = change;
  const before = await BACKUP_TARGET.find(tx, { one: 1 });
  const place = readPlace(input);
  requireAllowedHost(place.endpoint, change.allow);
  const isSameKey = before?.endpoint === place.endpoint && before.accessKeyId === place.accessKeyId;
  const secret = readSecret("secretAccessKey", input.secretAccessKey, 1);
  const passphrase = readSecret("passphrase", input.passphrase, MIN_PASSPHRASE_CHARS);
  const secretAccessKey =
    secret === null ? (isSameKey ? before.secretAccessKey : null) : sealer.seal(secret, SECRET_CONTEXT);
  if (secretAccessKey === null)
    throw new Refusal(
      "invalid_input",
      "`secretAccessKey` is missing: a new endpoint or access key ID needs it.",
    );
  const sealedPassphrase =
    passphrase === null ? (before?.passphrase ?? null) : sealer.seal(passphrase, PASSPHRASE_CONTEXT);
  if (sealedPassphrase === null)
    throw new Refusal(
      "invalid_input",
      "`passphrase` is missing: it encrypts the copies, and a restore needs it.",
    );
  const isSamePlace =
    before?.endpoint === place.endpoint && before.bucket === place.bucket && before.prefix === place.prefix;
  const setAt = isSamePlace ? before.setAt : nowMs;
  const row: TargetRow = {
    one: 1,
    ...place,
    secretAccessKey,
    passphrase: sealedPassphrase,
    keep: input.keep,
    setAt,
  };
  if (before === null) await BACKUP_TARGET.insert(tx, row);
  else await BACKUP_TARGET.update(tx, row);
  if (!isSamePlace) await forgetCopies(tx);
  const after = { ...auditOf(row), secretsChanged: secret !== null || passphrase !== null };
  await auditChange(tx, change, "backup.target_set", before === null ? null : auditOf(before), after);
}

/** Removes the endpoint, audited. The copies in the bucket stay. */
export async function removeCopyTarget(
  tx: Writer,
  change: Pick<TargetChange, "nowMs" | "by">,
): Promise<void> {
  const before = await BACKUP_TARGET.find(tx, { one: 1 });
  if (before === null) return;
  await BACKUP_TARGET.delete(tx, { one: 1 });
  await forgetCopies(tx);
  await auditChange(tx, change, "backup.target_removed", auditOf(before), null);
}

type Audited = ReturnType<typeof auditOf>;

function auditOf({ endpoint, bucket, region, prefix, accessKeyId, keep }: TargetRow) {
  return { endpoint, bucket, region, prefix, accessKeyId, keep };
}

async function auditChange(
  tx: Writer,
  { nowMs, by }: Pick<TargetChange, "nowMs" | "by">,
  action: "backup.target_set" | "backup.target_removed",
  before: Audited | null,
  after: Audited | null,
): Promise<void> {
  await writeAudit(tx, { environmentId: SERVER_SCOPE, nowMs, by, action, target: "server", before, after });
  tx.notify("backup_copy");
}

function readPlace(input: CopyTargetInput): Omit<CopyPlace, "secretAccessKey"> {
  return {
    endpoint: readEndpoint(input.endpoint),
    bucket: readBucket(input.bucket),
    region: readRegion(input.region),
    prefix: readPrefix(input.prefix),
    accessKeyId: readAccessKeyId(input.accessKeyId),
  };
}

/** Returns the origin of the endpoint. Throws `invalid_input`. */
export function readEndpoint(given: string): string {
  const url = given.length > MAX_TEXT_CHARS ? null : URL.parse(given.trim());
  const isOrigin =
    url !== null &&
    /^https?:$/.test(url.protocol) &&
    url.host !== "" &&
    url.username === "" &&
    url.password === "";
  if (isOrigin && url.pathname === "/" && url.search === "" && url.hash === "") return url.origin;
  throw new Refusal(
    "invalid_input",
    "`endpoint` is not the URL of an S3 endpoint: write one such as https://s3.eu-central-1.amazonaws.com, without a path.",
  );
}

/** Returns the name of the bucket. Throws `invalid_input`. */
export function readBucket(given: string): string {
  const bucket = given.trim();
  if (/^[A-Za-z0-9][\w.-]{1,62}$/.test(bucket)) return bucket;
  throw new Refusal(
    "invalid_input",
    "`bucket` is not the name of a bucket: write a name such as my-backups.",
  );
}

/** Returns the region, or the usual one. Throws `invalid_input`. */
export function readRegion(given: string | undefined): string {
  const region = given?.trim() ?? "";
  if (region === "") return USUAL_REGION;
  if (/^[\w-]{1,64}$/.test(region)) return region;
  throw new Refusal("invalid_input", "`region` is not a region: write a name such as eu-central-1.");
}

function readPrefix(given: string | undefined): string {
  const prefix = (given?.trim() ?? "").replace(/^\/+|\/+$/g, "");
  if (prefix === "") return "";
  const isPath = prefix.length <= 200 && /^[\w./-]+$/.test(prefix);
  if (isPath && prefix.split("/").every((part) => !/^\.*$/.test(part))) return prefix;
  throw new Refusal(
    "invalid_input",
    "`prefix` is not a folder of the bucket: write letters, digits, - and _, such as relay.",
  );
}

function readAccessKeyId(given: string): string {
  const id = given.trim();
  if (/^[\x21-\x7e]{1,256}$/.test(id)) return id;
  throw new Refusal(
    "invalid_input",
    "`accessKeyId` is not an access key ID: paste the one that the provider shows.",
  );
}

/** Returns null for an absent or empty secret. Throws `invalid_input`. */
function readSecret(name: string, given: string | undefined, min: number): string | null {
  const secret = given?.trim() ?? "";
  if (secret === "") return null;
  if (secret.length < min)
    throw new Refusal("invalid_input", `\`${name}\` is too short: write at least ${min} characters.`);
  if (secret.length <= MAX_TEXT_CHARS && breaksOneLine(secret) === null) return secret;
  throw new Refusal(
    "invalid_input",
    `\`${name}\` is too long or contains control characters: paste one line.`,
  );
}
