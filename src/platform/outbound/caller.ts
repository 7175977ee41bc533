/**
 * Calls an endpoint URL: rules, addresses, a connection pinned to one address, one signed POST, and the beginning of the response, all within
 * 10 seconds. It follows no redirect, uses no proxy and stores nothing. A status that arrived counts, even if its body takes longer. Source:
 * the specification's "Outbound".
 */
import type { Clock } from "../../base/clock.ts";
import { CALL_TIMEOUT_MS } from "../../base/limit.ts";
import { canonicalAddress, parseAllowList } from "./address.ts";
import { type AddressLookup, makeLookup } from "./address-lookup.ts";
import type { CallResponse } from "./call-response.ts";
import { type CallTarget, readCallTarget, resolveTarget, type UrlRule } from "./call-target.ts";
import { connectPinned, makeTrust } from "./connect.ts";
import { Connection, headersOf, loadClient, NO_LAST_STATUS, type Notice, type Posted } from "./connection.ts";
import { ConnectionPool } from "./connection-pool.ts";
import { errorCode, isTlsError } from "./error-code.ts";
import { hideSignatures, makeSignatureHeaders, type UnsignedNotice } from "./notice-signature.ts";

export interface CallRequest extends UnsignedNotice {
  url: string;
  /** Local development: http to localhost is allowed. */
  local: boolean;
  /** The W3C `traceparent` header. No signature covers it. Absent: traces are off. */
  traceparent?: string;
  /** Headers that replace the signatures, for a service that checks none. The outcome then does not contain the request, which may hold a token. */
  headers?: Readonly<Record<string, string>>;
}

/** The request as sent. A stored one has no signature value, because a reader could replay the request with it. */
export interface SentRequest {
  method: "POST";
  url: string;
  headers: Readonly<Record<string, string>>;
}

export type CallOutcome =
  /** The endpoint responded; `ok`: with 2xx. `body`: the first 4 KB as text. `headers`: those that may be stored. */
  | {
      kind: "answered";
      ok: boolean;
      status: number;
      headers?: Readonly<Record<string, string>>;
      body: string;
      request?: SentRequest;
    }
  /** An address rule rejected it: https_only, ip_literal, own_host, unresolvable, private_address. */
  | {
      kind: "refused";
      code: UrlRule;
      message: string;
      /** The URL itself violates the rule, so another DNS answer would not help. */
      final?: true;
    }
  /** No response: timeout, connection or TLS failure. `request`: it was sent nevertheless. */
  | {
      kind: "unreachable";
      code: "timeout" | "connection_failed" | "tls_failed";
      message: string;
      request?: SentRequest;
    };

export interface OutboundCaller {
  /** Posts the notice within 10 seconds, pinned to the checked address, without following redirects. Never throws. */
  call(request: CallRequest): Promise<CallOutcome>;
}

interface PooledCaller extends OutboundCaller {
  /** Loads and compiles what the first call needs, by a post to this server itself. `own`: its URL; the response does not matter. */
  warmUp(own: URL): Promise<void>;
  /** Closes idle connections and stops pooling. */
  close(): void;
}

export interface CallerOptions {
  /** The service's current hosts: `name` (every port) or `name:port`; see `ownHostOf`. */
  ownHosts: () => readonly string[];
  /** Private targets that the operator allows: exact host names, or ranges such as `10.1.0.0/16`. */
  allowPrivate: readonly string[];
  clock: Clock;
  /** The number of calls that may run at once, so that each can keep its connection. */
  concurrency: number;
  /** Looks up all addresses of a host name; `makeLookup` by default. */
  lookup?: AddressLookup;
  /** PEM certificates of authorities that are trusted in addition to the built-in ones. */
  certificateAuthorities?: readonly string[];
}

/** One call in progress. */
interface Call {
  request: CallRequest;
  target: CallTarget;
  /** The signal that aborts at the timeout. */
  signal: AbortSignal;
  /** The response so far, from its status on. */
  answer: CallResponse | null;
  /** The request that was sent last; null: none was. */
  sent: SentRequest | null;
}

/** Returns the request that a call would send at `nowMs`, with its signatures. */
export function previewRequest(url: URL, notice: UnsignedNotice, nowMs: number): SentRequest {
  return formatRequest(url, { body: notice.body, signatures: makeSignatureHeaders(notice, nowMs) });
}

