/** The values of expiresAt: "30d", "12h", "2w" or an ISO date. */

import { expect, test } from "bun:test";
import { HOUR_MS } from "../../src/base/limit.ts";
import { parseExpiry } from "../../src/rules/action/shape.ts";

const NOW_MS = Date.UTC(2030, 0, 1);

const rows: [text: string, ms: number | null][] = [
  ["30d", NOW_MS + 30 * 24 * HOUR_MS],
  ["12h", NOW_MS + 12 * HOUR_MS],
  ["2w", NOW_MS + 14 * 24 * HOUR_MS],
  ["2030-01-31", Date.UTC(2030, 0, 31)],
  ["2032-02-29", Date.UTC(2032, 1, 29)],
  ["2030-01-31T12:30:00Z", Date.UTC(2030, 0, 31, 12, 30)],
  ["2030-01-31T12:30:00.250Z", Date.UTC(2030, 0, 31, 12, 30, 0, 250)],
  ["2030-01-31T12:30+02:00", Date.UTC(2030, 0, 31, 10, 30)],
  ["2020-01-01", Date.UTC(2020, 0, 1)],
  ["0d", null],
  ["-1d", null],
  ["1.5d", null],
  ["30", null],
  ["30D", null],
  ["30 d", null],
  ["1m", null],
  ["999999w", null],
  ["2030-02-29", null],
  ["2030-13-01", null],
  ["2030-1-1", null],
  ["2030-01-31T12:30:00", null],
  ["2030-01-31T24:00:00Z", null],
  ["tomorrow", null],
  ["{{mapped.until}}", null],
  ["", null],
];

test.each(rows)("%j is %p", (text, ms) => {
  expect(parseExpiry(text, NOW_MS)).toBe(ms);
});
