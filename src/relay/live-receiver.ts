/**
 * A relay's receiver ready to verify: its verifier prepared with the unsealed secret, or the reason why it verifies nothing. It throws where
 * a secret cannot be opened; it never shows one.
 */
import { isKeyText } from "../ground/text.ts";
import type { Sealer } from "../secret/seal.ts";
import type { When } from "../trigger/receiver.ts";
import type { BodyKinds, Verifier, VerifyFields } from "../verify/contract.ts";
import { bindScheme, RENAMED_SCHEME } from "../verify/registry.ts";
import type { Definition } from "./definition-shape.ts";
import { type CompiledMap, compileMap } from "./event-map.ts";
import { processorSecretContext, type RelayRow, receiverSecretContext, receiverUrl } from "./relay.ts";
import { arrivesUnsigned } from "./unsigned-rule.ts";

/** Why a receiver verifies nothing at all. */
export type Closed =
  | "scheme_renamed"
  | "relay_unsigned_event"
  | "relay_key_as_secret"
  | "no_secret"
  /** The stored definition or secret cannot be opened; the log says why. */
  | "unreadable";

export interface LiveReceiver {
  /** The receiver URL, byte for byte as the relay's page shows it. */
  url: string;
  /** null while closed. */
  verifier: Verifier | null;
  closed: Closed | null;
  /** What bodies its scheme reads. */
  bodies: BodyKinds;
  map: CompiledMap;
  when: When | null;
  /** Whether the sender does not sign the event itself. */
  unsigned: boolean;
}

type ReceiverRow = Pick<
  RelayRow,
  "id" | "name" | "environmentId" | "secretKind" | "secret" | "previousSecret" | "previousSecretUntil"
> & { appId: string; processorSecret: Uint8Array | null };

export function openReceiver(
  row: ReceiverRow,
  definition: Definition,
  barsUnsigned: boolean,
  deps: { sealer: Sealer; baseUrl: () => string },
): LiveReceiver | null {
  const trigger = definition.trigger;
  if (trigger.kind !== "receiver") return null;
  const renamed = trigger.verify.scheme === RENAMED_SCHEME;
  const unsigned = !renamed && arrivesUnsigned(trigger);
  const opened: Closed | Verifier = renamed
    ? "scheme_renamed"
    : unsigned && barsUnsigned
      ? "relay_unsigned_event"
      : openVerifier(row, trigger.verify, deps.sealer);
  return {
    url: receiverUrl(deps.baseUrl(), row.appId, row.name),
    verifier: typeof opened === "string" ? null : opened,
    closed: typeof opened === "string" ? opened : null,
    bodies: bindScheme(trigger.verify)?.bodies ?? "json_or_form",
    map: compileMap(trigger.map),
    when: trigger.when ?? null,
    unsigned,
  };
}

function openVerifier(row: ReceiverRow, verify: VerifyFields, sealer: Sealer): Closed | Verifier {
  const scheme = bindScheme(verify);
  if (scheme === null) return "no_secret";
  const need = scheme.secretNeed();
  if (need === "processor") {
    if (row.processorSecret === null) return "no_secret";
    return scheme.prepare(sealer.unseal(row.processorSecret, processorSecretContext(row.environmentId)));
  }
  if (row.secret === null) return "no_secret";
  if (need === "public_key" && row.secretKind !== "public_key") return "no_secret";
  const secret = sealer.unseal(row.secret, receiverSecretContext(row.id));
  if (need === "shared" && (row.secretKind === "public_key" || isKeyText(secret)))
    return "relay_key_as_secret";
  const verifier = scheme.prepare(secret);
  if (row.previousSecret === null || row.previousSecretUntil === null) return verifier;
  const previous = sealer.unseal(row.previousSecret, receiverSecretContext(row.id));
  if (need === "shared" && isKeyText(previous)) return verifier;
  return overlapVerifiers(verifier, scheme.prepare(previous), row.previousSecretUntil);
}

/** `untilMs`: from then on (milliseconds since the epoch) `previous` verifies nothing. */
function overlapVerifiers(present: Verifier, previous: Verifier, untilMs: number): Verifier {
  return {
    verify(call) {
      const verdict = present.verify(call);
      if (verdict.verified || call.nowMs >= untilMs) return verdict;
      const earlier = previous.verify(call);
      return earlier.verified ? earlier : verdict;
    },
  };
}
