/**
 * Tests a person's timeline. Every kind of event occurs once, in words, with its source. Its pages are complete and without duplicates while rows
 * arrive. Searches find people by every identifier.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { TimelineItem } from "../../src/insight/timeline/item.ts";
import { receiverDefinition, saveRelay, signedCall } from "../kit/relay-definition.ts";
import { type RunningService, startRunningService } from "../kit/running-service.ts";

const MAP = { event_id: "id", event_type: "type", person_email: "email", order: "order" };
const CAROL = "carol@example.com";

let running: RunningService;
let carol = "";

beforeAll(async () => {
  running = await startRunningService({ environments: ["development", "production"] });
  await stage();
});
afterAll(() => running[Symbol.asyncDispose]());

// biome-ignore lint/suspicious/noExplicitAny: a test reads answers by their fields
async function make(method: string, path: string, body?: unknown): Promise<any> {
  const answer = await running.api(method, path, body);
  if (answer.status >= 300) throw new Error(`${method} ${path}: ${JSON.stringify(answer.body)}`);
  // Separates the events in time.
  await running.clock.advance(1_000);
  return answer.body;
}

async function call(relay: string, event: object): Promise<void> {
  const answer = await running.hook(relay, signedCall(event));
  expect(answer.status).toBe(200);
  await running.drain();
  await running.clock.advance(1_000);
}

async function stage(): Promise<void> {
  await make("PUT", "/access", { items: [{ slug: "beta" }] });
  await make("PUT", "/plans/basic", { title: "Basic" });
  await make("PUT", "/plans/pro", { title: "Pro" });
  await make("POST", "/collections", { name: "notices", kind: "addressed", fields: { text: { type: "text" } } });
  const sale = { type: "fulfil_product", product: "lamp", ref: "{{mapped.order}}" };
  const notice = { type: "write_record", collection: "notices", to: "person", data: { text: "Thanks" } };
  await saveRelay(running, receiverDefinition({ name: "shop", map: MAP, actions: [sale, notice] }));
  await make("PUT", "/products/lamp", { title: "Lamp", credits: 5, soldThrough: { kind: "relay", relay: "shop" } });
  const missing = { type: "fulfil_product", product: "chair", ref: "{{mapped.order}}" };
  await saveRelay(running, receiverDefinition({ name: "broken", map: MAP, actions: [missing] }));
  await call("shop", { id: "a", type: "order.paid", email: CAROL, order: "cs_1" });
  carol = (await make("GET", `/persons?email=${CAROL}`)).items[0].id;
  await call("broken", { id: "b", type: "order.paid", email: CAROL, order: "cs_2" });
  await make("POST", `/persons/${carol}/credits`, { amount: 7, reason: "sorry", key: "k1" });
  await make("POST", `/persons/${carol}/credits`, { amount: -2, reason: "spent", key: "k2" });
  const soon = new Date(running.clock.now() + 10_000).toISOString();
  await make("POST", `/persons/${carol}/grants`, { entitlement: "access:beta", expiresAt: soon, reason: "a trial" });
  const { grant } = await make("POST", `/persons/${carol}/grants`, { entitlement: "access:beta" });
  await make("DELETE", `/grants/${grant.id}`);
  await make("POST", "/receipts", { ref: "sub_1", person: carol, plan: "pro" });
  const [subscription] = (await make("GET", `/subscriptions?person=${carol}`)).items;
  await make("POST", `/subscriptions/${subscription.id}/end`);
  await make("PATCH", `/persons/${carol}`, { status: "suspended" });
  await make("PATCH", `/persons/${carol}`, { status: "active" });
  await make("PUT", `/persons/${carol}/tokens`, { token: "store-token-of-carol-1" });
  await running.clock.advance(20_000);
}

async function story(query = "?limit=200"): Promise<{ items: TimelineItem[]; next: string | null }> {
  const { status, body } = await running.api("GET", `/persons/${carol}/story${query}`);
  expect({ status, body }).toEqual({ status: 200, body });
  return body;
}

async function readAll(limit: number, between: () => Promise<unknown> = async () => undefined): Promise<TimelineItem[]> {
  const items: TimelineItem[] = [];
  let next: string | null = null;
  do {
    const page = await story(`?limit=${limit}${next === null ? "" : `&cursor=${next}`}`);
    items.push(...page.items);
    next = page.next;
    await between();
  } while (next !== null);
  return items;
}

describe("the timeline lists once", () => {
  const TOLD: readonly [what: string, wanted: Partial<Record<keyof TimelineItem, unknown>>][] = [
    ["a successful event, with its subject", { kind: "event", look: "done", sentence: "order.paid at shop: done", relay: "shop" }],
    [
      "a dead event, with the reason in words",
      {
        kind: "event",
        look: "dead",
        sentence: "order.paid at broken: dead, not retried automatically",
        detail: expect.stringMatching(/^fulfil_product: .*chair/),
      },
    ],
    ["a purchase, linked to its event", { kind: "purchase", sentence: "Bought lamp", detail: "ref cs_1", eventId: expect.stringMatching(/^evt_/) }],
    ["credits of a purchase", { kind: "credits", sentence: "+5 credits · balance 5", relay: "shop" }],
    ["credits added manually", { kind: "credits", sentence: "+7 credits · balance 12", detail: "sorry", relay: null }],
    ["credits spent", { kind: "credits", sentence: "−2 credits · balance 10" }],
    ["access by a purchase", { kind: "access", relay: "shop", sentence: expect.stringMatching(/^Access to .*lamp, by the relay shop$/) }],
    [
      "temporary access",
      { kind: "access", detail: "a trial", sentence: expect.stringMatching(/^Access to access:beta until .* UTC, with the key key_/) },
    ],
    ["access that expired", { kind: "access_end", sentence: "Access to access:beta ended: it ran out" }],
    ["revoked access", { kind: "access_end", sentence: expect.stringMatching(/^Access to access:beta ended: taken back with the key key_/) }],
    ["a plan that began", { kind: "plan", sentence: "The plan pro began" }],
    ["a plan that ended", { kind: "plan_end", sentence: "The plan pro ended" }],
    [
      "a record for the person, with its event",
      { kind: "record", sentence: "A record for them in notices, written by the relay shop", eventId: expect.stringMatching(/^evt_/) },
    ],
    ["a suspension", { kind: "change", sentence: expect.stringMatching(/^Suspended: may use nothing until they are active again, with the key/) }],
    ["a reactivation", { kind: "change", sentence: expect.stringMatching(/^Active again, with the key/) }],
    ["a token, never its value", { kind: "change", sentence: expect.stringMatching(/^A store account token was filed, with the key/) }],
    ["the person's creation", { kind: "made", sentence: "Person created by the relay shop" }],
  ];

  for (const [what, wanted] of TOLD) {
    test(what, async () => {
      const { items } = await story();
      const fits = items.filter((item) => matches(item, wanted));
      expect({ wanted, found: fits.length, story: fits.length === 1 ? [] : items }).toEqual({ wanted, found: 1, story: [] });
    });
  }

  function matches(item: TimelineItem, wanted: object): boolean {
    try {
      expect(item).toMatchObject(wanted);
      return true;
    } catch {
      return false;
    }
  }

  test("events newest first, by time", async () => {
    const times = (await story()).items.map(({ at }) => at);
    expect(times).toEqual([...times].sort().reverse());
  });
});

describe("pages", () => {
  test("small pages join to the large one, complete and without duplicates", async () => {
    const whole = (await story()).items;
    for (const limit of [1, 2, 3, 7]) expect(await readAll(limit)).toEqual(whole);
  });

  test("new rows do not shift a reader's pages", async () => {
    const whole = (await story()).items;
    let count = 0;
    const read = await readAll(2, async () => {
      count += 1;
      await running.clock.advance(1_000);
      await make("POST", `/persons/${carol}/credits`, { amount: 1, reason: "meanwhile", key: `m${count}` });
      const { grant } = await make("POST", `/persons/${carol}/grants`, { entitlement: "access:beta" });
      await make("DELETE", `/grants/${grant.id}`);
    });
    expect(read.map(({ id }) => id)).toEqual(whole.map(({ id }) => id));
    expect(new Set(read.map(({ id }) => id)).size).toBe(read.length);
  });

  const CURSORS: readonly [what: string, cursor: string][] = [
    ["no JSON", Buffer.from("x").toString("base64url")],
    ["an unknown list", Buffer.from('{"other":1}').toString("base64url")],
    ["a key of another kind", Buffer.from('{"event":"evt_1"}').toString("base64url")],
    ["a list's own JSON", Buffer.from("[1]").toString("base64url")],
    ["nothing", ""],
  ];
  for (const [what, cursor] of CURSORS) {
    test(`a cursor of ${what} is rejected`, async () => {
      const { status, body } = await running.api("GET", `/persons/${carol}/story?cursor=${cursor}`);
      expect({ status, code: body.code }).toEqual({ status: 400, code: "invalid_input" });
    });
  }

  test("another environment cannot read a person's timeline", async () => {
    const { status } = await running.api("GET", `/persons/${carol}/story`, undefined, "production");
    expect(status).toBe(404);
  });
});

describe("people can be found", () => {
  const ids = async (query: string): Promise<string[]> => (await make("GET", `/persons?${query}`)).items.map(({ email }: { email: string }) => email);

  beforeAll(async () => {
    for (const name of ["carola", "dan", "erin"]) await make("POST", "/persons", { email: `${name}@example.com` });
    const { items } = await make("GET", "/persons?email=erin@example.com");
    await make("POST", `/persons/${items[0].id}/grants`, { entitlement: "access:beta" });
    await make("PATCH", `/persons/${items[0].id}`, { status: "suspended" });
  });

  const FOUND: readonly [what: string, query: () => string, found: string[]][] = [
    ["by a complete address", () => `find=${CAROL}`, [CAROL]],
    ["by an address in other letter case", () => "find=DAN@Example.com", ["dan@example.com"]],
    ["by the beginning of an address, in alphabetical order", () => "find=caro", [CAROL, "carola@example.com"]],
    ["by an id", () => `find=${carol}`, [CAROL]],
    ["by a store account token", () => "find=store-token-of-carol-1", [CAROL]],
    ["with no result by a part of an address, because q searches for parts", () => "find=rol", []],
    ["by whether they have access, which excludes suspended people", () => "access=true", [CAROL]],
    ["by whether they lack access", () => "access=false&status=suspended", ["erin@example.com"]],
  ];
  for (const [what, query, found] of FOUND) test(what, async () => expect(await ids(query())).toEqual(found));

  test("with an empty search as an error that says what to search for", async () => {
    const { status, body } = await running.api("GET", "/persons?find=");
    expect([status, body.message]).toEqual([400, expect.stringContaining("`find` is empty: it must be an address or its start, an id")]);
  });

  test("page by page", async () => {
    const first = await make("GET", "/persons?find=caro&limit=1");
    const second = await make("GET", `/persons?find=caro&limit=1&cursor=${first.next}`);
    expect([...first.items, ...second.items].map(({ email }) => email)).toEqual([CAROL, "carola@example.com"]);
    expect(second.next).toBeNull();
  });

  test("with the current access of each", async () => {
    const [found] = (await make("GET", `/persons?find=${carol}`)).items;
    expect(found).toMatchObject({ access: { granted: true, until: null }, credits: expect.any(Number) });
  });

  test("with everything that one person has", async () => {
    expect(await make("GET", `/persons/${carol}`)).toMatchObject({
      person: { email: CAROL },
      access: { granted: true, grants: [{ relay: "shop", eventId: expect.stringMatching(/^evt_/) }] },
      credits: expect.any(Number),
      plan: "basic",
      subscription: null,
      mailStoppedAt: null,
      tokens: [{ token: "store-token-of-carol-1" }],
    });
  });
});

test("a done event explains its skipped actions, and omits those that a replay need not repeat", async () => {
  const end = { type: "revoke_plan", plan: "pro", ref: "{{mapped.order}}" };
  const notice = { type: "write_record", collection: "notices", to: "person", data: { text: "Ended" } };
  await saveRelay(running, receiverDefinition({ name: "ender", map: MAP, actions: [end, notice] }));
  await call("ender", { id: "e1", type: "plan.ended", email: "bob@example.com", order: "in_1" });
  await call("shop", { id: "e2", type: "order.paid", email: "bob@example.com", order: "cs_9" });
  const bob = (await make("GET", "/persons?email=bob@example.com")).items[0].id;
  const events = async () => {
    const { items } = (await running.api("GET", `/persons/${bob}/story`)).body as { items: TimelineItem[] };
    return items.filter(({ kind }) => kind === "event");
  };
  const [paid, ended] = await events();
  expect(ended).toMatchObject({
    sentence: "plan.ended at ender: done, revoke_plan skipped",
    detail: expect.stringContaining("revoke_plan: The person has no active subscription on pro, so there was nothing to end."),
  });
  expect(paid).toMatchObject({ sentence: "order.paid at shop: done", detail: expect.stringContaining("cs_9") });
  await make("POST", `/events/${paid?.eventId}/replay`);
  await running.drain();
  expect((await events())[0]).toMatchObject({ sentence: "order.paid at shop: done", detail: expect.stringContaining("cs_9") });
});
