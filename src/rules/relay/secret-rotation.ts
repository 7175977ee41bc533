/**
 * Rotates a relay's receiver secret in three steps: read the slot, prepare the value against that definition, and store it if the
 * definition has not changed. A paste during a recipe change answers `version_conflict` and stores nothing. The previous secret becomes
 * invalid at once, or at the end of an overlap. There are never more than two valid secrets.
 */
import { toIso } from "../../base/clock.ts";
import { Refusal } from "../../base/refusal.ts";
import { findEnvironmentById, isLocalEnvironment } from "../../platform/account/environment.ts";
import { type Sealer, UNKEYED_FINGERPRINT } from "../../platform/secret/seal.ts";
import type { Reader, Writer } from "../../store/port.ts";
import type { Definition } from "./definition-shape.ts";
import {
  auditRelay,
  NO_OVERLAP,
  NO_SIGNING_OVERLAP,
  overlaps,
  processorSecretContext,
  RELAY,
  type ReceiverSecret,
  type RelayContext,
  type RelayRow,
  receiverSecretContext,
  requireRelay,
  requireRelayVersion,
  signingOverlaps,
  signingSecretContext,
  updateSignatureRetention,
  withSecret,
} from "./relay.ts";
import { updateRuleProblems } from "./relay-problem.ts";
import { type MadeSecret, makeNextSecret, openSecret } from "./relay-secret.ts";
import { requireUnsharedSecret } from "./shared-secret.ts";
import { callsUrl, makeSigningSecret, rejectWithoutCallUrl } from "./signing-secret.ts";

/** The place for a secret, in its state when the value was read. */
interface SecretSlot {
  relayId: string;
  name: string;
  version: number;
  definition: Definition;
  isLocal: boolean;
}

/** A sealed value that fits the slot. */
interface PreparedSecret {
  slot: SecretSlot;
  made: MadeSecret;
}

/** Returns the relay's slot. Throws `not_found`. */
export async function readSecretSlot(tx: Reader, environmentId: number, name: string): Promise<SecretSlot> {
  const row = await requireRelay(tx, environmentId, name);
  const environment = await findEnvironmentById(tx, environmentId);
  const isLocal = environment !== null && isLocalEnvironment(environment);
  return { relayId: row.id, name, version: row.version, definition: row.definition, isLocal };
}

/**
 * Checks and seals the value, or generates one for null. Needs no transaction. Throws `invalid_input`, or `provider_secret_required`
 * where the service cannot generate one.
 */
export function prepareSecret(
  slot: SecretSlot,
  value: string | null,
  sealer: Sealer,
  nowMs: number,
): PreparedSecret {
  const { relayId, definition, isLocal } = slot;
  return { slot, made: makeNextSecret({ relayId, isLocal, definition, sealer, nowMs }, value) };
}

/**
 * Stores the prepared secret. The old one stays valid for `overlapSeconds` (0: not at all), until `previousUntil`. `receiverSecret` is
 * returned once where it was generated. Throws `version_conflict`, `not_found`, or `invalid_input` for another environment's secret.
 */
export async function storeSecret(
  tx: Writer,
  context: RelayContext,
  { slot, made }: PreparedSecret,
  overlapSeconds = 0,
): Promise<{ receiverSecret?: string; previousUntil?: string }> {
  const before = await requireRelay(tx, context.environment.id, slot.name);
  if (before.id !== slot.relayId) throw rejectReplaced(slot.name, before.version);
  requireRelayVersion(before, slot.version);
  await requireUnsharedSecret(tx, context, slot.name, made.columns);
  const after = {
    ...withSecret(before, made.columns, context.nowMs),
    ...overlapOf(before, made.columns, context.nowMs, overlapSeconds),
  };
  await RELAY.update(tx, after);
  await updateSignatureRetention(tx, { before, after, nowMs: context.nowMs }, made.minted === null);
  await updateRuleProblems(tx, after, context.sealer, context.nowMs);
  await auditRelay(tx, context, "relay.secret_changed", before, after);
  return {
    ...(made.minted === null ? {} : { receiverSecret: made.minted }),
    ...(overlaps(after, context.nowMs) ? { previousUntil: toIso(after.previousSecretUntil) } : {}),
  };
}

/**
 * Returns the overlap of the old secret with the new one. Storing the same value again, as after a lost response, only moves the end of a
 * current overlap. A key never overlaps with a secret.
 */
function overlapOf(
  before: RelayRow,
  kept: ReceiverSecret,
  nowMs: number,
  overlapSeconds: number,
): typeof NO_OVERLAP {
  if (overlapSeconds === 0 || before.secret === null) return NO_OVERLAP;
  if ((before.secretKind === "public_key") !== (kept.secretKind === "public_key")) return NO_OVERLAP;
  const previousSecretUntil = nowMs + overlapSeconds * 1_000;
  if (isSame(before.secretDigest, kept.secretDigest)) {
    const { previousSecret, previousSecretDigest } = before;
    return overlaps(before, nowMs)
      ? { previousSecret, previousSecretDigest, previousSecretUntil }
      : NO_OVERLAP;
  }
  return { previousSecret: before.secret, previousSecretDigest: before.secretDigest, previousSecretUntil };
}

function isSame(one: Uint8Array | null, other: Uint8Array | null): boolean {
  return one !== null && other !== null && Buffer.compare(one, other) === 0;
}

