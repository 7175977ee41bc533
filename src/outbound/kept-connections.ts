/**
 * Connections that wait some seconds for the next notice to the same origin. One is used again only for an attempt whose own look-up gave its
 * address and whose rules allowed it; at an origin that resolves elsewhere meanwhile, or may no longer be called, it is closed.
 */
import type { Clock } from "../ground/clock.ts";
import type { Connection } from "./connection.ts";

const MAX_KEPT = 64;
const MAX_KEPT_PER_ORIGIN = 8;
/** However busy, a connection is opened anew after this time, so that its certificate is looked at again. */
const MAX_AGE_MS = 30_000;

export class KeptConnections {
  readonly #clock: Clock;
  /** The one that was used last stands last. */
  #waiting: Connection[] = [];
  #isClosed = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get size(): number {
    return this.#waiting.length;
  }

  /** The connection to one of these checked addresses that was used last, for this attempt alone; null when there is none. */
  take(origin: string, addresses: readonly string[]): Connection | null {
    let found: Connection | null = null;
    for (const one of this.#waiting.toReversed()) {
      if (one.origin !== origin) continue;
      if (!addresses.includes(one.address) || !this.#isUsable(one)) this.#close(one);
      else found ??= one;
    }
    if (found !== null) this.forget(found);
    return found;
  }

  /** Lets a connection wait that has been answered over, or closes it. */
  keep(connection: Connection): void {
    this.#waiting.push(connection);
    if (this.#isClosed || !this.#isUsable(connection)) this.#close(connection);
    const sameOrigin = this.#waiting.filter((one) => one.origin === connection.origin);
    const [first] = sameOrigin;
    if (sameOrigin.length > MAX_KEPT_PER_ORIGIN && first !== undefined) this.#close(first);
    const [oldest] = this.#waiting;
    if (this.#waiting.length > MAX_KEPT && oldest !== undefined) this.#close(oldest);
  }

  /** Closes all that wait, and from now on every one that comes. */
  close(): void {
    this.#isClosed = true;
    for (const one of this.#waiting) one.close();
    this.#waiting = [];
  }

  #isUsable(connection: Connection): boolean {
    return (
      connection.isOpen &&
      this.#clock.monotonicMs() - connection.openedAtMs < MAX_AGE_MS &&
      this.#clock.now() < connection.certificateEndsMs
    );
  }

  #close(connection: Connection): void {
    this.forget(connection);
    connection.close();
  }

  /** It closed by itself, or is no longer to wait. */
  forget(connection: Connection): void {
    const at = this.#waiting.indexOf(connection);
    if (at !== -1) this.#waiting.splice(at, 1);
  }
}
