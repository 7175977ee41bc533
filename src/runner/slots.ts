/**
 * The slots of running events: so many in all, so many a relay. A slot is taken before an event is, so that no two claims share one. One is
 * kept for every sending relay that has none, so that relays whose targets hang take nothing from the others.
 */

/** Events of one relay that run at once. */
const MAX_RUNNING_PER_RELAY = 8;

export class Slots {
  readonly #all: number;
  readonly #taken = new Map<string, number>();
  #total = 0;

  constructor(all: number) {
    this.#all = all;
  }

  get taken(): number {
    return this.#total;
  }

  takenBy(relayId: string): number {
    return this.#taken.get(relayId) ?? 0;
  }

  /** How many the relay may take now, where `senders` relays could each want one; at most half of all slots are kept for others. */
  freeFor(relayId: string, senders: number): number {
    const free = this.#all - this.#total;
    const hasNone = this.takenBy(relayId) === 0;
    const without = Math.max(0, senders - this.#taken.size - (hasNone ? 1 : 0));
    const kept = Math.min(without, Math.floor(this.#all / 2));
    const wanted = MAX_RUNNING_PER_RELAY - this.takenBy(relayId);
    return Math.max(0, Math.min(wanted, Math.max(free - kept, hasNone ? Math.min(1, free) : 0)));
  }

  take(relayId: string, count: number): void {
    this.#total += count;
    this.#taken.set(relayId, this.takenBy(relayId) + count);
  }

  giveBack(relayId: string, count: number): void {
    this.#total -= count;
    const left = this.takenBy(relayId) - count;
    if (left === 0) this.#taken.delete(relayId);
    else this.#taken.set(relayId, left);
  }
}
