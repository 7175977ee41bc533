/** The source address of a request, for the caps: the connection's own address, or the one that trusted proxies report. */
import { describe, expect, test } from "bun:test";
import { SourceReader } from "../../src/interfaces/http/address.ts";

const ROWS: readonly [name: string, proxies: string[], peer: string | null, forwarded: string | null, source: string][] = [
  ["the connection's address counts", [], "203.0.113.9", null, "203.0.113.9"],
  ["X-Forwarded-For is ignored without a trusted proxy", [], "203.0.113.9", "198.51.100.1", "203.0.113.9"],
  ["X-Forwarded-For is ignored from a peer that is not the trusted one", ["10.0.0.1"], "203.0.113.9", "198.51.100.1", "203.0.113.9"],
  ["X-Forwarded-For of a trusted proxy counts", ["10.0.0.1"], "10.0.0.1", "198.51.100.1", "198.51.100.1"],
  [
    "only the hop that the proxy wrote counts, not the hops that the caller wrote before it",
    ["10.0.0.1"],
    "10.0.0.1",
    "1.1.1.1, 198.51.100.1",
    "198.51.100.1",
  ],
  ["several proxies can follow each other", ["10.0.0.0/8"], "10.0.0.1", "198.51.100.1, 10.9.9.9", "198.51.100.1"],
  ["a hop that is no address ends the trust", ["10.0.0.1"], "10.0.0.1", "198.51.100.1, unknown", "10.0.0.1"],
  ["an IPv4-mapped IPv6 address counts as IPv4", ["10.0.0.1"], "::ffff:10.0.0.1", "::ffff:198.51.100.1", "198.51.100.1"],
  ["a hop with a port counts without it", ["10.0.0.1"], "10.0.0.1", "198.51.100.1:52811", "198.51.100.1"],
  ["a hop in brackets counts without them and without its port", ["10.0.0.1"], "10.0.0.1", "[2001:db8:1:2::9]:443", "2001:db8:1:2::/64"],
  ["a bare IPv6 hop counts", ["10.0.0.1"], "10.0.0.1", "2001:db8:1:2::9", "2001:db8:1:2::/64"],
  ["a quoted hop counts without its quotes", ["10.0.0.1"], "10.0.0.1", '"[2001:db8:1:2::9]:443"', "2001:db8:1:2::/64"],
  ["a proxy in the chain can write its port too", ["10.0.0.0/8"], "10.0.0.1", "198.51.100.1:80, 10.9.9.9:81", "198.51.100.1"],
  ["a hop of white space ends the trust", ["10.0.0.1"], "10.0.0.1", "198.51.100.1,  ", "10.0.0.1"],
  ["a hop with only a port ends the trust", ["10.0.0.1"], "10.0.0.1", "198.51.100.1, :80", "10.0.0.1"],
  ["a hop with two ports ends the trust", ["10.0.0.1"], "10.0.0.1", "198.51.100.1:80:81", "10.0.0.1"],
  ["a hop in octal ends the trust", ["10.0.0.1"], "10.0.0.1", "0306.51.100.1", "10.0.0.1"],
  ["a hop that is one number ends the trust", ["10.0.0.1"], "10.0.0.1", "3325256705", "10.0.0.1"],
  [
    "the nearest 32 hops of a long chain are read",
    ["10.0.0.0/8"],
    "10.0.0.1",
    `198.51.100.1, 10.0.0.3, 10.0.0.2${", 10.9.9.9".repeat(31)}`,
    "10.0.0.2",
  ],
  ["an IPv6 caller counts as its /64", [], "2001:db8:1:2:3:4:5:6", null, "2001:db8:1:2::/64"],
  ["an IPv6 proxy range is trusted", ["fd00::/8"], "fd00::1", "198.51.100.1", "198.51.100.1"],
  ["without a connection there is no address", [], null, "198.51.100.1", "unknown"],
];

/** Builds the requests of several callers through one peer. */
function passedOn(peer: string, callers: number): [peer: string, forwarded: string][] {
  return Array.from({ length: callers }, (_, caller) => [peer, `198.51.100.${caller}`]);
}

