/** Times: as a person writes them on the command line, and as a terminal says them. A pipe gets them whole. */
import { parseIso } from "../../../base/clock.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../../base/limit.ts";

const SECOND_MS = 1_000;
const NOW_MS = 5 * SECOND_MS;
/** From then on a date says more. */
const LONG_AGO_MS = 28 * DAY_MS;

/** The last year that a time is written of. */
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

/** `2 min ago`, `in 3 h`, `just now`; a date from four weeks on. */
function sayAgo(iso: string, nowMs: number): string {
  const ms = Date.parse(iso) - nowMs;
  const span = Math.abs(ms);
  if (Number.isNaN(ms)) return iso;
  if (span < NOW_MS) return "just now";
  if (span >= LONG_AGO_MS) return iso.slice(0, 10);
  return ms < 0 ? `${saySpan(span)} ago` : `in ${saySpan(span)}`;
}

/** `12 s`, `5 min`, `3 h`, `2 days`. */
function saySpan(ms: number): string {
  if (ms < MINUTE_MS) return `${Math.floor(ms / SECOND_MS)} s`;
  if (ms < HOUR_MS) return `${Math.floor(ms / MINUTE_MS)} min`;
  if (ms < DAY_MS) return `${Math.floor(ms / HOUR_MS)} h`;
  const days = Math.floor(ms / DAY_MS);
  return days === 1 ? "1 day" : `${days} days`;
}

/** The text with each of its whole times as a person says it. */
export function sayTimes(text: string, nowMs: number): string {
  return text.replace(ISO, (iso) => sayAgo(iso, nowMs));
}

/** The text with each of its whole times as the time of the day: `14:02:07Z`. */
export function sayClocks(text: string): string {
  return text.replace(ISO, (iso) => `${iso.slice(11, 19)}Z`);
}

/** The text with each of its whole times, and how long ago that was. */
export function addAgo(text: string, nowMs: number): string {
  return text.replace(ISO, (iso) => {
    const ago = sayAgo(iso, nowMs);
    return iso.startsWith(ago) ? iso : `${iso} (${ago})`;
  });
}

/** As `readMoment`, of what is to come: `30d` is so far ahead. */
export function readMomentAhead(text: string, nowMs: number): number | null {
  const moment = readMoment(text, nowMs);
  if (moment === null || !SPAN.test(text)) return moment;
  const ahead = nowMs + (nowMs - moment);
  return ahead > LAST_MS ? null : ahead;
}

/** Milliseconds since the epoch of `24h`, `90m`, `7d` (so long ago) or of a date or a time with its zone; null for what is neither. */
export function readMoment(text: string, nowMs: number): number | null {
  const [, count, unit = ""] = SPAN.exec(text) ?? [];
  if (count !== undefined) return nowMs - Number(count) * (UNITS[unit] ?? 0);
  return parseIso(text);
}
