/** One event as the API shows it: its payload, warnings, and each attempt with what every action did. */
import { toIso, toIsoOrNull } from "../ground/clock.ts";
import { type Json, parseJson } from "../ground/json.ts";
import type { Reader } from "../store/port.ts";
import { type LookedAt, reach } from "../store/walk.ts";
import { type EventState, type EventTrigger, refuseUnknownEvent } from "./event-row.ts";
import { type Expunged, readExpunged } from "./expunge.ts";

const MAX_SHOWN_RUNS = 100;

export interface EventView {
  id: string;
  relay: { id: string; name: string };
  trigger: EventTrigger;
  state: EventState;
  reason: string | null;
  attempts: number;
  replays: number;
  nextAttemptAt: string | null;
  person: { id: string; email: string | null } | null;
  /** The relay's version whose map made `mapped`; null: not known, or not a receiver's event. */
  mapVersion: number | null;
  /** Whether a later version than the one at its arrival made `mapped` anew, and otherwise. */
  mappedAgain: boolean;
  /** null once it is expunged. */
  payload: Json;
  /** Why the payload is not there any more, or null. */
  expunged: Expunged | null;
  truncated: boolean;
  preview: string | null;
  /** Whether the sender did not sign the event itself. */
  unsigned: boolean;
  warnings: Json;
  createdAt: string;
  finishedAt: string | null;
  /** The latest; long lists of attempts are cut at their beginning. */
  runs: RunView[];
  /** Earlier attempts that are not shown. */
  runsLeftOut: number;
}

export interface RunView {
  attempt: number;
  startedAt: string;
  finishedAt: string | null;
  outcome: "ok" | "failed" | "interrupted" | null;
  results: Json;
}

interface ViewRow {
  seq: number;
  id: string;
  relayId: string;
  relayName: string;
  trigger: EventTrigger;
  state: EventState;
  reason: string | null;
  attempts: number;
  replays: number;
  nextAttemptAt: number | null;
  personId: string | null;
  personEmail: string | null;
  mapVersion: number | null;
  mappedAgain: number;
  payload: string;
  truncated: number;
  preview: string | null;
  unsigned: number;
  warnings: string | null;
  createdAt: number;
  startedAt: number | null;
  finishedAt: number | null;
  runs: number;
}

interface RunRow {
  number: number;
  startedAt: number;
  finishedAt: number | null;
  outcome: RunView["outcome"];
  results: string;
}

/** As `findEventView`; refuses with `not_found`. */
export async function requireEventView(tx: Reader, environmentId: number, id: string): Promise<EventView> {
  const event = await findEventView(tx, environmentId, id);
  if (event === null) throw refuseUnknownEvent(id);
  return event;
}

/** The event with this id in this environment, or null. */
export async function findEventView(
  tx: Reader,
  environmentId: number,
  id: string,
): Promise<EventView | null> {
  const row = await tx.get<ViewRow>(
    `SELECT event.seq, event.id, event.relay_id AS relayId, event.relay_name AS relayName, event.trigger, event.state, event.reason,
       event.attempts, event.replays, event.next_attempt_at AS nextAttemptAt, event.person_id AS personId, person.email AS personEmail,
       event.map_version AS mapVersion, event.mapped_again AS mappedAgain, event.payload, event.truncated, event.preview, event.unsigned, event.warnings, event.created_at AS createdAt,
       event.started_at AS startedAt, event.finished_at AS finishedAt, event.runs
     FROM event LEFT JOIN person ON person.id = event.person_id WHERE event.id = ?1 AND event.environment_id = ?2`,
    id,
    environmentId,
  );
  if (row === null) return null;
  const runs = await findLatestRuns(tx, row.seq);
  const payload = parseJson(row.payload);
  const expunged = readExpunged(payload);
  return {
    id: row.id,
    relay: { id: row.relayId, name: row.relayName },
    trigger: row.trigger,
    state: row.state,
    reason: row.reason,
    attempts: row.attempts,
    replays: row.replays,
    nextAttemptAt: toIsoOrNull(row.nextAttemptAt),
    person: row.personId === null ? null : { id: row.personId, email: row.personEmail },
    mapVersion: row.mapVersion,
    mappedAgain: row.mappedAgain === 1,
    payload: expunged === null ? payload : null,
    expunged,
    truncated: row.truncated === 1,
    preview: row.preview,
    unsigned: row.unsigned === 1,
    warnings: row.warnings === null ? [] : parseJson(row.warnings),
    createdAt: toIso(row.createdAt),
    finishedAt: toIsoOrNull(row.finishedAt),
    runs: runs.map(toRunView),
    runsLeftOut: Math.max(0, (runs[0]?.number ?? 1) - 1),
  };
}

/** The latest attempts, oldest first: as many as one step reads. */
async function findLatestRuns(tx: Reader, seq: number): Promise<RunRow[]> {
  const looked = await tx.all<LookedAt>(
    "SELECT number AS key, octet_length(results) AS cost FROM run WHERE event_seq = ?1 ORDER BY number DESC LIMIT ?2",
    seq,
    MAX_SHOWN_RUNS,
  );
  const { floor } = reach(looked, MAX_SHOWN_RUNS);
  if (floor === null) return [];
  return await tx.all<RunRow>(
    `SELECT number, started_at AS startedAt, finished_at AS finishedAt, outcome, results FROM run
     WHERE event_seq = ?1 AND number >= ?2 ORDER BY number`,
    seq,
    floor,
  );
}

function toRunView(run: RunRow): RunView {
  return {
    attempt: run.number,
    startedAt: toIso(run.startedAt),
    finishedAt: toIsoOrNull(run.finishedAt),
    outcome: run.outcome,
    results: parseJson(run.results),
  };
}
