/**
 * Lists of records, newest first: all of a collection for the app, or what one person may see of it. It never decides who may see
 * what; record-right.ts does, and this file's SQL says the same.
 */
import { makePage, type Page, type PageRequest } from "../ground/page.ts";
import { Refusal } from "../ground/refusal.ts";
import type { Reader, SqlValue } from "../store/port.ts";
import type { CollectionRow } from "./collection.ts";
import { RECORD_COLUMNS, type RecordRow, type RecordView, viewRecord } from "./record.ts";

export interface RecordFilter {
  /** Only records this person owns. */
  owner?: string | undefined;
  /** Only records addressed to this person. */
  to?: string | undefined;
}

/** Every record of the collection, as the app sees it. */
export async function listRecords(
  tx: Reader,
  environmentId: number,
  collection: CollectionRow,
  request: PageRequest,
  filter: RecordFilter = {},
): Promise<Page<RecordView>> {
  const values: SqlValue[] = [environmentId, collection.name, readSeq(request.after), request.limit + 1];
  // Conditions only where asked for, so that a filter finds its own index.
  const owned = filter.owner === undefined ? "" : ` AND owner_id = ?${values.push(filter.owner)}`;
  const addressed = filter.to === undefined ? "" : ` AND recipient_id = ?${values.push(filter.to)}`;
  const rows = await tx.all<RecordRow>(
    `SELECT ${RECORD_COLUMNS} FROM record
     WHERE environment_id = ?1 AND collection = ?2 AND seq < ?3${owned}${addressed}
     ORDER BY seq DESC LIMIT ?4`,
    ...values,
  );
  return makePage(rows, request, (row) => row.seq, viewRecord);
}

/** The records of the collection that a signed-in person may read. */
export async function listRecordsFor(
  tx: Reader,
  environmentId: number,
  collection: CollectionRow,
  personId: string,
  request: PageRequest,
): Promise<Page<RecordView>> {
  if (collection.kind === "shared") return listRecords(tx, environmentId, collection, request);
  const rows = await tx.all<RecordRow>(
    `SELECT ${RECORD_COLUMNS} FROM record
     WHERE seq IN (SELECT seq FROM record WHERE owner_id = ?4 UNION SELECT seq FROM record WHERE recipient_id = ?4)
       AND environment_id = ?1 AND collection = ?2 AND seq < ?3
     ORDER BY seq DESC LIMIT ?5`,
    environmentId,
    collection.name,
    readSeq(request.after),
    personId,
    request.limit + 1,
  );
  return makePage(rows, request, (row) => row.seq, viewRecord);
}

function readSeq(after: string | null): number {
  if (after === null) return Number.MAX_SAFE_INTEGER;
  const seq = Number(after);
  if (Number.isSafeInteger(seq)) return seq;
  throw new Refusal(
    "invalid_input",
    "cursor is not valid: use the next value of the page before, unchanged.",
  );
}
