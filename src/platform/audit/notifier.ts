/**
 * What is told by itself of calls that became no event and of runs that failed: on a server a warning in the log, which folds those of one
 * relay and cause to one a minute with a count; in local development lines on the terminal, so many a minute. It decides the words and
 * how many; never what is kept, and it is handed no body and no secret.
 */
import { type Clock, toIso } from "../../base/clock.ts";
import { HOUR_MS, MINUTE_MS } from "../../base/limit.ts";
import type { Log } from "../../base/log.ts";
import { explainCode } from "../../base/result-code.ts";
import { cutToLine, plain } from "../../base/text.ts";

/** Lines of calls on the terminal in a minute; what comes beyond is counted. */
const MAX_LINES_A_MINUTE = 60;
/** Equal calls that are told with a line each; more at once are one line with their number. */
const MAX_LINES_EACH = 3;
/** What `when` ignores is told at once, and then so often with a count: a busy sender's filter is no trouble. */
const IGNORED_EVERY_MS = HOUR_MS;
const MAX_SHOWN_CHARS = 400;
/** Under a run's own words. */
const INDENT = " ".repeat("RELAY · ".length);

/** Where something happened, by the names that people use. */
interface Where {
  appId: string;
  environmentName: string;
  relayName: string;
}

/** A call, or several of the same cause, that became no event or whose event waits. */
export interface CallNotice extends Where {
  /** A refusal's code, or `ignored`, `duplicate`, `waiting`. */
  code: string;
  cause: string;
  /** The first one's on a duplicate, its own where it waits. */
  eventId: string | null;
  /** How many it stands for. */
  calls: number;
  /** Ignored, by a relay that acts on other calls. */
  usual: boolean;
}

/** A call, or several, to a name that no receiver of the app has; the name is a stranger's, and clean. */
export interface UnknownReceiverNotice {
  appId: string;
  name: string;
  cause: string;
  calls: number;
}

/** A run that failed, or that was done with warnings. */
export interface RunNotice extends Where {
  eventId: string;
  state: "queued" | "failed" | "dead" | "done";
  code: string;
  /** What failed; null: the code says it all. */
  sentence: string | null;
  /** When it is tried again. */
  nextAttemptAtMs: number | null;
}

/** When a schedule ticks next, and why not sooner. */
interface ScheduleNotice extends Where {
  message: string;
}

/** A problem that begins to stand, or does not stand any more. */
export interface ProblemNotice extends Omit<Where, "relayName"> {
  code: string;
  /** Such as `relay:<name>`. */
  target: string;
  message: string;
  now: "raised" | "cleared";
}

interface NotifierDeps {
  log: Log;
  clock: Clock;
  /** Local development: takes the lines of the terminal, and says what the program is called there. null: a server. */
  terminal: { print(line: string): void; program: string } | null;
}

export class Notifier {
  readonly #deps: NotifierDeps;
  #lines = 0;
  #leftOut = 0;
  #cancel: (() => void) | null = null;
  /** By relay: the last ignored call that was not told yet, with how many there were. */
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
      log.warn(code === "waiting" ? "an event waits" : "a call became no event", {
        ...fieldsOf(call),
        code,
        cause,
        ...(eventId === null ? {} : { event: eventId }),
        calls,
      });
    } else {
      const event = eventId === null ? "" : ` · ${eventId}`;
      const status = explainCode(code)?.status ?? 200;
      this.#printCalls(`${call.relayName} · ${status} ${code} · ${shorten(cause)}${event}`, calls);
    }
  }

  /** The first at once, those of the hour after it together. It is a warning only while the relay acts on nothing. */
  #logIgnored(call: CallNotice): void {
    const key = `${call.appId} ${call.environmentName} ${call.relayName}`;
    const open = this.#ignored.get(key);
    if (open !== undefined) {
      open.last = { ...call, calls: call.calls + (open.last?.calls ?? 0) };
      return;
    }
    this.#notifyIgnored("a call became no event", call);
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
    this.#notifyIgnored(`a call became no event: ${last.calls} more in the last hour`, last);
    this.#beginHour(key);
  }

  #notifyIgnored(message: string, call: CallNotice): void {
    const { code, cause, calls } = call;
    this.#deps.log[call.usual ? "info" : "warn"](message, { ...fieldsOf(call), code, cause, calls });
  }

  notifyUnknownCall({ appId, name, cause, calls }: UnknownReceiverNotice): void {
    const code = "unknown_receiver";
    const { log, terminal } = this.#deps;
    if (terminal === null) log.warn("a call named no receiver", { app: appId, name, code, cause, calls });
    else this.#printCalls(`${name} · ${explainCode(code)?.status ?? 404} ${code} · ${shorten(cause)}`, calls);
  }

  /** Follows the run's own line. */
  notifyRun(run: RunNotice): void {
    const { log, clock, terminal } = this.#deps;
    const { state, code, eventId, nextAttemptAtMs } = run;
    const why = shorten(run.sentence ?? explainCode(code)?.when ?? "");
    if (terminal === null) {
      const next = nextAttemptAtMs === null ? {} : { nextAttemptAt: toIso(nextAttemptAtMs) };
      log.warn(LOG_MESSAGES[state], { ...fieldsOf(run), code, why, event: eventId, ...next });
      return;
    }
    const next =
      nextAttemptAtMs === null
        ? RETRY_PHRASES[state]
        : `tried again ${formatWhen(nextAttemptAtMs, clock.now())}`;
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
      log.warn(now === "raised" ? "a problem stands" : "a problem is over", {
        ...where,
        code,
        why: shorten(message),
      });
      return;
    }
    const words = now === "raised" ? shorten(message) : "over";
    terminal.print(plain(`PROBLEM · ${target.replace(/^relay:/, "")} · ${code} · ${words}`));
  }

  /** Says what was left out and nothing more. */
  stop(): void {
    this.#cancel?.();
    this.#cancel = null;
    this.#endMinute();
    for (const { last, cancel } of this.#ignored.values()) {
      cancel();
      if (last !== null) this.#notifyIgnored(`a call became no event: ${last.calls} more`, last);
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
        `CALL  · ${this.#leftOut} more became no event in the last minute · ${terminal.program} calls list`,
      );
    this.#lines = 0;
    this.#leftOut = 0;
  }
}

const LOG_MESSAGES: Readonly<Record<RunNotice["state"], string>> = {
  queued: "a run failed and is tried again",
  failed: "an event ended without running",
  dead: "an event is dead",
  done: "an event was done with warnings",
};

const RETRY_PHRASES: Readonly<Record<RunNotice["state"], string>> = {
  queued: "tried again now",
  failed: "not tried again",
  dead: "dead, not tried again by itself",
  done: "done all the same",
};

function fieldsOf({ appId, environmentName, relayName }: Where) {
  return { app: appId, environment: environmentName, relay: relayName };
}

/** `at 12:01:00 UTC, in 1 minute`: a retry is at most 16 hours away. */
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
