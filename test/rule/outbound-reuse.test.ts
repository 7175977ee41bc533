import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { createServer, type RequestListener, type Server } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import { join } from "node:path";
import { systemClock } from "../../src/base/clock.ts";
import { CALL_TIMEOUT_MS, MAX_KEPT_ANSWER_BYTES } from "../../src/base/limit.ts";
import { type CallerOptions, type CallOutcome, createCaller } from "../../src/platform/outbound/caller.ts";
import { makeAuthority } from "../kit/certificate.ts";
import { poll } from "../kit/patience.ts";
import { HOOK_SECRET, receiverDefinition, signedCall } from "../kit/relay-definition.ts";
import { startRunningService } from "../kit/running-service.ts";
import { VirtualClock } from "../kit/virtual-clock.ts";

/** A server that counts its connections. */
interface Target {
  server: Server;
  port: number;
  /** The open connections. */
  open: Set<Socket>;
  /** The number of connections ever opened. */
  connections: number;
  calls: number;
}

/** A second loopback address. macOS has no other IPv4 one. */
const SECOND = process.platform === "darwin" ? "::1" : "127.0.0.2";
const targets: Target[] = [];
const callers: { close(): void }[] = [];
const sayOk: RequestListener = (_request, response) => response.end("ok");
let answer = sayOk;
let target: Target;

async function listen(server: Server, host = "127.0.0.1", port = 0): Promise<Target> {
  const one: Target = { server, port, open: new Set(), connections: 0, calls: 0 };
  server.on(server.listeners("secureConnection").length > 0 ? "secureConnection" : "connection", (socket: Socket) => {
    one.connections += 1;
    one.open.add(socket);
    socket.on("close", () => one.open.delete(socket));
  });
  server.on("request", () => {
    one.calls += 1;
  });
  await new Promise<void>((resolve) => server.listen(port, host, resolve));
  one.port = (server.address() as AddressInfo).port;
  targets.push(one);
  return one;
}

const listenPlain = (host?: string, port?: number) =>
  listen(
    createServer((...call) => answer(...call)),
    host,
    port,
  );

beforeAll(async () => {
  target = await listenPlain();
});
afterEach(async () => {
  answer = sayOk;
  for (const caller of callers.splice(0)) caller.close();
  await until(() => targets.every(({ open }) => open.size === 0));
});
afterAll(() => {
  for (const { server } of targets) server.close();
});

function makeCaller(options: Partial<CallerOptions> = {}) {
  const caller = createCaller({ concurrency: 32, ownHosts: () => [], allowPrivate: [], clock: systemClock, ...options });
  callers.push(caller);
  const call = (url: string, local = true) => caller.call({ url, body: "{}", signingSecret: "secret", local });
  return { ...caller, call };
}

/** Returns a function that counts the target's connections and calls from now on. */
function countFromNow(one = target) {
  const { connections, calls } = one;
  return () => ({ connections: one.connections - connections, calls: one.calls - calls });
}

async function until(isSo: () => boolean): Promise<void> {
  if (!(await poll(isSo, Boolean, 5))) throw new Error("it never came to be");
}

const url = (path = "/") => `http://localhost:${target.port}${path}`;

