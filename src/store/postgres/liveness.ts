/**
 * Distinguishes connections to a server that stopped silently from slow ones. Two checks run while an answer is overdue. One asks the server for a
 * single byte, which even a busy server sends. If that byte is missing, this process is cut off: waiting statements fail, and new connections are
 * refused until the server answers. That takes less than the five seconds that senders wait at least. The other check opens a connection and reads
 * which server processes still run. So a long statement may continue, and a dead server is found within about 15 seconds.
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
/** The time that an answer may be overdue although its server process is idle, because the answer may still be on the way. */
const UNHEARD_MS = 10_000;
/** A time longer than any statement may take on the server. */
const MOST_MS = 35_000;
/** The time before an overdue answer leads to a ping, and the time before a missing byte leads to the cutoff. */
const PING_AFTER_MS = 2_000;
const CUT_OFF_MS = 2_000;
/** The fewest checks before a cutoff. A process that was paused runs one check before it reads what arrived meanwhile. */
const CUT_OFF_LOOKS = 3;
const CUT_OFF = "The database answers neither open requests nor new connections.";
/** Asks whether the server supports TLS: a length and a code. The server answers with one byte, before any login. */
const SSL_REQUEST = Buffer.from([0, 0, 0, 8, 4, 210, 22, 47]);

/** The server processes, by name, and whether each runs a statement. */
type Ends = ReadonlyMap<string, boolean>;

/** A pending request for a byte. `sinceMs` is when the request or the last answer of any connection was. */
interface Ping {
  sinceMs: number;
  looks: number;
  /** The number of answers on all connections. */
  answers: number;
  stop(): void;
}

export class PostgresLiveness {
  readonly #place: DatabaseUrl;
  readonly #isPatient: boolean;
  #isAsking = false;
  #askedMs = Number.NEGATIVE_INFINITY;
  /** True if the server was unreachable at the last check. */
  #wasUnreachable = false;
  #ping: Ping | null = null;
  #isCutOff = false;
  /** Connections that are being opened: since when, and how to refuse each. */
  readonly #opening = new Map<object, { sinceMs: number; refuse(error: Error): void }>();

  /** `isPatient` turns the cutoff and the longest wait off, for statements that may take long. */
  constructor(place: DatabaseUrl, { isPatient = false }: { isPatient?: boolean } = {}) {
    this.#place = place;
    this.#isPatient = isPatient;
  }

  get isCutOff(): boolean {
    return this.#isCutOff;
  }

  /** Opens a connection as PostgresConnection.open does. Throws NotReached if the server is cut off, at once if that is already known. */
  async connect(name: string, options?: OpenOptions): Promise<PostgresConnection> {
    if (this.#isCutOff) throw rejectCutOff();
    const opening = PostgresConnection.open(this.#place, name, options);
    const { promise, resolve, reject: refuse } = Promise.withResolvers<PostgresConnection>();
    this.#opening.set(opening, { sinceMs: systemClock.monotonicMs(), refuse });
    opening.then(resolve, refuse);
    try {
      return await promise;
    } catch (error) {
      opening.then(
        (connection) => connection.close(),
        () => undefined,
      );
      throw error;
    } finally {
      this.#opening.delete(opening);
    }
  }

  /** Checks the open connections. The caller runs it every LOOK_EVERY_MS. */
  check(connections: readonly PostgresConnection[]): undefined {
    const live = connections.filter((one) => !one.lost);
    if (!this.#isPatient) this.#checkForCutOff(live);
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

  /** Ends a pending request for a byte. */
  stop(): void {
    this.#ping?.stop();
  }

  #checkForCutOff(live: readonly PostgresConnection[]): void {
    const nowMs = systemClock.monotonicMs();
    const answers = live.reduce((sum, one) => sum + one.answers, 0);
    const ping = this.#ping;
    if (ping !== null) {
      // An answer on any connection shows that the server is alive.
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
      for (const { refuse } of this.#opening.values()) refuse(rejectCutOff());
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

  /** Lists the server processes. Returns an empty map if the server is gone, and null if that is unknown. */
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
      // An overloaded machine may accept no connection for seconds, and a name may be unknown for a moment. So only two failures in a row count.
      this.#wasUnreachable = isUnreachable(error);
      return wasUnreachable && this.#wasUnreachable ? new Map() : null;
    } finally {
      await asked?.close();
    }
  }
}

function rejectCutOff(): NotReached {
  return new NotReached(CUT_OFF, { cause: new ConnectionLost(CUT_OFF) });
}
