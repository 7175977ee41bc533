/** Parses times on the command line and formats times for a terminal. A pipe gets them whole. */
import { parseIso } from "../../../base/clock.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../../base/limit.ts";
import { formatSpan, formatTimeLeft } from "../../../base/shared/time-span.ts";

const SECOND_MS = 1_000;
const NOW_MS = 5 * SECOND_MS;
/** The age from which a date is clearer. */
const LONG_AGO_MS = 28 * DAY_MS;

/** The last time that a command accepts. */
const LAST_MS = Date.UTC(9999, 11, 31);

const ISO = /\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g;
const SPAN = /^(\d{1,6})(s|m|min|h|d|w)$/;
const UNITS: Readonly<Record<string, number>> = {
  s: SECOND_MS,
  m: MINUTE_MS,
  min: MINUTE_MS,
  h: HOUR_MS,
  d: DAY_MS,
  w: 7 * DAY_MS,
};

/** Formats a time, such as `2 min ago`, `in 3 h` or `just now`. A time more than four weeks away becomes a date. */
function formatAgo(iso: string, nowMs: number): string {
  const ms = Date.parse(iso) - nowMs;
  const span = Math.abs(ms);
  if (Number.isNaN(ms)) return iso;
  if (span < NOW_MS) return "just now";
  if (span >= LONG_AGO_MS) return iso.slice(0, 10);
  return ms < 0 ? `${formatSpan(span)} ago` : `in ${formatTimeLeft(span)}`;
}

/** Replaces each whole time in the text with how long ago it was. */
export function formatTimes(text: string, nowMs: number): string {
  return text.replace(ISO, (iso) => formatAgo(iso, nowMs));
}

/** Replaces each whole time in the text with its time of day, such as `14:02:07Z`. */
export function formatClocks(text: string): string {
  return text.replace(ISO, (iso) => `${iso.slice(11, 19)}Z`);
}

/** Adds to each whole time in the text how long ago it was. */
export function addAgo(text: string, nowMs: number): string {
  return text.replace(ISO, (iso) => {
    const ago = formatAgo(iso, nowMs);
    return iso.startsWith(ago) ? iso : `${iso} (${ago})`;
  });
}

/** Parses as `readMoment` does, but for the future: `30d` is 30 days ahead. */
export function readMomentAhead(text: string, nowMs: number): number | null {
  const moment = readMoment(text, nowMs);
  if (moment === null || !SPAN.test(text)) return moment;
  const ahead = nowMs + (nowMs - moment);
  return ahead > LAST_MS ? null : ahead;
}

/** Parses `24h`, `90m` or `7d` (that long ago), a date, or a time with its zone, to milliseconds since the epoch. Returns null for any other text. */
export function readMoment(text: string, nowMs: number): number | null {
  const [, count, unit = ""] = SPAN.exec(text) ?? [];
  if (count !== undefined) return nowMs - Number(count) * (UNITS[unit] ?? 0);
  return parseIso(text);
}
