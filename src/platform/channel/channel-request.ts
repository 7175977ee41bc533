/** Makes the request of an alert channel from the data of its kind, and reads the response by the same data. It sends nothing. */
import { createHash } from "node:crypto";
import { isJsonObject, type Json, type JsonObject, parseJson, writeJson } from "../../base/json.ts";
import { DAY_MS, HOUR_MS } from "../../base/limit.ts";
import { cutToLine, cutUtf8, utf8Bytes } from "../../base/text.ts";
import type { CallOutcome, CallRequest } from "../outbound/caller.ts";
import type { ChannelKind, Meaning } from "./channel-kind.ts";

/** The longest title, unescaped. */
const MAX_TITLE_CHARS = 120;
const MAX_REASON_CHARS = 200;
const MAX_WAIT_MS = HOUR_MS;

/** One alert of a message. `text` may have several lines. */
export interface ChannelAlert {
  state: "open" | "resolved";
  code: string;
  target: string;
  /** The subject and the event, on one line. */
  title: string;
  text: string;
  count: number;
  /** ISO 8601. */
  at: string;
  lastAt: string;
  resolvedAt: string | null;
}

export interface ChannelMessage {
  /** The same for a message that is sent again. */
  id: string;
  app: string;
  appId: string;
  environment: string;
  isTest: boolean;
  /** The page in the dashboard. */
  link: string;
  /** At least one; exactly one for a kind that is single. */
  alerts: readonly ChannelAlert[];
}

/** The values of a channel's fields, with the signing secret of a kind that signs. */
type ChannelValues = Readonly<Record<string, string>>;

