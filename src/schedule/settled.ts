/**
 * Which moments of a schedule are settled: their periods ticked, were stored as missed, or passed while ticks are not recorded. It is a
 * set of spans and not one mark, so that a clock that was far ahead for an hour neither makes a tick twice nor silences the schedule
 * until that day comes. It never reads the clock.
 */
import { parseJson, writeJson } from "../ground/json.ts";
import { listPeriodStarts, type Period } from "./period.ts";

/** Milliseconds since the epoch, both ends included. */
export type Span = readonly [from: number, to: number];

/** More than a clock that jumps by weeks makes in years; the oldest are forgotten first. */
const MAX_SPANS = 16;

/** Spans as they are stored; none for null. */
export function readSpans(text: string | null): Span[] {
  const spans = text === null ? [] : parseJson(text);
  if (!Array.isArray(spans)) return [];
  return spans.flatMap((span): Span[] => {
    const [from, to] = Array.isArray(span) ? span : [];
    return typeof from === "number" && typeof to === "number" ? [[from, to]] : [];
  });
}

export function writeSpans(spans: readonly Span[]): string {
  return writeJson(spans);
}

/** Beginnings of periods from `fromMs` to `toMs`, both included, that no span holds, in order. */
export function listUnsettled(
  spans: readonly Span[],
  period: Period,
  fromMs: number,
  toMs: number,
): number[] {
  const starts: number[] = [];
  let next = fromMs;
  for (const [from, to] of spans) {
    if (to < next) continue;
    if (from > toMs) break;
    starts.push(...listPeriodStarts(period, next, from - 1));
    next = to + 1;
  }
  return [...starts, ...listPeriodStarts(period, next, toMs)];
}

/** The spans with everything from `fromMs` to `toMs` settled: in order, none touching another. */
export function settle(spans: readonly Span[], fromMs: number, toMs: number): Span[] {
  const apart = spans.filter(([from, to]) => to < fromMs - 1 || from > toMs + 1);
  const joined = spans.filter((span) => !apart.includes(span));
  const whole: Span = [
    Math.min(fromMs, ...joined.map(([from]) => from)),
    Math.max(toMs, ...joined.map(([, to]) => to)),
  ];
  return [...apart, whole].sort(([a], [b]) => a - b).slice(-MAX_SPANS);
}
