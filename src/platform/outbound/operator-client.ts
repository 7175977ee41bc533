/**
 * Sends requests to a server that the operator names, such as a collector of telemetry or the release feed. Its addresses follow the rules of mail
 * servers and S3 endpoints: public ones, and private ones that the operator allows (`--allow-private`). They are checked at each connection, and the
 * socket is pinned to one of them. The client follows no redirect, uses no proxy, and keeps one connection open.
 */
import { isIP, type Socket } from "node:net";
import type { Client } from "undici/index.js";
import type { Clock } from "../../base/clock.ts";
import { formatCount } from "../../base/text.ts";
import { canonicalAddress, evaluateAddress, parseAllowList } from "./address.ts";
import { type AddressLookup, isUnanswered, makeLookup } from "./address-lookup.ts";
import { connectPinned, makeTrust } from "./connect.ts";
import { loadClient, makeSocketClient } from "./connection.ts";
import { errorCode, isTlsError } from "./error-code.ts";

export interface OperatorRequest {
  method: "GET" | "POST";
  /** An http or https URL without a user name. */
  url: URL;
  headers: Readonly<Record<string, string>>;
  body?: Uint8Array;
  /** The most bytes of the response's body; a larger one is an error. */
  maxBytes: number;
  timeoutMs: number;
}

interface OperatorResponse {
  status: number;
  /** By lower-case name. A header that came several times has its values joined. */
  headers: Readonly<Record<string, string>>;
  body: Uint8Array;
}

/** The request got no response that can be used. The message is a sentence that names the host and never the path, the query or a header. */
export class OperatorRequestFailed extends Error {}

export interface OperatorClientOptions {
  clock: Clock;
  /** Private hosts that the operator allows: names, or ranges such as `10.1.0.0/16`. */
  allowPrivate: readonly string[];
  lookup?: AddressLookup;
  /** PEM certificates of authorities that are trusted in addition to the built-in ones. */
  certificateAuthorities?: readonly string[];
}

/** An open connection. */
interface Open {
  origin: string;
  socket: Socket;
  client: Client;
}

export class OperatorClient {
  readonly #options: OperatorClientOptions;
  readonly #trust: ReturnType<typeof makeTrust>;
  readonly #allow: ReturnType<typeof parseAllowList>;
  readonly #lookup: AddressLookup;
  #open: Open | null = null;

  /** Throws for a malformed range in `allowPrivate`. */
  constructor(options: OperatorClientOptions) {
    this.#options = options;
    this.#allow = parseAllowList(options.allowPrivate);
    this.#lookup = options.lookup ?? makeLookup(this.#allow);
    this.#trust = makeTrust(options.certificateAuthorities ?? []);
  }

