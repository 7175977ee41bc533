import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { type AddressInfo, createServer as createRawServer, type Socket } from "node:net";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { systemClock } from "../../src/base/clock.ts";
import { CALL_TIMEOUT_MS, MAX_KEPT_ANSWER_BYTES } from "../../src/base/limit.ts";
import { utf8Bytes } from "../../src/base/text.ts";
import { type CallerOptions, type CallOutcome, type CallRequest, createCaller } from "../../src/platform/outbound/caller.ts";
import { makeAuthority } from "../kit/certificate.ts";
import { VirtualClock } from "../kit/virtual-clock.ts";

type Handler = (request: IncomingMessage, response: ServerResponse) => void;

const authority = makeAuthority("Test authority");
const open: { close(): void }[] = [];
let sink: Server;
let sinkPort: number;
let handle: Handler = (_request, response) => response.end("ok");
let calls = 0;

beforeAll(async () => {
  sink = createServer((request, response) => {
    calls++;
    handle(request, response);
  });
  sinkPort = await listenOn(sink);
});
afterAll(() => {
  for (const server of open) server.close();
});

async function listenOn(server: Server | ReturnType<typeof createRawServer>, host = "127.0.0.1") {
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  open.push(server);
  return (server.address() as AddressInfo).port;
}

function makeCaller(options: Partial<CallerOptions> = {}) {
  return createCaller({ concurrency: 32, ownHosts: () => [], allowPrivate: [], clock: systemClock, ...options });
}

function request(url: string, more: Partial<CallRequest> = {}): CallRequest {
  return { url, body: '{"id":"evt_1"}', signingSecret: "secret", local: false, ...more };
}

/** Calls the local sink once with `handler`, and omits the recorded request and the headers. */
async function callSink(handler: Handler, options: Partial<CallerOptions> = {}): Promise<CallOutcome> {
  const outcome = await callSinkWhole(handler, options);
  if (outcome.kind === "refused") return outcome;
  if (outcome.kind === "unreachable") {
    const { request: _request, ...said } = outcome;
    return said;
  }
  const { request: _request, headers: _headers, ...said } = outcome;
  return said;
}

async function callSinkWhole(handler: Handler, options: Partial<CallerOptions> = {}): Promise<CallOutcome> {
  handle = handler;
  return makeCaller(options).call(request(`http://localhost:${sinkPort}/in?a=b#c`, { local: true }));
}

describe("the recorded request", () => {
  const told = (length: string) => ({
    method: "POST",
    url: `http://localhost:${sinkPort}/in?a=b`,
    headers: {
      "content-type": "application/json",
      "user-agent": "Service-Relays/1",
      "accept-encoding": "identity",
      "X-Service-Signature": "t=1767603600,v1=(not kept)",
      "content-length": length,
    },
  });
  const options = { clock: new VirtualClock(1_767_603_600_999) };

  test("is the request as sent, without its signature", async () => {
    const outcome = await callSinkWhole((_q, r) => r.end(), options);
    expect(outcome).toMatchObject({ kind: "answered", request: told("14") });
  });

  test("exists without a response too", async () => {
    const outcome = await callSinkWhole((q) => q.socket.destroy(), options);
    expect(outcome).toMatchObject({ kind: "unreachable", code: "connection_failed", request: told("14") });
  });

  test("is absent if nothing was sent", async () => {
    expect(await makeCaller().call(request("http://localhost:1/", { local: true }))).not.toHaveProperty("request");
    expect(await makeCaller().call(request("http://example.com/"))).not.toHaveProperty("request");
  });
});

