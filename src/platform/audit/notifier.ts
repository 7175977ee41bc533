/**
 * Notifies the operator of rejected requests, failed runs, schedules and problems. A server logs a warning, at most one a minute for each
 * relay and cause. Local development prints a bounded number of lines on the terminal. Messages contain no body and no secret.
 */
import { type Clock, toIso } from "../../base/clock.ts";
import { findMeaning } from "../../base/code/code.ts";
import { HOUR_MS, MINUTE_MS } from "../../base/limit.ts";
import type { Log } from "../../base/log.ts";
import { cutToLine, plain } from "../../base/text.ts";

/** Request lines on the terminal in a minute; further ones are counted. */
const MAX_LINES_A_MINUTE = 60;
/** Equal requests that get a line each; more of them share one line with their number. */
const MAX_LINES_EACH = 3;
/** Ignored requests are logged at once, then at most this often with a count, because filtering is normal. */
const IGNORED_EVERY_MS = HOUR_MS;
const MAX_SHOWN_CHARS = 400;
/** Aligns the line below a run's line. */
const INDENT = " ".repeat("RELAY · ".length);

/** App, environment and relay, by name. */
interface Where {
  appId: string;
  environmentName: string;
  relayName: string;
}

/** One or several requests of the same cause that were rejected or ignored, or whose event waits. */
export interface CallNotice extends Where {
  /** A rejection code, or `ignored`, `duplicate`, `waiting`. */
  code: string;
  cause: string;
  /** The id of the first event, for a duplicate. */
  eventId: string | null;
  /** The number of requests. */
  calls: number;
  /** True if the relay that ignored the request acts on other requests. */
  usual: boolean;
}

/** One or several requests to a receiver that does not exist. `name` is untrusted, but free of control characters. */
export interface UnknownReceiverNotice {
  appId: string;
  name: string;
  cause: string;
  calls: number;
}

/** A run that failed or ended with warnings. */
export interface RunNotice extends Where {
  eventId: string;
  state: "queued" | "failed" | "dead" | "done";
  code: string;
  /** A sentence about the failure; null: the code says enough. */
  sentence: string | null;
  /** The time when the run is retried. */
  nextAttemptAtMs: number | null;
}

/** The time of a schedule's next tick, and why it is not sooner. */
interface ScheduleNotice extends Where {
  message: string;
}

/** A problem that was raised or cleared. */
export interface ProblemNotice extends Omit<Where, "relayName"> {
  code: string;
  /** A target such as `relay:<name>`. */
  target: string;
  message: string;
  now: "raised" | "cleared";
}

interface NotifierDeps {
  log: Log;
  clock: Clock;
  /** Local development: the terminal and the program's name there. null: a server. */
  terminal: { print(line: string): void; program: string } | null;
}

export class Notifier {
  readonly #deps: NotifierDeps;
  #lines = 0;
  #leftOut = 0;
  #cancel: (() => void) | null = null;
  /** The last ignored request of each relay that was not logged yet, with its count. */
  readonly #ignored = new Map<string, { last: CallNotice | null; cancel: () => void }>();

  constructor(deps: NotifierDeps) {
    this.#deps = deps;
  }

  notifyCall(call: CallNotice): void {
    const { log, terminal } = this.#deps;
    const { code, cause, calls, eventId } = call;
    if (terminal === null && code === "ignored") this.#logIgnored(call);
    else if (terminal === null && code === "handshake") {
      log.info("a handshake was answered", { ...fieldsOf(call), code, cause, calls });
    } else if (terminal === null) {
      log.warn(code === "waiting" ? "an event waits" : "a request created no event", {
        ...fieldsOf(call),
        code,
        cause,
        ...(eventId === null ? {} : { event: eventId }),
        calls,
      });
    } else {
      const event = eventId === null ? "" : ` · ${eventId}`;
      const status = findMeaning(code, ["refusal"])?.status ?? 200;
      this.#printCalls(`${call.relayName} · ${status} ${code} · ${shorten(cause)}${event}`, calls);
    }
  }

