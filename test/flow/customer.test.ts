/** Tests customers that events name by the provider's id (sources, "Customers by the provider's ID"). */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { RETRY_DELAYS_MS } from "../../src/base/limit.ts";
import { rememberCustomer } from "../../src/shop/people/person-customer.ts";
import { alertsOf, editRelay, replay, runNothingInline, showEvent, until } from "../kit/event-flow.ts";
import { refuseCommits, refuseRows, takeRowsAgain } from "../kit/refused-row.ts";
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
import { APP, type RunningService, startRunningService } from "../kit/running-service.ts";

const GRANT: ActionLike = { type: "grant_access", entitlement: "access:course" };
const SEND: ActionLike = { type: "email_person", subject: "Thank you", text: "It is yours.", kind: "account" };
const PAID = { event_id: "id", person_email: "email", customer_id: "customer" };
const ENDED = { event_id: "id", customer_id: "customer" };
const CUSTOMER = { id: "customer_id" };
const [ADA, BOB] = ["ada@example.com", "bob@example.com"];
const FIRST_RETRY_MS = RETRY_DELAYS_MS[0] as number;

let running: RunningService;
beforeEach(async () => {
  running = await startRunningService({ environments: ["development", "production"] });
  await running.api("PUT", "/access", { items: [{ slug: "course" }] });
  await makeOrders(running);
});
afterEach(() => running[Symbol.asyncDispose]());

type Change = Parameters<typeof receiverDefinition>[0];
const follow = { scheme: "receiver", receiver: "stripe" };

/** Saves a relay whose events name the person by address and the customer id. */
const saveSource = (change: Change = {}) =>
  saveRelay(running, receiverDefinition({ name: "stripe", map: PAID, customer: CUSTOMER, actions: [GRANT], ...change }));

/** Saves a follower of `stripe` whose events name only the customer id. */
const saveFollower = (change: Change = {}) =>
  save(receiverDefinition({ name: "ended", verify: follow, map: ENDED, customer: CUSTOMER, actions: [GRANT], ...change }));

async function save(definition: Record<string, unknown>, secret?: string): Promise<void> {
  const saved = await running.api("POST", "/relays", { definition, ...(secret === undefined ? {} : { secret }) });
  if (saved.status !== 201) throw new Error(`The relay was refused: ${JSON.stringify(saved.body)}`);
}

async function send(relay: string, event: object): Promise<string> {
  const answer = await running.hook(relay, signedCall(event));
  if (answer.status !== 200) throw new Error(`The receiver refused: ${JSON.stringify(answer.body)}`);
  await running.drain();
  return answer.body.eventId;
}

interface Pair {
  space: string;
  customerId: string;
  email: string | null;
}
/** Lists the remembered pairs with the addresses of their people. */
const pairs = () =>
  running.rows<Pair>(
    `SELECT space, customer_id AS customerId, email FROM person_customer JOIN person ON person.id = person_id
     ORDER BY person_customer.environment_id, space, customer_id`,
  );
const PAIR = { space: "stripe", customerId: "cus_1", email: ADA };

/** Returns the state of an event, its reason and its person's address. */
async function ended(id: string): Promise<unknown[]> {
  const { state, reason, person } = await showEvent(running, id);
  return [state, reason, person?.email ?? null];
}

