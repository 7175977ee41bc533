/**
 * The one way out to a called URL: rules, addresses, one pinned connection, one signed POST, the beginning of the answer, all within
 * 10 seconds. A connection serves one call and is closed, so that every attempt checks its address. It follows no redirect, uses no
 * proxy and stores nothing. A status that arrived counts, also where the body after it drips on past the 10 seconds. Source: the specification's "Outbound".
 */
import { createHmac } from "node:crypto";
import type { Socket } from "node:net";
import type { buildConnector } from "undici/index.js";
import type { Clock } from "../ground/clock.ts";
import { CALL_TIMEOUT_MS, MAX_KEPT_ANSWER_BYTES } from "../ground/limit.ts";
import { cutUtf8 } from "../ground/text.ts";
import { parseAllowList } from "./address.ts";
import {
  type AddressLookup,
  type CallTarget,
  lookupAll,
  readCallTarget,
  resolveTarget,
  type UrlRule,
} from "./call-target.ts";
import { connectPinned, errorCode, isTlsError, makeTrust } from "./connect.ts";

export interface CallRequest {
  url: string;
  /** The exact bytes to post, signed as they are. */
  body: string;
  signingSecret: string;
  /** Local development: http to localhost is allowed. */
  local: boolean;
}

export type CallOutcome =
  /** The URL answered: 2xx is `ok`. `body`: its first 4 KB as text. */
  | { kind: "answered"; ok: boolean; status: number; body: string }
  /** An address rule refused it: https_only, ip_literal, own_host, unresolvable, private_address. */
  | {
      kind: "refused";
      code: UrlRule;
      message: string;
      /** The URL as written breaks the rule, so that no other answer of the name servers mends it. */
      final?: true;
    }
  /** No answer: timeout, connection or TLS failure. */
  | { kind: "unreachable"; code: "timeout" | "connection_failed" | "tls_failed"; message: string };

export interface OutboundCaller {
  /** Posts once, redirects not followed, within 10 seconds, pinned to the address checked. Never throws. */
  call(request: CallRequest): Promise<CallOutcome>;
}

export interface CallerOptions {
  /** The service's own hosts as of now: `name` (every port) or `name:port`; see `ownHostOf`. */
  ownHosts: () => readonly string[];
  /** Private targets the operator allows: exact host names, or ranges such as `10.1.0.0/16`. */
  allowPrivate: readonly string[];
  clock: Clock;
  /** Every address of a host name; the system's resolver unless given. */
  lookup?: AddressLookup;
  /** PEM certificates of authorities trusted besides the built-in ones. */
  certificateAuthorities?: readonly string[];
}

/** Makes the caller. Throws on a malformed range in `allowPrivate`. */
export function createCaller(options: CallerOptions): OutboundCaller {
  const { clock, ownHosts, lookup = lookupAll, certificateAuthorities = [] } = options;
  const allow = parseAllowList(options.allowPrivate);
  const trust = makeTrust(certificateAuthorities);

  async function callWithin(
    request: CallRequest,
    target: CallTarget,
    signal: AbortSignal,
    onStatus: OnStatus,
  ) {
    const context = { lookup, allow, ownHosts: ownHosts() };
    const addresses = await resolveTarget(target, context);
    if (signal.aborted) throw signal.reason;
    if ("code" in addresses) return refuse(addresses.code, addresses.message);
    let socket: Socket;
    try {
      const { host, port, url } = target;
      const open = { host, port, tls: url.protocol === "https:" };
      socket = await connectPinned(open, addresses, { clock, trust, signal });
    } catch (error) {
      return explainConnect(target, error, signal);
    }
    return post(request, target, socket, clock.now(), signal, onStatus);
  }

  return {
    async call(request) {
      const target = readCallTarget(request.url, { local: request.local, ownHosts: ownHosts() });
      if ("code" in target) return { ...refuse(target.code, target.message), final: true };
      const deadline = new AbortController();
      const cancel = clock.after(CALL_TIMEOUT_MS, () => deadline.abort(new Error("timed out")));
      const { signal } = deadline;
      let arrived: (() => CallOutcome) | null = null;
      const onStatus: OnStatus = (outcome) => {
        arrived = outcome;
      };
      try {
        return await unlessAborted(callWithin(request, target, signal, onStatus), signal);
      } catch (error) {
        const late = arrived as (() => CallOutcome) | null;
        return signal.aborted && late !== null ? late() : explain(target, error, signal);
      } finally {
        cancel();
      }
    },
  };
}

/** Told when the status has arrived: how the call stands with what came of the body until then. */
type OnStatus = (outcome: () => CallOutcome) => void;

/** Loaded at the first call: it is half of the time and much of the memory of a start. */
const loadUndici = (): Promise<typeof import("undici/index.js")> => import("undici/index.js");

