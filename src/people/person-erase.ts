/**
 * Erasing a person: everything personal goes, what the books need keeps a tombstone id. The one list of what an erasure touches, which
 * is why it reaches into tables of other rooms. The caller writes with origin `erasure`, so that no relay hears of it.
 */
import type { Writer } from "../store/port.ts";
import { requirePerson } from "./person.ts";

export interface Erasure {
  environmentId: number;
  personId: string;
  /** In words: `key:<id>`, `owner:<email>`. */
  by: string;
  nowMs: number;
}

/** How many of each an erasure touched, for the audit. */
export interface ErasureCount {
  records: number;
  files: number;
  grants: number;
  subscriptions: number;
  tokens: number;
}

/**
 * Deletes the records the person owns and those the app addressed to them (a record another person wrote to them stays that
 * person's), and the files only those records held; removes address, attributes and tokens; ends grants and subscriptions; blanks
 * mail. Ledger, grants and receipts stay under the id. Refuses with `not_found`.
 */
export async function erasePerson(tx: Writer, erasure: Erasure): Promise<ErasureCount> {
  const { environmentId, personId, by, nowMs } = erasure;
  await requirePerson(tx, environmentId, personId);
  const held = await tx.all<{ data: string }>(
    `SELECT data FROM record WHERE ${THEIRS} AND instr(data, 'fil_') > 0`,
    personId,
    environmentId,
  );
  const records = await tx.run(`DELETE FROM record WHERE ${THEIRS}`, personId, environmentId);
  const files = await deleteFilesHeldBy(tx, environmentId, held);
  const grants = await tx.run(
    `UPDATE access_grant SET revoked_at = ?3, revoked_by = ?4
     WHERE person_id = ?1 AND environment_id = ?2 AND revoked_at IS NULL`,
    personId,
    environmentId,
    nowMs,
    by,
  );
  const subscriptions = await tx.run(
    `UPDATE subscription SET status = 'ended', ended_at = ?3
     WHERE person_id = ?1 AND environment_id = ?2 AND status = 'active'`,
    personId,
    environmentId,
    nowMs,
  );
  const tokens = await tx.run(
    "DELETE FROM person_token WHERE person_id = ?1 AND environment_id = ?2",
    personId,
    environmentId,
  );
  await tx.run(
    "UPDATE email SET recipient = 'erased', subject = '', text = '' WHERE person_id = ?1 AND environment_id = ?2",
    personId,
    environmentId,
  );
  await tx.run(
    `UPDATE person SET email = NULL, email_key = NULL, status = 'erased', attributes = '{}', updated_at = ?3
     WHERE id = ?1 AND environment_id = ?2`,
    personId,
    environmentId,
    nowMs,
  );
  return { records, files, grants, subscriptions, tokens };
}

/** Two searches by index instead of one scan. */
const THEIRS = `seq IN (
  SELECT seq FROM record WHERE owner_id = ?1 AND environment_id = ?2
  UNION ALL
  SELECT seq FROM record WHERE recipient_id = ?1 AND environment_id = ?2 AND owner_id IS NULL)`;

const FILE_ID = /"(fil_[0-9a-f]{32})"/g;

async function deleteFilesHeldBy(
  tx: Writer,
  environmentId: number,
  held: readonly { data: string }[],
): Promise<number> {
  const ids = new Set(
    held.flatMap(({ data }) => Array.from(data.matchAll(FILE_ID), (found) => found[1] ?? "")),
  );
  let deleted = 0;
  for (const id of ids) {
    deleted += await tx.run(
      `DELETE FROM file WHERE id = ?1 AND environment_id = ?2
       AND NOT EXISTS (SELECT 1 FROM record WHERE environment_id = ?2 AND instr(data, ?1) > 0)`,
      id,
      environmentId,
    );
  }
  return deleted;
}