const DISCORD_MARK = /[\\`*_~|<>#[\]()@:-]/g;

const ESCAPES: Readonly<Record<ChannelKind["escape"], (text: string) => string>> = {
  none: (text) => text,
  slack: (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;"),
  html: (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;"),
  discord: (text) => text.replace(DISCORD_MARK, "\\$&"),
};

/** Returns how many of the alerts fit into one message, at least one. */
export function countFitting(kind: ChannelKind, alerts: readonly ChannelAlert[]): number {
  if (kind.isSingle) return 1;
  let bytes = 0;
  const tooMany = alerts.findIndex(({ text }) => {
    bytes += utf8Bytes(ESCAPES[kind.escape](text)) + 2;
    return bytes > kind.maxTextBytes;
  });
  return tooMany < 0 ? alerts.length : Math.max(1, tooMany);
}

/** Makes the request. `local`: local development, where http to localhost is allowed. */
export function makeRequest(
  kind: ChannelKind,
  values: ChannelValues,
  message: ChannelMessage,
  local: boolean,
): CallRequest {
  const filled = { ...listValues(kind, message), ...values };
  const isOpen = message.alerts.some(({ state }) => state === "open");
  const body = writeJson(fill(isOpen ? kind.open : kind.resolved, filled));
  const to = { url: fillText(kind.url, filled) ?? "", body, local };
  const { signingSecret = "" } = values;
  if (kind.signs) return { ...to, signingSecret, webhookId: message.id };
  const headers = Object.entries(kind.headers).flatMap(([name, template]) => {
    const value = fillText(template, filled);
    return value === null ? [] : [[name, value] as const];
  });
  return { ...to, signingSecret, headers: Object.fromEntries(headers) };
}

/** Lists what a template can name in addition to the fields of the kind. */
function listValues(kind: ChannelKind, message: ChannelMessage): Readonly<Record<string, Json>> {
  const { alerts, app, environment, isTest, link, id } = message;
  const [first] = alerts;
  const toMarkup = ESCAPES[kind.escape];
  const title = cutToLine(`${app} (${environment}): ${titleOf(alerts)}`, MAX_TITLE_CHARS);
  const list: Json = alerts.map(({ text: _text, ...alert }) => ({ ...alert }));
  return {
    title: toMarkup(title),
    text: escapeWithin(alerts.map(({ text }) => text).join("\n\n"), toMarkup, kind.maxTextBytes),
    link,
    app,
    environment,
    test: isTest,
    messageId: id,
    alerts: list,
    dedupKey: hash(["cause", message.appId, environment, first?.code, first?.target]),
    at: first?.lastAt ?? null,
    code: first?.code ?? null,
    target: first?.target ?? null,
  };
}

function titleOf(alerts: readonly ChannelAlert[]): string {
  const [first] = alerts;
  if (alerts.length === 1 && first !== undefined)
    return first.state === "resolved" ? `Resolved: ${first.title}` : first.title;
  const open = alerts.filter(({ state }) => state === "open").length;
  const counts = [
    [open, "open"],
    [alerts.length - open, "resolved"],
  ] as const;
  return `${alerts.length} alerts: ${counts.flatMap(([count, word]) => (count === 0 ? [] : `${count} ${word}`)).join(", ")}`;
}

/** Escapes the text. Cuts it first where the result would be too long, so that no escape is cut. */
function escapeWithin(text: string, toMarkup: (text: string) => string, maxBytes: number): string {
  let kept = text.toWellFormed();
  let escaped = toMarkup(kept);
  while (utf8Bytes(escaped) > maxBytes) {
    kept = cutUtf8(kept, Math.floor((utf8Bytes(kept) * 9) / 10));
    escaped = toMarkup(`${kept}…`);
  }
  return escaped;
}

/** Returns a text of 64 hexadecimal digits that names these parts. */
export function hash(parts: readonly unknown[]): string {
  return createHash("sha256").update(JSON.stringify(parts)).digest("hex");
}

const WHOLE = /^\{\{(\w+)\}\}$/;
const PLACE = /\{\{(\w+)\}\}/g;

type Values = Readonly<Record<string, Json>>;

/** Fills a template. A text that is only a placeholder becomes its value of any type. An entry without a value is left out. */
function fill(template: Json, values: Values): Json {
  if (Array.isArray(template)) return template.map((one) => fill(one, values));
  if (isJsonObject(template)) {
    const filled: JsonObject = {};
    for (const [name, one] of Object.entries(template)) {
      const value = fill(one, values);
      if (value !== null) filled[name] = value;
    }
    return filled;
  }
  if (typeof template !== "string") return template;
  const [, name] = WHOLE.exec(template) ?? [];
  return name === undefined ? fillText(template, values) : (values[name] ?? null);
}

/** Fills a text; null if one of its values is missing. */
function fillText(template: string, values: Values): string | null {
  let isComplete = true;
  const text = template.replace(PLACE, (_, name: string) => {
    const value = values[name];
    if (value === undefined || value === null || value === "") isComplete = false;
    return String(value);
  });
  return isComplete ? text : null;
}

export interface ChannelResult {
  meaning: Meaning;
  /** The time that the service asks to wait; null: it names none. */
  waitMs: number | null;
  /** One sentence: what the service answered, and for a failure what to do. It contains no secret. */
  message: string;
}

/** Reads the outcome of a request. `secrets`: values that the service may have repeated, which the sentence must not contain. */
export function readResult(
  kind: ChannelKind,
  outcome: CallOutcome,
  { secrets, nowMs }: { secrets: readonly string[]; nowMs: number },
): ChannelResult {
  if (outcome.kind === "unreachable") return { meaning: "retry", waitMs: null, message: outcome.message };
  if (outcome.kind === "refused") {
    const meaning = outcome.final === true || outcome.code === "private_address" ? "wrong" : "retry";
    const hint =
      outcome.code === "private_address" ? " The option is --allow-private (RELAY_ALLOW_PRIVATE)." : "";
    return { meaning, waitMs: null, message: outcome.message + hint };
  }
  const { status, body, headers = {} } = outcome;
  const answer = readBody(body);
  const meaning = meaningOf(kind, status);
  const found = kind.reasonPath === null ? body : at(answer, kind.reasonPath);
  const reason = meaning === "ok" ? "" : cleanReason(found, secrets);
  const seconds = kind.retryAfterPath === null ? null : Number(at(answer, kind.retryAfterPath) ?? Number.NaN);
  const waitMs = readWait(headers["retry-after"], nowMs) ?? toWait(seconds);
  const result = `${kind.title} answered ${status}${reason === "" ? "" : ` (${reason})`}`;
  return {
    meaning,
    waitMs: meaning === "ok" ? null : waitMs,
    message: `${result}${adviceOf(meaning, status)}`,
  };
}

function meaningOf({ answers }: ChannelKind, status: number): Meaning {
  const meanings = Object.keys(answers) as (keyof typeof answers)[];
  const isOf = (meaning: keyof typeof answers) =>
    answers[meaning].some(([from, to]) => from <= status && status <= to);
  return meanings.find(isOf) ?? "retry";
}

function adviceOf(meaning: Meaning, status: number): string {
  if (meaning === "ok") return ".";
  if (meaning === "wait") return ": it takes no more messages now, and Relay waits as long as it asks.";
  if (meaning === "retry") return ": Relay retries.";
  if (status < 400) return ", a redirect, and Relay follows none: enter the address that it leads to.";
  if (status === 404 || status === 410)
    return ": this address does not exist any more, so create it again there and change the channel.";
  return ": correct the fields of the channel, then test it.";
}

function readBody(body: string): Json {
  try {
    return parseJson(body);
  } catch {
    return null;
  }
}

function at(value: Json, path: string): Json | undefined {
  let found: Json | undefined = value;
  for (const name of path.split("."))
    found = isJsonObject(found) && Object.hasOwn(found, name) ? found[name] : undefined;
  return found;
}

/** Returns the reason on one line. A page of HTML has none. */
function cleanReason(found: Json | undefined, secrets: readonly string[]): string {
  if (typeof found !== "string" || found.trimStart().startsWith("<")) return "";
  let text = found;
  for (const secret of secrets.flatMap(listForms)) text = text.replaceAll(secret, "…");
  return cutToLine(text, MAX_REASON_CHARS).replace(/\.$/, "");
}

/** The shortest part of an address that is hidden. Shorter parts are words such as `api`. */
const MIN_PART_CHARS = 8;

/**
 * Lists the texts that give a secret away, the longest first: the secret and, for an address, its path, its query and their parts. A web framework
 * answers a wrong path with "Route POST:/path not found", and some escape each slash.
 */
function listForms(secret: string): string[] {
  const url = /^https?:/.test(secret) ? URL.parse(secret) : null;
  if (url === null) return [secret];
  const parts = `${url.pathname}${url.search}`.split(/[/?&=]/).flatMap((part) => [part, readEscapes(part)]);
  const long = [secret, url.href, url.pathname + url.search, url.pathname, ...parts].filter(
    (form) => form.length >= MIN_PART_CHARS,
  );
  return [...new Set(long)].sort((one, other) => other.length - one.length);
}

function readEscapes(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** Reads Retry-After: seconds or a date. */
function readWait(header: string | undefined, nowMs: number): number | null {
  if (header === undefined) return null;
  return /^\s*\d+(\.\d+)?\s*$/.test(header)
    ? toWait(Number(header))
    : toWait((Date.parse(header) - nowMs) / 1_000);
}

function toWait(seconds: number | null): number | null {
  if (seconds === null || !Number.isFinite(seconds) || seconds * 1_000 > 30 * DAY_MS) return null;
  return Math.min(MAX_WAIT_MS, Math.max(0, Math.ceil(seconds * 1_000)));
}
