/** Tests the receiver over HTTP: every row of the specification's receiver table, dedupe, caps, environments, and atomic storage. */
import { Database } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { createHmac } from "node:crypto";
import { join } from "node:path";
import { DAY_MS, DEFAULT_LIMITS } from "../../src/base/limit.ts";
import { testOfFile } from "../kit/chosen-store.ts";
import { EVENT_ID, RELAY_NAME } from "../kit/event-sql.ts";
import { refuseCommits, takeRowsAgain } from "../kit/refused-row.ts";
import { HOOK_SECRET, makeOrders, receiverDefinition, saveRelay, signedCall, TOKEN_RECIPE, tokenCall, writeOrder } from "../kit/relay-definition.ts";
import { APP, type RunningService, startRunningService } from "../kit/running-service.ts";

let running: RunningService;

beforeEach(async () => {
  running = await startRunningService({ environments: ["development", "production"] });
  await makeOrders(running);
});

afterEach(async () => {
  await running[Symbol.asyncDispose]();
});

const order = (id: string, more: object = {}): { headers: Record<string, string>; body: string } =>
  signedCall({ id, type: "order.paid", amount: 4200, ...more });

const countEvents = async (): Promise<number> => (await running.rows("SELECT seq FROM event")).length;

describe("answers", () => {
  test("200 with received and the event's id once the row is stored", async () => {
    await saveRelay(running, receiverDefinition({}));
    const answer = await running.hook("orders", order("a"));
    const [row] = await running.rows<{ id: string }>(`SELECT ${EVENT_ID} AS id FROM event`);
    expect({ status: answer.status, body: answer.body }).toEqual({
      status: 200,
      body: { received: true, eventId: row?.id },
    });
  });

  test("200 with duplicate and the first row's id for a repeated event_id, and runs nothing", async () => {
    await saveRelay(running, receiverDefinition({}));
    const first = await running.hook("orders", order("a"));
    const again = await running.hook("orders", order("a", { amount: 1 }));
    expect(again.status).toBe(200);
    expect(again.body).toEqual({ received: true, duplicate: true, eventId: first.body.eventId });
    await running.drain();
    expect(await running.rows("SELECT id FROM record")).toHaveLength(1);
  });

  test("200 with ignored when the filter does not match, with no row, and without using the dedupe key", async () => {
    await saveRelay(running, receiverDefinition({ when: { event_type: "order.paid" } }));
    const missed = await running.hook("orders", order("a", { type: "order.lost" }));
    expect({ status: missed.status, body: missed.body }).toEqual({
      status: 200,
      body: { received: true, ignored: "when" },
    });
    expect(await countEvents()).toBe(0);
    expect((await running.hook("orders", order("a"))).body.duplicate).toBeUndefined();
  });

  const refusals: [string, string, number, string, () => { headers: Record<string, string>; body: string | Uint8Array; search?: string }][] = [
    ["an unknown receiver name", "nothing-here", 404, "unknown_receiver", () => order("a")],
    ["a signature by another secret", "orders", 401, "bad_signature", () => signedCall({ id: "a" }, "anotherSecretOfTwentyFour1")],
    ["no signature", "orders", 401, "bad_signature", () => ({ headers: { "content-type": "application/json" }, body: "{}" })],
    ["a signed body that is not JSON", "orders", 400, "invalid_json", () => signedCall("{not json")],
    ["a signed empty body", "orders", 400, "invalid_json", () => signedCall("")],
    ["a body over 256 KB, before its signature is checked", "orders", 413, "body_too_large", () => signedCall("x".repeat(256 * 1024 + 1))],
    [
      "a signed body that is not UTF-8",
      "orders",
      400,
      "invalid_json",
      () => {
        const body = Buffer.from([0x22, 0xff, 0x22]);
        const signature = createHmac("sha256", HOOK_SECRET).update(body).digest("hex");
        return { headers: { "content-type": "application/json", "x-signature": signature }, body };
      },
    ],
  ];
  for (const [what, name, status, code, call] of refusals) {
    test(`${status} ${code} for ${what}, and nothing is stored`, async () => {
      await saveRelay(running, receiverDefinition({}));
      const answer = await running.hook(name, call());
      expect({ status: answer.status, code: answer.body.code }).toEqual({ status, code });
      expect(answer.body.message).toMatch(/\w+ .+[.;]/);
      expect(Object.keys(answer.body).sort()).toEqual(["code", "message"]);
      expect(await countEvents()).toBe(0);
    });
  }

  test("a body of exactly 256 KB is received", async () => {
    await saveRelay(running, receiverDefinition({}));
    const body = `{"id":"big","note":"${"x".repeat(256 * 1024 - 22)}"}`;
    expect(body).toHaveLength(256 * 1024);
    expect((await running.hook("orders", signedCall(body))).status).toBe(200);
  });

  test("400 too_many_signatures for a ninth signature, even with a valid one among them", async () => {
    const verify = {
      scheme: "signature",
      header: "x-signature",
      signatureKey: "v1",
      signedPayload: "{body}",
      encoding: "hex",
    };
    await saveRelay(running, receiverDefinition({ verify }));
    const { headers, body } = order("a");
    const signatures = Array.from({ length: 9 }, () => `v1=${headers["x-signature"]}`).join(",");
    const answer = await running.hook("orders", { headers: { ...headers, "x-signature": signatures }, body });
    expect([answer.status, answer.body.code]).toEqual([400, "too_many_signatures"]);
  });

  test("401 scheme_renamed for a relay stored under the old scheme name", async () => {
    await saveRelay(running, receiverDefinition({}));
    await running.service.store.write("app", (tx) =>
      tx.run(`UPDATE relay SET definition = replace(definition, '"signature"', '"hmac_sha256_header"')`),
    );
    running.service.refresh();
    const answer = await running.hook("orders", order("a"));
    expect([answer.status, answer.body.code]).toEqual([401, "scheme_renamed"]);
    expect(answer.body.message).toContain('"scheme": "signature"');
  });

  test("404 for a deleted relay, and 200 for a paused one, whose events wait and run on resume", async () => {
    await saveRelay(running, receiverDefinition({}));
    await running.api("POST", "/relays/orders/pause");
    expect((await running.hook("orders", order("a"))).status).toBe(200);
    await running.drain();
    expect((await running.rows<{ state: string }>("SELECT state FROM event"))[0]?.state).toBe("queued");
    await running.api("POST", "/relays/orders/resume");
    await running.drain();
    expect((await running.rows<{ state: string }>("SELECT state FROM event"))[0]?.state).toBe("done");
    await running.api("DELETE", "/relays/orders");
    expect((await running.hook("orders", order("b"))).status).toBe(404);
  });

  test("a query string is ignored unless the recipe signs {url}, and then breaks the signature", async () => {
    await saveRelay(running, receiverDefinition({}));
    expect((await running.hook("orders", { ...order("a"), search: "?x=1" })).status).toBe(200);
    const verify = {
      scheme: "signature",
      header: "x-signature",
      signedPayload: "{url}{body}",
      encoding: "hex",
    };
    const saved = await running.api("POST", "/relays", {
      definition: receiverDefinition({ name: "with-url", verify }),
      secret: HOOK_SECRET,
    });
    const body = JSON.stringify({ id: "u" });
    const signature = createHmac("sha256", HOOK_SECRET).update(`${saved.body.receiverUrl}${body}`).digest("hex");
    const call = { headers: { "content-type": "application/json", "x-signature": signature }, body };
    expect((await running.hook("with-url", { ...call, search: "?x=1" })).status).toBe(401);
    expect((await running.hook("with-url", { ...call, search: "/" })).status).toBe(401);
    expect((await running.hook("with-url", call)).status).toBe(200);
  });
});