describe("an event with a person and a customer id", () => {
  test.each([
    ["person_email", { email: ADA }],
    ["person_id", {}],
    ["person_token", { token: "tok_1" }],
  ])("writes the pair where the map has %s", async (key, event) => {
    const { id } = (await running.api("POST", "/persons", { email: ADA })).body.person;
    await running.api("PUT", `/persons/${id}/tokens`, { token: "tok_1" });
    await saveSource({ map: { event_id: "id", [key]: key === "person_id" ? "person" : (Object.keys(event)[0] ?? ""), customer_id: "customer" } });
    const made = await send("stripe", { id: "a", customer: "cus_1", person: id, ...event });
    expect(await ended(made)).toEqual(["done", null, ADA]);
    expect(await pairs()).toEqual([PAIR]);
    expect((await showEvent(running, made)).warnings).toEqual([]);
  });

  test("writes a number as its text, and the pair of a relay that sends", async () => {
    await saveSource({ actions: [SEND] });
    await send("stripe", { id: "a", email: ADA, customer: 42 });
    expect(await pairs()).toEqual([{ ...PAIR, customerId: "42" }]);
  });

  test("writes the pair of a suspended person, whose event fails", async () => {
    const { id } = (await running.api("POST", "/persons", { email: ADA })).body.person;
    await running.api("PATCH", `/persons/${id}`, { status: "suspended" });
    await saveSource();
    expect(await ended(await send("stripe", { id: "a", email: ADA, customer: "cus_1" }))).toEqual(["dead", "person_suspended", ADA]);
    expect(await pairs()).toEqual([PAIR]);
  });

  test.each([
    ["has no customer id", undefined],
    ["has null", null],
    ["has an empty text", " "],
    ["has an object", { id: "cus_1" }],
    ["has 0, as a guest", 0],
    ["has false", false],
  ])("runs and writes none where the customer %s", async (_what, customer) => {
    await saveSource();
    const made = await send("stripe", { id: "a", email: ADA, customer });
    expect(await ended(made)).toEqual(["done", null, ADA]);
    expect((await showEvent(running, made)).warnings).toEqual([]);
    expect(await pairs()).toEqual([]);
  });

  test.each([["x".repeat(201)], ["cus_1\ncus_2"], ["cus\u0000_1"]])("runs and warns of an id that cannot be stored: %j", async (customer) => {
    await saveSource();
    const made = await send("stripe", { id: "a", email: ADA, customer });
    expect(await ended(made)).toEqual(["done", null, ADA]);
    expect((await showEvent(running, made)).warnings).toEqual([
      "customer_id of this event is longer than 200 characters or has more than one line, so Relay does not remember it as a customer ID.",
    ]);
    expect(await pairs()).toEqual([]);
  });

  test("writes none where the person is not found, and keeps person_not_found", async () => {
    await saveSource({ map: { event_id: "id", person_id: "person", customer_id: "customer" } });
    await saveFollower();
    expect((await ended(await send("stripe", { id: "a", person: "per_none", customer: "cus_1" }))).slice(0, 2)).toEqual([
      "failed",
      "person_not_found",
    ]);
    expect(await pairs()).toEqual([]);
  });

  test("writes the pair and the event's row in one transaction", async () => {
    await saveSource();
    await refuseCommits(running.service.store);
    expect((await running.hook("stripe", signedCall({ id: "a", email: ADA, customer: "cus_1" }))).status).toBe(503);
    expect(await pairs()).toEqual([]);
    await takeRowsAgain(running.service.store);
    expect(await ended(await send("stripe", { id: "a", email: ADA, customer: "cus_1" }))).toEqual(["done", null, ADA]);
    expect(await pairs()).toEqual([PAIR]);
  });

  test("writes the pair with the result of the attempt in a batch", async () => {
    await saveSource();
    runNothingInline(running);
    await refuseRows(running.service.store, "BEFORE INSERT ON run", "NEW.outcome = 'ok'");
    const answer = await running.hook("stripe", signedCall({ id: "a", email: ADA, customer: "cus_1" }));
    await running.clock.advance(1_000);
    expect(await pairs()).toEqual([]);
    await takeRowsAgain(running.service.store);
    await running.clock.advance(FIRST_RETRY_MS);
    await running.drain();
    expect(await ended(answer.body.eventId)).toEqual(["done", null, ADA]);
    expect(await pairs()).toEqual([PAIR]);
  });

  test("changes nothing when it is replayed twice, and audits nothing", async () => {
    await saveSource();
    const made = await send("stripe", { id: "a", email: ADA, customer: "cus_1" });
    const before = await running.rows("SELECT * FROM person_customer");
    for (const _time of [1, 2]) {
      expect((await replay(running, made)).status).toBe(202);
      await running.drain();
    }
    expect(await running.rows("SELECT * FROM person_customer")).toEqual(before);
    expect(await ended(made)).toEqual(["done", null, ADA]);
    expect((await running.api("GET", "/audit?action=person.customer_moved")).body.items).toEqual([]);
  });
});

