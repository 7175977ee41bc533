/**
 * Alerts: what the owner is told of, unless the code is switched off. A burst (the same code and target again within an hour) is one row
 * with a count, and one mail; sending it is mail's.
 */
import { type Static, Type } from "typebox";
import { newId } from "../../base/id.ts";
import { DAY_MS, HOUR_MS } from "../../base/limit.ts";
import type { Page, PageRequest } from "../../base/page.ts";
import type { TroubleCode } from "../../base/problem-code.ts";
import type { ResultCode } from "../../base/result-code.ts";
import { show, textOrNull, time, timeOrNull } from "../../base/schema.ts";
import { equals, walkPage } from "../../store/index-scan.ts";
import type { Reader, Writer } from "../../store/port.ts";
import { defineTable, integer, orNull, type RowOf, text } from "../../store/table.ts";
import { findEnvironmentById, isAlertEnabled } from "../account/environment.ts";
import { AUTOMATIC_RESOLVER, clearProblem, resolveAlertsOf } from "./problem.ts";

/** Everything an owner can be alerted of, each with its switch on the Alerts page. */
export const ALERT_CODES = [
  "relay_failed",
  "relay_refusing",
  "relay_silent",
  "relay_ignoring",
  "relay_nobody",
  "relay_failing",
  "relay_capped",
  "relay_uncalled",
  "relay_recovered",
  "events_expiring",
  "events_dropped",
  "codes_capped",
  "codes_unmailed",
  "writes_capped",
  "mail_unknown",
  "sender_domain_required",
  "invite_capped",
  "sale_nobody",
  "sale_suspended",
] as const satisfies readonly (TroubleCode | ResultCode)[];
export type AlertCode = (typeof ALERT_CODES)[number];

/** The switch of alerts by mail, beside the codes' own. */
export const ALERT_MAIL_SWITCH = "mail";

/** A burst gathers for an hour from its first alert, then the next one is told anew. */
const BURST_MS = HOUR_MS;

const ALERT = defineTable({
  name: "alert",
  key: ["id"],
  topic: "alert",
  columns: {
    id: text(),
    environmentId: integer(),
    /** One of `ALERT_CODES`. */
    code: text(),
    /** Such as `relay:<name>`. */
    target: text(),
    /** The latest one's sentence. */
    message: text(),
    /** How many the row stands for. */
    count: integer(),
    at: integer(),
    lastAt: integer(),
    mailedAt: orNull(integer()),
    /** When its cause was over, or somebody said that it is seen to; null: it is open. */
    resolvedAt: orNull(integer()),
    /** Who said so; `itself` where its cause ended. */
    resolvedBy: orNull(text()),
  },
});

export type AlertRow = RowOf<typeof ALERT>;

export const alertView = Type.Object({
  id: Type.String(),
  code: Type.String(),
  target: Type.String(),
  message: Type.String(),
  /** The page that explains the code, for a caller who is one to be told of pages. */
  docs: Type.Optional(Type.String()),
  count: Type.Integer(),
  at: time,
  lastAt: time,
  mailedAt: timeOrNull,
  resolvedAt: timeOrNull,
  resolvedBy: textOrNull,
});
export type AlertView = Static<typeof alertView>;

export interface NewAlert {
  environmentId: number;
  code: AlertCode;
  /** The code whose end this one tells of: nothing is told where that was switched off. */
  endOf?: AlertCode;
  target: string;
  /** Made anew with each of a burst, where it says how many they are and since when (milliseconds). */
  message: string | ((count: number, sinceMs: number) => string);
  /** How many occurrences this one tells of at once (missed ticks); 1 when absent. */
  count?: number | undefined;
  /** How long a burst gathers; an hour when absent. */
  burstMs?: number;
  nowMs: number;
}

