/** Calls of one cause that follow each other are one row of the list, which opens: a page of the same sentence tells nothing more. */
import type { RecentRequest } from "../base/answer.ts";

/** Newest first; the first stands for all. */
export type LikeCalls = [RecentRequest, ...RecentRequest[]];

/** Whether the older one goes on the row of the newer one. */
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

/** The first moment that any of them came. */
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

/** A cause without its details. */
function plain(cause: string): string {
  return cause.replaceAll(/"[^"]*"|`[^`]*`/g, '""').replaceAll(/\d+/g, "0");
}
