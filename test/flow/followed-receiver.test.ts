/** Tests relays that follow a receiver: one request becomes one event of each relay that takes it (sources, "Following a receiver"). */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { createHmac } from "node:crypto";
import { DAY_MS, DEFAULT_LIMITS } from "../../src/base/limit.ts";
import { roundsOf } from "../kit/chosen-store.ts";
import { RELAY_NAME } from "../kit/event-sql.ts";
import { refuseCommits, takeRowsAgain } from "../kit/refused-row.ts";
import {
  type ActionLike,
  HOOK_SECRET,
  makeOrders,
  receiverDefinition,
  saveRelay,
  signedCall,
  TOKEN_RECIPE,
  tokenCall,
  writeOrder,
} from "../kit/relay-definition.ts";
import { type RunningService, startRunningService } from "../kit/running-service.ts";

let running: RunningService;

beforeEach(async () => {
  running = await startRunningService({ environments: ["development", "production"] });
  await makeOrders(running);
});

afterEach(async () => {
  await running[Symbol.asyncDispose]();
});

const follow = (receiver: string) => ({ scheme: "receiver", receiver });
const GRANT: ActionLike = { type: "grant_access", entitlement: "access:course" };

interface FollowerChange {
  when?: Record<string, string>;
  map?: Record<string, string>;
  actions?: readonly ActionLike[];
  receiver?: string;
  trustUnsignedEvents?: boolean;
}

function followerDefinition(name: string, { receiver = "stripe", ...change }: FollowerChange = {}): Record<string, unknown> {
  return receiverDefinition({ ...change, name, verify: follow(receiver) });
}

/** Saves the source `stripe` and followers of it. */
async function saveAll(followers: readonly Record<string, unknown>[], source: Parameters<typeof receiverDefinition>[0] = {}): Promise<void> {
  await saveRelay(running, receiverDefinition({ ...source, name: "stripe" }));
  for (const definition of followers) await save(definition);
}

/** Saves a relay without a secret. */
async function save(definition: Record<string, unknown>): Promise<void> {
  const saved = await running.api("POST", "/relays", { definition });
  if (saved.status !== 201) throw new Error(`The relay was refused: ${JSON.stringify(saved.body)}`);
}

async function listEvents(): Promise<{ relay: string; state: string }[]> {
  return await running.rows<{ relay: string; state: string }>(`SELECT ${RELAY_NAME} AS relay, state FROM event ORDER BY seq`);
}

const call = (id: string, type: string) => signedCall({ id, type, amount: 4200 });

