/** Groups adjacent requests with the same cause into one row that expands, because many equal rows add no information. */
import type { RecentRequest } from "../base/answer.ts";

/** Requests of one row, newest first. The first represents all. */
export type LikeCalls = [RecentRequest, ...RecentRequest[]];

/** Reports whether the older request belongs to the row of the newer one. */
export function isLike(newer: RecentRequest, older: RecentRequest): boolean {
  return (
    newer.outcome !== "duplicate" &&
    newer.relay === older.relay &&
    newer.outcome === older.outcome &&
    newer.code === older.code &&
    plain(newer.cause) === plain(older.cause)
  );
}

export function countOf(calls: LikeCalls): number {
  return calls.reduce((sum, { count }) => sum + count, 0);
}

/** Returns when the first of the requests arrived. */
export function firstOf(calls: LikeCalls): string {
  return calls.at(-1)?.firstAt ?? calls[0].firstAt;
}

export function gatherLike(calls: readonly RecentRequest[]): LikeCalls[] {
  const rows: LikeCalls[] = [];
  for (const call of calls) {
    const last = rows.at(-1);
    if (last !== undefined && isLike(last[0], call)) last.push(call);
    else rows.push([call]);
  }
  return rows;
}

/** Removes the details from a cause. */
function plain(cause: string): string {
  return cause.replaceAll(/"[^"]*"|`[^`]*`/g, '""').replaceAll(/\d+/g, "0");
}
