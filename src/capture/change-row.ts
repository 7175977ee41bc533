/**
 * The change log as its reader sees it. SQL triggers write it (migrations/0008-capture.sql), whoever writes a record: a row says what
 * changed and which relays watched at that moment. The data stays the text it was written as, so that big integers are kept.
 */
import { type JsonObject, parseJson } from "../ground/json.ts";
import { type RecordView, viewRecord } from "../records/record.ts";
import type { Reader, Writer } from "../store/port.ts";
import { type LookedAt, reach } from "../store/walk.ts";
import type { Change } from "../trigger/data-change.ts";

export interface ChangeRow {
  seq: number;
  change: Change;
  /** Relay ids, separated by spaces. */
  relays: string;
  recordId: string;
  collection: string;
  createdAt: number;
  /** JSON text, as are the others of this kind. */
  data: string;
  ownerId: string | null;
  recipientId: string | null;
  writtenBy: string;
  updatedAt: number;
  previousData: string | null;
  previousOwnerId: string | null;
  previousRecipientId: string | null;
  previousWrittenBy: string | null;
  previousUpdatedAt: number | null;
}

const COLUMNS = `seq, change, relays, record_id AS recordId, collection, created_at AS createdAt, data, owner_id AS ownerId,
  recipient_id AS recipientId, written_by AS writtenBy, updated_at AS updatedAt, previous_data AS previousData,
  previous_owner_id AS previousOwnerId, previous_recipient_id AS previousRecipientId, previous_written_by AS previousWrittenBy,
  previous_updated_at AS previousUpdatedAt`;

/** The oldest changes, in the order they were written: at most `limit`, and no more data than one step takes. */
export async function listChanges(tx: Reader, limit: number): Promise<ChangeRow[]> {
  const oldest = await tx.all<LookedAt>(
    `SELECT seq AS key, octet_length(data) + coalesce(octet_length(previous_data), 0) AS cost FROM record_change ORDER BY seq LIMIT ?1`,
    limit,
  );
  const { floor } = reach(oldest, limit);
  if (floor === null) return [];
  return await tx.all<ChangeRow>(`SELECT ${COLUMNS} FROM record_change WHERE seq <= ?1 ORDER BY seq`, floor);
}

/** Whether any change waits. */
export async function hasChanges(tx: Reader): Promise<boolean> {
  return (await tx.get("SELECT 1 FROM record_change LIMIT 1")) !== null;
}

/** Trims the log up to and with `seq`; in the transaction that makes the events, so that a change becomes events once. */
export async function trimChanges(tx: Writer, seq: number): Promise<void> {
  await tx.run("DELETE FROM record_change WHERE seq <= ?1", seq);
}

/** The record after the change, as the API shows one; of a deleted record, as it was last. Throws where the data is not JSON. */
export function viewAfter(row: ChangeRow): RecordView {
  return viewRecord({ ...row, id: row.recordId, data: parseJson(row.data) as JsonObject });
}

/** What an update replaced; null on other changes. Throws where the data is not JSON. */
export function viewBefore(row: ChangeRow): RecordView | null {
  if (row.previousData === null) return null;
  return viewRecord({
    id: row.recordId,
    collection: row.collection,
    data: parseJson(row.previousData) as JsonObject,
    ownerId: row.previousOwnerId,
    recipientId: row.previousRecipientId,
    writtenBy: row.previousWrittenBy ?? "",
    createdAt: row.createdAt,
    updatedAt: row.previousUpdatedAt ?? row.createdAt,
  });
}
