/** Formats counts: "1 action", "2 actions", "1,204". */

export function formatCount(count: number, one: string, plural = `${one}s`): string {
  return `${formatNumber(count)} ${count === 1 ? one : plural}`;
}

/**
 * Formats a number as the service's messages do, in any language of the browser: "1,204" and "1.204" on one page would look like two numbers. Only
 * times use the reader's language (time-words.ts).
 */
export function formatNumber(count: number): string {
  return count.toLocaleString("en");
}

export function formatBytes(bytes: number): string {
  if (bytes < 1024 ** 2) return `${Math.max(1, Math.round(bytes / 1024))} KiB`;
  if (bytes < 1024 ** 3) return `${(bytes / 1024 ** 2).toFixed(1)} MiB`;
  return `${(bytes / 1024 ** 3).toFixed(1)} GiB`;
}

/** Outcomes of events, from the bottom of a bar to its top. */
export const OUTCOMES = ["done", "waiting", "failed", "dead"] as const;

/** State names of the outcomes. */
const OUTCOME_WORDS = { done: "done", waiting: "queued", failed: "failed", dead: "dead" } as const;

export type OutcomeCounts = Record<(typeof OUTCOMES)[number], number>;

export function totalOf(counts: OutcomeCounts): number {
  return OUTCOMES.reduce((sum, outcome) => sum + counts[outcome], 0);
}

/** Formats "12 done, 1 dead", or "no events". */
export function formatOutcomes(counts: OutcomeCounts): string {
  const parts = OUTCOMES.filter((outcome) => counts[outcome] > 0).map(
    (one) => `${formatNumber(counts[one])} ${OUTCOME_WORDS[one]}`,
  );
  return parts.length === 0 ? "no events" : parts.join(", ");
}