  /** Sends one request at a time. Returns a response of any status. Throws OperatorRequestFailed. */
  async request(request: OperatorRequest): Promise<OperatorResponse> {
    const { clock } = this.#options;
    const { url, timeoutMs } = request;
    const deadline = new AbortController();
    const timedOut = new OperatorRequestFailed(
      `${url.hostname} did not answer within ${timeoutMs / 1_000} seconds.`,
    );
    const cancel = clock.after(timeoutMs, () => deadline.abort(timedOut));
    try {
      return await Promise.race([this.#send(request, deadline.signal), rejectOnAbort(deadline.signal)]);
    } catch (error) {
      this.close();
      throw error instanceof OperatorRequestFailed ? error : explain(url, error);
    } finally {
      cancel();
    }
  }

  /** Closes the open connection. A later request opens another one. */
  close(): void {
    this.#open?.socket.destroy();
    void this.#open?.client.destroy().catch(() => undefined);
    this.#open = null;
  }

  async #send(request: OperatorRequest, signal: AbortSignal): Promise<OperatorResponse> {
    const kept = this.#open;
    if (kept !== null && kept.origin === request.url.origin && !kept.socket.destroyed) {
      try {
        return await dispatch(kept.client, request);
      } catch (error) {
        // The server may have closed the idle connection. A collector and a feed can get the request twice.
        if (error instanceof OperatorRequestFailed || signal.aborted) throw error;
      }
    }
    this.close();
    this.#open = await this.#connect(request.url, signal);
    return await dispatch(this.#open.client, request);
  }

  async #connect(url: URL, signal: AbortSignal): Promise<Open> {
    const host = url.hostname.replace(/^\[|\]$|\.$/g, "").toLowerCase();
    const isTls = url.protocol === "https:";
    const port = url.port === "" ? (isTls ? 443 : 80) : Number(url.port);
    const addresses = await this.#resolve(host);
    const { clock } = this.#options;
    const socket = await connectPinned({ host, port }, addresses, {
      clock,
      trust: isTls ? this.#trust : null,
      signal,
    });
    const client = makeSocketClient(await loadClient(), url.origin, socket);
    return { origin: url.origin, socket, client };
  }

  /** Returns the addresses of the host, if all of them may be called. */
  async #resolve(host: string): Promise<readonly string[]> {
    const addresses = isIP(host) === 0 ? await this.#findAddresses(host) : [canonicalAddress(host) ?? host];
    for (const address of addresses) {
      const verdict = evaluateAddress(address, host, this.#allow);
      if (verdict.allowed) continue;
      const where = host === address ? host : `${host} (${address})`;
      throw new OperatorRequestFailed(
        `${where} is ${verdict.kind}: name a public server, or allow this one with --allow-private (RELAY_ALLOW_PRIVATE).`,
      );
    }
    return [...new Set(addresses)];
  }

  async #findAddresses(host: string): Promise<readonly string[]> {
    let isAnswered = true;
    const addresses = await this.#lookup(host).catch((error: unknown) => {
      isAnswered = !isUnanswered(error);
      return [];
    });
    if (addresses.length > 0) return addresses;
    throw new OperatorRequestFailed(
      isAnswered
        ? `${host} has no address: check its spelling.`
        : `No name server answered for ${host}: check the network of this machine.`,
    );
  }
}

function dispatch(
  client: Client,
  { method, url, headers, body, maxBytes }: OperatorRequest,
): Promise<OperatorResponse> {
  return new Promise((resolve, reject) => {
    let status = 0;
    let answered: Record<string, string> = {};
    const chunks: Uint8Array[] = [];
    let size = 0;
    client.dispatch(
      {
        method,
        path: url.pathname + url.search,
        headers: { "accept-encoding": "identity", ...headers },
        ...(body === undefined ? {} : { body }),
      },
      {
        onRequestStart: () => undefined,
        onResponseStart(_controller, code, given) {
          status = code;
          answered = Object.fromEntries(
            Object.entries(given).map(([name, value]) => [name.toLowerCase(), String(value ?? "")]),
          );
        },
        onResponseData(controller, chunk) {
          size += chunk.byteLength;
          if (size <= maxBytes) chunks.push(chunk);
          else
            controller.abort(
              new OperatorRequestFailed(
                `${url.hostname} answered with more than ${formatCount(maxBytes)} bytes.`,
              ),
            );
        },
        onResponseEnd: () => resolve({ status, headers: answered, body: Buffer.concat(chunks) }),
        onResponseError: (_controller, error) => reject(error),
      },
    );
  });
}

function rejectOnAbort(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) =>
    signal.addEventListener("abort", () => reject(signal.reason), { once: true }),
  );
}

function explain({ hostname }: URL, error: unknown): OperatorRequestFailed {
  const code = errorCode(error);
  if (isTlsError(error))
    return new OperatorRequestFailed(
      `No trusted connection to ${hostname} (${code}): check its certificate and host name. NODE_EXTRA_CA_CERTS adds an authority.`,
    );
  return new OperatorRequestFailed(
    `The connection to ${hostname} failed (${code}): check that a server runs and answers there.`,
  );
}
