/** The recent requests that share one row of the ring. */
import { expect, test } from "bun:test";
import type { RecentRequest } from "../../src/engine/receiver/request.ts";
import { type CoalescedRequest, RequestCoalescer } from "../../src/engine/receiver/request-coalescing.ts";

const CALL: RecentRequest = {
  environmentId: 1,
  relayName: "orders",
  firstAt: 0,
  at: 0,
  outcome: "refused",
  code: "bad_signature",
  cause: "header x-signature is missing",
  source: "203.0.113.7",
  eventId: null,
  count: 1,
  followers: null,
};
const later = (ms: number, change: Partial<RecentRequest> = {}): RecentRequest => ({ ...CALL, ...change, at: ms, firstAt: ms });

const rows: { rule: string; calls: RecentRequest[]; isCapped?: boolean; rows: number[] }[] = [
  { rule: "counts equal requests in one row", calls: [CALL, later(1_000), later(2_000)], rows: [3] },
  { rule: "counts requests of one network in one row", calls: [CALL, later(1, { source: "203.0.113.99" })], rows: [2] },
  { rule: "separates another network", calls: [CALL, later(1, { source: "203.0.114.7" })], rows: [1, 1] },
  {
    rule: "counts requests of one IPv6 /48 in one row",
    calls: [later(0, { source: "2001:db8:1:2::/64" }), later(1, { source: "2001:db8:1:3::/64" })],
    rows: [2],
  },
  { rule: "separates another IPv6 /48", calls: [later(0, { source: "2001:db8:1:2::/64" }), later(1, { source: "2001:db8:2:2::/64" })], rows: [1, 1] },
  { rule: "separates another relay", calls: [CALL, later(1, { relayName: "refunds" })], rows: [1, 1] },
  { rule: "separates another environment", calls: [CALL, later(1, { environmentId: 2 })], rows: [1, 1] },
  { rule: "separates another cause", calls: [CALL, later(1, { cause: "the signature does not match" })], rows: [1, 1] },
  { rule: "ignores a number in a cause", calls: [later(0, { cause: "912 seconds old" }), later(1, { cause: "913 seconds old" })], rows: [2] },
  {
    rule: "counts requests over a cap in one row, whatever their cause",
    calls: [CALL, later(1, { cause: "the signature does not match" })],
    isCapped: true,
    rows: [2],
  },
  { rule: "separates a sender's retries that are minutes apart", calls: [CALL, later(120_001), later(240_002)], rows: [1, 1, 1] },
  { rule: "ends a row after an hour", calls: Array.from({ length: 62 }, (_, at) => later(at * 60_000)), rows: [61, 1] },
  { rule: "starts another row when the clock was set back", calls: [later(5_000), later(0)], rows: [1, 1] },
  {
    rule: "separates ignored requests by their exact content",
    calls: ["a", "b", "a"].map((says, at) => later(at, { outcome: "ignored", code: "when", cause: `the call says "${says}"` })),
    rows: [2, 1],
  },
  { rule: "never counts duplicates in one row", calls: [later(0, { outcome: "duplicate" }), later(1, { outcome: "duplicate" })], rows: [1, 1] },
  {
    rule: "counts requests from more than 20 networks in one row",
    calls: Array.from({ length: 100 }, (_, nth) => later(nth, { source: `10.0.${nth}.1` })),
    rows: [...Array.from({ length: 20 }, () => 1), 80],
  },
];

test.each(rows.map((row) => [row.rule, row] as const))("%s", (_rule, { calls, isCapped = false, rows }) => {
  const folds = new RequestCoalescer();
  const written = calls.flatMap((call) => folds.add(call, isCapped) ?? []);
  expect(written.map(({ count }) => count)).toEqual(rows);
});

test("continues a written row, and forgets it when no request follows", () => {
  const folds = new RequestCoalescer();
  const write = (call: CoalescedRequest | null): void => {
    if (call?.fold != null) Object.assign(call.fold, { waiting: null, seq: 7 });
  };
  write(folds.add(CALL, false));
  const next = folds.add(later(90_000), false);
  expect(next).toMatchObject({ firstAt: 0, at: 90_000, count: 1, fold: { seq: 7 } });
  write(next);
  folds.prune(200_000);
  expect(folds.add(later(200_500), false)?.fold?.seq).toBe(7);
  folds.prune(1_000_000);
  for (let nth = 0; nth < 20; nth++) folds.add(later(1_000_000, { source: `10.0.${nth}.1` }), false);
  expect(folds.add(later(1_000_001), false)?.fold?.seq ?? null).toBeNull();
});
