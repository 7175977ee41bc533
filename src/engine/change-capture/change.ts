/**
 * A row of the change log, which SQL triggers write for every writer (migrations/0022-record-watch.sql), and the payload of its events. The row's
 * number decides which relays watched at that moment.
 */

import { type Json, type JsonObject, parseJson, writeJson } from "../../base/json.ts";
import { MAX_CHANGED_VALUE_BYTES, MAX_PREVIEW_BYTES, MAX_STORED_PAYLOAD_BYTES } from "../../base/limit.ts";
import { cutUtf8, utf8Bytes } from "../../base/text.ts";
import type { Change, DataChangeTrigger } from "../../rules/trigger/data-change.ts";
import { parseStored, type RecordView, readStored, viewRecord } from "../../shop/records/record.ts";
import type { Reader, Writer } from "../../store/port.ts";
import { defineTable, given, integer, orNull, type RowOf, text } from "../../store/table.ts";
import { cutValue, makePayload, type StoredPayload } from "../event/insert.ts";

export const RECORD_CHANGE = defineTable({
  name: "record_change",
  key: ["seq"],
  columns: {
    seq: given(),
    environmentId: integer(),
    change: text<Change>(),
    recordId: text(),
    collection: text(),
    createdAt: integer(),
    /** JSON text, as is `previousData`. Another program may have written something else. */
    data: text(),
    ownerId: orNull(text()),
    recipientId: orNull(text()),
    writtenBy: text(),
    updatedAt: integer(),
    /** The data that an update replaced; null for other changes. */
    previousData: orNull(text()),
    previousOwnerId: orNull(text()),
    previousRecipientId: orNull(text()),
    previousWrittenBy: orNull(text()),
    previousUpdatedAt: orNull(integer()),
    /** The last relay, in the order of ids, whose event is inserted; null before the first. */
    toldRelayId: orNull(text()),
  },
});

export type ChangeRow = RowOf<typeof RECORD_CHANGE>;

/** The oldest changes of an environment, up to a number. */
export interface ChangeRange {
  environmentId: number;
  untilSeq: number;
}

/** The most changes, of all environments, among which one step looks for those of its environment. */
const MAX_LOOKED_AT = 1_000;

/** Lists the environments of the oldest changes. */
export function listChangedEnvironments(tx: Reader): Promise<ChangeRange[]> {
  return tx.all<ChangeRange>(
    `SELECT environment_id AS environmentId, max(seq) AS untilSeq
     FROM (SELECT environment_id, seq FROM record_change ORDER BY seq LIMIT ${MAX_LOOKED_AT}) AS oldest GROUP BY environment_id`,
  );
}

/** Finds the oldest change after `seq`, of the range or of all environments. Returns null where there is none. */
export function nextChange(tx: Reader, seq: number, range: ChangeRange | null): Promise<ChangeRow | null> {
  return range === null
    ? RECORD_CHANGE.get(tx, "WHERE seq > $seq ORDER BY seq LIMIT 1", { seq })
    : RECORD_CHANGE.get(
        tx,
        "WHERE seq > $seq AND seq <= $untilSeq AND environment_id = $environmentId ORDER BY seq LIMIT 1",
        { seq, ...range },
      );
}

interface Watcher {
  relayId: string;
  relayKey: number;
  nameKey: number;
  /** The trigger's `where`. */
  wanted: DataChangeTrigger["where"];
}

/** Lists the relays that watched at the time of the change and still do, in the order of their ids after `lastRelayId`. */
export async function listWatchers(
  tx: Reader,
  { environmentId, collection, change, seq }: ChangeRow,
  lastRelayId: string | null,
  limit: number,
): Promise<Watcher[]> {
  const rows = await tx.all<Omit<Watcher, "wanted"> & { wanted: string | null }>(
    `SELECT watch.relay_id AS relayId, relay_key.key AS relayKey, relay_key.name_key AS nameKey, watch.wanted AS wanted
     FROM record_watch AS watch JOIN relay_key ON relay_key.relay_id = watch.relay_id
     WHERE watch.environment_id = $environmentId AND watch.collection = $collection AND watch.change = $change
       AND watch.relay_id > $lastRelayId
       AND (watch.since < $seq OR EXISTS (
         SELECT 1 FROM past_record_watch AS before WHERE before.relay_id = watch.relay_id AND before.collection = watch.collection
           AND before.change = watch.change AND before.until >= $seq AND before.since < $seq))
     ORDER BY watch.relay_id LIMIT $limit`,
    { environmentId, collection, change, seq, lastRelayId: lastRelayId ?? "", limit },
  );
  return rows.map((row) => ({
    ...row,
    wanted: row.wanted === null ? undefined : (parseJson(row.wanted) as Watcher["wanted"]),
  }));
}