describe("the order of checks", () => {
  test("the signature comes before when, so a wrong secret reveals nothing of the filter", async () => {
    await saveRelay(running, receiverDefinition({ when: { event_type: "order.paid" } }));
    const answer = await running.hook("orders", signedCall({ id: "a", type: "other" }, "anotherSecretOfTwentyFour1"));
    expect(answer.status).toBe(401);
  });
});

describe("dedupe", () => {
  test("without an event_id, the same body is a duplicate within its UTC day and new on the next", async () => {
    await saveRelay(running, receiverDefinition({ map: { amount: "amount" } }));
    const call = signedCall({ amount: 1 });
    expect((await running.hook("orders", call)).body.duplicate).toBeUndefined();
    running.clock.jump(DAY_MS / 2 - 1);
    expect((await running.hook("orders", call)).body.duplicate).toBe(true);
    running.clock.jump(1);
    expect((await running.hook("orders", call)).body.duplicate).toBeUndefined();
  });

  for (const [what, id] of [
    ["missing", undefined],
    ["null", null],
    ["empty", ""],
    ["an object", { a: 1 }],
    ["a list", ["a"]],
  ] as const) {
    test(`an event_id that is ${what} counts as not mapped, so the body decides`, async () => {
      await saveRelay(running, receiverDefinition({}));
      await running.hook("orders", signedCall({ id, amount: 1 }));
      expect((await running.hook("orders", signedCall({ id, amount: 2 }))).body.duplicate).toBeUndefined();
      expect((await running.hook("orders", signedCall({ id, amount: 1 }))).body.duplicate).toBe(true);
    });
  }

  test("integers beyond 2^53 differ by their last digit, and reach the record exactly", async () => {
    await saveRelay(running, receiverDefinition({}));
    await running.hook("orders", signedCall('{"id":9007199254740993,"amount":12345678901234567890}'));
    expect((await running.hook("orders", signedCall('{"id":9007199254740992}'))).body.duplicate).toBeUndefined();
    expect((await running.hook("orders", signedCall('{"id":9007199254740993}'))).body.duplicate).toBe(true);
    await running.drain();
    const [record] = await running.rows<{ data: string }>("SELECT data FROM record ORDER BY seq");
    expect(record?.data).toBe('{"order":"9007199254740993","amount":"12345678901234567890"}');
  });

  test("the same event_id on two relays is two events", async () => {
    await saveRelay(running, receiverDefinition({}));
    await saveRelay(running, receiverDefinition({ name: "others" }));
    await running.hook("orders", order("a"));
    expect((await running.hook("others", order("a"))).body.duplicate).toBeUndefined();
  });

  test("many concurrent requests with one event_id are one event", async () => {
    await saveRelay(running, receiverDefinition({}));
    const answers = await Promise.all(Array.from({ length: 40 }, () => running.hook("orders", order("a"))));
    expect(answers.filter((answer) => answer.body.duplicate === undefined)).toHaveLength(1);
    expect(new Set(answers.map((answer) => answer.body.eventId)).size).toBe(1);
    expect(await countEvents()).toBe(1);
  });
});

