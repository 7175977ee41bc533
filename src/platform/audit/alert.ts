/**
 * Alerts for the owner, unless the code is switched off. A burst (the same code and target again within an hour) is one row with a count and
 * one mail. The mail module sends the mail.
 */
import { type Static, Type } from "typebox";
import { adviseOn } from "../../base/code/code.ts";
import type { ProblemCode } from "../../base/code/problem-code.ts";
import type { ResultCode } from "../../base/code/result-code.ts";
import { newId } from "../../base/id.ts";
import { DAY_MS, HOUR_MS } from "../../base/limit.ts";
import type { Page, PageRequest } from "../../base/page.ts";
import { show, textOrNull, time, timeOrNull } from "../../base/schema.ts";
import { equals, walkPage } from "../../store/index-scan.ts";
import type { Reader, Writer } from "../../store/port.ts";
import { defineTable, integer, orNull, type RowOf, text } from "../../store/table.ts";
import { findEnvironmentById, isAlertEnabled } from "../account/environment.ts";
import { AUTOMATIC_RESOLVER, causeFields, clearProblem, resolveAlertsOf } from "./problem.ts";

/** All alert codes; each has a switch on the Alerts page. */
export const ALERT_CODES = [
  "relay_failed",
  "relay_refusing",
  "relay_silent",
  "relay_ignoring",
  "relay_nobody",
  "relay_failing",
  "relay_capped",
  "relay_uncalled",
  "never_verified",
  "secret_missing",
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
] as const satisfies readonly (ProblemCode | ResultCode)[];
export type AlertCode = (typeof ALERT_CODES)[number];

/** The switch for alert mail, in addition to the switches of the codes. */
export const ALERT_MAIL_SWITCH = "mail";

/** A burst collects alerts for an hour from its first alert; then a new burst begins. */
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
    /** A target such as `relay:<name>`. */
    target: text(),
    /** The message of the latest alert. */
    message: text(),
    /** The number of alerts in the row. */
    count: integer(),
    at: integer(),
    lastAt: integer(),
    mailedAt: orNull(integer()),
    /** The time when the cause ended or a user resolved the alert; null: open. */
    resolvedAt: orNull(integer()),
    /** The actor that resolved the alert; `itself` if the cause ended. */
    resolvedBy: orNull(text()),
  },
});

export type AlertRow = RowOf<typeof ALERT>;

