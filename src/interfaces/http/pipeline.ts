/**
 * Bounds how many requests of one connection are answered between two turns of the event loop. Requests that a client sends together on one
 * connection arrive in one turn, one after another, so one client could block all others. Over the limit, the response ends the connection and
 * the rest is not read. A client that gets `Connection: close` sends the rest again on another connection (RFC 9112, 9.3.2).
 */
import { MAX_PIPELINED_REQUESTS } from "../../base/limit.ts";

/** The connection of one request in this many is checked, because a check costs a microsecond. */
const LOOK_AT_ONE_IN = MAX_PIPELINED_REQUESTS / 2;

type Answer = Response | Promise<Response>;

export class Pipelines {
  readonly #connectionOf: (request: Request) => string | null;
  #inTurn = 0;
  /** The connection that was last checked in this turn. */
  #looked: string | null = null;

  /** `connectionOf` names the connection of a request, or returns null if it is unknown. */
  constructor(connectionOf: (request: Request) => string | null) {
    this.#connectionOf = connectionOf;
  }

  /** Counts the request, which must have arrived just now. Over the limit, its response ends the connection. */
  bound(request: Request, answer: () => Answer): Answer {
    return this.#isOver(request) ? endAfter(answer) : answer();
  }

  #isOver(request: Request): boolean {
    this.#inTurn += 1;
    if (this.#inTurn === 1) setImmediate(() => this.#turn());
    if (this.#inTurn % LOOK_AT_ONE_IN !== 0) return false;
    const connection = this.#connectionOf(request);
    const isSame = connection !== null && connection === this.#looked;
    this.#looked = connection;
    return isSame;
  }

  #turn(): void {
    this.#inTurn = 0;
    this.#looked = null;
  }
}

async function endAfter(answer: () => Answer): Promise<Response> {
  const response = await answer();
  response.headers.set("connection", "close");
  return response;
}