/** Raises the alert, or adds it to the burst it belongs to, where the owner wants alerts of its code. */
export async function raiseAlert(
  tx: Writer,
  { environmentId, code, endOf = code, target, message, count = 1, burstMs = BURST_MS, nowMs }: NewAlert,
): Promise<void> {
  const environment = await findEnvironmentById(tx, environmentId);
  if (environment === null || !isAlertEnabled(environment, code) || !isAlertEnabled(environment, endOf))
    return;
  const key = { environmentId, code, target };
  const burst = await findBurst(tx, key, { nowMs, burstMs });
  const all = count + (burst?.count ?? 0);
  const sentence = typeof message === "string" ? message : message(all, burst?.at ?? nowMs);
  // News of an end asks nothing of anybody; any other alert that comes again is open again.
  const isRecovery = code === "relay_recovered";
  const resolved = {
    resolvedAt: isRecovery ? nowMs : null,
    resolvedBy: isRecovery ? AUTOMATIC_RESOLVER : null,
  };
  if (burst !== null) {
    await ALERT.change(tx, burst, { count: all, lastAt: nowMs, message: sentence, ...resolved });
    return;
  }
  const id = newId("alt", nowMs);
  const row = { ...key, id, message: sentence, count, at: nowMs, lastAt: nowMs, mailedAt: null, ...resolved };
  await ALERT.insert(tx, row);
}

/** One of a clock that stood ahead is none of it: it was mailed, and what comes now would be told to nobody until that clock's time. */
function findBurst(
  tx: Reader,
  key: Pick<AlertRow, "environmentId" | "code" | "target">,
  { nowMs, burstMs }: { nowMs: number; burstMs: number },
): Promise<AlertRow | null> {
  const rest = `WHERE environment_id = $environmentId AND last_at > $sinceMs AND code = $code AND target = $target AND at > $sinceMs
    AND at <= $untilMs ORDER BY last_at DESC LIMIT 1`;
  return ALERT.get(tx, rest, { ...key, sinceMs: nowMs - burstMs, untilMs: nowMs + burstMs });
}

