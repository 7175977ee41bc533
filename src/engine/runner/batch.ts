/**
 * Runs due events of many relays in one transaction, in the order of their arrival. It serves only relays whose actions stay in the database,
 * so an event, its effects and its next state commit together. Each relay gets an equal share of a batch.
 */

import type { Clock } from "../../base/clock.ts";
import type { LiveRelay, LiveRelays } from "../../rules/relay/live-relay.ts";
import type { LeaseHolder } from "../../store/lease/lease-holder.ts";
import { type FencedStore, StoreUnavailable, type Writer } from "../../store/port.ts";
import { type BufferedEvent, listDueEvents } from "../event/event.ts";
import type { EventSource } from "../event/run.ts";
import type { AttemptDeps } from "./attempt.ts";
import { AttemptGroup } from "./attempt-group.ts";
import { filterCurrent } from "./idle-relays.ts";
import type { ReadyBuffer } from "./ready-buffer.ts";
import type { RunReport } from "./run-report.ts";

/** The most relays in one batch, and the most buffered events in one round of it. */
export const BATCH_SIZE = 128;
/** The most events that one round reads from the database: each may take 32 KB, and is read again if the batch has no time for it. */
export const MAX_READ = 64;
/** A batch takes no further events after so many runs. */
export const MAX_RUNS = 384;

/** A batch starts no event after so many milliseconds, because every receiver waits for its transaction. */
export function maxBatchMs({ holdsAll }: LeaseHolder): number {
  return holdsAll ? 8 : 40;
}

interface BatchDeps extends AttemptDeps {
  store: FencedStore;
  leases: LeaseHolder;
  clock: Clock;
  relays: LiveRelays;
  buffer: ReadyBuffer;
}

/**
 * Runs the oldest due events of these relays and returns their reports after the commit. If an error breaks the batch, nothing of it is stored,
 * and it runs again with a savepoint for each event. Throws StoreUnavailable.
 */
export async function runBatch(relays: readonly LiveRelay[], deps: BatchDeps): Promise<RunReport[]> {
  const commit = (isCareful: boolean): Promise<RunReport[]> =>
    deps.store.write("relay", (tx) => new Batch(tx, deps, isCareful).run(relays));
  try {
    return await commit(false);
  } catch (error) {
    if (error instanceof StoreUnavailable) throw error;
    const names = relays.map(({ name }) => name).join();
    deps.log.error("a batch broke; its events run one by one", { relay: names, error });
    for (const { id } of relays) deps.buffer.invalidate(id);
    return await commit(true);
  }
}

/** The position up to which a batch has run a relay's events. */
interface Cursor {
  readonly relay: LiveRelay;
  /** The number of the last event that ran, or 0. */
  through: number;
}

/** The next due events of one relay. */
interface DuePage extends Cursor {
  readonly events: readonly Omit<BufferedEvent, "relayId">[];
  readonly source: EventSource;
  /** True if the database may hold more due events. */
  readonly hasMore: boolean;
  /** The relay's count of invalidations when the page was taken from the buffer. */
  readonly invalidations: number;
}

class Batch {
  readonly #tx: Writer;
  readonly #deps: BatchDeps;
  readonly #endMs: number;
  readonly #attempts: AttemptGroup;

  constructor(tx: Writer, deps: BatchDeps, isCareful: boolean) {
    this.#tx = tx;
    this.#deps = deps;
    this.#attempts = new AttemptGroup(tx, deps, { nowMs: deps.clock.now(), isCareful });
    this.#endMs = deps.clock.monotonicMs() + maxBatchMs(deps.leases);
  }

  async run(relays: readonly LiveRelay[]): Promise<RunReport[]> {
    const { buffer, leases } = this.#deps;
    buffer.invalidateAfterForeignCommit(
      this.#tx.foreignVersion,
      relays.map(({ id }) => id),
    );
    const current = await filterCurrent(this.#tx, relays, this.#deps.relays);
    for (const relay of relays) if (!current.includes(relay)) buffer.invalidate(relay.id);
    let cursors: Cursor[] = current.map((relay) => ({ relay, through: 0 }));
    do {
      const pages: DuePage[] = [];
      for (const cursor of cursors) pages.push(await this.#readPage(cursor, current.length));
      await this.#runPages(pages);
      cursors = this.#listUnfinished(pages);
      // In a cluster no event runs inline while the relay has a due one, so a batch continues until none is left.
    } while (!leases.holdsAll && cursors.length > 0 && !this.#isOver() && !this.#isFull());
    return await this.#attempts.write();
  }

  #isOver(): boolean {
    return this.#deps.clock.monotonicMs() >= this.#endMs;
  }

  #isFull(): boolean {
    return this.#attempts.size >= MAX_RUNS;
  }

  /** Takes the relay's next due events from the buffer, or reads them. `relays`: how many relays share the batch. */
  async #readPage({ relay, through }: Cursor, relays: number): Promise<DuePage> {
    const { events, invalidations } = this.#deps.buffer.peek(relay.id, Math.ceil(BATCH_SIZE / relays));
    // Events that an older map read are read with their rows.
    if (events?.every(({ event }) => event.mapVersion === relay.version) === true)
      return { relay, through, events, source: "buffer", hasMore: false, invalidations };
    const limit = Math.ceil(MAX_READ / relays);
    const due = await listDueEvents(this.#tx, relay.id, limit, through);
    const read = due.map((event) => ({ event, payload: null }));
    return { relay, through, events: read, source: "database", hasMore: due.length === limit, invalidations };
  }

  /** Runs the pages' events until the time is over: events of starved relays first, then in the order of arrival. */
  async #runPages(pages: readonly DuePage[]): Promise<void> {
    const { starved } = this.#deps.buffer;
    for (const [at, { page, due }] of sortByArrival(pages, starved).entries()) {
      if (at > 0 && this.#isOver()) return;
      await this.#attempts.run(page.relay, { ...due, source: page.source });
      page.through = due.event.seq;
    }
  }

  /** Tells the buffer how far each relay ran, and returns the relays that may have more due events. */
  #listUnfinished(pages: readonly DuePage[]): DuePage[] {
    const starved = pages.filter(({ events: [first], through }) => first && through < first.event.seq);
    this.#deps.buffer.recordStarved(listIds(pages), listIds(starved));
    return pages.filter((page) => starved.includes(page) || !this.#confirmPage(page));
  }

  /** Confirms to the buffer what ran, after the commit. Returns whether no other event of the relay is due. */
  #confirmPage({ relay, through, events, source, hasMore, invalidations }: DuePage): boolean {
    const { buffer } = this.#deps;
    const ranAll = through === (events.at(-1)?.event.seq ?? through);
    const isComplete = source === "buffer" || (!hasMore && ranAll);
    buffer.recordRun(this.#tx.shared, relay.id, through);
    this.#tx.afterCommit(() => buffer.confirm(relay.id, through, { isComplete, invalidations }));
    return isComplete;
  }
}

function listIds(pages: readonly DuePage[]): string[] {
  return pages.map(({ relay }) => relay.id);
}

function sortByArrival(pages: readonly DuePage[], starved: ReadonlySet<string>) {
  const rank = ({ relay }: DuePage): number => (starved.has(relay.id) ? 0 : 1);
  const all = pages.flatMap((page) => page.events.map((due) => ({ page, due })));
  return all.sort((a, b) => rank(a.page) - rank(b.page) || a.due.event.seq - b.due.event.seq);
}
