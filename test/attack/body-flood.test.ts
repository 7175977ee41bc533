/**
 * Floods of half-sent bodies over raw sockets. 1,500 of them use no more than their share of memory, other requests get answers meanwhile, and a slow
 * honest sender gets through. The clock is virtual, and the sockets are real.
 */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { connect, type Socket } from "node:net";
import { MAX_BODIES_PER_ADDRESS_BYTES, MAX_RECEIVER_BODY_BYTES } from "../../src/base/limit.ts";
import { Refusal } from "../../src/base/refusal.ts";
import { BodyRoom } from "../../src/interfaces/http/body.ts";
import { PATIENCE_MS, poll } from "../kit/patience.ts";
import { receiverDefinition, saveRelay, signedCall } from "../kit/relay-definition.ts";
import { APP, type RunningService, startRunningService } from "../kit/running-service.ts";
import { settle, VirtualClock } from "../kit/virtual-clock.ts";

const CALL = [{ type: "call_url", url: "https://example.test/" }];
const LONGEST = MAX_RECEIVER_BODY_BYTES;
const FITS = Math.floor(MAX_BODIES_PER_ADDRESS_BYTES / (LONGEST + 4_096));

let running: RunningService;
let sockets: Socket[];

beforeEach(async () => {
  running = await startRunningService({ config: { trustedProxies: ["127.0.0.1"] } });
  await saveRelay(running, receiverDefinition({ actions: CALL }));
  sockets = [];
});

afterEach(async () => {
  for (const socket of sockets) socket.destroy();
  await running[Symbol.asyncDispose]();
});

interface Sender {
  socket: Socket;
  /** The response so far. */
  heard(): string;
  status(): number;
}

/** Sends the beginning of a request and keeps the socket open. */
function begin(head: string, body: string | Uint8Array, from = "203.0.113.1", path = `/hooks/${APP}/orders`): Promise<Sender> {
  return new Promise((resolve, reject) => {
    let text = "";
    const socket = connect(Number(new URL(running.service.url).port), "127.0.0.1");
    sockets.push(socket);
    socket.on("error", () => undefined);
    socket.on("data", (chunk) => {
      text += chunk.toString("latin1");
    });
    const heard = (): string => text;
    const status = (): number => Number(/^HTTP\/1\.1 (\d{3})/.exec(text)?.[1] ?? 0);
    socket.on("connect", () => {
      socket.write(`POST ${path} HTTP/1.1\r\nhost: x\r\nx-forwarded-for: ${from}\r\n${head}\r\n\r\n`);
      socket.write(body, () => resolve({ socket, heard, status }));
    });
    socket.on("close", () => resolve({ socket, heard, status }));
    setTimeout(() => reject(new Error("The socket never connected.")), PATIENCE_MS).unref();
  });
}

const HALF = Buffer.alloc(LONGEST / 2, 0x61);
const declared = (from?: string): Promise<Sender> => begin(`content-length: ${LONGEST}`, HALF, from);
const chunked = (from?: string): Promise<Sender> => begin("transfer-encoding: chunked", Buffer.concat([Buffer.from("20000\r\n"), HALF]), from);

/** Waits in real time until the service has processed what the sockets sent. */
async function until(done: () => boolean): Promise<void> {
  expect(await poll(done, Boolean, 5)).toBe(true);
}

const good = async (id: string): Promise<number> => (await running.hook("orders", signedCall({ id }))).status;

describe("1,500 half-sent bodies", () => {
  test.each([
    ["of one address", "a declared length", declared, () => undefined, FITS],
    ["of one address", "chunks", chunked, () => undefined, FITS],
    ["of many addresses", "a declared length", declared, (at: number) => `198.51.${at % 250}.7`, 4 * FITS],
  ] as const)("%s, with %s: the service holds few of them and refuses the rest unread", async (_whose, _how, send, from, most) => {
    const senders: Sender[] = [];
    for (let at = 0; at < 1_500; at += 50) {
      senders.push(...(await Promise.all(Array.from({ length: 50 }, (_, more) => send(from(at + more))))));
    }
    const refused = (): Sender[] => senders.filter(({ status }) => status() !== 0);
    await until(() => refused().length >= senders.length - most - 4);
    expect(senders.length - refused().length).toBeGreaterThan(0);
    expect(senders.length - refused().length).toBeLessThanOrEqual(most + 4);
    for (const { status, heard } of refused()) {
      expect(status()).toBe(429);
      expect(heard()).toContain('"code":"body_capped"');
      expect(heard()).toContain("at once. Send the request again after resetAt.");
      expect(heard().toLowerCase()).toContain("connection: close");
    }
    // A new request takes the memory of bodies that have been half-sent for long.
    await running.clock.advance(4_500);
    expect(await good("1")).toBe(200);
  });
});

test("an address that has used its share never blocks another address", async () => {
  const held = await Promise.all(Array.from({ length: FITS + 1 }, () => declared()));
  await until(() => held.some(({ status }) => status() === 429));
  const { headers, body } = signedCall({ id: "other" });
  const answer = await running.hook("orders", {
    headers: { ...headers, "x-forwarded-for": "203.0.113.9" },
    body,
  });
  expect(answer.status).toBe(200);
});

