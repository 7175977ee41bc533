/**
 * A caller cannot choose what a request costs the others. A route reads no more than its fields can hold, and lists a bounded number of problems. The
 * service reads one heavy body in a turn of the event loop, and answers a bounded number of requests of one connection in a turn. The tests count
 * bytes, problems, calls and responses, never time.
 */
import { afterAll, beforeAll, describe, expect, spyOn, test } from "bun:test";
import { connect, type Socket } from "node:net";
import { type TSchema, Type } from "typebox";
import { checkInput, checkShape } from "../../src/base/check-shape.ts";
import { systemClock } from "../../src/base/clock.ts";
import { HEAVY_BODY_BYTES, MAX_MANAGEMENT_BODY_BYTES, MAX_NUMBER_DIGITS, MAX_PIPELINED_REQUESTS, MAX_PROBLEMS } from "../../src/base/limit.ts";
import { Refusal } from "../../src/base/refusal.ts";
import { fields } from "../../src/base/schema.ts";
import { placeArguments, TOOLS } from "../../src/interfaces/api/connector-tool.ts";
import { ROUTES } from "../../src/interfaces/api/route-list.ts";
import { BodyRoom, readJsonBody } from "../../src/interfaces/http/body.ts";
import { maxBodyBytes } from "../../src/interfaces/http/body-size.ts";
import { type ApiServer, startApi } from "../kit/api-server.ts";
import { manage, signIn, visitor } from "../kit/app-visitor.ts";
import { receiverDefinition, signedCall } from "../kit/relay-definition.ts";

let api: ApiServer;
beforeAll(async () => {
  api = await startApi();
  await manage(api, "POST", "/relays", { definition: receiverDefinition({}), secret: "q7Rw2LmZx9Kt4VbN8sHc3D" });
});
afterAll(() => api[Symbol.asyncDispose]());

const MANY = 24_000;
const manyNames = (count = MANY): Record<string, number> => Object.fromEntries(Array.from({ length: count }, (_, at) => [`name${at}`, 1]));

describe("a route reads no more than its fields can hold", () => {
  const SHORT = 32 * 1024;

  test("no route that a stranger can call accepts more than 32 KB", () => {
    const open = ROUTES.filter(({ who }) => who === "open" || who === "client" || who === "owner");
    // This route takes the roles of 24 groups. The session of an owner is checked before its body is read.
    expect(open.filter(({ maxBytes }) => !(maxBytes <= SHORT)).map(({ path }) => path)).toEqual(["/api/oidc"]);
  });

  /** Returns whether some field takes any JSON, any names, a list of any length, or a text as large as a receiver's body. */
  const isOpenEnded = (schema: unknown): boolean => {
    if (typeof schema !== "object" || schema === null) return false;
    const { type, anyOf, properties, items, maxItems, maxLength = 0 } = schema as Record<string, unknown>;
    if (anyOf !== undefined) return (anyOf as unknown[]).some(isOpenEnded);
    if (properties !== undefined) return Object.values(properties as object).some(isOpenEnded);
    if (items !== undefined) return maxItems === undefined || isOpenEnded(items);
    return type === undefined ? !("const" in schema) : type === "object" || Number(maxLength) > 10_000;
  };

  test("a route has the general limit only if a field is open-ended", () => {
    const bounded = ROUTES.filter(({ method, body, rawBytes }) => method !== "GET" && rawBytes === null && !isOpenEnded(body));
    expect(bounded.length).toBeGreaterThan(60);
    const most = bounded.filter(({ maxBytes }) => maxBytes > 3 * SHORT).map(({ path }) => path);
    // This route takes a hundred items, each with a text.
    expect(most).toEqual(["/api/apps/:appId/:environment/sync/pulled"]);
  });

  const ESCAPED = "\\ud83d\\ude00";
  const FITTING: [what: string, schema: TSchema, body: string][] = [
    ["the longest text, each character escaped", fields({ email: Type.String({ maxLength: 700 }) }), `{"email":"${ESCAPED.repeat(700)}"}`],
    [
      "two texts over several lines",
      fields({ a: Type.String({ maxLength: 300 }), b: Type.Optional(Type.String({ maxLength: 300 })) }),
      JSON.stringify({ a: "€".repeat(300), b: "é".repeat(300) }, null, 4),
    ],
    [
      "a full list of objects",
      fields({
        items: Type.Array(fields({ kind: Type.Union([Type.Literal("relay"), Type.Literal("plan")]), at: Type.Integer() }), { maxItems: 200 }),
      }),
      JSON.stringify({ items: Array.from({ length: 200 }, () => ({ kind: "relay", at: Number.MAX_SAFE_INTEGER })) }, null, 2),
    ],
    ["any JSON", fields({ data: Type.Unknown() }), JSON.stringify({ data: "x".repeat(MAX_MANAGEMENT_BODY_BYTES - 100) })],
  ];

  test.each(FITTING)("a route accepts any honest body that its fields can hold: %s", (_what, schema, body) => {
    expect(maxBodyBytes(schema)).toBeGreaterThanOrEqual(Buffer.byteLength(body));
  });

  test.each([
    ["POST", "/api/session"],
    ["POST", "/api/session/link"],
    ["POST", "/api/login/token"],
    ["DELETE", "/api/key"],
  ])("%s %s refuses a megabyte before any byte of it has arrived", async (method, path) => {
    const { answer } = await speak(`${method} ${path} HTTP/1.1\r\nhost: x\r\ncontent-length: 1000000\r\n\r\n`);
    expect(answer).toStartWith("HTTP/1.1 413");
    expect(answer).toContain('"code":"body_too_large"');
  });

  test("a visitor's sign-in refuses a large body too, and accepts an honest one", async () => {
    await using local = await startApi({ mode: "local" });
    const long = await visitor(local, local.keys.app).call("POST", "/auth/code", { email: "a@example.com", ...manyNames() });
    expect([long.status, long.json.code]).toEqual([413, "body_too_large"]);
    expect((await signIn(local, "ann@example.com")).token).toBeString();
  });
});