describe("an event with only a customer id", () => {
  test("is about the person of the pair", async () => {
    await saveSource();
    await saveFollower();
    await send("stripe", { id: "a", email: ADA, customer: "cus_1" });
    const { body } = await running.hook("stripe", signedCall({ id: "b", customer: "cus_1" }));
    await running.drain();
    const mine = body.events.find(({ relay }: { relay: string }) => relay === "ended");
    expect(await ended(mine.eventId)).toEqual(["done", null, ADA]);
  });

  test("waits with customer_unknown and never ends with person_not_found; the event with the person comes late and the retry finds them", async () => {
    await saveSource({ when: { event_type: "paid" }, map: { ...PAID, event_type: "type" } });
    await saveFollower({ when: { event_type: "ended" }, map: { ...ENDED, event_type: "type" } });
    const early = await send("stripe", { id: "b", type: "ended", customer: "cus_1" });
    const { attempts, nextAttemptAt, createdAt, runs } = await showEvent(running, early);
    expect(await ended(early)).toEqual(["queued", "customer_unknown", null]);
    expect([attempts, Date.parse(nextAttemptAt ?? "") - Date.parse(createdAt)]).toEqual([1, FIRST_RETRY_MS]);
    expect(runs[0]?.results).toMatchObject([
      {
        type: "person",
        outcome: "failed",
        code: "customer_unknown",
        message:
          "No person has the customer ID in customer_id yet, in the space stripe. Relay learns it from an event that also names the person, or from relay people link.",
      },
    ]);
    await send("stripe", { id: "a", type: "paid", email: ADA, customer: "cus_1" });
    expect(await ended(early)).toEqual(["queued", "customer_unknown", null]);
    await running.clock.advance(FIRST_RETRY_MS);
    await running.drain();
    expect(await ended(early)).toEqual(["done", null, ADA]);
  });

  test("is dead after the usual retries, with an alert, and runs when it is replayed later", async () => {
    await saveSource({ when: { event_type: "paid" }, map: { ...PAID, event_type: "type" } });
    await saveFollower();
    const lost = await send("stripe", { id: "b", type: "ended", customer: "cus_1" });
    for (const delay of RETRY_DELAYS_MS) {
      expect(await ended(lost)).toEqual(["queued", "customer_unknown", null]);
      await running.clock.advance(delay);
      await running.drain();
    }
    expect(await ended(lost)).toEqual(["dead", "customer_unknown", null]);
    expect((await showEvent(running, lost)).attempts).toBe(RETRY_DELAYS_MS.length + 1);
    const alerts = (await alertsOf(running)).filter(({ code }) => code === "relay_failed");
    expect(alerts).toMatchObject([{ target: "relay:ended", count: 1 }]);
    await send("stripe", { id: "a", type: "paid", email: ADA, customer: "cus_1" });
    expect((await replay(running, lost)).status).toBe(202);
    await running.drain();
    expect(await ended(lost)).toEqual(["done", null, ADA]);
  });

  test("fails with person_not_found where it has no customer id, because no retry can find one", async () => {
    await saveSource({ map: { ...ENDED } });
    const made = await send("stripe", { id: "a", customer: null });
    expect(await ended(made)).toEqual(["failed", "person_not_found", null]);
  });

  test.each([["x".repeat(201)], ["cus\u0000_1"]])("waits where its customer id cannot be stored: %j", async (customer) => {
    await saveSource({ map: ENDED });
    expect(await ended(await send("stripe", { id: "a", customer }))).toEqual(["queued", "customer_unknown", null]);
  });

  test("fails for a suspended person as any other event", async () => {
    await saveSource();
    await saveFollower();
    const first = await send("stripe", { id: "a", email: ADA, customer: "cus_1" });
    const { person } = await showEvent(running, first);
    await running.api("PATCH", `/persons/${person?.id}`, { status: "suspended" });
    const { body } = await running.hook("stripe", signedCall({ id: "b", email: ADA, customer: "cus_1" }));
    await running.drain();
    for (const { eventId } of body.events) expect(await ended(eventId)).toEqual(["dead", "person_suspended", ADA]);
  });

  test("writes no pair, and a template reads its person", async () => {
    await saveSource();
    await saveFollower({ actions: [{ ...writeOrder, data: { order: "{{person.email}}", amount: "{{mapped.customer_id}}" } }] });
    await send("stripe", { id: "a", email: ADA, customer: "cus_1" });
    const [before] = await running.rows("SELECT * FROM person_customer");
    const { items } = (await running.api("GET", "/collections/orders/records")).body;
    expect(items.map(({ data }: { data: unknown }) => data)).toEqual([{ order: ADA, amount: "cus_1" }]);
    expect(await running.rows("SELECT * FROM person_customer")).toEqual([before]);
  });

  test("finds its person after the person's address changed", async () => {
    await saveSource();
    await saveFollower();
    const { person } = await showEvent(running, await send("stripe", { id: "a", email: ADA, customer: "cus_1" }));
    await running.api("POST", `/persons/${person?.id}/change-address`, { email: "ada@example.org" });
    expect(await pairs()).toEqual([{ ...PAIR, email: "ada@example.org" }]);
  });
});

