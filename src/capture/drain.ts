/**
 * Turns logged changes into events: one for every relay that watched when the record was written, still stands, still wants that change
 * and whose `where` matches. Events and the trimming of the log are one transaction, so that a crash leaves a change in the log or in
 * its events, never in both. A paused relay's events wait; that is the runner's. It never asks who wrote: what must not fire was not logged.
 */
import { insertEvent } from "../event/insert.ts";
import type { StoredPayload } from "../event/payload.ts";
import type { Log } from "../ground/log.ts";
import type { RecordView } from "../records/record.ts";
import { readDefinition } from "../relay/definition-shape.ts";
import type { Writer } from "../store/port.ts";
import { type DataChangeTrigger, matchesWhere } from "../trigger/data-change.ts";
import { makeChangePayload } from "./change-payload.ts";
import { type ChangeRow, listChanges, trimChanges, viewAfter, viewBefore } from "./change-row.ts";

interface Drained {
  /** Rows taken from the log. */
  changes: number;
}

interface Watcher {
  id: string;
  name: string;
  environmentId: number;
  trigger: DataChangeTrigger;
}

/** Drains up to `limit` changes, oldest first. */
export async function drainChanges(tx: Writer, limit: number, nowMs: number, log: Log): Promise<Drained> {
  const changes = await listChanges(tx, limit);
  const watchers = await findWatchers(tx, changes);
  for (const change of changes) {
    const views = view(tx, change, log);
    if (views === null || saysNothing(views)) continue;
    const watching = change.relays.split(" ").flatMap((id) => watchers.get(id) ?? []);
    const wanting = watching.filter(({ trigger }) => wants(trigger, change, views.record));
    if (wanting.length === 0) continue;
    const { record, previous } = views;
    const payload = makeChangePayload(record, change.change === "deleted" ? record : previous);
    for (const watcher of wanting) {
      await recordChange(tx, watcher, payload, nowMs);
    }
  }
  const last = changes.at(-1);
  if (last !== undefined) await trimChanges(tx, last.seq);
  return { changes: changes.length };
}

interface Views {
  record: RecordView;
  previous: RecordView | null;
}

/** null for a row that another program wrote and that is no record: it would stop the log for good. */
function view(tx: Writer, change: ChangeRow, log: Log): Views | null {
  try {
    return { record: viewAfter(change), previous: viewBefore(change) };
  } catch (error) {
    const what = { record: change.recordId, error };
    tx.afterCommit(() => log.error("a changed record cannot be read, so it fires nothing", what));
    return null;
  }
}

/** The log leaves out writes of the same text; the same data may be written with its fields in another order. */
function saysNothing({ record, previous }: Views): boolean {
  return (
    previous !== null &&
    record.owner === previous.owner &&
    record.recipient === previous.recipient &&
    Bun.deepEquals(record.data, previous.data, true)
  );
}

function wants(trigger: DataChangeTrigger, change: ChangeRow, record: RecordView): boolean {
  return (
    trigger.collection === change.collection &&
    trigger.on.includes(change.change) &&
    matchesWhere(trigger.where, record.data)
  );
}

async function recordChange(
  tx: Writer,
  watcher: Watcher,
  payload: StoredPayload,
  nowMs: number,
): Promise<void> {
  await insertEvent(tx, {
    environmentId: watcher.environmentId,
    relayId: watcher.id,
    relayName: watcher.name,
    trigger: "data_change",
    payload,
    unsigned: false,
    dedupe: null,
    nowMs,
  });
}

/** The relays of these changes that still stand and still watch records, by id. */
async function findWatchers(tx: Writer, changes: readonly ChangeRow[]): Promise<Map<string, Watcher>> {
  const watchers = new Map<string, Watcher>();
  for (const id of new Set(changes.flatMap((change) => change.relays.split(" ")))) {
    const row = await tx.get<{ name: string; environmentId: number; definition: string }>(
      "SELECT name, environment_id AS environmentId, definition FROM relay WHERE id = ?1",
      id,
    );
    if (row === null) continue;
    const { name, environmentId, definition } = row;
    const { trigger } = readDefinition(definition);
    if (trigger.kind === "data_change") watchers.set(id, { id, name, environmentId, trigger });
  }
  return watchers;
}