describe("the notice", () => {
  test("is posted with the specification's headers, its exact body, and the signature over it", async () => {
    let seen: { line: string; headers: string[]; body: string } | null = null;
    const outcome = await callSink(
      (incoming, response) => {
        let body = "";
        incoming.on("data", (chunk) => {
          body += chunk;
        });
        incoming.on("end", () => {
          seen = { line: `${incoming.method} ${incoming.url}`, headers: incoming.rawHeaders, body };
          response.end("thanks");
        });
      },
      { clock: new VirtualClock(1_767_603_600_999) },
    );
    expect(outcome).toEqual({ kind: "answered", ok: true, status: 200, body: "thanks" });
    expect(seen as unknown).toEqual({
      line: "POST /in?a=b",
      headers: [
        "host",
        `localhost:${sinkPort}`,
        "connection",
        "keep-alive",
        "content-type",
        "application/json",
        "user-agent",
        "Service-Relays/1",
        "accept-encoding",
        "identity",
        "X-Service-Signature",
        "t=1767603600,v1=b2416f9b8ca1c0d5791f6f9e76d06dfbe3100f847338dfdf865a94525de3f455",
        "content-length",
        "14",
      ],
      body: '{"id":"evt_1"}',
    });
  });
});

describe("the response", () => {
  const rows: [rule: string, handler: Handler, expected: { ok: boolean; status: number; body: string }][] = [
    ["204 without a body is success", (_q, r) => r.writeHead(204).end(), { ok: true, status: 204, body: "" }],
    ["299 is success", (_q, r) => r.writeHead(299).end("x"), { ok: true, status: 299, body: "x" }],
    ["400 is a failure", (_q, r) => r.writeHead(400).end("no"), { ok: false, status: 400, body: "no" }],
    ["500 is a failure", (_q, r) => r.writeHead(500).end("oh"), { ok: false, status: 500, body: "oh" }],
    [
      "a redirect is a failure and never followed",
      (_q, r) => r.writeHead(302, { location: `http://localhost:${sinkPort}/elsewhere` }).end("moved"),
      { ok: false, status: 302, body: "moved" },
    ],
    [
      "a redirect that keeps the method is never followed either",
      (_q, r) => r.writeHead(308, { location: "/elsewhere" }).end(),
      { ok: false, status: 308, body: "" },
    ],
    [
      "is not an early hint that precedes it",
      (_q, r) => {
        r.writeProcessing();
        r.end("late");
      },
      { ok: true, status: 200, body: "late" },
    ],
    ["keeps its first 4 KB", (_q, r) => r.end("x".repeat(100_000)), { ok: true, status: 200, body: "x".repeat(4096) }],
    ["is cut at a character", (_q, r) => r.end(`x${"é".repeat(50_000)}`), { ok: true, status: 200, body: `x${"é".repeat(2047)}` }],
    [
      "is read by its declared charset",
      (_q, r) => r.writeHead(200, { "content-type": "text/plain; charset=iso-8859-1" }).end(Buffer.of(0xe9)),
      { ok: true, status: 200, body: "é" },
    ],
    [
      "is stored as valid text without NUL if its bytes are no text",
      (_q, r) => r.end(Buffer.of(0, 0xff, 0x41)),
      { ok: true, status: 200, body: "\ufffd\ufffdA" },
    ],
    [
      "is not unpacked if it is compressed without being asked",
      (_q, r) => r.writeHead(200, { "content-encoding": "gzip" }).end(gzipSync("x".repeat(1_000_000))),
      { ok: true, status: 200, body: "[a gzip compressed answer, not kept]" },
    ],
  ];
  test.each(rows)("%s", async (_rule, handler, expected) => {
    const before = calls;
    expect(await callSink(handler)).toEqual({ kind: "answered", ...expected });
    expect(calls - before).toBe(1);
  });

  test("never grows over 4 KB if its bytes are no text", async () => {
    const outcome = await callSink((_q, r) => r.end(Buffer.alloc(9_000, 0xff)));
    if (outcome.kind !== "answered") throw new Error("not answered");
    expect(utf8Bytes(outcome.body)).toBeLessThanOrEqual(MAX_KEPT_ANSWER_BYTES);
  });

  test("includes the first headers, but none with credentials", async () => {
    const outcome = await callSinkWhole((_q, r) => {
      r.writeHead(302, {
        "content-type": "text/plain",
        "set-cookie": ["session=s3cret", "b=s3cret"],
        "www-authenticate": "Bearer s3cret",
        authorization: "s3cret",
        "x-api-key": "s3cret",
        "x-session-id": "s3cret",
        "x-csrf-token": "s3cret",
        "x-hub-signature": "s3cret",
        "content-security-policy": "script-src 'nonce-s3cret'",
        location: "https://ann:s3cret@example.com/in?token=s3cret#s3cret",
        link: "<https://a.test/?k=s3cret>; rel=next, <https://b.test/x>; rel=prev",
        under_score: "s3cret",
        "x-long": "l".repeat(900),
        "x-request-id": "req_1",
      });
      r.end("no");
    });
    if (outcome.kind !== "answered") throw new Error("not answered");
    expect(JSON.stringify(outcome)).not.toContain("s3cret");
    expect(outcome.headers).toMatchObject({
      "content-type": "text/plain",
      location: "https://…@example.com/in?…",
      link: "<https://a.test/?…>; rel=next, <https://b.test/x>; rel=prev",
      "x-request-id": "req_1",
    });
    expect(outcome.headers?.["x-long"]?.length).toBeLessThanOrEqual(201);
  });

  test("keeps at most 24 headers and 1 KB of them", async () => {
    const many = await callSinkWhole((_q, r) => r.writeHead(200, Object.fromEntries(Array.from({ length: 60 }, (_, at) => [`x-${at}`, "v"]))).end());
    const large = await callSinkWhole((_q, r) =>
      r.writeHead(200, Object.fromEntries(Array.from({ length: 20 }, (_, at) => [`x-${at}`, "v".repeat(190)]))).end(),
    );
    if (many.kind !== "answered" || large.kind !== "answered") throw new Error("not answered");
    expect(Object.keys(many.headers ?? {})).toHaveLength(24);
    const chars = Object.entries(large.headers ?? {})
      .flat()
      .join("").length;
    expect(chars).toBeGreaterThan(500);
    expect(chars).toBeLessThanOrEqual(1_024);
  });

  test("is not read beyond its first 4 KB if it never ends", async () => {
    let ended: () => void = () => {};
    const closed = new Promise<void>((resolve) => {
      ended = resolve;
    });
    const outcome = await callSink((_q, r) => {
      r.on("close", ended);
      const push = () => {
        while (!r.destroyed && r.write("y".repeat(10_000)));
      };
      r.on("drain", push);
      push();
    });
    expect(outcome).toEqual({ kind: "answered", ok: true, status: 200, body: "y".repeat(4096) });
    await closed;
  });
});

