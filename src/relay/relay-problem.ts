/**
 * The problems a stored relay stands under, worked out from the row: an older row may break rules that a save refuses today. While one
 * stands, the receiver refuses every event. It raises and clears them; it never changes the relay.
 * Source: the specification's "Unsigned-event rule", point 4, and "Secrets", public key.
 */
import { isKeyText } from "../ground/text.ts";
import type { Sealer } from "../secret/seal.ts";
import type { Writer } from "../store/port.ts";
import { bindScheme } from "../verify/registry.ts";
import { clearProblem, raiseProblem } from "../watch/problem.ts";
import type { Definition } from "./definition-shape.ts";
import { RELAY, type RelayRow, relayTarget, type SecretKind } from "./relay.ts";
import { openReceiverSecret } from "./relay-secret.ts";
import { actsUnsigned, arrivesUnsigned } from "./unsigned-rule.ts";

type RelayProblemCode = "relay_unsigned_event" | "relay_key_as_secret";

interface RelayProblem {
  code: RelayProblemCode;
  message: string;
}

const CODES: readonly RelayProblemCode[] = ["relay_unsigned_event", "relay_key_as_secret"];

/**
 * Which rules a relay breaks with this definition and stored secret. `secretText` is the unsealed text, or null where the caller has
 * none: a key stored as a pasted secret is found only by its text.
 */
export function listRelayProblems(
  definition: Definition,
  secretKind: SecretKind,
  secretText: string | null,
): RelayProblem[] {
  const problems: RelayProblem[] = [];
  if (breaksUnsignedRule(definition)) {
    problems.push({
      code: "relay_unsigned_event",
      message:
        "The sender does not sign the event itself and the relay acts on it, so every event is refused: remove those actions (and person_email from the map), or set trigger.trustUnsignedEvents if you accept that.",
    });
  }
  if (holdsKeyAsSecret(definition, secretKind, secretText)) {
    problems.push({
      code: "relay_key_as_secret",
      message:
        "The recipe checks a shared secret but a key is stored, so every event is refused: paste the sender's secret, or change the recipe's algorithm to the key's.",
    });
  }
  return problems;
}

/** Raises what the row breaks now and clears what it no longer does. Answers whether anything changed. */
export async function settleRelayProblems(
  tx: Writer,
  row: RelayRow,
  sealer: Sealer,
  nowMs: number,
): Promise<boolean> {
  const found = listRelayProblems(row.definition, row.secretKind, openReceiverSecret(row, sealer));
  const { environmentId } = row;
  const target = relayTarget(row.name);
  let changed = false;
  for (const code of CODES) {
    const problem = found.find((candidate) => candidate.code === code);
    const moved =
      problem === undefined
        ? await clearProblem(tx, { environmentId, code, target, nowMs })
        : await raiseProblem(tx, { environmentId, code, target, message: problem.message, nowMs });
    changed ||= moved;
  }
  return changed;
}

/** As `settleRelayProblems` for every relay there is; for the start, when older rows meet newer rules. */
export async function settleEveryRelayProblem(tx: Writer, sealer: Sealer, nowMs: number): Promise<void> {
  for (const row of await RELAY.all(tx, "ORDER BY id")) {
    await settleRelayProblems(tx, row, sealer, nowMs);
  }
}

function breaksUnsignedRule(definition: Definition): boolean {
  const { trigger } = definition;
  if (trigger.kind !== "receiver" || trigger.trustUnsignedEvents === true) return false;
  return arrivesUnsigned(trigger) && actsUnsigned(definition);
}

function holdsKeyAsSecret(
  { trigger }: Definition,
  secretKind: SecretKind,
  secretText: string | null,
): boolean {
  if (trigger.kind !== "receiver") return false;
  const scheme = bindScheme(trigger.verify);
  if (scheme?.secretNeed() !== "shared") return false;
  if (secretKind === "public_key") return true;
  return scheme.name === "signature" && secretText !== null && isKeyText(secretText);
}
