/**
 * Raw bytes on a socket that no client library would send. The response is always an HTTP success or refusal, never a fault or a page of the
 * framework, and the service continues to answer. `RELAY_FUZZ_RUNS=100000` makes a long run.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { connect } from "node:net";
import fc from "fast-check";
import { DEFAULT_LIMITS } from "../../src/base/limit.ts";
import { PATIENCE_MS } from "../kit/patience.ts";
import { HOOK_SECRET, receiverDefinition, saveRelay, signedCall } from "../kit/relay-definition.ts";
import { APP, type RunningService, startRunningService } from "../kit/running-service.ts";

const RUNS = Number(process.env["RELAY_FUZZ_RUNS"] ?? 300);

let running: RunningService;
let host: string;

beforeAll(async () => {
  running = await startRunningService({
    config: {
      limits: {
        ...DEFAULT_LIMITS,
        verifiedEventsPerMinute: 1_000_000,
        eventlessCallsPerMinute: 1_000_000,
        unverifiedCallsPerMinute: 1_000_000,
      },
    },
  });
  host = new URL(running.service.url).host;
  const actions = [{ type: "call_url", url: "https://example.test/" }];
  await saveRelay(running, receiverDefinition({ actions }));
  await saveRelay(
    running,
    receiverDefinition({
      name: "shop",
      actions,
      verify: {
        scheme: "signature",
        header: "x-signature",
        signedPayload: "{url}.{body}",
        encoding: "hex",
      },
    }),
  );
});

afterAll(async () => {
  await running[Symbol.asyncDispose]();
});

interface Heard {
  /** Status codes in order of arrival. */
  statuses: number[];
  text: string;
}

/** Sends the pieces. Resolves after the expected number of responses, when the service closes the connection, or after a time limit. */
function speak(pieces: readonly (string | Uint8Array)[], answers = 1): Promise<Heard> {
  return new Promise((resolve) => {
    let text = "";
    const socket = connect(Number(host.split(":")[1]), "127.0.0.1");
    const read = (): Heard => ({
      statuses: [...text.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, code]) => Number(code)),
      text,
    });
    const end = (): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve(read());
    };
    const timer = setTimeout(end, PATIENCE_MS);
    socket.on("data", (chunk) => {
      text += chunk.toString("latin1");
      if (read().statuses.filter((code) => code !== 100).length >= answers) setImmediate(end);
    });
    socket.on("error", end);
    socket.on("close", end);
    socket.on("connect", () => {
      for (const piece of pieces) socket.write(piece);
    });
  });
}

/** Counts the requests that the relays' pages report as too large. */
async function countTooLarge(): Promise<number> {
  await running.clock.advance(2_000);
  return (await running.rows("SELECT * FROM recent_request WHERE code = 'body_too_large'")).length;
}

let nextId = 0;

/** Returns a request with a valid signature and other headers instead of its length. */
function call(headers: string, write: (body: string) => string = (body) => body): string {
  nextId += 1;
  const signed = signedCall({ id: `socket-${nextId}` });
  const signature = `x-signature: ${signed.headers["x-signature"]}`;
  const head = headers.replaceAll("LENGTH", `content-length: ${signed.body.length}`);
  return `POST /hooks/${APP}/orders HTTP/1.1\r\nhost: ${host}\r\n${signature}\r\n${head}\r\n\r\n${write(signed.body)}`;
}

const chunked = (body: string): string => `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`;
const many = (count: number): string => Array.from({ length: count }, (_, at) => `x-${at}: 1`).join("\r\n");

describe("a request is accepted", () => {
  test.each([
    ["with its length", () => call("LENGTH")],
    ["with its length twice, the same", () => call("LENGTH\r\nLENGTH")],
    ["in chunks", () => call("transfer-encoding: chunked", chunked)],
    ["with a content-encoding it does not have", () => call("LENGTH\r\ncontent-encoding: gzip")],
    ["with a Host that no URL can hold", () => call("LENGTH").replace(host, "a:99999")],
    ["under an absolute address", () => call("LENGTH").replace("POST ", "POST http://elsewhere.test")],
  ])("%s", async (_name, make) => {
    expect((await speak([make()])).statuses).toEqual([200]);
  });
});