describe("a response lists at most 20 problems, and the check stops there", () => {
  const record = fields({ attributes: Type.Record(Type.String({ pattern: "^[a-z]+$" }), Type.Integer()) });
  const list = fields({ items: Type.Array(Type.Integer()) });

  /** Returns how many members of the value were read. */
  const countReads = (value: object, check: (counted: object) => void): number => {
    let reads = 0;
    check(
      new Proxy(value, {
        get(target, name) {
          if (typeof name === "string" && /^(name)?\d+$/.test(name)) reads += 1;
          return Reflect.get(target, name);
        },
      }),
    );
    return reads;
  };

  test("for a record of 24,000 names, and for a list of 24,000 entries", () => {
    const names = countReads(manyNames(), (counted) => {
      expect(checkShape(record, { attributes: counted }, { most: MAX_PROBLEMS })).toHaveLength(MAX_PROBLEMS);
    });
    const entries = countReads(
      Array.from({ length: MANY }, () => "x"),
      (counted) => expect(checkShape(list, { items: counted }, { most: MAX_PROBLEMS })).toHaveLength(MAX_PROBLEMS),
    );
    expect([names <= 2 * MAX_PROBLEMS, entries <= 2 * MAX_PROBLEMS]).toEqual([true, true]);
  });

  test("for a body of 24,000 unknown fields", () => {
    try {
      checkInput(fields({ email: Type.String() }), manyNames());
      expect.unreachable();
    } catch (error) {
      expect((error as Refusal).extra.problems).toHaveLength(MAX_PROBLEMS);
    }
  });

  const relay = { ...receiverDefinition({}), ...manyNames(200) };
  const catalog = { products: Object.fromEntries(Array.from({ length: 2_000 }, (_, at) => [`P ${at}`, { title: 1 }])) };
  const ASKED: [what: string, method: string, path: string, body: unknown][] = [
    ["a definition", "POST", "/relays", { definition: relay }],
    ["a definition that is validated", "POST", "/relays/validate", { definition: relay }],
    ["a definition that is explained", "POST", "/relays/explain", { definition: relay }],
    ["reserved names", "POST", "/relays/validate", `{"definition":{"name":"x","more":[${'{"__proto__":1},'.repeat(500)}1]}}`],
    ["a catalog", "POST", "/sync/plan", { relays: [], catalog }],
    ["many relays", "POST", "/sync/plan", { relays: Array.from({ length: 40 }, (_, at) => ({ ...relay, name: `relay${at}` })) }],
    ["a collection", "POST", "/collections", { name: "many", kind: "shared", fields: { a: manyNames(5_000) } }],
    ["attributes", "PATCH", "/persons/per_0", { status: "gone", attributes: manyNames(), ...manyNames(50) }],
  ];

  test.each(ASKED)("%s", async (_what, method, path, body) => {
    const reply = await api.call(api.E + path, { method, key: api.keys.dev, body });
    expect(reply.json.problems.length).toBeGreaterThan(0);
    expect(reply.json.problems.length).toBeLessThanOrEqual(MAX_PROBLEMS);
  });
});

