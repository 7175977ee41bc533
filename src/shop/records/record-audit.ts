/** Audits what an owner does to records and files. Rows contain no data and no file name, because the audit outlives an erasure. */

import { type Change, writeAudit } from "../../platform/audit/audit.ts";
import type { Reader, Writer } from "../../store/port.ts";
import type { FileView } from "./file.ts";
import type { NewRecord } from "./record.ts";

const RECORD_TARGET = "record:";

type RecordAction = "record.created" | "record.changed" | "record.deleted";

/** `row`: the record after the change, or before its deletion. */
export function auditRecord(tx: Writer, change: Change, action: RecordAction, row: NewRecord): Promise<void> {
  return writeAudit(tx, {
    ...change,
    action,
    target: `${RECORD_TARGET}${row.id}`,
    after: { collection: row.collection, fields: Object.keys(row.data) },
  });
}

interface AuditedRecord {
  action: RecordAction;
  recordId: string;
  /** Milliseconds since the epoch. */
  at: number;
}

/** The newest management changes that a search for changes of records reads. */
const MAX_CHANGES_READ = 100;

/** Lists what owners changed or deleted lately in a collection, newest first. Reads a bounded number of the newest management changes. */
export function listAuditedRecords(
  tx: Reader,
  environmentId: number,
  collection: string,
): Promise<AuditedRecord[]> {
  const sql = `SELECT action, substr(target, ${RECORD_TARGET.length + 1}) AS recordId, at
    FROM (SELECT seq, action, target, at, CASE WHEN action IN ('record.changed', 'record.deleted') THEN after ->> '$.collection' END AS collection
      FROM audit INDEXED BY audit_changes
      WHERE environment_id = $environmentId AND event_id IS NULL ORDER BY seq DESC LIMIT ${MAX_CHANGES_READ}) AS newest
    WHERE collection = $collection ORDER BY seq DESC`;
  return tx.all<AuditedRecord>(sql, { environmentId, collection });
}

export function auditFile(
  tx: Writer,
  change: Change,
  action: "file.uploaded" | "file.deleted",
  { id, mediaType, bytes }: Pick<FileView, "id" | "mediaType" | "bytes">,
): Promise<void> {
  return writeAudit(tx, { ...change, action, target: `file:${id}`, after: { mediaType, bytes } });
}
