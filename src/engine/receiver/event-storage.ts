/**
 * Stores events of verified requests. One transaction takes the events of several requests. For each it checks how the signature was used, the
 * app's cap of the minute and the deduplication key. It then stores the row and runs the event inline, or finds why there is no row. Only a stored row
 * takes a place in the minute.
 */

import type { Clock } from "../../base/clock.ts";
import { CAP_WINDOW_MS, type RaisableLimits } from "../../base/limit.ts";
import { drawPlaces } from "../../base/limit-window.ts";
import { Limiter, type Places } from "../../base/limiter.ts";
import type { Refusal } from "../../base/refusal.ts";
import { OutcomeUnknown, type PrefetchReader, type Store, type Writer } from "../../store/port.ts";
import {
  type DedupeKey,
  type EventDispatcher,
  type EventDraft,
  EventInserter,
  findDuplicate,
} from "../event/insert.ts";
import { rejectFullApp } from "./rejection.ts";
import { type EarlierUse, findEarlierUse, type SignatureUse, spendSignature } from "./signature-memory.ts";

/** Takes each new event, so that it runs. */
export interface EventRunner extends Pick<EventDispatcher, "enqueue"> {
  /** Runs events in the transaction that stores them, where possible. `finalize` must follow the last event. */
  startInline(
    tx: Writer,
    events: readonly EventDraft[],
  ): { run: EventDispatcher["runInline"]; finalize(): Promise<void> };
  /** Prefetches what runs of these events would read. */
  prefetch(reader: PrefetchReader, events: readonly EventDraft[]): readonly Promise<unknown>[];
}

interface StorageDeps {
  store: Store;
  runner: EventRunner;
  clock: Clock;
  limits: Pick<RaisableLimits, "verifiedEventsPerMinute">;
  places: Places | null;
}

/** The event of a request, with its deduplication key. */
export type ReceivedEvent = EventDraft & { dedupe: DedupeKey };

/** A request to store: an event of its relay, or one of each relay that takes it. All are stored in one transaction, or none. */
interface Draft {
  appId: string;
  events: readonly [ReceivedEvent, ...ReceivedEvent[]];
  oneTimeUse: SignatureUse | null;
  /** True if it holds a place in the app's minute. */
  counted: boolean;
}

/** An event of the draft, or the first one with its key. */
export type StoredEvent = { id: string; duplicate: boolean };
/** The events in the order of the draft, an earlier use of the signature, or the refusal over the cap. */
type Stored = readonly StoredEvent[] | EarlierUse | Refusal;
/** `no_place`: this node has no place of the minute left, and must draw places first. */
type Answered = Stored | "no_place";

export class EventStorage {
  readonly #runner: EventRunner;
  readonly #write: (draft: Draft) => Promise<Answered>;
  /** Caps new events, by app. */
  readonly #limiter: Limiter;

  constructor({ store, runner, clock, limits, places }: StorageDeps) {
    this.#runner = runner;
    this.#write = store.batchWrites("app", (tx, drafts) => this.#storeAll(tx, drafts), {
      prefetch: (reader, drafts) => this.#prefetch(reader, drafts),
      scopeOf: ({ events }) => events[0].environmentId,
    });
    const sharing = { kind: "event", places, drawing: "blocks" } as const;
    this.#limiter = new Limiter(clock, limits.verifiedEventsPerMinute, CAP_WINDOW_MS, sharing);
  }

  /** Returns the events or the earlier ones after their rows are durable, an earlier use of the signature, or a refusal over the app's cap. */
  async store(draft: Draft): Promise<Stored> {
    try {
      return await this.#storeInPlace(draft);
    } catch (error) {
      // A row that may exist keeps its place.
      if (!(error instanceof OutcomeUnknown)) this.#count(draft, false);
      throw error;
    }
  }

  /** Draws places of the minute if this node has none, and again if other requests took the drawn ones meanwhile. */
  async #storeInPlace(draft: Draft): Promise<Stored> {
    for (;;) {
      await drawPlaces([{ limiter: this.#limiter, name: draft.appId }]);
      const stored = await this.#write(draft);
      if (stored !== "no_place") return stored;
    }
  }

  async #storeAll(tx: Writer, drafts: readonly Draft[]): Promise<Answered[]> {
    const inline = this.#runner.startInline(tx, eventsOf(drafts));
    const inserter = new EventInserter(tx, {
      runInline: (event) => inline.run(event),
      enqueue: (event) => this.#runner.enqueue(event),
    });
    const stored: Answered[] = [];
    for (const draft of drafts) {
      const { oneTimeUse, events } = draft;
      // Taken before the first statement, because events of the app's other environment may be stored meanwhile.
      if (!draft.counted && this.#limiter.hasPlace(draft.appId)) this.#count(draft, true);
      const obstacle = oneTimeUse !== null || !draft.counted ? await this.#findObstacle(tx, draft) : null;
      if (obstacle !== null) {
        this.#count(draft, false);
        stored.push(obstacle);
        continue;
      }
      const rows: StoredEvent[] = [];
      for (const event of events) rows.push(await inserter.insert(event));
      if (oneTimeUse !== null) await spendSignature(tx, oneTimeUse, rows[0]?.id ?? null);
      this.#count(
        draft,
        rows.some(({ duplicate }) => !duplicate),
      );
      stored.push(rows);
    }
    await inline.finalize();
    return stored;
  }

  #prefetch(reader: PrefetchReader, drafts: readonly Draft[]): readonly Promise<unknown>[] {
    const events = eventsOf(drafts);
    return [...EventInserter.prefetch(reader, events), ...this.#runner.prefetch(reader, events)];
  }

  /**
   * Finds the answer for a request that cannot be stored: its signature was used before, or no place of the app's minute is left. Returns null if it
   * can be stored.
   */
  async #findObstacle(tx: Writer, { oneTimeUse, counted, appId, events }: Draft): Promise<Answered | null> {
    const earlier = oneTimeUse === null ? null : await findEarlierUse(tx, oneTimeUse);
    if (earlier !== null) return earlier;
    if (counted) return null;
    const resetAtMs = this.#limiter.fullUntil(appId);
    if (resetAtMs === null) return "no_place";
    const earlierEvents: StoredEvent[] = [];
    for (const { dedupe } of events) {
      const first = await findDuplicate(tx, dedupe);
      if (first === null) return rejectFullApp(this.#limiter.limit, resetAtMs);
      earlierEvents.push(first);
    }
    return earlierEvents;
  }

  /** Takes or returns the draft's place in the minute. The draft holds one place even if the store runs the work twice. */
  #count(draft: Draft, isEvent: boolean): void {
    if (isEvent && !draft.counted) this.#limiter.count(draft.appId);
    if (!isEvent && draft.counted) this.#limiter.giveBack(draft.appId);
    draft.counted = isEvent;
  }
}

function eventsOf(drafts: readonly Draft[]): ReceivedEvent[] {
  return drafts.flatMap(({ events }) => events);
}
