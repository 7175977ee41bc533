/**
 * Checks that an outbound call goes to the address that was checked, also over TLS. It runs from source or compiled (`bun build --compile
 * scripts/pin-check.ts`), with its own servers on loopback and without files. It prints one JSON line for each claim. It exits with 0 if all of
 * them are true, otherwise with 1.
 */
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import type { TLSSocket } from "node:tls";
import { systemClock } from "../src/base/clock.ts";
import { type CallOutcome, createCaller } from "../src/platform/outbound/caller.ts";
import { type Issued, makeAuthority } from "../test/kit/certificate.ts";

interface Seen {
  sni: string | false | null;
  host: string | undefined;
}

async function listen(issued: Issued, host: string, port: number, seen: Seen[]): Promise<Server> {
  const server = createServer({ ...issued }, (request, response) => {
    const { servername } = request.socket as TLSSocket & { servername?: string | false };
    seen.push({ sni: servername ?? null, host: request.headers.host });
    response.end("here");
  });
  await new Promise<void>((resolve, reject) => server.once("error", reject).listen(port, host, resolve));
  return server;
}

const authority = makeAuthority("Pin check authority");
const pinnedSeen: Seen[] = [];
const decoySeen: Seen[] = [];
const pinnedServer = await listen(authority.issue(["pinned.test", "localhost"]), "127.0.0.1", 0, pinnedSeen);
const { port } = pinnedServer.address() as AddressInfo;
const decoy = await listen(authority.issue(["localhost"]), "::1", port, decoySeen).catch(() => null);
const looked: string[] = [];
const caller = createCaller({
  concurrency: 32,
  ownHosts: () => [],
  allowPrivate: ["127.0.0.0/8"],
  clock: systemClock,
  certificateAuthorities: [authority.cert],
  async lookup(host) {
    looked.push(host);
    return ["127.0.0.1"];
  },
});

async function post(host: string): Promise<CallOutcome> {
  return caller.call({ url: `https://${host}:${port}/x`, body: "{}", signingSecret: "secret", local: false });
}

const nowhere = await post("pinned.test");
const elsewhere = await post("localhost");
const misnamed = await post("other.test");

const claims: [claim: string, holds: boolean][] = [
  [
    "a name that no resolver knows is reached at its checked address",
    nowhere.kind === "answered" && nowhere.ok,
  ],
  ["the server is asked for by its name (SNI)", pinnedSeen[0]?.sni === "pinned.test"],
  ["the Host header is the name", pinnedSeen[0]?.host === `pinned.test:${port}`],
  [
    "a name that the system resolves is reached at its checked address alone",
    elsewhere.kind === "answered" && pinnedSeen.length === 2 && decoySeen.length === 0,
  ],
  [
    "the certificate is checked against the name, not the address",
    misnamed.kind === "unreachable" && misnamed.code === "tls_failed" && pinnedSeen.length === 2,
  ],
  ["each call resolved its name once", looked.join() === "pinned.test,localhost,other.test"],
];
for (const [claim, holds] of claims) process.stdout.write(`${JSON.stringify({ claim, holds })}\n`);
pinnedServer.closeAllConnections();
decoy?.closeAllConnections();
process.exit(claims.every(([, holds]) => holds) ? 0 : 1);
