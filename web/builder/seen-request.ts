/** Request in view: the request whose values the builder offers, and which it explains with the draft. */

import { readPastedCall } from "../../src/base/shared/pasted-request.ts";
import { isObject, type Json, parseExact } from "../base/exact-json.ts";

export interface SeenRequest {
  body: string;
  contentType: string | null;
  /** null: the headers are not known, so the service signs the request as the sender would. */
  headers: Record<string, string> | null;
  /** Query string with its `?`, or an empty text. */
  search: string;
  /** URL at which the request arrived, without its query, and the ISO time; null: not known. */
  url: string | null;
  receivedAt: string | null;
  /** Origin of the request, such as "a pasted request". */
  from: string;
  /** Relay whose event has the request, so its receiver verified it. Absent: the request is of no event. */
  relay?: string;
}

/** Returns a pasted request. It is checked as if it arrived now at the receiver URL. */
export function seenOfPaste(text: string): SeenRequest {
  return { ...readPastedCall(text), url: null, receivedAt: null, from: "a pasted request" };
}

/** Returns the request as the service takes it for an explanation or a guess. */
export function inputOfSeen({
  body,
  contentType,
  headers,
  search,
  url,
  receivedAt,
}: SeenRequest): Readonly<Record<string, unknown>> {
  const input: Record<string, unknown> = { body };
  if (contentType !== null) input.contentType = contentType;
  if (headers !== null) input.headers = headers;
  if (search !== "") input.search = search;
  if (url !== null) input.url = url;
  if (receivedAt !== null) input.receivedAt = receivedAt;
  return input;
}

/** Returns the body as a value: JSON, or the fields of a form. undefined: it is neither. */
export function readSeenBody({
  body,
  contentType,
}: Pick<SeenRequest, "body" | "contentType">): Json | undefined {
  const isForm = contentType?.toLowerCase().startsWith("application/x-www-form-urlencoded") ?? false;
  if (!isForm) {
    try {
      return parseExact(body);
    } catch {
      if (contentType !== null || /^\s*[[{]/.test(body) || !body.includes("=")) return undefined;
    }
  }
  const fields: { [name: string]: Json } = Object.create(null);
  for (const [name, value] of new URLSearchParams(body)) {
    const before = fields[name];
    if (before === undefined) fields[name] = value;
    else fields[name] = Array.isArray(before) ? [...before, value] : [before, value];
  }
  return fields;
}

/** Prefix of the requests in view. The browser keeps them for this tab only, because a body can name people. */
const PREFIX = "relay.request.";

/** Requests that the browser could not store. They stay until the page reloads. */
const known = new Map<string, SeenRequest>();

export function recallSeen(key: string): SeenRequest | null {
  const stored = known.get(key);
  if (stored !== undefined) return stored;
  try {
    const kept: unknown = JSON.parse(sessionStorage.getItem(PREFIX + key) ?? "null");
    return isSeen(kept) ? kept : null;
  } catch {
    return null;
  }
}

export function keepSeen(key: string, request: SeenRequest | null): void {
  known.delete(key);
  try {
    if (request === null) sessionStorage.removeItem(PREFIX + key);
    else sessionStorage.setItem(PREFIX + key, JSON.stringify(request));
  } catch {
    if (request !== null) known.set(key, request);
  }
}

function isSeen(value: unknown): value is SeenRequest {
  return isObject(value) && typeof value.body === "string" && typeof value.from === "string";
}
