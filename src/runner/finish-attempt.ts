/** Ends an attempt: the event's next state by the specification's state table, its run row, its audit row, its alert, its line. */
import type { ActionResult } from "../action/contract.ts";
import type { EventToRun, EventTrigger } from "../event/event-row.ts";
import { auditRun } from "../event/run-audit.ts";
import { finishRun, type RanActions, type RunEnd } from "../event/run-row.ts";
import { MAX_ATTEMPTS, RETRY_DELAYS_MS } from "../ground/limit.ts";
import type { LiveRelay } from "../relay/live-relay.ts";
import type { Reader, Writer } from "../store/port.ts";
import { type AttemptEnd, UNFORESEEN } from "./attempt.ts";
import { alertDead, alertWaiting, WAITING_CODES } from "./dead-alert.ts";

/** What the runner does after the commit. */
export interface Finished {
  /** `RELAY · <name> · <trigger> · <n> actions · ok|failed` */
  line: string;
  run: EndedRun;
}

/** A run in figures, for the metrics. */
export interface EndedRun {
  trigger: EventTrigger;
  outcome: AttemptEnd["outcome"];
  /** From arrival to the first attempt; null for later attempts. */
  waitedMs: number | null;
  tookMs: number;
}

/** What an attempt leaves behind. */
interface EndedAttempt {
  event: EventToRun;
  relay: LiveRelay;
  startedAtMs: number;
  results: readonly ActionResult[];
  warnings: Iterable<string>;
  personId: string | null;
  /** The list of actions it ran; null: it ended before them. */
  ran: RanActions | null;
  /** The relay's version whose map the event now follows; null: as it was. */
  mapVersion: number | null;
}

export async function finishAttempt(
  tx: Writer,
  attempt: EndedAttempt,
  end: AttemptEnd,
  nowMs: number,
): Promise<Finished> {
  const { event, relay } = attempt;
  const next = nextStateOf(end, event.attempts, nowMs);
  await finishRun(
    tx,
    {
      eventSeq: event.seq,
      number: event.runs,
      startedAtMs: attempt.startedAtMs,
      results: attempt.results,
      ran: attempt.ran,
    },
    {
      ...next,
      outcome: end.outcome === "ok" ? "ok" : "failed",
      attempts: event.attempts,
      personId: attempt.personId,
      warnings: [...attempt.warnings],
      finishedAtMs: nowMs,
      mapVersion: attempt.mapVersion,
    },
  );
  await auditRun(tx, {
    environmentId: event.environmentId,
    eventId: event.id,
    relayName: relay.name,
    results: attempt.results,
    nowMs,
  });
  if (next.state === "dead") {
    const why = ` (${next.reason ?? "failed"}): ${lastMessage(attempt.results)}`;
    await alertDead(tx, { environmentId: event.environmentId, relayName: relay.name, why, nowMs });
  } else if (next.state === "queued") await tellWaiting(tx, attempt, nowMs);
  const run: EndedRun = {
    trigger: event.trigger,
    outcome: end.outcome,
    waitedMs: event.runs === 1 ? attempt.startedAtMs - event.createdAt : null,
    tookMs: nowMs - attempt.startedAtMs,
  };
  return { line: runLine(relay, event, end.outcome === "ok"), run };
}

/** The owner is told of each cause once an event, when it first fails for it. */
async function tellWaiting(
  tx: Writer,
  { event, relay, results }: EndedAttempt,
  nowMs: number,
): Promise<void> {
  for (const code of WAITING_CODES) {
    const failed = results.find((result) => result.outcome === "failed" && result.code === code);
    if (failed?.outcome !== "failed" || (event.attempts > 1 && (await failedBefore(tx, event, code))))
      continue;
    const { environmentId } = event;
    await alertWaiting(tx, { environmentId, relayName: relay.name, code, message: failed.message, nowMs });
  }
}

/** Whether the attempt before failed for it too, whatever else it failed for. */
async function failedBefore(tx: Reader, { seq, runs, reason }: EventToRun, code: string): Promise<boolean> {
  if (reason === code) return true;
  const sql = `SELECT 1 AS found FROM run, json_each(run.results) AS result
    WHERE run.event_seq = ?1 AND run.number = ?2 AND result.value ->> '$.code' = ?3`;
  return (await tx.get(sql, seq, runs - 1, code)) !== null;
}

/** Ends an attempt that an error nobody foresaw broke outside its actions, so that the event neither blocks its relay nor is lost. */
export function finishBroken(
  tx: Writer,
  relay: LiveRelay,
  event: EventToRun,
  nowMs: number,
): Promise<Finished> {
  const results: ActionResult[] = [
    { type: "event", outcome: "failed", code: "internal", message: UNFORESEEN },
  ];
  const unknown = { warnings: [], personId: null, ran: null, mapVersion: null };
  const attempt: EndedAttempt = { event, relay, startedAtMs: nowMs, results, ...unknown };
  return finishAttempt(tx, attempt, { outcome: "failed", code: "internal", final: false }, nowMs);
}

/** The specification's state table, from `running`. `attempts` counts the one that ended. */
function nextStateOf(
  end: AttemptEnd,
  attempts: number,
  nowMs: number,
): Pick<RunEnd, "state" | "reason" | "nextAttemptAtMs"> {
  if (end.outcome === "ok") return { state: "done", reason: null, nextAttemptAtMs: null };
  if (end.outcome === "not_run") return { state: "failed", reason: end.reason, nextAttemptAtMs: null };
  const delayMs = RETRY_DELAYS_MS[attempts - 1];
  if (end.final || attempts >= MAX_ATTEMPTS || delayMs === undefined) {
    return { state: "dead", reason: end.code, nextAttemptAtMs: null };
  }
  return { state: "queued", reason: end.code, nextAttemptAtMs: nowMs + delayMs };
}

function lastMessage(results: readonly ActionResult[]): string {
  const last = results.findLast(({ outcome }) => outcome === "failed");
  return last?.outcome === "failed" ? last.message : "no action ran.";
}

/** The line of a run on standard output. */
export function runLine(
  relay: { name: string; definition: { actions: readonly unknown[] } },
  event: { trigger: string },
  ok: boolean,
): string {
  const count = relay.definition.actions.length;
  return `RELAY · ${relay.name} · ${event.trigger} · ${count} ${count === 1 ? "action" : "actions"} · ${ok ? "ok" : "failed"}`;
}
