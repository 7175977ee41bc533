/**
 * Which troubles stand, in memory beside their rows, so that a call that is accepted asks no database whether it ends one. Changes are
 * written one after another, in the order they were noticed; one that could not be written is as if it had not been noticed.
 */
import type { Clock } from "../ground/clock.ts";
import type { Log } from "../ground/log.ts";
import type { Store, Writer } from "../store/port.ts";
import {
  clearTrouble,
  listTroubles,
  raiseTrouble,
  type Trouble,
  type TroubleCode,
  type TroubledRelay,
} from "./relay-trouble.ts";

interface TroubleRooms {
  store: Store;
  clock: Clock;
  log: Log;
}

export class StandingTroubles {
  readonly #rooms: TroubleRooms;
  readonly #standing = new Map<string, Trouble>();
  #writing: Promise<void> = Promise.resolve();

  constructor(rooms: TroubleRooms) {
    this.#rooms = rooms;
  }

  /** Reads what stands from the rows: at the start, and where a deleted relay took its troubles along. */
  async load(): Promise<void> {
    await this.#writing;
    const stored = await this.#rooms.store.read(listTroubles);
    this.#standing.clear();
    for (const trouble of stored) this.#standing.set(keyOf(trouble), trouble);
  }

  /** How many stand; 0 almost always, which is all that the hot path asks. */
  get size(): number {
    return this.#standing.size;
  }

  list(): Trouble[] {
    return [...this.#standing.values()];
  }

  has(relay: TroubledRelay, code: TroubleCode): boolean {
    return this.#standing.size > 0 && this.#standing.has(keyOf({ relay, code }));
  }

  /** Raises it unless it stands. */
  raise(relay: TroubledRelay, code: TroubleCode, message: string): void {
    const trouble: Trouble = { relay: { environmentId: relay.environmentId, name: relay.name }, code };
    if (this.has(relay, code)) return;
    this.#standing.set(keyOf(trouble), trouble);
    const nowMs = this.#rooms.clock.now();
    this.#write(
      (tx) => raiseTrouble(tx, trouble, message, nowMs),
      () => this.#standing.delete(keyOf(trouble)),
    );
  }

  /** Ends it if it stands; null tells nobody. */
  clear(relay: TroubledRelay, code: TroubleCode, message: string | null): void {
    const key = keyOf({ relay, code });
    const trouble = this.#standing.get(key);
    if (trouble === undefined) return;
    this.#standing.delete(key);
    const nowMs = this.#rooms.clock.now();
    this.#write(
      (tx) => clearTrouble(tx, trouble, message, nowMs),
      () => this.#standing.set(key, trouble),
    );
  }

  /** Resolves when everything noticed is written. */
  settle(): Promise<void> {
    return this.#writing;
  }

  #write(work: (tx: Writer) => Promise<void>, undo: () => void): void {
    this.#writing = this.#writing.then(async () => {
      try {
        await this.#rooms.store.write("app", work);
      } catch (error) {
        undo();
        this.#rooms.log.warn("a trouble of a relay cannot be stored", { cause: (error as Error).message });
      }
    });
  }
}

function keyOf({ relay, code }: Trouble): string {
  return `${code} ${relay.environmentId} ${relay.name}`;
}