describe("a proxy that forwards requests is reported once", () => {
  const rows: [string, string[], [peer: string, forwarded: string | null][], string[]][] = [
    ["if no proxy is configured", [], passedOn("127.0.0.1", 5), ["127.0.0.1"]],
    ["in a container's network", [], passedOn("::ffff:172.17.0.1", 3), ["172.17.0.1"]],
    [
      "but not with fewer than three addresses of callers, which one client could write",
      [],
      [...passedOn("127.0.0.1", 2), ...passedOn("127.0.0.1", 2)],
      [],
    ],
    ["but not for two peers together", [], [...passedOn("10.0.0.2", 2), ...passedOn("10.0.0.3", 2)], []],
    ["but not if a proxy is configured", ["10.0.0.1"], passedOn("127.0.0.1", 5), []],
    ["but not for headers that unknown peers wrote", [], [...passedOn("203.0.113.9", 5), ...passedOn("2001:db8::1", 5)], []],
    ["but not without the header", [], [["127.0.0.1", null]], []],
  ];
  test.each(rows)("%s", (_, proxies, calls, expected) => {
    const told: string[] = [];
    const reader = new SourceReader(proxies, (proxy) => told.push(proxy));
    for (const [peer, forwarded] of calls) reader.sourceOf(peer, forwarded);
    expect(told).toEqual(expected);
  });
});

describe("the source of a request", () => {
  for (const [name, proxies, peer, forwarded, source] of ROWS) {
    test(name, () => expect(new SourceReader(proxies).sourceOf(peer, forwarded)).toBe(source));
  }
});

describe("an invalid proxy is refused by name, not ignored", () => {
  test.each([
    ["everyone", "everyone is not an address or a range: write it like 10.0.0.0/8 or 203.0.113.7."],
    ["proxy.example.com", "proxy.example.com is not an address or a range"],
    ["", " is not an address or a range"],
    ["10.0.0", "10.0.0 is not an address or a range"],
    ["1", "1 is not an address or a range"],
    ["0x0a.0.0.1", "0x0a.0.0.1 is not an address or a range"],
    ["010.0.0.1", "010.0.0.1 is not an address or a range"],
    ["10.0.0.1:80", "10.0.0.1:80 is not an address or a range"],
    ["[fd00::1]", "[fd00::1] is not an address or a range"],
    ["fe80::1%eth0", "fe80::1%eth0 is not an address or a range"],
    ["10.0.0.0/08", "10.0.0.0/08 is not an address or a range"],
    ["10.0.0.0/-1", "10.0.0.0/-1 is not an address or a range"],
    ["10.0.0.0/8/8", "10.0.0.0/8/8 is not an address or a range"],
    ["10.0.0.0/255.0.0.0", "10.0.0.0/255.0.0.0 is not an address or a range"],
    ["10.0.0.0/40", "10.0.0.0/40 has more than 32 bits"],
    ["fd00::/129", "fd00::/129 has more than 128 bits"],
    ["0.0.0.0/0", "0.0.0.0/0 holds more of the internet than one network has"],
    ["128.0.0.0/1", "128.0.0.0/1 holds more of the internet than one network has"],
    ["::/0", "::/0 holds more of the internet than one network has"],
    ["2000::/3", "2000::/3 holds more of the internet than one network has"],
    ["10.0.0.1/8", "10.0.0.1/8 sets bits behind its /8: write 10.0.0.0/8 for the range, or only the address."],
    ["fd00::1/8", "fd00::1/8 sets bits behind its /8: write fd00::/8"],
    ["::ffff:10.0.0.0/104", "::ffff:10.0.0.0/104 is an IPv4 range in IPv6 dress: write it as IPv4"],
  ])("%s", (text, sentence) => {
    expect(() => new SourceReader([text])).toThrow(`The trusted proxy ${sentence}`);
  });
  test.each(["203.0.113.7", "10.0.0.0/8", "10.0.0.1/32", "fd00::/8", "fc00::/7", "::1", "::ffff:10.0.0.1"])("but %s is accepted", (text) => {
    expect(new SourceReader([text])).toBeInstanceOf(SourceReader);
  });
});

test("addresses of unlimited requests are read for the first ones and then for few, so that a quiet server's proxy is found too", () => {
  const reader = new SourceReader([], () => undefined);
  const looked = Array.from({ length: 640 }, () => reader.looksAtUnasked);
  expect(looked.slice(0, 40).every((one) => one)).toBe(true);
  expect(looked.slice(100).filter((one) => one).length).toBeLessThan(10);
  expect(new SourceReader(["10.0.0.1"], () => undefined).looksAtUnasked).toBe(false);
});
