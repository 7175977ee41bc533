/** Explains the state of an event in one sentence: why nothing happened, what happened, or what comes next. It uses only data of the service. */
import type { Event, Result } from "../base/answer.ts";
import { formatCount } from "../base/count-words.ts";
import { formatClock, formatWhen } from "../base/time-words.ts";
import { formatActionType } from "../relay/relay-words.ts";

/** Largest number of attempts of an event. Source: the specification's "States and transitions". */
const MAX_ATTEMPTS = 7;

interface Reason {
  tone: "good" | "waiting" | "bad" | "neutral";
  /** The one or two sentences that say what happened. */
  text: string;
  /** The service's message about it, which may contain untrusted text. */
  why: string | null;
}

/** Short words for the code of a reason, for lists. */
const CODE_WORDS: Readonly<Record<string, string>> = {
  person_not_found: "person not found",
  person_erased: "person erased",
  payload_expunged: "payload expunged",
  unsigned_event: "arrived unsigned",
  relay_deleted: "relay deleted",
  trigger_changed: "trigger changed",
  missed: "missed tick",
  interrupted: "interrupted",
};

export function formatReasonCode(code: string): string {
  return CODE_WORDS[code] ?? code.replaceAll("_", " ");
}

/** Causes that delay an event in addition to its own state: a paused relay and an environment on hold. */
interface Brake {
  held: boolean;
  paused: boolean;
}

export function explainEvent(event: Event, brake: Brake, now: number): Reason {
  switch (event.state) {
    case "running":
      return {
        tone: "waiting",
        text: `Running now: attempt ${event.attempts} of ${MAX_ATTEMPTS}.`,
        why: null,
      };
    case "queued":
      return { tone: "waiting", text: explainWaiting(event, brake, now), why: whyFailed(event) };
    case "done":
      return { tone: "good", ...explainDone(event) };
    case "failed":
      return { tone: "bad", text: explainFailed(event), why: whyFailed(event) };
    case "dead":
      return { tone: "bad", text: explainDead(event), why: whyFailed(event) };
  }
}

function explainWaiting(event: Event, brake: Brake, now: number): string {
  const failure = event.attempts > 0 ? lastFailure(event) : null;
  const failed =
    failure === null
      ? formatCutOff(event)
      : ` Attempt ${event.attempts} of ${MAX_ATTEMPTS} failed at ${nameOf(failure)}.${formatOthersDone(event)}`;
  if (brake.held && brake.paused)
    return `The event waits because the environment is on hold and the relay is paused. It runs when both end.${failed}`;
  if (brake.held)
    return `The event waits because the environment is on hold. It runs when you release the hold.${failed}`;
  if (brake.paused)
    return `The event waits because the relay is paused. It runs when you resume the relay.${failed}`;
  if (event.nextAttemptAt !== null) {
    const when =
      Date.parse(event.nextAttemptAt) <= now
        ? "now"
        : `${formatWhen(event.nextAttemptAt, now)}, at ${formatClock(event.nextAttemptAt)}`;
    const subject = event.attempts === 0 ? "The event runs" : "The next attempt is";
    return `${subject} ${when}.${failed}`;
  }
  return event.replays > 0 && event.attempts === 0
    ? "Queued for replay."
    : `${event.waits?.for === "turn" ? event.waits.message : "Queued: it runs next."}${failed}`;
}

/** Returns a sentence that the last attempt was interrupted, after a space, or an empty text. */
function formatCutOff({ reason, attempts }: Event): string {
  if (reason !== "interrupted" || attempts === 0) return "";
  return ` The service stopped during attempt ${attempts} of ${MAX_ATTEMPTS}.`;
}

