/**
 * Writes the structured log: a level, a message and named fields on one line, as text or JSON. It never contains a secret or a body. Fields that
 * carry one by name are blanked, and keys and secrets in texts are removed.
 */
import { type Clock, toIso } from "./clock.ts";
import { writeJson } from "./json.ts";
import { withoutDetails } from "./text.ts";

export type LogLevel = "debug" | "info" | "warn" | "error";
export type LogFields = Readonly<Record<string, unknown>>;

export interface Log {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  /** A field named `error` that holds an Error is written with its name, message and stack. */
  error(message: string, fields?: LogFields): void;
}

interface LogOptions {
  clock: Clock;
  format: "text" | "json";
  /** Receives one finished line, without its newline. */
  sink: (line: string) => void;
  /** The lowest level that is written. Default: `info`. */
  level?: LogLevel;
}

const RANK: Readonly<Record<LogLevel, number>> = { debug: 0, info: 1, warn: 2, error: 3 };
const BLANK = "[redacted]";
const HIDDEN_FIELD =
  /^(authorization|cookie|set-?cookie|body|payload|.*(secret|password|token|passphrase)|.*(api|master|private|signing)-?_?key)$/i;
const HIDDEN_TEXT =
  /\b(?:relay|sk|ak)_(?:dev|live|local)_[A-Za-z0-9_-]+|\bwhsec_[A-Za-z0-9+/=_-]+|\b(?:rcv|sgn|ps)_[A-Za-z0-9_-]{16,}|\bBearer\s+\S+|-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/g;
const MAX_DEPTH = 4;

/** Creates a log that writes to `sink`. */
export function createLog(options: LogOptions): Log {
  const lowest = RANK[options.level ?? "info"];
  const write = (level: LogLevel, message: string, fields: LogFields = {}): void => {
    if (RANK[level] < lowest) return;
    const shown = hide(fields, 0) as Record<string, unknown>;
    const at = toIso(options.clock.now());
    const text = hideText(message);
    options.sink(
      showControls(
        options.format === "json"
          ? writeJson({ ...shown, at, level, message: text })
          : `${at} ${level.toUpperCase().padEnd(5)} ${oneLine(text)}${textFields(shown)}`,
      ),
    );
  };
  return {
    debug: (message, fields) => write("debug", message, fields),
    info: (message, fields) => write("info", message, fields),
    warn: (message, fields) => write("warn", message, fields),
    error: (message, fields) => write("error", message, fields),
  };
}

function hide(value: unknown, depth: number): unknown {
  if (typeof value === "string") return hideText(value);
  if (value instanceof Error)
    return { name: value.name, message: hideText(value.message), stack: hideText(value.stack ?? "") };
  if (typeof value !== "object" || value === null) return value;
  if (depth >= MAX_DEPTH) return "…";
  if (Array.isArray(value)) return value.map((item) => hide(item, depth + 1));
  if (ArrayBuffer.isView(value)) return `${value.byteLength} bytes`;
  return Object.fromEntries(
    Object.entries(value).map(([name, held]) => [
      name,
      HIDDEN_FIELD.test(name) ? BLANK : hide(held, depth + 1),
    ]),
  );
}

function hideText(text: string): string {
  return text.replace(HIDDEN_TEXT, BLANK);
}

function textFields(fields: Record<string, unknown>): string {
  let line = "";
  let stack = "";
  for (const [name, value] of Object.entries(fields)) {
    if (name === "error" && isShownError(value)) {
      line += ` error=${JSON.stringify(value.message)}`;
      // Indents the stack, so that a message of several lines never looks like other entries of the log.
      stack = `\n${value.stack}`.replace(/[\r\n]+/g, "\n    ");
    } else if (value !== undefined) {
      line += ` ${name}=${typeof value === "string" && /^[\w./:@-]+$/.test(value) ? value : writeJson(value)}`;
    }
  }
  return line + stack;
}

function isShownError(value: unknown): value is { message: string; stack: string } {
  return typeof value === "object" && value !== null && "stack" in value && "message" in value;
}

function oneLine(text: string): string {
  return text.replace(/[\r\n]+/g, " ");
}

const CONTROL = /[^\P{Cc}\n\t]|[\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu;

/**
 * Escapes control characters as JSON does, so that a text from outside (a name, a payload) cannot control a terminal or look like another line. It
 * includes C1, Unicode's line and paragraph separators and characters that change the writing direction. Newline and tab stay.
 */
export function showControls(text: string): string {
  return text.replace(CONTROL, (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

const FOLD_MS = 60_000;
/** The most kinds of lines that are distinguished at a time. Above it, all lines with one message are one kind. */
const MAX_FOLDED = 500;
/** The fields that distinguish lines with the same message. An ID, a path, a count or a number in a cause does not. */
const TELLING_FIELDS = [
  "relay",
  "target",
  "app",
  "environment",
  "environmentId",
  "caretaker",
  "source",
  "type",
  "code",
  "cause",
];

interface FoldedLog extends Log {
  /** Writes the pending counts and folds nothing more. */
  stop(): void;
}

/**
 * Wraps a log so that repeated warnings and errors are counted. The first line is written at once. After a minute, one line follows with the count
 * and the last fields. A full disk or a flood thus writes one line a minute instead of one for each call. A line with the field `calls` counts as
 * that many.
 */
export function foldRepeats(log: Log, clock: Clock): FoldedLog {
  const open = new Map<
    string,
    { repeats: number; last: LogFields; report: () => void; cancel: () => void }
  >();
  const fold = (level: "warn" | "error", message: string, fields: LogFields = {}): void => {
    const exact = keyOf(level, message, fields);
    const key = open.has(exact) || open.size < MAX_FOLDED ? exact : `${level} ${message}`;
    const known = open.get(key);
    if (known !== undefined) {
      known.repeats += typeof fields.calls === "number" ? fields.calls : 1;
      known.last = fields;
      return;
    }
    log[level](message, fields);
    const entry = {
      repeats: 0,
      last: fields,
      report: () => {
        if (entry.repeats > 0)
          log[level](`${message}: ${entry.repeats} more in the last minute`, { ...entry.last });
      },
      cancel: clock.after(FOLD_MS, () => onMinute(key)),
    };
    open.set(key, entry);
  };
  /** Counts for another minute if the line came again. Otherwise the next such line is written at once. */
  const onMinute = (key: string): void => {
    const entry = open.get(key);
    if (entry === undefined) return;
    entry.report();
    if (entry.repeats === 0) open.delete(key);
    else entry.cancel = clock.after(FOLD_MS, () => onMinute(key));
    entry.repeats = 0;
  };
  return {
    debug: (message, fields) => log.debug(message, fields),
    info: (message, fields) => log.info(message, fields),
    warn: (message, fields) => fold("warn", message, fields),
    error: (message, fields) => fold("error", message, fields),
    stop() {
      for (const entry of open.values()) {
        entry.cancel();
        entry.report();
      }
      open.clear();
    },
  };
}

function keyOf(level: string, message: string, fields: LogFields): string {
  const telling = TELLING_FIELDS.map((name) => {
    const value = fields[name];
    if (value === undefined) return "";
    return name === "cause" ? withoutDetails(String(value)) : String(value);
  });
  const error = fields.error instanceof Error ? `${fields.error.name} ${fields.error.message}` : "";
  return [level, message, ...telling, error].join("\n").slice(0, 1_000);
}
