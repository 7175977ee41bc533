/** Writes down a run: its results as they come, and the state the event is in afterwards. */
import type { ActionResult } from "../action/contract.ts";
import { writeJson } from "../ground/json.ts";
import type { Writer } from "../store/port.ts";
import type { BoundKey } from "./effect.ts";
import type { EventState } from "./event-row.ts";

interface RunProgress {
  eventSeq: number;
  /** The run's number among all of the event's, from 1. */
  number: number;
  startedAtMs: number;
  results: readonly ActionResult[];
  /** The list of actions it ran; null: it ended before them, and the slots of the attempt before it stand. */
  ran: RanActions | null;
}

/** Which list of actions an attempt ran, and which work each of them stands for. */
export interface RanActions {
  /** Under which `keepActionList` keeps the list. */
  fingerprint: string;
  /** One key an action; null: each stands for its own first work. */
  keys: readonly BoundKey[] | null;
}

/** Keeps the results so far of a run that goes on outside the database. */
export async function keepRunProgress(tx: Writer, run: RunProgress): Promise<void> {
  await tx.run(
    `INSERT INTO run (event_seq, number, started_at, results, actions, work) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
     ON CONFLICT (event_seq, number) DO UPDATE SET results = excluded.results, actions = excluded.actions, work = excluded.work`,
    run.eventSeq,
    run.number,
    run.startedAtMs,
    writeJson(run.results),
    ...ranColumns(run),
  );
}

export interface RunEnd {
  outcome: "ok" | "failed";
  state: EventState;
  /** An EventReason, or the code of the action's failure. */
  reason: string | null;
  /** Attempts since arrival or replay, this one included. */
  attempts: number;
  /** When the retry is due, or null. */
  nextAttemptAtMs: number | null;
  /** null: an earlier attempt's person stays. */
  personId: string | null;
  /** Earlier attempts' included; none: those stay. */
  warnings: readonly string[];
  finishedAtMs: number;
  /** The relay's version whose map `mapped` now follows; null: as it was. */
  mapVersion: number | null;
}

/** Ends a run and moves its event on, in one go. */
export async function finishRun(tx: Writer, run: RunProgress, end: RunEnd): Promise<void> {
  await tx.run(
    `INSERT INTO run (event_seq, number, started_at, finished_at, outcome, results, actions, work) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
     ON CONFLICT (event_seq, number) DO UPDATE SET results = excluded.results, finished_at = excluded.finished_at, outcome = excluded.outcome,
       actions = coalesce(excluded.actions, actions), work = CASE WHEN excluded.actions IS NULL THEN work ELSE excluded.work END`,
    run.eventSeq,
    run.number,
    run.startedAtMs,
    end.finishedAtMs,
    end.outcome,
    writeJson(run.results),
    ...ranColumns(run),
  );
  await tx.run(
    `UPDATE event SET state = ?2, reason = ?3, attempts = ?4, runs = ?5, next_attempt_at = ?6, person_id = coalesce(?7, person_id),
       warnings = coalesce(?8, warnings),
       started_at = ?9, finished_at = ?10, map_version = coalesce(?11, map_version) WHERE seq = ?1`,
    run.eventSeq,
    end.state,
    end.reason,
    end.attempts,
    run.number,
    end.nextAttemptAtMs,
    end.personId,
    end.warnings.length === 0 ? null : writeJson(end.warnings),
    run.startedAtMs,
    end.state === "queued" ? null : end.finishedAtMs,
    end.mapVersion,
  );
}

function ranColumns({ ran }: RunProgress): [actions: string | null, work: string | null] {
  return ran === null ? [null, null] : [ran.fingerprint, ran.keys === null ? null : writeJson(ran.keys)];
}

/** Keeps a payload whose `mapped` a later map made anew. */
export async function keepMappedAgain(tx: Writer, eventSeq: number, payload: string): Promise<void> {
  await tx.run("UPDATE event SET payload = ?2, mapped_again = 1 WHERE seq = ?1", eventSeq, payload);
}
