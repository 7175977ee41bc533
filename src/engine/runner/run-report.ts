/** The report of a finished attempt: what the runner prints, counts and notifies after the commit. */

import type { RunNotice } from "../../platform/audit/notifier.ts";
import type { ActionResult } from "../../rules/action/contract.ts";
import type { LiveRelay } from "../../rules/relay/live-relay.ts";
import type { EventTrigger } from "../event/event.ts";
import type { AttemptResult } from "../event/run.ts";

export interface RunReport {
  result: AttemptResult;
  /** `RELAY · <name> · <trigger> · <n> actions · ok|failed` */
  line: string;
  /** The relay; null if it was deleted. */
  relay: LiveRelay | null;
  trigger: EventTrigger;
  outcome: AttemptResult["outcome"];
  /** The code of the failure, or the reason why no action ran. */
  code: string | null;
  /** The sentence about the failure that the owner reads. */
  why: string | null;
  dead: boolean;
  /** The time from the event's arrival to its first attempt; null for later attempts, and without a relay. */
  waitedMs: number | null;
  tookMs: number;
  /** The notice that follows the line on the terminal or in the log; null if the attempt succeeded without a warning. */
  notice: RunNotice | null;
}

type Place = Pick<LiveRelay, "appId" | "environmentName">;

/** `place`: where an event without a relay belongs. */
export function makeRunReport(result: AttemptResult, place: Place | null = result.relay): RunReport {
  const { event, relay, outcome, state, results, startedAtMs, finishedAtMs } = result;
  return {
    result,
    line: formatLine(result),
    relay,
    trigger: event.trigger,
    outcome,
    code: result.reason,
    why: outcome === "failed" ? lastFailure(results) : null,
    dead: state === "dead",
    waitedMs: relay !== null && event.runs === 1 ? startedAtMs - event.createdAt : null,
    tookMs: finishedAtMs - startedAtMs,
    notice: place === null ? null : noticeOf(result, place),
  };
}

/** Returns the message of the last action that failed. */
export function lastFailure(results: readonly ActionResult[]): string {
  const last = results.findLast(({ outcome }) => outcome === "failed");
  return last?.outcome === "failed" ? last.message : "no action ran.";
}

/** Formats the line in the form of the specification. A single action is written as `1 action`. */
function formatLine({ event, relay, outcome }: AttemptResult): string {
  const count = relay?.definition.actions.length ?? 0;
  return `RELAY · ${event.relayName} · ${event.trigger} · ${count === 1 ? "1 action" : `${count} actions`} · ${outcome === "ok" ? "ok" : "failed"}`;
}

function noticeOf(result: AttemptResult, place: Place): RunNotice | null {
  return result.state === "done" ? noticeOfWarnings(result, place) : noticeOfFailure(result, place);
}

function noticeOfFailure(result: AttemptResult, { appId, environmentName }: Place): RunNotice | null {
  const { event, state, nextAttemptAtMs } = result;
  if (state !== "queued" && state !== "failed" && state !== "dead") return null;
  const code = result.reason ?? "failed";
  const sentence = result.results.findLast(({ outcome }) => outcome === "failed")?.message ?? null;
  const { relayName, id: eventId } = event;
  return { appId, environmentName, relayName, eventId, state, code, sentence, nextAttemptAtMs };
}

/** The event holds all its warnings; a notice shows the first ones. */
const MAX_SHOWN_WARNINGS = 3;

function noticeOfWarnings(
  { event, warnings }: AttemptResult,
  { appId, environmentName }: Place,
): RunNotice | null {
  if (warnings.length === 0) return null;
  const shown = warnings.slice(0, MAX_SHOWN_WARNINGS);
  const more = warnings.length - shown.length;
  if (more > 0) shown.push(`${more} more of this kind are on the event.`);
  return {
    appId,
    environmentName,
    relayName: event.relayName,
    eventId: event.id,
    state: "done",
    code: "ran_with_warnings",
    sentence: shown.join(" "),
    nextAttemptAtMs: null,
  };
}
