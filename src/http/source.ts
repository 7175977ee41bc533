/**
 * Where a call came from, for the caps per address. X-Forwarded-For is believed only as far as the configured proxies wrote it.
 * An IPv6 caller counts as its /64, the least that one customer holds.
 */
import { type IpAddress, type IpRange, readHop, readIpRange } from "../ground/ip-range.ts";

/** A plain IPv4 peer needs no parsing: the common case of every call. */
const PLAIN_IPV4 = /^\d{1,3}(?:\.\d{1,3}){3}$/;

/** More proxies stand in no row; a header's worth of hops would take tens of milliseconds to read. */
const MOST_HOPS = 32;

/** Where a proxy of the server's own stands: on its machine or in its network. */
const NEAR = new Set(["loopback", "private", "uniqueLocal", "linkLocal"]);

/** A reader of callers' addresses for these proxies (addresses or CIDR ranges). Throws on a malformed one, naming it. */
export class SourceReader {
  readonly #proxies: IpRange[];
  #tellUnnamed: ((proxy: string) => void) | null;

  /** `tellUnnamed` is told once of a proxy that seems to pass calls on while none is named. */
  constructor(trustedProxies: readonly string[], tellUnnamed: ((proxy: string) => void) | null = null) {
    this.#tellUnnamed = trustedProxies.length === 0 ? tellUnnamed : null;
    this.#proxies = trustedProxies.map((text) => {
      const range = readIpRange(text);
      if (typeof range === "string") throw new Error(`The trusted proxy ${range}`);
      return range;
    });
  }

  /** The caller's address: the connection's own, or through trusted proxies the nearest one they did not vouch for. */
  sourceOf(peer: string | null, forwardedFor: string | null): string {
    if (forwardedFor !== null && this.#tellUnnamed !== null) this.#noticeProxy(peer ?? "");
    if (this.#proxies.length === 0 && peer !== null && PLAIN_IPV4.test(peer)) return peer;
    let source = readHop(peer ?? "");
    if (source === null) return "unknown";
    const hops = this.#proxies.length === 0 ? [] : (forwardedFor ?? "").split(",").slice(-MOST_HOPS);
    for (let hop = hops.pop(); hop !== undefined && this.#isProxy(source); hop = hops.pop()) {
      const before = readHop(hop);
      if (before === null) break;
      source = before;
    }
    return capKey(source);
  }

  #noticeProxy(peer: string): void {
    const address = readHop(peer);
    if (address === null || !NEAR.has(address.range())) return;
    this.#tellUnnamed?.(address.toString());
    this.#tellUnnamed = null;
  }

  #isProxy(address: IpAddress): boolean {
    return this.#proxies.some(
      ([range, bits]) => address.kind() === range.kind() && address.match([range, bits] as never),
    );
  }
}

function capKey(address: IpAddress): string {
  if (address.kind() === "ipv4") return address.toString();
  return `${address.toNormalizedString().split(":").slice(0, 4).join(":")}::/64`;
}
