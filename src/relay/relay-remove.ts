/**
 * Deleting a relay: it receives nothing from then on, and its events stay for their 30 days. Signatures accepted once are remembered
 * under its name for 24 hours more, so that making it again does not open it to a replay.
 */
import type { Writer } from "../store/port.ts";
import { clearProblemsOf } from "../watch/problem.ts";
import { auditRelay } from "./relay-audit.ts";
import type { RelayContext } from "./relay-context.ts";
import { RELAY, relayTarget, requireRelay } from "./relay-row.ts";
import { forgetSignaturesLater } from "./relay-secret.ts";

/** Deletes the relay with its secrets. Refuses with `not_found`. */
export async function deleteRelay(
  tx: Writer,
  context: Pick<RelayContext, "environment" | "actor" | "nowMs">,
  name: string,
): Promise<void> {
  const row = await requireRelay(tx, context.environment.id, name);
  await RELAY.delete(tx, row);
  await forgetSignaturesLater(tx, row, context.nowMs);
  await clearProblemsOf(tx, row.environmentId, relayTarget(name), context.nowMs);
  await auditRelay(tx, context, "relay.deleted", row, null);
}
