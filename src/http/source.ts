/**
 * Where a call came from, for the caps per address. X-Forwarded-For is believed only as far as the configured proxies wrote it.
 * An IPv6 caller counts as its /64, the least that one customer holds.
 */
import ipaddr from "ipaddr.js";

type Range = ReturnType<typeof ipaddr.parseCIDR>;

/** A reader of callers' addresses for these proxies (addresses or CIDR ranges; a malformed one is ignored). */
export class SourceReader {
  readonly #proxies: Range[];

  constructor(trustedProxies: readonly string[]) {
    this.#proxies = trustedProxies.flatMap(readRange);
  }

  /** The caller's address: the connection's own, or through trusted proxies the nearest one they did not vouch for. */
  sourceOf(peer: string | null, forwardedFor: string | null): string {
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

function readRange(text: string): Range[] {
  if (ipaddr.isValid(text)) {
    const address = ipaddr.process(text);
    return [[address, address.kind() === "ipv4" ? 32 : 128]];
  }
  return ipaddr.isValidCIDR(text) ? [ipaddr.parseCIDR(text)] : [];
}

function capKey(address: Address): string {
  if (address.kind() === "ipv4") return address.toString();
  return `${address.toNormalizedString().split(":").slice(0, 4).join(":")}::/64`;
}
