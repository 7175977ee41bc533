/**
 * Events handed over by whoever has just stored them, so that a batch need not read them again. A relay's are taken from here only while this
 * memory is whole: every event of it that is due now came this way after a batch had looked into the store and left none. Whatever else may
 * make an event due (a retry, a replay, another process, a start) loses the relay's memory, and its next batch looks again. What was handed over
 * may have changed since: who ends its run asks for the row as it was stored. It bounds itself; what it drops is in the store.
 */
import type { HandedEvent } from "../event/insert.ts";

/** Some megabytes at most, as a payload that is stored whole takes 32 KB. */
const MAX_HELD = 1_024;
const MAX_HELD_CHARS = 4 * 1024 * 1024;

class RelayMemory {
  isWhole = false;
  /** Everything up to this event was run, or seen by the look that made the memory whole. */
  through = 0;
  /** Counts how often it was lost, so that a look from before does not make it whole again. */
  losses = 0;
  held: HandedEvent[] = [];
}

export class Arrivals {
  readonly #byRelay = new Map<string, RelayMemory>();
  #count = 0;
  #chars = 0;
  #foreignVersion: number | null = null;

  /**
   * Call in the transaction that takes events: another process may have stored older ones than were handed over since, or made some
   * due again, so that every relay is looked into.
   */
  begin(foreignVersion: number): void {
    if (foreignVersion === this.#foreignVersion) return;
    this.#foreignVersion = foreignVersion;
    for (const relayId of this.#byRelay.keys()) this.lose(relayId);
  }

  /** After the commit that stored it. */
  add(arrived: HandedEvent): void {
    const { relayId, event } = arrived;
    const memory = this.#of(relayId);
    if (!memory.isWhole || event.seq <= memory.through) return;
    if (this.#count < MAX_HELD && this.#chars + event.payload.length <= MAX_HELD_CHARS) {
      memory.held.push(arrived);
      this.#count += 1;
      this.#chars += event.payload.length;
    } else this.lose(relayId);
  }

  /** An event of the relay may be due that did not come this way. */
  lose(relayId: string): void {
    const memory = this.#of(relayId);
    memory.isWhole = false;
    memory.losses += 1;
    this.#drop(memory, memory.held.length);
  }

  /** Whether the relay may have an event that is due. */
  mayHold(relayId: string): boolean {
    const { isWhole, held } = this.#of(relayId);
    return !isWhole || held.length > 0;
  }

  /** The relay is gone. */
  forget(relayId: string): void {
    this.lose(relayId);
    this.#byRelay.delete(relayId);
  }

  /** The relay's oldest due events, which stay; null: only the store knows them. */
  peek(relayId: string, limit: number): { arrived: readonly HandedEvent[] | null; losses: number } {
    const { isWhole, held, losses } = this.#of(relayId);
    return { arrived: isWhole ? held.slice(0, limit) : null, losses };
  }

  /** After the commit of a batch: the relay's events up to `through` were run; `isWhole`: and no other was due, unless it was lost since. */
  pass(relayId: string, through: number, { isWhole, losses }: { isWhole: boolean; losses: number }): void {
    const memory = this.#of(relayId);
    memory.through = Math.max(memory.through, through);
    memory.isWhole = isWhole && memory.losses === losses;
    const left = memory.held.findIndex(({ event }) => event.seq > memory.through);
    this.#drop(memory, left < 0 || !memory.isWhole ? memory.held.length : left);
  }

  #drop(memory: RelayMemory, count: number): void {
    this.#count -= count;
    for (const { event } of memory.held.splice(0, count)) this.#chars -= event.payload.length;
  }

  #of(relayId: string): RelayMemory {
    let memory = this.#byRelay.get(relayId);
    if (memory === undefined) {
      memory = new RelayMemory();
      this.#byRelay.set(relayId, memory);
    }
    return memory;
  }
}