describe("the response to a request", () => {
  test("has an event of the source and of each follower that takes it, the source's first", async () => {
    await saveAll([
      followerDefinition("refund", { when: { event_type: "refunded" } }),
      followerDefinition("archive"),
      followerDefinition("paid", { when: { event_type: "paid" } }),
    ]);
    const { status, body } = await running.hook("stripe", call("a", "paid"));
    expect(status).toBe(200);
    expect(body).toEqual({
      received: true,
      eventId: body.events[0].eventId,
      events: ["stripe", "archive", "paid"].map((relay, at) => ({ relay, eventId: body.events[at].eventId })),
    });
    await running.drain();
    expect(await listEvents()).toEqual(["stripe", "archive", "paid"].map((relay) => ({ relay, state: "done" })));
  });

  test("has the first follower's event where the source ignores the request", async () => {
    await saveAll([followerDefinition("paid"), followerDefinition("archive")], { when: { event_type: "other" } });
    const { body } = await running.hook("stripe", call("a", "paid"));
    expect(body.ignored).toBeUndefined();
    expect(body.events.map(({ relay }: { relay: string }) => relay)).toEqual(["archive", "paid"]);
    expect(body.eventId).toBe(body.events[0].eventId);
  });

  test("is ignored only if no relay takes the request, which the log has once", async () => {
    await saveAll([followerDefinition("paid", { when: { event_type: "paid" } })], { when: { event_type: "refunded" } });
    expect((await running.hook("stripe", call("a", "other"))).body).toEqual({ received: true, ignored: "when" });
    const { body } = await running.api("GET", "/calls");
    expect(body.items).toHaveLength(1);
    expect(body.items[0]).toMatchObject({
      relay: "stripe",
      outcome: "ignored",
      cause: 'when.event_type must be "refunded" and the request has "other"',
      followers: [{ relay: "paid", outcome: "ignored", cause: 'when.event_type must be "paid" and the request has "other"', eventId: null }],
    });
    expect((await running.api("GET", "/calls?relay=paid")).body.items).toHaveLength(1);
    const { boxes } = (await running.api("GET", "/relays/paid/funnel")).body.funnel;
    expect(boxes.slice(0, 2).map(({ title, came, passed }: Record<string, unknown>) => [title, came, passed])).toEqual([
      ["Verified at stripe", 1, 1],
      ["Matches when", 1, 0],
    ]);
    expect((await running.api("GET", "/calls?relay=pai")).body.items).toHaveLength(0);
  });

  test("counts in the funnel of each relay, whichever relay takes it", async () => {
    await saveAll(
      [followerDefinition("paid", { when: { event_type: "paid" } }), followerDefinition("refund", { when: { event_type: "refunded" } })],
      {
        when: { event_type: "paid" },
      },
    );
    for (const one of ["a paid", "b paid", "c refunded", "d other", "a paid"]) await running.hook("stripe", call(one[0] ?? "", one.slice(2)));
    await save(followerDefinition("later"));
    await running.hook("stripe", call("b", "paid"));
    await running.drain();
    const restart = async () => {
      await running.clock.advance(2_000);
      await running.restart();
    };
    const funnel = async (relay: string) => {
      const { boxes, message } = (await running.api("GET", `/relays/${relay}/funnel`)).body.funnel;
      const numbers = boxes
        .filter(({ step }: { step: string }) => ["verified", "when", "dedupe"].includes(step))
        .map(({ came, passed }: { came: number; passed: number }) => `${came} ${passed}`);
      return { numbers, stops: boxes.flatMap(({ stops }: { stops: unknown[] }) => stops), message };
    };
    for (const wait of [async () => undefined, restart]) {
      await wait();
      const shown = await Promise.all(["stripe", "paid", "refund", "later"].map(funnel));
      expect(shown.map(({ numbers }) => numbers)).toEqual([
        ["6 6", "6 4", "4 2"],
        ["6 6", "6 4", "4 2"],
        ["6 6", "6 1", "1 1"],
        ["1 1", "1 1", "1 1"],
      ]);
    }
    const [stop] = (await funnel("refund")).stops as { code: string; count: number; see: unknown }[];
    expect([stop?.code, stop?.count]).toEqual(["when", 5]);
  });

  test("is a duplicate only if it is one for each relay that takes it", async () => {
    await saveAll([followerDefinition("paid")]);
    const first = await running.hook("stripe", call("a", "paid"));
    const again = await running.hook("stripe", call("a", "paid"));
    expect(again.body).toEqual({ ...first.body, duplicate: true });
    await save(followerDefinition("later"));
    const more = await running.hook("stripe", call("a", "paid"));
    expect(more.body.duplicate).toBeUndefined();
    expect(more.body.events.slice(0, 1)).toEqual(first.body.events.slice(0, 1));
    expect((await listEvents()).map(({ relay }) => relay)).toEqual(["stripe", "paid", "later"]);
  });

  test("lists no events where no relay follows the receiver", async () => {
    await saveAll([]);
    const { body } = await running.hook("stripe", call("a", "paid"));
    expect(Object.keys(body)).toEqual(["received", "eventId"]);
  });
});