describe("a connection is reused", () => {
  test("for consecutive calls to the same origin, and never for another origin", async () => {
    const caller = makeCaller();
    const count = countFromNow();
    for (const path of ["/a", "/b", "/c"]) expect(await caller.call(url(path))).toMatchObject({ ok: true, body: "ok" });
    expect(await caller.call(`http://127.0.0.1:${target.port}/`)).toMatchObject({ ok: true });
    expect(await caller.call(`http://x.localhost:${target.port}/`)).toMatchObject({ ok: true });
    expect(count()).toEqual({ connections: 3, calls: 5 });
  });

  const unusable: [rule: string, listener: RequestListener][] = [
    ["that the server marks as the last", (_q, r) => r.setHeader("connection", "close").end("ok")],
    ["that was not read to its end", (_q, r) => r.end("x".repeat(MAX_KEPT_ANSWER_BYTES + 1))],
    ["that was compressed and not read", (_q, r) => r.writeHead(200, { "content-encoding": "gzip" }).end("x")],
    ["that is followed by another one", (q, r) => r.end("ok", () => q.socket.write("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil"))],
    ["whose server waits at most a second", (_q, r) => r.setHeader("keep-alive", "timeout=1").end("ok")],
  ];
  test.each(unusable)("but not after a response %s", async (_rule, listener) => {
    const caller = makeCaller();
    const count = countFromNow();
    answer = listener;
    expect(await caller.call(url())).toMatchObject({ ok: true });
    await Bun.sleep(20);
    answer = sayOk;
    expect(await caller.call(url())).toMatchObject({ ok: true, body: "ok" });
    expect(count()).toEqual({ connections: 2, calls: 2 });
  });

  test("until a second before the server closes it, as the server announced", async () => {
    const caller = makeCaller();
    const closed: string[] = [];
    const callAt = async (host: string): Promise<void> => {
      await caller.call(`http://${host}:${target.port}/`);
      [...target.open].at(-1)?.once("close", () => closed.push(host));
    };
    answer = (_request, response) => response.setHeader("keep-alive", "timeout=2").end("ok");
    await callAt("localhost");
    // A server without a keep-alive header waits longer.
    answer = sayOk;
    await callAt("127.0.0.1");
    await until(() => closed.length === 2);
    expect(closed).toEqual(["localhost", "127.0.0.1"]);
  });

  test("for half a minute, however busy", async () => {
    const clock = new VirtualClock(0);
    const caller = makeCaller({ clock });
    const count = countFromNow();
    await caller.call(url());
    await clock.advance(29_999);
    await caller.call(url());
    expect(count()).toEqual({ connections: 1, calls: 2 });
    await clock.advance(1);
    await caller.call(url());
    expect(count()).toEqual({ connections: 2, calls: 3 });
  });
});

describe("the look-up of each attempt decides", () => {
  const authority = makeAuthority("Test authority");
  const certificateAuthorities = [authority.cert];
  const allowPrivate = ["127.0.0.1", SECOND];
  let addresses: string[];
  let first: Target;
  let second: Target;
  const lookup = async () => addresses;

  beforeAll(async () => {
    const listener: RequestListener = (_request, response) => response.end("secure");
    const issued = authority.issue(["moves.test", "other.test"]);
    first = await listen(createTlsServer({ ...issued }, listener));
    second = await listen(createTlsServer({ ...issued }, listener), SECOND, first.port);
  });

  test("a name that resolves elsewhere gets a new connection, and the old one is closed", async () => {
    const caller = makeCaller({ lookup, allowPrivate, certificateAuthorities });
    const [atFirst, atSecond] = [countFromNow(first), countFromNow(second)];
    addresses = ["127.0.0.1"];
    for (let call = 0; call < 2; call++) expect(await caller.call(`https://moves.test:${first.port}/`, false)).toMatchObject({ ok: true });
    addresses = [SECOND];
    for (let call = 0; call < 2; call++) expect(await caller.call(`https://moves.test:${first.port}/`, false)).toMatchObject({ ok: true });
    expect([atFirst(), atSecond()]).toEqual([
      { connections: 1, calls: 2 },
      { connections: 1, calls: 2 },
    ]);
    await until(() => first.open.size === 0);
    expect(second.open.size).toBe(1);
  });

  const refusals: [rule: string, addresses: string[], code: string][] = [
    ["a private address", ["10.0.0.1"], "private_address"],
    ["the connected address and a private one", ["127.0.0.1", "10.0.0.1"], "private_address"],
    ["the service's own", ["127.0.0.77"], "own_host"],
    ["nothing", [], "unresolvable"],
  ];
  test.each(refusals)("a name that resolves to %s is refused despite an idle connection, which is closed", async (_rule, found, code) => {
    const caller = makeCaller({ lookup, allowPrivate, certificateAuthorities, ownHosts: () => ["127.0.0.77"] });
    const count = countFromNow(first);
    addresses = ["127.0.0.1"];
    expect(await caller.call(`https://moves.test:${first.port}/`, false)).toMatchObject({ ok: true });
    addresses = found;
    expect(await caller.call(`https://moves.test:${first.port}/`, false)).toMatchObject({ kind: "refused", code });
    expect(count()).toEqual({ connections: 1, calls: 1 });
    await until(() => first.open.size === 0);
  });

  test("a host that became the service's own is refused despite an idle connection", async () => {
    const own: string[] = [];
    const caller = makeCaller({ lookup, allowPrivate, certificateAuthorities, ownHosts: () => own });
    const count = countFromNow(first);
    addresses = ["127.0.0.1"];
    expect(await caller.call(`https://moves.test:${first.port}/`, false)).toMatchObject({ ok: true });
    own.push("moves.test");
    expect(await caller.call(`https://moves.test:${first.port}/`, false)).toMatchObject({ code: "own_host" });
    expect(count().calls).toBe(1);
  });

  test("a connection serves only the name that its certificate was checked against", async () => {
    const caller = makeCaller({ lookup, allowPrivate, certificateAuthorities });
    const count = countFromNow(first);
    addresses = ["127.0.0.1"];
    for (const host of ["moves.test", "other.test", "wrong.test", "moves.test"]) {
      const outcome = await caller.call(`https://${host}:${first.port}/`, false);
      expect(outcome).toMatchObject(host === "wrong.test" ? { code: "tls_failed" } : { ok: true });
    }
    expect(count().calls).toBe(3);
    expect(first.open.size).toBe(2);
  });

  test("a connection whose certificate has expired is not reused", async () => {
    const clock = new VirtualClock(Date.parse("2026-01-01T00:00:00Z"));
    const caller = makeCaller({ lookup, allowPrivate, certificateAuthorities, clock });
    const count = countFromNow(first);
    addresses = ["127.0.0.1"];
    await caller.call(`https://moves.test:${first.port}/`, false);
    clock.jump(Date.parse("2100-01-01T00:00:00Z") - clock.now());
    await caller.call(`https://moves.test:${first.port}/`, false);
    expect(count()).toEqual({ connections: 2, calls: 2 });
  });
});

