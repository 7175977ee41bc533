/**
 * Connections whose answers are overdue: a server that died without a word says as little as one that has much to do. A connection made for it asks
 * what became of their other ends, so that a long statement may take its time and a dead server costs a quarter of a minute. Sooner it is asked for
 * a single byte, which costs a server with too much to do next to nothing: where not even that comes, this process is cut off from it. What waits is
 * given up then, and each request for a new connection is refused at once until the server answers. Senders wait for at least five seconds, and are
 * answered before. What is given up is lost like any connection.
 */
import { connect } from "node:net";
import { systemClock, waitAtMost } from "../../base/clock.ts";
import type { DatabaseUrl } from "../../base/database-url.ts";
import { StoreUnavailable } from "../port.ts";
import { type OpenOptions, OTHER_END, PostgresConnection } from "./connection.ts";
import { knowsHost } from "./connection-advice.ts";
import { ConnectionLost, isGone, isUnreachable, NotReached } from "./error.ts";

export const LOOK_EVERY_MS = 500;
const OVERDUE_MS = 3_000;
const ASK_EVERY_MS = 3_000;
/** A server that waits for a statement while its answer is waited for may have sent it just now. */
const UNHEARD_MS = 10_000;
/** Longer than any statement may take on the server. */
const MOST_MS = 35_000;
/** After so long without an answer the server is asked for a byte, and after so long without that byte it is cut off. */
const PING_AFTER_MS = 2_000;
const CUT_OFF_MS = 2_000;
/** A process that was paused checks once when it continues, before it reads what arrived in the meantime. */
const CUT_OFF_LOOKS = 3;
const CUT_OFF = "The database answers neither what it was asked nor who connects anew.";
/** Asks whether the server speaks TLS: a length and a number, answered by one letter before anything else is said. */
const SSL_REQUEST = Buffer.from([0, 0, 0, 8, 4, 210, 22, 47]);

/** What becomes of other ends, by name: whether a statement runs there. */
type Ends = ReadonlyMap<string, boolean>;

/** A byte that was asked for and did not come yet, and since when nothing came at all. */
interface Ping {
  sinceMs: number;
  looks: number;
  /** Of all connections. */
  answers: number;
  stop(): void;
}

export class PostgresLiveness {
  readonly #place: DatabaseUrl;
  readonly #isPatient: boolean;
  #isAsking = false;
  #askedMs = Number.NEGATIVE_INFINITY;
  /** Whether nobody answered the question before. */
  #wasUnreachable = false;
  #ping: Ping | null = null;
  #isCutOff = false;
  /** Connections that are coming about: since when, and how each is refused. */
  readonly #opening = new Map<object, { sinceMs: number; refuse(error: Error): void }>();

  /** `isPatient`: an answer is waited for as long as its statement may run, also where the server answers nobody. */
  constructor(place: DatabaseUrl, { isPatient = false }: { isPatient?: boolean } = {}) {
    this.#place = place;
    this.#isPatient = isPatient;
  }

  get isCutOff(): boolean {
    return this.#isCutOff;
  }

  /** As PostgresConnection.open; throws NotReached where the server is cut off, at once where that is known. */
  async connect(name: string, options?: OpenOptions): Promise<PostgresConnection> {
    if (this.#isCutOff) throw refuseCutOff();
    const opening = PostgresConnection.open(this.#place, name, options);
    const { promise, resolve, reject: refuse } = Promise.withResolvers<PostgresConnection>();
    this.#opening.set(opening, { sinceMs: systemClock.monotonicMs(), refuse });
    opening.then(resolve, refuse);
    try {
      return await promise;
    } catch (error) {
      opening.then(
        (late) => late.close(),
        () => undefined,
      );
      throw error;
    } finally {
      this.#opening.delete(opening);
    }
  }

  /** To be called every LOOK_EVERY_MS with those that are open. */
  look(connections: readonly PostgresConnection[]): undefined {
    const live = connections.filter((one) => !one.lost);
    if (!this.#isPatient) this.#lookForCutOff(live);
    const overdue = live.filter((one) => !one.lost && one.silentMs >= OVERDUE_MS);
    if (!this.#isPatient) for (const one of overdue) if (one.silentMs >= MOST_MS) one.giveUp();
    if (overdue.length === 0) this.#wasUnreachable = false;
    const nowMs = systemClock.monotonicMs();
    if (overdue.length === 0 || this.#isAsking || nowMs - this.#askedMs < ASK_EVERY_MS) return;
    this.#askedMs = nowMs;
    this.#isAsking = true;
    void this.#askAbout(overdue).finally(() => {
      this.#isAsking = false;
    });
  }

  /** Nothing more is looked at. */
  stop(): void {
    this.#ping?.stop();
  }

  #lookForCutOff(live: readonly PostgresConnection[]): void {
    const nowMs = systemClock.monotonicMs();
    const answers = live.reduce((sum, one) => sum + one.answers, 0);
    const ping = this.#ping;
    if (ping !== null) {
      // Any answer on any connection is a sign of the server.
      if (answers > ping.answers) Object.assign(ping, { sinceMs: nowMs, looks: 0 });
      ping.answers = answers;
      ping.looks += 1;
      if (ping.looks >= CUT_OFF_LOOKS && nowMs - ping.sinceMs >= CUT_OFF_MS) {
        ping.stop();
        this.#isCutOff = true;
      }
    }
    if (this.#isCutOff) {
      for (const one of live) if (one.silentMs > 0) one.giveUp(CUT_OFF);
      for (const { refuse } of this.#opening.values()) refuse(refuseCutOff());
    }
    const waits =
      live.some((one) => one.silentMs >= PING_AFTER_MS) ||
      this.#opening.values().some(({ sinceMs }) => nowMs - sinceMs >= PING_AFTER_MS);
    if ((waits || this.#isCutOff) && this.#ping === null) this.#ask(answers);
  }

  /** Waits for one byte. A refused connection is an answer too. */
  #ask(answers: number): void {
    const socket = connect({ host: this.#place.host, port: this.#place.port });
    const stop = (): void => {
      socket.destroy();
      if (this.#ping === ping) this.#ping = null;
    };
    const ping: Ping = { sinceMs: systemClock.monotonicMs(), looks: 0, answers, stop };
    this.#ping = ping;
    const end = (): void => {
      if (this.#ping === ping) this.#isCutOff = false;
      stop();
    };
    socket.on("connect", () => socket.write(SSL_REQUEST));
    socket.on("data", end).on("error", end).on("close", end);
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

function refuseCutOff(): NotReached {
  return new NotReached(CUT_OFF, { cause: new ConnectionLost(CUT_OFF) });
}
