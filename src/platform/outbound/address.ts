/**
 * Decides which IP addresses may be called: public unicast addresses, and those that the operator allows by name or range. It never resolves a
 * name and never connects. An address that embeds an IPv4 address (mapped, compatible, 6to4, NAT64, Teredo, ISATAP) is rejected; if a range
 * allows it, the embedded address must be allowed too. Source: the specification's "Outbound", rule 4; the IANA special-purpose address
 * registries.
 */
import { isIP } from "node:net";
import ipaddr, { type IPv4, type IPv6 } from "ipaddr.js";

type Ip = IPv4 | IPv6;
type Range = [Ip, number];

/** Private targets the operator allows: exact host names, and address ranges. */
export interface AllowList {
  readonly names: ReadonlySet<string>;
  readonly ranges: readonly Range[];
}

type AddressVerdict =
  | { allowed: true }
  /** `kind` is a phrase: "a loopback address". */
  | { allowed: false; kind: string };

const IPV4_NAT64_PREFIXES = ["64:ff9b::/96", "64:ff9b:1::/48"].map((text) => ipaddr.IPv6.parseCIDR(text));
const GLOBAL_UNICAST = ipaddr.IPv6.parseCIDR("2000::/3");

/**
 * Addresses where clouds serve a machine's credentials. The service never calls them, even if the operator allows private addresses. Most are
 * link-local, which the service never calls. 168.63.129.16 looks public.
 */
const METADATA_ADDRESSES = new Set(
  [
    "169.254.169.254",
    "169.254.170.2",
    "169.254.170.23",
    "100.100.100.200",
    "192.0.0.192",
    "168.63.129.16",
    "fd00:ec2::254",
    "fd00:ec2::23",
    "fd20:ce::254",
    "fd00:42::42",
  ].map((text) => ipaddr.parse(text).toNormalizedString()),
);

const NEVER_ALLOWED_KINDS = new Set(["linkLocal", "unspecified", "multicast", "broadcast", "discard"]);

const KIND_WORDS: Readonly<Record<string, string>> = {
  unspecified: "an unspecified address",
  broadcast: "a broadcast address",
  multicast: "a multicast address",
  linkLocal: "a link-local address",
  loopback: "a loopback address",
  carrierGradeNat: "a carrier-grade NAT address",
  private: "a private address",
  uniqueLocal: "a private address",
  deprecatedSiteLocal: "a site-local address",
  ipv4Mapped: "an IPv4 address inside an IPv6 one",
  rfc6145: "an IPv4 address inside an IPv6 one",
  rfc6052: "a NAT64 address",
  "6to4": "a 6to4 address",
  teredo: "a Teredo address",
};

/** Parses the operator's list of host names and CIDR ranges; a single address is a range of one. Throws for a malformed range. */
export function parseAllowList(entries: readonly string[]): AllowList {
  const names = new Set<string>();
  const ranges: Range[] = [];
  for (const entry of entries.map((text) => text.trim()).filter((text) => text !== "")) {
    const range = parseRange(entry);
    if (range === null) names.add(entry.toLowerCase().replace(/\.$/, ""));
    else ranges.push(range);
  }
  return { names, ranges };
}

/**
 * Evaluates one resolved address of `host` (lower case, no trailing dot). A text that is not a plain address, for example one with a zone such
 * as `%eth0`, is never allowed.
 */
export function evaluateAddress(address: string, host: string, allow: AllowList): AddressVerdict {
  if (isIP(address) === 0 || address.includes("%")) return { allowed: false, kind: "no plain address" };
  const ip = ipaddr.parse(address);
  const inner = findEmbedded(ip);
  if ([ip, ...inner].some(isMetadata)) return { allowed: false, kind: "a cloud metadata address" };
  const addressKind = classifyAddress(ip);
  if (addressKind === "public") return { allowed: true };
  if ([ip, ...inner].some((one) => NEVER_ALLOWED_KINDS.has(one.range()))) return rejectKind(addressKind);
  if (allow.names.has(host)) return { allowed: true };
  const innerIsAllowed = inner.every((one) => classifyAddress(one) === "public" || isInRanges(one, allow));
  return isInRanges(ip, allow) && innerIsAllowed ? { allowed: true } : rejectKind(addressKind);
}

/** Returns the canonical spelling of an address, for comparison; null if the text is not an address. */
export function canonicalAddress(text: string): string | null {
  return isIP(text) === 0 || text.includes("%") ? null : ipaddr.process(text).toNormalizedString();
}

function rejectKind(kind: string): AddressVerdict {
  return { allowed: false, kind: KIND_WORDS[kind] ?? "a reserved address" };
}

/** Returns `public` or the kind of a non-public address. */
function classifyAddress(ip: Ip): string {
  const range = ip.range();
  if (range !== "unicast") return range;
  if (ip.kind() === "ipv4") return "public";
  if (!ip.match(GLOBAL_UNICAST)) return "reserved";
  return isIsatap(ip as IPv6) ? "ipv4Mapped" : "public";
}

function isMetadata(ip: Ip): boolean {
  return METADATA_ADDRESSES.has(ip.toNormalizedString());
}

function isInRanges(ip: Ip, allow: AllowList): boolean {
  return allow.ranges.some((range) => range[0].kind() === ip.kind() && ip.match(range));
}

/** Lists the IPv4 addresses that an IPv6 address embeds, by the transition mechanism of its prefix. */
function findEmbedded(ip: Ip): IPv4[] {
  if (ip.kind() === "ipv4") return [];
  const v6 = ip as IPv6;
  const bytes = v6.toByteArray();
  const at = (offset: number, flip = 0) =>
    new ipaddr.IPv4(bytes.slice(offset, offset + 4).map((byte) => byte ^ flip));
  const range = v6.range();
  if (range === "6to4") return [at(2)];
  if (range === "teredo") return [at(4), at(12, 0xff)];
  const isLowEmbedding =
    range === "ipv4Mapped" ||
    range === "rfc6145" ||
    IPV4_NAT64_PREFIXES.some((prefix) => v6.match(prefix)) ||
    isIsatap(v6) ||
    (bytes.slice(0, 12).every((byte) => byte === 0) && range === "unicast");
  return isLowEmbedding ? [at(12)] : [];
}

/** RFC 5214: an interface identifier 0000:5efe or 0200:5efe followed by an IPv4 address. */
function isIsatap(ip: IPv6): boolean {
  const [high, low] = [ip.parts[4] ?? 0, ip.parts[5] ?? 0];
  return low === 0x5efe && (high & 0xfdff) === 0;
}

function parseRange(entry: string): Range | null {
  if (isIP(entry) !== 0) {
    const ip = ipaddr.parse(entry);
    return [ip, ip.kind() === "ipv4" ? 32 : 128];
  }
  if (!entry.includes("/")) return null;
  const [address = ""] = entry.split("/");
  if (isIP(address) === 0 || !ipaddr.isValidCIDR(entry)) {
    throw new Error(
      `The allowed private range ${entry} is not valid: write a host name or a range such as 10.1.0.0/16.`,
    );
  }
  return ipaddr.parseCIDR(entry);
}