export const alertView = Type.Object({
  id: Type.String(),
  ...causeFields,
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
  /** The code whose recovery this alert reports. It is not raised if that code is switched off. */
  endOf?: AlertCode;
  target: string;
  /** The message, or a function that builds it from the count and start (in milliseconds) of the burst. */
  message: string | ((count: number, sinceMs: number) => string);
  /** The number of occurrences (such as missed ticks) in this alert; 1 if absent. */
  count?: number | undefined;
  /** Length of a burst; an hour when absent. */
  burstMs?: number;
  nowMs: number;
}

/** Raises the alert or adds it to its open burst, if the code is switched on. */
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
  // A recovery needs no action, so it is resolved at once. Any other repeated alert opens the row again.
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

/** Updates the message of the open alerts of a target. */
export async function updateOpenAlert(
  tx: Writer,
  { environmentId, code, target }: Pick<AlertRow, "environmentId" | "code" | "target">,
  message: string,
): Promise<void> {
  const sql = `UPDATE alert INDEXED BY alert_open SET message = $message
    WHERE environment_id = $environmentId AND resolved_at IS NULL AND target = $target AND code = $code`;
  if ((await tx.run(sql, { environmentId, code, target, message })) > 0) tx.notify("alert", environmentId);
}

/**
 * Finds the burst that a new alert joins. A burst dated in the future (the clock was set back) is skipped, because its mail has been sent and
 * it would hide new alerts until that time.
 */
function findBurst(
  tx: Reader,
  key: Pick<AlertRow, "environmentId" | "code" | "target">,
  { nowMs, burstMs }: { nowMs: number; burstMs: number },
): Promise<AlertRow | null> {
  const rest = `WHERE environment_id = $environmentId AND last_at > $sinceMs AND code = $code AND target = $target AND at > $sinceMs
    AND at <= $untilMs ORDER BY last_at DESC LIMIT 1`;
  return ALERT.get(tx, rest, { ...key, sinceMs: nowMs - burstMs, untilMs: nowMs + burstMs });
}

/** Lists alerts that began after `sinceMs` and are not mailed, oldest first, at most `limit`. */
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

/** Lists environments with alerts since `sinceMs` that were not mailed: when the oldest began, and when the owner was last mailed. */
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

/** Finds the burst of the same code and target that ended shortly before this one began. */
export function findBurstBefore(tx: Reader, alert: AlertRow): Promise<AlertRow | null> {
  const { environmentId, code, target, at } = alert;
  const rest = `WHERE environment_id = $environmentId AND last_at > $sinceMs AND code = $code AND target = $target AND at < $at
    ORDER BY last_at DESC LIMIT 1`;
  return ALERT.get(tx, rest, { environmentId, code, target, at, sinceMs: at - 2 * BURST_MS });
}

/** Undoes `markAlertMailed` for a mail that certainly was not sent, so that it is retried. */
export async function markAlertUnmailed(tx: Writer, id: string): Promise<void> {
  await ALERT.change(tx, { id }, { mailedAt: null });
}

/** Records that the alert was mailed. The burst may still grow. */
export async function markAlertMailed(tx: Writer, id: string, nowMs: number): Promise<void> {
  await tx.run("UPDATE alert SET mailed_at = ?2 WHERE id = ?1 AND mailed_at IS NULL", id, nowMs);
}

/** Lists one page of alerts, newest first by start. `open` leaves out resolved ones. */
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
 * Resolves an alert, every other open alert of the same cause, and the problem behind it. Changes nothing if the alert is resolved already. Throws
 * `not_found`.
 */
export async function resolveAlert(
  tx: Writer,
  { environmentId, id, by, nowMs }: { environmentId: number; id: string; by: string; nowMs: number },
): Promise<{ alert: AlertView; resolved: boolean }> {
  const sentence = `There is no alert ${id} in this environment: relay alerts list shows the open ones.`;
  const alert = await ALERT.require(tx, { environmentId, id }, sentence);
  if (alert.resolvedAt !== null) return { alert: viewAlert(alert), resolved: false };
  const cause = { environmentId, code: alert.code, target: alert.target, nowMs };
  tx.notify("alert", environmentId);
  await resolveAlertsOf(tx, { ...cause, by });
  await clearProblem(tx, cause);
  return { alert: viewAlert({ ...alert, resolvedAt: nowMs, resolvedBy: by }), resolved: true };
}

/** The most recent alerts that a search for resolved ones reads. */
const MAX_RESOLVED_SCANNED = 1_000;

/** Lists when a user last resolved an alert of this code, by target. */
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
 * Lists the newest open alert of each code and target, newest first. A lasting cause raises an alert every hour, so a plain page could show
 * one cause only. `more` reports that further alerts may exist.
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

/** The most open alerts that a search reads. All alerts of a target resolve together, so the oldest represent the others. */
const MAX_OPEN = 2_000;

/** A longer pause separates two troubles. */
const MAX_PAUSE_MS = DAY_MS;

type Cause = Pick<AlertRow, "code" | "target">;
export type OpenBurst = Cause & Pick<AlertRow, "at" | "lastAt">;

/** Lists the newest open alerts of an environment, newest first. */
export function listOpenBursts(tx: Reader, environmentId: number): Promise<OpenBurst[]> {
  return tx.all(
    `SELECT code, target, at, last_at AS lastAt FROM alert INDEXED BY alert_open
     WHERE environment_id = ?1 AND resolved_at IS NULL ORDER BY id DESC LIMIT ${MAX_OPEN}`,
    environmentId,
  );
}

/** Finds when the trouble of an open alert began: the first of its bursts that follow each other within a day. Returns null if no alert is open. */
export function findAlertBegin(open: readonly OpenBurst[], cause: Cause): number | null {
  let begin: number | null = null;
  for (const { at, lastAt } of open.filter((burst) => isOf(burst, cause))) {
    if (begin !== null && begin - lastAt > MAX_PAUSE_MS) break;
    begin = at;
  }
  return begin;
}

/** Finds when the newest open alert of this code and target last occurred. */
export function findAlertEnd(open: readonly OpenBurst[], cause: Cause): number | null {
  return open.find((burst) => isOf(burst, cause))?.lastAt ?? null;
}

function isOf(burst: Cause, { code, target }: Cause): boolean {
  return burst.code === code && burst.target === target;
}

/** Lists open alerts of these codes, one per target and code, at most `limit`. */
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
  return show(alertView, { ...row, ...adviseOn(row.code) });
}
