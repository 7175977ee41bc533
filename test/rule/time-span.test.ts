/** Tests how spans of time are formatted: a span that passed, and the time that is left. */
import { expect, test } from "bun:test";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../src/base/limit.ts";
import { formatSpan, formatTimeLeft } from "../../src/base/shared/time-span.ts";

const SECOND_MS = 1_000;

const ROWS: readonly [ms: number, span: string, left: string][] = [
  [0, "0 ms", "0 ms"],
  [5 * SECOND_MS, "5 s", "5 s"],
  [MINUTE_MS - 600, "59 s", "59 s"],
  [MINUTE_MS - 400, "59 s", "1 min"],
  [5 * MINUTE_MS - 2 * SECOND_MS, "4 min", "5 min"],
  [5 * MINUTE_MS + 20 * SECOND_MS, "5 min", "5 min"],
  [HOUR_MS - SECOND_MS, "59 min", "1 h"],
  [HOUR_MS + 40 * MINUTE_MS, "1 h", "2 h"],
  [20 * HOUR_MS - SECOND_MS, "19 h", "20 h"],
  [DAY_MS - SECOND_MS, "23 h", "1 day"],
  [DAY_MS, "1 day", "1 day"],
  [7 * DAY_MS - SECOND_MS, "6 days", "7 days"],
];

for (const [ms, span, left] of ROWS)
  test(`${ms} ms are ${span}, and ${left} are left`, () => {
    expect([formatSpan(ms), formatTimeLeft(ms)]).toEqual([span, left]);
  });