describe("without customer in the definition", () => {
  test("customer_id is an ordinary name, and neither is written nor read", async () => {
    await saveSource({ customer: undefined });
    await saveFollower({ customer: undefined });
    const { body } = await running.hook("stripe", signedCall({ id: "a", email: ADA, customer: "cus_1" }));
    await running.drain();
    const [source, follower] = body.events.map(({ eventId }: { eventId: string }) => eventId);
    expect(await ended(source)).toEqual(["done", null, ADA]);
    expect((await ended(follower)).slice(0, 2)).toEqual(["failed", "person_not_found"]);
    expect(await pairs()).toEqual([]);
  });
});

describe("a pair that a different person gets", () => {
  test("moves, audited at both people, with a warning on the event", async () => {
    await saveSource();
    const first = await send("stripe", { id: "a", email: ADA, customer: "cus_1" });
    const second = await send("stripe", { id: "b", email: BOB, customer: "cus_1" });
    expect(await pairs()).toEqual([{ ...PAIR, email: BOB }]);
    expect((await showEvent(running, second)).warnings).toEqual([
      `The customer ID in customer_id named ${ADA} in the space stripe and names ${BOB} from this event on.`,
    ]);
    const [ada, bob] = [(await showEvent(running, first)).person?.id, (await showEvent(running, second)).person?.id];
    const { items } = (await running.api("GET", "/audit?action=person.customer_moved")).body;
    expect(items).toMatchObject([
      { target: `person:${bob}`, actor: "relay:stripe", after: { from: ada, space: "stripe", event: second } },
      { target: `person:${ada}`, actor: "relay:stripe", after: { to: bob, space: "stripe", event: second } },
    ]);
    expect(JSON.stringify(items)).not.toContain("cus_1");
  });

  test("keeps what the earlier person got, and later events are about the new one", async () => {
    await saveSource();
    await saveFollower();
    const first = await send("stripe", { id: "a", email: ADA, customer: "cus_1" });
    await send("stripe", { id: "b", email: BOB, customer: "cus_1" });
    const { person } = await showEvent(running, first);
    expect((await running.api("GET", `/persons/${person?.id}/access/access:course`)).body.granted).toBe(true);
    const { body } = await running.hook("stripe", signedCall({ id: "c", customer: "cus_1" }));
    await running.drain();
    const last = body.events.find(({ relay }: { relay: string }) => relay === "ended");
    expect(await ended(last.eventId)).toEqual(["done", null, BOB]);
  });

  test("does not go back when an earlier event is replayed or retried", async () => {
    await saveSource();
    const first = await send("stripe", { id: "a", email: ADA, customer: "cus_1" });
    await send("stripe", { id: "b", email: BOB, customer: "cus_1" });
    await replay(running, first);
    await running.drain();
    expect(await pairs()).toEqual([{ ...PAIR, email: BOB }]);
    expect((await showEvent(running, first)).warnings).toEqual([
      `The customer ID in customer_id names ${BOB} in the space stripe, because a later event or a person linked it, so it does not name ${ADA}.`,
    ]);
  });

  test("goes to the person that the same event names after its map was corrected", async () => {
    await saveSource({ map: { ...PAID, person_email: "wrong" } });
    const made = await send("stripe", { id: "a", email: ADA, wrong: BOB, customer: "cus_1" });
    expect(await pairs()).toEqual([{ ...PAIR, email: BOB }]);
    await editRelay(running, receiverDefinition({ name: "stripe", map: PAID, customer: CUSTOMER, actions: [GRANT] }));
    await replay(running, made);
    await running.drain();
    expect(await pairs()).toEqual([PAIR]);
  });

  test("shows the person of a replay by the pair", async () => {
    await saveSource({ map: PAID });
    await saveFollower();
    const { body } = await running.hook("stripe", signedCall({ id: "a", email: ADA, customer: "cus_1" }));
    await running.drain();
    const follower = body.events.find(({ relay }: { relay: string }) => relay === "ended").eventId;
    await send("stripe", { id: "b", email: BOB, customer: "cus_1" });
    const { plan } = (await running.api("GET", `/events/${follower}/replay`)).body;
    expect(JSON.stringify(plan)).toContain(BOB);
  });
});

