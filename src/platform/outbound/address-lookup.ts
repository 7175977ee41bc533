/**
 * Looks up the addresses of host names without blocking a thread. The answers of name servers may be reused for their TTL.
 */
import { getServers, setServers } from "node:dns";
import { lookup as systemLookup } from "node:dns/promises";
import { readFileSync } from "node:fs";
import type { AllowList } from "./address.ts";

/** Looks up all IPv4 and IPv6 addresses of a name. Rejects or returns none if the name does not resolve. */
export type AddressLookup = (host: string) => Promise<readonly string[]>;

/** The most system lookups that wait; further ones fail at once. */
const MAX_WAITING_LOOKUPS = 16;

/** The error code of a lookup without an answer in time. */
const LOOKUP_TIMEOUT = "DNS_ETIMEOUT";

/** Errors without an answer about the name: no network, or name servers that are silent, unreachable, broken or refuse. */
const UNANSWERED: ReadonlySet<string> = new Set([
  LOOKUP_TIMEOUT,
  "EAI_AGAIN",
  "DNS_ECONNREFUSED",
  "DNS_ESERVFAIL",
  "DNS_EREFUSED",
]);

/** The ways in which this machine resolves names. */
interface Machine {
  /** The system's resolver: hosts file, name servers and other configured sources. */
  askSystem: AddressLookup;
  /** The current /etc/resolv.conf; throws if there is none. */
  readNameServers(): string;
}

const THIS_MACHINE: Machine = {
  askSystem: async (host) =>
    (await systemLookup(host, { all: true, verbatim: true })).map(({ address }) => address),
  readNameServers: () => readFileSync("/etc/resolv.conf", "utf8"),
};

/**
 * Creates a lookup that asks the hosts file and name servers without a thread. The system's resolver would hold one of a few threads for ten
 * seconds for a silent server, and block every other call. Names that the servers do not know are then asked of the system, one at a time,
 * because it may have other sources. The system is asked first for local names: those without a dot and those that the operator allows. Their
 * servers are trusted, and their addresses may change before the TTL ends, for example when a container is recreated.
 */
export function makeLookup({ names }: AllowList, machine: Machine = THIS_MACHINE): AddressLookup {
  return async (host) => {
    // An unknown name may block the system's resolver, so local names do not wait behind one.
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

/** Reports whether a lookup failed without an answer, so that the name may be correct. */
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

/** The name servers that were adopted last; null: those of the start are used. */
let adopted: string | null = null;

/** Adopts changed name servers, for example after the machine joined another network. Returns whether they changed. */
function refreshServers(machine: Machine): boolean {
  try {
    const lines = [...machine.readNameServers().matchAll(/^nameserver\s+(\S+)/gm)];
    const servers = lines.map(([, server = ""]) => server);
    // A server address with a zone (`fe80::1%eth0`) cannot be adopted, because its interface would be lost.
    if (servers.length === 0 || servers.some((server) => server.includes("%"))) return false;
    // The servers of the start may be spelled differently, so the same servers may be adopted once.
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
/** The number of waiting lookups for names that the name servers did not know. */
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