function explainDone(event: Event): Pick<Reason, "text" | "why"> {
  const results = event.runs.at(-1)?.results ?? [];
  const skipped = results.filter(({ outcome }) => outcome === "skipped");
  const [single] = results;
  // The service may have stored no result of the last run.
  if (single === undefined) return { text: "The event is done.", why: null };
  if (skipped.length === 0) {
    const isOne = results.length === 1;
    const text = isOne
      ? `${formatActionType(single.type)}: done.`
      : `All ${formatCount(results.length, "action")} are done.`;
    return { text, why: null };
  }
  const why = whySkipped(skipped);
  const done = results.length - skipped.length;
  if (done > 0) return { text: `${formatCount(done, "action")} done, ${skipped.length} skipped.`, why };
  const which = results.length === 1 ? "its action" : "every action";
  return { text: `Nothing new to do: ${which} was skipped.`, why };
}

function whySkipped(skipped: readonly Result[]): string {
  const [first] = skipped;
  const edited = skipped.filter(({ code }) => code === "edited_after").length;
  if (skipped.length > 1 && edited > 0)
    return `${formatCount(edited, "action")} ${edited === 1 ? "was" : "were"} edited after the first run, as the warning says.`;
  if (skipped.length > 1) return "Each action found its own earlier work, or nothing to do.";
  if (edited > 0) return "The action was edited after its first run.";
  return first?.message ?? "The action found its own earlier work.";
}

const FAILED_WORDS: Readonly<Record<string, string>> = {
  person_not_found: "Failed: no action ran, because the person was not found.",
  person_erased: "Failed: no action ran, because the person was erased. The event never runs again.",
  payload_expunged: "Failed: its payload was expunged. The event never runs again.",
  unsigned_event:
    "Failed: no action ran, because the event is unsigned and its relay now acts without trustUnsignedEvents.",
  relay_deleted: "Failed: no action ran, because the relay was deleted while the event waited.",
  trigger_changed:
    "Failed: no action ran, because the type of the relay’s trigger changed while the event waited.",
};

function explainFailed(event: Event): string {
  return (
    FAILED_WORDS[event.reason ?? ""] ??
    `Failed: no action ran: ${formatReasonCode(event.reason ?? "unknown reason")}.`
  );
}

function explainDead(event: Event): string {
  if (event.reason === "missed") {
    return "Dead: the service was down at this tick. After a restart, Relay runs only the newest missed tick. Replay the event if you still want it.";
  }
  const failure = lastFailure(event);
  if (failure === null) {
    return event.reason === "interrupted"
      ? `Dead: the service stopped during attempt ${event.attempts} of ${MAX_ATTEMPTS}.`
      : `Dead after ${formatCount(event.attempts, "attempt")}: ${formatReasonCode(event.reason ?? "unknown reason")}.`;
  }
  const given =
    event.attempts >= MAX_ATTEMPTS
      ? `Dead after ${MAX_ATTEMPTS} attempts`
      : `Dead after a permanent failure at attempt ${event.attempts}, because a retry cannot help`;
  return `${given}: ${nameOf(failure)} failed.${formatOthersDone(event)}`;
}

function whyFailed(event: Event): string | null {
  return lastFailure(event)?.message ?? null;
}

function lastFailure(event: Event): Result | null {
  return event.runs.at(-1)?.results.findLast(({ outcome }) => outcome === "failed") ?? null;
}

function nameOf({ type }: Result): string {
  return `“${formatActionType(type)}”`;
}

/** Reports whether an action was skipped only because an earlier attempt did its work. Any other skip has a reason. */
export function foundOwnWork({ outcome, code, message }: Result): boolean {
  return outcome === "skipped" && code === undefined && message === undefined;
}

/** Returns a sentence with the number of other actions that are done. */
function formatOthersDone(event: Event): string {
  const results = event.runs.at(-1)?.results ?? [];
  const done = results.filter((result) => result.outcome === "done" || foundOwnWork(result)).length;
  if (done === 0) return "";
  return ` ${formatCount(done, "other action")} ${done === 1 ? "is" : "are"} done.`;
}
