/**
 * Whose call it is: the peer's address, or behind a trusted proxy the last address in X-Forwarded-For that is not itself a trusted
 * proxy. A header of an untrusted peer is never believed.
 */
import ipaddr from "ipaddr.js";

type Address = ipaddr.IPv4 | ipaddr.IPv6;

export type TrustedProxies = readonly { base: Address; bits: number }[];

/** Reads addresses and CIDR ranges; throws Error with a sentence on anything else. */
export function parseTrustedProxies(entries: readonly string[]): TrustedProxies {
  return entries.map((entry) => {
    try {
      const [base, bits] = entry.includes("/") ? ipaddr.parseCIDR(entry) : [ipaddr.parse(entry), -1];
      return { base, bits: bits === -1 ? (base.kind() === "ipv4" ? 32 : 128) : bits };
    } catch {
      throw new Error(
        `The trusted proxy ${entry} is not valid: use an address or a range such as 10.0.0.0/8.`,
      );
    }
  });
}

/** The address the call came from, as text. */
export function findSourceAddress(
  peer: string,
  forwardedFor: string | null,
  trusted: TrustedProxies,
): string {
  let source = peer;
  if (forwardedFor === null || trusted.length === 0 || !isTrusted(peer, trusted)) return source;
  const hops = forwardedFor.split(",").map((hop) => hop.trim());
  for (const hop of hops.reverse()) {
    const address = parseAddress(hop);
    if (address === null) return source;
    source = address.toString();
    if (!isTrusted(source, trusted)) return source;
  }
  return source;
}

/** The key a cap counts by: an IPv4 address, or the /64 of an IPv6 one, since a single sender holds at least that much. */
export function capKeyOf(source: string): string {
  const address = parseAddress(source);
  if (address === null || address.kind() === "ipv4") return source;
  return (address as ipaddr.IPv6).parts
    .slice(0, 4)
    .map((part) => part.toString(16))
    .join(":");
}

function isTrusted(text: string, trusted: TrustedProxies): boolean {
  const address = parseAddress(text);
  if (address === null) return false;
  return trusted.some(({ base, bits }) => base.kind() === address.kind() && address.match(base, bits));
}

/** IPv4 in IPv6 clothes (::ffff:…) is IPv4. */
function parseAddress(text: string): Address | null {
  const bare = text.startsWith("[") ? text.slice(1).replace(/\](:\d+)?$/, "") : text;
  return ipaddr.isValid(bare) ? ipaddr.process(bare) : null;
}