/** Trims the log up to and including `seq`, of the range or of all environments, in the transaction that inserts the last events. */
export async function trimChanges(tx: Writer, seq: number, range: ChangeRange | null): Promise<void> {
  const ofRange = range === null ? "" : "AND environment_id = $environmentId";
  const values = range === null ? { seq } : { seq, environmentId: range.environmentId };
  await tx.run(`DELETE FROM record_change WHERE seq <= $seq ${ofRange}`, values);
  const ofRelays =
    range === null ? "" : "AND relay_id IN (SELECT id FROM relay WHERE environment_id = $environmentId)";
  await tx.run(`DELETE FROM past_record_watch WHERE until <= $seq ${ofRelays}`, values);
}

/**
 * Returns the record after the change, or the last version of a deleted record, as the API shows it. Throws where the data of a written record
 * cannot be read. A deleted record may hold any text.
 */
export function viewAfter(row: ChangeRow): RecordView {
  const data = row.change === "deleted" ? readStored(row.data) : (parseStored(row.data) as JsonObject);
  return viewRecord({ ...row, id: row.recordId, data });
}

/** Returns the record that an update replaced; null for other changes. */
export function viewBefore(row: ChangeRow): RecordView | null {
  if (row.previousData === null) return null;
  return viewRecord({
    id: row.recordId,
    collection: row.collection,
    data: readStored(row.previousData),
    ownerId: row.previousOwnerId,
    recipientId: row.previousRecipientId,
    writtenBy: row.previousWrittenBy ?? "",
    createdAt: row.createdAt,
    updatedAt: row.previousUpdatedAt ?? row.createdAt,
  });
}

/** The most bytes of each record's data, so that both records fit into a payload with the rest. */
const MAX_CUT_DATA_BYTES = (MAX_STORED_PAYLOAD_BYTES - 4 * 1024) / 2;

const MAX_WARNED_FIELDS = 20;

/**
 * Makes the payload `{ record, previous }`, both as the API shows a record:
 *
 * | change  | record           | previous        |
 * |---------|------------------|-----------------|
 * | created | the new record   | null            |
 * | updated | the new version  | the old version |
 * | deleted | the last version | the same        |
 *
 * A deleted record is also `record`, because {{record.data.<field>}} reads that. Equal sides mean a deletion, because an update that changes
 * nothing is no change. Above 32 KB both records keep the fields that fit, each value cut at 2 KB. Each cut field of the record has a warning, and
 * `preview` is the beginning of its data. Source: decisions, "truncation".
 */
export function makeChangePayload(record: RecordView, previous: RecordView | null): StoredPayload {
  const complete = makePayload({
    record: { ...record },
    previous: previous === null ? null : { ...previous },
  });
  if (utf8Bytes(complete.text) <= MAX_STORED_PAYLOAD_BYTES) return complete;
  const cut = cutRecord(record);
  return {
    text: writeJson({ record: cut, previous: previous === null ? null : cutRecord(previous) }),
    truncated: true,
    warnings: formatCutWarnings(record.data, cut.data),
    preview: cutUtf8(writeJson(record.data), MAX_PREVIEW_BYTES),
  };
}

/** Formats a warning for each field that was cut or left out, up to the number that an event keeps. */
function formatCutWarnings(complete: JsonObject, kept: JsonObject): string[] {
  const cut = Object.keys(complete).filter((name) => kept[name] !== complete[name]);
  return cut
    .slice(0, MAX_WARNED_FIELDS)
    .map((name) =>
      Object.hasOwn(kept, name)
        ? `record.data.${name} was cut: the change is larger than 32 KB, so each value keeps its first 2 KB.`
        : `record.data.${name} was left out: the change is larger than 32 KB.`,
    );
}

function cutRecord(record: RecordView): RecordView {
  return { ...record, data: cutData(record.data) };
}

function cutData(data: JsonObject): JsonObject {
  const kept: [string, Json][] = [];
  let bytes = 2;
  for (const [name, value] of Object.entries(data)) {
    const short = cutValue(value, MAX_CHANGED_VALUE_BYTES);
    const cost = utf8Bytes(writeJson(name)) + utf8Bytes(writeJson(short)) + 2;
    if (bytes + cost > MAX_CUT_DATA_BYTES) continue;
    bytes += cost;
    kept.push([name, short]);
  }
  // Object.fromEntries makes own properties, also for a name such as __proto__.
  return Object.fromEntries(kept);
}