describe("idle connections are limited", () => {
  /** Makes this many concurrent calls to each of these hosts. */
  async function callAtOnce(caller: ReturnType<typeof makeCaller>, hosts: readonly string[], each: number): Promise<CallOutcome[]> {
    const waiting: (() => void)[] = [];
    answer = (_request, response) => waiting.push(() => response.end("ok"));
    const calls = hosts.flatMap((host) => Array.from({ length: each }, () => caller.call(`http://${host}:${target.port}/`)));
    await until(() => waiting.length === calls.length);
    for (const end of waiting) end();
    answer = sayOk;
    return Promise.all(calls);
  }

  test("to the calls that ran at once to an origin, which later rounds use again", async () => {
    // The clock does not move, so no connection gets too old on a slow machine.
    const caller = makeCaller({ clock: { ...systemClock, monotonicMs: () => 0 } });
    const count = countFromNow();
    for (let round = 0; round < 4; round++) await callAtOnce(caller, ["localhost"], 32);
    expect(count()).toEqual({ connections: 32, calls: 128 });
    await callAtOnce(caller, ["localhost"], 40);
    expect(count()).toEqual({ connections: 40, calls: 168 });
  });

  test("to 64 in total, and closing the caller closes them", async () => {
    const caller = makeCaller();
    const hosts = Array.from({ length: 12 }, (_, index) => `h${index}.localhost`);
    await callAtOnce(caller, hosts, 8);
    await until(() => target.open.size === 64);
    const count = countFromNow();
    expect(await caller.call(`http://h11.localhost:${target.port}/`)).toMatchObject({ ok: true });
    expect(count().connections).toBe(0);
    expect(await caller.call(`http://h0.localhost:${target.port}/`)).toMatchObject({ ok: true });
    expect(count().connections).toBe(1);
    caller.close();
    await until(() => target.open.size === 0);
    expect(await caller.call(url())).toMatchObject({ ok: true });
    await until(() => target.open.size === 0);
  });

  test("to the number of calls that may run at once, if it is larger", async () => {
    const caller = makeCaller({ concurrency: 70 });
    const count = countFromNow();
    for (let round = 0; round < 2; round++) await callAtOnce(caller, ["a.localhost", "b.localhost"], 35);
    expect(count()).toEqual({ connections: 70, calls: 140 });
  });

  test("and a call in progress when the caller closes succeeds and leaves no connection", async () => {
    const caller = makeCaller();
    let end = () => {};
    answer = (_request, response) => {
      end = () => response.end("late");
      caller.close();
    };
    const outcome = caller.call(url());
    await until(() => target.open.size === 1);
    await Bun.sleep(20);
    end();
    expect(await outcome).toMatchObject({ ok: true, body: "late" });
    await until(() => target.open.size === 0);
  });

  test("and no connection outlives the service", async () => {
    await using running = await startRunningService({ config: { mode: "local" }, environments: ["local"] });
    const definition = receiverDefinition({ actions: [{ type: "call_url", url: url() }] });
    expect((await running.api("POST", "/relays", { definition, secret: HOOK_SECRET }, "local")).status).toBe(201);
    await running.hook("orders", signedCall({ id: "one" }));
    await running.drain();
    expect(target.open.size).toBe(1);
    await running.service[Symbol.asyncDispose]();
    await until(() => target.open.size === 0);
  });

  test("and no connection keeps the process alive", async () => {
    // Timers longer than a moment never fire here, so no idle connection is ever closed.
    const source = `
      const later = setTimeout;
      globalThis.setTimeout = (work, ms, ...given) => later(work, ms < 400 ? ms : 2 ** 31 - 1, ...given);
      const { createCaller } = await import(${JSON.stringify(join(import.meta.dir, "../../src/platform/outbound/caller.ts"))});
      const { systemClock } = await import(${JSON.stringify(join(import.meta.dir, "../../src/base/clock.ts"))});
      const caller = createCaller({ concurrency: 32, ownHosts: () => [], allowPrivate: [], clock: systemClock });
      await caller.warmUp(new URL(${JSON.stringify(url())}));
      const { ok } = await caller.call({ url: ${JSON.stringify(url())}, body: "{}", signingSecret: "secret", local: true });
      console.log(ok);`;
    const run = Bun.spawn([process.execPath, "-e", source], { stdout: "pipe", stderr: "inherit" });
    expect(await new Response(run.stdout).text()).toBe("true\n");
    expect(await run.exited).toBe(0);
  });
});

