/**
 * Floods of requests: expensive ones, repeated ones, and ones that `when` ignores. The bad requests of an address never block its cheap good ones,
 * and only events use up the app's limit for the minute.
 */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { createHmac } from "node:crypto";
import { DEFAULT_LIMITS } from "../../src/base/limit.ts";
import { Refusal } from "../../src/base/refusal.ts";
import type { Receiver } from "../../src/engine/receiver/receive.ts";
import { ReceivedBody, receiveRequest } from "../../src/rules/verify/received-request.ts";
import { signature } from "../../src/rules/verify/signature.ts";
import { makeBareReceiver } from "../kit/bare-receiver.ts";
import { HOOK_SECRET, receiverDefinition, saveRelay, signedCall, TOKEN_RECIPE } from "../kit/relay-definition.ts";
import { type Answer, APP, type RunningService, startRunningService } from "../kit/running-service.ts";
import { bytes, FORM_TYPE, makeKeys, recipe } from "../kit/sender-call.ts";
import { START_MS, settle } from "../kit/virtual-clock.ts";

const CALL = [{ type: "call_url", url: "https://example.test/" }];
const LIMITS = {
  ...DEFAULT_LIMITS,
  verifiedEventsPerMinute: 3,
  eventlessCallsPerMinute: 5,
  unverifiedCallsPerMinute: 10,
};
const SECONDS = START_MS / 1_000;

let running: RunningService;

beforeEach(async () => {
  running = await startRunningService({ config: { limits: LIMITS } });
});

afterEach(async () => {
  await running[Symbol.asyncDispose]();
});

const told = ({ status, body }: Answer): string =>
  status !== 200 ? `${status} ${body.code}` : body.duplicate ? "duplicate" : (body.ignored ?? "taken");

describe("only events use up the app's limit for the minute", () => {
  beforeEach(async () => {
    await saveRelay(running, receiverDefinition({ actions: CALL, when: { event_type: "paid" } }));
  });
  const send = async (id: string, type = "paid"): Promise<string> => told(await running.hook("orders", signedCall({ id, type })));

  test("duplicates and ignored requests do not count", async () => {
    expect(await send("1")).toBe("taken");
    expect(await send("1")).toBe("duplicate");
    expect(await send("1")).toBe("duplicate");
    expect(await send("x", "open")).toBe("when");
    expect(await send("x", "open")).toBe("when");
    expect(await send("2")).toBe("taken");
    expect(await send("3")).toBe("taken");
    expect(await send("4")).toBe("429 receiver_capped");
  });

  test("a duplicate is reported as one after the limit is reached, and a new event is accepted in the next minute", async () => {
    for (const id of ["1", "2", "3"]) expect(await send(id)).toBe("taken");
    expect(await send("4")).toBe("429 receiver_capped");
    expect(await send("2")).toBe("duplicate");
    expect(await send("4")).toBe("429 receiver_capped");
    await running.clock.advance(60_000);
    expect(await send("4")).toBe("taken");
  });

  test("many requests at once never exceed it, in any order", async () => {
    const ids = Array.from({ length: 12 }, (_, at) => String(Math.floor(at / 2)));
    const answers = await Promise.all(ids.map((id) => send(id)));
    const rows = await running.rows<{ count: number }>("SELECT count(*) AS count FROM event");
    expect(rows).toEqual([{ count: 3 }]);
    expect(answers.filter((answer) => answer === "taken")).toHaveLength(3);
    expect(answers.filter((answer) => answer === "duplicate").length).toBeGreaterThan(0);
  });

  test.each([
    ["duplicates", "paid", "duplicate"],
    ["ignored calls", "open", "when"],
    ["signed bodies that are not JSON", null, "400 invalid_json"],
  ])("%s have their own limit for each relay, with its own message", async (_words, type, answer) => {
    await saveRelay(running, receiverDefinition({ name: "other", actions: CALL }));
    const again = () => running.hook("orders", signedCall(type === null ? "id=1" : { id: "1", type }));
    expect(await send("1")).toBe("taken");
    for (let turn = 0; turn < 5; turn++) expect(told(await again())).toBe(answer);
    const capped = await again();
    expect(told(capped)).toBe("429 receiver_capped");
    expect(capped.body.message).toBe(
      "This relay can receive 5 requests in a minute that create no event (duplicates, ignored requests, bodies that are not JSON), and reached this limit. Send the request again after resetAt.",
    );
    expect(capped.body.resetAt).toBe(new Date(START_MS + 60_000).toISOString());
    expect(await send("2")).toBe("taken");
    expect(told(await running.hook("other", signedCall({ id: "1" })))).toBe("taken");
    expect(told(await running.hook("other", signedCall({ id: "1" })))).toBe("duplicate");
    await running.clock.advance(60_000);
    expect(told(await again())).toBe(answer);
  });
});

