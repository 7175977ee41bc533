/**
 * Warns where files remove fields from a collection whose records have values there, with their number. Nothing is deleted, but the next
 * save of such a record must leave the value out. It reads in steps before a plan is tried, so that no writer waits.
 */
import { isJsonObject, type Json } from "../../base/json.ts";
import { type Page, readCursor } from "../../base/page.ts";
import type { Warning } from "../../base/refusal.ts";
import { formatCount } from "../../base/text.ts";
import { findCollection } from "../../shop/records/collection.ts";
import { listRecords } from "../../shop/records/record-right.ts";
import { yieldToEventLoop } from "../../store/index-scan.ts";
import type { Store } from "../../store/port.ts";
import type { Entry } from "./plan.ts";
import { syncTarget } from "./synced.ts";

/** Counts only the newest records of a collection. */
const MAX_RECORDS = 20_000;
const STEP = 500;

/** Lists warnings by sync target, for collections that would lose a field with values. */
export async function listRemovedFieldWarnings(
  store: Store,
  environmentId: number,
  entries: readonly Entry[],
): Promise<Map<string, Warning[]>> {
  const warnings = new Map<string, Warning[]>();
  for (const entry of entries) {
    const lost = listRemovedFields(entry);
    if (lost.length === 0) continue;
    const { held, looked, all } = await countValues(store, environmentId, entry.name, lost);
    const found = [...held]
      .filter(([, count]) => count > 0)
      .map(([field, count]) => makeWarning(entry.name, field, { count, looked, all }));
    if (found.length > 0) warnings.set(syncTarget(entry), found);
  }
  return warnings;
}

function listRemovedFields({ kind, before, after }: Entry): string[] {
  if (kind !== "collection") return [];
  const remaining = fieldsOf(after);
  return Object.keys(fieldsOf(before)).filter((field) => !Object.hasOwn(remaining, field));
}

function fieldsOf(item: Json): Readonly<Record<string, Json>> {
  return isJsonObject(item) && isJsonObject(item.fields) ? item.fields : {};
}

interface ValueCounts {
  /** The number of records with a value, by field. */
  held: ReadonlyMap<string, number>;
  looked: number;
  /** True if every record was counted. */
  all: boolean;
}

async function countValues(
  store: Store,
  environmentId: number,
  name: string,
  fields: readonly string[],
): Promise<ValueCounts> {
  const held = new Map(fields.map((field) => [field, 0]));
  let looked = 0;
  let after: string | null = null;
  do {
    const page = await readStep(store, { environmentId, name, after }, fields);
    for (const field of page.items.flat()) held.set(field, (held.get(field) ?? 0) + 1);
    looked += page.items.length;
    after = page.next === null ? null : readCursor(page.next);
    await yieldToEventLoop();
  } while (after !== null && looked < MAX_RECORDS);
  return { held, looked, all: after === null };
}

/** Lists for each record of the step which of the fields have a value. */
function readStep(
  store: Store,
  { environmentId, name, after }: { environmentId: number; name: string; after: string | null },
  fields: readonly string[],
): Promise<Page<string[]>> {
  return store.read(async (tx) => {
    const collection = await findCollection(tx, environmentId, name);
    if (collection === null) return { items: [], next: null };
    return await listRecords(tx, environmentId, collection, { limit: STEP, after }, ({ data }) =>
      fields.filter((field) => Object.hasOwn(data, field) && data[field] !== null),
    );
  });
}

function makeWarning(
  collection: string,
  field: string,
  { count, looked, all }: { count: number; looked: number; all: boolean },
): Warning {
  const records = count === 1 ? "1 record holds" : `${formatCount(count)} records hold`;
  const of = all ? "" : ` among the newest ${formatCount(looked)}`;
  const message = `\`fields.${field}\` goes from ${collection}, and ${records} a value there${of}: they keep it, but a save that sends it again is refused. Leave the field in the file if you still need it.`;
  return { code: "field_holds_values", field: `fields.${field}`, message };
}
