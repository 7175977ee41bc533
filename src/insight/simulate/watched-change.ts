/**
 * Lists recent changes of records, and says of each whether a record-change trigger would run. Relay keeps no history of records. So the list has the
 * last change of each of the newest records, and what owners changed or deleted lately. Reads a bounded number of rows.
 */
import { type Static, Type } from "typebox";
import { toIso } from "../../base/clock.ts";
import { oneOf, time } from "../../base/schema.ts";
import { showChoices, showNumber, showText } from "../../base/shape.ts";
import { type Change, type DataChangeTrigger, findWhereMismatch } from "../../rules/trigger/data-change.ts";
import { findCollection } from "../../shop/records/collection.ts";
import { findRecord, type RecordRow } from "../../shop/records/record.ts";
import { listAuditedRecords } from "../../shop/records/record-audit.ts";
import { listRecords } from "../../shop/records/record-right.ts";
import { readPage } from "../../store/index-scan.ts";
import type { Store } from "../../store/port.ts";

const MAX_SHOWN = 5;
/** The newest records that are read. */
const MAX_RECORDS = 50;
const STEPS = 2;

export const watchedChange = Type.Object({
  /** The record's id. */
  record: Type.String(),
  change: oneOf(["created", "updated", "deleted"]),
  at: time,
  wouldRun: Type.Boolean(),
  /** The reason in one sentence. */
  reason: Type.String(),
});
type WatchedChange = Static<typeof watchedChange>;

/** Lists the newest changes, newest first; none where the collection does not exist. */
export async function listWatchedChanges(
  store: Store,
  environmentId: number,
  trigger: DataChangeTrigger,
): Promise<WatchedChange[]> {
  const { collection: name } = trigger;
  const evaluate = (row: RecordRow): WatchedChange => evaluateRecord(trigger, row);
  const collection = await store.read((tx) => findCollection(tx, environmentId, name));
  if (collection === null) return [];
  const { items } = await readPage(
    store,
    { limit: MAX_RECORDS, after: null },
    (tx, part) => listRecords(tx, environmentId, collection, part, evaluate),
    { steps: STEPS },
  );
  const byRecord = new Map(items.map((item) => [item.record, item]));
  const audited = await store.read((tx) => listAuditedRecords(tx, environmentId, name));
  for (const { action, recordId, at } of audited
    .filter(({ recordId }) => !byRecord.has(recordId))
    .slice(0, MAX_SHOWN)) {
    const row =
      action === "record.deleted"
        ? null
        : await store.read((tx) => findRecord(tx, environmentId, name, recordId));
    if (row !== null) byRecord.set(recordId, evaluate(row));
    else if (action === "record.deleted") byRecord.set(recordId, evaluateDeleted(trigger, recordId, at));
  }
  return [...byRecord.values()].sort((one, other) => (one.at < other.at ? 1 : -1)).slice(0, MAX_SHOWN);
}

function evaluateRecord({ on, where }: DataChangeTrigger, row: RecordRow): WatchedChange {
  const { id: record, createdAt, updatedAt, writtenBy, data } = row;
  const change = updatedAt > createdAt ? "updated" : "created";
  const shown = { record, change, at: toIso(updatedAt) } as const;
  const skip = (reason: string): WatchedChange => ({ ...shown, wouldRun: false, reason });
  if (writtenBy.startsWith(BY_RELAY))
    return skip(
      `The relay ${writtenBy.slice(BY_RELAY.length)} wrote it, and a record that a relay writes starts no relay.`,
    );
  if (!on.includes(change)) return skip(explainUnwatched(change, on));
  const name = findWhereMismatch(where, data);
  if (name === null) return { ...shown, wouldRun: true, reason: explainRun(change, where) };
  const found = Object.hasOwn(data, name) ? `has ${showValue(data[name])}` : "does not have the field";
  return skip(`where.${name} must be ${showValue(where?.[name])}, and the record ${found}.`);
}

const BY_RELAY = "relay:";

function evaluateDeleted({ on, where }: DataChangeTrigger, record: string, atMs: number): WatchedChange {
  const shown = { record, change: "deleted", at: toIso(atMs) } as const;
  if (!on.includes("deleted")) return { ...shown, wouldRun: false, reason: explainUnwatched("deleted", on) };
  if (Object.keys(where ?? {}).length === 0)
    return { ...shown, wouldRun: true, reason: explainRun("deleted", where) };
  return {
    ...shown,
    wouldRun: false,
    reason: "The deleted record's fields are not stored, so where cannot be checked.",
  };
}

function explainRun(change: Change, where: DataChangeTrigger["where"]): string {
  return where === undefined
    ? `The record was ${change}, which the relay watches for.`
    : `The record was ${change}, which the relay watches for, and it matches where.`;
}

function explainUnwatched(change: Change, on: readonly Change[]): string {
  return `The record was ${change}, and the relay watches only for ${showChoices(on, on.length)}.`;
}

function showValue(value: unknown): string {
  if (typeof value === "string") return showText(value);
  if (typeof value === "number" || typeof value === "bigint") return showNumber(value);
  if (typeof value === "boolean") return String(value);
  return value === null ? "null" : "a list or an object";
}