describe("a missing response", () => {
  const silent: [rule: string, handler: Handler][] = [
    ["a server that never responds is a timeout after 10 seconds", () => {}],
    ["a server that hangs after an early hint is a timeout", (_q, r) => r.writeEarlyHints({ link: "</a>; rel=preload" })],
  ];
  test.each(silent)("%s", async (_rule, handler) => {
    const clock = new VirtualClock(0);
    let arrived: () => void = () => {};
    const arrival = new Promise<void>((resolve) => {
      arrived = resolve;
    });
    const outcome = callSink(
      (q, r) => {
        handler(q, r);
        arrived();
      },
      { clock },
    );
    await arrival;
    await clock.advance(CALL_TIMEOUT_MS - 1);
    expect(await Promise.race([outcome, Promise.resolve("waiting")])).toBe("waiting");
    await clock.advance(1);
    expect(await outcome).toMatchObject({ kind: "unreachable", code: "timeout" });
  });

  const dripping: [rule: string, status: number, ok: boolean][] = [
    ["a 200 that drips past the 10 seconds is success, with the body so far", 200, true],
    ["a 500 that drips past the 10 seconds is a failure by its status", 500, false],
  ];
  test.each(dripping)("%s", async (_rule, status, ok) => {
    const clock = new VirtualClock(0);
    let begun: () => void = () => {};
    const arrival = new Promise<void>((resolve) => {
      begun = resolve;
    });
    const outcome = callSink(
      (_q, r) => {
        r.writeHead(status);
        r.write("begun", () => begun());
      },
      { clock },
    );
    await arrival;
    await clock.advance(CALL_TIMEOUT_MS - 1);
    // The response crosses a real socket, but the call's clock is virtual.
    await Bun.sleep(50);
    expect(await Promise.race([outcome, Promise.resolve("waiting")])).toBe("waiting");
    await clock.advance(1);
    expect(await outcome).toEqual({ kind: "answered", ok, status, body: "begun" });
  });

  test("a name whose lookup hangs is a timeout", async () => {
    const clock = new VirtualClock(0);
    const caller = makeCaller({ clock, lookup: () => new Promise(() => {}) });
    const outcome = caller.call(request("https://a.example/"));
    await clock.advance(CALL_TIMEOUT_MS);
    expect(await outcome).toMatchObject({ kind: "unreachable", code: "timeout" });
  });

  test("a closed port is connection_failed", async () => {
    const server = createRawServer();
    const port = await listenOn(server);
    await new Promise<void>((resolve) => server.close(() => resolve()));
    const outcome = await makeCaller().call(request(`http://localhost:${port}/`, { local: true }));
    expect(outcome).toMatchObject({ kind: "unreachable", code: "connection_failed" });
  });

  const rude: [rule: string, speak: (socket: Socket) => void, says: RegExp][] = [
    [
      "a server that hangs up",
      (socket) => socket.destroy(),
      /^localhost closed the connection before it answered \((\w+|without an error)\): read its log/,
    ],
    ["a server that speaks no HTTP", (socket) => socket.end("SSH-2.0-nothing\r\n\r\n"), /^The answer of localhost on port \d+ is not HTTP/],
    [
      "a response that breaks off",
      (socket) => socket.end("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nab"),
      /^localhost closed the connection in the middle of its answer/,
    ],
    ["a response longer than it says", (socket) => socket.end("HTTP/1.1 200 OK\r\ncontent-length: 99999999999999999999\r\n\r\nx"), /is not HTTP/],
    [
      "endless headers",
      (socket) => socket.end(`HTTP/1.1 200 OK\r\nx: ${"y".repeat(100_000)}\r\n\r\n`),
      /^localhost answered with more than 16 KB of headers/,
    ],
    [
      "an endless series of interim statuses",
      (socket) => socket.write(`HTTP/1.1 100 Continue\r\nx: ${"y".repeat(20_000)}`),
      /^localhost answered with (a status of 100 or 101|more than 16 KB)/,
    ],
    [
      "an endless series of status 100",
      (socket) => socket.write("HTTP/1.1 100 Continue\r\n\r\n".repeat(500)),
      /^localhost answered with several interim statuses/,
    ],
    [
      "an endless series of status 103",
      (socket) => socket.write("HTTP/1.1 103 Hints\r\n\r\n".repeat(500)),
      /^localhost answered with several interim statuses/,
    ],
    ["a hang-up after an interim status", (socket) => socket.end("HTTP/1.1 100 Continue\r\n\r\n"), /^localhost closed the connection in the middle/],
    [
      "a switch of protocol",
      (socket) => socket.write("HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n"),
      /^localhost answered with a status of 100 or 101/,
    ],
  ];
  test.each(rude)("%s is connection_failed, with its own message", async (_rule, speak, says) => {
    const port = await listenOn(
      createRawServer((socket) => {
        socket.on("error", () => {});
        socket.once("data", () => speak(socket));
      }),
    );
    const outcome = await makeCaller().call(request(`http://localhost:${port}/`, { local: true }));
    expect(outcome).toMatchObject({ kind: "unreachable", code: "connection_failed", message: expect.stringMatching(says) });
  });
});

