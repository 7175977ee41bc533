/**
 * Alerts: what the owner is told of. A burst (the same code and target again within an hour) is one row with a count, and one mail.
 * Whether a code is switched on is the caller's to ask; sending the mail is mail's.
 */
import { newId } from "../ground/id.ts";
import { DAY_MS } from "../ground/limit.ts";
import type { Page, PageRequest } from "../ground/page.ts";
import type { Reader, Writer } from "../store/port.ts";
import { equals, walkPage } from "../store/walk.ts";

/** Everything an owner can be alerted of, each with its switch on the Alerts page. */
export const ALERT_CODES = [
  "relay_failed",
  "relay_refusing",
  "relay_silent",
  "relay_recovered",
  "events_dropped",
  "codes_capped",
  "writes_capped",
  "mail_unknown",
  "sender_domain_required",
  "invite_capped",
] as const;

/** The switch of alerts by mail, beside the codes' own. */
export const ALERT_MAIL_SWITCH = "mail";

/** A burst gathers for an hour from its first alert, then the next one is told anew. */
const BURST_MS = 3_600_000;

export interface AlertRow {
  id: string;
  /** Such as `relay_failed`. */
  code: string;
  /** Such as `relay:<name>`. */
  target: string;
  /** The latest one's sentence. */
  message: string;
  /** How many the row stands for. */
  count: number;
  at: number;
  lastAt: number;
  mailedAt: number | null;
}

interface NewAlert {
  environmentId: number;
  code: string;
  target: string;
  message: string;
  /** How many occurrences this one tells of at once (missed ticks); 1 when absent. */
  count?: number | undefined;
  /** How long a burst gathers; an hour when absent. */
  burstMs?: number;
  nowMs: number;
}

const COLUMNS = "id, code, target, message, count, at, last_at AS lastAt, mailed_at AS mailedAt";

/** Raises the alert, or adds it to the burst it belongs to. Answers the row's id and whether the row is new. */
export async function raiseAlert(tx: Writer, alert: NewAlert): Promise<{ id: string; fresh: boolean }> {
  const { environmentId, code, target, message, nowMs } = alert;
  const count = alert.count ?? 1;
  const find = `SELECT id FROM alert WHERE environment_id = ?1 AND last_at > ?4 AND code = ?2 AND target = ?3 AND at > ?4
    ORDER BY last_at DESC LIMIT 1`;
  const burst = await tx.get<{ id: string }>(
    find,
    environmentId,
    code,
    target,
    nowMs - (alert.burstMs ?? BURST_MS),
  );
  if (burst !== null) {
    const sql = "UPDATE alert SET count = count + ?2, last_at = ?3, message = ?4 WHERE id = ?1";
    await tx.run(sql, burst.id, count, nowMs, message);
    return { id: burst.id, fresh: false };
  }
  const id = newId("alt", nowMs);
  const sql = `INSERT INTO alert (id, environment_id, code, target, message, count, at, last_at)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7)`;
  await tx.run(sql, id, environmentId, code, target, message, count, nowMs);
  return { id, fresh: true };
}

/** Alerts not mailed yet that began after `sinceMs`, oldest first, at most `limit`. */
export function listUnmailedAlerts(
  tx: Reader,
  environmentId: number,
  limit: number,
  sinceMs = 0,
): Promise<AlertRow[]> {
  const sql = `SELECT ${COLUMNS} FROM alert WHERE environment_id = ?1 AND mailed_at IS NULL AND at > ?3 ORDER BY id LIMIT ?2`;
  return tx.all<AlertRow>(sql, environmentId, limit, sinceMs);
}

/** Environments with alerts since `sinceMs` that are not mailed: when the oldest of them began, and when the owner was last mailed. */
export function listUnmailedEnvironments(
  tx: Reader,
  sinceMs: number,
): Promise<{ environmentId: number; oldestAt: number; lastMailedAt: number | null }[]> {
  return tx.all(
    `SELECT waiting.environment_id AS environmentId, min(waiting.at) AS oldestAt,
       (SELECT max(mailed_at) FROM alert WHERE alert.environment_id = waiting.environment_id AND last_at > ?1 - ${DAY_MS}) AS lastMailedAt
     FROM alert AS waiting INDEXED BY alert_unmailed WHERE waiting.mailed_at IS NULL AND waiting.at > ?1 GROUP BY waiting.environment_id`,
    sinceMs,
  );
}

/** The burst of the same code and target that ended shortly before this one began, or null. */
export function findBurstBefore(
  tx: Reader,
  environmentId: number,
  { code, target, at }: Pick<AlertRow, "code" | "target" | "at">,
): Promise<AlertRow | null> {
  const sql = `SELECT ${COLUMNS} FROM alert WHERE environment_id = ?1 AND last_at > ?4 - ?5 AND code = ?2 AND target = ?3 AND at < ?4
    ORDER BY last_at DESC LIMIT 1`;
  return tx.get<AlertRow>(sql, environmentId, code, target, at, 2 * BURST_MS);
}

/** Undoes `markAlertMailed` for a mail that certainly did not leave, so that it is tried again. */
export async function markAlertUnmailed(tx: Writer, id: string): Promise<void> {
  await tx.run("UPDATE alert SET mailed_at = NULL WHERE id = ?1", id);
}

/** Notes that the owner was mailed; the burst may still grow. */
export async function markAlertMailed(tx: Writer, id: string, nowMs: number): Promise<void> {
  await tx.run("UPDATE alert SET mailed_at = ?2 WHERE id = ?1 AND mailed_at IS NULL", id, nowMs);
}

/** A page of the environment's alerts, newest first (by when each began). */
export async function listAlerts(
  tx: Reader,
  environmentId: number,
  request: PageRequest,
): Promise<Page<AlertRow>> {
  return await walkPage<AlertRow, AlertRow>(
    tx,
    {
      from: "alert INDEXED BY alert_by_environment_id",
      columns: COLUMNS,
      key: "id",
      led: [equals("environment_id", environmentId)],
      after: request.after,
      limit: request.limit,
    },
    (row) => row,
  );
}
