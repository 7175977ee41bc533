import { describe, expect, test } from "bun:test";
import { parseAllowList } from "../../src/platform/outbound/address.ts";
import { checkCallUrl, ownHostOf, readCallTarget, resolveTarget } from "../../src/platform/outbound/call-target.ts";

const server = { local: false, ownHosts: ["relay.example", "203.0.113.7:8787"] };
const local = { local: true, ownHosts: ["localhost:8787"] };
const codeOf = (url: string, context = server): string | null => checkCallUrl(url, context)?.code ?? null;

describe("a URL on a server", () => {
  const rows: [rule: string, url: string, code: string | null][] = [
    ["can be https with path, query and port", "https://a.example:8443/x?y=1#z", null],
    ["can contain an international name", "https://bücher.example/", null],
    ["can end its host with a dot", "https://a.example./x", null],
    ["is https only", "http://a.example/", "https_only"],
    ["is https only, whatever the case", "HTTP://a.example/", "https_only"],
    ["is no other scheme", "ftp://a.example/", "https_only"],
    ["is no file", "file:///etc/passwd", "https_only"],
    ["is no javascript", "javascript:alert(1)", "https_only"],
    ["is complete", "a.example/x", "https_only"],
    ["is not scheme-relative", "//a.example/x", "https_only"],
    ["is not empty", "", "https_only"],
    ["needs its slashes", "https:a.example/x", "https_only"],
    ["has no third slash", "https:///a.example/x", "https_only"],
    ["has no backslash", "https:\\\\a.example\\x", "https_only"],
    ["has no white space", "https://a.exam ple/", "https_only"],
    ["has no line break", "https://a.example/\r\nHost: b", "https_only"],
    ["has no tab inside the host", "https://a.exa\tmple/", "https_only"],
    ["is not too long", `https://a.example/${"x".repeat(2_000)}`, "https_only"],
    ["has no user name", "https://user@a.example/", "https_only"],
    ["has no password", "https://:pass@a.example/", "https_only"],
    ["has no address disguised as a user name", "https://a.example@127.0.0.1/", "https_only"],
    ["is no http to localhost", "http://localhost:3000/", "https_only"],
    ["is no template", "https://a.example/{{mapped.id}}", "unresolvable"],
    ["has a valid port", "https://a.example:99999/", "unresolvable"],
    ["has no empty label", "https://a..example/", "unresolvable"],
    ["has a host", "https://./", "unresolvable"],
    ["is no IPv4 address", "https://8.8.8.8/", "ip_literal"],
    ["is no IPv4 address with a trailing dot", "https://127.0.0.1./", "ip_literal"],
    ["is no decimal address", "https://2130706433/", "ip_literal"],
    ["is no octal address", "https://0177.0.0.1/", "ip_literal"],
    ["is no hex address", "https://0x7f000001/", "ip_literal"],
    ["is no hex part", "https://0x7f.1/", "ip_literal"],
    ["is no short address", "https://127.1/", "ip_literal"],
    ["is no full-width address", "https://１２７.０.０.１/", "ip_literal"],
    ["is no address with ideographic dots", "https://127。0。0。1/", "ip_literal"],
    ["is no percent-encoded address", "https://%31%32%37.0.0.1/", "ip_literal"],
    ["is no address out of range", "https://256.1.1.1/", "ip_literal"],
    ["is no address of five parts", "https://1.2.3.4.5/", "ip_literal"],
    ["is no name that ends in a number", "https://a.0x1/", "ip_literal"],
    ["is no IPv6 address", "https://[2606:4700::1]/", "ip_literal"],
    ["is no IPv6 loopback", "https://[::1]:8443/", "ip_literal"],
    ["is no mapped address", "https://[::ffff:127.0.0.1]/", "ip_literal"],
    ["is no address with a zone", "https://[fe80::1%25eth0]/", "ip_literal"],
    ["is not the service's own host", "https://relay.example/hooks/a/b", "own_host"],
    ["is not the service's host in another case", "https://RELAY.Example/", "own_host"],
    ["is not the service's host with a trailing dot", "https://relay.example./", "own_host"],
    ["is not the service's host on another port", "https://relay.example:9443/", "own_host"],
    ["is not the service's host percent-encoded", "https://rel%61y.example/", "own_host"],
    ["can be a host next to the service's own", "https://app.relay.example/", null],
  ];
  test.each(rows)("%s: %s", (_rule, url, code) => {
    expect(codeOf(url)).toBe(code);
  });
});

describe("a URL in local development", () => {
  const rows: [rule: string, url: string, code: string | null][] = [
    ["can be http to localhost", "http://localhost:3000/x", null],
    ["can be https to localhost", "https://localhost:3000/x", null],
    ["can be http to 127.0.0.1", "http://127.0.0.1:3000/", null],
    ["can be http to [::1]", "http://[::1]:3000/", null],
    ["is no https to 127.0.0.1", "https://127.0.0.1/", "ip_literal"],
    ["is no https to [::1]", "https://[::1]/", "ip_literal"],
    ["is no https to a decimal loopback address", "https://2130706433/", "ip_literal"],
    ["is no https to a hex loopback address", "https://0x7f.1/", "ip_literal"],
    ["can be http to a name under localhost", "http://app.localhost:3000/", null],
    ["is no http elsewhere", "http://a.example/", "https_only"],
    ["is no http to a name that only begins like it", "http://localhost.example/", "https_only"],
    ["is no http to another loopback address", "http://127.0.0.2/", "https_only"],
    ["is no https to another loopback address", "https://127.0.0.2/", "ip_literal"],
    ["is not the service itself", "http://localhost:8787/hooks/a/b", "own_host"],
    ["is not the service itself by address", "http://127.0.0.1:8787/", "own_host"],
    ["is not the service itself by IPv6 address", "http://[::1]:8787/", "own_host"],
    ["is not the service itself by a name under localhost", "http://x.localhost:8787/", "own_host"],
  ];
  test.each(rows)("%s: %s", (_rule, url, code) => {
    expect(codeOf(url, local)).toBe(code);
  });
});

test("a target's host is lower case, without its trailing dot, and a loopback name is pinned", () => {
  expect(readCallTarget("https://A.Example.:443/x", server)).toMatchObject({
    host: "a.example",
    port: 443,
    loopback: false,
  });
  expect(readCallTarget("http://[::1]/x", local)).toMatchObject({ host: "::1", port: 80, loopback: true });
  const target = readCallTarget("https://A.Example./x?y", server);
  expect("url" in target && target.url.href).toBe("https://a.example/x?y");
});

test("an own origin covers its host on every port, and a loopback origin only its port", () => {
  expect(ownHostOf("https://Relay.Example:8443")).toBe("relay.example");
  expect(ownHostOf("http://127.0.0.1:8787")).toBe("localhost:8787");
  expect(ownHostOf("http://[::]:8787")).toBe("localhost:8787");
  expect(ownHostOf("http://0.0.0.0")).toBe("localhost:80");
});

test("a resolved address is the service's own if the service listens there", async () => {
  const resolve = async (address: string, port: number) => {
    const target = readCallTarget(`https://a.example:${port}/`, server);
    if ("code" in target) throw new Error("It must be taken.");
    const lookup = async () => [address];
    return await resolveTarget(target, { lookup, allow: parseAllowList([]), ownHosts: server.ownHosts });
  };
  expect(await resolve("203.0.113.7", 8787)).toMatchObject({ code: "own_host" });
  expect(await resolve("::ffff:203.0.113.7", 8787)).toMatchObject({ code: "own_host" });
  expect(await resolve("203.0.113.7", 443)).not.toMatchObject({ code: "own_host" });
});
