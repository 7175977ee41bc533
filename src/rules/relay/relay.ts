/**
 * The relay's row, how to find it, and the audit row of its changes. It decides the contexts under which a relay's secrets are sealed,
 * the names in audit rows, and how long the one-time signatures of a replaced secret are stored. Other files save the row.
 */

import { toIso, toIsoOrNull } from "../../base/clock.ts";
import { type RaisableLimits, SIGNATURE_MEMORY_AFTER_DELETE_MS } from "../../base/limit.ts";
import { Refusal } from "../../base/refusal.ts";
import { type Actor, formatActor } from "../../platform/account/api-key.ts";
import type { Environment } from "../../platform/account/environment.ts";
import { writeAudit } from "../../platform/audit/audit.ts";
import type { Sealer } from "../../platform/secret/seal.ts";
import type { Reader, Writer } from "../../store/port.ts";
import { bytes, defineTable, integer, json, orNull, type RowOf, text } from "../../store/table.ts";
import type { Definition } from "./definition-shape.ts";

export type SecretKind = "minted" | "pasted" | "public_key" | "processor" | "none";
export type OriginKind = "file" | "dashboard";

export const RELAY = defineTable({
  name: "relay",
  key: ["id"],
  topic: "relay",
  columns: {
    id: text(),
    environmentId: integer(),
    name: text(),
    /** The saved definition. One from an older version's rules may name a scheme that no longer exists. */
    definition: json<Definition>(),
    /** Counts the saves of the definition. */
    version: integer(),
    state: text<"active" | "paused">(),
    originKind: text<OriginKind>(),
    originAt: integer(),
    /** The time when a sync last wrote it; null: never. */
    syncedAt: orNull(integer()),
    /** The receiver that the relay follows, by name; null: none. It repeats what the definition says, so that followers are found by it. */
    sourceName: orNull(text()),
    /** The environment from which the last save promoted the definition; null: it was no promote. */
    promotedFrom: orNull(text()),
    /** The version that this promote made. It differs from the row's where an older node saved the relay later and left these columns. */
    promotedVersion: orNull(integer()),
    secretKind: text<SecretKind>(),
    /** The secret, sealed under `receiverSecretContext`. */
    secret: orNull(bytes()),
    secretFingerprint: orNull(text()),
    secretDigest: orNull(bytes()),
    secretSetAt: orNull(integer()),
    /**
     * The secret before the last rotation, sealed as the present one. It is valid until `previousSecretUntil`. null: there is no overlap.
     */
    previousSecret: orNull(bytes()),
    previousSecretDigest: orNull(bytes()),
    previousSecretUntil: orNull(integer()),
    /** The signing secret, sealed under `signingSecretContext`. */
    signingSecret: orNull(bytes()),
    signingSecretSetAt: orNull(integer()),
    /** The signing secret before the last rotation. It also signs calls until `previousSigningSecretUntil`. null: there is no overlap. */
    previousSigningSecret: orNull(bytes()),
    previousSigningSecretUntil: orNull(integer()),
    /** The time since which a schedule counts: creation, resume, or the last change of the trigger. */
    activeSince: integer(),
    createdAt: integer(),
    updatedAt: integer(),
  },
});

export type RelayRow = RowOf<typeof RELAY>;

/** The columns of a receiver secret. */
export type ReceiverSecret = Pick<
  RelayRow,
  "secretKind" | "secret" | "secretFingerprint" | "secretDigest" | "secretSetAt"
>;

export const NO_OVERLAP: Pick<RelayRow, "previousSecret" | "previousSecretDigest" | "previousSecretUntil"> = {
  previousSecret: null,
  previousSecretDigest: null,
  previousSecretUntil: null,
};

export const NO_SIGNING_OVERLAP: Pick<RelayRow, "previousSigningSecret" | "previousSigningSecretUntil"> = {
  previousSigningSecret: null,
  previousSigningSecretUntil: null,
};

/** Reports whether the previous signing secret also signs calls now. */
export function signingOverlaps<Row extends Pick<RelayRow, "previousSigningSecretUntil">>(
  row: Row,
  nowMs: number,
): row is Row & { previousSigningSecretUntil: number } {
  return row.previousSigningSecretUntil !== null && nowMs < row.previousSigningSecretUntil;
}

