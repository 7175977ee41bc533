/**
 * What a relay's receiver secret must be, and making one: minted or pasted, checked, sealed, fingerprinted. It decides which value
 * goes with which scheme, and when a stored one no longer does; it writes nothing, and answers a minted one exactly once.
 * Source: the specification's "Secrets".
 */
import { isKeyText } from "../ground/encoding.ts";
import { Refusal } from "../ground/refusal.ts";
import { fingerprintStored } from "../secret/fingerprint.ts";
import { mintReceiverSecret } from "../secret/mint.ts";
import { readPastedSecret } from "../secret/paste.ts";
import type { Sealer } from "../secret/seal.ts";
import type { SecretNeed, VerifyFields } from "../verify/contract.ts";
import { bindScheme } from "../verify/registry.ts";
import type { Definition } from "./definition.ts";
import { type RelayRow, receiverSecretContext, type SecretKind } from "./relay-row.ts";

/** The columns of a receiver secret. */
export interface KeptSecret {
  kind: SecretKind;
  sealed: Uint8Array | null;
  fingerprint: string | null;
  digest: Uint8Array | null;
  setAt: number | null;
}

/** A secret to keep, and its text where it was minted just now, to be shown once. */
export interface MadeSecret {
  kept: KeptSecret;
  minted: string | null;
}

export const NO_SECRET: KeptSecret = {
  kind: "none",
  sealed: null,
  fingerprint: null,
  digest: null,
  setAt: null,
};

/** The environment's own processor secret stands in; nothing is stored on the relay. */
const PROCESSOR_SECRET: KeptSecret = { ...NO_SECRET, kind: "processor" };

interface SecretMaking {
  relayId: string;
  definition: Definition;
  sealer: Sealer;
  nowMs: number;
}

/** What the definition's receiver needs; null where it is no receiver, or names a scheme that no longer exists. */
export function secretNeedOf(definition: Pick<Definition, "trigger">): SecretNeed | null {
  const verify = verifyOf(definition);
  return verify === null ? null : (bindScheme(verify)?.secretNeed() ?? null);
}

/**
 * The secret of a new relay. Without a value a shared one is minted; a public key waits to be pasted. Refuses with `invalid_input` a
 * value that does not fit, or that does not belong here.
 */
export function makeFirstSecret(making: SecretMaking, value: string | null): MadeSecret {
  if (value !== null) return makeNextSecret(making, value);
  switch (secretNeedOf(making.definition)) {
    case "shared":
      return mintSecret(making);
    case "processor":
      return { kept: PROCESSOR_SECRET, minted: null };
    default:
      return { kept: NO_SECRET, minted: null };
  }
}

/**
 * The secret of a rotation. Refuses with `provider_secret_required` a public-key recipe without a value, with `invalid_input` a value
 * that does not fit, or a relay that holds no secret of its own.
 */
export function makeNextSecret(making: SecretMaking, value: string | null): MadeSecret {
  const verify = verifyOf(making.definition);
  const need = secretNeedOf(making.definition);
  if (verify === null || need === null) {
    throw new Refusal(
      "invalid_input",
      "secret is not for this relay: only a receiver under a current verification scheme has one.",
    );
  }
  if (need === "processor") {
    throw new Refusal(
      "invalid_input",
      "secret is not for this relay: the scheme processor always uses the environment's own processor secret, which is set in the settings.",
    );
  }
  if (value !== null) return { kept: keepPasted(making, verify, value), minted: null };
  if (need === "shared") return mintSecret(making);
  throw new Refusal(
    "provider_secret_required",
    "The recipe checks the sender's public key, which the service never makes: paste the key the sender shows, as hex, base64 or a PEM block.",
  );
}

/** The row's secret opened, or null where it holds none or it was sealed under another master key. */
export function openReceiverSecret(row: Pick<RelayRow, "id" | "secret">, sealer: Sealer): string | null {
  if (row.secret === null) return null;
  try {
    return sealer.unseal(row.secret, receiverSecretContext(row.id));
  } catch {
    return null;
  }
}

/** Whether what the row holds can go on under the new definition; where the scheme and algorithm stay, it always can. */
export function secretStays(row: RelayRow, before: Definition, after: Definition, sealer: Sealer): boolean {
  const need = secretNeedOf(after);
  if (need === null) return row.secretKind === "none";
  if (need === "processor") return row.secretKind === "processor";
  if (row.secret === null) return need === "public_key" && row.secretKind === "none";
  if ((need === "public_key") !== (row.secretKind === "public_key")) return false;
  const [was, is] = [verifyOf(before), verifyOf(after)];
  if (is === null) return false;
  if (was?.scheme === is.scheme && was.algorithm === is.algorithm) return true;
  const text = openReceiverSecret(row, sealer);
  return text !== null && fits(is, need, text);
}

/** A secret stored under earlier rules need not pass today's for pasting, only work under the scheme. */
function fits(verify: VerifyFields, need: SecretNeed, text: string): boolean {
  if (need === "shared" && verify.scheme !== "hooks")
    return verify.scheme !== "signature" || !isKeyText(text);
  try {
    readPastedSecret(verify, text);
    return true;
  } catch {
    return false;
  }
}

function keepPasted(making: SecretMaking, verify: VerifyFields, value: string): KeptSecret {
  const { kind, stored } = readPastedSecret(verify, value);
  return keep(making, kind, stored);
}

function mintSecret(making: SecretMaking): MadeSecret {
  const minted = mintReceiverSecret(verifyOf(making.definition)?.scheme ?? "");
  return { kept: keep(making, "minted", minted), minted };
}

function keep(making: SecretMaking, kind: "minted" | "pasted" | "public_key", text: string): KeptSecret {
  const { sealer, relayId, nowMs } = making;
  const sealed = sealer.seal(text, receiverSecretContext(relayId));
  const fingerprint = fingerprintStored(sealer, kind, text);
  return { kind, sealed, fingerprint, digest: sealer.digest(text), setAt: nowMs };
}

function verifyOf({ trigger }: Pick<Definition, "trigger">): VerifyFields | null {
  return trigger.kind === "receiver" ? trigger.verify : null;
}
