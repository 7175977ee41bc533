/** Counts in words: "1 action", "2 actions", "1,204". */

export function sayCount(count: number, one: string, many = `${one}s`): string {
  return `${sayNumber(count)} ${count === 1 ? one : many}`;
}

/**
 * As the page's English words and the service's sentences beside it write numbers, whatever the browser's language: "1,204" and "1.204" on one
 * page would be two numbers. Times alone are the reader's own (time-words.ts).
 */
export function sayNumber(count: number): string {
  return count.toLocaleString("en");
}

export function sayBytes(bytes: number): string {
  if (bytes < 1024 ** 2) return `${Math.max(1, Math.round(bytes / 1024))} KiB`;
  if (bytes < 1024 ** 3) return `${(bytes / 1024 ** 2).toFixed(1)} MiB`;
  return `${(bytes / 1024 ** 3).toFixed(1)} GiB`;
}

/** How events stand, from the ground of a bar up. */
export const OUTCOMES = ["done", "waiting", "failed", "dead"] as const;

export type OutcomeCounts = Record<(typeof OUTCOMES)[number], number>;

export function totalOf(counts: OutcomeCounts): number {
  return OUTCOMES.reduce((sum, outcome) => sum + counts[outcome], 0);
}

/** "12 done, 1 dead"; "no events" where there were none. */
export function sayOutcomes(counts: OutcomeCounts): string {
  const told = OUTCOMES.filter((outcome) => counts[outcome] > 0).map(
    (one) => `${sayNumber(counts[one])} ${one}`,
  );
  return told.length === 0 ? "no events" : told.join(", ");
}