describe("caps", () => {
  test("the 121st verified event of an app in a minute is 429 receiver_capped with resetAt, and the next minute starts fresh", async () => {
    await saveRelay(running, receiverDefinition({}));
    for (let index = 0; index < 120; index++) expect((await running.hook("orders", order(`e${index}`))).status).toBe(200);
    const capped = await running.hook("orders", order("e120"));
    expect([capped.status, capped.body.code]).toEqual([429, "receiver_capped"]);
    expect(capped.body.resetAt).toBe(new Date(running.clock.now() + 60_000).toISOString());
    expect(capped.headers.get("retry-after")).toBe("60");
    expect(capped.body.message).toContain("120");
    await running.clock.advance(60_000);
    expect((await running.hook("orders", order("e120"))).status).toBe(200);
  });

  test("requests whose transaction failed do not count", async () => {
    await using limited = await startRunningService({ config: { limits: { ...DEFAULT_LIMITS, verifiedEventsPerMinute: 3 } } });
    await makeOrders(limited);
    await saveRelay(limited, receiverDefinition({}));
    const send = async (ids: readonly string[]) => Promise.all(ids.map(async (id) => (await limited.hook("orders", order(id))).status));
    await refuseCommits(limited.service.store);
    for (let turn = 0; turn < 2; turn++) expect(await send(["a", "b", "c"])).toEqual([503, 503, 503]);
    await takeRowsAgain(limited.service.store);
    expect(await send(["a", "b", "c"])).toEqual([200, 200, 200]);
    expect(await send(["d"])).toEqual([429]);
    expect(await limited.rows("SELECT seq FROM event")).toHaveLength(3);
  });

  test("the 61st unverified request of an address in a minute is 429 source_capped, and a verified one still passes", async () => {
    await saveRelay(running, receiverDefinition({}));
    const bad = signedCall({ id: "x" }, "anotherSecretOfTwentyFour1");
    for (let index = 0; index < 60; index++) expect((await running.hook("orders", bad)).status).toBe(401);
    const capped = await running.hook("orders", bad);
    expect([capped.status, capped.body.code]).toEqual([429, "source_capped"]);
    const told = (answer: typeof capped) => [answer.body.resetAt, answer.headers.get("retry-after")];
    const resetAt = new Date(running.clock.now() + 60_000).toISOString();
    expect(told(capped)).toEqual([resetAt, "60"]);
    expect((await running.hook("orders", order("good"))).status).toBe(200);
    await running.clock.advance(20_500);
    // A cached response must still count its seconds down.
    for (let again = 0; again < 3; again++) expect(told(await running.hook("orders", bad))).toEqual([resetAt, "40"]);
    await running.clock.advance(39_500);
    expect((await running.hook("orders", bad)).status).toBe(401);
  });

  test("unverified requests do not count against the app's cap", async () => {
    await saveRelay(running, receiverDefinition({}));
    for (let index = 0; index < 150; index++) await running.hook("orders", signedCall({}, "anotherSecretOfTwentyFour1"));
    expect((await running.hook("orders", order("good"))).status).toBe(200);
  });

  test("requests to unknown names and oversized requests count as unverified", async () => {
    await saveRelay(running, receiverDefinition({}));
    for (let index = 0; index < 30; index++) {
      expect((await running.hook("nothing-here", order("a"))).status).toBe(404);
      expect((await running.hook("orders", signedCall("x".repeat(256 * 1024 + 1)))).status).toBe(413);
    }
    expect((await running.hook("nothing-here", order("a"))).status).toBe(429);
  });
});