describe("a follower", () => {
  test("has no URL and no secret", async () => {
    await saveAll([followerDefinition("paid")]);
    expect((await running.hook("paid", call("a", "paid"))).body.code).toBe("unknown_receiver");
    const [logged] = (await running.api("GET", "/calls?relay=paid")).body.items;
    expect(logged.cause).toBe("the relay of this name follows stripe and has no URL: the sender must use the URL of stripe");
    const { relay } = (await running.api("GET", "/relays/paid")).body;
    expect([relay.receiverUrl, relay.follows, relay.secret.kind, relay.problems]).toEqual([undefined, "stripe", "none", []]);
    const source = (await running.api("GET", "/relays/stripe")).body.relay;
    expect(source.followers).toEqual(["paid"]);
    const refused = await running.api("PUT", "/relays/paid/secret", { value: HOOK_SECRET });
    expect([refused.status, refused.body.message]).toEqual([400, expect.stringContaining("it follows stripe")]);
  });

  test("says while nothing has arrived that the URL of its source must be registered", async () => {
    await saveAll([followerDefinition("paid", { when: { event_type: "paid" } })], { when: { event_type: "never" } });
    const health = async () => (await running.api("GET", "/relays/paid")).body.health.message;
    expect(await health()).toBe("No request has arrived yet. The relay follows stripe: register the URL of stripe at the sender.");
    await running.hook("stripe", call("a", "other"));
    await running.clock.advance(2_000);
    expect(await health()).toBe("Requests arrived, but none became an event yet.");
  });

  test("is never the name that the list of unknown requests suggests, but its source is", async () => {
    await saveAll([followerDefinition("checkout-completed")]);
    for (const name of ["checkout-complete", "strip"]) await running.hook(name, call("a", "paid"));
    const { items } = (await running.api("GET", "/unknown-calls")).body;
    expect(items.map(({ name, nearest }: { name: string; nearest: string }) => [name, nearest]).sort()).toEqual([
      ["checkout-complete", "stripe"],
      ["strip", "stripe"],
    ]);
  });

  test("says that its own URL ends where a receiver becomes one, in a save and in a plan", async () => {
    await saveAll([]);
    await saveRelay(running, receiverDefinition({ name: "paid" }), "zzBXFQsq4OKAPhAIVqsHMpkNhzCwRn77");
    const ended = expect.stringMatching(
      /^paid now follows stripe, so its own URL \S+\/paid stops answering\. At the sender, register the URL of stripe instead: \S+\/stripe\.$/,
    );
    const deleted = "The secret of stripe verifies the requests of paid now, so its own secret is deleted.";
    const told = ({ warnings }: { warnings: { code: string; message: string }[] }) => warnings.map(({ code, message }) => [code, message]).sort();
    const expected = [
      ["receiver_url_ended", ended],
      ["secret_replaced", deleted],
    ];
    const relays = [followerDefinition("paid")];
    const { body } = await running.api("POST", "/sync/plan", { relays, replaceEdited: true });
    expect(told(body.entries.find(({ name }: { name: string }) => name === "paid"))).toEqual(expected);
    const saved = await running.api("PUT", "/relays/paid", { version: 1, definition: followerDefinition("paid") });
    expect(told(saved.body)).toEqual(expected);
    const again = await running.api("PUT", "/relays/paid", { version: 2, definition: followerDefinition("paid", { when: { event_type: "x" } }) });
    expect(told(again.body)).toEqual([]);
  });

  test("gets what the source's own map and when decide, under its own deduplication key", async () => {
    await saveAll([followerDefinition("paid", { map: { event_id: "amount" } })]);
    await running.hook("stripe", call("a", "paid"));
    await running.hook("stripe", call("b", "paid"));
    expect((await listEvents()).map(({ relay }) => relay)).toEqual(["stripe", "paid", "stripe"]);
  });

  test("waits while it is paused; a paused source still receives for it", async () => {
    await saveAll([followerDefinition("paid"), followerDefinition("archive")]);
    for (const name of ["stripe", "paid"]) await running.api("POST", `/relays/${name}/pause`);
    await running.hook("stripe", call("a", "paid"));
    await running.drain();
    expect(await listEvents()).toEqual([
      { relay: "stripe", state: "queued" },
      { relay: "archive", state: "done" },
      { relay: "paid", state: "queued" },
    ]);
  });

  test("gets the request that a rotated secret of the source verifies", async () => {
    await saveAll([followerDefinition("paid")]);
    const other = "zzBXFQsq4OKAPhAIVqsHMpkNhzCwRn77";
    expect((await running.api("PUT", "/relays/stripe/secret", { value: other })).status).toBe(200);
    expect((await running.hook("stripe", signedCall({ id: "a", type: "paid" }, other))).body.events).toHaveLength(2);
    expect((await running.hook("stripe", call("b", "paid"))).status).toBe(401);
  });
});

/** Signs the token of the body, which counts once. */
const signedBody = (event: { token: string; type: string }) => ({
  headers: { "content-type": "application/json" },
  body: JSON.stringify({ ...event, signature: createHmac("sha256", HOOK_SECRET).update(event.token).digest("hex") }),
});

