/**
 * Rotating a relay's receiver secret, in three steps: read the slot, prepare the value against the recipe as it was read, store it if
 * the definition has not moved since. A paste that races a recipe change answers `version_conflict` and stores nothing.
 */

import { SIGNATURE_MEMORY_AFTER_DELETE_MS } from "../ground/limit.ts";
import { Refusal } from "../ground/refusal.ts";
import type { Sealer } from "../secret/seal.ts";
import type { Reader, Writer } from "../store/port.ts";
import type { Definition } from "./definition.ts";
import { type KeptSecret, type MadeSecret, makeNextSecret } from "./receiver-secret.ts";
import { auditRelay } from "./relay-audit.ts";
import type { RelayContext } from "./relay-context.ts";
import { refuseKeptElsewhere } from "./relay-environment-secret.ts";
import { settleRelayProblems } from "./relay-problem.ts";
import { type RelayRow, readDefinition, requireRelay, requireRelayVersion } from "./relay-row.ts";

/** The place for a secret, as it was when the value was read. */
export interface SecretSlot {
  relayId: string;
  name: string;
  version: number;
  definition: Definition;
}

/** A value that fits the slot, sealed. */
export interface PreparedSecret {
  slot: SecretSlot;
  made: MadeSecret;
}

/** The relay's slot now. Refuses with `not_found`. */
export async function readSecretSlot(tx: Reader, environmentId: number, name: string): Promise<SecretSlot> {
  const row = await requireRelay(tx, environmentId, name);
  return { relayId: row.id, name, version: row.version, definition: readDefinition(row) };
}

/**
 * Checks and seals the value, or mints one for null; needs no transaction. Refuses with `invalid_input`, or with
 * `provider_secret_required` where the service cannot make one.
 */
export function prepareSecret(
  slot: SecretSlot,
  value: string | null,
  sealer: Sealer,
  nowMs: number,
): PreparedSecret {
  const { relayId, definition } = slot;
  return { slot, made: makeNextSecret({ relayId, definition, sealer, nowMs }, value) };
}

/**
 * Stores the prepared secret; the old one verifies nothing from then on. `receiverSecret` is there when it was minted, this once.
 * Refuses with `version_conflict`, `not_found`, or with `invalid_input` another environment's secret.
 */
export async function storeSecret(
  tx: Writer,
  context: RelayContext,
  { slot, made }: PreparedSecret,
): Promise<{ receiverSecret?: string }> {
  const before = await requireRelay(tx, context.environment.id, slot.name);
  if (before.id !== slot.relayId) throw refuseReplaced(slot.name, before.version);
  requireRelayVersion(before, slot.version);
  await refuseKeptElsewhere(tx, context.environment, slot.name, made.kept);
  const after = withSecret(before, made.kept, context.nowMs);
  await writeSecret(tx, after);
  await forgetSignaturesLater(tx, after, context.nowMs);
  await settleRelayProblems(tx, after, context.sealer, context.nowMs);
  await auditRelay(tx, context, "relay.secret_changed", before, after);
  return made.minted === null ? {} : { receiverSecret: made.minted };
}

/** The row with another receiver secret. */
export function withSecret(row: RelayRow, kept: KeptSecret, nowMs: number): RelayRow {
  return {
    ...row,
    secretKind: kept.kind,
    secret: kept.sealed,
    secretFingerprint: kept.fingerprint,
    secretDigest: kept.digest,
    secretSetAt: kept.setAt,
    updatedAt: nowMs,
  };
}

/** Signatures remembered as long as the secret may be forgotten a day after it is gone. */
export async function forgetSignaturesLater(
  tx: Writer,
  row: Pick<RelayRow, "environmentId" | "name">,
  nowMs: number,
): Promise<void> {
  const sql = `UPDATE signature_memory SET until = ?3
    WHERE environment_id = ?1 AND relay_name = ?2 AND (until IS NULL OR until < ?3)`;
  await tx.run(sql, row.environmentId, row.name, nowMs + SIGNATURE_MEMORY_AFTER_DELETE_MS);
}

async function writeSecret(tx: Writer, row: RelayRow): Promise<void> {
  const sql = `UPDATE relay SET secret_kind = ?2, secret = ?3, secret_fingerprint = ?4, secret_digest = ?5, secret_set_at = ?6,
    previous_secret = NULL, previous_secret_until = NULL, updated_at = ?7 WHERE id = ?1`;
  const { id, secretKind, secret, secretFingerprint, secretDigest, secretSetAt, updatedAt } = row;
  await tx.run(sql, id, secretKind, secret, secretFingerprint, secretDigest, secretSetAt, updatedAt);
}

function refuseReplaced(name: string, version: number): Refusal {
  return new Refusal(
    "version_conflict",
    `The relay ${name} was deleted and made again since you read it: read it again and paste the secret once more.`,
    { details: { version } },
  );
}