describe("behind a proxy", () => {
  const bad = (from: string): { headers: Record<string, string>; body: string } => {
    const call = signedCall({ id: "x" }, "anotherSecretOfTwentyFour1");
    return { ...call, headers: { ...call.headers, "x-forwarded-for": from } };
  };

  test("a trusted proxy's X-Forwarded-For separates addresses", async () => {
    await using proxied = await startRunningService({ config: { trustedProxies: ["127.0.0.1"] } });
    await makeOrders(proxied);
    await saveRelay(proxied, receiverDefinition({}));
    for (let index = 0; index < 60; index++) await proxied.hook("orders", bad("203.0.113.7"));
    expect((await proxied.hook("orders", bad("203.0.113.7"))).status).toBe(429);
    expect((await proxied.hook("orders", bad("203.0.113.8"))).status).toBe(401);
  });

  test("an untrusted X-Forwarded-For is ignored", async () => {
    await saveRelay(running, receiverDefinition({}));
    for (let index = 0; index < 60; index++) await running.hook("orders", bad(`203.0.113.${index}`));
    expect((await running.hook("orders", bad("203.0.113.200"))).status).toBe(429);
  });
});

test("an unnamed proxy is detected by its many clients: logged, a problem of every environment, and resolved once it is trusted", async () => {
  const trustedProxies: string[] = [];
  const environments = ["development", "production"] as const;
  await using proxied = await startRunningService({ environments, config: { trustedProxies } });
  await makeOrders(proxied);
  await saveRelay(proxied, receiverDefinition({}));
  const call = (caller: number) => {
    const signed = order(`p${caller}`);
    return { ...signed, headers: { ...signed.headers, "x-forwarded-for": `198.51.100.${caller}` } };
  };
  // The service samples one in 64 addresses of accepted requests.
  for (let caller = 1; caller <= 250; caller++) expect((await proxied.hook("orders", call(caller))).status).toBe(caller <= 120 ? 200 : 429);
  const flag = "Start the server with --trusted-proxy 127.0.0.1 (RELAY_TRUSTED_PROXY) if the proxy is yours.";
  for (const environment of environments) {
    const { items } = (await proxied.api("GET", "/problems", undefined, environment)).body;
    const [problem] = items.filter(({ code }: { code: string }) => code === "proxy_unnamed");
    expect(problem).toMatchObject({ target: "proxy:127.0.0.1", message: expect.stringContaining(flag) });
  }
  // Expects one line of the server. Each environment's problem logs another.
  expect(proxied.logged.filter((line) => line.includes("--trusted-proxy 127.0.0.1"))).toHaveLength(1);
  trustedProxies.push("127.0.0.1");
  await proxied.restart();
  const left = (await proxied.api("GET", "/problems")).body.items;
  expect(left.filter(({ code }: { code: string }) => code === "proxy_unnamed")).toEqual([]);
});

