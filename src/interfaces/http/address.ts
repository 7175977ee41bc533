/**
 * The address that a request names, its query, which Host and path it may carry, what is said where nothing is, and where the call came from. What could
 * be read in two ways, here and in a proxy before it, is refused before any rule reads it. In local development only loopback names reach the
 * service, so that a web page whose name was pointed at this machine (DNS rebinding) gets nothing. X-Forwarded-For is believed only as far as
 * the configured proxies wrote it.
 */
import type { Static, TObject } from "typebox";
import { checkInput } from "../../base/check-shape.ts";
import { type IpAddress, type IpRange, isInRanges, readHop, readIpRange } from "../../base/ip-range.ts";
import { Refusal } from "../../base/refusal.ts";

/** A call of HTTP/1.0 has no Host, and anyone may send one that no URL can hold: it is nobody's word and decides nothing. */
const PLACE = "http://localhost";
const ORIGIN = /^[a-z]+:\/\/[^/?#]*/i;

/** Path and query as they were sent; never throws. */
export function addressOf(request: Request): URL {
  const { url } = request;
  return URL.parse(url) ?? URL.parse(PLACE + url.replace(ORIGIN, "")) ?? new URL(PLACE);
}

const LOOPBACK_HOST = /^(127\.0\.0\.1|localhost|\[::1\])(?::(\d{1,5}))?$/i;

/**
 * Refuses with `wrong_origin` a Host that is not this machine's loopback with the port that is listened on. The host of a configured
 * base URL (a tunnel that brings providers' calls here) reaches the receivers alone: their calls are signed.
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
      ? `In local development this address brings providers' calls to the receivers alone: open the dashboard at http://127.0.0.1:${port} on the machine it runs on.`
      : `In local development the service answers only to 127.0.0.1, localhost and [::1] on port ${port}: open http://127.0.0.1:${port} on the machine it runs on.`,
  );
}

/** What is left of an encoded dot or backslash in a URL that was made of it. */
const ENCODED = /%2e|%5c/i;
/** The one name in a path that is anyone's text: a store's account token. */
const FREE_NAME = "token";

/**
 * Refuses with `ambiguous_request` a request with two Host headers, or a path with a backslash, a dot segment, or encoded dots and slashes:
 * `url` has them resolved already, `params` holds the names of the path as they came, decoded.
 */
export function requireOneReading(request: Request, params: Readonly<Record<string, string>>): void {
  if (request.headers.get("host")?.includes(",") === true) {
    throw new Refusal("ambiguous_request", "The request names more than one host: send one Host header.");
  }
  for (const name in params) {
    const part = params[name] ?? "";
    if (part === "." || part === ".." || part.includes("\\") || (part.includes("/") && name !== FREE_NAME))
      throw refusePath();
  }
  const { url } = request;
  if (!url.includes("%")) return;
  const query = url.indexOf("?");
  if (ENCODED.test(query < 0 ? url : url.slice(0, query))) throw refusePath();
}

function refusePath(): Refusal {
  return new Refusal(
    "ambiguous_request",
    "The path holds a backslash, a dot segment, two slashes in a row, or an encoded dot or slash, which a proxy may read another way: write it plainly.",
  );
}

const DEEPEST_PARTS = 8;

/** Paths by their depth, for what no route names: there too the parts are seen as they came, before dots and backslashes are resolved. */
export const UNNAMED_PATHS: readonly string[] = [
  "/",
  ...Array.from({ length: DEEPEST_PARTS }, (_, at) =>
    Array.from({ length: at + 1 }, (_part, index) => `/:part${index}`).join(""),
  ),
];
/** What is left: a path with an empty part, which no name stands for, or deeper than anything that is served. */
export const ODD_PATHS = "/*";

/** Refuses with `ambiguous_request` two slashes in a row, and an odd path that looks plain: dots in it were resolved. */
export function requireOdd(request: Request): void {
  const { pathname } = addressOf(request);
  const isDeep = pathname.split("/").length - 1 > DEEPEST_PARTS;
  const endsInSlash = pathname !== "/" && pathname.endsWith("/");
  if (pathname.includes("//") || !(isDeep || endsInSlash)) throw refusePath();
}

/** Programs' addresses: there two readings stay refused. */
const NO_PAGES = /^\/(api|hooks|client)(\/|$)/;

/**
 * Where a browser goes that asks for a page with two slashes in a row, as a base URL that ends in one makes them; else null. It asks anew, so nothing is
 * read in two ways; the address begins with one slash and stays this service's.
 */
export function findPlainPage(request: Request): string | null {
  const { pathname, search } = addressOf(request);
  const plain = pathname.replaceAll(/\/{2,}/g, "/");
  const isBrowser =
    (request.method === "GET" || request.method === "HEAD") &&
    (request.headers.get("accept") ?? "").includes("text/html");
  return isBrowser && plain !== pathname && !NO_PAGES.test(plain) ? plain + search : null;
}

/** What an address is served with. */
export interface Served {
  method: string;
  path: string;
}

/** The refusal for a request that no route took. */
export function refuseMissing(served: readonly Served[], method: string, pathname: string): Refusal {
  const methods = served.filter(({ path }) => matchesPath(path, pathname)).map(({ method: one }) => one);
  if (methods.length === 0) {
    return new Refusal("not_found", "Nothing exists under this address: /openapi.json lists every route.");
  }
  const allow = [...new Set(methods)].join(", ");
  return new Refusal("method_not_allowed", `${method} is not for this address: use ${allow}.`, {
    details: { allow },
  });
}

/** Whether a path fits a pattern with `:name` segments. */
export function matchesPath(pattern: string, pathname: string): boolean {
  const wanted = pattern.split("/");
  const given = pathname.split("/");
  return (
    wanted.length === given.length &&
    wanted.every((part, at) => (part.startsWith(":") ? given[at] !== "" : part === given[at]))
  );
}

/** A plain IPv4 peer needs no parsing: the common case of every call. */
const PLAIN_IPV4 = /^\d{1,3}(?:\.\d{1,3}){3}$/;

/** More proxies stand in no row; a header's worth of hops would take tens of milliseconds to read. */
const MOST_HOPS = 32;

/** Where a proxy of the server's own stands: on its machine or in its network. */
const NEAR = new Set(["loopback", "private", "uniqueLocal", "linkLocal"]);

/** A private peer that brings so many different callers' addresses passes calls on: one client writes one. */
const MANY_FORWARDED = 3;
const MAX_FORWARDED_CHARS = 200;
/** Of calls that ask for no address the first so many are looked at for a proxy, then one in so many. */
const LOOK_AT_ONE_IN = 64;

interface Listening {
  /** null: it does not listen yet. */
  readonly server: { requestIP(request: Request): { address: string; port: number } | null } | null;
}

/** A reader of callers' addresses for these proxies (addresses or CIDR ranges). Throws on a malformed one, naming it. */
export class SourceReader {
  readonly #proxies: IpRange[];
  #tellUnnamed: ((proxy: string) => void) | null;
  #app: Listening = { server: null };
  /** What the last near peer said it passes on, cut short. */
  #forwarded = new Set<string>();
  #forwardedBy = "";
  #unasked = 0;

  /** `tellUnnamed` is told once of a proxy that seems to pass calls on while none is named. */
  constructor(trustedProxies: readonly string[], tellUnnamed: ((proxy: string) => void) | null = null) {
    this.#tellUnnamed = trustedProxies.length === 0 ? tellUnnamed : null;
    this.#proxies = trustedProxies.map((text) => {
      const range = readIpRange(text);
      if (typeof range === "string") throw new Error(`The trusted proxy ${range}`);
      return range;
    });
  }

  /** From now on calls come over the server of this app. */
  listen(app: Listening): void {
    this.#app = app;
  }

  /** The address that this call came from. The server that listens is asked itself: the framework would define a property of each call's context for it. */
  of(request: Request): string {
    const peer = this.#app.server?.requestIP(request)?.address ?? null;
    return this.sourceOf(peer, request.headers.get("x-forwarded-for"));
  }

  /** The connection that this call came over, by its other end; null where it is over. */
  connectionOf(request: Request): string | null {
    const peer = this.#app.server?.requestIP(request) ?? null;
    return peer === null ? null : `${peer.address} ${peer.port}`;
  }

  /** The caller's address: the connection's own, or through trusted proxies the nearest one they did not vouch for. */
  sourceOf(peer: string | null, forwardedFor: string | null): string {
    if (forwardedFor !== null && this.#tellUnnamed !== null) this.#noticeProxy(peer ?? "", forwardedFor);
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

  /** Whether this call, whose address nothing asks for, is one to be looked at for a proxy: few are, so that it costs nothing. */
  get looksAtUnasked(): boolean {
    if (this.#tellUnnamed === null) return false;
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
    this.#tellUnnamed?.(address.toString());
    this.#tellUnnamed = null;
  }

  #isProxy(address: IpAddress): boolean {
    return isInRanges(address, this.#proxies);
  }
}

function capKey(address: IpAddress): string {
  if (address.kind() === "ipv4") return address.toString();
  return `${address.toNormalizedString().split(":").slice(0, 4).join(":")}::/64`;
}

/** The query as names with one string each, fitting the schema. A name given twice is refused. */
export function checkQuery<Schema extends TObject>(schema: Schema, search: URLSearchParams): Static<Schema> {
  const query: Record<string, string> = Object.create(null);
  for (const [name, value] of search) {
    if (Object.hasOwn(query, name)) {
      throw new Refusal("invalid_input", `${name} is given twice in the query: give it once.`);
    }
    query[name] = value;
  }
  return checkInput(schema, { ...query });
}