describe("an interim status is skipped, because no notice asks for one", () => {
  const OK = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
  const CONTINUE = "HTTP/1.1 100 Continue\r\n\r\n";
  const HINTS = "HTTP/1.1 103 Early Hints\r\nlink: </a.css>\r\n\r\n";
  const rows: [rule: string, pieces: string[], body?: string][] = [
    ["100 before the response", [CONTINUE, OK]],
    ["100 in one chunk with it", [CONTINUE + OK]],
    ["100 without its reason phrase, twice", ["HTTP/1.1 100\r\n\r\n", CONTINUE, OK]],
    ["100 with headers, of HTTP/1.0", ["HTTP/1.0 100 Continue\r\ndate: now\r\n\r\n", OK]],
    ["100 letter by letter, and the response too", [...(CONTINUE + OK)]],
    ["102 and 103, between two of 100", [`HTTP/1.1 102 Processing\r\n\r\n${HINTS}`, HINTS, OK]],
    ["ninety interim statuses", [CONTINUE.repeat(50), HINTS.repeat(40), OK]],
    ["text like one in the response's body", [`HTTP/1.1 200 OK\r\ncontent-length: ${CONTINUE.length}\r\n\r\n`, CONTINUE], CONTINUE],
  ];
  test.each(rows)("%s, over a connection that stays open", async (_rule, pieces, body = "ok") => {
    let connections = 0;
    const port = await listenOn(
      createRawServer((socket) => {
        connections += 1;
        socket.on("error", () => {});
        socket.on("data", async () => {
          for (const piece of pieces) {
            socket.write(piece);
            if (pieces.length > 1) await Bun.sleep(1);
          }
        });
      }),
    );
    const caller = makeCaller();
    for (let call = 0; call < 2; call++)
      expect(await caller.call(request(`http://localhost:${port}/`, { local: true }))).toMatchObject({
        kind: "answered",
        ok: true,
        status: 200,
        body,
      });
    expect(connections).toBe(1);
  });
});