describe("environments", () => {
  test("share the URL, and the one whose secret verifies receives", async () => {
    const production = "productionSecretOfThirtyTwoChars1";
    await saveRelay(running, receiverDefinition({}));
    await running.api("POST", "/relays", { definition: receiverDefinition({}), secret: production }, "production");
    const dev = await running.hook("orders", order("a"));
    const live = await running.hook("orders", signedCall({ id: "a" }, production));
    expect([dev.status, live.status, live.body.duplicate]).toEqual([200, 200, undefined]);
    const development = await running.api("GET", "/events");
    const productionEvents = await running.api("GET", "/events", undefined, "production");
    expect(development.body.items.map((item: { id: string }) => item.id)).toEqual([dev.body.eventId]);
    expect(productionEvents.body.items.map((item: { id: string }) => item.id)).toEqual([live.body.eventId]);
  });

  test("with a secret that none holds return 401", async () => {
    await saveRelay(running, receiverDefinition({}));
    expect((await running.hook("orders", signedCall({}, "anotherSecretOfTwentyFour1"))).status).toBe(401);
  });
});

describe("one-time signatures", () => {
  const definition = receiverDefinition({
    name: "mails",
    verify: TOKEN_RECIPE,
    map: { event_id: "event.id" },
  });

  test("make the same request a duplicate, and another body with the same signature 401", async () => {
    await saveRelay(running, definition);
    const first = await running.hook("mails", tokenCall("t1", { event: { id: "a" } }));
    expect(first.status).toBe(200);
    const again = await running.hook("mails", tokenCall("t1", { event: { id: "a" } }));
    expect(again.body).toEqual({ received: true, duplicate: true, eventId: first.body.eventId });
    expect((await running.hook("mails", tokenCall("t1", { event: { id: "b" } }))).status).toBe(401);
    expect(await countEvents()).toBe(1);
  });

  test("stay used after the relay is deleted and created again under the same name and secret", async () => {
    await saveRelay(running, definition);
    await running.hook("mails", tokenCall("t1", { event: { id: "a" } }));
    await running.api("DELETE", "/relays/mails");
    await saveRelay(running, definition);
    expect((await running.hook("mails", tokenCall("t1", { event: { id: "b" } }))).status).toBe(401);
  });

  test("are used by a request that when ignores", async () => {
    const filtered = receiverDefinition({
      name: "mails",
      verify: TOKEN_RECIPE,
      map: { event_type: "event.type" },
      when: { event_type: "x" },
    });
    await saveRelay(running, filtered);
    expect((await running.hook("mails", tokenCall("t1", { event: { type: "y" } }))).body.ignored).toBe("when");
    expect((await running.hook("mails", tokenCall("t1", { event: { type: "x" } }))).status).toBe(401);
  });

  test("make many concurrent requests with one signature and different bodies one event", async () => {
    await saveRelay(running, definition);
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, index) => running.hook("mails", tokenCall("t1", { event: { id: `e${index}` } }))),
    );
    expect(answers.filter((answer) => answer.status === 200)).toHaveLength(1);
    expect(await countEvents()).toBe(1);
  });

  test("are not used by a request that a cap rejects", async () => {
    await using capped = await startRunningService({
      config: { limits: { ...DEFAULT_LIMITS, verifiedEventsPerMinute: 1 } },
    });
    await makeOrders(capped);
    await saveRelay(capped, definition);
    await capped.hook("mails", tokenCall("t1", { event: { id: "a" } }));
    expect((await capped.hook("mails", tokenCall("t2", { event: { id: "b" } }))).status).toBe(429);
    await capped.clock.advance(60_000);
    expect((await capped.hook("mails", tokenCall("t2", { event: { id: "b" } }))).body.duplicate).toBeUndefined();
  });
});

