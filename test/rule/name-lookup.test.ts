/**
 * A host name's addresses: names whose servers are silent hold no other, new name servers are taken over, the machine's own names are asked of
 * its system first, and what does not exist is told so, unlike what nobody answered. Its name servers are a socket here, its system a list.
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

/** Answers 127.0.0.9 for `good…`, nothing at all for `dark…`, that it is broken for `broken…`, and that it does not exist for any other. */
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

test("fifty names whose servers are silent take nothing from another", async () => {
  const dark = Array.from({ length: 50 }, (_, at) => resolveTarget(targetOf(`dark${at}.example`), context));
  const first = await Promise.race([...dark, lookup("good.example")]);
  expect(first).toEqual(["127.0.0.9"]);
  expect(new Set(asked.filter((name) => name.startsWith("dark"))).size).toBe(50);
  await Promise.all(dark);
  expect(systemAsked).toEqual([]);
});

test.each(["DNS_ETIMEOUT", "EAI_AGAIN", "DNS_ECONNREFUSED", "DNS_ESERVFAIL", "DNS_EREFUSED"])(
  "a look-up that nobody answered (%s) is told so, and is no misspelled name",
  async (code) => {
    const away = { ...context, lookup: () => fail(code) };
    expect(await resolveTarget(targetOf("right.example"), away)).toMatchObject({
      code: "unresolvable",
      message: expect.stringMatching(/could not be looked up, as no name server answered for it/),
    });
  },
);

test("name servers that are broken or away, and a system that knows no more, are told so", async () => {
  const said = { code: "unresolvable", message: expect.stringMatching(/no name server answered/) };
  expect(await resolveTarget(targetOf("broken.example"), context)).toMatchObject(said);
  setServers(["127.0.0.1:1"]);
  expect(await resolveTarget(targetOf("away.example"), context)).toMatchObject(said);
  expect(systemAsked).toEqual(["broken.example", "away.example"]);
  system = async () => ["192.0.2.7"];
  expect(await lookup("away.example")).toEqual(["192.0.2.7"]);
});

test("name servers that the machine has now are asked once those from before refuse, and each name once where they are the same", async () => {
  resolvConf = `search example\nnameserver 127.0.0.1:${port}\nnameserver 127.0.0.1:${port}\n`;
  setServers(["127.0.0.1:1"]);
  expect(await lookup("good.example")).toEqual(["127.0.0.9"]);
  expect(getServers()).toEqual([`127.0.0.1:${port}`]);
  asked = [];
  await expect(lookup("nowhere.example")).rejects.toThrow("ENOTFOUND");
  // Its IPv4 and its IPv6 addresses.
  expect(asked).toEqual(["nowhere.example", "nowhere.example"]);
});

test("a name without a dot and one that the operator allows are asked of the system, and of name servers where it does not answer", async () => {
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

test("the system is asked for one name at a time, sixteen wait, and none of the machine's own waits behind another", async () => {
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
