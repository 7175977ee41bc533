/**
 * Bodies that are expensive or confusing: depth, width, endless integers, names that every object has, broken text. Each has a valid signature, so
 * the service processes it completely. No body causes a fault, and an accepted one is shown again. `RELAY_FUZZ_RUNS=100000` makes a long run.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createHmac } from "node:crypto";
import fc from "fast-check";
import { DEFAULT_LIMITS } from "../../src/base/limit.ts";
import { HOOK_SECRET, makeOrders, receiverDefinition, saveRelay, TOKEN_RECIPE } from "../kit/relay-definition.ts";
import { APP, type RunningService, startRunningService } from "../kit/running-service.ts";

const RUNS = Number(process.env["RELAY_FUZZ_RUNS"] ?? 200);
const MOST = 256 * 1024;
const FORM = "application/x-www-form-urlencoded";

let running: RunningService;

beforeAll(async () => {
  const most = 1_000_000_000;
  const limits = { ...DEFAULT_LIMITS, verifiedEventsPerMinute: most, unverifiedCallsPerMinute: most };
  running = await startRunningService({ config: { limits } });
  await makeOrders(running);
  const data = { order: "{{event.id}}{{mapped.event_id}}", amount: "{{event.a.b.0.c}}{{mapped.amount}}" };
  const actions = [{ type: "write_record", collection: "orders", data }];
  const map = { event_id: "id", amount: "a", proto: "__proto__.id", made: "constructor.name", deep: "0.0.0" };
  await saveRelay(running, receiverDefinition({ actions, map }));
  await saveRelay(running, receiverDefinition({ name: "field", verify: TOKEN_RECIPE, actions }));
  const params = { scheme: "signature", header: "x-signature", signedPayload: "{params}", encoding: "hex" };
  await saveRelay(running, receiverDefinition({ name: "params", verify: params, actions }));
});

afterAll(async () => {
  await running[Symbol.asyncDispose]();
});

/** Sends the body with a valid signature to `orders`, and unsigned to recipes that must read it first. Returns the response of the first. */
async function send(body: string | Uint8Array, type = "application/json"): Promise<{ status: number; id: string | null; message: string }> {
  const signature = createHmac("sha256", HOOK_SECRET).update(body).digest("hex");
  const headers = { "content-type": type, "x-signature": signature };
  const answers = [];
  for (const name of ["orders", "field", "params"]) answers.push(await running.hook(name, { headers, body }));
  for (const { status, body: said } of answers) {
    expect(status).toBeLessThan(500);
    if (status !== 200) expect(said.message).toBeString();
  }
  const { status = 0, body: said } = answers[0] ?? {};
  return { status, id: said?.eventId ?? null, message: said?.message ?? "" };
}

const fields = (count: number, make: (at: number) => string): string =>
  Array.from({ length: count }, (_, at) => make(at))
    .join("&")
    .slice(0, MOST);

const deep = (levels: number): string => "[".repeat(levels) + "]".repeat(levels);
const wide = (count: number): string => `{${Array.from({ length: count }, (_, at) => `"k${at}":${at}`).join(",")}}`;

describe("a body is accepted", () => {
  test.each<[string, string | Uint8Array]>([
    ["with an integer of a thousand digits", `{"id":"i1","a":${"9".repeat(1_000)}}`],
    ["fourteen thousand names wide", wide(14_000)],
    ["five hundred levels deep", deep(500)],
    ["with one name forty thousand times", `{${'"a":1,'.repeat(40_000)}"a":2}`],
    ["with __proto__ and constructor as names", '{"__proto__":{"id":"x"},"id":"p1","constructor":{"name":"x"}}'],
    ["with a NUL in its id", '{"id":"a\\u0000b"}'],
    ["with half a character in its id", '{"id":"\\ud800"}'],
    ["with an id as long as the body", `{"id":"${"x".repeat(MOST - 20)}"}`],
    ["with an id of forty thousand NULs", `{"id":"${"\\u0000".repeat(40_000)}"}`],
    ["with a number beyond all numbers", '{"id":"n1","a":1e999}'],
    ["with exponents of six digits", '{"id":"n2","a":[1e999999,-1.5E+999999,1e-999999]}'],
    ["of as many digits as a number may have", "9".repeat(1_000)],
    ["of 256 KB of numbers of as many digits", `[${`${"9".repeat(1_000)},`.repeat(260)}1]`],
    ["of a text alone", '"x"'],
    ["of null alone", "null"],
    ["with a byte order mark", '\ufeff{"id":"bom"}'],
  ])("%s, and is shown again", async (_name, body) => {
    const { status, id } = await send(body);
    expect(status).toBe(200);
    await running.drain();
    expect((await running.api("GET", `/events/${id}`)).status).toBe(200);
    expect(({} as Record<string, unknown>)["id"]).toBeUndefined();
  });
});

