/**
 * The payload of a record change, `{ record, previous }`, both as the API shows a record:
 *
 * | change  | record               | previous             |
 * |---------|----------------------|----------------------|
 * | created | the new record       | null                 |
 * | updated | the record as it is  | the record as it was |
 * | deleted | the record as it was | the same             |
 *
 * A deleted record stands under `record`, because that is what {{record.data.<field>}} reads; equal sides mean that it is gone, since an
 * update that changes nothing is no change. Over 32 KB both keep everything but their data, of which the fields stay that fit, each
 * value cut at 2 KB, and what is cut of the record is told. Source: decisions, "truncation".
 */
import { cutValue, makeWholePayload, type StoredPayload } from "../event/payload.ts";
import { type Json, type JsonObject, writeJson } from "../ground/json.ts";
import { MAX_CHANGED_VALUE_BYTES, MAX_PREVIEW_BYTES, MAX_STORED_PAYLOAD_BYTES } from "../ground/limit.ts";
import { cutUtf8, utf8Bytes } from "../ground/text.ts";
import type { RecordView } from "../records/record.ts";

/** What the data of each of two records may take, with room for everything else of both. */
const MAX_CUT_DATA_BYTES = (MAX_STORED_PAYLOAD_BYTES - 4 * 1024) / 2;

const MAX_TOLD_FIELDS = 20;

/** The payload to store; `preview` is the beginning of the record's data when it was too large. */
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
    warnings: tellCut(record.data, cut.data),
    preview: cutUtf8(writeJson(record.data), MAX_PREVIEW_BYTES),
  };
}

/** One sentence for each field that a template reads otherwise than the record holds it, as far as an event keeps warnings. */
function tellCut(whole: JsonObject, kept: JsonObject): string[] {
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
