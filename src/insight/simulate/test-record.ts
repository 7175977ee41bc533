/** A test record by hand: written, changed or deleted in its collection through the same door as the app's, so that a relay that watches it sees a change. */
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
  /** The id or address of whom it is for; null: nobody. */
  person: string | null;
  /** null: an example is made. */
  data: JsonObject | null;
  /** Who writes it, in words. */
  by: string;
  nowMs: number;
}

/** Makes the first change that the relay watches for. Answers the record's id. Refuses with `invalid_input`. */
export async function writeTestRecord(
  tx: Writer,
  { environmentId }: LiveRelay,
  { collection: name, on, where }: DataChangeTrigger,
  { person, data, by, nowMs }: TestRecord,
): Promise<{ recordId: string; change: string }> {
  const change = on[0] ?? "created";
  const collection = await requireCollection(tx, environmentId, name);
  const about = await requirePersonRef(tx, environmentId, person);
  const whole = data ?? makeSampleRecord(collection, where);
  const first = change === "updated" ? makeOther(whole, where) : whole;
  const of = { environmentId, ...placePerson(collection, about), by, nowMs };
  const { id: recordId } = await writeExample(data === null, name, () =>
    writeRecordIn(tx, collection, { ...of, data: first }),
  );
  const at = { environmentId, collection: name, recordId };
  if (change === "updated") await updateRecord(tx, { ...at, data: whole, by, nowMs });
  if (change === "deleted") await deleteRecord(tx, at);
  return { recordId, change };
}

/** The record as it was before it was updated: one text or number of it is another, none that `where` asks for. */
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
    "The record has nothing to change beside what `where` asks for: give one with another text or number.",
  );
}
