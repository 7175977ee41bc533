/**
 * Reads the address of a request: its Host, path, query and source address. It refuses anything that this service and a proxy could read
 * differently before any rule uses it. In local development only loopback names reach the service, so that a web page whose name points at this
 * machine (DNS rebinding) gets nothing. X-Forwarded-For counts only as far as the configured proxies wrote it.
 */
import type { Static, TObject } from "typebox";
import { checkInput } from "../../base/check-shape.ts";
import { type IpAddress, type IpRange, isInRanges, readHop, readIpRange } from "../../base/ip-range.ts";
import { Refusal } from "../../base/refusal.ts";

/** The origin for a request without a usable Host. HTTP/1.0 has none, and a client can send one that no URL accepts. Such a Host decides nothing. */
const PLACE = "http://localhost";
const ORIGIN = /^[a-z]+:\/\/[^/?#]*/i;

/** Returns the URL with path and query as they were sent. Never throws. */
export function addressOf(request: Request): URL {
  const { url } = request;
  return URL.parse(url) ?? URL.parse(PLACE + url.replace(ORIGIN, "")) ?? new URL(PLACE);
}

const LOOPBACK_HOST = /^(127\.0\.0\.1|localhost|\[::1\])(?::(\d{1,5}))?$/i;

/**
 * Refuses with `wrong_origin` a Host that is not this machine's loopback with the port of this service. The host of a configured base URL, for
 * example of a tunnel for webhooks, reaches only the receivers, whose requests are signed.
 */
export function requireLocalHost(request: Request, port: number, baseUrl: string | null): void {
  const host = request.headers.get("host") ?? "";
  const match = LOOPBACK_HOST.exec(host);
  if (match !== null && Number(match[2] ?? 80) === port) return;
  const isTunnel = baseUrl !== null && new URL(baseUrl).host === host.toLowerCase();
  if (isTunnel && addressOf(request).pathname.startsWith("/hooks/")) return;
  throw new Refusal(
    "wrong_origin",
    isTunnel
      ? `In local development, this address only forwards webhooks to the receivers: open the dashboard at http://127.0.0.1:${port} on the machine it runs on.`
      : `In local development the service answers only to 127.0.0.1, localhost and [::1] on port ${port}: open http://127.0.0.1:${port} on the machine it runs on.`,
  );
}

/** An encoded dot or backslash that remains when a URL is parsed. */
const ENCODED = /%2e|%5c/i;
/** The only path parameter that can be any text: a store account token. */
const FREE_NAME = "token";

/**
 * Refuses with `ambiguous_request` a request with two Host headers, or a path with a backslash, a dot segment, or encoded dots and slashes. In
 * `url` they are already resolved. `params` has the decoded path parameters as they were sent.
 */
export function requireOneReading(request: Request, params: Readonly<Record<string, string>>): void {
  if (request.headers.get("host")?.includes(",") === true) {
    throw new Refusal("ambiguous_request", "The request has more than one host: send one Host header.");
  }
  for (const name in params) {
    const part = params[name] ?? "";
    if (part === "." || part === ".." || part.includes("\\") || (part.includes("/") && name !== FREE_NAME))
      throw rejectPath();
  }
  const { url } = request;
  if (!url.includes("%")) return;
  const query = url.indexOf("?");
  if (ENCODED.test(query < 0 ? url : url.slice(0, query))) throw rejectPath();
}

function rejectPath(): Refusal {
  return new Refusal(
    "ambiguous_request",
    "The path contains a backslash, a dot segment, two slashes in a row, or an encoded dot or slash. A proxy may read it differently: send a plain path.",
  );
}

const DEEPEST_PARTS = 8;

/** Patterns of paths by depth for requests without a route, so that `params` has their parts before dots and backslashes are resolved. */
export const UNNAMED_PATHS: readonly string[] = [
  "/",
  ...Array.from({ length: DEEPEST_PARTS }, (_, at) =>
    Array.from({ length: at + 1 }, (_part, index) => `/:part${index}`).join(""),
  ),
];
/** The pattern for all other paths: those with an empty part, and those deeper than any route. */
export const ODD_PATHS = "/*";

/** Refuses with `ambiguous_request` a path with two slashes in a row. It also refuses one that looks plain here, because dots in it were resolved. */
export function requireOdd(request: Request): void {
  const { pathname } = addressOf(request);
  const isDeep = pathname.split("/").length - 1 > DEEPEST_PARTS;
  const endsInSlash = pathname !== "/" && pathname.endsWith("/");
  if (pathname.includes("//") || !(isDeep || endsInSlash)) throw rejectPath();
}

/** Paths for programs, for which ambiguous paths remain refused. */
const NO_PAGES = /^\/(api|hooks|client)(\/|$)/;

/**
 * Returns the plain path for a browser that requests a page with two slashes in a row, which a base URL with a trailing slash causes. Otherwise
 * returns null. The browser then sends a new request, so nothing is read in two ways. The path begins with one slash, so it stays on this
 * service.
 */
export function findPlainPage(request: Request): string | null {
  const { pathname, search } = addressOf(request);
  const plain = pathname.replaceAll(/\/{2,}/g, "/");
  const isBrowser =
    (request.method === "GET" || request.method === "HEAD") &&
    (request.headers.get("accept") ?? "").includes("text/html");
  return isBrowser && plain !== pathname && !NO_PAGES.test(plain) ? plain + search : null;
}

/** A method and a path that the service serves. */
export interface Served {
  method: string;
  path: string;
}

/** Returns the refusal for a request that matches no route. */
export function rejectMissing(served: readonly Served[], method: string, pathname: string): Refusal {
  const methods = served.filter(({ path }) => matchesPath(path, pathname)).map(({ method: one }) => one);
  if (methods.length === 0) {
    return new Refusal("not_found", "Nothing exists at this address: /openapi.json lists every route.");
  }
  const allow = [...new Set(methods)].join(", ");
  return new Refusal("method_not_allowed", `${method} is not allowed at this address: use ${allow}.`, {
    details: { allow },
  });
}

/** Returns true if a path matches a pattern with `:name` segments. */
export function matchesPath(pattern: string, pathname: string): boolean {
  const wanted = pattern.split("/");
  const given = pathname.split("/");
  return (
    wanted.length === given.length &&
    wanted.every((part, at) => (part.startsWith(":") ? given[at] !== "" : part === given[at]))
  );
}

/** A plain IPv4 address, the most common peer, which needs no parsing. */
const PLAIN_IPV4 = /^\d{1,3}(?:\.\d{1,3}){3}$/;

/** Maximum number of proxies in a row. Reading a full header of hops would take tens of milliseconds. */
const MOST_HOPS = 32;

/** Ranges in which the operator's own proxy can be: this machine or its network. */
const NEAR = new Set(["loopback", "private", "uniqueLocal", "linkLocal"]);

/** A private peer that forwards for at least this many callers is a proxy. A single client sends one value. */
const MANY_FORWARDED = 3;
const MAX_FORWARDED_CHARS = 200;
/** Sampling of requests that do not need the source address: the first ones are checked for a proxy, then one in this many. */
const LOOK_AT_ONE_IN = 64;

interface Listening {
  /** Null until the service listens. */
  readonly server: { requestIP(request: Request): { address: string; port: number } | null } | null;
}

/** Reads callers' addresses behind these proxies (addresses or CIDR ranges). Throws an error that names a malformed one. */
export class SourceReader {
  readonly #proxies: IpRange[];
  #onUnnamedProxy: ((proxy: string) => void) | null;
  #app: Listening = { server: null };
  /** The forwarded values of the last near peer, cut to a maximum length. */
  #forwarded = new Set<string>();
  #forwardedBy = "";
  #unasked = 0;

  /** `onUnnamedProxy` is called once, with a peer that seems to be a proxy while none is configured. */
  constructor(trustedProxies: readonly string[], onUnnamedProxy: ((proxy: string) => void) | null = null) {
    this.#onUnnamedProxy = trustedProxies.length === 0 ? onUnnamedProxy : null;
    this.#proxies = trustedProxies.map((text) => {
      const range = readIpRange(text);
      if (typeof range === "string") throw new Error(`The trusted proxy ${range}`);
      return range;
    });
  }

  /** Sets the app whose server receives the requests. */
  listen(app: Listening): void {
    this.#app = app;
  }

  /**
   * Returns the source address of a request. It asks the server directly, because the framework would define a property in each request's
   * context.
   */
  of(request: Request): string {
    const peer = this.#app.server?.requestIP(request)?.address ?? null;
    return this.sourceOf(peer, request.headers.get("x-forwarded-for"));
  }

  /** Returns the other end of the request's connection, or null if it has closed. */
  connectionOf(request: Request): string | null {
    const peer = this.#app.server?.requestIP(request) ?? null;
    return peer === null ? null : `${peer.address} ${peer.port}`;
  }

  /** Returns the caller's address: the peer, or behind trusted proxies the nearest address that is not a trusted proxy. */
  sourceOf(peer: string | null, forwardedFor: string | null): string {
    if (forwardedFor !== null && this.#onUnnamedProxy !== null) this.#noticeProxy(peer ?? "", forwardedFor);
    if (this.#proxies.length === 0 && peer !== null && PLAIN_IPV4.test(peer)) return peer;
    let source = readHop(peer ?? "");
    if (source === null) return "unknown";
    const hops = this.#proxies.length === 0 ? [] : (forwardedFor ?? "").split(",").slice(-MOST_HOPS);
    for (let hop = hops.pop(); hop !== undefined && this.#isProxy(source); hop = hops.pop()) {
      const before = readHop(hop);
      if (before === null) break;
      source = before;
    }
    return capKey(source);
  }

  /** True if this request, which does not need the source address, must be checked for a proxy. Few are, because the check has a cost. */
  get looksAtUnasked(): boolean {
    if (this.#onUnnamedProxy === null) return false;
    this.#unasked += 1;
    return this.#unasked <= LOOK_AT_ONE_IN || this.#unasked % LOOK_AT_ONE_IN === 0;
  }

  #noticeProxy(peer: string, forwardedFor: string): void {
    const address = readHop(peer);
    if (address === null || !NEAR.has(address.range())) return;
    if (this.#forwardedBy !== peer) this.#forwarded.clear();
    this.#forwardedBy = peer;
    this.#forwarded.add(forwardedFor.slice(0, MAX_FORWARDED_CHARS));
    if (this.#forwarded.size < MANY_FORWARDED) return;
    this.#onUnnamedProxy?.(address.toString());
    this.#onUnnamedProxy = null;
  }

  #isProxy(address: IpAddress): boolean {
    return isInRanges(address, this.#proxies);
  }
}

function capKey(address: IpAddress): string {
  if (address.kind() === "ipv4") return address.toString();
  return `${address.toNormalizedString().split(":").slice(0, 4).join(":")}::/64`;
}

/** Returns the query as names with one text each, validated against the schema. Refuses a repeated name. */
export function checkQuery<Schema extends TObject>(schema: Schema, search: URLSearchParams): Static<Schema> {
  const query: Record<string, string> = Object.create(null);
  for (const [name, value] of search) {
    if (Object.hasOwn(query, name)) {
      throw new Refusal("invalid_input", `The query contains ${name} twice: send it once.`);
    }
    query[name] = value;
  }
  return checkInput(schema, { ...query });
}