describe("the transaction", () => {
  test("stores all rows or none", async () => {
    await saveAll([followerDefinition("paid"), followerDefinition("archive")]);
    await refuseCommits(running.service.store);
    expect((await running.hook("stripe", call("a", "paid"))).status).toBe(503);
    await takeRowsAgain(running.service.store);
    expect(await listEvents()).toEqual([]);
    await running.hook("stripe", call("a", "paid"));
    expect(await listEvents()).toHaveLength(3);
  });

  test("stores nothing while a follower cannot be opened, so that the sender repeats the request", async () => {
    await saveAll([followerDefinition("paid")]);
    await running.service.store.write("app", (tx) =>
      tx.run("UPDATE relay SET definition = replace(definition, 'write_record', 'unknown_action') WHERE name = 'paid'"),
    );
    await running.restart();
    const { status, body } = await running.hook("stripe", call("a", "paid"));
    expect([status, body.code, body.message]).toEqual([
      503,
      "not_recorded",
      expect.stringContaining("The relay paid, which follows this receiver, cannot be opened"),
    ]);
    expect(await listEvents()).toEqual([]);
  });

  test("gives a repeated request to a follower that was created after a signature counted", async () => {
    const map = { event_id: "id", event_type: "type", amount: "amount" };
    await saveRelay(running, receiverDefinition({ name: "stripe", map, verify: TOKEN_RECIPE }));
    await running.hook("stripe", tokenCall("t1", { id: "a" }));
    await save(followerDefinition("later", { map }));
    const again = await running.hook("stripe", tokenCall("t1", { id: "a" }));
    expect([again.body.duplicate, again.body.events?.length]).toEqual([undefined, 2]);
    expect((await running.hook("stripe", tokenCall("t1", { id: "a" }))).body.duplicate).toBe(true);
    expect((await running.hook("stripe", tokenCall("t1", { id: "b" }))).status).toBe(401);
    expect((await listEvents()).map(({ relay }) => relay)).toEqual(["stripe", "later"]);
  });

  test("answers a repeated signature that counts once as any duplicate, also for relays without an event id", async () => {
    const verify = { scheme: "signature", signatureField: "signature", tokenField: "token", signedPayload: "{token}", encoding: "hex" };
    const map = { event_type: "type" };
    await saveRelay(running, receiverDefinition({ name: "stripe", map, verify }));
    await save(followerDefinition("paid", { map }));
    const delivery = signedBody({ token: "t1", type: "x" });
    const first = await running.hook("stripe", delivery);
    expect(first.body.events).toHaveLength(2);
    await save(followerDefinition("later", { map }));
    running.clock.jump(2 * DAY_MS);
    const more = await running.hook("stripe", delivery);
    expect([more.body.duplicate, more.body.eventId, more.body.events.length]).toEqual([undefined, first.body.eventId, 3]);
    running.clock.jump(2 * DAY_MS);
    expect((await running.hook("stripe", delivery)).body).toEqual({ ...more.body, duplicate: true });
    expect((await listEvents()).map(({ relay }) => relay)).toEqual(["stripe", "paid", "later"]);
  });

  test("answers a repeated signature of an ignored request without events", async () => {
    const when = { event_type: "never" };
    await saveRelay(running, receiverDefinition({ name: "stripe", when, verify: TOKEN_RECIPE }));
    await save(followerDefinition("paid", { when }));
    expect((await running.hook("stripe", tokenCall("t1", { id: "a" }))).body).toEqual({ received: true, ignored: "when" });
    const again = { received: true, duplicate: true, eventId: null, events: [] };
    expect((await running.hook("stripe", tokenCall("t1", { id: "a" }))).body).toEqual(again);
  });

  test("answers requests with one signature that arrive together as one event of each relay", async () => {
    await saveRelay(running, receiverDefinition({ name: "stripe", verify: TOKEN_RECIPE }));
    await save(followerDefinition("paid"));
    const answers = await Promise.all(Array.from({ length: 6 }, () => running.hook("stripe", tokenCall("t1", { id: "a" }))));
    const [{ events }] = answers.map(({ body }) => body) as [{ events: unknown[] }];
    expect(events).toHaveLength(2);
    expect(answers.map(({ body }) => body.events)).toEqual(Array.from({ length: 6 }, () => events));
    expect(answers.filter(({ body }) => body.duplicate === undefined)).toHaveLength(1);
    expect(await listEvents()).toHaveLength(2);
  });

  test("remembers a signature that counts once at the source", async () => {
    const map = { event_id: "id", event_type: "type", amount: "amount" };
    await saveRelay(running, receiverDefinition({ name: "stripe", map, verify: TOKEN_RECIPE }));
    await save(followerDefinition("paid", { map }));
    const first = await running.hook("stripe", tokenCall("t1", { id: "a" }));
    expect(first.body.events).toHaveLength(2);
    expect((await running.hook("stripe", tokenCall("t1", { id: "a" }))).body).toEqual({ ...first.body, duplicate: true });
    expect((await running.hook("stripe", tokenCall("t1", { id: "b" }))).status).toBe(401);
    expect(await listEvents()).toHaveLength(2);
  });
});

