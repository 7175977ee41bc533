/**
 * Ends an attempt, and runs one that sends nothing whole: the event's next state by the specification's state table, its run row with the audit's,
 * its alert, its line.
 */

import { MAX_ATTEMPTS, RETRY_DELAYS_MS } from "../../base/limit.ts";
import { findEnvironmentById } from "../../platform/account/environment.ts";
import type { ToldRun } from "../../platform/audit/call-notifier.ts";
import type { ActionResult } from "../../rules/action/contract.ts";
import type { LiveRelay } from "../../rules/relay/live-relay.ts";
import { type Reader, StoreUnavailable, type Writer } from "../../store/port.ts";
import { alertDead, alertNobody, alertWaiting, WAITING_CODES } from "../event/alert.ts";
import { countAttempt, type EventToRun, type EventTrigger, listDueEvents } from "../event/event.ts";
import {
  type EndedRun as EndedRow,
  type EventCame,
  finishRuns,
  numberAnew,
  RUN_RESULTS,
  type Run,
  type RunEnd,
} from "../event/run.ts";
import { type Attempt, type AttemptDeps, type AttemptEnd, UNFORESEEN } from "./attempt.ts";

/** What the runner does after the commit. */
export interface Finished {
  /** `RELAY · <name> · <trigger> · <n> actions · ok|failed` */
  line: string;
  run: EndedRun;
  /** What is told beside the line; null: all went as it should. */
  told: ToldRun | null;
}

/** How a run ended, for the metrics and for whoever watches what relays come to. */
export interface EndedRun {
  /** null: it was deleted meanwhile. */
  relay: LiveRelay | null;
  trigger: EventTrigger;
  outcome: AttemptEnd["outcome"];
  /** A failure's code, or why no action ran. */
  code: string | null;
  /** What the owner is told of a failure. */
  why: string | null;
  /** Whether the event is dead, of which the owner was told. */
  dead: boolean;
  /** From arrival to the first attempt; null for later attempts. */
  waitedMs: number | null;
  tookMs: number;
}

type NextState = Pick<RunEnd, "state" | "reason" | "nextAttemptAtMs">;

/** What an attempt leaves behind. */
interface EndedAttempt extends Run {
  relay: LiveRelay;
  warnings: Iterable<string>;
  personId: string | null;
  /** The relay's version whose map the event now follows; null: as it was. */
  mapVersion: number | null;
}

/** An attempt with how it ended. */
interface Ended {
  attempt: EndedAttempt;
  /** How its event came to it. */
  came: EventCame;
  end: AttemptEnd;
}

export type Ending = Ended & { next: NextState; row: EndedRow };

/** What an attempt's end comes to. */
function endAttempt(ended: Ended, nowMs: number): Ending {
  const { attempt, came, end } = ended;
  const next = nextStateOf(end, attempt.event.attempts, nowMs);
  return { ...ended, next, row: { run: attempt, end: runEndOf(ended, next, nowMs), came } };
}

/** Runs an attempt that sends nothing. Not written down: that is done for all of a transaction at once. An error nobody foresaw throws. */
export async function runWhole(
  tx: Writer,
  attempt: Attempt,
  came: EventCame,
  nowMs: number,
): Promise<Ending> {
  const end = (await attempt.begin(tx)) ?? (await attempt.advance(tx));
  if ("send" in end) throw new Error("A relay without sending actions wanted to send.");
  return endAttempt({ attempt, came, end }, nowMs);
}

/** Writes down how attempts ended, each of another event, in their order. */
export async function finishAttempts(
  tx: Writer,
  endings: readonly Ending[],
  nowMs: number,
): Promise<Finished[]> {
  await finishRuns(
    tx,
    endings.map(({ row }) => row),
  );
  await tellDead(tx, endings, nowMs);
  await tellWaiting(tx, endings, nowMs);
  await tellNobody(tx, endings, nowMs);
  return endings.map((ending) => finishedOf(ending, nowMs));
}

export async function finishAttempt(
  tx: Writer,
  attempt: EndedAttempt,
  end: AttemptEnd,
  nowMs: number,
): Promise<Finished> {
  const [finished] = await finishAttempts(tx, [endAttempt({ attempt, came: "read", end }, nowMs)], nowMs);
  return finished as Finished;
}

