/** A host name's addresses: names whose servers are silent hold no other, new name servers are taken over, and what does not exist is told so. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { createSocket, type Socket } from "node:dgram";
import { getServers, setServers } from "node:dns";
import { parseAllowList } from "../../src/outbound/address.ts";
import { lookupAll, resolveTarget } from "../../src/outbound/call-target.ts";

const OWN = getServers();
let server: Socket;
let port = 0;
let asked: string[] = [];

/** Answers 127.0.0.9 for `good…`, nothing at all for `dark…`, and that it does not exist for any other. */
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
  head.set([0x81, name.startsWith("good") ? 0x80 : 0x83], 2);
  head.set([0, has ? 1 : 0, 0, 0, 0, 0], 6);
  return has ? Buffer.concat([head, Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 127, 0, 0, 9])]) : head;
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

afterAll(() => {
  setServers(OWN);
  server.close();
});

test("fifty names whose servers are silent take nothing from another", async () => {
  setServers([`127.0.0.1:${port}`]);
  const dark = Array.from({ length: 50 }, (_, at) => resolveTarget(targetOf(`dark${at}.example`), context));
  const first = await Promise.race([...dark, lookupAll("good.example")]);
  expect(first).toEqual(["127.0.0.9"]);
  expect(new Set(asked.filter((name) => name.startsWith("dark"))).size).toBe(50);
  await Promise.all(dark);
}, 60_000);

test("a name whose servers are silent is told so, and is no misspelled one", async () => {
  const silent = () => Promise.reject(Object.assign(new Error("getaddrinfo ETIMEOUT"), { code: "DNS_ETIMEOUT" }));
  const said = /could not be looked up, as its name servers did not answer/;
  expect(await resolveTarget(targetOf("dark.example"), { ...context, lookup: silent })).toMatchObject({
    code: "unresolvable",
    message: expect.stringMatching(said),
  });
});

test("name servers that the machine has now are asked once those from before refuse", async () => {
  setServers(["127.0.0.1:1"]);
  await lookupAll("nowhere.invalid").catch(() => []);
  expect(getServers()).toEqual(OWN);
});

test("a name of the hosts file has its address, and one that does not exist has none", async () => {
  asked = [];
  setServers([`127.0.0.1:${port}`]);
  expect((await lookupAll("localhost")).length).toBeGreaterThan(0);
  expect(asked).toEqual([]);
  const told = await resolveTarget(targetOf("nowhere.invalid"), context);
  expect(told).toMatchObject({ code: "unresolvable" });
});

const context = { lookup: lookupAll, allow: parseAllowList([]), ownHosts: [] };

function targetOf(host: string) {
  return { url: new URL(`https://${host}/`), host, port: 443, loopback: false };
}