/** Replaces the receiver secret in the row and ends an overlap. */
export function withSecret(row: RelayRow, secret: ReceiverSecret, nowMs: number): RelayRow {
  return { ...row, ...secret, ...NO_OVERLAP, updatedAt: nowMs };
}

/** The mark by which a one-time signature names its secret. */
export function secretMark(digest: Uint8Array | null): Uint8Array | null {
  return digest?.subarray(0, 8) ?? null;
}

/** The mark of one-time signatures that were stored before they named their secret. */
const ANY_SECRET = new Uint8Array(0);

/**
 * Sets how long one-time signatures are stored: while their secret is valid, and a day longer. A replaced secret gets an end; a secret
 * that is used again loses it. Maintenance deletes the signatures at that end. null: there is no relay. `pasted`: the present secret may
 * be an earlier one.
 */
export async function updateSignatureRetention(
  tx: Writer,
  { before, after, nowMs }: { before: RelayRow | null; after: RelayRow | null; nowMs: number },
  pasted = false,
): Promise<void> {
  const { environmentId, name } = (after ?? before) as RelayRow;
  const [present, ending] = [secretMark(after?.secretDigest ?? null), after?.previousSecretDigest ?? null];
  const endMs = Math.max(nowMs, after?.previousSecretUntil ?? 0) + SIGNATURE_MEMORY_AFTER_DELETE_MS;
  const deleteSql = `DELETE FROM retired_secret WHERE environment_id = ?1 AND relay_name = ?2 AND secret = ?3`;
  if (present !== null) await tx.run(deleteSql, environmentId, name, present);
  if (pasted) await tx.run(deleteSql, environmentId, name, ANY_SECRET);
  const insertSql = `INSERT INTO retired_secret (environment_id, relay_name, secret, until, cursor) VALUES (?1, ?2, ?3, ?4, ?5)
    ON CONFLICT (environment_id, relay_name, secret) DO UPDATE SET until = excluded.until, cursor = excluded.cursor`;
  const retire = (secret: Uint8Array, until: number) =>
    tx.run(insertSql, environmentId, name, secret, until, ANY_SECRET);
  for (const digest of [before?.secretDigest ?? null, before?.previousSecretDigest ?? null]) {
    const mark = secretMark(digest);
    if (mark === null || Bun.deepEquals(mark, present)) continue;
    const ends = Bun.deepEquals(digest, ending);
    await retire(mark, ends ? endMs : nowMs + SIGNATURE_MEMORY_AFTER_DELETE_MS);
  }
  if (before !== null && !pasted) await retire(ANY_SECRET, endMs);
}

/** Finds the environment's relay of this name, or null. */
export function findRelay(tx: Reader, environmentId: number, name: string): Promise<RelayRow | null> {
  return RELAY.get(tx, "WHERE environment_id = $environmentId AND name = $name", { environmentId, name });
}

/** Returns the relay. Throws `not_found`. */
export async function requireRelay(tx: Reader, environmentId: number, name: string): Promise<RelayRow> {
  const row = await findRelay(tx, environmentId, name);
  if (row !== null) return row;
  throw rejectUnknownRelay(name);
}

/** Returns the refusal for a relay that does not exist. */
export function rejectUnknownRelay(name: string): Refusal {
  const where = "in this environment: relay relays list shows the existing ones.";
  return new Refusal("not_found", `There is no relay ${JSON.stringify(name.slice(0, 80))} ${where}`);
}

/** Lists every relay of the environment, by name. There are never many. */
export function listRelayRows(tx: Reader, environmentId: number): Promise<RelayRow[]> {
  return RELAY.all(tx, "WHERE environment_id = $environmentId ORDER BY name", { environmentId });
}

/** Lists the names of the environment's relays. */
export async function listRelayNames(tx: Reader, environmentId: number): Promise<string[]> {
  const sql = "SELECT name FROM relay WHERE environment_id = ?1 ORDER BY name";
  return (await tx.all<{ name: string }>(sql, environmentId)).map(({ name }) => name);
}

export async function countRelays(tx: Reader, environmentId: number): Promise<number> {
  const sql = "SELECT count(*) AS count FROM relay WHERE environment_id = ?1";
  return (await tx.get<{ count: number }>(sql, environmentId))?.count ?? 0;
}