test("a receiver accepts a slow honest sender, and answers 408 to one that never ends", async () => {
  const { headers, body } = signedCall({ id: "slow", more: "x".repeat(LONGEST - 100) });
  const head = `x-signature: ${headers["x-signature"]}\r\ncontent-length: ${body.length}`;
  const slow = await begin(head, body.slice(0, 10));
  const endless = await begin(`content-length: ${LONGEST}`, "{");
  for (let piece = 1; piece <= 9; piece++) {
    await running.clock.advance(4_000);
    slow.socket.write(body.slice(piece * 10, piece * 10 + 10));
  }
  slow.socket.write(body.slice(100));
  await until(() => slow.status() !== 0);
  expect(slow.status()).toBe(200);
  expect(endless.status()).toBe(0);
  await running.clock.advance(20_000);
  await until(() => endless.status() !== 0);
  expect(endless.heard()).toContain('"code":"body_slow"');
  expect(endless.status()).toBe(408);
  const { body: calls } = await running.api("GET", "/calls");
  expect(calls.items.map(({ code }: { code: string }) => code)).toEqual(["body_slow"]);
});

test("management bodies have the same limit: half-sent bodies of a key are refused too", async () => {
  const port = Number(new URL(running.service.url).port);
  const head = `POST /api/apps/${APP}/development/relays HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${running.keys.development}\r\ncontent-length: 1000000\r\n\r\n{`;
  let refused = 0;
  for (let sender = 0; sender < 40; sender++) {
    const socket = connect(port, "127.0.0.1");
    sockets.push(socket);
    socket.on("error", () => undefined);
    socket.on("data", (chunk) => {
      if (/^\S+ 429 /.test(chunk.toString("latin1"))) refused += 1;
    });
    socket.on("connect", () => socket.write(head));
  }
  await until(() => refused > 20);
});

describe("the memory for request bodies", () => {
  const clock = new VirtualClock(0);
  const never = (): Promise<never> => new Promise(() => undefined);
  const refusalOf = async (held: Promise<unknown>): Promise<string | null> => {
    const settled = await Promise.race([
      held.then(
        () => "read",
        (error: unknown) => (error instanceof Refusal ? error.code : String(error)),
      ),
      settle(2).then(() => null),
    ]);
    return settled;
  };

  test("is released when a body is read or breaks off, and is limited by address", async () => {
    const room = new BodyRoom(clock);
    const whole = MAX_BODIES_PER_ADDRESS_BYTES - 4_096;
    expect(
      await refusalOf(
        room.hold(
          () => "a",
          whole,
          async () => new Uint8Array(),
        ),
      ),
    ).toBe("read");
    expect(
      await refusalOf(
        room.hold(
          () => "a",
          whole,
          async () => {
            throw new Error("gone");
          },
        ),
      ),
    ).toBe("body_incomplete");
    const slow = refusalOf(room.hold(() => "a", whole, never));
    expect(await refusalOf(room.hold(() => "a", 1, never))).toBe("body_capped");
    expect(
      await refusalOf(
        room.hold(
          () => "b",
          1,
          async () => new Uint8Array(),
        ),
      ),
    ).toBe("read");
    expect(await slow).toBeNull();
  });

  test("is taken first from the oldest body of the same address, and never from one that just began", async () => {
    const room = new BodyRoom(clock);
    const half = MAX_BODIES_PER_ADDRESS_BYTES / 2 - 4_096;
    const other = room.hold(() => "b", half, never);
    const first = room.hold(() => "a", half, never);
    await settle(1);
    await clock.advance(1_000);
    const second = room.hold(() => "a", half, never);
    await settle(1);
    expect(await refusalOf(room.hold(() => "a", half, never))).toBe("body_capped");
    // An honest upload of eight megabytes can take a minute.
    await clock.advance(60_000);
    expect(await refusalOf(room.hold(() => "a", half, never))).toBe("body_capped");
    await clock.advance(5_500);
    const third = room.hold(() => "a", half, never);
    expect(await refusalOf(first)).toBe("body_slow");
    for (const held of [other, second, third]) expect(await refusalOf(held)).toBeNull();
  });
});

/** A proxy keeps its connections open. A connection with an unread body would delay a stop until the wait for the body ends. */
test.each([
  ["a name that no relay has", `/hooks/${APP}/nobody`, "content-length", 300_000, true],
  ["an address without a route", "/nowhere", "content-length", 300_000, true],
  ["a call of the API without a key", "/api/apps", "content-length", 300_000, true],
  ["a name that no relay has, in chunks", `/hooks/${APP}/nobody`, "transfer-encoding", 300_000, true],
  ["a name that no relay has", `/hooks/${APP}/nobody`, "content-length", 100, false],
] as const)("an unread body sent to %s decides whether the connection ends (%s, %s of %i): %p", async (_name, path, by, size, isEnded) => {
  const said = by === "content-length" ? `content-length: ${size}` : "transfer-encoding: chunked";
  const body = Buffer.alloc(size, 0x61);
  const sent = by === "content-length" ? body : Buffer.concat([Buffer.from(`${size.toString(16)}\r\n`), body, Buffer.from("\r\n0\r\n\r\n")]);
  const { socket, heard } = await begin(said, sent, "203.0.113.1", path);
  let isClosed = false;
  socket.on("close", () => {
    isClosed = true;
  });
  await until(() => heard().includes('"code":'));
  expect(/^connection: close/im.test(heard())).toBe(isEnded);
  if (isEnded) await until(() => isClosed);
});
