/** The secret that signs a relay's call_url notices: generated or given, checked and sealed. Source: the specification's "Secrets". */
import { type Problem, Refusal, type Warning } from "../../base/refusal.ts";
import { readStandardKey } from "../../platform/outbound/notice-signature.ts";
import type { Sealer } from "../../platform/secret/seal.ts";
import { mintSigningSecret, readPastedSecret } from "../../platform/secret/secret-text.ts";
import { findAction } from "../action/registry.ts";
import type { Definition } from "./definition-shape.ts";
import { NO_SIGNING_OVERLAP, type RelayContext, type RelayRow, signingSecretContext } from "./relay.ts";
import { openSecret } from "./relay-secret.ts";

/** A signing secret to store. A relay without a call_url has none. */
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
