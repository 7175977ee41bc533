/**
 * The ring of an environment's recent calls: those to its receivers that were refused, ignored or recognised as duplicates, with the cause,
 * so that "the provider says it sent it" can be answered. They make no event row; no body and no secret is ever kept here.
 */
import { toIso } from "../ground/clock.ts";
import { MAX_RECENT_CALLS } from "../ground/limit.ts";
import { makePage, type Page, type PageRequest } from "../ground/page.ts";
import type { Reader, Writer } from "../store/port.ts";

export const CALL_OUTCOMES = ["refused", "ignored", "duplicate"] as const;
export type CallOutcome = (typeof CALL_OUTCOMES)[number];

export interface RecentCall {
  environmentId: number;
  relayName: string;
  atMs: number;
  outcome: CallOutcome;
  /** A refusal's code, `when` for an ignored call, or `duplicate`. */
  code: string;
  /** Why, in words for the owner. */
  cause: string;
  /** The caller's address, as the caps count it. */
  source: string;
  /** The first event's, on a duplicate. */
  eventId: string | null;
  /** How many calls it stands for; more than 1 over a cap alone. */
  count: number;
}

/** A recent call as the API shows it. */
interface RecentCallView {
  id: string;
  /** ISO 8601. */
  at: string;
  /** Relay name. */
  relay: string;
  outcome: CallOutcome;
  code: string;
  cause: string;
  source: string;
  eventId: string | null;
  count: number;
}

interface StoredCall extends Omit<RecentCall, "environmentId"> {
  seq: number;
}

/** Adds one environment's calls, oldest first; the oldest in the ring make room. */
export async function writeRecentCalls(
  tx: Writer,
  environmentId: number,
  calls: readonly RecentCall[],
): Promise<void> {
  const newest = await tx.get<{ seq: number | null }>(
    "SELECT max(seq) AS seq FROM recent_call WHERE environment_id = ?1",
    environmentId,
  );
  let seq = newest?.seq ?? 0;
  const sql = `INSERT INTO recent_call (environment_id, slot, seq, at, relay_name, outcome, code, cause, source, event_id, count)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
    ON CONFLICT (environment_id, slot) DO UPDATE SET seq = excluded.seq, at = excluded.at, relay_name = excluded.relay_name,
      outcome = excluded.outcome, code = excluded.code, cause = excluded.cause, source = excluded.source,
      event_id = excluded.event_id, count = excluded.count`;
  for (const { relayName, atMs, outcome, code, cause, source, eventId, count } of calls) {
    seq += 1;
    const slot = seq % MAX_RECENT_CALLS;
    const row = [seq, atMs, relayName, outcome, code, cause, source, eventId, count];
    await tx.run(sql, environmentId, slot, ...row);
  }
}

/** Newest first; a ring is small enough to be read whole. */
export async function listRecentCalls(
  tx: Reader,
  environmentId: number,
  filter: { relay?: string | undefined; outcome?: CallOutcome | undefined },
  request: PageRequest,
): Promise<Page<RecentCallView>> {
  const rows = await tx.all<StoredCall>(
    `SELECT seq, at AS atMs, relay_name AS relayName, outcome, code, cause, source, event_id AS eventId, count FROM recent_call
     WHERE environment_id = ?1 AND (?2 IS NULL OR seq < ?2) AND (?3 IS NULL OR relay_name = ?3) AND (?4 IS NULL OR outcome = ?4)
     ORDER BY seq DESC LIMIT ?5`,
    environmentId,
    request.after === null ? null : Number(request.after),
    filter.relay ?? null,
    filter.outcome ?? null,
    request.limit + 1,
  );
  return makePage(rows, request, (row) => row.seq, viewCall);
}

function viewCall({ seq, atMs, relayName, ...call }: StoredCall): RecentCallView {
  return { id: String(seq), at: toIso(atMs), relay: relayName, ...call };
}