/** Ends the overlap now, so that the previous secret is no longer valid. Throws `not_found`, also where there is no overlap. */
export async function endOverlap(tx: Writer, context: RelayContext, name: string): Promise<void> {
  const before = await requireRelay(tx, context.environment.id, name);
  if (!overlaps(before, context.nowMs))
    throw new Refusal(
      "not_found",
      `The relay ${name} has only its current secret: no older secret still verifies, so there is no overlap to end.`,
    );
  const after = { ...before, ...NO_OVERLAP, updatedAt: context.nowMs };
  await RELAY.update(tx, after);
  await updateRuleProblems(tx, after, context.sealer, context.nowMs);
  await auditRelay(tx, context, "relay.secret_changed", before, after);
}

/** Deletes secrets whose overlap has ended, and returns how many there were. */
export async function deletePreviousSecrets(tx: Writer, nowMs: number): Promise<number> {
  const receiver = `UPDATE relay SET previous_secret = NULL, previous_secret_digest = NULL, previous_secret_until = NULL
    WHERE previous_secret_until <= ?1`;
  const signing = `UPDATE relay SET previous_signing_secret = NULL, previous_signing_secret_until = NULL
    WHERE previous_signing_secret_until <= ?1`;
  return (await tx.run(receiver, nowMs)) + (await tx.run(signing, nowMs));
}

function rejectReplaced(name: string, version: number): Refusal {
  return new Refusal(
    "version_conflict",
    `The relay ${name} was deleted and created again after you read it: read it again and paste the secret once more.`,
    { details: { version } },
  );
}

/**
 * Replaces plain-hash fingerprints of an earlier version by keyed ones, because a guess can be tested against a plain hash. A secret that
 * cannot be opened keeps its fingerprint; the relay's problem reports it.
 */
export async function rekeyFingerprints(tx: Writer, sealer: Sealer): Promise<void> {
  const rekey = async <Id extends string | number>(
    table: string,
    column: string,
    context: (id: Id) => string,
  ): Promise<void> => {
    // Compares letters exactly, because LIKE would also match a public key's SHA256.
    const old = `SELECT id, ${column} AS sealed FROM ${table} WHERE substr(${column}_fingerprint, 1, ${UNKEYED_FINGERPRINT.length}) = ?1 AND ${column} IS NOT NULL`;
    for (const { id, sealed } of await tx.all<{ id: Id; sealed: Uint8Array }>(old, UNKEYED_FINGERPRINT)) {
      const fingerprint = fingerprintSealed(sealer, sealed, context(id));
      if (fingerprint !== null)
        await tx.run(`UPDATE ${table} SET ${column}_fingerprint = ?2 WHERE id = ?1`, id, fingerprint);
    }
  };
  await rekey("relay", "secret", receiverSecretContext);
  await rekey("environment", "processor_secret", processorSecretContext);
}

function fingerprintSealed(sealer: Sealer, sealed: Uint8Array, context: string): string | null {
  try {
    return sealer.fingerprint(sealer.unseal(sealed, context));
  } catch {
    return null;
  }
}

/**
 * Generates a new signing secret for the next notice and returns it once. Notices also carry a signature of the old one for `overlapSeconds` (0: not
 * at all), until `previousUntil`. Throws `not_found` or `no_call_url`.
 */
export async function rotateSigningSecret(
  tx: Writer,
  context: RelayContext,
  name: string,
  overlapSeconds = 0,
): Promise<{ signingSecret: string; previousUntil?: string }> {
  const before = await requireRelay(tx, context.environment.id, name);
  if (!callsUrl(before.definition)) throw rejectWithoutCallUrl();
  const { nowMs, sealer } = context;
  const { columns, shown } = makeSigningSecret(before.id, null, sealer, nowMs);
  const previous = before.signingSecret;
  // A secret that another master key sealed cannot sign.
  const canSign = previous !== null && openSecret(previous, signingSecretContext(before.id), sealer) !== null;
  const overlap =
    overlapSeconds === 0 || !canSign
      ? NO_SIGNING_OVERLAP
      : { previousSigningSecret: previous, previousSigningSecretUntil: nowMs + overlapSeconds * 1_000 };
  const after: RelayRow = { ...before, ...columns, ...overlap, updatedAt: nowMs };
  await RELAY.update(tx, after);
  await auditRelay(tx, context, "relay.signing_secret_changed", before, after);
  const until = after.previousSigningSecretUntil;
  return { signingSecret: shown, ...(until === null ? {} : { previousUntil: toIso(until) }) };
}

/** Ends the overlap of the signing secrets now, so that only the current one signs. Throws `not_found`, also where there is no overlap. */
export async function endSigningOverlap(tx: Writer, context: RelayContext, name: string): Promise<void> {
  const before = await requireRelay(tx, context.environment.id, name);
  if (!signingOverlaps(before, context.nowMs))
    throw new Refusal(
      "not_found",
      `The relay ${name} signs its calls only with its current signing secret, so there is no overlap to end.`,
    );
  const after = { ...before, ...NO_SIGNING_OVERLAP, updatedAt: context.nowMs };
  await RELAY.update(tx, after);
  await auditRelay(tx, context, "relay.signing_secret_changed", before, after);
}
