/** Tests the request log over HTTP: what an owner learns about a rejected, ignored or duplicate request, what is never stored, and the cost. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { createHmac } from "node:crypto";
import { DEFAULT_LIMITS, MAX_RECENT_CALLS } from "../../src/base/limit.ts";
import { runCommand } from "../kit/cli-io.ts";
import { HOOK_SECRET, makeOrders, receiverDefinition, saveRelay, signedCall } from "../kit/relay-definition.ts";
import { type RunningService, startRunningService } from "../kit/running-service.ts";
import { START_MS } from "../kit/virtual-clock.ts";

const OTHER_SECRET = "anotherSecretOfTwentyFour1";
const BARE = { headers: { "content-type": "application/json" }, body: '{"private":"of nobody known"}' };

let running: RunningService;

beforeEach(async () => {
  running = await startRunningService({ environments: ["development", "production"] });
  await makeOrders(running);
});

afterEach(async () => {
  await running[Symbol.asyncDispose]();
});

// biome-ignore lint/suspicious/noExplicitAny: items are asserted whole
async function calls(query = "", environment: "development" | "production" = "development"): Promise<any[]> {
  const answer = await running.api("GET", `/calls${query}`, undefined, environment);
  expect(answer.status).toBe(200);
  return answer.body.items;
}

const countEvents = async (): Promise<number> => (await running.rows("SELECT seq FROM event")).length;

describe("a request without an event is listed with its cause", () => {
  const TIMED = {
    scheme: "signature",
    header: "x-signature",
    signatureKey: "v1",
    timestampKey: "t",
    signedPayload: "{timestamp}.{body}",
    encoding: "hex",
  };
  const rows: [string, Record<string, unknown>, () => { headers: Record<string, string>; body: string }, Record<string, unknown>][] = [
    ["a missing header is named", {}, () => BARE, { outcome: "refused", code: "bad_signature", cause: "header x-signature is missing" }],
    [
      "a signature that does not match says that the secret or the recipe differs",
      {},
      () => signedCall({ id: "a" }, OTHER_SECRET),
      {
        outcome: "refused",
        code: "bad_signature",
        cause: "the signature does not match; the secret or the recipe differs from the sender's. No request has verified here yet",
        claimed: { id: "a", type: null },
      },
    ],
    [
      "a wrong clock shows the difference",
      { verify: TIMED },
      () => ({ headers: { "x-signature": "t=1768477488,v1=00" }, body: "{}" }),
      {
        outcome: "refused",
        code: "bad_signature",
        cause: "the timestamp is 912 seconds old, and at most 300 are allowed",
      },
    ],
    [
      "a verified body with invalid JSON says so",
      {},
      () => signedCall("{not json"),
      {
        outcome: "refused",
        code: "invalid_json",
        cause: "The body is not JSON in UTF-8: send JSON, or a form as a form post.",
      },
    ],
    [
      "an oversized body says so",
      {},
      () => signedCall("x".repeat(256 * 1024 + 1)),
      { outcome: "refused", code: "body_too_large", cause: "the body is larger than 256 KB" },
    ],
    [
      "an ignored request names the field of when that did not match, and its value",
      { when: { event_type: "order.paid" } },
      () => signedCall({ id: "a", type: "order.lost" }),
      {
        outcome: "ignored",
        code: "when",
        cause: 'when.event_type must be "order.paid" and the request has "order.lost"',
      },
    ],
    [
      "an ignored request names each text of a list in when",
      { when: { event_type: ["order.paid", "order.renewed"] } },
      () => signedCall({ id: "a", type: "order.lost" }),
      {
        outcome: "ignored",
        code: "when",
        cause: 'when.event_type must be "order.paid" or "order.renewed" and the request has "order.lost"',
      },
    ],
    [
      "an ignored request says that a field is missing",
      { when: { event_type: "order.paid" } },
      () => signedCall({ id: "a" }),
      {
        outcome: "ignored",
        code: "when",
        cause: 'when.event_type must be "order.paid" and the request has no value there',
      },
    ],
    [
      "an ignored request says that an object never matches",
      { when: { event_type: "order.paid" } },
      () => signedCall({ id: "a", type: { name: "order.paid" } }),
      {
        outcome: "ignored",
        code: "when",
        cause: 'when.event_type must be "order.paid" and the request has an object there, which never matches: name a value inside it in the map',
      },
    ],
    [
      "an ignored request says that a list never matches",
      { when: { event_type: "order.paid" } },
      () => signedCall({ id: "a", type: ["order.paid"] }),
      {
        outcome: "ignored",
        code: "when",
        cause:
          'when.event_type must be "order.paid" and the request has a list there, which never matches: name one of its values in the map, such as items.0.type',
      },
    ],
    [
      "an ignored request says that null never matches",
      { when: { event_type: "order.paid" } },
      () => signedCall({ id: "a", type: null }),
      {
        outcome: "ignored",
        code: "when",
        cause: 'when.event_type must be "order.paid" and the request has null there, which never matches',
      },
    ],
    [
      "a quoted value is truncated",
      { when: { event_type: "order.paid" } },
      () => signedCall({ id: "a", type: "x".repeat(5_000) }),
      {
        outcome: "ignored",
        code: "when",
        cause: `when.event_type must be "order.paid" and the request has "${"x".repeat(100)}…"`,
      },
    ],
  ];
  test.each(rows)("%s", async (_rule, definition, call, told) => {
    await saveRelay(running, receiverDefinition(definition));
    await running.hook("orders", call());
    expect(await calls()).toEqual([
      {
        id: "1",
        at: "2026-01-15T12:00:00.000Z",
        firstAt: "2026-01-15T12:00:00.000Z",
        relay: "orders",
        source: "127.0.0.1",
        eventId: null,
        event: null,
        claimed: null,
        count: 1,
        ...told,
      },
    ]);
    expect(await countEvents()).toBe(0);
  });

  test.each([
    ["both", { id: "evt_1", type: "invoice.paid" }, { id: "evt_1", type: "invoice.paid" }],
    ["a number as the id", { id: 7 }, { id: "7", type: null }],
    ["only a type", { type: "invoice.paid" }, { id: null, type: "invoice.paid" }],
    ["a long type, cut", { id: "a", type: "x".repeat(60_000) }, { id: "a", type: "x".repeat(100) }],
    ["no address of a person", { id: "ada@example.com", type: "to ada@example.com" }, null],
    ["no control character, no direction mark and no half of a pair", { id: "a\u0007b", type: "paid\u202e" }, null],
    ["no half of a pair", { id: "a\ud800", type: "paid" }, { id: null, type: "paid" }],
    ["no object", { id: { id: 1 }, type: ["paid"] }, null],
    ["nothing of a body over 64 KB", { id: "a", type: "paid", rest: "x".repeat(70_000) }, null],
  ])("a rejected request shows what its event claims to be: %s", async (_what, event, claimed) => {
    await saveRelay(running, receiverDefinition({}));
    await running.hook("orders", signedCall(event, OTHER_SECRET));
    const [listed] = await calls();
    expect(listed).toMatchObject({ outcome: "refused", event: null, eventId: null, claimed });
  });

  test("a row of equal requests shows the claim of the last one, before and after it is written", async () => {
    await saveRelay(running, receiverDefinition({}));
    for (const id of ["a", "b"]) await running.hook("orders", signedCall({ id, type: "paid" }, OTHER_SECRET));
    expect(await calls()).toMatchObject([{ count: 2, claimed: { id: "b", type: "paid" } }]);
    await running.hook("orders", signedCall({ id: "c", type: "lost" }, OTHER_SECRET));
    expect(await calls()).toMatchObject([{ count: 3, claimed: { id: "c", type: "lost" } }]);
    await running.hook("orders", signedCall({ id: "c", type: "lost" }));
    const [event] = (await running.api("GET", "/events")).body.items;
    expect(event.eventType).toBe("lost");
    const here = { cwd: running.dataDir, env: running.commandEnv, clock: running.clock };
    const at = ["--data-dir", running.dataDir, "--environment", "development"];
    expect((await runCommand(["requests", "list", ...at], here)).said).toContain("lost c (not verified)");
  });

  test("a duplicate names the first event and the reason for the match", async () => {
    await saveRelay(running, receiverDefinition({}));
    const first = await running.hook("orders", signedCall({ id: "a" }));
    await running.hook("orders", signedCall({ id: "a", amount: 1 }));
    await running.hook("orders", signedCall({ amount: 2 }));
    await running.hook("orders", signedCall({ amount: 2 }));
    const items = await calls("?outcome=duplicate");
    expect(items.map(({ cause }) => cause)).toEqual([
      "the same body was received before on this day (UTC)",
      'an event with the id "a" was received before, with another body: is event_id really the event\'s own id?',
    ]);
    expect(items[1].eventId).toBe(first.body.eventId);
    expect(await countEvents()).toBe(2);
  });

  test("a duplicate shows the type and the current state of its first event, in the list and in full", async () => {
    await saveRelay(running, receiverDefinition({ map: { event_id: "id", event_type: "type" } }));
    const first = await running.hook("orders", signedCall({ id: "a", type: "order.paid" }));
    await running.hook("orders", signedCall({ id: "a", type: "order.paid" }));
    await running.drain();
    const event = { id: first.body.eventId, state: "done", eventType: "order.paid" };
    const [{ id, ...listed }] = await calls();
    expect(listed.event).toEqual(event);
    expect((await running.api("GET", `/calls/${id}`)).body.call).toEqual({ id, ...listed });
    await running.service.store.write("app", (tx) => tx.run("UPDATE event SET state = 'dead'"));
    expect((await calls())[0].event).toEqual({ ...event, state: "dead" });
  });

  test("a duplicate by the id in the sender's header asks nothing about event_id", async () => {
    const definition = receiverDefinition({ verify: { scheme: "hooks" }, map: { event_type: "type" } });
    const key = Buffer.from("secret-key-of-a-sender-0123456789");
    const saved = await running.api("POST", "/relays", { definition, secret: `whsec_${key.toString("base64")}` });
    expect(saved.status).toBe(201);
    const at = String(START_MS / 1000);
    for (const body of ['{"type":"a"}', '{"type":"b"}']) {
      const signed = createHmac("sha256", key).update(`msg_1.${at}.${body}`).digest("base64");
      const headers = { "content-type": "application/json", "webhook-id": "msg_1", "webhook-timestamp": at, "webhook-signature": `v1,${signed}` };
      expect((await running.hook("orders", { headers, body })).status).toBe(200);
    }
    const [{ cause }] = await calls("?outcome=duplicate");
    expect(cause).toBe('an event with the id "msg_1" was received before, with another body: the sender\'s own header gives both the same id');
  });

  test.each([
    ["the same JSON in another format", { id: "a", n: 1, t: "x" }, '{ "n": 1, "t": "x", "id": "a" }', false],
    ["another value", { id: "a", n: 1 }, JSON.stringify({ id: "a", n: 2 }), true],
    ["the same large body", { id: "a", t: "x".repeat(40_000) }, JSON.stringify({ id: "a", t: "x".repeat(40_000) }), false],
    ["a large body with another beginning", { id: "a", t: "x".repeat(40_000) }, JSON.stringify({ id: "a", t: "y".repeat(40_000) }), true],
    [
      "a large body with an equal stored beginning makes no claim",
      { id: "a", t: "x".repeat(40_000) },
      JSON.stringify({ id: "a", t: "x".repeat(40_001) }),
      false,
    ],
  ])("a duplicate with %s", async (_words, first, second, differs) => {
    await saveRelay(running, receiverDefinition({}));
    await running.hook("orders", signedCall(first));
    await running.hook("orders", signedCall(second));
    const [{ cause }] = await calls("?outcome=duplicate");
    expect(cause.endsWith("with another body: is event_id really the event's own id?")).toBe(differs);
  });

  test.each([
    ["is missing", { type: "order.paid" }, true],
    ["is null", { id: null }, true],
    ["is empty", { id: "" }, true],
    ["is an object", { id: { value: "a" } }, true],
    ["is an id", { id: "a" }, false],
    ["is a number", { id: 0 }, false],
  ])("an event whose mapped event_id %s has a warning only if that is no id", async (_words, body, warned) => {
    await saveRelay(running, receiverDefinition({}));
    const { eventId } = (await running.hook("orders", signedCall(body))).body;
    const { event } = (await running.api("GET", `/events/${eventId}`)).body;
    const warning =
      "event_id resolves to nothing in this event that can be an id (id), so its body decides, within the UTC day, what is a duplicate: correct event_id in the map.";
    expect(event.warnings.filter((one: string) => one === warning)).toHaveLength(warned ? 1 : 0);
  });

  test("an accepted request is not listed", async () => {
    await saveRelay(running, receiverDefinition({}));
    await running.hook("orders", signedCall({ id: "a" }));
    expect(await calls()).toEqual([]);
  });

  test("a request over the app's cap is rejected with receiver_capped", async () => {
    await running[Symbol.asyncDispose]();
    running = await startRunningService({
      config: {
        limits: { ...DEFAULT_LIMITS, verifiedEventsPerMinute: 1 },
      },
    });
    await makeOrders(running);
    await saveRelay(running, receiverDefinition({}));
    for (const id of ["a", "b", "c"]) await running.hook("orders", signedCall({ id }));
    const items = await calls();
    expect(items.map(({ code, count }) => ({ code, count }))).toEqual([{ code: "receiver_capped", count: 2 }]);
  });
});

describe("the environment of a request", () => {
  test("is every environment with the relay for an unverified request, each with its own cause", async () => {
    await saveRelay(running, receiverDefinition({}));
    const tokens = receiverDefinition({ verify: { scheme: "shared_token" } });
    const made = await running.api("POST", "/relays", { definition: tokens, secret: OTHER_SECRET }, "production");
    expect(made.status).toBe(201);
    await running.hook("orders", BARE);
    expect((await calls()).map(({ cause }) => cause)).toEqual(["header x-signature is missing"]);
    expect((await calls("", "production")).map(({ cause }) => cause)).toEqual([
      "the token is neither in header x-webhook-token nor in query parameter token",
    ]);
  });

  test("is only the environment whose secret verified it", async () => {
    await saveRelay(running, receiverDefinition({}));
    const definition = receiverDefinition({});
    await running.api("POST", "/relays", { definition, secret: OTHER_SECRET }, "production");
    await running.hook("orders", signedCall({ id: "a" }, OTHER_SECRET));
    await running.hook("orders", signedCall({ id: "a" }, OTHER_SECRET));
    expect(await calls()).toEqual([]);
    expect((await calls("", "production")).map(({ outcome }) => outcome)).toEqual(["duplicate"]);
  });

  test("is none for an unknown name, and the former owner's for a deleted relay", async () => {
    await saveRelay(running, receiverDefinition({}));
    await running.api("DELETE", "/relays/orders");
    await running.hook("orders", BARE);
    await running.hook("never-here", BARE);
    expect((await calls()).map(({ relay, code, cause }) => ({ relay, code, cause }))).toEqual([
      {
        relay: "orders",
        code: "unknown_receiver",
        cause: "the relay was deleted at 2026-01-15T12:00:00.000Z",
      },
    ]);
    expect(await calls("", "production")).toEqual([]);
  });
});

describe("the request log", () => {
  test("is filtered by relay and outcome, and paged, newest first", async () => {
    await saveRelay(running, receiverDefinition({}));
    await saveRelay(running, receiverDefinition({ name: "lost", when: { event_type: "none" } }), OTHER_SECRET);
    for (let index = 0; index < 3; index++) {
      await running.hook("orders", BARE);
      await running.clock.advance(121_000);
    }
    await running.hook("lost", signedCall({ id: "a" }, OTHER_SECRET));
    expect((await calls("?relay=lost")).map(({ outcome }) => outcome)).toEqual(["ignored"]);
    expect(await calls("?outcome=refused&relay=lost")).toEqual([]);
    const first = await running.api("GET", "/calls?limit=3");
    expect(first.body.items.map(({ id }: { id: string }) => id)).toEqual(["4", "3", "2"]);
    const rest = await running.api("GET", `/calls?limit=3&cursor=${first.body.next}`);
    expect(rest.body.items.map(({ id }: { id: string }) => id)).toEqual(["1"]);
    expect(rest.body.next).toBeNull();
    expect((await running.api("GET", "/calls?outcome=fine")).status).toBe(400);
    expect((await calls("?code=bad_signature")).map(({ id }) => id)).toEqual(["3", "2", "1"]);
    expect(await calls("?code=source_capped")).toEqual([]);
  });

  test("is counted by outcome and cause, for a time range and for a relay", async () => {
    await saveRelay(running, receiverDefinition({}));
    await saveRelay(running, receiverDefinition({ name: "lost", when: { event_type: "none" } }), OTHER_SECRET);
    await running.hook("orders", BARE);
    await running.clock.advance(3_600_000);
    const since = new Date(running.clock.now()).toISOString();
    await running.hook("orders", BARE);
    await running.hook("lost", signedCall({ id: "a" }, OTHER_SECRET));
    const counted = async (query: string) => (await running.api("GET", `/calls/counts${query}`)).body.counts;
    const codes = [{ code: "bad_signature", calls: 2 }];
    expect(await counted("")).toEqual({ refused: 2, ignored: 1, duplicate: 0, codes, knownSince: null });
    expect(await counted(`?since=${since}`)).toMatchObject({ refused: 1, ignored: 1, codes: [{ code: "bad_signature", calls: 1 }] });
    expect(await counted("?relay=lost")).toMatchObject({ refused: 0, ignored: 1, codes: [] });
  });

  test("is written within a second, and survives a restart", async () => {
    await saveRelay(running, receiverDefinition({}));
    await running.hook("orders", BARE);
    expect(await running.rows("SELECT 1 FROM recent_request")).toEqual([]);
    await running.clock.advance(1_000);
    expect(await running.rows("SELECT 1 FROM recent_request")).toHaveLength(1);
    await running.restart();
    await running.hook("orders", BARE);
    expect((await calls()).map(({ id, count }) => [id, count])).toEqual([
      ["2", 1],
      ["1", 1],
    ]);
  });

  test("is written completely when the service stops", async () => {
    await saveRelay(running, receiverDefinition({}));
    await running.hook("orders", BARE);
    await running.restart();
    expect(await running.rows("SELECT 1 FROM recent_request")).toHaveLength(1);
  });

  test("stores a flood from one address as one row within the cap and one beyond it, however long it lasts", async () => {
    await saveRelay(running, receiverDefinition({}));
    for (let index = 0; index < 100; index++) await running.hook("orders", BARE);
    const cause = "header x-signature is missing";
    const told = async () => (await calls("?limit=200")).map(({ id, code, count, cause }) => ({ id, code, count, cause }));
    expect(await told()).toEqual([
      { id: "2", code: "source_capped", count: 40, cause },
      { id: "1", code: "bad_signature", count: 60, cause },
    ]);
    await running.clock.advance(50_000);
    for (let index = 0; index < 10; index++) await running.hook("orders", BARE);
    await running.clock.advance(11_000);
    for (let index = 0; index < 10; index++) await running.hook("orders", BARE);
    expect(await told()).toEqual([
      { id: "1", code: "bad_signature", count: 70, cause },
      { id: "2", code: "source_capped", count: 50, cause },
    ]);
    expect((await calls())[0]).toMatchObject({ firstAt: "2026-01-15T12:00:00.000Z", at: "2026-01-15T12:01:01.000Z" });
    await running.clock.advance(121_000);
    await running.hook("orders", BARE);
    expect((await told())[0]).toEqual({ id: "3", code: "bad_signature", count: 1, cause });
  });

  test(`never stores more than ${MAX_RECENT_CALLS}`, async () => {
    await running[Symbol.asyncDispose]();
    running = await startRunningService({
      config: { limits: { ...DEFAULT_LIMITS, eventlessCallsPerMinute: 100_000 } },
    });
    await saveRelay(running, receiverDefinition({ when: { event_type: "none" } }));
    let kind = 0;
    const ignore = () => running.hook("orders", signedCall({ id: `a${kind}`, type: `kind-${kind++}` }));
    const flood = async (count: number): Promise<void> => {
      for (let sent = 0; sent < count; sent += 50) await Promise.all(Array.from({ length: 50 }, ignore));
    };
    await flood(MAX_RECENT_CALLS);
    await running.clock.advance(1_000);
    await flood(100);
    await running.clock.advance(1_000);
    const [held] = await running.rows<{ count: number; oldest: number; newest: number }>(
      "SELECT count(*) AS count, min(seq) AS oldest, max(seq) AS newest FROM recent_request",
    );
    expect(held).toEqual({ count: MAX_RECENT_CALLS, oldest: 101, newest: 1_100 });
  });

  test("stores no secret, no header, and only the id and type that a rejected body claims", async () => {
    await saveRelay(running, receiverDefinition({}));
    await saveRelay(running, receiverDefinition({ name: "tokens", verify: { scheme: "shared_token" } }), OTHER_SECRET);
    await running.hook("orders", signedCall({ id: "a", type: "paid", name: "planted-in-body" }, OTHER_SECRET));
    await running.hook("tokens", { ...BARE, search: "?token=planted-in-query" });
    await running.hook("tokens", { ...BARE, headers: { "x-webhook-token": "planted-in-header" } });
    expect(await calls()).toHaveLength(3);
    const text = JSON.stringify(await running.rows("SELECT * FROM recent_request"));
    expect(text).not.toMatch(/planted|of nobody known/);
    expect(text).not.toContain(HOOK_SECRET);
    expect(text).not.toContain(OTHER_SECRET);
  });
});
