/**
 * A relay of a server that is asked to call forbidden addresses: every private form, its odd spellings, names that resolve to it or change to it
 * meanwhile, redirects to it, and the service itself. A listening canary must count no connection.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { createServer, type Server } from "node:net";
import { ownHostOf } from "../../src/platform/outbound/call-target.ts";
import { createCaller } from "../../src/platform/outbound/caller.ts";
import { makeAuthority } from "../kit/certificate.ts";
import { receiverDefinition, saveRelay, signedCall } from "../kit/relay-definition.ts";
import { type RunningService, startRunningService } from "../kit/running-service.ts";
import { VirtualClock } from "../kit/virtual-clock.ts";

interface Canary {
  port: number;
  connections: number;
  server: Server;
}

let canary: Canary;
let running: RunningService;
let version = 1;
let event = 0;

/** The addresses that names resolve to. */
const NAMES: Readonly<Record<string, () => string[]>> = {
  "loopback.test": () => ["127.0.0.1"],
  "mixed.test": () => ["93.184.215.14", "127.0.0.1"],
  "mixed6.test": () => ["2606:2800:21f:cb07:6820:80da:af6b:8b2c", "::1"],
  "any.test": () => ["0.0.0.0"],
  "any6.test": () => ["::"],
  "six.test": () => ["::1"],
  "mapped.test": () => ["::ffff:127.0.0.1"],
  "mapped-hex.test": () => ["::ffff:7f00:1"],
  "compatible.test": () => ["::127.0.0.1"],
  "translated.test": () => ["::ffff:0:127.0.0.1"],
  "nat64.test": () => ["64:ff9b::127.0.0.1"],
  "nat64-local.test": () => ["64:ff9b:1::127.0.0.1"],
  "6to4.test": () => ["2002:7f00:1::"],
  "teredo.test": () => ["2001:0:4136:e378:8000:63bf:80ff:fffe"],
  "isatap.test": () => ["2606:2800:21f:cb07:0:5efe:127.0.0.1"],
  "ten.test": () => ["10.0.0.1"],
  "one-seven-two.test": () => ["172.16.0.1"],
  "one-nine-two.test": () => ["192.168.1.1"],
  "carrier.test": () => ["100.64.0.1"],
  "link.test": () => ["169.254.1.1"],
  "metadata.test": () => ["169.254.169.254"],
  "metadata6.test": () => ["fd00:ec2::254"],
  "wire.test": () => ["168.63.129.16"],
  "link6.test": () => ["fe80::1"],
  "zone.test": () => ["fe80::1%lo"],
  "local6.test": () => ["fd12::1"],
  "site6.test": () => ["fec0::1"],
  "multicast.test": () => ["224.0.0.1"],
  "multicast6.test": () => ["ff02::1"],
  "broadcast.test": () => ["255.255.255.255"],
  "benchmark.test": () => ["198.18.0.1"],
  "example-net.test": () => ["203.0.113.1"],
  "protocol.test": () => ["192.0.0.1"],
  "future.test": () => ["240.0.0.1"],
  "discard6.test": () => ["100::1"],
  "document6.test": () => ["2001:db8::1"],
  "nothing.test": () => [],
  "ours.test": () => ["93.184.215.99"],
  "text.test": () => ["localhost"],
};

beforeAll(async () => {
  const server = createServer((socket) => {
    canary.connections += 1;
    socket.destroy();
  });
  await new Promise<void>((resolve) => server.listen(0, "::", resolve));
  const address = server.address();
  canary = {
    port: typeof address === "object" && address !== null ? address.port : 0,
    connections: 0,
    server,
  };
  const caller = createCaller({
    concurrency: 32,
    ownHosts: () => [ownHostOf("https://relay.example.test"), ownHostOf(running.service.url), ownHostOf("https://93.184.215.99")],
    allowPrivate: [],
    clock: new VirtualClock(0),
    lookup: async (host) => (Object.hasOwn(NAMES, host) ? (NAMES[host]?.() ?? []) : []),
  });
  running = await startRunningService({ ports: { caller } });
  await saveRelay(running, definition("https://public.test/"));
});

afterAll(async () => {
  await running[Symbol.asyncDispose]();
  canary.server.close();
});

function definition(url: string): Record<string, unknown> {
  return receiverDefinition({ actions: [{ type: "call_url", url }] });
}

