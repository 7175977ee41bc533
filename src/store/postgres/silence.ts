/**
 * Connections whose answers are overdue: a server that died without a word says as little as one that has much to do. A connection made for it asks
 * what became of their other ends, so that a long statement may take its time and a dead server costs a quarter of a minute. What is given up is
 * lost like any connection.
 */
import { systemClock, waitAtMost } from "../../ground/clock.ts";
import type { DatabaseUrl } from "../../ground/database-url.ts";
import { StoreUnavailable } from "../port.ts";
import { knowsHost } from "./advice.ts";
import { OTHER_END, PostgresConnection } from "./connection.ts";
import { isGone, isUnreachable } from "./error.ts";

const OVERDUE_MS = 3_000;
const ASK_EVERY_MS = 3_000;
/** A server that waits for a statement while its answer is waited for may have sent it just now. */
const UNHEARD_MS = 10_000;
/** Longer than any statement may take on the server. */
const MOST_MS = 35_000;

/** What becomes of other ends, by name: whether a statement runs there. */
type Ends = ReadonlyMap<string, boolean>;

export class PostgresSilence {
  readonly #place: DatabaseUrl;
  readonly #mostMs: number;
  #isAsking = false;
  #askedMs = Number.NEGATIVE_INFINITY;
  /** Whether nobody answered the question before. */
  #wasUnreachable = false;

  /** `mostMs`: how long an answer is waited for at most. */
  constructor(place: DatabaseUrl, { mostMs = MOST_MS }: { mostMs?: number } = {}) {
    this.#place = place;
    this.#mostMs = mostMs;
  }

  /** To be called every second with those that are open. */
  look(connections: readonly PostgresConnection[]): undefined {
    const overdue = connections.filter((one) => !one.lost && one.silentMs >= OVERDUE_MS);
    for (const one of overdue) if (one.silentMs >= this.#mostMs) one.giveUp();
    if (overdue.length === 0) this.#wasUnreachable = false;
    const nowMs = systemClock.monotonicMs();
    if (overdue.length === 0 || this.#isAsking || nowMs - this.#askedMs < ASK_EVERY_MS) return;
    this.#askedMs = nowMs;
    this.#isAsking = true;
    void this.#askAbout(overdue).finally(() => {
      this.#isAsking = false;
    });
  }

  async #askAbout(overdue: readonly PostgresConnection[]): Promise<void> {
    const before = overdue.map((one) => [one, one.answers] as const);
    const ends = await this.#findEnds();
    if (ends === null) return;
    for (const [one, answers] of before) {
      if (one.lost || one.silentMs === 0 || one.answers !== answers || one.otherEnd === null) continue;
      const runs = ends.get(one.otherEnd);
      if (runs === undefined || (!runs && one.silentMs >= UNHEARD_MS)) one.giveUp();
    }
  }

  /** None where the server is gone; null where it does not tell. */
  async #findEnds(): Promise<Ends | null> {
    const wasUnreachable = this.#wasUnreachable;
    this.#wasUnreachable = false;
    let asked: PostgresConnection | null = null;
    try {
      asked = await PostgresConnection.open(this.#place, "relay silence");
      const found = asked.all<{ name: string; runs: number }>(
        `SELECT ${OTHER_END} AS name, CASE WHEN state LIKE 'idle%' THEN 0 ELSE 1 END AS runs FROM pg_stat_activity WHERE datname = current_database()`,
      );
      await waitAtMost(systemClock, OVERDUE_MS, found);
      if (asked.silentMs > 0) asked.giveUp();
      return new Map((await found).map(({ name, runs }) => [name, runs === 1]));
    } catch (error) {
      if (asked !== null || !(error instanceof StoreUnavailable)) return null;
      if (isGone(error) && (await knowsHost(this.#place.host))) return new Map();
      // A machine with too much to do lets nobody in for seconds and works on, and names may not be known for a moment.
      this.#wasUnreachable = isUnreachable(error);
      return wasUnreachable && this.#wasUnreachable ? new Map() : null;
    } finally {
      await asked?.close();
    }
  }
}