/** Gives undici the connection that is already open; it never opens one itself. It must not be given at once: undici is not ready then. */
function handOver(socket: Socket): buildConnector.connector {
  return (_options, callback) => queueMicrotask(() => callback(null, socket));
}

async function post(
  request: CallRequest,
  target: CallTarget,
  socket: Socket,
  nowMs: number,
  signal: AbortSignal,
  onStatus: OnStatus,
): Promise<CallOutcome> {
  const { default: undici } = await loadUndici();
  const client = new undici.Client(target.url.origin, {
    connect: handOver(socket),
    headersTimeout: 0,
    bodyTimeout: 0,
  });
  signal.addEventListener("abort", () => socket.destroy(), { once: true });
  try {
    const response = await client.request({
      method: "POST",
      path: target.url.pathname + target.url.search,
      headers: {
        "content-type": "application/json",
        "user-agent": "Service-Relays/1",
        "accept-encoding": "identity",
        "X-Service-Signature": signNotice(request.signingSecret, request.body, nowMs),
      },
      body: request.body,
      reset: true,
      signal,
    });
    response.body.on("error", () => {});
    const { statusCode: status } = response;
    const kept = new KeptBody(response.headers);
    const answer = (): CallOutcome => {
      return { kind: "answered", ok: status >= 200 && status < 300, status, body: kept.text };
    };
    onStatus(answer);
    await kept.read(response.body);
    return answer();
  } catch (error) {
    return explain(target, error, signal);
  } finally {
    socket.destroy();
    void client.destroy().catch(() => {});
  }
}

function refuse(code: UrlRule, message: string): CallOutcome & { kind: "refused" } {
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

/** The work's answer, or the signal's reason as soon as it is aborted. */
function unlessAborted<Result>(work: Promise<Result>, signal: AbortSignal): Promise<Result> {
  return new Promise((resolve, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
    work.then(resolve, reject);
  });
}

/**
 * The value of `X-Service-Signature`, `t=<unix_seconds>,v1=<hex>`: HMAC-SHA256 of `<timestamp>.<raw body>`, keyed by the signing secret's text
 * as UTF-8 bytes, whole, its prefix included. Source: the specification's "Outbound", rule 1.
 */
export function signNotice(secret: string, body: string, nowMs: number): string {
  const seconds = Math.floor(nowMs / 1000);
  const digest = createHmac("sha256", secret).update(`${seconds}.${body}`).digest("hex");
  return `t=${seconds},v1=${digest}`;
}

type AnswerHeaders = Readonly<Record<string, string | string[] | undefined>>;

/**
 * What is kept of an answer's body, as far as it has come: text that can be stored and shown, at most 4 KB of valid UTF-8, cut at a character.
 * The rest is never read. An answer that is compressed although none was asked for is not unpacked.
 */
class KeptBody {
  readonly #headers: AnswerHeaders;
  readonly #chunks: Uint8Array[] = [];
  #size = 0;

  constructor(headers: AnswerHeaders) {
    this.#headers = headers;
  }

  /** Reads until the body ends or is enough. Rejects when it breaks off before; what had come is kept. */
  async read(body: AsyncIterable<Uint8Array>): Promise<void> {
    if (this.#coding !== null) return;
    for await (const chunk of body) {
      this.#chunks.push(chunk);
      this.#size += chunk.byteLength;
      if (this.#size > MAX_KEPT_ANSWER_BYTES) return;
    }
  }

  /** The text of what has come. */
  get text(): string {
    if (this.#coding !== null) return `[a ${this.#coding} compressed answer, not kept]`;
    const bytes = Buffer.concat(this.#chunks).subarray(0, MAX_KEPT_ANSWER_BYTES);
    const isCut = this.#size > MAX_KEPT_ANSWER_BYTES;
    const text = decoderOf(headerText(this.#headers, "content-type")).decode(bytes, { stream: isCut });
    return cutUtf8(text.replaceAll("\0", "\ufffd"), MAX_KEPT_ANSWER_BYTES);
  }

  get #coding(): string | null {
    const coding = headerText(this.#headers, "content-encoding").trim().toLowerCase();
    return coding === "" || coding === "identity" ? null : cutUtf8(coding, 40);
  }
}

/** The declared charset's decoder; UTF-8 where none is declared or it is not known. */
function decoderOf(contentType: string): TextDecoder {
  const charset = /;\s*charset="?([\w-]{1,40})/i.exec(contentType)?.[1] ?? "utf-8";
  try {
    return new TextDecoder(charset as "utf-8");
  } catch {
    return new TextDecoder();
  }
}

function headerText(headers: AnswerHeaders, name: string): string {
  const value = headers[name];
  return Array.isArray(value) ? value.join(", ") : (value ?? "");
}
