/**
 * Taking out of an event what it says about people, while the row, its state and what it did stay known: its payload, and what its results
 * quote. What is expunged never comes back, so that the event never runs again. Who is expunged for is told by the caller.
 */
import { isJsonObject, type Json, type JsonObject, parseJson, writeJson } from "../ground/json.ts";
import { Refusal } from "../ground/refusal.ts";
import type { Store, Writer } from "../store/port.ts";
import { writeAudit } from "../watch/audit.ts";
import { type EventReason, type EventState, refuseUnknownEvent } from "./event-row.ts";

/** `person_erased`: its person was erased; `payload_expunged`: somebody took the payload out by hand. */
export type Expunged = Extract<EventReason, "person_erased" | "payload_expunged">;

const EXPUNGED: ReadonlySet<Json | undefined> = new Set<Expunged>(["person_erased", "payload_expunged"]);

/** Runs that one step rewrites: ten called URLs that answered 4 KB are 40 KB a run. */
const STEP_RUNS = 25;

/** Why a stored payload is not there any more, or null. What arrives stands below names of the service's own, so no sender writes this. */
export function readExpunged(payload: Json): Expunged | null {
  if (!isJsonObject(payload) || !EXPUNGED.has(payload.expunged)) return null;
  return payload.expunged as Expunged;
}

/** Takes the payload, its preview, the warnings and what the runs quote out of the event. */
export async function expungeEvent(tx: Writer, eventSeq: number, why: Expunged): Promise<void> {
  await expungePayload(tx, eventSeq, why);
  for (let after: number | null = 0; after !== null; ) after = await expungeRuns(tx, eventSeq, after);
}

async function expungePayload(tx: Writer, eventSeq: number, why: Expunged): Promise<void> {
  await tx.run(
    "UPDATE event SET payload = ?2, truncated = 0, preview = NULL, warnings = NULL WHERE seq = ?1",
    eventSeq,
    writeJson({ expunged: why }),
  );
  await tx.run("UPDATE effect SET result = NULL WHERE event_seq = ?1", eventSeq);
}

/** Takes out what the runs after number `after` quote, some milliseconds of them; answers where to go on, or null. */
async function expungeRuns(tx: Writer, eventSeq: number, after: number): Promise<number | null> {
  const runs = await tx.all<{ number: number; results: string }>(
    `SELECT number, results FROM run WHERE event_seq = ?1 AND number > ?2 ORDER BY number LIMIT ${STEP_RUNS}`,
    eventSeq,
    after,
  );
  for (const { number, results } of runs) {
    const bare = writeJson(bareResults(parseJson(results)));
    if (bare === results) continue;
    await tx.run("UPDATE run SET results = ?3 WHERE event_seq = ?1 AND number = ?2", eventSeq, number, bare);
  }
  return runs.length < STEP_RUNS ? null : (runs.at(-1)?.number ?? null);
}

/** Which action ended how, without what it says about anyone. */
function bareResults(results: Json): Json {
  if (!Array.isArray(results)) return [];
  return results.map((result) => {
    const { type = "", outcome = "", code } = isJsonObject(result) ? result : ({} as JsonObject);
    return { type, outcome, ...(code === undefined ? {} : { code }) };
  });
}

interface ExpungeRequest {
  environmentId: number;
  id: string;
  /** Who asks, in the audit's words. */
  actor: string;
  nowMs: number;
}

/**
 * Expunges one event by hand, audited; one that waits ends `failed` (`payload_expunged`) with it. An event expunged before stays as it is.
 * Mails it caused stay in the list of mails. What many runs quote goes in steps: cut off between two, the same call goes on.
 * Refuses with `not_found`, and with `not_expungeable` one that is running.
 */
export async function expungeByHand(store: Store, request: ExpungeRequest): Promise<void> {
  const eventSeq = await store.write("erasure", (tx) => beginExpunging(tx, request));
  for (let after: number | null = 0; after !== null; ) {
    const from: number = after;
    after = await store.write("erasure", (tx) => expungeRuns(tx, eventSeq, from));
  }
}

/** Takes the payload, says so in the audit, and answers the event's number. */
async function beginExpunging(tx: Writer, request: ExpungeRequest): Promise<number> {
  const { environmentId, id, actor, nowMs } = request;
  const event = await tx.get<{ seq: number; state: EventState; payload: string }>(
    "SELECT seq, state, payload FROM event WHERE id = ?1 AND environment_id = ?2",
    id,
    environmentId,
  );
  if (event === null) throw refuseUnknownEvent(id);
  if (event.state === "running") {
    throw new Refusal(
      "not_expungeable",
      "The event is running, so its payload is in use: wait until its attempt has ended, a few seconds at most, then expunge it.",
    );
  }
  if (readExpunged(parseJson(event.payload)) !== null) return event.seq;
  const why: Expunged = "payload_expunged";
  tx.touch("erasure");
  await expungePayload(tx, event.seq, why);
  const ends = event.state === "queued";
  if (ends) {
    await tx.run(
      "UPDATE event SET state = 'failed', reason = ?2, next_attempt_at = NULL, finished_at = ?3 WHERE seq = ?1",
      event.seq,
      why,
      nowMs,
    );
  }
  await writeAudit(tx, {
    environmentId,
    atMs: nowMs,
    actor,
    action: "event.expunged",
    target: `event:${id}`,
    before: { state: event.state },
    after: { state: ends ? "failed" : event.state, payload: null },
  });
  return event.seq;
}