describe("the newest arrival decides, in whatever order the attempts run", () => {
  const ORDERS = [
    [0, 1, 2],
    [0, 2, 1],
    [1, 0, 2],
    [1, 2, 0],
    [2, 0, 1],
    [2, 1, 0],
  ];
  test.each(ORDERS.map((order) => [order.join(), order] as const))("%s", async (_name, order) => {
    const arrivals = [ADA, BOB, ADA];
    const ids = await Promise.all([ADA, BOB].map(async (email) => (await running.api("POST", "/persons", { email })).body.person.id as string));
    const environmentId = (await running.rows<{ id: number }>("SELECT environment_id AS id FROM person LIMIT 1"))[0]?.id ?? 0;
    for (const at of order) {
      const personId = ids[arrivals[at] === ADA ? 0 : 1] ?? "";
      await running.service.store.write("relay", (tx) =>
        rememberCustomer(tx, {
          environmentId,
          space: "stripe",
          customerId: "cus_1",
          personId,
          arrival: at + 1,
          eventId: `evt_${at}`,
          by: "relay:stripe",
          nowMs: running.clock.now(),
        }),
      );
    }
    expect(await pairs()).toEqual([PAIR]);
  });

  test("two processes that write one pair at the same time leave one row of the newest arrival", async () => {
    const ids = await Promise.all([ADA, BOB].map(async (email) => (await running.api("POST", "/persons", { email })).body.person.id as string));
    const environmentId = (await running.rows<{ id: number }>("SELECT environment_id AS id FROM person LIMIT 1"))[0]?.id ?? 0;
    const other = await running.direct.open(running.clock);
    try {
      const both = [running.service.store, other];
      const writes = Array.from({ length: 20 }, (_, at) =>
        (both[at % 2] as typeof other).write("relay", (tx) =>
          rememberCustomer(tx, {
            environmentId,
            space: "stripe",
            customerId: "cus_1",
            personId: ids[at % 2] ?? "",
            arrival: at + 1,
            eventId: `evt_${at}`,
            by: "relay:stripe",
            nowMs: running.clock.now(),
          }),
        ),
      );
      await Promise.all(writes);
    } finally {
      await other.close();
    }
    expect(await pairs()).toEqual([{ ...PAIR, email: BOB }]);
  });
});

