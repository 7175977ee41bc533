/**
 * A relay's receiver secret and signing secret: generated or pasted, checked, sealed, fingerprinted. It decides which value fits which
 * scheme and when a stored one no longer fits. A generated secret is returned exactly once. A receiver URL names no environment, so no
 * secret may verify one relay name in two environments of an app. Every function that stores a secret checks this here, by keyed digests,
 * without opening a secret. Source: the specification's "Secrets"; decisions, section 2.
 */

import { type Problem, Refusal, tellWarnings, type Warning } from "../../base/refusal.ts";
import {
  type Environment,
  isLocalEnvironment,
  type SealedProcessorSecret,
  setProcessorSecret,
} from "../../platform/account/environment.ts";
import { readStandardKey } from "../../platform/outbound/notice-signature.ts";
import { fingerprintStored, type Sealer } from "../../platform/secret/seal.ts";
import {
  isUsableSecret,
  mintReceiverSecret,
  mintSigningSecret,
  readPastedSecret,
} from "../../platform/secret/secret-text.ts";
import type { Reader, Writer } from "../../store/port.ts";
import { findAction } from "../action/registry.ts";
import { findSecretSource } from "../senders/sender-secret.ts";
import type { SecretNeed, VerifyFields } from "../verify/contract.ts";
import { bindScheme } from "../verify/registry.ts";
import type { Definition } from "./definition-shape.ts";
import {
  NO_SIGNING_OVERLAP,
  type ReceiverSecret,
  type RelayContext,
  type RelayRow,
  receiverSecretContext,
  type SecretKind,
  signingSecretContext,
} from "./relay.ts";
import { sourceNameOf } from "./source.ts";

/** A secret to store, and its text where it was just generated, to be shown once. */
export interface MadeSecret {
  columns: ReceiverSecret;
  minted: string | null;
}

const NO_SECRET: ReceiverSecret = {
  secretKind: "none",
  secret: null,
  secretFingerprint: null,
  secretDigest: null,
  secretSetAt: null,
};

/** The relay uses the environment's processor secret and stores none itself. */
const PROCESSOR_SECRET: ReceiverSecret = { ...NO_SECRET, secretKind: "processor" };

interface SecretInput {
  relayId: string;
  /** True in local development, where no provider sends and the service signs its own examples. */
  isLocal: boolean;
  definition: Definition;
  sealer: Sealer;
  nowMs: number;
}

/** The kind of secret that the receiver needs. null: the relay is no receiver, or its scheme no longer exists. */
export function secretNeedOf(definition: Pick<Definition, "trigger">): SecretNeed | null {
  const verify = verifyOf(definition);
  return verify === null ? null : (bindScheme(verify)?.secretNeed() ?? null);
}

/** Finds the provider that makes the secret itself, so that a generated one would verify nothing. */
export function findSecretIssuer({ trigger }: Pick<Definition, "trigger">): string | null {
  if (trigger.kind !== "receiver") return null;
  const source = findSecretSource(trigger);
  return source?.secret.from === "sender" ? source.title : null;
}

/**
 * Makes the secret of a new relay. Generates a shared secret if there is no value and the sender takes one. A secret or a public key that the sender
 * makes must be pasted later. Throws `invalid_input` for a value that does not fit or does not belong here.
 */
export function makeFirstSecret(making: SecretInput, value: string | null): MadeSecret {
  if (value !== null) return makeNextSecret(making, value);
  switch (secretNeedOf(making.definition)) {
    case "shared":
      return making.isLocal || findSecretIssuer(making.definition) === null
        ? mintSecret(making)
        : { columns: NO_SECRET, minted: null };
    case "processor":
      return { columns: PROCESSOR_SECRET, minted: null };
    default:
      return { columns: NO_SECRET, minted: null };
  }
}

/**
 * Makes the secret of a rotation. Throws `provider_secret_required` without a value for a public-key recipe or a sender that makes the secret. Throws
 * `invalid_input` for a value that does not fit, or a relay that stores no secret.
 */