describe("a tool of the connector", () => {
  const tool = (name: string) => TOOLS.find((one) => one.name === name) as (typeof TOOLS)[number];

  test("builds no URL from 24,000 unknown arguments", () => {
    const set = spyOn(URLSearchParams.prototype, "set");
    const append = spyOn(URLSearchParams.prototype, "append");
    try {
      expect(() => placeArguments(tool("list_events"), manyNames())).toThrow(Refusal);
      expect(set.mock.calls.length + append.mock.calls.length).toBeLessThanOrEqual(MAX_PROBLEMS);
    } finally {
      set.mockRestore();
      append.mockRestore();
    }
  });

  test.each(["list_events", "validate_relay"])("%s refuses 24,000 unknown arguments with at most 20 problems", async (name) => {
    const body = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: manyNames() } };
    const reply = await api.call(`${api.E}/mcp`, { method: "POST", key: api.keys.dev, body });
    expect(reply.json.result.isError).toBe(true);
    const refusal = JSON.parse(reply.json.result.content[0].text);
    expect([refusal.code, refusal.problems.length]).toEqual(["invalid_input", MAX_PROBLEMS]);
  });
});

describe("heavy bodies", () => {
  const heavy = JSON.stringify({ text: "x".repeat(HEAVY_BODY_BYTES) });
  const post = (body: string): Request => new Request("http://x/", { method: "POST", body, headers: { "content-length": String(body.length) } });

  test("are read one in each turn of the event loop, and light ones do not wait for them", async () => {
    const room = new BodyRoom(systemClock);
    let turns = 0;
    let done = false;
    const turn = (): void => {
      turns += 1;
      if (!done) setImmediate(turn);
    };
    setImmediate(turn);
    const readIn: number[] = [];
    const order: string[] = [];
    const read = async (body: string, source: string): Promise<void> => {
      await readJsonBody(post(body), MAX_MANAGEMENT_BODY_BYTES, { room, source: () => source });
      if (body === heavy) readIn.push(turns);
      order.push(body === heavy ? source : "light");
    };
    const flood = Array.from({ length: 12 }, () => read(heavy, "stranger"));
    await Promise.all([...flood, read(heavy, "other"), read("{}", "third")]);
    done = true;
    expect(new Set(readIn).size).toBe(readIn.length);
    expect(order[0]).toBe("light");
    // Senders take turns, so another sender waits for one of the flood's bodies and not for all of them.
    expect(order.indexOf("other")).toBeLessThanOrEqual(2);
  });

  test("that wait use bounded memory: more of them from one address are refused, and those of others are not", async () => {
    const room = new BodyRoom(systemClock);
    const large = JSON.stringify({ text: "x".repeat(MAX_MANAGEMENT_BODY_BYTES - 20) });
    const read = (source: string): Promise<string> =>
      readJsonBody(post(large), MAX_MANAGEMENT_BODY_BYTES, { room, source: () => source }).then(
        () => "read",
        (error: unknown) => (error as Refusal).code,
      );
    const flood = Array.from({ length: 30 }, () => read("stranger"));
    const [other, ...answers] = await Promise.all([read("other"), ...flood]);
    expect(other).toBe("read");
    expect(answers.filter((one) => one === "body_capped").length).toBeGreaterThanOrEqual(15);
    expect(await read("stranger")).toBe("read");
  });
});

