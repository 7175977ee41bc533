/**
 * Holds stored events in memory until they run, so that a batch need not read them from the database. The buffer of a relay is used only while it
 * is complete: it then holds every due event of the relay. A retry, a replay, another process or a restart can make an event due that is not in
 * the buffer. Such an event invalidates the relay's buffer, and the relay's next batch reads the database. The row of a buffered event can change
 * before it runs, so the end of its run checks the row.
 */

import type { SharedTransaction } from "../../store/port.ts";
import type { BufferedEvent } from "../event/event.ts";

/** Both limits together bound the buffer to some megabytes: an event that is not truncated takes up to 32 KB. */
const MAX_EVENTS = 1_024;
const MAX_CHARS = 4 * 1024 * 1024;

export class ReadyBuffer {
  /** Relays whose events their last batch had no time for. The next batch runs them first. */
  readonly #starved = new Set<string>();
  readonly #byRelay = new Map<string, RelayBuffer>();
  #count = 0;
  #chars = 0;

  get starved(): ReadonlySet<string> {
    return this.#starved;
  }

  /** Records which relays of a batch it had no time for. Batches of other environments may run meanwhile. */
  recordStarved(relayIds: readonly string[], starved: readonly string[]): void {
    for (const id of relayIds) this.#starved.delete(id);
    for (const id of starved) this.#starved.add(id);
  }

  /**
   * Invalidates each of the relays if another process has committed since the relay's last call, because that process may have stored or requeued an
   * older event. Must be called in each transaction that takes events. Each relay has its own version, because transactions of different environments
   * can have different versions at the same time.
   */
  invalidateAfterForeignCommit(foreignVersion: number, relayIds: Iterable<string>): void {
    for (const relayId of relayIds) {
      const buffer = this.#bufferOf(relayId);
      if (foreignVersion === buffer.foreignVersion) continue;
      buffer.foreignVersion = foreignVersion;
      this.invalidate(relayId);
    }
  }

  /** Adds an event after the commit that stored it. If the buffer is full, the relay's buffer is invalidated instead. */
  add(buffered: BufferedEvent): void {
    const { relayId, event } = buffered;
    const buffer = this.#bufferOf(relayId);
    if (!buffer.isComplete || event.seq <= buffer.through) return;
    if (this.#count >= MAX_EVENTS || this.#chars + event.payload.length > MAX_CHARS) {
      this.invalidate(relayId);
      return;
    }
    buffer.events.push(buffered);
    this.#count += 1;
    this.#chars += event.payload.length;
  }

  /** Drops the relay's events, because an event that is not in the buffer may be due. */
  invalidate(relayId: string): void {
    const buffer = this.#bufferOf(relayId);
    buffer.isComplete = false;
    buffer.invalidations += 1;
    this.#drop(buffer, buffer.events.length);
  }

  invalidateAll(): void {
    for (const relayId of this.#byRelay.keys()) this.invalidate(relayId);
  }

  /** Reports whether an event of the relay may be due: in the buffer, or in the database if the buffer is not complete. */
  mayHaveDue(relayId: string): boolean {
    const { isComplete, events } = this.#bufferOf(relayId);
    return !isComplete || events.length > 0;
  }

  /** Records that an open transaction ran the relay's events up to the number `through`. */
  recordRun(transaction: SharedTransaction | null, relayId: string, through: number): void {
    this.#bufferOf(relayId).lastRun = { transaction, through };
  }

  /** Records that an open transaction stored an event of the relay without running it. */
  recordUnrun(transaction: SharedTransaction | null, relayId: string): void {
    this.#bufferOf(relayId).unrunIn = transaction;
  }

  /**
   * Reports whether the open transaction sees no due event of the relay, so that the relay's next event may run at once. `idleBefore` is the
   * database's answer for the time before this transaction; null if it was not asked, and the buffer decides.
   */
  isIdle(transaction: SharedTransaction, relayId: string, idleBefore: boolean | null): boolean {
    const { isComplete, events, lastRun, unrunIn } = this.#bufferOf(relayId);
    if (unrunIn === transaction) return false;
    if (idleBefore !== null) return idleBefore;
    const newest = events.at(-1)?.event.seq ?? 0;
    const ranAll = lastRun?.transaction === transaction && lastRun.through >= newest;
    return isComplete && (newest === 0 || ranAll);
  }

  /** Forgets a relay that was deleted. */
  forget(relayId: string): void {
    this.invalidate(relayId);
    this.#byRelay.delete(relayId);
    this.#starved.delete(relayId);
  }

  /** Returns the relay's oldest due events, which stay in the buffer. `events` is null if the database must be read. */
  peek(relayId: string, limit: number): { events: readonly BufferedEvent[] | null; invalidations: number } {
    const { isComplete, events, invalidations } = this.#bufferOf(relayId);
    return { events: isComplete ? events.slice(0, limit) : null, invalidations };
  }

  /**
   * Removes the events up to the number `through` after the commit that ran them. `isComplete`: the batch saw no other due event.
   * `invalidations`: the count that `peek` returned. If it has grown since, the buffer stays incomplete.
   */
  confirm(
    relayId: string,
    through: number,
    { isComplete, invalidations }: { isComplete: boolean; invalidations: number },
  ): void {
    const buffer = this.#bufferOf(relayId);
    buffer.through = Math.max(buffer.through, through);
    buffer.isComplete = isComplete && buffer.invalidations === invalidations;
    const left = buffer.events.findIndex(({ event }) => event.seq > buffer.through);
    this.#drop(buffer, left < 0 || !buffer.isComplete ? buffer.events.length : left);
  }

  #drop(buffer: RelayBuffer, count: number): void {
    this.#count -= count;
    for (const { event } of buffer.events.splice(0, count)) this.#chars -= event.payload.length;
  }

  #bufferOf(relayId: string): RelayBuffer {
    let buffer = this.#byRelay.get(relayId);
    if (buffer === undefined) {
      buffer = new RelayBuffer();
      this.#byRelay.set(relayId, buffer);
    }
    return buffer;
  }
}

class RelayBuffer {
  isComplete = false;
  /** The version of foreign commits in the last transaction that took events of the relay. */
  foreignVersion: number | null = null;
  events: BufferedEvent[] = [];
  /** The number up to which all events ran, or were seen by the read that made the buffer complete. */
  through = 0;
  /** Counts invalidations, so that a batch that began before one of them cannot make the buffer complete again. */
  invalidations = 0;
  /** The last transaction that ran events of the relay. It is compared with the open transaction only. */
  lastRun: { transaction: SharedTransaction | null; through: number } | null = null;
  /** The last transaction that stored an event and did not run it. */
  unrunIn: SharedTransaction | null = null;
}