export function makeNextSecret(making: SecretInput, value: string | null): MadeSecret {
  const verify = verifyOf(making.definition);
  const need = secretNeedOf(making.definition);
  if (verify === null || need === null) {
    throw new Refusal(
      "invalid_input",
      "This relay takes no secret: only a receiver with a current verification scheme has one.",
    );
  }
  if (need === "processor") {
    throw new Refusal(
      "invalid_input",
      "This relay takes no secret: the scheme processor uses the processor secret of the environment. Set it with relay settings set processorSecret.",
    );
  }
  if (need === "source") {
    const source = sourceNameOf(making.definition);
    throw new Refusal(
      "invalid_input",
      `This relay takes no secret: it follows ${source}, which verifies its requests. Set the secret with relay relays set-secret ${source}.`,
    );
  }
  if (value !== null) return { columns: sealPasted(making, verify, value), minted: null };
  const issuer = findSecretIssuer(making.definition);
  if (need === "shared" && issuer !== null && !making.isLocal) {
    throw new Refusal(
      "provider_secret_required",
      `${issuer} makes the secret itself, so a secret from here would verify nothing. Copy the secret at ${issuer} and paste it.`,
    );
  }
  if (need === "shared") return mintSecret(making);
  throw new Refusal(
    "provider_secret_required",
    "The recipe checks the sender's public key, which the service cannot create: paste the key that the sender shows, as hex, base64 or a PEM block.",
  );
}

/** Opens the row's secret. null: there is none, or another master key sealed it. */
export function openReceiverSecret(row: Pick<RelayRow, "id" | "secret">, sealer: Sealer): string | null {
  return row.secret === null ? null : openSecret(row.secret, receiverSecretContext(row.id), sealer);
}

/** Opens a secret. null: another master key sealed it. */
export function openSecret(sealed: Uint8Array, context: string, sealer: Sealer): string | null {
  try {
    return sealer.unseal(sealed, context);
  } catch {
    return null;
  }
}

/** Reports whether the stored secret can stay under the new definition. The secret always can if scheme and algorithm stay. */
function canKeepSecret(row: RelayRow, after: Definition, sealer: Sealer): boolean {
  const need = secretNeedOf(after);
  if (need === null) return row.secretKind === "none";
  if (need === "processor") return row.secretKind === "processor";
  if (need === "source") return row.secretKind === "none";
  if (row.secret === null)
    return row.secretKind === "none" && (need === "public_key" || findSecretIssuer(after) !== null);
  if ((need === "public_key") !== (row.secretKind === "public_key")) return false;
  const [was, is] = [verifyOf(row.definition), verifyOf(after)];
  if (is === null) return false;
  if (was?.scheme === is.scheme && was.algorithm === is.algorithm) return true;
  const text = openReceiverSecret(row, sealer);
  // A secret stored under earlier rules need only work with the scheme; today's rules for pasting do not apply.
  return text !== null && isUsableSecret(is, text);
}

function sealPasted(making: SecretInput, verify: VerifyFields, value: string): ReceiverSecret {
  const { kind, stored } = readPastedSecret(verify, value);
  return sealSecret(making, kind, stored);
}

function mintSecret(making: SecretInput): MadeSecret {
  const { trigger } = making.definition;
  const maxChars = trigger.kind === "receiver" ? findSecretSource(trigger)?.secret.maxChars : undefined;
  const minted = mintReceiverSecret(verifyOf(making.definition)?.scheme ?? "", maxChars);
  return { columns: sealSecret(making, "minted", minted), minted };
}

function sealSecret(
  making: SecretInput,
  kind: "minted" | "pasted" | "public_key",
  text: string,
): ReceiverSecret {
  const { sealer, relayId, nowMs } = making;
  return {
    secretKind: kind,
    secret: sealer.seal(text, receiverSecretContext(relayId)),
    secretFingerprint: fingerprintStored(sealer, kind, text),
    secretDigest: sealer.digest(text),
    secretSetAt: nowMs,
  };
}

function verifyOf({ trigger }: Pick<Definition, "trigger">): VerifyFields | null {
  return trigger.kind === "receiver" ? trigger.verify : null;
}

/** Makes the secret that a changed definition needs, with its warnings. null: the stored one stays. */
export async function adaptSecret(
  tx: Reader,
  { environment, sealer, nowMs }: RelayContext,
  row: RelayRow,
  after: Definition,
): Promise<(MadeSecret & { warnings: Warning[] }) | null> {
  if (canKeepSecret(row, after, sealer)) return null;
  const isLocal = isLocalEnvironment(environment);
  const made = makeFirstSecret({ relayId: row.id, isLocal, definition: after, sealer, nowMs }, null);
  await requireUnsharedSecret(tx, { environment, nowMs }, row.name, made.columns);
  const todo = listSecretWarnings(after, made.columns.secretKind, environment);
  return { ...made, warnings: row.secret === null ? todo : [makeReplacedWarning(after, made.columns, todo)] };
}

function makeReplacedWarning(
  after: Definition,
  { secretKind }: ReceiverSecret,
  todo: readonly Warning[],
): Warning {
  const source = sourceNameOf(after);
  const message =
    source !== null
      ? `The secret of ${source} verifies the requests of ${after.name} now, so its own secret is deleted.`
      : secretKind === "minted"
        ? "The stored value does not fit the new recipe, so it was deleted and a new secret was created: give it to the sender, or paste the sender's secret."
        : ["The stored value does not fit the new recipe, so it was deleted.", ...tellWarnings(todo)].join(
            " ",
          );
  return { code: "secret_replaced", field: "trigger.verify", message };
}