function runEndOf({ attempt, end }: Ended, next: NextState, nowMs: number): RunEnd {
  const { personId, mapVersion } = attempt;
  const outcome = end.outcome === "ok" ? "ok" : "failed";
  return { ...next, outcome, personId, warnings: [...attempt.warnings], finishedAtMs: nowMs, mapVersion };
}

/** Of each relay among these: the last one, and how many they are. Whoever sends many of them holds nobody else up. */
function* byRelay(endings: readonly Ending[]): Generator<{ last: Ending; count: number }> {
  for (const ended of Map.groupBy(endings, ({ attempt }) => attempt.relay.id).values())
    yield { last: ended.at(-1) as Ending, count: ended.length };
}

/** Once a relay for all that ended together. */
async function tellDead(tx: Writer, endings: readonly Ending[], nowMs: number): Promise<void> {
  const dead = endings.filter(({ next }) => next.state === "dead");
  for (const { last, count } of byRelay(dead)) {
    const { event, relay, results } = last.attempt;
    const why = ` (${last.next.reason ?? "failed"}): ${lastMessage(results)}`;
    const { environmentId, id: eventId } = event;
    await alertDead(tx, { environmentId, relayName: relay.name, eventId, why, count, nowMs });
  }
}

/** Once a relay for all that ended together. */
async function tellNobody(tx: Writer, endings: readonly Ending[], nowMs: number): Promise<void> {
  const nobody = endings.filter(
    ({ next, attempt }) =>
      next.state === "failed" &&
      next.reason === "person_not_found" &&
      attempt.relay.actions.some(({ type }) => SALES.has(type)),
  );
  for (const { last, count } of byRelay(nobody)) {
    const { event, relay, results } = last.attempt;
    const { environmentId, id: eventId } = event;
    const alert = { environmentId, relayName: relay.name, eventId, why: lastMessage(results), nowMs };
    await alertNobody(tx, { ...alert, count });
  }
}

/** What is paid for or paid back: where nobody is found for it, somebody's money went nowhere. */
const SALES: ReadonlySet<string> = new Set(["fulfil_product", "refund_product", "grant_plan", "revoke_plan"]);

function finishedOf({ attempt, end, next }: Ending, nowMs: number): Finished {
  const { event, relay } = attempt;
  const run: EndedRun = {
    relay,
    trigger: event.trigger,
    outcome: end.outcome,
    code: next.reason,
    why: end.outcome === "failed" ? lastMessage(attempt.results) : null,
    dead: next.state === "dead",
    waitedMs: event.runs === 1 ? attempt.startedAtMs - event.createdAt : null,
    tookMs: nowMs - attempt.startedAtMs,
  };
  const line = runLine(relay.name, event, relay.definition.actions.length, end.outcome === "ok");
  const told =
    next.state === "done"
      ? tellWarned(relay, event.id, [...attempt.warnings])
      : tellRun(relay, event.id, next, attempt.results);
  return { line, run, told };
}

function tellRun(
  { appId, environmentName, name: relayName }: Pick<LiveRelay, "appId" | "environmentName" | "name">,
  eventId: string,
  { state, reason, nextAttemptAtMs }: NextState,
  results: readonly ActionResult[],
): ToldRun | null {
  if (state !== "queued" && state !== "failed" && state !== "dead") return null;
  const code = reason ?? "failed";
  const sentence = results.findLast(({ outcome }) => outcome === "failed")?.message ?? null;
  return { appId, environmentName, relayName, eventId, state, code, sentence, nextAttemptAtMs };
}

/** Warnings told with a run's line; the event holds them all. */
const MAX_TOLD_WARNINGS = 3;

/** What ran all the same, and probably not as meant: a path that names nothing, a text that was cut. */
function tellWarned(
  { appId, environmentName, name: relayName }: LiveRelay,
  eventId: string,
  warnings: readonly string[],
): ToldRun | null {
  if (warnings.length === 0) return null;
  const more = warnings.length - MAX_TOLD_WARNINGS;
  const told = [
    ...warnings.slice(0, MAX_TOLD_WARNINGS),
    ...(more > 0 ? [`${more} more of the kind stand on the event.`] : []),
  ];
  const run = { appId, environmentName, relayName, eventId, nextAttemptAtMs: null };
  return { ...run, state: "done", code: "ran_with_warnings", sentence: told.join(" ") };
}

