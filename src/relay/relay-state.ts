/**
 * Pausing and resuming. A paused receiver still receives and records; what it records waits. Ticks during a pause are not recorded:
 * a resumed schedule counts from its resume. It never touches events.
 */
import type { Writer } from "../store/port.ts";
import { auditRelay } from "./relay-audit.ts";
import type { RelayContext } from "./relay-context.ts";
import { RELAY, type RelayRow, requireRelay } from "./relay-row.ts";
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
