/**
 * Capture: drains the change log into events as soon as it is told of a change, and looks by itself for those it is not told of (another
 * process, SQL by hand): one event for every relay that watched when the record was written, still stands, still wants that change and whose
 * `where` matches. It works in small steps, so that a change many relays watch takes several: a step's events and how far it came in the log
 * are one transaction, so that a crash leaves a change's relay in the log or with its event, never both. A paused relay's events wait; that
 * is the runner's. It never asks who wrote: what must not fire was not logged.
 */

import { type Clock, Loop } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import { matchesWhere } from "../../rules/trigger/data-change.ts";
import type { RecordView } from "../../shop/records/record.ts";
import type { FencedStore, Writer } from "../../store/port.ts";
import { insertEvent, type StoredPayload } from "../event/insert.ts";
import {
  type ChangeRow,
  hasChanges,
  listWatchers,
  makeChangePayload,
  nextChange,
  RECORD_CHANGE,
  trimChanges,
  viewAfter,
  viewBefore,
} from "./change.ts";

/** What one transaction takes at most; bounds how long others wait for the writer. Of the bytes read and written the last may be too many. */
const STEP = { changes: 64, watchers: 1_024, events: 64, read: 192 * 1024, written: 512 * 1024 };
type Room = typeof STEP;

const POLL_MS = 2_000;

interface CaptureDeps {
  store: FencedStore;
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
      await store.write("app", (tx) => drainChanges(tx, {}, clock.now(), log));
    }
  }
}

/** One step: the oldest changes, and of the last of them as many relays as there is room for. Answers how many changes it finished. */
export async function drainChanges(
  tx: Writer,
  most: Partial<Room>,
  nowMs: number,
  log: Log,
): Promise<number> {
  const room = { ...STEP, ...most };
  let finished = 0;
  let seq = 0;
  while (hasRoom(room)) {
    const change = await nextChange(tx, seq);
    if (change === null) break;
    room.changes -= 1;
    room.read -= change.data.length + (change.previousData?.length ?? 0);
    if (!(await fanOut(tx, change, room, nowMs, log))) break;
    finished += 1;
    seq = change.seq;
  }
  if (finished > 0) await trimChanges(tx, seq);
  return finished;
}

/** The change's events, while there is room, which they use up; answers whether that was all of them. */
async function fanOut(tx: Writer, change: ChangeRow, room: Room, nowMs: number, log: Log): Promise<boolean> {
  let views: Views | null = null;
  let payload: StoredPayload | null = null;
  let told = change.toldRelayId;
  while (hasRoomForEvents(room)) {
    const most = Math.min(room.watchers, room.events);
    const watchers = await listWatchers(tx, change, told, most);
    if (watchers.length === 0) return true;
    views ??= readOrLog(tx, change, log, () => view(change));
    if (views === null || views.saysNothing) return true;
    const { record, previous } = views;
    for (const { wanted, ...watcher } of watchers) {
      if (!hasRoomForEvents(room)) break;
      told = watcher.relayId;
      room.watchers -= 1;
      if (!matchesWhere(wanted, record.data)) continue;
      payload ??= readOrLog(tx, change, log, () =>
        makeChangePayload(record, change.change === "deleted" ? record : previous),
      );
      if (payload === null) return true;
      room.events -= 1;
      room.written -= payload.text.length;
      await insertEvent(tx, {
        environmentId: change.environmentId,
        ...watcher,
        trigger: "data_change",
        payload,
        unsigned: false,
        dedupe: null,
        nowMs,
      });
    }
    if (watchers.length < most && hasRoomForEvents(room)) return true;
  }
  if (told !== change.toldRelayId) await RECORD_CHANGE.change(tx, change, { toldRelayId: told });
  return false;
}

function hasRoom(room: Room): boolean {
  return room.changes > 0 && room.read > 0 && hasRoomForEvents(room);
}

function hasRoomForEvents({ watchers, events, written }: Room): boolean {
  return watchers > 0 && events > 0 && written > 0;
}

interface Views {
  record: RecordView;
  previous: RecordView | null;
  /** The log leaves out writes of the same text; the same data may be written with its fields in another order. */
  saysNothing: boolean;
}

function view(change: ChangeRow): Views {
  const record = viewAfter(change);
  const previous = viewBefore(change);
  const saysNothing =
    previous !== null &&
    record.owner === previous.owner &&
    record.recipient === previous.recipient &&
    Bun.deepEquals(record.data, previous.data, true);
  return { record, previous, saysNothing };
}

/** null for a row that another program wrote and that is no record, or none that anybody can read to its end: it would stop the log for good. */
function readOrLog<Read>(tx: Writer, change: ChangeRow, log: Log, read: () => Read): Read | null {
  try {
    return read();
  } catch (error) {
    const what = { record: change.recordId, error };
    tx.afterCommit(() => log.error("a changed record cannot be read, so it fires nothing", what));
    return null;
  }
}
