/**
 * Names the networks of a caller's address, by which limits are counted. An address is an IPv4 address or the /64 of an IPv6 address, as
 * interfaces/http/address.ts returns it.
 */

/**
 * Returns the /48 of an IPv6 caller (counted as its /64), because one line or host often has all 65,536 networks of a /48. Returns null for other
 * callers, because IPv4 addresses are scarce enough.
 */
export function wideNetworkOf(source: string): string | null {
  const groups = ipv6Groups(source, 3);
  return groups === null ? null : `${groups}::/48`;
}

/** Returns the network that one customer of a provider has: an IPv4 address or an IPv6 /48. */
export function siteOf(source: string): string {
  return wideNetworkOf(source) ?? source;
}

/** Returns the network that many customers of one provider share: an IPv4 /24 or an IPv6 /32. */
export function providerOf(source: string): string {
  const [groups, block] = [ipv6Groups(source, 2), IPV4_BLOCK.exec(source)?.[1]];
  if (groups !== null) return `${groups}::/32`;
  return block === undefined ? source : `${block}.0/24`;
}

/**
 * Returns the networks that may each take a part of a shared limit, with their weights. A network may take as much as it leaves, times its weight.
 * For IPv6 these are the /48, which one customer has, and the /32. For IPv4 it is the /24.
 */
export function sharingNetworksOf(source: string): { network: string; weight: number }[] {
  const [site, network] = [wideNetworkOf(source), providerOf(source)];
  if (site === null) return [{ network, weight: 1 }];
  return [
    { network: site, weight: 1 },
    { network, weight: PROVIDER_WEIGHT },
  ];
}

const PROVIDER_WEIGHT = 3;
const IPV4_BLOCK = /^(\d{1,3}\.\d{1,3}\.\d{1,3})\.\d{1,3}$/;

/** Returns the first groups of an IPv6 address, or null for any other address. */
function ipv6Groups(source: string, count: number): string | null {
  const groups = source.split(":").slice(0, count);
  return groups.length === count && groups.every((group) => /^[0-9a-f]{1,4}$/i.test(group))
    ? groups.join(":")
    : null;
}
