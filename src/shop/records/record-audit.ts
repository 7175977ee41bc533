/** Audits what an owner does to records and files. Rows contain no data and no file name, because the audit outlives an erasure. */

import { type Change, writeAudit } from "../../platform/audit/audit.ts";
import type { Writer } from "../../store/port.ts";
import type { FileView } from "./file.ts";
import type { NewRecord } from "./record.ts";

type RecordAction = "record.created" | "record.changed" | "record.deleted";

/** `row`: the record after the change, or before its deletion. */
export function auditRecord(tx: Writer, change: Change, action: RecordAction, row: NewRecord): Promise<void> {
  return writeAudit(tx, {
    ...change,
    action,
    target: `record:${row.id}`,
    after: { collection: row.collection, fields: Object.keys(row.data) },
  });
}

export function auditFile(
  tx: Writer,
  change: Change,
  action: "file.uploaded" | "file.deleted",
  { id, mediaType, bytes }: Pick<FileView, "id" | "mediaType" | "bytes">,
): Promise<void> {
  return writeAudit(tx, { ...change, action, target: `file:${id}`, after: { mediaType, bytes } });
}