/** The owner is told of each cause once an event, when it first fails for it; once a relay for all that ended together. */
async function tellWaiting(tx: Writer, endings: readonly Ending[], nowMs: number): Promise<void> {
  const waiting = endings.filter(({ next }) => next.state === "queued");
  for (const code of WAITING_CODES) {
    const first: Ending[] = [];
    for (const ending of waiting) {
      const { event, results } = ending.attempt;
      const failed = results.some((result) => result.outcome === "failed" && result.code === code);
      if (failed && (event.attempts === 1 || !(await failedBefore(tx, event, code)))) first.push(ending);
    }
    for (const { last, count } of byRelay(first)) {
      const { event, relay, results } = last.attempt;
      const failed = results.find((result) => result.outcome === "failed" && result.code === code);
      const why = failed?.outcome === "failed" ? failed.message : "";
      await alertWaiting(tx, {
        environmentId: event.environmentId,
        relayName: relay.name,
        code,
        why,
        count,
        nowMs,
      });
    }
  }
}

/** Whether the attempt before failed for it too, whatever else it failed for. */
async function failedBefore(tx: Reader, { seq, runs, reason }: EventToRun, code: string): Promise<boolean> {
  if (reason === code) return true;
  const before = await RUN_RESULTS.get(tx, "WHERE event_seq = $seq AND number = $number", {
    seq,
    number: runs - 1,
  });
  return before?.results.some((result) => result.code === code) === true;
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

/** In a savepoint of its own, so that the broken one fails alone and those behind it run. */
export async function finishCarefully(
  tx: Writer,
  relay: LiveRelay,
  event: EventToRun,
  run: () => Promise<Ending>,
  nowMs: number,
  { log }: Pick<AttemptDeps, "log">,
): Promise<Finished> {
  try {
    return await tx.attempt(async () => {
      const [finished] = await finishAttempts(tx, [await run()], nowMs);
      return finished as Finished;
    });
  } catch (error) {
    if (error instanceof StoreUnavailable) throw error;
    log.error("event broke its run", { relay: relay.name, event: event.id, error });
    return finishBroken(tx, relay, await numberAnew(tx, event), nowMs);
  }
}

/** Ends up to `limit` of the due events of a relay that was deleted while they waited, itself or with its app. null: the store holds the relay, whatever memory says. */
export async function failOrphanedEvents(
  tx: Writer,
  relayId: string,
  limit: number,
  nowMs: number,
): Promise<Finished[] | null> {
  const standing = `SELECT 1 FROM relay JOIN environment ON environment.id = relay.environment_id
    WHERE relay.id = ?1 AND environment.deleted_at IS NULL`;
  if ((await tx.get(standing, relayId)) !== null) return null;
  const due = (await listDueEvents(tx, relayId, limit)).map(countAttempt);
  const end = { outcome: "failed", state: "failed", reason: "relay_deleted", nextAttemptAtMs: null } as const;
  const rest = { personId: null, warnings: [], finishedAtMs: nowMs, mapVersion: null };
  const rows: EndedRow[] = [];
  for (const event of due) {
    const run = { event: await numberAnew(tx, event), startedAtMs: nowMs, results: [], ran: null };
    rows.push({ run, end: { ...end, ...rest }, came: "read" });
  }
  await finishRuns(tx, rows);
  const [first] = due;
  const environment = first === undefined ? null : await findEnvironmentById(tx, first.environmentId);
  const where = { appId: environment?.appId ?? "", environmentName: environment?.name ?? "" };
  return due.map((event) => ({
    line: runLine(event.relayName, event, 0, false),
    run: {
      relay: null,
      trigger: event.trigger,
      outcome: "not_run",
      code: "relay_deleted",
      why: null,
      dead: false,
      waitedMs: null,
      tookMs: 0,
    },
    told: tellRun({ ...where, name: event.relayName }, event.id, end, []),
  }));
}

/** The specification's state table, from `running`. `attempts` counts the one that ended. */
function nextStateOf(end: AttemptEnd, attempts: number, nowMs: number): NextState {
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

/** The line of a run on standard output: the specification's form to the letter, so that one pattern reads them all. */
function runLine(name: string, { trigger }: EventToRun, count: number, ok: boolean): string {
  return `RELAY · ${name} · ${trigger} · ${count} actions · ${ok ? "ok" : "failed"}`;
}
