/**
 * The timestamp of a call: 1 to 13 ASCII digits and nothing else; 12 or 13 of them are milliseconds, fewer are seconds. It decides
 * whether the call is inside the window, either way; it never rewrites the digits, which are signed exactly as received.
 * Source: the specification's "Runtime rules"; recipes, "Timestamps".
 */
import type { Json } from "../ground/json.ts";
import { MAX_TIMESTAMP_DIGITS } from "../ground/limit.ts";

const FIRST_MILLISECOND_DIGITS = 12;
const ZERO = 0x30;
const NINE = 0x39;

interface Timestamp {
  digits: string;
  /** When it leaves the window, in ms since the epoch. */
  expiresAtMs: number;
}

/**
 * Reads and checks a timestamp; a string answer is the cause of a refusal. `raw` is a header's text, a header part's value or a body
 * field (a non-negative integer counts as its digits). Seconds are compared in whole seconds, as senders' own libraries do.
 */
export function readTimestamp(
  raw: Json | undefined,
  nowMs: number,
  toleranceSeconds: number,
): Timestamp | string {
  const digits = timestampDigits(raw);
  if (digits === null) return "the timestamp is missing or is not 1 to 13 digits";
  const inMs = digits.length >= FIRST_MILLISECOND_DIGITS;
  const unit = inMs ? 1 : 1000;
  const at = Number(digits);
  const now = Math.floor(nowMs / unit);
  const tolerance = inMs ? toleranceSeconds * 1000 : toleranceSeconds;
  if (Math.abs(now - at) > tolerance) return tellDistance((now - at) * unit, toleranceSeconds);
  return { digits, expiresAtMs: (at + tolerance + 1) * unit };
}

/** How far off, so that the owner can tell a slow queue from a wrong clock; rounded up, never to what would be allowed. */
function tellDistance(oldMs: number, toleranceSeconds: number): string {
  const seconds = Math.ceil(Math.abs(oldMs) / 1000);
  return `the timestamp is ${seconds} seconds ${oldMs > 0 ? "old" : "ahead"}, and at most ${toleranceSeconds} are allowed`;
}

function timestampDigits(raw: Json | undefined): string | null {
  if (typeof raw === "string") {
    const text = trimHttpSpace(raw);
    return isDigits(text) ? text : null;
  }
  if (typeof raw !== "number" || !Number.isSafeInteger(raw) || raw < 0) return null;
  const digits = String(raw);
  return digits.length <= MAX_TIMESTAMP_DIGITS ? digits : null;
}

function isDigits(text: string): boolean {
  if (text.length === 0 || text.length > MAX_TIMESTAMP_DIGITS) return false;
  for (let at = 0; at < text.length; at++) {
    const char = text.charCodeAt(at);
    if (char < ZERO || char > NINE) return false;
  }
  return true;
}

/** Without the spaces and tabs around it, the white space HTTP allows around a field's value (RFC 9110, OWS). */
export function trimHttpSpace(text: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && isHttpSpace(text.charCodeAt(start))) start++;
  while (end > start && isHttpSpace(text.charCodeAt(end - 1))) end--;
  return start === 0 && end === text.length ? text : text.slice(start, end);
}

function isHttpSpace(char: number): boolean {
  return char === 0x20 || char === 0x09;
}
