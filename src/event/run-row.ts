/** Writes down a run: its results as they come, and the state the event is in afterwards. */
import type { ActionResult } from "../action/contract.ts";
import { writeJson } from "../ground/json.ts";
import type { Writer } from "../store/port.ts";
import type { EventState } from "./event-row.ts";

export interface RunProgress {
  eventSeq: number;
  /** The run's number among all of the event's, from 1. */
  number: number;
  startedAtMs: number;
  results: readonly ActionResult[];
}

/** Keeps the results so far of a run that goes on outside the database. */
export async function keepRunProgress(tx: Writer, run: RunProgress): Promise<void> {
  await tx.run(
    `INSERT INTO run (event_seq, number, started_at, results) VALUES (?1, ?2, ?3, ?4)
     ON CONFLICT (event_seq, number) DO UPDATE SET results = excluded.results`,
    run.eventSeq,
    run.number,
    run.startedAtMs,
    writeJson(run.results),
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
}

/** Ends a run and moves its event on, in one go. */
export async function finishRun(tx: Writer, run: RunProgress, end: RunEnd): Promise<void> {
  await tx.run(
    `INSERT INTO run (event_seq, number, started_at, finished_at, outcome, results) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
     ON CONFLICT (event_seq, number) DO UPDATE SET results = excluded.results, finished_at = excluded.finished_at, outcome = excluded.outcome`,
    run.eventSeq,
    run.number,
    run.startedAtMs,
    end.finishedAtMs,
    end.outcome,
    writeJson(run.results),
  );
  await tx.run(
    `UPDATE event SET state = ?2, reason = ?3, attempts = ?4, runs = ?5, next_attempt_at = ?6, person_id = coalesce(?7, person_id),
       warnings = coalesce(?8, warnings),
       started_at = ?9, finished_at = ?10 WHERE seq = ?1`,
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
  );
}
