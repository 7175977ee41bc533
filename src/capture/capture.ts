/**
 * Capture: drains the change log into events as soon as it is told of a change, and looks by itself for those it is not told of (another
 * process, SQL by hand): one event for every relay that watched when the record was written, still stands, still wants that change and whose
 * `where` matches. Events and the trimming of the log are one transaction, so that a crash leaves a change in the log or in its events,
 * never in both. A paused relay's events wait; that is the runner's. It never asks who wrote: what must not fire was not logged.
 */
import { insertEvent, type StoredPayload } from "../event/insert.ts";
import { type Clock, Loop } from "../ground/clock.ts";
import type { Log } from "../ground/log.ts";
import type { RecordView } from "../records/record.ts";
import { RELAY } from "../relay/relay.ts";
import type { Store, Writer } from "../store/port.ts";
import type { RowOf } from "../store/table.ts";
import { type DataChangeTrigger, matchesWhere } from "../trigger/data-change.ts";
import {
  type ChangeRow,
  hasChanges,
  listChanges,
  makeChangePayload,
  trimChanges,
  viewAfter,
  viewBefore,
} from "./change.ts";

/** Changes in one transaction; bounds how long others wait for the writer. */
const BATCH_SIZE = 64;
const POLL_MS = 2_000;

interface CaptureDeps {
  store: Store;
  clock: Clock;
  log: Log;
}

export class Capture {
  readonly #deps: CaptureDeps;
  readonly #loop: Loop;

  constructor(deps: CaptureDeps) {
    this.#deps = deps;
    this.#loop = new Loop({
      clock: deps.clock,
      everyMs: POLL_MS,
      turn: () => this.#drain(),
      // The next look tries again.
      onError: (error) =>
        deps.log.warn("record changes cannot be captured now", { cause: (error as Error).message }),
    });
  }

  /** Begins: what was written while nothing ran becomes events first. Resolves after that. */
  start(): Promise<void> {
    return this.#loop.start();
  }

  /** Records may have changed; call after the change is durable. */
  wake(): void {
    this.#loop.wake();
  }

  /** Drains nothing more; resolves when what was begun is stored. The rest of the log waits for the next start. */
  stop(): Promise<void> {
    return this.#loop.stop();
  }

  async #drain(): Promise<undefined> {
    const { store, clock, log } = this.#deps;
    while (this.#loop.running && (await store.read(hasChanges))) {
      await store.write("app", (tx) => drainChanges(tx, BATCH_SIZE, clock.now(), log));
    }
  }
}

const WATCHER = RELAY.pick("id", "name", "environmentId", "definition");
type Watcher = Omit<RowOf<typeof WATCHER>, "definition"> & { trigger: DataChangeTrigger };

/** Drains up to `limit` changes, oldest first; answers how many. */
export async function drainChanges(tx: Writer, limit: number, nowMs: number, log: Log): Promise<number> {
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
  return changes.length;
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
    const row = await WATCHER.get(tx, "WHERE id = $id", { id });
    if (row === null) continue;
    const { definition, ...watcher } = row;
    const { trigger } = definition;
    if (trigger.kind === "data_change") watchers.set(id, { ...watcher, trigger });
  }
  return watchers;
}
