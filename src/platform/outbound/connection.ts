/**
 * One open connection to a checked address, over which notices are posted one after another. undici speaks HTTP on it, but never opens a
 * connection and never sends a request again.
 */
import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import type { Client } from "undici/index.js";
import { CallResponse } from "./call-response.ts";
import { InterimResponses } from "./interim-response.ts";

/** The time that an idle connection is pooled; many servers close theirs after five seconds. */
const IDLE_MS = 4_000;
/** A connection is closed this much earlier than the server announces (`Keep-Alive: timeout=5`). */
const IDLE_MARGIN_MS = 1_000;

/** The most interim statuses of one response. An unlimited series would block the event loop. */
const MAX_INTERIM = 100;
export const NO_LAST_STATUS = "no last status";

export interface Notice {
  /** Path and query. */
  path: string;
  body: string;
  /** The headers that sign it. */
  signatures: Readonly<Record<string, string>>;
  /** The header of a trace, which is not signed. */
  traceparent?: string;
}

/** Callbacks during a post. */
interface PostCallbacks {
  /** Runs when the request is written to the connection. */
  onSent(): void;
  /** Runs when the status arrived; the response grows with its body. */
  onAnswer(answer: CallResponse): void;
}

/** Returns the headers of a notice, without length and host. */
export function headersOf({
  signatures,
  traceparent,
}: Omit<Notice, "path" | "body">): Readonly<Record<string, string>> {
  return {
    "content-type": "application/json",
    "user-agent": "Service-Relays/1",
    "accept-encoding": "identity",
    ...signatures,
    ...(traceparent === undefined ? {} : { traceparent }),
  };
}

/** Progress of a post: not sent, sent without any response, or response begun. */
type PostProgress = "nothing" | "sent" | "answering";

export type Posted =
  | { kind: "answered"; answer: CallResponse }
  | { kind: "failed"; error: unknown; reached: PostProgress };

interface ConnectionOptions {
  /** Scheme, host and port. With TLS, the certificate was checked against this host. */
  origin: string;
  /** The resolved address. */
  address: string;
  /** Monotonic. */
  nowMs: number;
}

/** Loads the HTTP client with the first call or soon after the start, because loading takes longer than a call. */
export async function loadClient(): Promise<typeof Client> {
  return (await import("undici/lib/dispatcher/client.js")).default;
}

/** Makes a client that sends every request over the open socket, whose address was checked. */
export function makeSocketClient(UndiciClient: typeof Client, origin: string, socket: Socket): Client {
  let isGiven = false;
  return new UndiciClient(origin, {
    // The callback is deferred, because undici is not ready yet. A second call means that the connection is gone.
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
    this.#client = makeSocketClient(UndiciClient, origin, socket);
  }

  /** False once either side closed it or a response announced the end. */
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

  /** Posts once. A response that is read to its end leaves the connection open if the server does too; any other closes it. */
  post(notice: Notice, { onSent, onAnswer }: PostCallbacks): Promise<Posted> {
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
        { method: "POST", path: notice.path, headers: headersOf(notice), body: notice.body },
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

/** Checks without loading TLS, which a service without calls never needs. */
function isTls(socket: Socket): socket is TLSSocket {
  return "getPeerCertificate" in socket;
}
