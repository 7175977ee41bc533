/**
 * Pausing, resuming and deleting. A paused receiver still receives and records; what it records waits. Ticks during a pause are not recorded:
 * a resumed schedule counts from its resume. A deleted relay's events stay for their 30 days, and the signatures accepted once are remembered
 * under its name for 24 hours more, so that making it again does not open it to a replay.
 */
import type { Writer } from "../store/port.ts";
import { clearProblemsOf } from "../watch/problem.ts";
import { auditRelay, RELAY, type RelayContext, type RelayRow, relayTarget, requireRelay } from "./relay.ts";
import { forgetSignaturesLater } from "./relay-secret.ts";
import { type RelayView, showRelay } from "./relay-view.ts";

/** Pauses the relay; one that is paused stays as it is. Refuses with `not_found`. */
export function pauseRelay(tx: Writer, context: RelayContext, name: string): Promise<RelayView> {
  return setState(tx, context, name, "paused");
}

/** Resumes the relay: what waited runs in order. Refuses with `not_found`. */
export function resumeRelay(tx: Writer, context: RelayContext, name: string): Promise<RelayView> {
  return setState(tx, context, name, "active");
}

async function setState(
  tx: Writer,
  context: RelayContext,
  name: string,
  state: RelayRow["state"],
): Promise<RelayView> {
  const before = await requireRelay(tx, context.environment.id, name);
  if (before.state === state) return await showRelay(tx, context, before);
  const { nowMs } = context;
  const activeSince = state === "active" ? nowMs : before.activeSince;
  const after: RelayRow = { ...before, state, activeSince, updatedAt: nowMs };
  await RELAY.update(tx, after);
  await auditRelay(tx, context, state === "paused" ? "relay.paused" : "relay.resumed", before, after);
  return await showRelay(tx, context, after);
}

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
