/**
 * Turns a call target into the addresses it may be connected to, anew on every attempt. One address that may not be called refuses them
 * all: a name that answers with a public and a private address is an attack or a mistake. It never connects.
 * Source: the specification's "Outbound", rule 4.
 */
import { lookup as systemLookup } from "node:dns/promises";
import { type AllowList, judgeAddress } from "./address.ts";
import { type CallTarget, isOwnAddress, type UrlBreak } from "./url-rule.ts";

/** Every address of a name, IPv4 and IPv6; rejects or answers none when the name does not resolve. */
export type AddressLookup = (host: string) => Promise<readonly string[]>;

interface ResolveContext {
  lookup: AddressLookup;
  allow: AllowList;
  ownHosts: readonly string[];
}

export const lookupAll: AddressLookup = async (host) => {
  const found = await systemLookup(host, { all: true, verbatim: true });
  return found.map((one) => one.address);
};

/** The checked addresses, at least one, in the order to try; or the rule that refuses them. */
export async function resolveTarget(
  target: CallTarget,
  { lookup, allow, ownHosts }: ResolveContext,
): Promise<readonly string[] | UrlBreak> {
  if (target.loopback) return loopbackAddresses(target.host);
  const addresses = await lookup(target.host).catch(() => []);
  if (addresses.length === 0) {
    return {
      code: "unresolvable",
      message: `url's host ${target.host} has no address: check its spelling and its DNS records.`,
    };
  }
  for (const address of addresses) {
    if (isOwnAddress(address, target.port, ownHosts)) {
      return {
        code: "own_host",
        message: `url's host ${target.host} is this service's own: call a server of yours instead.`,
      };
    }
    const verdict = judgeAddress(address, target.host, allow);
    if (!verdict.allowed) return refusePrivate(target.host, address, verdict.kind);
  }
  return [...new Set(addresses)];
}

function loopbackAddresses(host: string): readonly string[] {
  if (host === "127.0.0.1" || host === "::1") return [host];
  return ["127.0.0.1", "::1"];
}

function refusePrivate(host: string, address: string, kind: string): UrlBreak {
  return {
    code: "private_address",
    message: `url's host ${host} resolves to ${address}, ${kind}: only public addresses are called, so make it public or ask the operator to allow it.`,
  };
}
