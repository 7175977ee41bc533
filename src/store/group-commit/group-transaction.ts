/**
 * Begins a group's transaction and prefetches what its works will read. While the transaction waits for another process's writer lock, works can
 * still join, so that their responses arrive together with the lock.
 */
import type { GroupDatabase } from "./group-database.ts";
import type { QueuedWork } from "./queued-work.ts";
import { makePrefetchReader } from "./transaction.ts";

/** The most new works that one step prefetches while the transaction waits for the lock. */
const PREFETCH_BATCH = 8;

export class GroupTransaction {
  /** The number that `begin` returns. */
  readonly version: Promise<number>;
  readonly #database: GroupDatabase;
  readonly #asked = new Set<QueuedWork>();
  #isOver = false;
  #asksSoon = false;

  constructor(database: GroupDatabase) {
    this.#database = database;
    this.version = database.begin();
    this.version.catch(() => undefined);
  }

  /** Prefetches what the works will read, if the database supports it. */
  ask(group: readonly QueuedWork[]): void {
    const database = this.#database;
    const some = this.#asked.size === 0 ? group : group.filter((waiting) => !this.#asked.has(waiting));
    if (!database.isBegun || some.length === 0) return;
    const reader = makePrefetchReader(database.connection, database.keys);
    if (reader === undefined) return;
    const fences = new Set(some.flatMap(({ fence }) => fence ?? []));
    const asked = [...fences].map((fence): Promise<unknown> => fence(reader));
    for (const [prefetch, batch] of Map.groupBy(some, ({ prefetch }) => prefetch)) {
      const drafts = batch.map(({ draft }) => draft);
      asked.push(...(prefetch?.(reader, drafts) ?? []));
    }
    void Promise.allSettled(asked);
    for (const waiting of some) this.#asked.add(waiting);
  }

  /** Prefetches for new works, together with those that arrive in the same turn of the event loop. `all` is every waiting work. */
  join(all: readonly QueuedWork[]): void {
    if (this.#asksSoon || all.length < this.#asked.size + PREFETCH_BATCH) return;
    this.#asksSoon = true;
    setImmediate(() => {
      this.#asksSoon = false;
      if (!this.#isOver) this.ask(all);
    });
  }

  /** Prefetches for the last works of the complete group. Later works belong to the next group. */
  close(group: readonly QueuedWork[]): void {
    this.ask(group);
    this.#isOver = true;
  }
}
