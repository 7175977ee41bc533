/** Formats spans of time, for the terminal and the dashboard. A past span counts its whole units. A time to come is rounded to the nearest unit. */

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** Formats a span that passed, such as `800 ms`, `12 s`, `5 min`, `3 h` or `2 days`. */
export function formatSpan(ms: number): string {
  if (ms < SECOND_MS) return `${Math.round(ms)} ms`;
  if (ms < MINUTE_MS) return `${Math.floor(ms / SECOND_MS)} s`;
  if (ms < HOUR_MS) return `${Math.floor(ms / MINUTE_MS)} min`;
  if (ms < DAY_MS) return `${Math.floor(ms / HOUR_MS)} h`;
  const days = Math.floor(ms / DAY_MS);
  return days === 1 ? "1 day" : `${days} days`;
}

/** Formats the span until a time to come. A second after something begins that lasts a day, `1 day` is left, and not `23 h`. */
export function formatTimeLeft(ms: number): string {
  const units = [SECOND_MS, MINUTE_MS, HOUR_MS, DAY_MS];
  const fits = (unitMs: number, index: number): boolean =>
    Math.round(ms / unitMs) * unitMs < (units[index + 1] ?? Number.POSITIVE_INFINITY);
  const unitMs = units.find(fits) ?? DAY_MS;
  return formatSpan(Math.round(ms / unitMs) * unitMs);
}
