/**
 * When a schedule's periods begin, by arithmetic on UTC milliseconds alone: no calendar, no time zone, no daylight saving. It never
 * reads the clock and knows no relay.
 */

/** As `readPeriod` of trigger/schedule.ts gives it: a period begins every `periodMs`, counted from `anchorMs`. */
export interface Period {
  periodMs: number;
  anchorMs: number;
}

/** The beginning of the period that `ms` lies in. */
export function periodStartAt({ periodMs, anchorMs }: Period, ms: number): number {
  return anchorMs + Math.floor((ms - anchorMs) / periodMs) * periodMs;
}

/** The first beginning after `ms`. */
export function nextPeriodStart(period: Period, ms: number): number {
  return periodStartAt(period, ms) + period.periodMs;
}

/** Every beginning from `fromMs` to `toMs`, both included, in order. */
export function listPeriodStarts(period: Period, fromMs: number, toMs: number): number[] {
  const starts: number[] = [];
  for (let start = nextPeriodStart(period, fromMs - 1); start <= toMs; start += period.periodMs)
    starts.push(start);
  return starts;
}
