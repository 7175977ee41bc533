/**
 * Pools idle connections to endpoint URLs, so that the next notice to the same origin needs no new connection.
 */
import type { Clock } from "../../base/clock.ts";
import type { Connection } from "./connection.ts";

/** The most idle connections, unless more calls may run at once. */
const MAX_IDLE = 64;
/** A connection is reopened after this time, so that its certificate is checked again. */
const MAX_AGE_MS = 30_000;

/**
 * Idle connections, reused for the next notice to the same origin. A connection is reused only if the current lookup returned its address and
 * the rules allow it; otherwise it is closed. An origin has no further limit, because a connection is opened only for a call without an idle
 * one: an origin gets as many as its calls that run at once, and each closes after some idle seconds.
 */
export class ConnectionPool {
  readonly #clock: Clock;
  readonly #maxIdle: number;
  /** The most recently used connection is last. */
  #idle: Connection[] = [];
  #isClosed = false;

  /** `callsAtOnce`: the number of calls that may run at once. */
  constructor(clock: Clock, callsAtOnce: number) {
    this.#clock = clock;
    this.#maxIdle = Math.max(MAX_IDLE, callsAtOnce);
  }

  get size(): number {
    return this.#idle.length;
  }

  /** Takes the most recently used connection to one of these checked addresses out of the pool; null: there is none. */
  acquire(origin: string, addresses: readonly string[]): Connection | null {
    let found: Connection | null = null;
    for (const one of this.#idle.toReversed()) {
      if (one.origin !== origin) continue;
      if (!addresses.includes(one.address) || !this.#isUsable(one)) this.#close(one);
      else found ??= one;
    }
    if (found !== null) this.remove(found);
    return found;
  }

  /** Returns an idle connection to the pool, or closes it. */
  release(connection: Connection): void {
    this.#idle.push(connection);
    if (this.#isClosed || !this.#isUsable(connection)) this.#close(connection);
    const [oldest] = this.#idle;
    if (this.#idle.length > this.#maxIdle && oldest !== undefined) this.#close(oldest);
  }

  /** Closes all idle connections, and from now on every returned one. */
  close(): void {
    this.#isClosed = true;
    for (const one of this.#idle) one.close();
    this.#idle = [];
  }

  #isUsable(connection: Connection): boolean {
    return (
      connection.isOpen &&
      this.#clock.monotonicMs() - connection.openedAtMs < MAX_AGE_MS &&
      this.#clock.now() < connection.certificateEndsMs
    );
  }

  #close(connection: Connection): void {
    this.remove(connection);
    connection.close();
  }

  /** Removes a connection that closed or must not be reused. */
  remove(connection: Connection): void {
    const at = this.#idle.indexOf(connection);
    if (at !== -1) this.#idle.splice(at, 1);
  }
}