describe("the service checks the address's limit before any work of more than a millisecond", () => {
  const CALLS = {
    "a body field in 200 KB of JSON": (good: boolean) => {
      const signed = createHmac("sha256", HOOK_SECRET).update(`${SECONDS}tok`).digest("hex");
      const found = good ? signed : "0".repeat(64);
      const body = { signature: found, timestamp: SECONDS, token: "tok", more: "x".repeat(200_000) };
      return { name: "field", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
    },
    "the fields of a form of 200 KB": (good: boolean) => {
      const more = "x".repeat(200_000);
      const signed = createHmac("sha256", HOOK_SECRET).update(`more${more}`).digest("hex");
      const headers = { "content-type": FORM_TYPE, "x-signature": good ? signed : "0".repeat(64) };
      return { name: "params", headers, body: `more=${more}` };
    },
    "eight signatures over 200 KB by a public key": (good: boolean) => {
      const body = `{"id":"${"x".repeat(200_000)}"}`;
      const draft = { body: bytes(body), contentType: "", receiverUrl: "", nowMs: START_MS };
      const { headers } = signature.sign(KEYED, keys.privateKey, draft);
      const bad = Array.from({ length: 7 }, () => `v1=${Buffer.alloc(64).toString("hex")}`);
      const all = [...bad, good ? headers["x-signature"] : bad[0]].join(",");
      return { name: "keyed", headers: { "x-signature": all }, body };
    },
  };
  const KEYED = recipe({
    algorithm: "ed25519",
    header: "x-signature",
    signatureKey: "v1",
    signedPayload: "{body}",
  });
  const keys = makeKeys("ed25519");
  const params = { scheme: "signature", header: "x-signature", signedPayload: "{params}" };

  beforeEach(async () => {
    const of = (name: string, verify: object) => receiverDefinition({ name, actions: CALL, map: {}, verify: verify as Record<string, unknown> });
    await saveRelay(running, of("field", TOKEN_RECIPE));
    await saveRelay(running, of("params", params));
    await saveRelay(running, of("keyed", KEYED), keys.stored);
    await saveRelay(running, receiverDefinition({ actions: CALL }));
  });

  test.each(Object.entries(CALLS))("%s", async (_words, make) => {
    const send = async (good: boolean): Promise<string> => {
      const { name, ...init } = make(good);
      return told(await running.hook(name, init as Parameters<RunningService["hook"]>[1]));
    };
    for (let turn = 0; turn < 10; turn++) expect(await send(false)).toBe("401 bad_signature");
    // The service counts a rejected request once it knows the cause.
    await settle();
    expect(await send(false)).toBe("429 source_capped");
    expect(await send(true)).toBe("429 source_capped");
    // A cheap good request of the same address is still checked.
    expect(told(await running.hook("orders", signedCall({ id: "1" })))).toBe("taken");
    await running.clock.advance(2_000);
    const { body } = await running.api("GET", "/calls?limit=3");
    expect(body.items[0].code).toBe("source_capped");
    await running.clock.advance(60_000);
  });

  test("a request that verifies is accepted, whatever its address did before", async () => {
    const bad = { ...signedCall({ id: "0" }), body: '{"id":"1"}' };
    for (let turn = 0; turn < 10; turn++) expect(told(await running.hook("orders", bad))).toBe("401 bad_signature");
    expect(told(await running.hook("orders", bad))).toBe("429 source_capped");
    // Checking its signature costs less than a millisecond, and reading its JSON costs more.
    expect(told(await running.hook("orders", signedCall({ id: "1", more: "x".repeat(200_000) })))).toBe("taken");
  });

  test("a good request is accepted while the limit is not reached", async () => {
    for (const [words, make] of Object.entries(CALLS)) {
      const { name, ...init } = make(true);
      expect([words, told(await running.hook(name, init as Parameters<RunningService["hook"]>[1]))]).toEqual([words, "taken"]);
    }
  });

  test("a good request of another address is accepted, however many addresses send bad ones", async () => {
    const { store, relays, log, sealer } = running.service;
    const limits = { ...LIMITS, unverifiedCallsPerMinute: 1 };
    const { receiver: flooded } = makeBareReceiver({ store, clock: running.clock, relays, log, sealer, limits });
    const isRefused = async (source: string) => (await flooded.rejectUnknownReceiver(APP, "none", () => source))?.code;
    for (let n = 0; n < 60_000; n++) await isRefused(`2001:db8:${n.toString(16)}::/64`);
    expect(await isRefused("2001:db8:ea5f::/64")).toBe("source_capped");
    const { name, headers, body } = CALLS["the fields of a form of 200 KB"](true);
    const call = { appId: APP, name, headers: new Headers(headers), body: bytes(body), search: "", source: () => "203.0.113.9" };
    expect(await flooded.receive(call)).toMatchObject({ received: true });
    expect(await isRefused("203.0.113.9")).toBe("unknown_receiver");
    await flooded.stop();
  });
});

describe("the service finds the cause of a rejected request after its response, and skips that in a flood", () => {
  const flood = async (flooded: Receiver, count: number, body: Uint8Array, from = 0): Promise<string[]> => {
    const headers = new Headers({ "x-signature": "0".repeat(64) });
    const answers: string[] = [];
    for (let n = from; n < from + count; n++) {
      const call = { appId: APP, name: "orders", headers, body, search: "", source: () => `2001:db8:${n.toString(16)}::/64` };
      const answer = await flooded.receive(call);
      answers.push(answer instanceof Refusal ? answer.code : "taken");
    }
    return answers;
  };
  const start = async (): Promise<Receiver> => {
    const { store, relays, log, sealer } = running.service;
    await saveRelay(running, receiverDefinition({ actions: CALL }));
    return makeBareReceiver({ store, clock: running.clock, relays, log, sealer, limits: LIMITS }).receiver;
  };
  const lookedInto = async (): Promise<number> => {
    const rows = await running.rows<{ cause: string }>("SELECT cause FROM recent_request");
    return rows.filter(({ cause }) => cause.includes("No request has verified here yet")).length;
  };

  test("it finds every cause of a few requests", async () => {
    const flooded = await start();
    expect(new Set(await flood(flooded, 10, bytes("{}")))).toEqual(new Set(["bad_signature"]));
    await flooded.writeRecentRequests();
    expect(await lookedInto()).toBe(10);
    await flooded.stop();
  });

  test("it finds few causes of ten thousand requests at once, and the others keep the plain cause", async () => {
    const flooded = await start();
    const large = bytes(JSON.stringify({ more: "x".repeat(30_000) }));
    for (let part = 0; part < 20; part++) {
      expect(new Set(await flood(flooded, 500, large, part * 500))).toEqual(new Set(["bad_signature"]));
      await running.rows("SELECT 1 FROM relay");
    }
    await flooded.writeRecentRequests();
    expect(await lookedInto()).toBeLessThan(100);
    const { headers, body } = signedCall({ id: "1", type: "paid" });
    const good = { appId: APP, name: "orders", headers: new Headers(headers), body: bytes(body), search: "", source: () => "203.0.113.9" };
    expect(await flooded.receive(good)).toMatchObject({ received: true });
    await flooded.stop();
  });
});

describe("an impossible signature is refused before a form's fields are read", () => {
  const fields = recipe({ header: "x-signature", signedPayload: "{params}" });
  const verifier = signature.prepare(fields, HOOK_SECRET);
  const charged = (given: string, body: string): [string, number] => {
    let us = 0;
    const headers = new Headers({ "x-signature": given, "content-type": FORM_TYPE });
    const received = new ReceivedBody(bytes(body), FORM_TYPE, (more) => {
      us += more;
    });
    const call = receiveRequest({ headers, body: received, search: "", receiverUrl: "", nowMs: START_MS });
    const verdict = verifier.verify(call);
    return [verdict.verified ? "verified" : verdict.code, us];
  };
  const wide = Array.from({ length: 900 }, (_, at) => `${at}=${"x".repeat(280)}`).join("&");
  test.each(["", "zz", "0".repeat(63), "0".repeat(66), "g".repeat(64), `${"0".repeat(62)}é`])('a signature of "%s" costs no parsing', (given) => {
    const [code, us] = charged(given, wide);
    expect(code).toBe("bad_signature");
    expect(us).toBeLessThan(charged("0".repeat(64), wide)[1] / 2);
  });
  test("43,000 names are counted, not read, and refused with a message", async () => {
    const many = Array.from({ length: 43_000 }, (_, at) => at.toString(36)).join("&");
    expect(charged("0".repeat(64), many)).toEqual(["invalid_json", 0]);
    await saveRelay(running, receiverDefinition({ name: "params", actions: CALL, verify: fields as never }));
    const headers = { "content-type": FORM_TYPE, "x-signature": "0".repeat(64) };
    const answer = await running.hook("params", { headers, body: many });
    expect([answer.status, answer.body.code, answer.body.message]).toEqual([
      400,
      "invalid_json",
      "The form has more than 1,000 fields, the limit of a receiver: send fewer fields, or JSON.",
    ]);
  });
});