describe("the space of a customer id", () => {
  const paddle = () => saveRelay(running, receiverDefinition({ name: "paddle", map: ENDED, customer: CUSTOMER, actions: [GRANT] }));

  test("is the source's name for the source and its followers", async () => {
    await saveSource({ actions: [writeOrder], map: { event_id: "id" }, customer: undefined });
    await saveFollower({ name: "paid", map: PAID });
    await saveFollower();
    const { body } = await running.hook("stripe", signedCall({ id: "a", email: ADA, customer: "cus_1" }));
    await running.drain();
    await running.clock.advance(FIRST_RETRY_MS);
    await running.drain();
    expect(await pairs()).toEqual([PAIR]);
    const late = body.events.find(({ relay }: { relay: string }) => relay === "ended");
    expect(await ended(late.eventId)).toEqual(["done", null, ADA]);
  });

  test("is its own name for any other relay, so two providers do not share ids", async () => {
    await saveSource();
    await paddle();
    await send("stripe", { id: "a", email: ADA, customer: "1" });
    expect(await ended(await send("paddle", { id: "a", customer: "1" }))).toEqual(["queued", "customer_unknown", null]);
  });

  test("is the one that the definition names, so separate endpoints of one provider share it", async () => {
    await saveSource();
    await saveRelay(running, receiverDefinition({ name: "stripe-2", map: ENDED, customer: { ...CUSTOMER, space: "stripe" }, actions: [GRANT] }));
    await saveFollower({ name: "second", verify: { scheme: "receiver", receiver: "stripe-2" } });
    await send("stripe", { id: "a", email: ADA, customer: "cus_1" });
    const { body } = await running.hook("stripe-2", signedCall({ id: "b", customer: "cus_1" }));
    await running.drain();
    for (const { eventId } of body.events) expect(await ended(eventId)).toEqual(["done", null, ADA]);
  });

  test("belongs to one environment", async () => {
    await saveSource();
    const definition = receiverDefinition({ name: "stripe", map: ENDED, customer: CUSTOMER, actions: [GRANT] });
    const secret = HOOK_SECRET.toLowerCase().padEnd(40, "x1Y");
    expect((await running.api("POST", "/relays", { definition, secret }, "production")).status).toBe(201);
    await running.api("PUT", "/access", { items: [{ slug: "course" }] }, "production");
    await send("stripe", { id: "a", email: ADA, customer: "cus_1" });
    const { body } = await running.hook("stripe", signedCall({ id: "b", customer: "cus_1" }, secret));
    await running.drain();
    const { event } = (await running.api("GET", `/events/${body.eventId}`, undefined, "production")).body;
    expect([event.state, event.reason]).toEqual(["queued", "customer_unknown"]);
  });

  test.each<[string, string, string]>([
    [
      "that no relay has",
      "strype",
      "there is no space strype in this environment, because a space is the name of a receiver relay. Did you mean stripe? Otherwise create that receiver first.",
    ],
    [
      "that is nothing like one",
      "zuora",
      "there is no space zuora in this environment, because a space is the name of a receiver relay. Create that receiver first.",
    ],
    ["of a follower", "ended", "ended follows stripe, so it shares that relay's space. Write stripe."],
    ["of a relay that names another", "stripe-2", "the customer ids of stripe-2 are in the space stripe. Write stripe."],
    ["of a schedule", "nightly", "nightly starts by a schedule, so it has no customers. Name a receiver relay."],
  ])("%s is refused", async (_what, space, sentence) => {
    await saveSource();
    await saveFollower();
    await saveRelay(running, receiverDefinition({ name: "stripe-2", map: ENDED, customer: { ...CUSTOMER, space: "stripe" }, actions: [GRANT] }));
    await save({ name: "nightly", trigger: { kind: "schedule", every: "1d" }, actions: [writeOrder] });
    const definition = receiverDefinition({ name: "late", map: ENDED, customer: { ...CUSTOMER, space }, actions: [GRANT] });
    const refused = await running.api("POST", "/relays", { definition, secret: HOOK_SECRET });
    expect([refused.status, refused.body.code, refused.body.message]).toEqual([400, "relay_missing", `\`trigger.customer.space\`: ${sentence}`]);
  });

  test.each<[string, () => Promise<{ body: { warnings: object[] } }>]>([
    ["deleted", () => running.api("DELETE", "/relays/stripe")],
    [
      "given another space",
      async () => {
        const definition = receiverDefinition({ name: "stripe", map: PAID, customer: { ...CUSTOMER, space: "paddle" }, actions: [GRANT] });
        const { relay } = (await running.api("GET", "/relays/stripe")).body;
        return await running.api("PUT", "/relays/stripe", { definition, version: relay.version });
      },
    ],
  ])("that relays name is lost with a warning if its receiver is %s before it has ids", async (_what, change) => {
    const user = (name: string) =>
      saveRelay(running, receiverDefinition({ name, map: ENDED, customer: { ...CUSTOMER, space: "stripe" }, actions: [GRANT] }));
    await saveSource();
    await paddle();
    await user("stripe-3");
    await user("stripe-2");
    const lost = {
      code: "reference_missing",
      field: "trigger.customer.space",
      message: expect.stringMatching(/^stripe-2, stripe-3 name the space stripe, /),
    };
    expect((await change()).body.warnings).toContainEqual(lost);
  });

  test("that has ids is kept without a warning", async () => {
    await saveSource();
    await saveRelay(running, receiverDefinition({ name: "stripe-2", map: ENDED, customer: { ...CUSTOMER, space: "stripe" }, actions: [GRANT] }));
    await send("stripe", { id: "a", email: ADA, customer: "cus_1" });
    expect((await running.api("DELETE", "/relays/stripe")).status).toBe(204);
  });

  test("stays with the ids of a deleted relay, and a follower cannot name itself", async () => {
    await saveSource();
    await saveFollower();
    await send("stripe", { id: "a", email: ADA, customer: "cus_1" });
    const own = receiverDefinition({ name: "self", verify: follow, map: ENDED, customer: { ...CUSTOMER, space: "self" }, actions: [GRANT] });
    expect((await running.api("POST", "/relays", { definition: own })).body.message).toContain("self follows stripe");
    await running.api("DELETE", "/relays/ended");
    await running.api("DELETE", "/relays/stripe");
    await saveRelay(running, receiverDefinition({ name: "stripe-2", map: ENDED, customer: { ...CUSTOMER, space: "stripe" }, actions: [GRANT] }));
    expect(await ended(await send("stripe-2", { id: "b", customer: "cus_1" }))).toEqual(["done", null, ADA]);
  });
});

describe("files", () => {
  const late = (space: string) => receiverDefinition({ name: "a-late", map: ENDED, customer: { ...CUSTOMER, space }, actions: [GRANT] });
  const source = receiverDefinition({ name: "stripe", map: PAID, customer: CUSTOMER, actions: [GRANT] });
  const apply = async (relays: readonly object[], environment?: "production") => {
    const { body } = await running.api("POST", "/sync/plan", { relays }, environment);
    return await running.api("POST", "/sync/apply", { relays, plan: body.plan }, environment);
  };

  test("that share a space are applied in any order", async () => {
    expect((await apply([late("stripe"), source])).status).toBe(200);
    const { definition } = (await running.api("GET", "/relays/a-late")).body.relay;
    expect(definition.trigger.customer).toEqual({ ...CUSTOMER, space: "stripe" });
  });

  test("with a space that does not exist are refused, with the sentence", async () => {
    const refused = await apply([late("strype"), source]);
    expect(JSON.stringify(refused.body)).toContain("there is no space strype in this environment");
    expect((await running.api("GET", "/relays")).body.items.map(({ name }: { name: string }) => name)).not.toContain("a-late");
  });
});