describe("an address rule refuses the call before it connects", () => {
  const rows: [rule: string, url: string, addresses: string[], code: string, final: boolean][] = [
    ["plain http", "http://a.example/", ["8.8.8.8"], "https_only", true],
    ["an IP address", "https://127.0.0.1/", [], "ip_literal", true],
    ["the service's own host", "https://relay.example/", ["8.8.8.8"], "own_host", true],
    ["a name that resolves to an own address", "https://b.example/", ["8.8.4.4"], "own_host", false],
    ["a name without an address", "https://none.example/", [], "unresolvable", false],
    ["a private address", "https://a.example/", ["10.0.0.1"], "private_address", false],
    ["loopback by a name", "https://localhost/", ["127.0.0.1"], "private_address", false],
    ["a mixed result, private last", "https://a.example/", ["8.8.8.8", "10.0.0.1"], "private_address", false],
    ["a mixed result, private first", "https://a.example/", ["::1", "8.8.8.8"], "private_address", false],
    ["a metadata address", "https://metadata.example/", ["169.254.169.254"], "private_address", false],
  ];
  test.each(rows)("%s", async (_rule, url, addresses, code, final) => {
    const before = calls;
    const caller = makeCaller({
      ownHosts: () => ["relay.example", "8.8.4.4"],
      lookup: async () => addresses,
    });
    const outcome = await caller.call(request(url.replace("example/", `example:${sinkPort}/`)));
    expect(outcome).toMatchObject({ kind: "refused", code });
    // A rule that the URL itself breaks is final, but the result of a name server can change.
    expect((outcome as { final?: true }).final ?? false).toBe(final);
    expect(calls).toBe(before);
  });

  test("a name whose lookup fails is unresolvable", async () => {
    const caller = makeCaller({ lookup: () => Promise.reject(new Error("ENOTFOUND")) });
    expect(await caller.call(request("https://a.example/"))).toMatchObject({ code: "unresolvable" });
  });

  test("a loopback name in local development is pinned to loopback without a lookup", async () => {
    const looked: string[] = [];
    const lookup = async (host: string) => {
      looked.push(host);
      return ["8.8.8.8"];
    };
    handle = (_request, response) => response.end("ok");
    const caller = makeCaller({ lookup });
    const outcome = await caller.call(request(`http://x.localhost:${sinkPort}/`, { local: true }));
    expect(outcome).toMatchObject({ kind: "answered", ok: true });
    expect(looked).toEqual([]);
  });
});

