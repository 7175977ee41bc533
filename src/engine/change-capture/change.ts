/**
 * A change of a record, as SQL triggers log it whoever writes (migrations/0022-record-watch.sql), and the payload that its events carry. A row says
 * what changed, once, and its number says which relays watched at that moment.
 */

import { type Json, type JsonObject, parseJson, writeJson } from "../../base/json.ts";
import { MAX_CHANGED_VALUE_BYTES, MAX_PREVIEW_BYTES, MAX_STORED_PAYLOAD_BYTES } from "../../base/limit.ts";
import { cutUtf8, utf8Bytes } from "../../base/text.ts";
import type { Change, DataChangeTrigger } from "../../rules/trigger/data-change.ts";
import { type RecordView, readStored, viewRecord } from "../../shop/records/record.ts";
import type { Reader, Writer } from "../../store/port.ts";
import { defineTable, given, integer, orNull, type RowOf, text } from "../../store/table.ts";
import { cutValue, makeWholePayload, type StoredPayload } from "../event/insert.ts";

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
    /** JSON text, as is `previousData`: another program may have written what is none. */
    data: text(),
    ownerId: orNull(text()),
    recipientId: orNull(text()),
    writtenBy: text(),
    updatedAt: integer(),
    /** What an update replaced; null on other changes. */
    previousData: orNull(text()),
    previousOwnerId: orNull(text()),
    previousRecipientId: orNull(text()),
    previousWrittenBy: orNull(text()),
    previousUpdatedAt: orNull(integer()),
    /** The last relay that was told of it, in the order of their ids; null: none yet. */
    toldRelayId: orNull(text()),
  },
});

export type ChangeRow = RowOf<typeof RECORD_CHANGE>;

/** The oldest change behind `seq`, or null. */
export function nextChange(tx: Reader, seq: number): Promise<ChangeRow | null> {
  return RECORD_CHANGE.get(tx, "WHERE seq > $seq ORDER BY seq LIMIT 1", { seq });
}

interface Watcher {
  relayId: string;
  relayKey: number;
  nameKey: number;
  /** The trigger's `where`. */
  wanted: DataChangeTrigger["where"];
}

/** The relays that watched the change when it was written and want such changes now, in the order of their ids from behind `told` on. */
export async function listWatchers(
  tx: Reader,
  { environmentId, collection, change, seq }: ChangeRow,
  told: string | null,
  limit: number,
): Promise<Watcher[]> {
  const rows = await tx.all<Omit<Watcher, "wanted"> & { wanted: string | null }>(
    `SELECT watch.relay_id AS relayId, relay_key.key AS relayKey, relay_key.name_key AS nameKey, watch.wanted AS wanted
     FROM record_watch AS watch JOIN relay_key ON relay_key.relay_id = watch.relay_id
     WHERE watch.environment_id = $environmentId AND watch.collection = $collection AND watch.change = $change
       AND watch.relay_id > $told
       AND (watch.since < $seq OR EXISTS (
         SELECT 1 FROM record_watched AS before WHERE before.relay_id = watch.relay_id AND before.collection = watch.collection
           AND before.change = watch.change AND before.until >= $seq AND before.since < $seq))
     ORDER BY watch.relay_id LIMIT $limit`,
    { environmentId, collection, change, seq, told: told ?? "", limit },
  );
  return rows.map((row) => ({
    ...row,
    wanted: row.wanted === null ? undefined : (parseJson(row.wanted) as Watcher["wanted"]),
  }));
}

/** Whether any change waits. */
export async function hasChanges(tx: Reader): Promise<boolean> {
  return (await tx.get("SELECT 1 FROM record_change LIMIT 1")) !== null;
}

/** Trims the log up to and with `seq`; in the transaction that makes the last events, so that a change becomes events once. */
export async function trimChanges(tx: Writer, seq: number): Promise<void> {
  await tx.run("DELETE FROM record_change WHERE seq <= ?1", seq);
  await tx.run("DELETE FROM record_watched WHERE until <= ?1", seq);
}

/**
 * The record after the change, as the API shows one; of a deleted record, as it was last. Throws where the data that was written is not JSON;
 * what went is odd then, as its own page said, and its end is a change all the same.
 */
export function viewAfter(row: ChangeRow): RecordView {
  const data = row.change === "deleted" ? readStored(row.data) : (parseJson(row.data) as JsonObject);
  return viewRecord({ ...row, id: row.recordId, data });
}

/** What an update replaced; null on other changes. */
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

/** What the data of each of two records may take, with room for everything else of both. */
const MAX_CUT_DATA_BYTES = (MAX_STORED_PAYLOAD_BYTES - 4 * 1024) / 2;

const MAX_TOLD_FIELDS = 20;

/**
 * `{ record, previous }`, both as the API shows a record:
 *
 * | change  | record               | previous             |
 * |---------|----------------------|----------------------|
 * | created | the new record       | null                 |
 * | updated | the record as it is  | the record as it was |
 * | deleted | the record as it was | the same             |
 *
 * A deleted record stands under `record`, because that is what {{record.data.<field>}} reads; equal sides mean that it is gone, since an
 * update that changes nothing is no change. Over 32 KB both keep everything but their data, of which the fields stay that fit, each
 * value cut at 2 KB, and what is cut of the record is told; `preview` is then the beginning of the record's data. Source: decisions,
 * "truncation".
 */
export function makeChangePayload(record: RecordView, previous: RecordView | null): StoredPayload {
  const whole = makeWholePayload({
    record: { ...record },
    previous: previous === null ? null : { ...previous },
  });
  if (utf8Bytes(whole.text) <= MAX_STORED_PAYLOAD_BYTES) return whole;
  const cut = cutRecord(record);
  return {
    text: writeJson({ record: cut, previous: previous === null ? null : cutRecord(previous) }),
    truncated: true,
    warnings: formatCutWarnings(record.data, cut.data),
    preview: cutUtf8(writeJson(record.data), MAX_PREVIEW_BYTES),
  };
}

/** One sentence for each field that a template reads otherwise than the record holds it, as far as an event keeps warnings. */
function formatCutWarnings(whole: JsonObject, kept: JsonObject): string[] {
  const cut = Object.keys(whole).filter((name) => kept[name] !== whole[name]);
  return cut
    .slice(0, MAX_TOLD_FIELDS)
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
  // Object.fromEntries makes own properties, also of a name such as __proto__.
  return Object.fromEntries(kept);
}