describe("a sender that does not sign its events", () => {
  const trusted = { verify: TOKEN_RECIPE, trustUnsignedEvents: true };
  const token = (name: string, more: object) => running.hook("stripe", tokenCall(name, more, Math.floor(running.clock.now() / 1_000)));

  test("reads pairs and needs no opt-in for customer", async () => {
    await saveSource({ name: "signed" });
    await send("signed", { id: "a", email: ADA, customer: "cus_1" });
    const record = { ...writeOrder, data: { order: "{{person.email}}", amount: "1" } };
    await saveSource({ verify: TOKEN_RECIPE, map: ENDED, customer: { ...CUSTOMER, space: "signed" }, actions: [record] });
    const { body } = await token("t1", { id: "b", customer: "cus_1" });
    await running.drain();
    expect(await ended(body.eventId)).toEqual(["done", null, ADA]);
  });

  test.each([
    ["person_email", PAID],
    ["person_id", { event_id: "id", person_id: "person", customer_id: "customer" }],
  ])("never writes a pair, also with the opt-in and %s", async (_key, map) => {
    const { id } = (await running.api("POST", "/persons", { email: ADA })).body.person;
    await saveSource({ ...trusted, map });
    const { body } = await token("t1", { id: "a", email: ADA, person: id, customer: "cus_1" });
    await running.drain();
    expect(await ended(body.eventId)).toEqual(["done", null, ADA]);
    expect(await pairs()).toEqual([]);
  });

  test("never writes one through a follower", async () => {
    await saveSource({ ...trusted, map: ENDED, actions: [writeOrder], customer: undefined });
    await saveFollower({ name: "paid", map: PAID, trustUnsignedEvents: true });
    const { body } = await token("t1", { id: "a", email: ADA, customer: "cus_1" });
    await running.drain();
    expect(await ended(body.events[1].eventId)).toEqual(["done", null, ADA]);
    expect(await pairs()).toEqual([]);
  });

  test("never moves a pair, and an event that arrived unsigned writes none under a later scheme", async () => {
    await saveSource({ name: "signed" });
    await send("signed", { id: "a", email: ADA, customer: "cus_1" });
    await saveSource({ ...trusted, customer: { ...CUSTOMER, space: "signed" } });
    const { body } = await token("t1", { id: "b", email: BOB, customer: "cus_1" });
    await running.drain();
    await editRelay(running, receiverDefinition({ name: "stripe", map: PAID, customer: { ...CUSTOMER, space: "signed" }, actions: [GRANT] }));
    await replay(running, body.eventId);
    await running.drain();
    expect(await pairs()).toEqual([{ ...PAIR, space: "signed" }]);
  });
});

describe("an import", () => {
  const importLines = async (...lines: object[]) => {
    const url = `${running.service.url}/api/apps/${APP}/development/relays/stripe/import-missed`;
    const body = lines.map((line) => JSON.stringify(line)).join("\n");
    const response = await fetch(url, { method: "POST", headers: { authorization: `Bearer ${running.keys.development}` }, body });
    await running.drain();
    return response.status;
  };

  test.each([
    ["of a signed request writes the pair", true],
    ["of a line without a signature writes none", false],
  ])("%s", async (_what, isSigned) => {
    const { id } = (await running.api("POST", "/persons", { email: ADA })).body.person;
    const record = { ...writeOrder, data: { order: "{{person.email}}", amount: "1" } };
    await saveSource({ map: { event_id: "id", person_id: "person", customer_id: "customer" }, actions: [record] });
    const event = { id: "a", person: id, customer: "cus_1" };
    expect(await importLines(isSigned ? signedCall(event) : event)).toBe(200);
    expect((await running.api("GET", "/collections/orders/records")).body.items).toHaveLength(1);
    expect(await pairs()).toEqual(isSigned ? [PAIR] : []);
  });
});

