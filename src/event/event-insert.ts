/** Stores an occurrence as an event row, once per dedupe key. Nothing runs before this row is durable. */
import { newId } from "../ground/id.ts";
import { writeJson } from "../ground/json.ts";
import type { Writer } from "../store/port.ts";
import { type DedupeKey, findDuplicate, keepKey } from "./dedupe.ts";
import type { EventReason, EventTrigger } from "./event-row.ts";
import type { StoredPayload } from "./payload.ts";

interface EventDraft {
  environmentId: number;
  relayId: string;
  relayName: string;
  trigger: EventTrigger;
  payload: StoredPayload;
  /** Whether the sender did not sign the event itself. */
  unsigned: boolean;
  /** Whether a receiver's body was a form, whose literal names win over paths. */
  form?: boolean;
  dedupe: DedupeKey | null;
  nowMs: number;
  /** The relay's version whose map made a receiver's `mapped`. */
  mapVersion?: number;
  /** Set for an occurrence that is stored without a chance to run: dead from the start, replayable. */
  dead?: EventReason;
}

/** The id of the stored row; `duplicate` when the key was spent before, and then it is the first row's id. */
export async function insertEvent(
  tx: Writer,
  draft: EventDraft,
): Promise<{ id: string; duplicate: boolean }> {
  if (draft.dedupe !== null) {
    const first = await findDuplicate(tx, draft.dedupe);
    if (first !== null) return { id: first, duplicate: true };
  }
  const id = newId("evt", draft.nowMs);
  const row = await tx.get<{ seq: number }>(
    `INSERT INTO event (id, environment_id, relay_id, relay_name, trigger, state, reason, payload, truncated, preview, unsigned,
       dedupe_hash, created_at, finished_at, warnings, form, map_version)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17) RETURNING seq`,
    id,
    draft.environmentId,
    draft.relayId,
    draft.relayName,
    draft.trigger,
    draft.dead === undefined ? "queued" : "dead",
    draft.dead ?? null,
    draft.payload.text,
    draft.payload.truncated ? 1 : 0,
    draft.payload.preview,
    draft.unsigned ? 1 : 0,
    draft.dedupe?.hash ?? null,
    draft.nowMs,
    draft.dead === undefined ? null : draft.nowMs,
    draft.payload.warnings.length === 0 ? null : writeJson(draft.payload.warnings),
    draft.form === true ? 1 : 0,
    draft.mapVersion ?? null,
  );
  if (row === null) throw new Error("An inserted event answered no row.");
  if (draft.dedupe !== null) await keepKey(tx, draft.dedupe, row.seq);
  if (draft.dead === undefined) tx.touch("event", draft.relayId);
  return { id, duplicate: false };
}