describe("10,000 requests at once on one connection", () => {
  const unsigned = "content-length: 2\r\n\r\n{}";
  const KINDS: [what: string, request: string][] = [
    ["a health check", "GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n"],
    ["an address that there is not", "GET /nowhere HTTP/1.1\r\nhost: x\r\n\r\n"],
    ["a deep address that there is not", `GET ${"/a".repeat(12)} HTTP/1.1\r\nhost: x\r\n\r\n`],
    ["the API's document", "GET /openapi.json HTTP/1.1\r\nhost: x\r\n\r\n"],
    ["an unsigned call", `POST /hooks/shop/orders HTTP/1.1\r\nhost: x\r\n${unsigned}`],
    ["a call to a name that no relay has", `POST /hooks/shop/ordres HTTP/1.1\r\nhost: x\r\n${unsigned}`],
    ["a receiver that is looked at", "GET /hooks/shop/orders HTTP/1.1\r\nhost: x\r\n\r\n"],
    ["the API without a key", "GET /api/apps HTTP/1.1\r\nhost: x\r\n\r\n"],
    ["the API with a wrong body", "POST /api/session HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n[]"],
  ];

  test.each(KINDS)("%s: the service answers a few and then ends the connection", async (_what, request) => {
    // The first request of a kind loads modules, which must not count.
    const first = await open();
    first.socket.write(request);
    while (first.heard() === "") await Bun.sleep(1);
    first.socket.destroy();
    const few = (await speak(request.repeat(100))).answer.split("HTTP/1.1 ").slice(1);
    // A response as long as the document does not fit into what a connection takes at once.
    if (few.length < MAX_PIPELINED_REQUESTS) expect(few.join("").length).toBeGreaterThan(1_000_000);
    else expect(few.map((one) => /^connection: close\r$/im.test(one)).indexOf(true)).toBe(few.length - 1);
    expect(few.length).toBeLessThanOrEqual(MAX_PIPELINED_REQUESTS);
    const many = (await speak(request.repeat(10_000))).answer.split("HTTP/1.1 ").slice(1);
    expect(many.length).toBeLessThanOrEqual(MAX_PIPELINED_REQUESTS);
  });

  test("a few at a time are all answered", async () => {
    const one = "GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n";
    const { socket, heard } = await open();
    for (let round = 1; round <= 20; round++) {
      socket.write(one.repeat(10));
      while (heard().split("HTTP/1.1 200").length <= round * 10) await Bun.sleep(1);
    }
    socket.destroy();
    expect(heard()).not.toContain("close");
  });
});

describe("a number of more than 1,000 digits is invalid_json", () => {
  const digits = (count: number): string => "7".repeat(count);
  const NUMBERS: [what: string, number: string, taken: boolean][] = [
    ["1,000 digits", digits(MAX_NUMBER_DIGITS), true],
    ["1,001 digits", digits(MAX_NUMBER_DIGITS + 1), false],
    ["100,000 digits", digits(100_000), false],
    ["a negative one", `-${digits(MAX_NUMBER_DIGITS + 1)}`, false],
    ["a fraction of many digits", `0.${digits(MAX_NUMBER_DIGITS)}`, false],
    ["an exponent of many digits", `1e${"0".repeat(MAX_NUMBER_DIGITS)}1`, false],
    ["a text of as many digits", `"${digits(100_000)}"`, true],
    ["a text that looks like a list of them", `"[${digits(50_000)},\\"${digits(50_000)}"`, true],
    ["many short ones", `[${"1234567890,".repeat(200)}1]`, true],
  ];

  test.each(NUMBERS)("%s", async (_what, number, taken) => {
    const body = `{"id":"${crypto.randomUUID()}","amount":${number}}`;
    const { headers } = signedCall(body, "q7Rw2LmZx9Kt4VbN8sHc3D");
    const call = await fetch(`${api.base}/hooks/shop/orders`, { method: "POST", headers, body });
    const said = (await call.json()) as { code?: string; message?: string };
    expect([call.status, said.code]).toEqual(taken ? [200, undefined] : [400, "invalid_json"]);
    if (!taken) expect(said.message).toContain("a number of more than 1,000 digits");
    const saved = await api.call(`${api.E}/relays/validate`, { method: "POST", key: api.keys.dev, body: `{"definition":{"a":${number}}}` });
    expect(saved.json.code === "invalid_json").toBe(!taken);
  });
});

interface Spoken {
  socket: Socket;
  heard(): string;
  closed: Promise<void>;
}

function open(): Promise<Spoken> {
  return new Promise((resolve, reject) => {
    let text = "";
    const socket = connect(Number(new URL(api.base).port), "127.0.0.1");
    const closed = new Promise<void>((done) => socket.on("close", () => done()));
    // A connection that ends with unread data is reset.
    socket.on("error", reject);
    socket.on("data", (chunk) => {
      text += chunk.toString("latin1");
    });
    socket.on("connect", () => resolve({ socket, heard: () => text, closed }));
  });
}

/** Sends these bytes and returns the response once the connection is closed. */
async function speak(bytes: string): Promise<{ answer: string }> {
  const { socket, heard, closed } = await open();
  socket.write(bytes);
  await closed;
  return { answer: heard() };
}
