/** Writes a test record: creates, updates or deletes it with the same functions as the API, so that a watching relay captures the change. */
import type { JsonObject } from "../../base/json.ts";
import { Refusal } from "../../base/refusal.ts";
import type { LiveRelay } from "../../rules/relay/live-relay.ts";
import type { DataChangeTrigger } from "../../rules/trigger/data-change.ts";
import { requireCollection } from "../../shop/records/collection.ts";
import { deleteRecord, updateRecord, writeRecordIn } from "../../shop/records/record.ts";
import type { Writer } from "../../store/port.ts";
import { makeSampleRecord } from "./sample.ts";
import { placePerson, requirePersonRef, writeExample } from "./simulated-record.ts";

interface TestRecord {
  /** The id or address of the person that the record is for; null for none. */
  person: string | null;
  /** The data; null makes an example. */
  data: JsonObject | null;
  /** The actor that writes it, as the audit log names it. */
  by: string;
  nowMs: number;
}

/** Makes the first change that the relay watches for. Returns the record's id. Throws `invalid_input`. */
export async function writeTestRecord(
  tx: Writer,
  { environmentId }: LiveRelay,
  { collection: name, on, where }: DataChangeTrigger,
  { person, data, by, nowMs }: TestRecord,
): Promise<{ recordId: string; change: string }> {
  const change = on[0] ?? "created";
  const collection = await requireCollection(tx, environmentId, name);
  const about = await requirePersonRef(tx, environmentId, person);
  const sample = data ?? makeSampleRecord(collection, where);
  const first = change === "updated" ? makeOther(sample, where) : sample;
  const of = { environmentId, ...placePerson(collection, about), by, nowMs };
  const { id: recordId } = await writeExample(data === null, name, () =>
    writeRecordIn(tx, collection, { ...of, data: first }),
  );
  const at = { environmentId, collection: name, recordId };
  if (change === "updated") await updateRecord(tx, { ...at, data: sample, by, nowMs });
  if (change === "deleted") await deleteRecord(tx, at);
  return { recordId, change };
}

/** Makes the record before its update: one value differs that `where` does not require. */
function makeOther(data: JsonObject, where: DataChangeTrigger["where"]): JsonObject {
  for (const [name, value] of Object.entries(data)) {
    if (Object.hasOwn(where ?? {}, name)) continue;
    if (typeof value === "string" && value.startsWith("sample "))
      return { ...data, [name]: value.replace("sample", "former") };
    if (typeof value === "number") return { ...data, [name]: value - 1 };
    if (typeof value === "boolean") return { ...data, [name]: !value };
  }
  throw new Refusal(
    "invalid_input",
    "The record has no field to change except the ones that `where` needs: give a record with another text or number.",
  );
}