  /** Logs the first ignored request at once and those of the next hour together. It is a warning only while the relay acts on no request. */
  #logIgnored(call: CallNotice): void {
    const key = `${call.appId} ${call.environmentName} ${call.relayName}`;
    const open = this.#ignored.get(key);
    if (open !== undefined) {
      open.last = { ...call, calls: call.calls + (open.last?.calls ?? 0) };
      return;
    }
    this.#notifyIgnored("a request created no event", call);
    this.#beginHour(key);
  }

  #beginHour(key: string): void {
    const cancel = this.#deps.clock.after(IGNORED_EVERY_MS, () => this.#endHour(key));
    this.#ignored.set(key, { last: null, cancel });
  }

  #endHour(key: string): void {
    const open = this.#ignored.get(key);
    this.#ignored.delete(key);
    if (open?.last == null) return;
    const { last } = open;
    this.#notifyIgnored(`a request created no event: ${last.calls} more in the last hour`, last);
    this.#beginHour(key);
  }

  #notifyIgnored(message: string, call: CallNotice): void {
    const { code, cause, calls } = call;
    this.#deps.log[call.usual ? "info" : "warn"](message, { ...fieldsOf(call), code, cause, calls });
  }

  notifyUnknownCall({ appId, name, cause, calls }: UnknownReceiverNotice): void {
    const code = "unknown_receiver";
    const { log, terminal } = this.#deps;
    if (terminal === null) log.warn("a request named no receiver", { app: appId, name, code, cause, calls });
    else
      this.#printCalls(
        `${name} · ${findMeaning(code, ["refusal"])?.status ?? 404} ${code} · ${shorten(cause)}`,
        calls,
      );
  }

  /** Prints below the run's own line. */
  notifyRun(run: RunNotice): void {
    const { log, clock, terminal } = this.#deps;
    const { state, code, eventId, nextAttemptAtMs } = run;
    const why = shorten(run.sentence ?? findMeaning(code, ["result", "warning"])?.what ?? "");
    if (terminal === null) {
      const next = nextAttemptAtMs === null ? {} : { nextAttemptAt: toIso(nextAttemptAtMs) };
      log.warn(LOG_MESSAGES[state], { ...fieldsOf(run), code, why, event: eventId, ...next });
      return;
    }
    const next =
      nextAttemptAtMs === null ? RETRY_PHRASES[state] : `retry ${formatWhen(nextAttemptAtMs, clock.now())}`;
    terminal.print(INDENT + plain(`${code} · ${why} · ${next} · ${terminal.program} events show ${eventId}`));
  }

  notifySchedule(schedule: ScheduleNotice): void {
    const { log, terminal } = this.#deps;
    const { relayName, message } = schedule;
    if (terminal === null)
      log.info("a schedule waits for its tick", { ...fieldsOf(schedule), why: shorten(message) });
    else terminal.print(`TICK  · ${plain(`${relayName} · ${shorten(message)}`)}`);
  }

  notifyProblem({ appId, environmentName, code, target, message, now }: ProblemNotice): void {
    const { log, terminal } = this.#deps;
    if (terminal === null) {
      const where = { app: appId, environment: environmentName, target };
      log.warn(now === "raised" ? "a problem exists" : "a problem is resolved", {
        ...where,
        code,
        why: shorten(message),
      });
      return;
    }
    const words = now === "raised" ? shorten(message) : "over";
    terminal.print(plain(`PROBLEM · ${target.replace(/^relay:/, "")} · ${code} · ${words}`));
  }

  /** Reports what was left out, and stops. */
  stop(): void {
    this.#cancel?.();
    this.#cancel = null;
    this.#endMinute();
    for (const { last, cancel } of this.#ignored.values()) {
      cancel();
      if (last !== null) this.#notifyIgnored(`a request created no event: ${last.calls} more`, last);
    }
    this.#ignored.clear();
  }

  #printCalls(words: string, calls: number): void {
    const line = `CALL  · ${plain(words)}`;
    if (calls > MAX_LINES_EACH) this.#print(`${line} · ${calls} calls`, calls);
    else for (let printed = 0; printed < calls; printed++) this.#print(line, 1);
  }

  #print(line: string, calls: number): void {
    const { clock, terminal } = this.#deps;
    if (this.#lines === 0) this.#cancel = clock.after(MINUTE_MS, () => this.#endMinute());
    if (this.#lines >= MAX_LINES_A_MINUTE) this.#leftOut += calls;
    else {
      this.#lines += 1;
      terminal?.print(line);
    }
  }

  #endMinute(): void {
    const { terminal } = this.#deps;
    if (this.#leftOut > 0)
      terminal?.print(
        `CALL  · ${this.#leftOut} more requests created no event in the last minute · ${terminal.program} requests list`,
      );
    this.#lines = 0;
    this.#leftOut = 0;
  }
}

const LOG_MESSAGES: Readonly<Record<RunNotice["state"], string>> = {
  queued: "a run failed and will be retried",
  failed: "an event ended without running",
  dead: "an event is dead",
  done: "an event was done with warnings",
};

const RETRY_PHRASES: Readonly<Record<RunNotice["state"], string>> = {
  queued: "retries now",
  failed: "not retried",
  dead: "dead, not retried automatically",
  done: "done anyway",
};

function fieldsOf({ appId, environmentName, relayName }: Where) {
  return { app: appId, environment: environmentName, relay: relayName };
}

/** Formats a time as `at 12:01:00 UTC, in 1 minute`. A retry is at most 16 hours away. */
function formatWhen(atMs: number, nowMs: number): string {
  const inMs = Math.max(0, atMs - nowMs);
  const [count, unit] =
    inMs >= HOUR_MS - MINUTE_MS
      ? [Math.round(inMs / HOUR_MS), "hour"]
      : inMs >= MINUTE_MS - 1_000
        ? [Math.round(inMs / MINUTE_MS), "minute"]
        : [Math.round(inMs / 1_000), "second"];
  return `at ${toIso(atMs).slice(11, 19)} UTC, in ${count} ${unit}${count === 1 ? "" : "s"}`;
}

function shorten(text: string): string {
  const line = cutToLine(text, MAX_SHOWN_CHARS);
  return line.replace(/\.$/, "");
}