/** Throws `version_conflict` unless `version` is the row's, with the current one in `details.version`. */
export function requireRelayVersion(row: Pick<RelayRow, "version" | "name">, version: number): void {
  if (version === row.version) return;
  throw new Refusal(
    "version_conflict",
    `The relay ${row.name} is at version ${row.version} and you read version ${version}: read the relay again, apply your change and save.`,
    { details: { version: row.version } },
  );
}

/** Reports whether the secret before the last rotation is still valid. */
export function overlaps<Row extends Pick<RelayRow, "previousSecretUntil">>(
  row: Row,
  nowMs: number,
): row is Row & { previousSecretUntil: number } {
  return row.previousSecretUntil !== null && nowMs < row.previousSecretUntil;
}

const TARGET_PREFIX = "relay:";

/** The relay's name in audit rows, problems and alerts. */
export function relayTarget(name: string): string {
  return `${TARGET_PREFIX}${name}`;
}

/** Returns the relay that a target names; null where it names no relay. */
export function relayOf(target: string): string | null {
  return target.startsWith(TARGET_PREFIX) ? target.slice(TARGET_PREFIX.length) : null;
}

/** The contexts under which secrets are sealed. A sealed value that is copied to another row does not open there. */
export function receiverSecretContext(relayId: string): string {
  return `relay:${relayId}:receiver`;
}

export function signingSecretContext(relayId: string): string {
  return `relay:${relayId}:signing`;
}

export function processorSecretContext(environmentId: number): string {
  return `environment:${environmentId}:processor`;
}

/** The URL to which a provider posts; it names no environment. `baseUrl` has no trailing slash. */
export function receiverUrl(baseUrl: string, appId: string, name: string): string {
  return `${baseUrl}/hooks/${appId}/${name}`;
}

export interface RelayContext {
  environment: Environment;
  actor: Actor;
  nowMs: number;
  limits: Pick<RaisableLimits, "relaysPerEnvironment">;
  sealer: Sealer;
  /** Public origin without a trailing slash. */
  baseUrl: string;
  /** Private hosts and ranges that the operator allows. Absent: none. */
  allowPrivate?: readonly string[];
}

type RelayChange =
  | "relay.created"
  | "relay.updated"
  | "relay.deleted"
  | "relay.paused"
  | "relay.resumed"
  | "relay.secret_changed"
  | "relay.signing_secret_changed";

/** Writes the change's audit row. null: the relay does not exist on that side. */
export async function auditRelay(
  tx: Writer,
  context: Pick<RelayContext, "environment" | "actor" | "nowMs">,
  change: RelayChange,
  before: RelayRow | null,
  after: RelayRow | null,
  more: { restores?: number; commit?: string } = {},
): Promise<void> {
  const name = (after ?? before)?.name ?? "";
  await writeAudit(tx, {
    environmentId: context.environment.id,
    nowMs: context.nowMs,
    by: formatActor(context.actor),
    action: change,
    target: relayTarget(name),
    before: before === null ? null : describe(change, before),
    after: after === null ? null : { ...describe(change, after), ...more },
  });
}

function describe(change: RelayChange, row: RelayRow): Record<string, unknown> {
  switch (change) {
    case "relay.paused":
    case "relay.resumed":
      return { state: row.state };
    case "relay.secret_changed":
      return { secret: describeSecret(row) };
    case "relay.signing_secret_changed":
      return { signingSecret: describeSigning(row) };
    default:
      return {
        version: row.version,
        origin: row.originKind,
        ...(row.promotedFrom === null ? {} : { promotedFrom: row.promotedFrom }),
        definition: row.definition,
        secret: describeSecret(row),
        signingSecret: describeSigning(row),
      };
  }
}

function describeSecret(row: RelayRow): Record<string, unknown> {
  const { secretKind, secretFingerprint, secretSetAt, previousSecretUntil } = row;
  return {
    kind: secretKind,
    fingerprint: secretFingerprint,
    setAt: toIsoOrNull(secretSetAt),
    ...(previousSecretUntil === null ? {} : { previousUntil: toIso(previousSecretUntil) }),
  };
}

function describeSigning(row: RelayRow): Record<string, unknown> | null {
  const { signingSecretSetAt, previousSigningSecretUntil } = row;
  if (signingSecretSetAt === null) return null;
  return {
    setAt: toIso(signingSecretSetAt),
    ...(previousSigningSecretUntil === null ? {} : { previousUntil: toIso(previousSigningSecretUntil) }),
  };
}