describe("503 not_recorded", () => {
  const locked = async (work: () => Promise<void>): Promise<void> => {
    const [file] = await running.rows<{ file: string }>("PRAGMA database_list");
    const other = new Database(file?.file ?? join("missing"));
    other.exec("BEGIN IMMEDIATE");
    await work();
    other.exec("ROLLBACK");
    other.close();
  };

  testOfFile("while the database is locked: nothing is stored, and the provider's retry succeeds", async () => {
    await saveRelay(running, receiverDefinition({}));
    await locked(async () => {
      const answer = await running.hook("orders", order("a"));
      expect([answer.status, answer.body.code]).toEqual([503, "not_recorded"]);
    });
    expect(await countEvents()).toBe(0);
    expect((await running.hook("orders", order("a"))).body.duplicate).toBeUndefined();
  });

  testOfFile("while the disk is full: a one-time signature stays unused", async () => {
    await saveRelay(running, receiverDefinition({ name: "mails", verify: TOKEN_RECIPE, map: { event_id: "event.id" } }));
    const call = tokenCall("t1", { event: { id: "a" }, filler: "x".repeat(30_000) });
    const setPages = (count: number) => running.service.store.write("app", (tx) => tx.get(`PRAGMA max_page_count = ${count}`));
    const [pages] = await running.rows<{ page_count: number }>("PRAGMA page_count");
    await setPages(pages?.page_count ?? 1);
    const answer = await running.hook("mails", call);
    expect([answer.status, answer.body.code]).toEqual([503, "not_recorded"]);
    expect(await countEvents()).toBe(0);
    await setPages(1_000_000);
    expect((await running.hook("mails", call)).body).toMatchObject({ received: true });
    expect((await running.hook("mails", call)).body.duplicate).toBe(true);
  });
});

describe("the stored payload", () => {
  test("over 32 KB contains the mapped fields, a flag and a preview, and null for the event", async () => {
    await saveRelay(running, receiverDefinition({}));
    await running.hook("orders", signedCall({ id: "a", amount: 5, note: "é".repeat(40_000) }));
    await running.drain();
    const { items } = (await running.api("GET", "/events")).body;
    const { event } = (await running.api("GET", `/events/${items[0].id}`)).body;
    expect(event.truncated).toBe(true);
    expect(event.payload).toEqual({ event: null, mapped: { event_id: "a", amount: 5 } });
    expect(event.preview.startsWith('{"id":"a","amount":5,"note":"é')).toBe(true);
    expect(Buffer.byteLength(event.preview)).toBeLessThanOrEqual(4_096);
    expect(event.state).toBe("done");
  });

  test("of a form contains its fields, and a list for a repeated name", async () => {
    await saveRelay(running, receiverDefinition({ map: { event_id: "id", amount: "item.name" } }));
    const body = "id=a&item.name=Caf%C3%A9+au+lait&tag=x&tag=y&__proto__=z";
    const signature = createHmac("sha256", HOOK_SECRET).update(body).digest("hex");
    await running.hook("orders", {
      headers: { "content-type": "application/x-www-form-urlencoded", "x-signature": signature },
      body,
    });
    const [row] = await running.rows<{ payload: string }>("SELECT payload FROM event");
    expect(row?.payload).toBe(
      '{"event":{"id":"a","item.name":"Café au lait","tag":["x","y"],"__proto__":"z"},"mapped":{"event_id":"a","amount":"Café au lait"}}',
    );
  });
});

