/** The places of running events: so many in all, so many a relay. A place is taken before an event is, so that no two claims share one. */

/** Events of one relay that run at once. */
export const MAX_RUNNING_PER_RELAY = 8;

export class Places {
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

  /** How many the relay may take now. */
  freeFor(relayId: string): number {
    return Math.max(0, Math.min(MAX_RUNNING_PER_RELAY - this.takenBy(relayId), this.#all - this.#total));
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
