/**
 * The secret that signs a relay's call_url notices: made when the first call_url appears, shown once, rotated by hand, dropped with the
 * last call_url. A relay without a call_url has none. Source: the specification's "Secrets".
 */
import { findAction } from "../action/registry.ts";
import { Refusal } from "../ground/refusal.ts";
import { mintSigningSecret } from "../secret/mint.ts";
import { readPastedSecret } from "../secret/paste.ts";
import type { Sealer } from "../secret/seal.ts";
import type { Writer } from "../store/port.ts";
import type { Definition } from "./definition.ts";
import { auditRelay } from "./relay-audit.ts";
import type { RelayContext } from "./relay-context.ts";
import { RELAY, type RelayRow, requireRelay, signingSecretContext } from "./relay-row.ts";

interface MadeSigningSecret {
  sealed: Uint8Array;
  /** The text, to be shown once. */
  shown: string;
}

/** Whether any action posts signed notices. */
export function callsUrl(definition: Pick<Definition, "actions">): boolean {
  return definition.actions.some((action) => findAction(action.type)?.effect === "calls");
}

/** A signing secret: the given one, checked as a pasted secret is, or a minted one. Refuses with `invalid_input`. */
export function makeSigningSecret(relayId: string, value: string | null, sealer: Sealer): MadeSigningSecret {
  const shown = value === null ? mintSigningSecret() : readGiven(value);
  return { sealed: sealer.seal(shown, signingSecretContext(relayId)), shown };
}

/** A signing secret of one's own is as strong as any pasted one; it belongs to no scheme. */
function readGiven(value: string): string {
  return readPastedSecret({ scheme: "shared_token" }, value).stored;
}

/** Refuses with `no_call_url`. */
export function refuseWithoutCallUrl(): Refusal {
  return new Refusal(
    "no_call_url",
    "The relay has no call_url action, so that nothing would be signed: add one first, and it gets its signing secret when it is saved.",
  );
}

/** Mints a new signing secret; the next notice is signed with it. Answers it once. Refuses with `not_found` or `no_call_url`. */
export async function rotateSigningSecret(
  tx: Writer,
  context: RelayContext,
  name: string,
): Promise<{ signingSecret: string }> {
  const before = await requireRelay(tx, context.environment.id, name);
  if (!callsUrl(before.definition)) throw refuseWithoutCallUrl();
  const { sealed, shown } = makeSigningSecret(before.id, null, context.sealer);
  const { nowMs } = context;
  const after: RelayRow = {
    ...before,
    signingSecret: sealed,
    signingSecretSetAt: nowMs,
    updatedAt: nowMs,
  };
  await RELAY.update(tx, after);
  await auditRelay(tx, context, "relay.signing_secret_changed", before, after);
  return { signingSecret: shown };
}
