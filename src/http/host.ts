/**
 * Which Host, path and Origin a call may carry. What could be read in two ways, here and in a proxy before it, is refused before any rule
 * reads it. In local development only loopback names reach the service, so that a web page whose name
 * was pointed at this machine (DNS rebinding) gets nothing; a write with the session's cookie must come from the dashboard itself.
 */
import { type ServiceConfig, servesCookies } from "../config.ts";
import { Refusal } from "../ground/refusal.ts";
import { addressOf } from "./address.ts";

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

/**
 * Refuses with `base_url_needed` where no cookie is served: on the network without a base URL, where a session would go over plain http
 * under any name.
 */
function requireCookieHome(config: Pick<ServiceConfig, "mode" | "host" | "baseUrl">): void {
  if (servesCookies(config)) return;
  throw new Refusal(
    "base_url_needed",
    `The server listens on ${config.host} without a base URL, so a session would go over plain http and no cookie is served: start it with --base-url and the https origin that browsers open, such as https://relay.example.com.`,
  );
}

/** The dashboard's one address, where the configuration names it; null: it is wherever it was called over plain http. */
export function dashboardOrigin({ mode, baseUrl }: Pick<ServiceConfig, "mode" | "baseUrl">): string | null {
  return mode === "server" && baseUrl !== null ? new URL(baseUrl).origin : null;
}

/**
 * Refuses with `wrong_origin` unless the Origin header is the dashboard's own: the configured base URL, else (and always in local
 * development) the Host that was called over plain http; or as `requireCookieHome`.
 */
export function requireSameOrigin(
  config: Pick<ServiceConfig, "mode" | "host" | "baseUrl">,
  headers: Headers,
): void {
  requireCookieHome(config);
  const host = headers.get("host") ?? "";
  const own = dashboardOrigin(config) ?? `http://${host}`;
  const origin = headers.get("origin");
  if (origin === own) return;
  const shown = URL.parse(own)?.origin ?? "its own address";
  throw new Refusal(
    "wrong_origin",
    origin === `https://${host}` && dashboardOrigin(config) === null
      ? `The dashboard was opened at ${URL.parse(origin)?.origin ?? "an https address"}, which this server does not know as its own: start it with --base-url and that address, or open the dashboard at ${shown}.`
      : `A change made with the dashboard's session must come from the dashboard's own page: open the dashboard at ${shown}.`,
  );
}
