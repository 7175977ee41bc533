/** Parses IP addresses and ranges as people and proxies write them. It refuses ambiguous forms, and ranges that can only be a mistake. */
import ipaddr from "ipaddr.js";

export type IpAddress = ReturnType<typeof ipaddr.process>;
export type IpRange = ReturnType<typeof ipaddr.parseCIDR>;

/** The shortest prefixes. A shorter one covers more addresses than any single network has. */
const SHORTEST_IPV4_BITS = 8;
const SHORTEST_IPV6_BITS = 7;

const HOP =
  /^"?(?:\[([^\]]*)\](?::\d{1,5})?|(\d{1,3}(?:\.\d{1,3}){3})(?::\d{1,5})?|([0-9a-f:.]*(?:%[^"]*)?))"?$/i;

/**
 * Parses the address in a hop of X-Forwarded-For, with or without a port, brackets or quotes. An IPv4 address that is written as IPv6 becomes IPv4.
 * Returns null for anything else, such as a name, `unknown`, or an octal or single number that some programs accept as IPv4.
 */
export function readHop(text: string): IpAddress | null {
  const [, inBrackets, withPort, bare] = HOP.exec(text.trim()) ?? [];
  return readAddress((inBrackets ?? withPort ?? bare ?? "").replace(/%.*$/, ""));
}

function readAddress(text: string): IpAddress | null {
  const isAddress = text.includes(":") ? ipaddr.IPv6.isValid(text) : ipaddr.IPv4.isValidFourPartDecimal(text);
  return isAddress ? ipaddr.process(text) : null;
}

/** Parses an address or a CIDR range. If it is not valid, returns a sentence that says why and begins with the text itself. */
export function readIpRange(text: string): IpRange | string {
  const [address = "", bits, ...more] = text.split("/");
  const network = address.includes("%") ? null : readAddress(address);
  const longest = address.includes(":") ? 128 : 32;
  if (network === null || more.length > 0 || (bits !== undefined && !/^(?:0|[1-9]\d{0,2})$/.test(bits))) {
    return `${text} is not an address or a range: write it like 10.0.0.0/8 or 203.0.113.7.`;
  }
  const prefix = bits === undefined ? longest : Number(bits);
  if (prefix > longest) return `${text} has more than ${longest} bits: write it like 10.0.0.0/8.`;
  if (longest === 128 && network.kind() === "ipv4") {
    return prefix === 128
      ? [network, 32]
      : `${text} is an IPv4 range in IPv6 dress: write it as IPv4, like 10.0.0.0/8.`;
  }
  const shortest = longest === 32 ? SHORTEST_IPV4_BITS : SHORTEST_IPV6_BITS;
  if (prefix < shortest) {
    return `${text} holds more of the internet than one network has, and anyone in it could claim any address: name your own proxies, with /${shortest} at the least.`;
  }
  const range: IpRange = [network, prefix];
  const first = firstOf(range);
  if (first !== network.toString())
    return `${text} sets bits behind its /${prefix}: write ${first}/${prefix} for the range, or only the address.`;
  return range;
}

/** Returns whether one of the ranges contains the address. */
export function isInRanges(address: IpAddress, ranges: IpRange[]): boolean {
  return ipaddr.subnetMatch(address, { held: ranges }, "not") === "held";
}

function firstOf([network, prefix]: IpRange): string {
  const text = `${network.toString()}/${prefix}`;
  return network.kind() === "ipv4"
    ? ipaddr.IPv4.networkAddressFromCIDR(text).toString()
    : ipaddr.IPv6.networkAddressFromCIDR(text).toString();
}