describe("a save", () => {
  const refusals: [
    what: string,
    prepare: Record<string, unknown>[],
    definition: Record<string, unknown>,
    status: number,
    code: string,
    says: string,
  ][] = [
    [
      "of a follower of a missing relay",
      [],
      followerDefinition("paid", { receiver: "strip" }),
      400,
      "relay_missing",
      "there is no relay strip in this environment. Did you mean stripe?",
    ],
    ["of a relay that follows itself", [], followerDefinition("paid", { receiver: "paid" }), 400, "relay_missing", "paid cannot follow itself"],
    [
      "of a follower of a follower",
      [followerDefinition("archive")],
      followerDefinition("paid", { receiver: "archive" }),
      400,
      "relay_missing",
      "archive follows stripe itself",
    ],
    [
      "of a follower of a schedule",
      [{ name: "nightly", trigger: { kind: "schedule", every: "1d" }, actions: [{ ...writeOrder, data: { order: "x" } }] }],
      followerDefinition("paid", { receiver: "nightly" }),
      400,
      "relay_missing",
      "nightly starts by a schedule",
    ],
    [
      "of a handshake at a follower",
      [],
      receiverDefinition({ name: "paid", verify: { ...follow("stripe"), handshake: "meta" } }),
      400,
      "invalid_definition",
      "handshake",
    ],
  ];
  for (const [what, prepare, definition, status, code, says] of refusals) {
    test(`${what} is ${code}`, async () => {
      await saveAll(prepare);
      const { status: got, body } = await running.api("POST", "/relays", { definition });
      expect([got, body.code]).toEqual([status, code]);
      expect(`${body.message} ${JSON.stringify(body.problems ?? [])}`).toContain(says);
    });
  }

  test("refuses to delete a source or to take its scheme while relays follow it, and names them", async () => {
    await saveAll([followerDefinition("paid"), followerDefinition("archive")]);
    const { body } = await running.api("DELETE", "/relays/stripe");
    expect([body.code, body.message]).toEqual(["receiver_followed", expect.stringContaining("archive, paid follow stripe")]);
    await saveRelay(running, receiverDefinition({ name: "other" }));
    const changed = await running.api("PUT", "/relays/stripe", {
      version: 1,
      definition: { ...followerDefinition("stripe", { receiver: "other" }) },
    });
    expect([changed.status, changed.body.code]).toEqual([409, "receiver_followed"]);
    for (const name of ["paid", "archive", "stripe"]) expect((await running.api("DELETE", `/relays/${name}`)).status).toBe(204);
  });

  test("takes at most 20 followers of a source", async () => {
    await running[Symbol.asyncDispose]();
    running = await startRunningService({ environments: ["development"], config: { limits: { ...DEFAULT_LIMITS, relaysPerEnvironment: 40 } } });
    await makeOrders(running);
    await saveAll([]);
    const codes: string[] = [];
    for (let nth = 0; nth < 21; nth++) {
      const { body } = await running.api("POST", "/relays", { definition: followerDefinition(`follower-${nth}`) });
      codes.push(body.code ?? "saved");
    }
    expect(codes).toEqual([...Array.from({ length: 20 }, () => "saved"), "relay_capped"]);
  });
});