/** Saves the relay with this URL and lets one event run. Returns the code of the refused save, or the code that the action ended with. */
async function callThrough(url: string): Promise<string> {
  const saved = await running.api("PUT", "/relays/orders", { definition: definition(url), version });
  if (saved.status !== 200) return saved.body.code;
  version = saved.body.relay.version;
  event += 1;
  const sent = await running.hook("orders", signedCall({ id: `call-${event}` }));
  expect(sent.status).toBe(200);
  await running.drain();
  const shown = await running.api("GET", `/events/${sent.body.eventId}`);
  return shown.body.event.runs.at(-1).results[0].code;
}

const SPELLINGS = [
  "127.0.0.1",
  "127.1",
  "127.0.1",
  "2130706433",
  "0x7f000001",
  "0x7f.1",
  "0177.0.0.1",
  "017700000001",
  "127.0.0.1.",
  "0",
  "0.0.0.0",
  "[::1]",
  "[::]",
  "[0:0:0:0:0:0:0:1]",
  "[::ffff:127.0.0.1]",
  "[::ffff:7f00:1]",
  "１２７.０.０.１",
  "①②⑦.⓪.⓪.①",
  "127。0。0。1",
  "%31%32%37.0.0.1",
  "1%32%37.1",
  "user@127.0.0.1",
  "public.test@127.0.0.1",
  "public.test:443@127.0.0.1",
  "localhost",
  "LOCALHOST",
  "localhost.",
  "a.localhost",
  "ⓛⓞⓒⓐⓛⓗⓞⓢⓣ",
  "loc\u00adalhost",
];

test.each(SPELLINGS)("the host %s is never connected to, over https or http", async (host) => {
  for (const scheme of ["https", "http"]) {
    const code = await callThrough(`${scheme}://${host}:${canary.port}/`);
    expect(["invalid_definition", "https_only", "ip_literal", "own_host", "unresolvable", "private_address"]).toContain(code);
  }
  expect(canary.connections).toBe(0);
});

test.each(Object.keys(NAMES))("the name %s is never connected to unless its address is public", async (name) => {
  const codes: Record<string, string> = { "nothing.test": "unresolvable", "ours.test": "own_host" };
  expect(await callThrough(`https://${name}:${canary.port}/`)).toBe(codes[name] ?? "private_address");
  expect(canary.connections).toBe(0);
});

test.each([
  ["https://relay.example.test/", "own_host"],
  ["https://relay.example.test:8443/", "own_host"],
  ["https://RELAY.example.TEST./hooks/app_test/orders", "own_host"],
  ["https://relay%2eexample.test/", "own_host"],
  ["http://relay.example.test/", "invalid_definition"],
])("the service's own host %s is not called", async (url, code) => {
  expect(await callThrough(url)).toBe(code);
});

test("a scheme other than https is refused when it is saved", async () => {
  for (const url of [
    "ftp://public.test/",
    "file:///etc/passwd",
    "gopher://public.test:70/_x",
    "//public.test/",
    "javascript:alert(1)",
    "https:/\\127.0.0.1/",
    "https:\\\\127.0.0.1\\",
    "https:127.0.0.1",
    "https:///127.0.0.1",
    "https://public.test\t.127.0.0.1/",
    "https://public.test\n@127.0.0.1/",
    " https://127.0.0.1/",
    "https://{{mapped.host}}/",
  ]) {
    expect([url, await callThrough(url)]).toEqual([url, "invalid_definition"]);
  }
});

test("a redirect to a private address is a failure and is not followed, and a name that changes after the check keeps its first address", async () => {
  const authority = makeAuthority("Test authority");
  const { cert, key } = authority.issue(["public.test", "moves.test"]);
  let asked = 0;
  const target = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    tls: { cert, key },
    fetch() {
      asked += 1;
      return new Response(null, { status: 307, headers: { location: `http://127.0.0.1:${canary.port}/` } });
    },
  });
  try {
    const looks: string[] = [];
    const caller = createCaller({
      concurrency: 32,
      ownHosts: () => [],
      allowPrivate: ["public.test", "moves.test"],
      clock: new VirtualClock(0),
      certificateAuthorities: [authority.cert],
      // A second lookup, which must not happen, would lead to the canary.
      lookup: async (host) => {
        looks.push(host);
        return looks.filter((one) => one === host).length === 1 ? ["127.0.0.1"] : ["::1"];
      },
    });
    for (const host of ["public.test", "moves.test"]) {
      const outcome = await caller.call({
        url: `https://${host}:${target.port}/`,
        body: "{}",
        signingSecret: "sgn_test",
        local: false,
      });
      expect(outcome).toMatchObject({ kind: "answered", ok: false, status: 307 });
    }
    expect({ asked, looks }).toEqual({ asked: 2, looks: ["public.test", "moves.test"] });
    expect(canary.connections).toBe(0);
  } finally {
    await target.stop(true);
  }
});