/** Creates the caller. Throws for a malformed range in `allowPrivate`. */
export function createCaller(options: CallerOptions): PooledCaller {
  const { clock, ownHosts, certificateAuthorities = [] } = options;
  const allow = parseAllowList(options.allowPrivate);
  const { lookup = makeLookup(allow) } = options;
  const trust = makeTrust(certificateAuthorities);
  const pool = new ConnectionPool(clock, options.concurrency);

  async function callWithin(call: Call): Promise<CallOutcome> {
    const { target, signal } = call;
    const addresses = await resolveTarget(target, { lookup, allow, ownHosts: ownHosts() });
    if (signal.aborted) throw signal.reason;
    const waiting = pool.acquire(target.url.origin, "code" in addresses ? [] : addresses);
    if ("code" in addresses) return rejectTarget(addresses.code, addresses.message);
    if (waiting !== null) {
      // The event loop reports a received close in its next turn.
      await new Promise(setImmediate);
      const begunMs = clock.monotonicMs();
      const posted = await post(call, waiting);
      if (!wasClosedIdle(posted, clock.monotonicMs() - begunMs)) return toOutcome(call, posted);
    }
    let connection: Connection;
    try {
      connection = await open(call, addresses);
    } catch (error) {
      return explainConnect(target, error, signal);
    }
    return toOutcome(call, await post(call, connection));
  }

  async function open(
    { target, signal }: Pick<Call, "target" | "signal">,
    addresses: readonly string[],
  ): Promise<Connection> {
    const { host, port, url } = target;
    const options = { clock, trust: url.protocol === "https:" ? trust : null, signal };
    const socket = await connectPinned({ host, port }, addresses, options);
    const remote = canonicalAddress(socket.remoteAddress ?? "");
    const address = addresses.find((one) => canonicalAddress(one) === remote) ?? "";
    const key = { origin: url.origin, address, nowMs: clock.monotonicMs() };
    const connection = new Connection(await loadClient(), socket, key);
    connection.onClose(() => pool.remove(connection));
    return connection;
  }

  async function post(call: Call, connection: Connection): Promise<Posted> {
    const { request, target, signal } = call;
    const close = (): void => connection.close();
    signal.addEventListener("abort", close);
    if (signal.aborted) close();
    const notice = {
      path: target.url.pathname + target.url.search,
      body: request.body,
      signatures: request.headers ?? makeSignatureHeaders(request, clock.now()),
      ...(request.traceparent === undefined ? {} : { traceparent: request.traceparent }),
    };
    const posted = await connection.post(notice, {
      onSent: () => {
        if (request.headers === undefined) call.sent = sentRequest(target.url, notice);
      },
      onAnswer: (answer) => {
        call.answer = answer;
      },
    });
    signal.removeEventListener("abort", close);
    if (posted.kind === "answered") pool.release(connection);
    else close();
    return posted;
  }

  return {
    async call(request) {
      const target = readCallTarget(request.url, { local: request.local, ownHosts: ownHosts() });
      if ("code" in target) return { ...rejectTarget(target.code, target.message), final: true };
      const deadline = new AbortController();
      const cancel = clock.after(CALL_TIMEOUT_MS, () => deadline.abort(new Error("timed out")));
      const call: Call = { request, target, signal: deadline.signal, answer: null, sent: null };
      try {
        return withSentRequest(call, await unlessAborted(callWithin(call), call.signal));
      } catch (error) {
        const outcome =
          call.signal.aborted && call.answer !== null
            ? answered(call.answer)
            : explain(target, error, call.signal);
        return withSentRequest(call, outcome);
      } finally {
        cancel();
      }
    },
    async warmUp(own) {
      await trust();
      const host = own.hostname.replace(/^\[|\]$/g, "");
      const target = { url: own, host, port: Number(own.port), loopback: false };
      // Runs the checks only to compile them; their result does not matter.
      readCallTarget(own.href, { local: true, ownHosts: ownHosts() });
      await resolveTarget(target, { lookup, allow, ownHosts: [] });
      const deadline = new AbortController();
      const { signal } = deadline;
      const connection = await open({ target, signal }, await lookup(host));
      const cancel = clock.after(CALL_TIMEOUT_MS, () => deadline.abort(new Error("timed out")));
      const request = { url: own.href, body: "{}", signingSecret: "", local: true };
      await post({ request, target, signal, answer: null, sent: null }, connection);
      cancel();
      connection.close();
    },
    close: () => pool.close(),
  };
}

