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
  readonly #prefetched = new Set<QueuedWork>();
  #isClosed = false;
  #isScheduled = false;

  constructor(database: GroupDatabase) {
    this.#database = database;
    this.version = database.begin();
    this.version.catch(() => undefined);
  }

  /** Prefetches what the works will read, if the database supports it. */
  prefetch(group: readonly QueuedWork[]): void {
    const database = this.#database;
    const some =
      this.#prefetched.size === 0 ? group : group.filter((waiting) => !this.#prefetched.has(waiting));
    if (!database.isBegun || some.length === 0) return;
    const reader = makePrefetchReader(database.connection, database.keys, database.expectedVersion);
    if (reader === undefined) return;
    const fences = new Set(some.flatMap(({ fence }) => fence ?? []));
    const reads = [...fences].map((fence): Promise<unknown> => fence(reader));
    for (const [prefetch, batch] of Map.groupBy(some, ({ prefetch }) => prefetch)) {
      const drafts = batch.map(({ draft }) => draft);
      reads.push(...(prefetch?.(reader, drafts) ?? []));
    }
    void Promise.allSettled(reads);
    for (const waiting of some) this.#prefetched.add(waiting);
  }

  /** Prefetches for new works, together with those that arrive in the same turn of the event loop. `all` is every waiting work. */
  join(all: readonly QueuedWork[]): void {
    if (this.#isScheduled || all.length < this.#prefetched.size + PREFETCH_BATCH) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      if (!this.#isClosed) this.prefetch(all);
    });
  }

  /** Prefetches for the last works of the complete group. Later works belong to the next group. */
  close(group: readonly QueuedWork[]): void {
    this.prefetch(group);
    this.#isClosed = true;
  }
}
