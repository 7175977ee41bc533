/**
 * Problems: what the dashboard shows as wrong now. A problem is open once, however often it is found, and is cleared when the cause ends. The
 * modules that detect problems call this file.
 */
import { type Static, Type } from "typebox";
import { adviseOn } from "../../base/code/code.ts";
import type { ProblemCode } from "../../base/code/problem-code.ts";
import { newId } from "../../base/id.ts";
import type { Page, PageRequest } from "../../base/page.ts";
import { quotingText, show, textOrNull, time, timeOrNull } from "../../base/schema.ts";
import { equals, walkPage } from "../../store/index-scan.ts";
import type { Reader, Writer } from "../../store/port.ts";
import { defineTable, integer, orNull, type RowOf, text } from "../../store/table.ts";

const PROBLEM = defineTable({
  name: "problem",
  key: ["id"],
  columns: {
    id: text(),
    environmentId: integer(),
    /** A code such as `relay_unsigned_event`. */
    code: text(),
    /** A target such as `relay:<name>`. */
    target: text(),
    message: text(),
    raisedAt: integer(),
    clearedAt: orNull(integer()),
  },
});

type ProblemRow = RowOf<typeof PROBLEM>;
export type ProblemKey = Pick<ProblemRow, "environmentId" | "code" | "target">;

/** Fields with which a problem and an alert explain their cause. */
export const causeFields = {
  code: Type.String(),
  /** A target such as `relay:<name>`. */
  target: Type.String(),
  message: quotingText,
  /** The next step for the owner; null for a code of another release. */
  todo: textOrNull,
  /** When it resolves by itself, where the code says it. */
  next: textOrNull,
  /** The change shortly before it began and the names that were probably meant, in sentences; for open ones only. */
  hints: Type.Optional(Type.Array(Type.String())),
  /** The docs page of the code, for callers that can open pages. */
  docs: Type.Optional(Type.String()),
};

export const problemView = Type.Object({
  id: Type.String(),
  ...causeFields,
  raisedAt: time,
  clearedAt: timeOrNull,
});
export type ProblemView = Static<typeof problemView>;

/** The code of events that wait so long that they will be dropped. It is cleared when they may run. */
export const EVENTS_EXPIRING = "events_expiring";

const OPEN =
  "WHERE environment_id = $environmentId AND code = $code AND target = $target AND cleared_at IS NULL";

/** Raises the problem, or updates the message of the open one. Returns whether it is new. */
export async function raiseProblem(
  tx: Writer,
  {
    environmentId,
    code,
    target,
    message,
    nowMs,
  }: ProblemKey & { code: ProblemCode; message: string; nowMs: number },
): Promise<boolean> {
  const key = { environmentId, code, target };
  const open = await PROBLEM.get(tx, OPEN, key);
  if (open === null) {
    await PROBLEM.insert(tx, { ...key, id: newId("prb", nowMs), message, raisedAt: nowMs, clearedAt: null });
    tx.notify("problem", environmentId);
    return true;
  }
  if (open.message !== message) await PROBLEM.change(tx, open, { message });
  return false;
}

/** Updates the message of an open problem. Returns whether it changed. */
export async function updateOpenProblem(tx: Writer, key: ProblemKey, message: string): Promise<boolean> {
  const { environmentId, code, target } = key;
  const open = await PROBLEM.get(tx, OPEN, { environmentId, code, target });
  if (open === null || open.message === message) return false;
  await PROBLEM.change(tx, open, { message });
  return true;
}

/** Finds when the open problem was raised. */
export async function findRaisedAt(
  tx: Reader,
  { environmentId, code, target }: ProblemKey,
): Promise<number | null> {
  return (await PROBLEM.get(tx, OPEN, { environmentId, code, target }))?.raisedAt ?? null;
}

/** Reports whether the problem is open, and has this message if one is given. */
export async function hasProblem(
  tx: Reader,
  { environmentId, code, target }: ProblemKey,
  message?: string,
): Promise<boolean> {
  const open = await PROBLEM.get(tx, OPEN, { environmentId, code, target });
  return open !== null && (message === undefined || open.message === message);
}

/** The resolver of an alert whose cause ended. */
export const AUTOMATIC_RESOLVER = "itself";