describe("a simulation", () => {
  test("writes no pair: explain, a dry run of a stored event and cases", async () => {
    await saveSource();
    await saveFollower();
    const body = JSON.stringify({ id: "a", email: ADA, customer: "cus_1" });
    const explained = await running.api("POST", "/relays/stripe/explain", { body });
    expect(explained.status).toBe(200);
    expect((await running.api("PUT", "/relays/stripe/cases/first", { body })).status).toBeLessThan(300);
    expect((await running.api("POST", "/relays/stripe/cases/run", {})).status).toBeLessThan(300);
    const unknown = await running.api("POST", "/relays/ended/explain", { body });
    const step = unknown.body.explanation.steps.find((one: { step: string }) => one.step === "person");
    expect(step).toMatchObject({ detail: { code: "customer_unknown" } });
    expect([await pairs(), await running.rows("SELECT id FROM person")]).toEqual([[], []]);
  });

  test("of an event with only a customer id shows the person of the pair", async () => {
    await saveSource();
    await saveFollower();
    await send("stripe", { id: "a", email: ADA, customer: "cus_1" });
    await running.clock.advance(1_000);
    const { body } = await running.api("POST", "/relays/ended/explain", { person: "cus_1" });
    const step = body.explanation.steps.find((one: { step: string }) => one.step === "person");
    expect(step).toMatchObject({ message: "The person exists.", detail: { email: ADA } });
  });

  test("but a test event writes the pair, because it has every effect of a real one", async () => {
    await saveSource();
    const sent = await running.api("POST", "/relays/stripe/test-event", { body: JSON.stringify({ id: "a", email: ADA, customer: "cus_1" }) });
    expect(sent.body.outcome).toBe("new");
    await running.drain();
    expect(await pairs()).toEqual([PAIR]);
  });
});

describe("the erasure of a person", () => {
  const erase = async (email: string) => {
    const { items } = (await running.api("GET", `/persons?email=${email}`)).body;
    expect((await running.api("DELETE", `/persons/${items[0].id}`)).status).toBe(204);
    await running.clock.advance(2_000);
    await running.drain();
    return items[0].id as string;
  };

  test("erases their customer ids, and those of no other person", async () => {
    await saveSource();
    await send("stripe", { id: "a", email: ADA, customer: "cus_1" });
    await send("stripe", { id: "b", email: BOB, customer: "cus_2" });
    await erase(ADA);
    expect(await pairs()).toEqual([{ space: "stripe", customerId: "cus_2", email: BOB }]);
  });

  test("expunges events that wait for the person by a customer id, and no others", async () => {
    await saveSource({ when: { event_type: "paid" }, map: { ...PAID, event_type: "type" } });
    await saveFollower({ when: { event_type: "ended" }, map: { ...ENDED, event_type: "type" } });
    const theirs = await send("stripe", { id: "b", type: "ended", customer: "cus_1" });
    const others = await send("stripe", { id: "c", type: "ended", customer: "cus_10" });
    await send("stripe", { id: "a", type: "paid", email: ADA, customer: "cus_1" });
    await erase(ADA);
    await until("the event is expunged", async () => {
      const [row] = await running.rows<{ payload: string }>("SELECT payload FROM event ORDER BY seq LIMIT 1");
      return row?.payload.includes("person_erased") === true;
    });
    await running.clock.advance(FIRST_RETRY_MS);
    await running.drain();
    expect((await ended(theirs)).slice(0, 2)).toEqual(["failed", "person_erased"]);
    expect((await ended(others)).slice(0, 2)).toEqual(["queued", "customer_unknown"]);
  });

  test("lets the same customer id name a new person after it", async () => {
    await saveSource();
    await saveFollower();
    await send("stripe", { id: "a", email: ADA, customer: "cus_1" });
    const erased = await erase(ADA);
    const waiting = await running.hook("stripe", signedCall({ id: "b", customer: "cus_1", email: ADA }));
    await running.clock.advance(FIRST_RETRY_MS);
    await running.drain();
    for (const { eventId } of waiting.body.events) expect(await ended(eventId)).toEqual(["done", null, ADA]);
    expect(await pairs()).toEqual([PAIR]);
    const [row] = await running.rows<{ personId: string }>("SELECT person_id AS personId FROM person_customer");
    expect(row?.personId).not.toBe(erased);
  });
});

describe("a merge of people", () => {
  test("moves the customer ids, and an earlier event does not move them back", async () => {
    await saveSource();
    await saveFollower();
    const first = await send("stripe", { id: "a", email: ADA, customer: "cus_1" });
    const { person } = await showEvent(running, first);
    await running.api("POST", "/persons", { email: BOB });
    const merged = await running.api("POST", `/persons/${person?.id}/merge`, { into: BOB });
    expect(merged.body).toMatchObject({ merged: true, plan: { customers: 1 } });
    expect(merged.body.plan.message).toContain("1 customer ID");
    expect(await pairs()).toEqual([{ ...PAIR, email: BOB }]);
    await replay(running, first);
    await running.drain();
    expect(await pairs()).toEqual([{ ...PAIR, email: BOB }]);
  });
});