describe("a body is refused because it is not JSON", () => {
  test.each<[string, string | Uint8Array]>([
    ["501 levels deep", deep(501)],
    ["as deep as it is long", deep(MOST / 2)],
    ["of open brackets alone", "[".repeat(MOST)],
    ["of nothing", ""],
    ["of spaces", " ".repeat(MOST)],
    ["that is no UTF-8", Buffer.from('{"id":"\xff"}', "latin1")],
    ["in UTF-16", Buffer.from('{"id":"u16"}', "utf16le")],
    ["with a raw NUL", '{"id":"a\0b"}'],
  ])("%s", async (_name, body) => {
    expect((await send(body)).status).toBe(400);
  });
});

describe("a form is accepted", () => {
  test.each([
    ["of & alone", "&".repeat(MOST)],
    ["of = alone", "=".repeat(MOST)],
    ["of % alone", "%".repeat(MOST)],
    ["of a thousand names", fields(1_000, (at) => `k${at}=1`)],
    ["of a thousand names between empty ones", fields(1_000, (at) => `&&k${at}=1&`)],
    ["of bytes that are no UTF-8", "%ff".repeat(80_000)],
    ["with __proto__ and constructor as names", "__proto__=1&id=z&constructor=2"],
    ["with a NUL", "id=%00"],
  ])("%s", async (_name, body) => {
    expect((await send(body, FORM)).status).toBe(200);
  });
});

describe("a form is refused because it has too many fields", () => {
  test.each([
    ["of 1,001 names", fields(1_001, (at) => `k${at}=1`)],
    ["of thirty thousand names", fields(30_000, (at) => `k${at}=1`)],
    ["of one name with 20,000 values", fields(20_000, (at) => `a=${at}`)],
  ])("%s", async (_name, body) => {
    const { status, message } = await send(body, FORM);
    expect(status).toBe(400);
    expect(message).toBe("The form has more than 1,000 fields, the limit of a receiver: send fewer fields, or JSON.");
  });
});

test("any JSON that a sender signs is accepted, anything else is refused, and none causes a fault", async () => {
  const body = fc.oneof(
    fc.json({ maxDepth: 6 }),
    fc.string({ unit: "binary" }),
    fc.record({ id: fc.jsonValue(), a: fc.jsonValue() }).map((value) => JSON.stringify(value)),
    fc.uint8Array({ maxLength: 100 }),
    fc.tuple(fc.json(), fc.nat(200)).map(([text, at]) => text.slice(0, at)),
  );
  const type = fc.constantFrom("application/json", FORM, "", "text/plain", "multipart/form-data; boundary=x", "a/b;;=");
  await fc.assert(
    fc.asyncProperty(body, type, async (sent, contentType) => {
      const { status } = await send(typeof sent === "string" ? sent.toWellFormed() : sent, contentType);
      expect([200, 400]).toContain(status);
    }),
    { numRuns: RUNS },
  );
  await running.drain();
  expect((await running.api("GET", "/events?limit=200")).status).toBe(200);
  expect((await fetch(`${running.service.url}/hooks/${APP}/orders`, { method: "POST" })).status).toBeLessThan(500);
  expect(running.logged.filter((line) => line.includes('"level":"error"'))).toEqual([]);
});
