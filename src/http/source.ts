/**
 * Where a call came from, for the caps per address. X-Forwarded-For is believed only as far as the configured proxies wrote it.
 * An IPv6 caller counts as its /64, the least that one customer holds.
 */
import ipaddr from "ipaddr.js";

type Range = ReturnType<typeof ipaddr.parseCIDR>;

/** A plain IPv4 peer needs no parsing: the common case of every call. */
const PLAIN_IPV4 = /^\d{1,3}(?:\.\d{1,3}){3}$/;

/** A reader of callers' addresses for these proxies (addresses or CIDR ranges). Throws on a malformed one, naming it. */
export class SourceReader {
  readonly #proxies: Range[];

  constructor(trustedProxies: readonly string[]) {
    this.#proxies = trustedProxies.map(readRange);
  }

  /** The caller's address: the connection's own, or through trusted proxies the nearest one they did not vouch for. */
  sourceOf(peer: string | null, forwardedFor: string | null): string {
    if (this.#proxies.length === 0 && peer !== null && PLAIN_IPV4.test(peer)) return peer;
    let source = readAddress(peer ?? "");
    if (source === null) return "unknown";
    const hops = this.#proxies.length === 0 ? [] : (forwardedFor ?? "").split(",");
    for (let hop = hops.pop(); hop !== undefined && this.#isProxy(source); hop = hops.pop()) {
      const before = readAddress(hop.trim());
      if (before === null) break;
      source = before;
    }
    return capKey(source);
  }

  #isProxy(address: Address): boolean {
    return this.#proxies.some(
      ([range, bits]) => address.kind() === range.kind() && address.match([range, bits] as never),
    );
  }
}

type Address = ReturnType<typeof ipaddr.process>;

function readAddress(text: string): Address | null {
  const bare = text.replace(/^\[|\](:\d+)?$/g, "").replace(/%.*$/, "");
  return ipaddr.isValid(bare) ? ipaddr.process(bare) : null;
}

function readRange(text: string): Range {
  if (ipaddr.isValid(text)) {
    const address = ipaddr.process(text);
    return [address, address.kind() === "ipv4" ? 32 : 128];
  }
  if (ipaddr.isValidCIDR(text)) return ipaddr.parseCIDR(text);
  throw new Error(
    `The trusted proxy ${text} is not an address or a range: write it like 10.0.0.0/8 or 203.0.113.7.`,
  );
}

function capKey(address: Address): string {
  if (address.kind() === "ipv4") return address.toString();
  return `${address.toNormalizedString().split(":").slice(0, 4).join(":")}::/64`;
}
