/**
 * Look-ups of a host name's addresses. Silent name servers delay no other name, and new name servers are picked up. The system answers the machine's
 * own names first. A missing name differs from a failed look-up. The name servers here are a socket and the system a list.
 */
import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { createSocket, type Socket } from "node:dgram";
import { getServers, setServers } from "node:dns";
import { parseAllowList } from "../../src/platform/outbound/address.ts";
import { makeLookup } from "../../src/platform/outbound/address-lookup.ts";
import { resolveTarget } from "../../src/platform/outbound/call-target.ts";

const OWN = getServers();
let server: Socket;
let port = 0;
let asked: string[] = [];
let resolvConf = "";
let systemAsked: string[] = [];
let system: (host: string) => Promise<string[]> = unknown;

const machine = {
  askSystem: (host: string) => {
    systemAsked.push(host);
    return system(host);
  },
  readNameServers: () => resolvConf,
};
const lookup = makeLookup(parseAllowList(["good.allowed.example", "10.0.0.0/8"]), machine);
const context = { lookup, allow: parseAllowList([]), ownHosts: [] };

/** Answers 127.0.0.9 for `good…`, gives no answer for `dark…` and a failure for `broken…`. Every other name does not exist. */
function answer(question: Buffer): Buffer | null {
  const labels: string[] = [];
  let at = 12;
  for (let length = question[at] ?? 0; length > 0; length = question[at] ?? 0) {
    labels.push(question.subarray(at + 1, at + 1 + length).toString());
    at += length + 1;
  }
  const name = labels.join(".");
  asked.push(name);
  if (name.startsWith("dark")) return null;
  const isA = question.readUInt16BE(at + 1) === 1;
  const head = Buffer.from(question.subarray(0, at + 5));
  const has = name.startsWith("good") && isA;
  head.set([0x81, name.startsWith("good") ? 0x80 : name.startsWith("broken") ? 0x82 : 0x83], 2);
  head.set([0, has ? 1 : 0, 0, 0, 0, 0], 6);
  return has ? Buffer.concat([head, Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 127, 0, 0, 9])]) : head;
}

function fail(code: string): Promise<never> {
  return Promise.reject(Object.assign(new Error(`getaddrinfo ${code}`), { code }));
}

function unknown(): Promise<never> {
  return fail("ENOTFOUND");
}

beforeAll(async () => {
  server = createSocket("udp4");
  server.on("message", (question, from) => {
    const said = answer(question);
    if (said !== null) server.send(said, from.port, from.address);
  });
  await new Promise<void>((resolve) => server.bind(0, "127.0.0.1", () => resolve()));
  port = server.address().port;
});

beforeEach(() => {
  resolvConf = "";
  system = unknown;
  asked = [];
  systemAsked = [];
  setServers([`127.0.0.1:${port}`]);
});

afterAll(() => {
  setServers(OWN);
  server.close();
});

test("fifty names with silent servers do not delay another name", async () => {
  const dark = Array.from({ length: 50 }, (_, at) => resolveTarget(targetOf(`dark${at}.example`), context));
  const first = await Promise.race([...dark, lookup("good.example")]);
  expect(first).toEqual(["127.0.0.9"]);
  expect(new Set(asked.filter((name) => name.startsWith("dark"))).size).toBe(50);
  await Promise.all(dark);
  expect(systemAsked).toEqual([]);
});

test.each(["DNS_ETIMEOUT", "EAI_AGAIN", "DNS_ECONNREFUSED", "DNS_ESERVFAIL", "DNS_EREFUSED"])(
  "a failed look-up (%s) is reported as such, and not as a misspelled name",
  async (code) => {
    const away = { ...context, lookup: () => fail(code) };
    expect(await resolveTarget(targetOf("right.example"), away)).toMatchObject({
      code: "unresolvable",
      message: expect.stringMatching(/could not be looked up, because no name server answered/),
    });
  },
);

test("broken or unavailable name servers are reported if the system knows no address either", async () => {
  const said = { code: "unresolvable", message: expect.stringMatching(/no name server answered/) };
  expect(await resolveTarget(targetOf("broken.example"), context)).toMatchObject(said);
  setServers(["127.0.0.1:1"]);
  expect(await resolveTarget(targetOf("away.example"), context)).toMatchObject(said);
  expect(systemAsked).toEqual(["broken.example", "away.example"]);
  system = async () => ["192.0.2.7"];
  expect(await lookup("away.example")).toEqual(["192.0.2.7"]);
});

test("the machine's current name servers are asked after the old ones refuse, each only once", async () => {
  resolvConf = `search example\nnameserver 127.0.0.1:${port}\nnameserver 127.0.0.1:${port}\n`;
  setServers(["127.0.0.1:1"]);
  expect(await lookup("good.example")).toEqual(["127.0.0.9"]);
  expect(getServers()).toEqual([`127.0.0.1:${port}`]);
  asked = [];
  await expect(lookup("nowhere.example")).rejects.toThrow("ENOTFOUND");
  // The IPv4 and the IPv6 look-up.
  expect(asked).toEqual(["nowhere.example", "nowhere.example"]);
});

test("a name without a dot or on the allowlist is asked of the system first, and then of name servers", async () => {
  system = async () => ["10.0.0.7"];
  expect(await lookup("good")).toEqual(["10.0.0.7"]);
  expect(await lookup("good.allowed.example")).toEqual(["10.0.0.7"]);
  expect(asked).toEqual([]);
  expect(await lookup("good.example")).toEqual(["127.0.0.9"]);
  expect(systemAsked).toEqual(["good", "good.allowed.example"]);
  system = () => fail("EAI_AGAIN");
  expect(await lookup("good.allowed.example")).toEqual(["127.0.0.9"]);
  system = unknown;
  await expect(lookup("good.allowed.example")).rejects.toThrow("ENOTFOUND");
});

test("the system resolves one name at a time, sixteen names wait, and the machine's own names do not wait", async () => {
  let atOnce = 0;
  let most = 0;
  const held = Promise.withResolvers<void>();
  system = async () => {
    atOnce += 1;
    most = Math.max(most, atOnce);
    await held.promise;
    atOnce -= 1;
    return ["192.0.2.7"];
  };
  const strangers = Array.from({ length: 16 }, (_, at) => lookup(`nowhere${at}.example`));
  const oneMore = lookup("nowhere16.example");
  await expect(Promise.race([...strangers, oneMore])).rejects.toThrow("too many look-ups wait");
  expect(await lookup("good.allowed.example")).toEqual(["127.0.0.9"]);
  held.resolve();
  const found = (await Promise.allSettled([...strangers, oneMore])).filter(({ status }) => status === "fulfilled");
  expect(found).toHaveLength(16);
  expect(most).toBe(1);
});

test("a name of the hosts file has its address, and one that does not exist has none", async () => {
  system = () => fail("EAI_AGAIN");
  expect((await lookup("localhost")).length).toBeGreaterThan(0);
  expect(asked).toEqual([]);
  system = unknown;
  expect(await resolveTarget(targetOf("nowhere.example"), context)).toMatchObject({
    code: "unresolvable",
    message: expect.stringMatching(/has no address: check its spelling/),
  });
});

function targetOf(host: string) {
  return { url: new URL(`https://${host}/`), host, port: 443, loopback: false };
}
