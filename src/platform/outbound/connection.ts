/**
 * One open connection to an address that was checked: notices are posted over it one after another. undici speaks HTTP on it; it never opens
 * a connection itself and never sends anything a second time.
 */
import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import type { Client } from "undici/index.js";
import type { Clock } from "../../base/clock.ts";
import { CallResponse } from "./call-response.ts";
import { InterimResponses } from "./interim-response.ts";

/** How long a connection waits for its next notice; many servers close theirs after five seconds. */
const IDLE_MS = 4_000;
/** A server that says how long it waits (`Keep-Alive: timeout=5`) is left that much earlier. */
const IDLE_MARGIN_MS = 1_000;

const MAX_KEPT = 64;
const MAX_KEPT_PER_ORIGIN = 8;
/** However busy, a connection is opened anew after this time, so that its certificate is looked at again. */
const MAX_AGE_MS = 30_000;

/** Statuses that go on, of one answer: without an end of them the loop would do nothing else for as long as a call may take. */
const MAX_INTERIM = 100;
export const NO_LAST_STATUS = "no last status";

interface Notice {
  /** Path and query. */
  path: string;
  body: string;
  signature: string;
}

/** What is told while a notice is posted. */
interface PostCallbacks {
  /** It is being written to the connection. */
  onSent(): void;
  /** The status has arrived; the answer grows as its body comes. */
  onAnswer(answer: CallResponse): void;
}

/** The headers that a notice is posted with, beside its length and host. */
export function headersOf(signature: string): Readonly<Record<string, string>> {
  return {
    "content-type": "application/json",
    "user-agent": "Service-Relays/1",
    "accept-encoding": "identity",
    "X-Service-Signature": signature,
  };
}

/** How far a post came: nothing has left, or it left without a word in return, or an answer had begun. */
type PostProgress = "nothing" | "sent" | "answering";

export type Posted =
  | { kind: "answered"; answer: CallResponse }
  | { kind: "failed"; error: unknown; reached: PostProgress };

interface ConnectionOptions {
  /** Scheme, host and port; over TLS the host is the name that the certificate was checked against. */
  origin: string;
  /** Where it goes, as the name was resolved. */
  address: string;
  /** Monotonic. */
  nowMs: number;
}

/** Loaded by the first call, or soon after a start: it takes longer than a call does. */
export async function loadClient(): Promise<typeof Client> {
  return (await import("undici/lib/dispatcher/client.js")).default;
}

export class Connection {
  readonly origin: string;
  readonly address: string;
  readonly openedAtMs: number;
  /** Wall time. */
  readonly certificateEndsMs: number;
  readonly #socket: Socket;
  readonly #client: Client;
  readonly #interim: InterimResponses;

  constructor(UndiciClient: typeof Client, socket: Socket, { origin, address, nowMs }: ConnectionOptions) {
    this.origin = origin;
    this.address = address;
    this.openedAtMs = nowMs;
    this.certificateEndsMs = isTls(socket)
      ? Date.parse(socket.getPeerCertificate().valid_to)
      : Number.POSITIVE_INFINITY;
    this.#socket = socket;
    this.#interim = new InterimResponses(socket);
    let isGiven = false;
    this.#client = new UndiciClient(origin, {
      // Not at once, as undici is not ready for it then; and not again, once the connection is gone.
      connect: (_options, callback) =>
        queueMicrotask(() => {
          if (isGiven) return callback(new Error("the connection was closed"), null);
          isGiven = true;
          callback(null, socket);
        }),
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: IDLE_MS,
      keepAliveMaxTimeout: IDLE_MS,
      keepAliveTimeoutThreshold: IDLE_MARGIN_MS,
    });
  }

  /** False once either side has closed it, or an answer said that it is the last one. */
  get isOpen(): boolean {
    return !this.#socket.destroyed;
  }

  onClose(work: () => void): void {
    this.#socket.once("close", work);
  }

  close(): void {
    this.#socket.destroy();
    void this.#client.destroy().catch(() => {});
  }

  /**
   * Posts once. An answer that is read to its end leaves the connection open for the next notice where the server does too; any other closes
   * it.
   */
  post({ path, body, signature }: Notice, { onSent, onAnswer }: PostCallbacks): Promise<Posted> {
    return new Promise((resolve) => {
      let reached: PostProgress = "nothing";
      let answer: CallResponse | null = null;
      const fail = (error: unknown): void => resolve({ kind: "failed", error, reached });
      const closeIfComplete = (): void => {
        if (answer === null || !answer.isComplete) return;
        resolve({ kind: "answered", answer });
        this.close();
      };
      let passedOver = 0;
      const passOver = (): void => {
        reached = "answering";
        passedOver += 1;
        if (passedOver !== MAX_INTERIM) return;
        fail(new Error(NO_LAST_STATUS));
        this.close();
      };
      this.#interim.await(passOver);
      this.#client.dispatch(
        { method: "POST", path, headers: headersOf(signature), body },
        {
          onRequestStart() {
            reached = "sent";
            onSent();
          },
          onResponseStarted() {
            reached = "answering";
          },
          onResponseStart(_controller, status, answerHeaders) {
            if (status < 200) return passOver();
            answer = new CallResponse(status, answerHeaders);
            onAnswer(answer);
            closeIfComplete();
          },
          onResponseData(_controller, chunk) {
            answer?.append(chunk);
            closeIfComplete();
          },
          onResponseEnd() {
            if (answer === null) fail(new Error("the answer has no status"));
            else resolve({ kind: "answered", answer });
          },
          onResponseError: (_controller, error) => fail(error),
        },
      );
    });
  }
}

/** Without loading TLS, which a service that calls nobody never needs. */
function isTls(socket: Socket): socket is TLSSocket {
  return "getPeerCertificate" in socket;
}

/**
 * Connections that wait some seconds for the next notice to the same origin. One is used again only for an attempt whose own look-up gave its
 * address and whose rules allowed it; at an origin that resolves elsewhere meanwhile, or may no longer be called, it is closed.
 */
export class ConnectionPool {
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
