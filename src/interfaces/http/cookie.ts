/**
 * The dashboard's cookies. They are HttpOnly, SameSite=Strict, and Secure if the service is reached over https. The session's cookie has the port
 * in its name in local development, because browsers share cookies between the ports of a host. The device's cookie identifies a browser that
 * signed in before, but is no sign-in. It contains an account's address and a number, signed with the master key, and needs no row. It gives its
 * browser a window of sign-in attempts that strangers cannot use up. A write with the session must come from the dashboard.
 */
import { type ServiceConfig, servesCookies } from "../../base/config.ts";
import { KNOWN_DEVICE_LIFE_MS, OIDC_SIGNIN_LIFE_MS } from "../../base/limit.ts";
import { Refusal } from "../../base/refusal.ts";
import type { HttpDeps } from "./deps.ts";

/** Returns the session token of a request, or null. */
export function readSessionCookie(deps: HttpDeps, request: Request): string | null {
  if (!servesCookies(deps.config) || (deps.config.mode === "local" && isPagesHost(request))) return null;
  return readCookie(request, cookieName(deps));
}

/** Returns the Set-Cookie value that stores the session until `expiresAtMs`. */
export function writeSessionCookie(deps: HttpDeps, token: string, expiresAtMs: number): string {
  return writeCookie(deps, cookieName(deps), token, expiresAtMs - deps.clock.now());
}

/** Returns the Set-Cookie value that deletes the session. */
export function clearSessionCookie(deps: HttpDeps): string {
  return writeSessionCookie(deps, "", deps.clock.now());
}

const DEVICE = /^(\d{1,15})\.([A-Za-z0-9_-]{22})\.([A-Za-z0-9_-]{43})$/;
const DEVICE_BYTES = 16;

/** Returns the device of this browser if it signed in to the account before, otherwise null. */
export function readDeviceCookie(deps: HttpDeps, request: Request, account: string): string | null {
  const cookie = readCookie(request, deviceCookieName(deps));
  const [, madeAt = "", device = "", mac = ""] = DEVICE.exec(cookie ?? "") ?? [];
  if (device === "" || deps.clock.now() - Number(madeAt) > KNOWN_DEVICE_LIFE_MS) return null;
  const right = signDevice(deps, account, madeAt, device);
  return crypto.timingSafeEqual(Buffer.from(mac, "base64url"), right) ? device : null;
}

/** Returns the Set-Cookie value that makes this browser known to the account. */
export function writeDeviceCookie(deps: HttpDeps, account: string): string {
  const madeAt = String(deps.clock.now());
  const device = crypto.getRandomValues(Buffer.alloc(DEVICE_BYTES)).toString("base64url");
  const mac = Buffer.from(signDevice(deps, account, madeAt, device)).toString("base64url");
  return writeCookie(deps, deviceCookieName(deps), `${madeAt}.${device}.${mac}`, KNOWN_DEVICE_LIFE_MS);
}

/** Returns the token of the browser that began a sign-in at the OpenID provider, or null. */
export function readOidcCookie(deps: HttpDeps, request: Request): string | null {
  return readCookie(request, oidcCookieName(deps));
}

/** Returns the Set-Cookie value that binds a sign-in at the OpenID provider to this browser. */
export function writeOidcCookie(deps: HttpDeps, token: string): string {
  return writeCookie(deps, oidcCookieName(deps), token, OIDC_SIGNIN_LIFE_MS);
}

function oidcCookieName(deps: HttpDeps): string {
  return isHttps(deps) ? "__Host-relay_oidc" : "relay_oidc";
}

function signDevice(deps: HttpDeps, account: string, madeAt: string, device: string): Uint8Array {
  return deps.sealer.digest(`signin device\n${account.trim().toLowerCase()}\n${madeAt}\n${device}`);
}

function readCookie(request: Request, name: string): string | null {
  for (const part of (request.headers.get("cookie") ?? "").split(";")) {
    const equals = part.indexOf("=");
    if (equals > 0 && part.slice(0, equals).trim() === name) return part.slice(equals + 1).trim();
  }
  return null;
}

