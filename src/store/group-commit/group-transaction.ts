/**
 * A group's transaction from its beginning on. Where other processes write too, their lock is waited for: what the group's works will read is asked
 * for behind it, also for those who come meanwhile, so that the answers are there with the lock.
 */
import type { GroupDatabase } from "./group-database.ts";
import type { QueuedWork } from "./queued-work.ts";
import { makePrefetchReader } from "./transaction.ts";

/** Of those who come while the lock is waited for. */
const ASKED_AT_ONCE = 8;

export class GroupTransaction {
  /** As `begin` answers it. */
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

  /** Asks for what these will read, where there is such a thing as asking ahead. */
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

  /** Another one came: it joins the group with those who come in the same moment. `all`: who waits. */
  join(all: readonly QueuedWork[]): void {
    if (this.#asksSoon || all.length < this.#asked.size + ASKED_AT_ONCE) return;
    this.#asksSoon = true;
    setImmediate(() => {
      this.#asksSoon = false;
      if (!this.#isOver) this.ask(all);
    });
  }

  /** The group is made: asks for those of it that came last, and for nobody else any more. */
  close(group: readonly QueuedWork[]): void {
    this.ask(group);
    this.#isOver = true;
  }
}
