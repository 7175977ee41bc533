/**
 * Problems: what the dashboard shows as wrong now. One stands once, however often it is found, and is cleared when it is right again.
 * It never finds a problem itself; the rooms that know do.
 */
import { newId } from "../ground/id.ts";
import type { Page, PageRequest } from "../ground/page.ts";
import type { Reader, Writer } from "../store/port.ts";
import { equals, walkPage } from "../store/walk.ts";

interface ProblemRow {
  id: string;
  /** Such as `relay_unsigned_event`. */
  code: string;
  /** Such as `relay:<name>`. */
  target: string;
  message: string;
  raisedAt: number;
  clearedAt: number | null;
}

interface ProblemKey {
  environmentId: number;
  code: string;
  target: string;
}

const COLUMNS = "id, code, target, message, raised_at AS raisedAt, cleared_at AS clearedAt";
const STANDING = "environment_id = ?1 AND code = ?2 AND target = ?3 AND cleared_at IS NULL";

/** Raises the problem unless it stands; a standing one takes the new message. Answers whether it is new. */
export async function raiseProblem(
  tx: Writer,
  problem: ProblemKey & { message: string; nowMs: number },
): Promise<boolean> {
  const { environmentId, code, target, message, nowMs } = problem;
  const find = `SELECT id, message FROM problem WHERE ${STANDING}`;
  const standing = await tx.get<{ id: string; message: string }>(find, environmentId, code, target);
  if (standing === null) {
    const sql = `INSERT INTO problem (id, environment_id, code, target, message, raised_at)
      VALUES (?1, ?2, ?3, ?4, ?5, ?6)`;
    await tx.run(sql, newId("prb", nowMs), environmentId, code, target, message, nowMs);
    return true;
  }
  if (standing.message !== message) {
    await tx.run("UPDATE problem SET message = ?2 WHERE id = ?1", standing.id, message);
  }
  return false;
}

/** Clears the problem if it stands. Answers whether it did. */
export async function clearProblem(tx: Writer, problem: ProblemKey & { nowMs: number }): Promise<boolean> {
  const sql = `UPDATE problem SET cleared_at = ?4 WHERE ${STANDING}`;
  return (await tx.run(sql, problem.environmentId, problem.code, problem.target, problem.nowMs)) > 0;
}

/** Clears whatever stands on a target, as when it is deleted. */
export async function clearProblemsOf(
  tx: Writer,
  environmentId: number,
  target: string,
  nowMs: number,
): Promise<void> {
  const sql =
    "UPDATE problem SET cleared_at = ?3 WHERE environment_id = ?1 AND target = ?2 AND cleared_at IS NULL";
  await tx.run(sql, environmentId, target, nowMs);
}

/** What stands on one target, oldest first. */
export function standingProblemsOf(tx: Reader, environmentId: number, target: string): Promise<ProblemRow[]> {
  const sql = `SELECT ${COLUMNS} FROM problem
    WHERE environment_id = ?1 AND target = ?2 AND cleared_at IS NULL ORDER BY id`;
  return tx.all<ProblemRow>(sql, environmentId, target);
}

/** A page of the environment's problems, newest first; `standing` leaves the cleared ones out. */
export async function listProblems(
  tx: Reader,
  environmentId: number,
  standing: boolean,
  request: PageRequest,
): Promise<Page<ProblemRow>> {
  return await walkPage<ProblemRow, ProblemRow>(
    tx,
    {
      from: `problem INDEXED BY ${standing ? "problem_by_standing" : "problem_by_environment"}`,
      columns: COLUMNS,
      key: "id",
      led: [
        equals("environment_id", environmentId),
        standing ? { sql: "cleared_at IS NULL", values: [] } : undefined,
      ],
      after: request.after,
      limit: request.limit,
    },
    (row) => row,
  );
}