describe("over TLS", () => {
  let port: number;
  let tlsCalls = 0;
  const hosts: (string | undefined)[] = [];
  const lookup = async () => ["127.0.0.1"];
  const allowPrivate = ["127.0.0.0/8"];
  const certificateAuthorities = [authority.cert];

  async function listenTls(names: string[], until?: string) {
    const server = createTlsServer({ ...authority.issue(names, until) }, (incoming, response) => {
      tlsCalls++;
      hosts.push(incoming.headers.host);
      response.end("secure");
    });
    return listenOn(server);
  }
  beforeAll(async () => {
    port = await listenTls(["pinned.test"]);
  });

  test("the connection goes to the checked address while the certificate is checked against the name", async () => {
    const caller = makeCaller({ lookup, allowPrivate, certificateAuthorities });
    const outcome = await caller.call(request(`https://Pinned.test.:${port}/`));
    expect(outcome).toMatchObject({ kind: "answered", ok: true, status: 200, body: "secure" });
    expect(hosts).toEqual([`pinned.test:${port}`]);
  });

  test("another address is tried if the first refuses the connection", async () => {
    const both = async () => ["127.0.0.9", "127.0.0.1"];
    const caller = makeCaller({ lookup: both, allowPrivate, certificateAuthorities });
    expect(await caller.call(request(`https://pinned.test:${port}/`))).toMatchObject({ ok: true });
  });

  test("a name that resolves elsewhere after the check (rebinding) is looked up only once", async () => {
    let asked = 0;
    const rebinding = async () => (asked++ === 0 ? ["127.0.0.1"] : ["10.0.0.1"]);
    const caller = makeCaller({ lookup: rebinding, allowPrivate, certificateAuthorities });
    expect(await caller.call(request(`https://pinned.test:${port}/`))).toMatchObject({ ok: true });
    expect(asked).toBe(1);
    expect(await caller.call(request(`https://pinned.test:${port}/`))).toMatchObject({
      code: "private_address",
    });
    expect(asked).toBe(2);
  });

  test.each([
    ["a certificate for another name", "other.test", certificateAuthorities],
    ["a certificate of an unknown authority", "pinned.test", []],
  ])("%s is tls_failed and nothing is sent", async (_rule, host, authorities) => {
    const before = tlsCalls;
    const caller = makeCaller({ lookup, allowPrivate, certificateAuthorities: authorities });
    expect(await caller.call(request(`https://${host}:${port}/`))).toMatchObject({ code: "tls_failed" });
    expect(tlsCalls).toBe(before);
  });

  test("an expired certificate is tls_failed", async () => {
    const expired = await listenTls(["pinned.test"], "20210101000000Z");
    const caller = makeCaller({ lookup, allowPrivate, certificateAuthorities });
    expect(await caller.call(request(`https://pinned.test:${expired}/`))).toMatchObject({
      code: "tls_failed",
    });
  });

  test("a server that speaks plain http is tls_failed", async () => {
    const caller = makeCaller({ lookup, allowPrivate, certificateAuthorities });
    expect(await caller.call(request(`https://pinned.test:${sinkPort}/`))).toMatchObject({
      code: "tls_failed",
    });
  });

  test("every claim of scripts/pin-check.ts holds, in a separate process", async () => {
    const script = join(import.meta.dir, "../../scripts/pin-check.ts");
    const run = Bun.spawn([process.execPath, script], { stdout: "pipe", stderr: "pipe" });
    const lines = (await new Response(run.stdout).text()).trim().split("\n");
    expect(lines.map((line) => (JSON.parse(line) as { holds: boolean }).holds)).toEqual(Array(6).fill(true));
    expect(await run.exited).toBe(0);
  });
});

test("a hanging target does not delay calls to other targets", async () => {
  const caller = makeCaller();
  const hanging: ServerResponse[] = [];
  handle = (incoming, response) => {
    if (incoming.url === "/hang") hanging.push(response);
    else response.end("ok");
  };
  const slow = Array.from({ length: 20 }, () => caller.call(request(`http://localhost:${sinkPort}/hang`, { local: true })));
  const quick = await caller.call(request(`http://localhost:${sinkPort}/quick`, { local: true }));
  expect(quick).toMatchObject({ ok: true });
  while (hanging.length < 20) await new Promise((resolve) => setImmediate(resolve));
  for (const response of hanging) response.end("at last");
  expect((await Promise.all(slow)).every((outcome) => outcome.kind === "answered" && outcome.ok)).toBe(true);
});
