/**
 * What may be called. A URL, before any name is resolved: https, a host name rather than an address, not the service itself, no credentials,
 * no template; only in local development may http and the loopback names be used. And the addresses its name stands for, asked for and judged
 * anew on every attempt: one that may not be called refuses them all, as a name that answers with a public and a private address is an attack
 * or a mistake. What a name server answered may be given again for as long as that answer holds (its TTL). It never connects.
 * Source: the specification's "Outbound", rule 4.
 */
import { getServers, setServers } from "node:dns";
import { lookup as systemLookup } from "node:dns/promises";
import { readFileSync } from "node:fs";
import { isIP } from "node:net";
import { type AllowList, canonicalAddress, evaluateAddress } from "./address.ts";

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
  /** The URL to post to, its host in lower case without a trailing dot. */
  url: URL;
  /** Host name, never brackets. */
  host: string;
  port: number;
  /** A loopback name of local development: pinned to loopback, never looked up. */
  loopback: boolean;
}

export const MAX_CALL_URL_CHARS = 2_000;

const WEB_URL = /^https?:\/\/[^/?#]/i;
const NOT_IN_A_URL = /[\s\\\p{Cc}]/u;
const LOOPBACK_NAMES = new Set(["localhost", "127.0.0.1", "::1"]);
const PRIVATE_SUFFIX = /\.(local|internal|lan|home|corp|intranet|private|home\.arpa)$/;
const EVERY_ADDRESS = new Set(["0.0.0.0", "::"]);
const NUMERIC_HOST = /^https?:\/\/(?:[^/?#]*@)?(?:\[|(?:[^/?#:]*\.)?(?:\d+|0x[0-9a-f]*)\.?(?:[:/?#]|$))/i;

/** The first rule the URL breaks, or null. */
export function checkCallUrl(text: string, context: UrlContext): UrlViolation | null {
  const target = readCallTarget(text, context);
  return "code" in target ? target : null;
}

/**
 * Whether no server calls this URL unless its operator allows the name: plain http, a loopback name, a name without a dot, or one under a
 * suffix that public name servers never answer for (RFC 6762, RFC 8375, ICANN's .internal). It resolves nothing, so a public name may still
 * turn out to be private.
 */
export function isLocalOnlyUrl(text: string): boolean {
  const target = readCallTarget(text, { local: false, ownHosts: [] });
  if ("code" in target) return true;
  return isLoopbackName(target.host) || !target.host.includes(".") || PRIVATE_SUFFIX.test(target.host);
}

/** The target to call, or the first rule the URL breaks. */
export function readCallTarget(text: string, { local, ownHosts }: UrlContext): CallTarget | UrlViolation {
  const url = parseWebUrl(text);
  if ("code" in url) return url;
  if (url.username !== "" || url.password !== "") {
    return {
      code: "https_only",
      message:
        "url holds a user name or password: remove it; the call is authenticated by X-Service-Signature.",
    };
  }
  const host = plainHost(url.hostname);
  const port = url.port === "" ? (url.protocol === "https:" ? 443 : 80) : Number(url.port);
  // No certificate is good for a loopback address, so https to one is refused like any other address.
  const loopback = local && isLoopbackName(host) && (isIP(host) === 0 || url.protocol === "http:");
  if (url.protocol !== "https:" && !loopback) {
    return {
      code: "https_only",
      message: local
        ? "url is plain http: use https; http is allowed to localhost alone."
        : "url is plain http: use https; http to localhost works in local development alone.",
    };
  }
  if (isIP(host) !== 0 && !loopback) return rejectIpLiteral();
  if (ownHosts.some((own) => isOwnHost(host, port, own))) {
    return { code: "own_host", message: "url is this service's own host: call a server of yours instead." };
  }
  if (!isIP(host)) url.hostname = host;
  return { url, host, port, loopback };
}

/** The entry for `ownHosts` that an origin or listener (`https://relay.example`, `http://127.0.0.1:8787`) stands for. */
export function ownHostOf(origin: string): string {
  const url = new URL(origin);
  const host = plainHost(url.hostname);
  if (!isLoopbackName(host) && !EVERY_ADDRESS.has(host)) return host;
  return `localhost:${url.port === "" ? (url.protocol === "https:" ? 443 : 80) : url.port}`;
}

/** Whether a resolved address at this port is one of the service's own hosts written as an address. */
function isOwnAddress(address: string, port: number, ownHosts: readonly string[]): boolean {
  const canonical = canonicalAddress(address);
  return canonical !== null && ownHosts.some((own) => isOwnHost(canonical, port, own));
}

function parseWebUrl(text: string): URL | UrlViolation {
  if (text.includes("{{")) {
    return { code: "unresolvable", message: "url holds a template: write a fixed address." };
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

/** Loopback names, and the listener on every address, are one host. */
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

/** Every address of a name, IPv4 and IPv6; rejects or answers none when the name does not resolve. */
export type AddressLookup = (host: string) => Promise<readonly string[]>;

interface ResolveContext {
  lookup: AddressLookup;
  allow: AllowList;
  ownHosts: readonly string[];
}

/** System look-ups that wait for their turn; one more is not asked. */
const MAX_WAITING_LOOKUPS = 16;

/** Nobody answered within the time that is given to it. */
const LOOKUP_TIMEOUT = "DNS_ETIMEOUT";

/** No network, or name servers that are silent, away, broken or refuse to answer: it says nothing of the name. */
const UNANSWERED: ReadonlySet<string> = new Set([
  LOOKUP_TIMEOUT,
  "EAI_AGAIN",
  "DNS_ECONNREFUSED",
  "DNS_ESERVFAIL",
  "DNS_EREFUSED",
]);

/** What this machine knows of names. */
interface Machine {
  /** The system's own resolver: hosts file, name servers, and whatever else it was given. */
  askSystem: AddressLookup;
  /** /etc/resolv.conf as it is now; throws where there is none. */
  readNameServers(): string;
}

const THIS_MACHINE: Machine = {
  askSystem: async (host) =>
    (await systemLookup(host, { all: true, verbatim: true })).map(({ address }) => address),
  readNameServers: () => readFileSync("/etc/resolv.conf", "utf8"),
};

/**
 * Every address of a host name, as hosts file and name servers say, asked without a thread: the system's own resolver holds one of very few
 * for ten seconds where a name's servers are silent, and every other call would wait behind it. What they do not know the system is asked
 * for, one at a time, as it may know names by other ways. It comes first for the machine's own names, those without a dot and those that the
 * operator allows: their servers are no stranger's, and their addresses change sooner (a container made anew) than an answer's TTL, for
 * which this process keeps it, says.
 */
export function makeLookup({ names }: AllowList, machine: Machine = THIS_MACHINE): AddressLookup {
  return async (host) => {
    // A stranger's name may hold the system, so that none waits behind one.
    const systemFirst = (names.has(host) || !host.includes(".")) && strangers === 0;
    if (systemFirst) {
      try {
        return await runInTurn(() => machine.askSystem(host));
      } catch (error) {
        if (!isUnanswered(error)) throw error;
      }
    }
    try {
      return await askServers(host).catch((error: unknown) => {
        if (!refreshServers(machine)) throw error;
        return askServers(host);
      });
    } catch (error) {
      if (systemFirst || codeOf(error) === LOOKUP_TIMEOUT) throw error;
      return await askSystemLast(host, machine, error);
    }
  };
}

/** Whether a look-up failed without an answer, so that the name may be right. */
export function isUnanswered(error: unknown): boolean {
  return UNANSWERED.has(codeOf(error));
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "unknown";
}

async function askServers(host: string): Promise<readonly string[]> {
  const found = await Bun.dns.lookup(host, { backend: "c-ares" });
  return found.map(({ address }) => address);
}

/** The name servers as they were taken over last, in the machine's own spelling; null: those of the start are asked. */
let adopted: string | null = null;

/** Name servers that the machine was given after a start, as in another network, are taken over; whether they are others. */
function refreshServers(machine: Machine): boolean {
  try {
    const said = [...machine.readNameServers().matchAll(/^nameserver\s+(\S+)/gm)];
    const servers = said.map(([, server = ""]) => server);
    // One of a network card's own (`fe80::1%eth0`) cannot be taken over, as its card is not kept.
    if (servers.length === 0 || servers.some((server) => server.includes("%"))) return false;
    // Those of the start are known in another spelling, so that they may be taken over once although they are the same.
    if (servers.join() === (adopted ?? getServers().join())) return false;
    setServers(servers);
    adopted = servers.join();
    return true;
  } catch {
    return false;
  }
}

let lastTurn: Promise<unknown> = Promise.resolve();
let waiting = 0;
/** Look-ups of names that the name servers did not know, among those that wait. */
let strangers = 0;

async function askSystemLast(host: string, machine: Machine, before: unknown): Promise<readonly string[]> {
  strangers += 1;
  try {
    return await runInTurn(() => machine.askSystem(host));
  } catch (error) {
    throw isUnanswered(before) ? before : error;
  } finally {
    strangers -= 1;
  }
}

async function runInTurn(ask: () => Promise<readonly string[]>): Promise<readonly string[]> {
  if (waiting === MAX_WAITING_LOOKUPS)
    throw Object.assign(new Error("too many look-ups wait"), { code: LOOKUP_TIMEOUT });
  waiting += 1;
  const turn = lastTurn.then(ask);
  lastTurn = turn.catch(() => undefined);
  try {
    return await turn;
  } finally {
    waiting -= 1;
  }
}

/** The checked addresses, at least one, in the order to try; or the rule that refuses them. */
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
      : `url's host ${target.host} could not be looked up, as no name server answered for it: check this machine's network and name servers, and those of the name.`;
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