describe("a request is refused", () => {
  test.each([
    ["with two lengths", () => call("content-length: 5\r\nLENGTH")],
    ["with a list of lengths", () => call("content-length: 16, 16")],
    ["with a signed length", () => call("content-length: +16")],
    ["with a negative length", () => call("content-length: -1")],
    ["with a length in hex", () => call("content-length: 0x10")],
    ["with a length beyond any number", () => call("content-length: 99999999999999999999")],
    ["with a length and chunks", () => call("LENGTH\r\ntransfer-encoding: chunked", chunked)],
    ["with an unknown transfer-encoding", () => call("transfer-encoding: xchunked", chunked)],
    ["with a chunk of no size", () => call("transfer-encoding: chunked", (body) => `zz\r\n${body}`)],
    ["with a chunk beyond any size", () => call("transfer-encoding: chunked", (b) => `fffffffffffffff\r\n${b}`)],
    ["with a header's name before a space", () => call("LENGTH\r\nx-more : 1")],
    ["with a header folded over two lines", () => call("LENGTH\r\nx-more: 1\r\n 2")],
    ["with a NUL in a header", () => call("LENGTH\r\nx-more: \0")],
    ["with a body over 256 KB, by its length", () => call("content-length: 262145", () => "")],
    ["with a body far over it", () => call("content-length: 999999999", () => "")],
    ["with a header of 100 KB", () => call(`LENGTH\r\nx-more: ${"a".repeat(100_000)}`)],
    ["with five thousand headers", () => call(`LENGTH\r\n${many(5_000)}`)],
    ["with an address of 100 KB", () => call("LENGTH").replace("/orders", `/${"a".repeat(100_000)}`)],
    ["without a Host", () => call("LENGTH").replace(`host: ${host}\r\n`, "")],
    ["with the signature twice", () => call(`LENGTH\r\nx-signature: ${"0".repeat(64)}`)],
  ])("%s", async (_name, make) => {
    const { statuses, text } = await speak([make()]);
    expect(statuses[0]).toBeGreaterThanOrEqual(400);
    expect(statuses[0]).toBeLessThan(500);
    expect(text).not.toContain("<html");
    expect((await fetch(`${running.service.url}/healthz`)).status).toBe(200);
  });
});

test("a chunked body over the limit is refused while it is read, and the connection ends", async () => {
  const piece = `10000\r\n${" ".repeat(65_536)}\r\n`;
  const before = `POST /hooks/${APP}/orders HTTP/1.1\r\nhost: ${host}\r\ntransfer-encoding: chunked\r\n\r\n`;
  const { statuses, text } = await speak([before, ...Array.from({ length: 5 }, () => piece)]);
  expect(statuses).toEqual([413]);
  expect(text).toContain('"code":"body_too_large"');
});

test.each(["content-length: 500", "transfer-encoding: chunked"])(
  "a sender that disconnects in the middle of its body (%s) causes no fault and is not too large",
  async (how) => {
    // Earlier requests are reported after their responses.
    await running.clock.advance(2_000);
    const logged = running.logged.length;
    const tooLarge = await countTooLarge();
    const start = how.startsWith("t") ? "1\r\n{\r\n" : "{";
    await new Promise<void>((resolve) => {
      const socket = connect(Number(host.split(":")[1]), "127.0.0.1");
      socket.on("connect", () => {
        socket.write(`POST /hooks/${APP}/orders HTTP/1.1\r\nhost: ${host}\r\n${how}\r\n\r\n${start}`);
        setTimeout(() => socket.destroy(), 50);
      });
      socket.on("close", () => resolve());
    });
    for (let turn = 0; turn < 50; turn++) expect((await fetch(`${running.service.url}/healthz`)).status).toBe(200);
    expect(running.logged.slice(logged)).toEqual([]);
    expect(await countTooLarge()).toBe(tooLarge);
  },
);

test("a stop does not wait for idle connections that clients keep open", async () => {
  await using own = await startRunningService();
  const socket = connect(own.service.port, "127.0.0.1");
  await new Promise<void>((resolve) => socket.once("connect", () => resolve()));
  // The clock does not move, so a wait by the clock would never end.
  await own.restart();
  socket.destroy();
});