describe("the unsigned-event rule", () => {
  const TOKEN = { scheme: "shared_token" };
  const byEmail = { event_id: "id", person_email: "email" };

  test("judges a follower by the scheme of its source", async () => {
    await saveRelay(running, receiverDefinition({ name: "stripe", verify: TOKEN }));
    const tryToSave = (definition: Record<string, unknown>) => running.api("POST", "/relays", { definition });
    const refused = await tryToSave(followerDefinition("grants", { map: byEmail, actions: [GRANT] }));
    expect([refused.status, refused.body.code]).toEqual([400, "invalid_definition"]);
    expect((await tryToSave(followerDefinition("records"))).status).toBe(201);
    const trusted = await tryToSave(followerDefinition("trusted", { map: byEmail, actions: [GRANT], trustUnsignedEvents: true }));
    expect([trusted.status, trusted.body.warnings.map(({ code }: { code: string }) => code)]).toEqual([
      201,
      expect.arrayContaining(["unsigned_events"]),
    ]);
  });

  test("refuses a scheme of the source that would break a follower, and names it", async () => {
    await saveAll([followerDefinition("grants", { map: byEmail, actions: [GRANT] })]);
    const definition = receiverDefinition({ name: "stripe", verify: TOKEN });
    const { status, body } = await running.api("PUT", "/relays/stripe", { version: 1, definition });
    expect([status, body.code]).toEqual([400, "invalid_definition"]);
    expect(JSON.stringify(body)).toContain("The relay grants follows stripe");
  });

  test("lets one plan change the scheme of the source and the opt-in of its followers, in either direction", async () => {
    const both = (verify: Record<string, unknown> | undefined, trust: object) => [
      followerDefinition("grants", { map: byEmail, actions: [GRANT], ...trust }),
      receiverDefinition({ name: "stripe", ...(verify === undefined ? {} : { verify }) }),
    ];
    for (const relays of [both(undefined, {}), both(TOKEN, { trustUnsignedEvents: true }), both(undefined, {})]) {
      const { body } = await running.api("POST", "/sync/plan", { relays });
      const applied = await running.api("POST", "/sync/apply", { relays, plan: body.plan });
      expect([applied.status, applied.body.message]).toEqual([200, undefined]);
    }
  });

  test("warns of a scheme of the source that widens what a follower does", async () => {
    const verify = { ...TOKEN_RECIPE };
    await saveRelay(running, receiverDefinition({ name: "stripe", verify }));
    await save(followerDefinition("trusted", { map: byEmail, actions: [GRANT], trustUnsignedEvents: true }));
    const definition = receiverDefinition({ name: "stripe", verify: TOKEN });
    const { status, body } = await running.api("PUT", "/relays/stripe", { version: 1, definition });
    expect(status).toBe(200);
    const optIn = body.warnings.find(({ code }: { code: string }) => code === "unsigned_events");
    expect(optIn?.message).toContain("The relay trusted follows stripe");
  });
});

test("a rejected request counts as missing if a follower takes it, until its event arrives at the follower", async () => {
  await saveAll([followerDefinition("paid", { when: { event_type: "paid" } })], { when: { event_type: "refunded" } });
  await running.hook("stripe", call("first", "paid"));
  const reject = (type: string) => running.hook("stripe", signedCall({ id: "a", type }, "anotherSecretOfTwentyFour1"));
  expect([(await reject("other")).status, (await reject("paid")).status]).toEqual([401, 401]);
  await running.clock.advance(5_000);
  const listed = async () =>
    await running.rows<{ id: string; arrived: number | null }>("SELECT event_id AS id, arrived_at AS arrived FROM rejected_delivery");
  expect(await listed()).toEqual([{ id: "a", arrived: null }]);
});