/** Clears the problem and resolves its alerts. Returns whether it was open. */
export async function clearProblem(
  tx: Writer,
  { environmentId, code, target, nowMs }: ProblemKey & { nowMs: number },
): Promise<boolean> {
  const sql = `UPDATE problem SET cleared_at = $nowMs ${OPEN}`;
  if ((await tx.run(sql, { environmentId, code, target, nowMs })) === 0) return false;
  tx.notify("problem", environmentId);
  await resolveAlertsOf(tx, { environmentId, code, target, nowMs });
  return true;
}

/** Resolves the open alerts of a target, of one code or of all. */
export async function resolveAlertsOf(
  tx: Writer,
  alerts: Omit<ProblemKey, "code"> & { code?: string; by?: string; nowMs: number },
): Promise<void> {
  const { environmentId, code = null, target, by = AUTOMATIC_RESOLVER, nowMs } = alerts;
  const sql = `UPDATE alert INDEXED BY alert_open SET resolved_at = $nowMs, resolved_by = $by
    WHERE environment_id = $environmentId AND resolved_at IS NULL AND target = $target AND ($code IS NULL OR code = $code)`;
  await tx.run(sql, { environmentId, code, target, by, nowMs });
}

/** Clears all problems of a target and resolves its alerts, for example when it is deleted. */
export async function clearProblemsOf(
  tx: Writer,
  environmentId: number,
  target: string,
  nowMs: number,
): Promise<void> {
  const sql =
    "UPDATE problem SET cleared_at = ?3 WHERE environment_id = ?1 AND target = ?2 AND cleared_at IS NULL";
  tx.notify("problem", environmentId);
  await tx.run(sql, environmentId, target, nowMs);
  await resolveAlertsOf(tx, { environmentId, target, nowMs });
}

/** Lists the open problems of one target, oldest first. */
export function listOpenProblemsOfTarget(
  tx: Reader,
  environmentId: number,
  target: string,
): Promise<ProblemRow[]> {
  const rest =
    "WHERE environment_id = $environmentId AND target = $target AND cleared_at IS NULL ORDER BY id";
  return PROBLEM.all(tx, rest, { environmentId, target });
}

/** Lists the targets of the open problems of one code. */
export function listOpenProblemsOfCode(
  tx: Reader,
  environmentId: number,
  code: string,
): Promise<{ target: string }[]> {
  const sql = "SELECT target FROM problem WHERE environment_id = ?1 AND code = ?2 AND cleared_at IS NULL";
  return tx.all(sql, environmentId, code);
}

/** Clears `EVENTS_EXPIRING` of relays that neither a pause nor a hold stops any more. */
export async function clearExpiringProblems(tx: Writer, environmentId: number, nowMs: number): Promise<void> {
  const freed = await tx.all<{ target: string }>(
    `SELECT target FROM problem WHERE environment_id = $environmentId AND code = '${EVENTS_EXPIRING}' AND cleared_at IS NULL
       AND EXISTS (SELECT 1 FROM environment WHERE id = $environmentId AND held_at IS NULL)
       AND NOT EXISTS (SELECT 1 FROM relay WHERE environment_id = $environmentId AND name = substr(target, 7) AND state = 'paused')`,
    { environmentId },
  );
  for (const { target } of freed)
    await clearProblem(tx, { environmentId, code: EVENTS_EXPIRING, target, nowMs });
}

/** Lists the open problems of these codes, in every environment. */
export function listOpenProblems<Code extends string>(
  tx: Reader,
  codes: readonly Code[],
): Promise<(ProblemKey & { code: Code })[]> {
  const sql = `SELECT environment_id AS environmentId, code, target FROM problem
    WHERE cleared_at IS NULL AND code IN (${codes.map(() => "?").join(", ")})`;
  return tx.all(sql, ...codes);
}

/** Lists one page of problems, newest first. `open` leaves out cleared ones. */
export async function listProblems(
  tx: Reader,
  environmentId: number,
  open: boolean,
  request: PageRequest,
): Promise<Page<ProblemView>> {
  const walk = {
    index: open ? "problem_open" : "problem_by_environment",
    key: "id",
    led: [
      equals("environment_id", environmentId),
      open ? { sql: "cleared_at IS NULL", values: [] } : undefined,
    ],
  } as const;
  return await walkPage(tx, PROBLEM, request, walk, viewProblem);
}

function viewProblem(row: ProblemRow): ProblemView {
  return show(problemView, { ...row, ...adviseOn(row.code) });
}
