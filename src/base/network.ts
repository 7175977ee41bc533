/**
 * Names the networks that a caller's address lies in, by which limits are counted. An address is an IPv4 one or the /64 of an IPv6 one, as
 * http/address.ts answers it. It counts nothing.
 */

/**
 * The network that a caller's address belongs to beyond what one customer holds: of an IPv6 caller (counted as its /64) the /48, of which
 * a single line or host often is given all 65,536. Null for any other, as IPv4 addresses are dear enough.
 */
export function wideNetworkOf(source: string): string | null {
  const groups = ipv6Groups(source, 3);
  return groups === null ? null : `${groups}::/48`;
}

/** What one customer holds: an IPv4 address, or an IPv6 /48. */
export function siteOf(source: string): string {
  return wideNetworkOf(source) ?? source;
}

/** The network that many customers of one provider hold: an IPv4 /24, or an IPv6 /32. */
export function providerOf(source: string): string {
  const [groups, block] = [ipv6Groups(source, 2), IPV4_BLOCK.exec(source)?.[1]];
  if (groups !== null) return `${groups}::/32`;
  return block === undefined ? source : `${block}.0/24`;
}

/**
 * The networks of which each may take a part of a limit that all share, and its weight: it may take its weight times what it leaves. Of IPv6
 * the /48, which one customer holds, and the /32; of IPv4 the /24.
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

/** The first groups of an IPv6 address; null of any other. */
function ipv6Groups(source: string, count: number): string | null {
  const groups = source.split(":").slice(0, count);
  return groups.length === count && groups.every((group) => /^[0-9a-f]{1,4}$/i.test(group))
    ? groups.join(":")
    : null;
}
