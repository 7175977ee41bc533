/**
 * Decides which URLs may be called, and which of their addresses. Before any lookup, a URL must be https with a host name that is not the
 * service itself, without credentials or a template; only local development may use http and loopback names. On every attempt all addresses
 * of the name are checked again. One forbidden address rejects them all, because a name with public and private addresses is an attack or a
 * mistake. This file never connects. Source: the specification's "Outbound", rule 4.
 */
import { isIP } from "node:net";
import { type AllowList, canonicalAddress, evaluateAddress, parseAllowList } from "./address.ts";
import { type AddressLookup, isUnanswered } from "./address-lookup.ts";

export type UrlRule = "https_only" | "ip_literal" | "own_host" | "unresolvable" | "private_address";

interface UrlViolation {
  code: UrlRule;
  /** One sentence: why, and what to do. */
  message: string;
}

interface UrlContext {
  /** Local development. */
  local: boolean;
  /** The service's own hosts: `name` (on every port) or `name:port`; see `ownHostOf`. */
  ownHosts: readonly string[];
}

export interface CallTarget {
  /** The URL to call, its host in lower case without a trailing dot. */
  url: URL;
  /** The host name, without brackets. */
  host: string;
  port: number;
  /** A loopback name in local development: always resolved to loopback. */
  loopback: boolean;
}

export const MAX_CALL_URL_CHARS = 2_000;

