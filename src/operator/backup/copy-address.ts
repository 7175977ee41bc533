/**
 * Decides to which S3 endpoints the service connects, as it does for mail servers: public addresses, and private ones that the operator allows
 * (`--allow-private`). Bun's client connects by name, so the addresses are checked before each use and not at the socket. It also
 * follows redirects, whose addresses nothing checks.
 */
import { isIP } from "node:net";
import { Refusal } from "../../base/refusal.ts";
import { type AllowList, evaluateAddress } from "../../platform/outbound/address.ts";
import { type AddressLookup, isUnanswered } from "../../platform/outbound/address-lookup.ts";
import { BackupRefused } from "./backup.ts";

/** Throws `invalid_input` for a private IP address. A host name is checked before each use, by its addresses. */
export function requireAllowedHost(endpoint: string, allow: AllowList): void {
  const host = hostOf(endpoint);
  if (isIP(host) === 0) return;
  const message = rejectAddress(host, host, allow);
  if (message !== null) throw new Refusal("invalid_input", message);
}

/** Throws BackupRefused if an address of the endpoint may not be called, or if there is none. */
export async function requireAllowedAddresses(
  endpoint: string,
  allow: AllowList,
  lookup: AddressLookup,
): Promise<void> {
  const host = hostOf(endpoint);
  const addresses = isIP(host) === 0 ? await resolve(host, lookup) : [host];
  for (const address of addresses) {
    const message = rejectAddress(host, address, allow);
    if (message !== null) throw new BackupRefused(message);
  }
}

async function resolve(host: string, lookup: AddressLookup): Promise<readonly string[]> {
  let isAnswered = true;
  const addresses = await lookup(host).catch((error: unknown) => {
    isAnswered = !isUnanswered(error);
    return [];
  });
  if (addresses.length > 0) return addresses;
  throw new BackupRefused(
    isAnswered
      ? `The host of the endpoint, ${host}, has no address: check its spelling.`
      : `No name server answered for the host of the endpoint, ${host}: check the network of this machine.`,
  );
}

function rejectAddress(host: string, address: string, allow: AllowList): string | null {
  const verdict = evaluateAddress(address, host, allow);
  if (verdict.allowed) return null;
  const where = host === address ? host : `${host} (${address})`;
  return `The host of the endpoint, ${where}, is ${verdict.kind}: name a public endpoint, or ask the operator to allow this one (--allow-private, RELAY_ALLOW_PRIVATE).`;
}

function hostOf(endpoint: string): string {
  return new URL(endpoint).hostname.replace(/^\[|\]$|\.$/g, "").toLowerCase();
}
