/**
 * A group's transaction from its beginning on. Where other processes write too, their lock is waited for: what the group's works will read is asked
 * for behind it, also for those who come meanwhile, so that the answers are there with the lock.
 */
import type { GroupDatabase } from "./group-database.ts";
import type { Waiting } from "./queued-work.ts";
import { lookingAhead } from "./transaction.ts";

/** Of those who come while the lock is waited for. */
const ASKED_AT_ONCE = 8;

export class Turn {
  /** As `begin` answers it. */
  readonly version: Promise<number>;
  readonly #database: GroupDatabase;
  readonly #asked = new Set<Waiting>();
  #isOver = false;
  #asksSoon = false;

  constructor(database: GroupDatabase) {
    this.#database = database;
    this.version = database.begin();
    this.version.catch(() => undefined);
  }

  /** Asks for what these will read, where there is such a thing as asking ahead. */
  ask(group: readonly Waiting[]): void {
    const database = this.#database;
    const some = this.#asked.size === 0 ? group : group.filter((waiting) => !this.#asked.has(waiting));
    if (!database.isBegun || some.length === 0) return;
    const ahead = lookingAhead(database.connection, database.keys);
    if (ahead === undefined) return;
    const fences = new Set(some.flatMap(({ fence }) => fence ?? []));
    const asked = [...fences].map((fence): Promise<unknown> => fence(ahead));
    for (const [lookAhead, alike] of Map.groupBy(some, ({ lookAhead }) => lookAhead)) {
      const drafts = alike.map(({ draft }) => draft);
      asked.push(...(lookAhead?.(ahead, drafts) ?? []));
    }
    void Promise.allSettled(asked);
    for (const waiting of some) this.#asked.add(waiting);
  }

  /** Another one came: it joins the group with those who come in the same moment. `all`: who waits. */
  join(all: readonly Waiting[]): void {
    if (this.#asksSoon || all.length < this.#asked.size + ASKED_AT_ONCE) return;
    this.#asksSoon = true;
    setImmediate(() => {
      this.#asksSoon = false;
      if (!this.#isOver) this.ask(all);
    });
  }

  /** The group is made: asks for those of it that came last, and for nobody else any more. */
  close(group: readonly Waiting[]): void {
    this.ask(group);
    this.#isOver = true;
  }
}
