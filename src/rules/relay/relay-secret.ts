/**
 * A relay's receiver secret: generated or pasted, checked, sealed, fingerprinted. It decides which value fits which scheme and when a stored
 * one no longer fits. A generated secret is returned exactly once. Source: the specification's "Secrets"; decisions, section 2.
 */

import { listMessages, Refusal, type Warning } from "../../base/refusal.ts";
import { type Environment, isLocalEnvironment } from "../../platform/account/environment.ts";
import { fingerprintStored, type Sealer } from "../../platform/secret/seal.ts";
import { isUsableSecret, mintReceiverSecret, readPastedSecret } from "../../platform/secret/secret-text.ts";
import type { Reader } from "../../store/port.ts";
import { findSecretSource } from "../senders/sender-secret.ts";
import type { SecretNeed, VerifyFields } from "../verify/contract.ts";
import { bindScheme } from "../verify/registry.ts";
import type { Definition } from "./definition-shape.ts";
import {
  type ReceiverSecret,
  type RelayContext,
  type RelayRow,
  receiverSecretContext,
  type SecretKind,
} from "./relay.ts";
import { requireUnsharedSecret } from "./shared-secret.ts";
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
        : ["The stored value does not fit the new recipe, so it was deleted.", ...listMessages(todo)].join(
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
