/** Replay: a final event is queued again with its attempts reset. It decides what may be replayed, never what a run then skips. */
import { parseJson } from "../ground/json.ts";
import { Refusal } from "../ground/refusal.ts";
import type { Definition } from "../relay/definition.ts";
import { actsUnsigned } from "../relay/unsigned-rule.ts";
import type { Writer } from "../store/port.ts";
import { writeAudit } from "../watch/audit.ts";
import { type EventState, FINAL_STATES } from "./event-row.ts";
import type { Expunged } from "./expunge.ts";

interface ReplayRow {
  seq: number;
  state: EventState;
  relayId: string;
  relayName: string;
  unsigned: number;
  expunged: Expunged | null;
}

export interface ReplayRequest {
  environmentId: number;
  id: string;
  /** Who asks, in the audit's words. */
  actor: string;
  nowMs: number;
}

/**
 * Queues the event again; answers its relay's id, so that the runner can be woken after the commit.
 * Refuses with not_found, not_replayable (queued or running), payload_expunged or unsigned_event.
 */
export async function replayEvent(tx: Writer, request: ReplayRequest): Promise<{ relayId: string }> {
  const event = await tx.get<ReplayRow>(
    `SELECT seq, state, relay_id AS relayId, relay_name AS relayName, unsigned,
       payload ->> '$.expunged' AS expunged FROM event WHERE id = ?1 AND environment_id = ?2`,
    request.id,
    request.environmentId,
  );
  if (event === null) {
    throw new Refusal(
      "not_found",
      `There is no event ${request.id} in this environment; events are kept for 30 days.`,
    );
  }
  if (!FINAL_STATES.has(event.state)) {
    throw new Refusal(
      "not_replayable",
      `The event is ${event.state}, so it cannot be replayed now; wait until it is done, failed or dead.`,
    );
  }
  if (event.expunged !== null) {
    const why = event.expunged === "person_erased" ? "its person was erased" : "somebody expunged it";
    throw new Refusal(
      "payload_expunged",
      `The event's payload is not there any more, because ${why}: it cannot run again; what it should have done is done by hand.`,
    );
  }
  // A relay that was deleted and made again under its name takes its earlier events up.
  const relay = await tx.get<{ id: string; definition: string }>(
    "SELECT id, definition FROM relay WHERE environment_id = ?1 AND name = ?2",
    request.environmentId,
    event.relayName,
  );
  if (relay !== null && event.unsigned === 1 && mayNoLongerAct(relay.definition)) {
    throw new Refusal(
      "unsigned_event",
      "The event arrived unsigned and its relay now acts without trustUnsignedEvents, so it never runs; set trigger.trustUnsignedEvents if you accept that, or handle it by hand.",
    );
  }
  const relayId = relay?.id ?? event.relayId;
  await tx.run(
    `UPDATE event SET state = 'queued', reason = NULL, attempts = 0, next_attempt_at = NULL, replays = replays + 1, finished_at = NULL,
       relay_id = ?2 WHERE seq = ?1`,
    event.seq,
    relayId,
  );
  await writeAudit(tx, {
    environmentId: request.environmentId,
    atMs: request.nowMs,
    actor: request.actor,
    action: "event.replayed",
    target: `event:${request.id}`,
    before: { state: event.state },
    after: { state: "queued" },
  });
  return { relayId };
}

/** Whether an unsigned event of a relay with this definition may not act (the unsigned-event rule, 5). */
function mayNoLongerAct(definitionText: string): boolean {
  const definition = parseJson(definitionText) as unknown as Definition;
  if (!actsUnsigned(definition)) return false;
  return !(definition.trigger.kind === "receiver" && definition.trigger.trustUnsignedEvents === true);
}
