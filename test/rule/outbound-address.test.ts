import { describe, expect, test } from "bun:test";
import { evaluateAddress, parseAllowList } from "../../src/platform/outbound/address.ts";

const nothing = parseAllowList([]);
const everything = parseAllowList(["0.0.0.0/0", "::/0"]);
const isAllowed = (address: string, allow = nothing, host = "a.example") => evaluateAddress(address, host, allow).allowed;

describe("only public addresses are called, and the caller refuses", () => {
  const rows: [string, string][] = [
    ["loopback", "127.0.0.1"],
    ["loopback, another one", "127.255.255.254"],
    ["loopback in IPv6", "::1"],
    ["private 10/8", "10.0.0.1"],
    ["private 172.16/12, first", "172.16.0.1"],
    ["private 172.16/12, last", "172.31.255.255"],
    ["private 192.168/16", "192.168.1.1"],
    ["link-local", "169.254.1.1"],
    ["link-local in IPv6", "fe80::1"],
    ["link-local in IPv6 with a zone", "fe80::1%eth0"],
    ["carrier-grade NAT", "100.64.0.1"],
    ["carrier-grade NAT, last", "100.127.255.255"],
    ["unspecified", "0.0.0.0"],
    ["this network", "0.1.2.3"],
    ["unspecified in IPv6", "::"],
    ["broadcast", "255.255.255.255"],
    ["multicast", "224.0.0.1"],
    ["multicast, last", "239.255.255.255"],
    ["multicast in IPv6", "ff02::1"],
    ["reserved 240/4", "240.0.0.1"],
    ["IETF protocol assignments", "192.0.0.1"],
    ["documentation 192.0.2/24", "192.0.2.1"],
    ["documentation 198.51.100/24", "198.51.100.1"],
    ["documentation 203.0.113/24", "203.0.113.1"],
    ["documentation in IPv6", "2001:db8::1"],
    ["documentation in IPv6, the newer range", "3fff::1"],
    ["benchmarking", "198.18.0.1"],
    ["benchmarking, last", "198.19.255.255"],
    ["benchmarking in IPv6", "2001:2::1"],
    ["6to4 relay anycast", "192.88.99.1"],
    ["unique local fc00::/8", "fc00::1"],
    ["unique local fd00::/8", "fd12:3456::1"],
    ["site-local, deprecated", "fec0::1"],
    ["mapped loopback", "::ffff:127.0.0.1"],
    ["mapped private, in hex", "::ffff:a00:1"],
    ["mapped public", "::ffff:8.8.8.8"],
    ["IPv4-compatible loopback", "::127.0.0.1"],
    ["IPv4-compatible public", "::808:808"],
    ["translated (RFC 6145) private", "::ffff:0:10.0.0.1"],
    ["6to4 of loopback", "2002:7f00:1::"],
    ["6to4 of a private address", "2002:a00:1::1"],
    ["6to4 of a public address", "2002:808:808::1"],
    ["NAT64 of loopback", "64:ff9b::7f00:1"],
    ["NAT64 of a metadata address", "64:ff9b::a9fe:a9fe"],
    ["NAT64 of a public address", "64:ff9b::808:808"],
    ["NAT64 with the local-use prefix", "64:ff9b:1::a00:1"],
    ["Teredo", "2001:0:4136:e378:8000:63bf:3fff:fdd2"],
    ["ISATAP of a private address", "2606:4700::5efe:a00:1"],
    ["ISATAP with the universal bit", "2606:4700::200:5efe:808:808"],
    ["discard-only", "100::1"],
    ["ORCHID", "2001:10::1"],
    ["ORCHIDv2", "2001:20::1"],
    ["segment routing", "5f00::1"],
    ["outside global unicast", "4000::1"],
    ["the metadata address of most clouds", "169.254.169.254"],
    ["the metadata address of containers", "169.254.170.2"],
    ["the metadata address in IPv6", "fd00:ec2::254"],
    ["the metadata address inside carrier-grade NAT", "100.100.100.200"],
    ["the metadata address that looks public", "168.63.129.16"],
    ["a decimal spelling", "2130706433"],
    ["a short spelling", "127.1"],
    ["an octal spelling", "0177.0.0.1"],
    ["a name", "localhost"],
    ["the empty text", ""],
  ];
  test.each(rows)("%s: %s", (_rule, address) => {
    expect(isAllowed(address)).toBe(false);
  });
});

test.each([["8.8.8.8"], ["172.32.0.1"], ["100.128.0.1"], ["2606:4700:4700::1111"], ["2001:4860:4860::8888"]])(
  "a public address is called: %s",
  (address) => {
    expect(isAllowed(address)).toBe(true);
  },
);

describe("the operator cannot allow", () => {
  const rows: [string, string][] = [
    ["a metadata address", "169.254.169.254"],
    ["a metadata address in IPv6", "fd00:ec2::254"],
    ["a metadata address inside carrier-grade NAT", "100.100.100.200"],
    ["a metadata address that looks public", "168.63.129.16"],
    ["a mapped metadata address", "::ffff:169.254.169.254"],
    ["a 6to4 metadata address", "2002:6464:64c8::1"],
    ["a NAT64 metadata address", "64:ff9b::6464:64c8"],
    ["a Teredo client at a metadata address", "2001:0:808:808:0:0:5601:5601"],
    ["link-local", "169.254.9.9"],
    ["unspecified", "0.0.0.0"],
    ["mapped unspecified", "::ffff:0.0.0.0"],
    ["multicast", "224.0.0.1"],
    ["broadcast", "255.255.255.255"],
  ];
  test.each(rows)("%s: %s", (_rule, address) => {
    expect(isAllowed(address, everything)).toBe(false);
    expect(isAllowed(address, parseAllowList([address, "a.example"]))).toBe(false);
  });
});

describe("the operator can allow", () => {
  const rows: [rule: string, entries: string[], address: string, host: string, allowed: boolean][] = [
    ["a range", ["10.1.0.0/16"], "10.1.2.3", "a.example", true],
    ["nothing outside the range", ["10.1.0.0/16"], "10.2.0.1", "a.example", false],
    ["one address", ["192.168.1.5"], "192.168.1.5", "a.example", true],
    ["a range in IPv6", ["fd00:1::/32"], "fd00:1::9", "a.example", true],
    ["a host by name", ["Intranet.example."], "10.9.9.9", "intranet.example", true],
    ["no other host by that name", ["intranet.example"], "10.9.9.9", "x.intranet.example", false],
    ["NAT64 for a public address inside", ["64:ff9b::/96"], "64:ff9b::808:808", "a.example", true],
    ["NAT64 for no private address inside", ["64:ff9b::/96"], "64:ff9b::a00:1", "a.example", false],
    ["NAT64 for a private address inside that is allowed too", ["64:ff9b::/96", "10.0.0.0/8"], "64:ff9b::a00:1", "a.example", true],
    ["no mapped form of an allowed range", ["10.0.0.0/8"], "::ffff:10.0.0.1", "a.example", false],
  ];
  test.each(rows)("%s", (_rule, entries, address, host, allowed) => {
    expect(isAllowed(address, parseAllowList(entries), host)).toBe(allowed);
  });

  test.each([["10.0.0.0/33"], ["10.0.0/8"], ["nonsense/8"]])("no malformed range: %s", (entry) => {
    expect(() => parseAllowList([entry])).toThrow(entry);
  });
});