test("senders that never end their body do not delay other responses, and delay a stop for at most ten seconds", async () => {
  const own = await startRunningService();
  await saveRelay(own, receiverDefinition({ actions: [{ type: "call_url", url: "https://example.test/" }] }));
  const port = Number(new URL(own.service.url).port);
  const starts = [
    `POST /hooks/${APP}/orders HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\n{`,
    `POST /hooks/${APP}/orders HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n1\r\n{\r\n`,
    "POST /api/session HTTP/1.1\r\nhost: x\r\norigin: http://x\r\ncontent-length: 1000\r\n\r\n{",
    "GET /healthz HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n",
    "GET /healthz HT",
  ];
  const sockets = await Promise.all(
    Array.from({ length: 100 }, (_, at) => {
      const socket = connect(port, "127.0.0.1");
      socket.on("error", () => undefined);
      return new Promise<typeof socket>((resolve) =>
        socket.on("connect", () => {
          socket.write(starts[at % starts.length] ?? "", () => resolve(socket));
        }),
      );
    }),
  );
  expect((await fetch(`${own.service.url}/healthz`)).status).toBe(200);
  let stopped = false;
  const stopping = own[Symbol.asyncDispose]().then(() => {
    stopped = true;
  });
  for (let second = 0; second < 11 && !stopped; second++) await own.clock.advance(1_000);
  await stopping;
  for (const socket of sockets) socket.destroy();
  expect(own.logged.filter((line) => line.includes('"level":"error"'))).toEqual([]);
});

describe("a request without a usable Host gets its normal response", () => {
  const paths: [string, number][] = [
    ["/healthz", 200],
    ["/api/session", 200],
    ["/api/apps/app_test/development/relays?limit=1", 401],
    ["/nothing", 404],
    ["/client/me", 401],
  ];
  for (const [path, status] of paths) {
    test.each(["a b", "[", "%", "<script>", "a:99999", "", "a/b?c#d", "\u00ff"])(`${path} with "%s"`, async (name) => {
      const { statuses, text } = await speak([Buffer.from(`GET ${path} HTTP/1.1\r\nhost: ${name}\r\n\r\n`, "latin1")]);
      expect({ statuses, page: text.includes("<!doctype") }).toEqual({ statuses: [status], page: false });
    });
    test(`${path} by HTTP/1.0, which has no Host`, async () => {
      expect((await speak([`GET ${path} HTTP/1.0\r\n\r\n`])).statuses).toEqual([status]);
    });
  }
});

describe("a signed receiver URL accepts nothing that was appended", () => {
  const body = '{"id":"appended"}';
  const signed = (): string => {
    const text = `https://relay.example.test/hooks/${APP}/shop.${body}`;
    return new Bun.CryptoHasher("sha256", HOOK_SECRET).update(text).digest("hex");
  };
  const send = (path: string, named = host): Promise<Heard> =>
    speak([`POST ${path} HTTP/1.1\r\nhost: ${named}\r\nx-signature: ${signed()}\r\ncontent-length: ${body.length}\r\n\r\n${body}`]);
  test.each(["?", "?a=1", "??", "/", "/?", "#", "#a", ";a", "%20", "%00", "%2f", ".", "//", "/.."])('with "%s" after it', async (appended) => {
    const { statuses } = await send(`/hooks/${APP}/shop${appended}`);
    expect([400, 401, 404]).toContain(statuses[0] ?? 0);
  });
  test.each(["relay.example.test", "hooks", `hooks:80`, "a", "", "é", "a:99999"])('and is accepted unchanged with the Host "%s"', async (named) => {
    expect((await send(`/hooks/${APP}/shop`, named)).statuses).toEqual([200]);
  });
});

test("random bytes, and random parts of a request, never cause a fault", async () => {
  const bytes = fc.uint8Array({ maxLength: 60 });
  const parts = fc.record({
    method: fc.constantFrom("GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "TRACE", "CONNECT", "X"),
    path: fc.oneof(
      bytes,
      fc.constantFrom("/", "*", "/hooks/app_test/orders", "/%", "/..", "//", "/api/apps/%zz/x/relays").map((text) => Buffer.from(text)),
    ),
    header: bytes,
    value: bytes,
    body: bytes,
  });
  await fc.assert(
    fc.asyncProperty(fc.oneof(parts, bytes), async (sent) => {
      const whole =
        sent instanceof Uint8Array
          ? sent
          : Buffer.concat([
              Buffer.from(`${sent.method} `),
              sent.path,
              Buffer.from(` HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n`),
              sent.header,
              Buffer.from(": "),
              sent.value,
              Buffer.from(`\r\ncontent-length: ${sent.body.length}\r\n\r\n`),
              sent.body,
            ]);
      // The second piece ends anything that the first one left open.
      const { statuses, text } = await speak([whole, "\r\n\r\n\r\n"]);
      for (const code of statuses) expect(code === 505 || code < 500).toBe(true);
      expect(text).not.toContain("Bun");
    }),
    { numRuns: RUNS },
  );
  expect((await fetch(`${running.service.url}/healthz`)).status).toBe(200);
  expect(running.logged.filter((line) => line.includes('"level":"error"'))).toEqual([]);
});