/** A server that closed an idle connection reports it within a round trip. A later error may mean that it processed the notice. */
const CLOSED_IDLE_WITHIN_MS = 1_000;
const CLOSE_ERRORS: ReadonlySet<string> = new Set(["UND_ERR_SOCKET", "ECONNRESET", "EPIPE", "ECONNABORTED"]);

/**
 * Reports whether the server had closed an idle connection, so that the notice is sent over a new one: either the notice certainly was not
 * sent, or the close arrived at once and without any response. The second case does not prove that the server did not read it; the notice's id
 * lets it detect the duplicate, as for a retry.
 */
function wasClosedIdle(posted: Posted, tookMs: number): boolean {
  if (posted.kind === "answered" || posted.reached === "answering") return false;
  if (posted.reached === "nothing") return true;
  return tookMs < CLOSED_IDLE_WITHIN_MS && CLOSE_ERRORS.has(errorCode(posted.error));
}

function toOutcome({ target, signal }: Call, posted: Posted): CallOutcome {
  if (posted.kind === "answered") return answered(posted.answer);
  if (signal.aborted) return explain(target, posted.error, signal);
  return { kind: "unreachable", code: "connection_failed", message: formatBrokenResponse(target, posted) };
}

/** Formats why an open connection gave no complete response. The library's own codes would not help the operator of that server. */
function formatBrokenResponse(
  { host, port }: CallTarget,
  { error, reached }: Posted & { kind: "failed" },
): string {
  const code = errorCode(error);
  if (code === "UND_ERR_HEADERS_OVERFLOW")
    return `${host} answered with more than 16 KB of headers: let it send fewer of them.`;
  if (/^HPE_|^HTTPParserError$|^UND_ERR_RES_/.test(code))
    return `The answer of ${host} on port ${port} is not HTTP/1.1: check that url has the port of a web server, and check a proxy in front of it.`;
  if (error instanceof Error && /^bad (response|upgrade)$/.test(error.message))
    return `${host} answered with a status of 100 or 101, which is not expected: make it answer directly with its final status.`;
  if (error instanceof Error && error.message === NO_LAST_STATUS)
    return `${host} answered with several interim statuses (100 to 103): make it answer directly with its final status.`;
  const when = reached === "answering" ? "in the middle of its answer" : "before it answered";
  return `${host} closed the connection ${when} (${code === "UND_ERR_SOCKET" ? "without an error" : code}): read its log, and the log of a proxy in front of it.`;
}

function answered({ status, headers, body }: CallResponse): CallOutcome {
  return { kind: "answered", ok: status >= 200 && status < 300, status, headers, body };
}

function sentRequest(url: URL, notice: Omit<Notice, "path">): SentRequest {
  return formatRequest(url, { ...notice, signatures: hideSignatures(notice.signatures) });
}

function formatRequest(url: URL, notice: Omit<Notice, "path">): SentRequest {
  const headers = { ...headersOf(notice), "content-length": String(Buffer.byteLength(notice.body)) };
  return { method: "POST", url: url.origin + url.pathname + url.search, headers };
}

function withSentRequest({ sent }: Call, outcome: CallOutcome): CallOutcome {
  return sent === null || outcome.kind === "refused" ? outcome : { ...outcome, request: sent };
}

function rejectTarget(code: UrlRule, message: string): CallOutcome & { kind: "refused" } {
  return { kind: "refused", code, message };
}

function explainConnect(target: CallTarget, error: unknown, signal: AbortSignal): CallOutcome {
  if (!signal.aborted && isTlsError(error)) {
    return {
      kind: "unreachable",
      code: "tls_failed",
      message: `No trusted connection to ${target.host} (${errorCode(error)}): check its certificate, its chain and its host name.`,
    };
  }
  return explain(target, error, signal);
}

function explain(target: CallTarget, error: unknown, signal: AbortSignal): CallOutcome {
  if (signal.aborted) {
    const seconds = CALL_TIMEOUT_MS / 1000;
    return {
      kind: "unreachable",
      code: "timeout",
      message: `${target.host} did not answer within ${seconds} seconds: answer first and do long work afterwards.`,
    };
  }
  return {
    kind: "unreachable",
    code: "connection_failed",
    message: `The connection to ${target.host} on port ${target.port} failed (${errorCode(error)}): check that the server runs and answers there.`,
  };
}

/** Resolves with the work's result, or rejects with the signal's reason once it is aborted. */
function unlessAborted<Result>(work: Promise<Result>, signal: AbortSignal): Promise<Result> {
  return new Promise((resolve, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
    work.then(resolve, reject);
  });
}