const WEB_URL = /^https?:\/\/[^/?#]/i;
const NOT_IN_A_URL = /[\s\\\p{Cc}]/u;
const LOOPBACK_NAMES = new Set(["localhost", "127.0.0.1", "::1"]);
const PRIVATE_SUFFIX = /\.(local|internal|lan|home|corp|intranet|private|home\.arpa)$/;
const EVERY_ADDRESS = new Set(["0.0.0.0", "::"]);
const NUMERIC_HOST = /^https?:\/\/(?:[^/?#]*@)?(?:\[|(?:[^/?#:]*\.)?(?:\d+|0x[0-9a-f]*)\.?(?:[:/?#]|$))/i;

/** Finds the first rule that the URL violates. */
export function checkCallUrl(text: string, context: UrlContext): UrlViolation | null {
  const target = readCallTarget(text, context);
  return "code" in target ? target : null;
}

/**
 * Reports whether a server calls this URL only if its operator allows the name: plain http, a loopback name, a name without a dot, or one
 * under a suffix that public name servers never answer (RFC 6762, RFC 8375, ICANN's .internal). It resolves nothing, so a public name may
 * still be private.
 */
export function isLocalOnlyUrl(text: string): boolean {
  const target = readCallTarget(text, { local: false, ownHosts: [] });
  if ("code" in target) return true;
  return isLoopbackName(target.host) || !target.host.includes(".") || PRIVATE_SUFFIX.test(target.host);
}

/**
 * Reports whether the operator's list (`--allow-private`) may permit calls of this URL: it names the host, or has a range, which may contain
 * the host's addresses. No list permits plain http.
 */
export function mayBeAllowed(text: string, allowPrivate: readonly string[]): boolean {
  const target = readCallTarget(text, { local: false, ownHosts: [] });
  if ("code" in target) return false;
  const { names, ranges } = parseAllowList(allowPrivate);
  return names.has(target.host) || ranges.length > 0;
}

/** Parses the target to call, or returns the first rule that the URL violates. */
export function readCallTarget(text: string, { local, ownHosts }: UrlContext): CallTarget | UrlViolation {
  const url = parseWebUrl(text);
  if ("code" in url) return url;
  if (url.username !== "" || url.password !== "") {
    return {
      code: "https_only",
      message:
        "url contains a user name or password: remove it; the call is authenticated by X-Service-Signature.",
    };
  }
  const host = plainHost(url.hostname);
  const port = url.port === "" ? (url.protocol === "https:" ? 443 : 80) : Number(url.port);
  // No certificate is valid for a loopback address, so https to one is rejected like any other address.
  const loopback = local && isLoopbackName(host) && (isIP(host) === 0 || url.protocol === "http:");
  if (url.protocol !== "https:" && !loopback) {
    return {
      code: "https_only",
      message: local
        ? "url is plain http: use https; http is allowed only to localhost."
        : "url is plain http: use https; http to localhost works only in local development.",
    };
  }
  if (isIP(host) !== 0 && !loopback) return rejectIpLiteral();
  if (ownHosts.some((own) => isOwnHost(host, port, own))) {
    return { code: "own_host", message: "url is this service's own host: call a server of yours instead." };
  }
  if (!isIP(host)) url.hostname = host;
  return { url, host, port, loopback };
}

/** Converts an origin or listener (`https://relay.example`, `http://127.0.0.1:8787`) into an entry for `ownHosts`. */
export function ownHostOf(origin: string): string {
  const url = new URL(origin);
  const host = plainHost(url.hostname);
  if (!isLoopbackName(host) && !EVERY_ADDRESS.has(host)) return host;
  return `localhost:${url.port === "" ? (url.protocol === "https:" ? 443 : 80) : url.port}`;
}

/** Reports whether a resolved address at this port is one of the service's own hosts. */
function isOwnAddress(address: string, port: number, ownHosts: readonly string[]): boolean {
  const canonical = canonicalAddress(address);
  return canonical !== null && ownHosts.some((own) => isOwnHost(canonical, port, own));
}

function parseWebUrl(text: string): URL | UrlViolation {
  if (text.includes("{{")) {
    return { code: "unresolvable", message: "url contains a template: write a fixed address." };
  }
  const isWritable = text.length <= MAX_CALL_URL_CHARS && !NOT_IN_A_URL.test(text);
  if (isWritable && WEB_URL.test(text)) {
    try {
      const url = new URL(text);
      if (/^[^.]/.test(url.hostname) && !/\.\.|\.\.$/.test(url.hostname)) return url;
    } catch {
      if (NUMERIC_HOST.test(text)) return rejectIpLiteral();
    }
    return { code: "unresolvable", message: "url is not a valid address: check its host name and port." };
  }
  if (isWritable && /^[a-z][a-z0-9+.-]*:/i.test(text) && !/^https?:/i.test(text)) {
    return { code: "https_only", message: "url is not a web address: write it as https://host/path." };
  }
  return {
    code: "https_only",
    message: `url is not a complete web address: write it as https://host/path, without spaces or backslashes, at most ${MAX_CALL_URL_CHARS} characters.`,
  };
}

function rejectIpLiteral(): UrlViolation {
  return { code: "ip_literal", message: "url names an IP address: use a host name." };
}

function plainHost(hostname: string): string {
  return hostname
    .replace(/^\[|\]$/g, "")
    .replace(/\.$/, "")
    .toLowerCase();
}

function isLoopbackName(host: string): boolean {
  return LOOPBACK_NAMES.has(host) || host.endsWith(".localhost");
}

/** Loopback names and a listener on all addresses count as the same host. */
function isOwnHost(host: string, port: number, own: string): boolean {
  const [ownHost, ownPort] = splitPort(own.trim());
  if (ownPort !== null && ownPort !== port) return false;
  return canonicalHost(host) === canonicalHost(plainHost(ownHost));
}

function splitPort(entry: string): [host: string, port: number | null] {
  const parts = isIP(entry) === 0 ? /^(.*):(\d+)$/.exec(entry) : null;
  return parts === null ? [entry, null] : [parts[1] ?? "", Number(parts[2])];
}

function canonicalHost(host: string): string {
  return isLoopbackName(host) || EVERY_ADDRESS.has(host) ? "localhost" : (canonicalAddress(host) ?? host);
}

interface ResolveContext {
  lookup: AddressLookup;
  allow: AllowList;
  ownHosts: readonly string[];
}

/** Returns the checked addresses in the order to try, at least one, or the rule that rejects them. */
export async function resolveTarget(
  target: CallTarget,
  { lookup, allow, ownHosts }: ResolveContext,
): Promise<readonly string[] | UrlViolation> {
  if (target.loopback) return loopbackAddresses(target.host);
  let isAnswered = true;
  const addresses = await lookup(target.host).catch((error: unknown) => {
    isAnswered = !isUnanswered(error);
    return [];
  });
  if (addresses.length === 0) {
    const message = isAnswered
      ? `url's host ${target.host} has no address: check its spelling and its DNS records.`
      : `url's host ${target.host} could not be looked up, because no name server answered: check the network and the name servers of this machine and of the domain.`;
    return { code: "unresolvable", message };
  }
  for (const address of addresses) {
    if (isOwnAddress(address, target.port, ownHosts)) {
      return {
        code: "own_host",
        message: `url's host ${target.host} is this service's own: call a server of yours instead.`,
      };
    }
    const verdict = evaluateAddress(address, target.host, allow);
    if (!verdict.allowed) return rejectPrivateAddress(target.host, address, verdict.kind);
  }
  return [...new Set(addresses)];
}

function loopbackAddresses(host: string): readonly string[] {
  if (host === "127.0.0.1" || host === "::1") return [host];
  return ["127.0.0.1", "::1"];
}

function rejectPrivateAddress(host: string, address: string, kind: string): UrlViolation {
  return {
    code: "private_address",
    message: `url's host ${host} resolves to ${address}, ${kind}: only public addresses are called, so make it public or ask the operator to allow it.`,
  };
}