/** Warns of what is left to do before a receiver with such a secret can verify anything. */
export function listSecretWarnings(
  definition: Definition,
  kind: SecretKind,
  environment: Pick<Environment, "processorSecret">,
): Warning[] {
  const message = describeMissingSecret(definition, kind, environment.processorSecret !== null);
  return message === null ? [] : [{ code: "secret_missing", field: "trigger.verify", message }];
}

/** Says which secret a receiver lacks, where the sender shows it and where to store it. null: the receiver can verify requests. */
export function describeMissingSecret(
  { name, trigger }: Definition,
  kind: SecretKind,
  hasProcessorSecret: boolean,
): string | null {
  if (trigger.kind !== "receiver") return null;
  if (kind === "processor" && !hasProcessorSecret) {
    return `${name} rejects every request with bad_signature, because the environment has no processor secret. Set it with relay settings set processorSecret.`;
  }
  const need = secretNeedOf({ trigger });
  if (kind !== "none" || (need !== "shared" && need !== "public_key")) return null;
  const what = need === "shared" ? "secret" : "public key";
  const source = findSecretSource(trigger);
  const where =
    source === null
      ? `Copy the ${what} at the sender.`
      : `Find it at ${source.title}: ${source.secret.where}`;
  return `${name} rejects every request with bad_signature, because the sender's ${what} is not stored. ${where} Then paste it with relay relays set-secret ${name}.`;
}

/** The secret that signs a relay's call_url notices. A relay without a call_url has none. */
export interface MadeSigningSecret {
  columns: Pick<
    RelayRow,
    "signingSecret" | "signingSecretSetAt" | "previousSigningSecret" | "previousSigningSecretUntil"
  >;
  /** The text, to be shown once. null: the secret was removed. */
  shown: string | null;
}

export const NO_SIGNING_SECRET: MadeSigningSecret["columns"] = {
  signingSecret: null,
  signingSecretSetAt: null,
  ...NO_SIGNING_OVERLAP,
};

/** Reports whether any action posts signed notices. */
export function callsUrl(definition: Pick<Definition, "actions">): boolean {
  return definition.actions.some((action) => findAction(action.type)?.effect === "calls");
}

/** Makes a signing secret: the given text, checked as a pasted secret of no scheme, or a generated one. Throws `invalid_input`. */
export function makeSigningSecret(
  relayId: string,
  value: string | null,
  sealer: Sealer,
  nowMs: number,
): MadeSigningSecret & { shown: string } {
  const shown =
    value === null ? mintSigningSecret() : readPastedSecret({ scheme: "shared_token" }, value).stored;
  const signingSecret = sealer.seal(shown, signingSecretContext(relayId));
  return { columns: { signingSecret, signingSecretSetAt: nowMs, ...NO_SIGNING_OVERLAP }, shown };
}

/** Makes a secret for the first call_url and removes it with the last one. Returns null if the secret does not change. */
export function adaptSigningSecret(
  { sealer, nowMs }: RelayContext,
  row: RelayRow,
  after: Definition,
): (MadeSigningSecret & { warnings: Warning[] }) | null {
  const calls = callsUrl(after);
  if (calls === (row.signingSecret !== null)) return null;
  if (calls) return { ...makeSigningSecret(row.id, null, sealer, nowMs), warnings: [] };
  const message =
    "The relay no longer has a call_url action, so its signing secret was removed; a later call_url gets a new one.";
  return {
    columns: NO_SIGNING_SECRET,
    shown: null,
    warnings: [{ code: "signing_secret_removed", field: "actions", message }],
  };
}

/** Lists a problem for each action with Standard Webhooks headers that the relay's signing secret cannot sign. `given`: the caller gave the secret. */
export function checkSigningSecret(
  { id, name, definition, signingSecret }: Pick<RelayRow, "id" | "name" | "definition" | "signingSecret">,
  sealer: Sealer,
  given: boolean,
): Problem[] {
  const asking = definition.actions.flatMap((action, index) =>
    "standardWebhooks" in action && action.standardWebhooks === true ? [index] : [],
  );
  if (asking.length === 0 || signingSecret === null) return [];
  const text = openSecret(signingSecret, signingSecretContext(id), sealer);
  // If another master key sealed the secret, the relay has a problem whose remedy is a new secret.
  if (text === null || readStandardKey(text) !== null) return [];
  const todo = given
    ? "give a secret of the form whsec_ and padded base64, or give none: Relay then creates it"
    : `create a new one with relay relays rotate-secret ${name} --signing, give it to your server, then save again`;
  return asking.map((index) => {
    const field = `actions.${index}.standardWebhooks`;
    return {
      field,
      message: `\`${field}\` needs a signing secret that begins with whsec_, and the secret of ${name} has another form: ${todo}.`,
    };
  });
}