describe("sync", () => {
  const plan = (definitions: readonly Record<string, unknown>[], prune = false) => running.api("POST", "/sync/plan", { relays: definitions, prune });
  const apply = async (definitions: readonly Record<string, unknown>[], prune = false) => {
    const { body } = await plan(definitions, prune);
    return await running.api("POST", "/sync/apply", { relays: definitions, prune, plan: body.plan });
  };
  // The names sort followers before and after their source.
  const followers = [followerDefinition("archive"), followerDefinition("zebra")];
  const source = receiverDefinition({ name: "stripe" });

  test("saves a source before its followers, and prunes it after them", async () => {
    expect((await apply([...followers, source])).status).toBe(200);
    expect((await plan([...followers, source])).body.changes).toBe(0);
    expect((await apply([], true)).status).toBe(200);
    expect(await running.rows("SELECT name FROM relay")).toEqual([]);
  });

  test("moves followers to another source and prunes the first one in one plan", async () => {
    await apply([...followers, source]);
    const moved = [
      followerDefinition("archive", { receiver: "other" }),
      followerDefinition("zebra", { receiver: "other" }),
      receiverDefinition({ name: "other" }),
    ];
    const { status, body } = await apply(moved, true);
    expect([status, body.changes]).toEqual([200, 4]);
    expect(
      (await running.rows<{ name: string; source: string | null }>("SELECT name, source_name AS source FROM relay ORDER BY name")).map(
        ({ name, source }) => [name, source],
      ),
    ).toEqual([
      ["archive", "other"],
      ["other", null],
      ["zebra", "other"],
    ]);
  });

  test("turns a source into a follower together with its followers", async () => {
    await apply([...followers, source]);
    const after = [
      receiverDefinition({ name: "other" }),
      followerDefinition("stripe", { receiver: "other" }),
      ...followers.map((one) => followerDefinition(String(one.name), { receiver: "other" })),
    ];
    expect((await apply(after)).status).toBe(200);
  });

  test("refuses a follower without its source, and a pruned source that an edited follower still follows", async () => {
    const unsaved = await plan(followers);
    expect(unsaved.body.entries.map(({ refusal }: { refusal: { code: string } | null }) => refusal?.code)).toEqual([
      "relay_missing",
      "relay_missing",
    ]);
    await apply([source]);
    await save(followerDefinition("by-hand"));
    const pruned = await plan([], true);
    expect(pruned.body.entries.find(({ name }: { name: string }) => name === "stripe").refusal.code).toBe("receiver_followed");
  });

  test("shows an unchanged follower whose source lets a captured request do more", async () => {
    const map = { event_id: "id", person_email: "email" };
    const trusted = followerDefinition("trusted", { map, actions: [GRANT], trustUnsignedEvents: true });
    await apply([receiverDefinition({ name: "stripe", verify: TOKEN_RECIPE }), trusted]);
    const { body } = await plan([receiverDefinition({ name: "stripe", verify: { scheme: "shared_token" } }), trusted]);
    const shown = body.entries.find(({ name }: { name: string }) => name === "trusted");
    expect([shown.state, shown.capturedCall?.widens]).toEqual(["unchanged", true]);
    const only = await plan([receiverDefinition({ name: "stripe", verify: { scheme: "shared_token" } })]);
    const kept = only.body.entries.find(({ name }: { name: string }) => name === "trusted");
    expect([kept.state, kept.capturedCall?.widens]).toEqual(["only_there", true]);
    const added = await plan([followerDefinition("added", { map, actions: [GRANT], trustUnsignedEvents: true })]);
    const shownNew = added.body.entries.find(({ name }: { name: string }) => name === "added");
    expect([shownNew.state, shownNew.capturedCall?.widens]).toEqual(["created", true]);
  });
});

test("the events of followers equal those of the same relays with their own URLs, for any deliveries", async () => {
  const random = seededRandom();
  const types = ["paid", "refunded", "renewed"];
  for (let round = 0; round < roundsOf(8); round++) {
    const suffix = `r${round}`;
    const whens = Array.from({ length: 1 + random(4) }, () => (random(3) === 0 ? undefined : types[random(types.length)]));
    const relays = whens.map((type, nth) => ({
      name: `relay-${nth}-${suffix}`,
      change: {
        ...(type === undefined ? {} : { when: { event_type: type } }),
        map: random(3) === 0 ? { event_type: "type", amount: "amount" } : { event_id: "id", event_type: "type", amount: "amount" },
      },
    }));
    await saveRelay(running, receiverDefinition({ name: `source-${suffix}`, when: { event_type: types[random(types.length)] as string } }));
    for (const { name, change } of relays) {
      await save(followerDefinition(`follow-${name}`, { ...change, receiver: `source-${suffix}` }));
      await saveRelay(running, receiverDefinition({ ...change, name: `own-${name}` }));
    }
    const deliveries = Array.from({ length: 12 }, () => signedCall({ id: `e${random(5)}`, type: types[random(types.length)], amount: random(2) }));
    for (const delivery of deliveries) {
      await running.hook(`source-${suffix}`, delivery);
      for (const { name } of relays) await running.hook(`own-${name}`, delivery);
    }
    for (const { name } of relays) {
      const payloads = (prefix: string) =>
        running.rows<{ payload: string }>(`SELECT payload FROM event WHERE ${RELAY_NAME} = ?1 ORDER BY seq`, `${prefix}-${name}`);
      expect([name, await payloads("follow")]).toEqual([name, await payloads("own")]);
    }
    for (const { name } of relays) for (const prefix of ["follow", "own"]) await running.api("DELETE", `/relays/${prefix}-${name}`);
    await running.api("DELETE", `/relays/source-${suffix}`);
  }
});

/** Returns integers below a limit, always the same ones. */
function seededRandom(): (below: number) => number {
  let state = 20_261_129;
  return (below) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
    return Math.floor((state / 0x80000000) * below);
  };
}