function writeCookie(deps: HttpDeps, name: string, value: string, lifeMs: number): string {
  const seconds = Math.max(0, Math.floor(lifeMs / 1000));
  const secure = isHttps(deps) ? "; Secure" : "";
  return `${name}=${value}; Path=/; Max-Age=${seconds}; HttpOnly; SameSite=Strict${secure}`;
}

function deviceCookieName(deps: HttpDeps): string {
  return isHttps(deps) ? "__Host-relay_device" : "relay_device";
}

function cookieName(deps: HttpDeps): string {
  if (deps.config.mode === "local") return `relay_session_${new URL(deps.baseUrl()).port || "80"}`;
  return isHttps(deps) ? "__Host-relay_session" : "relay_session";
}

function isHttps(deps: HttpDeps): boolean {
  return deps.config.mode === "server" && deps.baseUrl().startsWith("https://");
}

/**
 * Refuses with `base_url_needed` if no cookie is served: a server on the network without a base URL, where a session would go over plain http
 * under any name.
 */
export function requireCookieHome(config: Pick<ServiceConfig, "mode" | "host" | "baseUrl">): void {
  if (servesCookies(config)) return;
  throw new Refusal(
    "base_url_needed",
    `The server listens on ${config.host} without a base URL, so a session would use plain http. The server sets no session cookie. Start it with --base-url and the https origin that browsers open, such as https://relay.example.com.`,
  );
}

/**
 * Returns true if the request uses the host name of local development's pages (public-folder.ts). The pages share the server with the dashboard
 * and must not act with its session. So that name reads and starts no session: for a browser it is another site.
 */
export function isPagesHost({ headers }: Pick<Request, "headers">): boolean {
  return PAGES_HOST.test(headers.get("host") ?? "");
}

/** Returns the Host that serves these pages, with the port of the request. `dashboardHost` returns the dashboard's. */
export function pagesHost({ headers }: Pick<Request, "headers">): string {
  return (headers.get("host") ?? "").replace(HOST_NAME, "localhost");
}

export function dashboardHost({ headers }: Pick<Request, "headers">): string {
  return (headers.get("host") ?? "").replace(PAGES_HOST, "127.0.0.1$1");
}

const PAGES_HOST = /^localhost(:|$)/i;
const HOST_NAME = /^(?:\[[^\]]*\]|[^:]*)/;

/** Returns the dashboard's origin if the configuration names it. Null means the Host of the request, over plain http. */
export function dashboardOrigin({ mode, baseUrl }: Pick<ServiceConfig, "mode" | "baseUrl">): string | null {
  return mode === "server" && baseUrl !== null ? new URL(baseUrl).origin : null;
}

/**
 * Refuses with `wrong_origin` unless the Origin header is the dashboard's own: the configured base URL, or (always in local development) the Host
 * of the request over plain http. Also refuses like `requireCookieHome`.
 */
export function requireSameOrigin(
  config: Pick<ServiceConfig, "mode" | "host" | "baseUrl">,
  headers: Headers,
): void {
  requireCookieHome(config);
  const host = headers.get("host") ?? "";
  const currentHost = config.mode === "local" ? dashboardHost({ headers }) : host;
  const own = dashboardOrigin(config) ?? `http://${currentHost}`;
  const origin = headers.get("origin");
  if (origin === own) return;
  const shown = URL.parse(own)?.origin ?? "its own address";
  throw new Refusal(
    "wrong_origin",
    origin === `https://${host}` && dashboardOrigin(config) === null
      ? `The dashboard was opened at ${URL.parse(origin)?.origin ?? "an https address"}, which is not an address of this server: start the server with --base-url and that address, or open the dashboard at ${shown}.`
      : `A change with the dashboard's session must come from the dashboard's own page: open the dashboard at ${shown}.`,
  );
}
