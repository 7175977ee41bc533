/** Whose call it is, for the caps: the connection's own address, or what trusted proxies vouch for. */
import { describe, expect, test } from "bun:test";
import { SourceReader } from "../../src/http/source.ts";

const ROWS: readonly [
  name: string,
  proxies: string[],
  peer: string | null,
  forwarded: string | null,
  source: string,
][] = [
  ["the connection's address counts", [], "203.0.113.9", null, "203.0.113.9"],
  [
    "X-Forwarded-For is not believed without a trusted proxy",
    [],
    "203.0.113.9",
    "198.51.100.1",
    "203.0.113.9",
  ],
  ["nor from a peer that is not the trusted one", ["10.0.0.1"], "203.0.113.9", "198.51.100.1", "203.0.113.9"],
  ["a trusted proxy's word counts", ["10.0.0.1"], "10.0.0.1", "198.51.100.1", "198.51.100.1"],
  [
    "only the hop that the proxy wrote counts, what the caller wrote before it does not",
    ["10.0.0.1"],
    "10.0.0.1",
    "1.1.1.1, 198.51.100.1",
    "198.51.100.1",
  ],
  ["proxies may stand in a row", ["10.0.0.0/8"], "10.0.0.1", "198.51.100.1, 10.9.9.9", "198.51.100.1"],
  ["a hop that is no address ends the trust", ["10.0.0.1"], "10.0.0.1", "198.51.100.1, unknown", "10.0.0.1"],
  [
    "an IPv4 address in IPv6 dress is the IPv4 one",
    ["10.0.0.1"],
    "::ffff:10.0.0.1",
    "::ffff:198.51.100.1",
    "198.51.100.1",
  ],
  ["an IPv6 caller counts as its /64", [], "2001:db8:1:2:3:4:5:6", null, "2001:db8:1:2::/64"],
  ["an IPv6 proxy range is trusted", ["fd00::/8"], "fd00::1", "198.51.100.1", "198.51.100.1"],
  ["without a connection there is no address", [], null, "198.51.100.1", "unknown"],
];

describe("the source of a call", () => {
  for (const [name, proxies, peer, forwarded, source] of ROWS) {
    test(name, () => expect(new SourceReader(proxies).sourceOf(peer, forwarded)).toBe(source));
  }
});

test("a malformed proxy is refused by name, not ignored", () => {
  expect(() => new SourceReader(["everyone"])).toThrow("everyone is not an address or a range");
});