test("a notice is not sent again when a server closes without a response after a while, because it may have read the notice", async () => {
  const caller = makeCaller();
  await caller.call(url());
  const count = countFromNow();
  answer = (request) => setTimeout(() => request.socket.destroy(), 1_100);
  expect(await caller.call(url())).toMatchObject({ kind: "unreachable", code: "connection_failed" });
  expect(count()).toEqual({ connections: 0, calls: 1 });
});

test("a response that breaks off over a reused connection fails, and the notice is not sent again", async () => {
  const caller = makeCaller();
  await caller.call(url());
  const count = countFromNow();
  answer = (request) => request.socket.end("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nab");
  expect(await caller.call(url())).toMatchObject({ kind: "unreachable", code: "connection_failed" });
  expect(count()).toEqual({ connections: 0, calls: 1 });
});

test("a server that closes all idle connections makes no call fail", async () => {
  // The clock does not move, so that even a slow machine learns of the end within a second.
  const caller = makeCaller({ clock: new VirtualClock(0) });
  for (let round = 0; round < 20; round++) {
    expect(await caller.call(url())).toMatchObject({ ok: true });
    for (const socket of target.open) socket.destroy();
  }
});

const late: [rule: string, listener: RequestListener, expected: object][] = [
  ["that never responds is a timeout", () => {}, { kind: "unreachable", code: "timeout" }],
  ["that drips past ten seconds counts by its status", (_q, r) => r.writeHead(202).write("begun"), { ok: true, status: 202, body: "begun" }],
];
test.each(late)("a server %s over a reused connection too, which serves no further call", async (_rule, listener, expected) => {
  const clock = new VirtualClock(0);
  const caller = makeCaller({ clock });
  await caller.call(url());
  const count = countFromNow();
  answer = listener;
  const outcome = caller.call(url());
  await until(() => count().calls === 1);
  await clock.advance(CALL_TIMEOUT_MS - 1);
  await Bun.sleep(50);
  expect(await Promise.race([outcome, "waiting"])).toBe("waiting");
  await clock.advance(1);
  expect(await outcome).toMatchObject(expected);
  await until(() => target.open.size === 0);
  expect(count()).toEqual({ connections: 0, calls: 1 });
});