/** Returns the refusal `no_call_url`. */
export function rejectWithoutCallUrl(): Refusal {
  return new Refusal(
    "no_call_url",
    "The relay has no call_url action, so it signs nothing: add one first; saving the relay then creates its signing secret.",
  );
}

/**
 * Everything that verifies at $nowMs: a relay's own secret, the previous one during an overlap, and the environment's for the scheme
 * processor.
 */
const VERIFYING = `
  SELECT environment_id AS environmentId, name, secret_digest AS digest FROM relay WHERE secret_digest IS NOT NULL
  UNION ALL SELECT environment_id, name, previous_secret_digest FROM relay WHERE previous_secret_until > $nowMs
  UNION ALL SELECT environment_id, relay.name, processor_secret_digest FROM relay
    JOIN environment ON environment.id = relay.environment_id WHERE secret_kind = 'processor'`;

type SecretScope = Pick<RelayContext, "environment" | "nowMs">;

/**
 * Throws `invalid_input` for a secret that another environment's relay of this name verifies with. For `processor` it checks the
 * environment's own secret.
 */
export async function requireUnsharedSecret(
  tx: Reader,
  context: SecretScope,
  name: string,
  { secretKind, secretDigest }: Pick<RelayRow, "secretKind" | "secretDigest">,
): Promise<void> {
  const { id } = context.environment;
  const digest = secretKind === "processor" ? await findProcessorDigest(tx, id) : secretDigest;
  if (digest !== null) await requireUnsharedDigest(tx, context, name, digest);
}

/**
 * Stores the environment's processor secret, or removes it with null. Throws `invalid_input` for a secret of another environment, or one
 * that verifies the same relay name there.
 */
export async function storeProcessorSecret(
  tx: Writer,
  { environment, nowMs }: SecretScope,
  secret: SealedProcessorSecret | null,
): Promise<void> {
  const sql = "SELECT name FROM relay WHERE environment_id = ?1 AND secret_kind = 'processor' ORDER BY name";
  const relays = secret === null ? [] : await tx.all<{ name: string }>(sql, environment.id);
  await setProcessorSecret(tx, environment, secret, nowMs);
  if (secret === null) return;
  for (const { name } of relays) await requireUnsharedDigest(tx, { environment, nowMs }, name, secret.digest);
}

/** Lists relay names, with their app, that one secret verifies in two environments. Rows from before this rule can be so. */
export async function listSharedSecrets(tx: Reader, nowMs: number): Promise<string[]> {
  const sql = `WITH verifying AS (${VERIFYING}), placed AS (
      SELECT environmentId, environment.app_id AS appId, verifying.name AS name, digest FROM verifying
      JOIN environment ON environment.id = environmentId WHERE digest IS NOT NULL)
    SELECT DISTINCT one.appId || '/' || one.name AS name FROM placed AS one JOIN placed AS other
      ON other.appId = one.appId AND other.name = one.name AND other.digest = one.digest
        AND other.environmentId > one.environmentId
    ORDER BY 1`;
  return (await tx.all<{ name: string }>(sql, { nowMs })).map(({ name }) => name);
}

/** Finds the keyed digest of the environment's processor secret; null where none is stored. */
export async function findProcessorDigest(tx: Reader, environmentId: number): Promise<Uint8Array | null> {
  const sql = "SELECT processor_secret_digest AS digest FROM environment WHERE id = ?1";
  return (await tx.get<{ digest: Uint8Array | null }>(sql, environmentId))?.digest ?? null;
}

async function requireUnsharedDigest(
  tx: Reader,
  { environment, nowMs }: { environment: Pick<Environment, "id" | "appId">; nowMs: number },
  name: string,
  digest: Uint8Array,
): Promise<void> {
  const sql = `SELECT environment.name AS name FROM (${VERIFYING}) AS verifying
    JOIN environment ON environment.id = verifying.environmentId
    WHERE environment.app_id = $appId AND environment.id <> $id AND verifying.name = $name AND verifying.digest = $digest LIMIT 1`;
  const { id, appId } = environment;
  const other = await tx.get<{ name: string }>(sql, { nowMs, appId, id, name, digest });
  if (other === null) return;
  throw new Refusal(
    "invalid_input",
    `The relay ${name} in ${other.name} already uses this secret, and only the secret decides which environment receives a request. Create a separate webhook endpoint for this environment at the sender, and paste its secret.`,
  );
}
