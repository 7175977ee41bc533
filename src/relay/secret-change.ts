/**
 * What a changed definition means for the stored receiver secret: it stays, or it is cleared in the same write and, where the new scheme
 * has one, a new one is minted. It says so in a warning; it never carries a key over as a secret or a secret as a key.
 */
import type { Environment } from "../account/environment.ts";
import type { Reader } from "../store/port.ts";
import type { Definition } from "./definition.ts";
import { type KeptSecret, makeFirstSecret, secretNeedOf, secretStays } from "./receiver-secret.ts";
import type { RelayContext } from "./relay-context.ts";
import { refuseKeptElsewhere } from "./relay-environment-secret.ts";
import type { RelayRow, SecretKind } from "./relay-row.ts";

export interface SecretChange {
  kept: KeptSecret;
  /** A new secret's text, to be shown once. */
  minted: string | null;
  warning: string | null;
}

/** The change of the row's secret that `after` asks for; null: it stays as it is. */
export async function followSecret(
  tx: Reader,
  context: RelayContext,
  row: RelayRow,
  before: Definition,
  after: Definition,
): Promise<SecretChange | null> {
  const { sealer, nowMs, environment } = context;
  if (secretStays(row, before, after, sealer)) return null;
  const made = makeFirstSecret({ relayId: row.id, definition: after, sealer, nowMs }, null);
  await refuseKeptElsewhere(tx, context, row.name, made.kept);
  const cleared = row.secret !== null;
  return { ...made, warning: warnOfChange(after, made.kept, cleared, environment) };
}

/** What is left to do before a receiver with such a secret can verify anything, or null. */
export function warnOfSecret(
  definition: Definition,
  kind: SecretKind,
  environment: Environment,
): string | null {
  if (kind === "none" && secretNeedOf(definition) === "public_key") {
    return "The recipe checks the sender's public key and none is stored: paste it, or every call answers 401 bad_signature.";
  }
  if (kind === "processor" && environment.processorSecret === null) {
    return "The scheme processor uses the environment's own processor secret and none is stored: set it in the settings, or every call answers 401 bad_signature.";
  }
  return null;
}

function warnOfChange(
  after: Definition,
  kept: KeptSecret,
  cleared: boolean,
  environment: Environment,
): string | null {
  const todo = warnOfSecret(after, kept.kind, environment);
  if (!cleared) return todo;
  if (kept.kind === "minted") {
    return "The stored value does not fit the new recipe, so it was cleared and a new secret was minted: give it to the sender, or paste the sender's own.";
  }
  return `The stored value does not fit the new recipe, so it was cleared. ${todo ?? ""}`.trim();
}