/** Alerts not mailed yet that began after `sinceMs`, oldest first, at most `limit`. */
export function listUnmailedAlerts(
  tx: Reader,
  environmentId: number,
  limit: number,
  sinceMs = 0,
): Promise<AlertRow[]> {
  const rest =
    "WHERE environment_id = $environmentId AND mailed_at IS NULL AND at > $sinceMs ORDER BY id LIMIT $limit";
  return ALERT.all(tx, rest, { environmentId, sinceMs, limit });
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
export function findBurstBefore(tx: Reader, alert: AlertRow): Promise<AlertRow | null> {
  const { environmentId, code, target, at } = alert;
  const rest = `WHERE environment_id = $environmentId AND last_at > $sinceMs AND code = $code AND target = $target AND at < $at
    ORDER BY last_at DESC LIMIT 1`;
  return ALERT.get(tx, rest, { environmentId, code, target, at, sinceMs: at - 2 * BURST_MS });
}

/** Undoes `markAlertMailed` for a mail that certainly did not leave, so that it is tried again. */
export async function markAlertUnmailed(tx: Writer, id: string): Promise<void> {
  await ALERT.change(tx, { id }, { mailedAt: null });
}

/** Notes that the owner was mailed; the burst may still grow. */
export async function markAlertMailed(tx: Writer, id: string, nowMs: number): Promise<void> {
  await tx.run("UPDATE alert SET mailed_at = ?2 WHERE id = ?1 AND mailed_at IS NULL", id, nowMs);
}

/** A page of the environment's alerts, newest first (by when each began); `open` leaves the resolved ones out. */
export async function listAlerts(
  tx: Reader,
  environmentId: number,
  request: PageRequest,
  open = false,
): Promise<Page<AlertView>> {
  const walk = {
    index: open ? "alert_open" : "alert_by_environment_id",
    key: "id",
    led: [
      equals("environment_id", environmentId),
      open ? { sql: "resolved_at IS NULL", values: [] } : undefined,
    ],
  } as const;
  return await walkPage(tx, ALERT, request, walk, viewAlert);
}

/**
 * One somebody says is seen to, with what else is open of its cause (every hour it is told anew) and the problem that it told of; one resolved
 * before stays as it is. Refuses with `not_found`.
 */
export async function resolveAlert(
  tx: Writer,
  { environmentId, id, by, nowMs }: { environmentId: number; id: string; by: string; nowMs: number },
): Promise<{ alert: AlertView; resolved: boolean }> {
  const sentence = `There is no alert ${id} in this environment: relay alerts list shows the open ones.`;
  const alert = await ALERT.require(tx, { environmentId, id }, sentence);
  if (alert.resolvedAt !== null) return { alert: viewAlert(alert), resolved: false };
  const cause = { environmentId, code: alert.code, target: alert.target, nowMs };
  tx.touch("alert", environmentId);
  await resolveAlertsOf(tx, { ...cause, by });
  await clearProblem(tx, cause);
  return { alert: viewAlert({ ...alert, resolvedAt: nowMs, resolvedBy: by }), resolved: true };
}

/** Alerts looked at for what somebody said is seen to. */
const MAX_RESOLVED_SCANNED = 1_000;

/** When somebody last said of this code's alert that it is seen to, by its target. */
export async function listResolvedTimes(
  tx: Reader,
  environmentId: number,
  code: AlertCode,
): Promise<Map<string, number>> {
  const sql = `SELECT target, max(resolved_at) AS at FROM (
      SELECT target, code, resolved_at, resolved_by FROM alert INDEXED BY alert_by_environment_id
      WHERE environment_id = $environmentId ORDER BY id DESC LIMIT ${MAX_RESOLVED_SCANNED})
    WHERE code = $code AND resolved_at IS NOT NULL AND resolved_by <> '${AUTOMATIC_RESOLVER}' GROUP BY target`;
  const rows = await tx.all<{ target: string; at: number }>(sql, { environmentId, code });
  return new Map(rows.map(({ target, at }) => [target, at]));
}

/**
 * The newest open alert of each code and target, newest first: what died is told anew every hour, and a page of them all would be one cause. `more`:
 * there may be others, of more than `limit` or among older ones than are looked at.
 */
export async function listOpenAlertCauses(
  tx: Reader,
  environmentId: number,
  limit: number,
): Promise<{ items: AlertView[]; more: boolean }> {
  const newest = await tx.all<{ id: string; times: number }>(
    `SELECT max(id) AS id, count(*) AS times FROM (
       SELECT id, code, target FROM alert INDEXED BY alert_open
       WHERE environment_id = ?1 AND resolved_at IS NULL ORDER BY id DESC LIMIT ${MAX_OPEN}) AS open
     GROUP BY code, target ORDER BY 1 DESC LIMIT ?2`,
    environmentId,
    limit + 1,
  );
  const ids = JSON.stringify(newest.slice(0, limit).map(({ id }) => id));
  const rows = await ALERT.all(tx, "WHERE id IN (SELECT value FROM json_each($ids)) ORDER BY id DESC", {
    ids,
  });
  const scanned = newest.reduce((sum, { times }) => sum + times, 0);
  return { items: rows.map(viewAlert), more: newest.length > limit || scanned >= MAX_OPEN };
}

export type OpenAlert = Pick<AlertRow, "environmentId" | "code" | "target"> & { lastAt: number };

/** Open alerts looked at for what is over; a target's are resolved together, so the oldest stand for all. */
const MAX_OPEN = 2_000;

/** What is open of these codes, one for all that a target has of one; at most `limit`. */
export function listOpenAlerts(tx: Reader, codes: readonly AlertCode[], limit: number): Promise<OpenAlert[]> {
  return tx.all(
    `SELECT environmentId, code, target, max(lastAt) AS lastAt FROM (
       SELECT environment_id AS environmentId, code, target, last_at AS lastAt FROM alert INDEXED BY alert_open
       WHERE resolved_at IS NULL LIMIT ${MAX_OPEN})
     WHERE code IN (${codes.map((code) => `'${code}'`).join(", ")}) GROUP BY environmentId, code, target LIMIT ?1`,
    limit,
  );
}

function viewAlert(row: AlertRow): AlertView {
  return show(alertView, row);
}