describe("the unsigned-event rule", () => {
  const shared = { scheme: "shared_token" };
  const call = {
    headers: { "content-type": "application/json", "x-webhook-token": HOOK_SECRET },
    body: '{"id":"a"}',
  };

  test("a stored relay that breaks it rejects every event with bad_signature and raises the problem", async () => {
    await saveRelay(running, receiverDefinition({ verify: shared }));
    const acting = JSON.stringify(receiverDefinition({ verify: shared, actions: [{ type: "revoke_access", entitlement: "access:pro" }] }));
    await running.service.store.write("app", (tx) => tx.run("UPDATE relay SET definition = ?1", acting));
    await running.restart();
    const answer = await running.hook("orders", call);
    expect([answer.status, answer.body.code]).toEqual([401, "bad_signature"]);
    const problems = await running.api("GET", "/problems");
    expect(problems.body.items.map((problem: { code: string }) => problem.code)).toContain("relay_unsigned_event");
  });

  test("an event that arrived unsigned never acts later, and its replay is 409 unsigned_event", async () => {
    await saveRelay(running, receiverDefinition({ verify: shared, actions: [writeOrder] }));
    await running.api("POST", "/relays/orders/pause");
    const { body } = await running.hook("orders", call);
    const acting = JSON.stringify(receiverDefinition({ actions: [{ type: "revoke_access", entitlement: "access:pro" }] }));
    await running.service.store.write("app", (tx) => tx.run("UPDATE relay SET definition = ?1, state = 'active'", acting));
    running.service.refresh();
    await running.drain();
    const { event } = (await running.api("GET", `/events/${body.eventId}`)).body;
    expect([event.state, event.reason, event.runs[0].results]).toEqual(["failed", "unsigned_event", []]);
    const replay = await running.api("POST", `/events/${body.eventId}/replay`);
    expect([replay.status, replay.body.code]).toEqual([409, "unsigned_event"]);
    // A save can follow the message: the opt-in is rejected here, because the sender signs its events.
    expect(replay.body.message).toContain("there is no opt-in for this one; do by hand");
  });
});

test("the receiver separates apps", async () => {
  await saveRelay(running, receiverDefinition({}));
  const { headers, body } = order("a");
  const response = await fetch(`${running.service.url}/hooks/other_app/orders`, {
    method: "POST",
    headers,
    body,
  });
  expect(response.status).toBe(404);
  expect(APP).not.toBe("other_app");
});

describe("a relay with an unusable definition", () => {
  for (const [what, sql] of [
    ["its sealed secret is damaged", "UPDATE relay SET secret = x'00' WHERE name = 'broken'"],
    ["its stored definition is invalid", "UPDATE relay SET definition = '{}' WHERE name = 'broken'"],
    [
      "its definition does not say how to verify",
      `UPDATE relay SET definition = replace(definition, '"verify"', '"verified"') WHERE name = 'broken'`,
    ],
    [
      "its definition names an unknown action",
      `UPDATE relay SET definition = replace(definition, '"write_record"', '"do_magic"') WHERE name = 'broken'`,
    ],
  ] as const) {
    test(`because ${what} is closed: its requests are rejected, its events wait, and other relays continue`, async () => {
      await saveRelay(running, receiverDefinition({ name: "broken" }), "anotherSecretOfTwentyFour1");
      // The start tests its key on the newest secret.
      await running.clock.advance(1);
      await saveRelay(running, receiverDefinition({}));
      const call = signedCall({ id: "a" }, "anotherSecretOfTwentyFour1");
      await running.api("POST", "/relays/broken/pause");
      expect((await running.hook("broken", call)).status).toBe(200);
      await running.service.store.write("app", (tx) => tx.run(sql));
      await running.service.store.write("app", (tx) => tx.run("UPDATE relay SET state = 'active'"));
      running.service.refresh();
      const refused = await running.hook("broken", call);
      expect([refused.status, refused.body.code]).toEqual([401, "bad_signature"]);
      expect((await running.hook("orders", order("b"))).status).toBe(200);
      await running.clock.advance(10_000);
      const rows = await running.rows<{ name: string; state: string }>(`SELECT ${RELAY_NAME} AS name, state FROM event ORDER BY seq`);
      expect(rows).toEqual([
        { name: "broken", state: "queued" },
        { name: "orders", state: "done" },
      ]);
      expect(running.logged.some((line) => line.includes("a relay cannot be opened") && line.includes("broken"))).toBe(true);
      await running.restart();
      expect((await running.hook("broken", call)).status).toBe(401);
      expect((await running.hook("orders", order("c"))).status).toBe(200);
    });
  }
});
