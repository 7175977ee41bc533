/**
 * Tests a corrected path to the person. A replay names both people, changes nothing by default, and moves a purchase if the caller chooses it.
 * Source: decisions section 3, "the corrected person".
 */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { runCommand } from "../kit/cli-io.ts";
import { editRelay, sendEvent, showEvent, until, WRITE } from "../kit/event-flow.ts";
import { BROKEN, FakeCaller, OK } from "../kit/fake-caller.ts";
import { type ActionLike, makeOrders, receiverDefinition, saveRelay } from "../kit/relay-definition.ts";
import { type RunningService, startRunningService } from "../kit/running-service.ts";

const [ADA, BOB, CAY] = ["ada@example.com", "bob@example.com", "cay@example.com"];
const LAMP: ActionLike = { type: "fulfil_product", product: "lamp", ref: "{{mapped.payment}}" };
const PRO: ActionLike = { type: "grant_plan", plan: "pro", ref: "{{mapped.payment}}" };
const CALL: ActionLike = { type: "call_url", url: "https://example.com/notice" };
const NOWHERE: ActionLike = { ...WRITE, collection: "nowhere" };

let running: RunningService;
let caller: FakeCaller;
beforeEach(async () => {
  caller = new FakeCaller();
  running = await startRunningService({ ports: { caller } });
  await makeOrders(running);
  const sold = { soldThrough: { kind: "relay", relay: "orders" } };
  await saveRelay(running, define("email", WRITE));
  await running.api("PUT", "/products/lamp", { credits: 100, ...sold });
  await running.api("PUT", "/plans/free", {});
  for (const plan of ["basic", "pro"]) await running.api("PUT", `/plans/${plan}`, sold);
});
afterEach(() => running[Symbol.asyncDispose]());

/** Defines the relay. `path` is the field from which the map reads the buyer's address. */
const define = (path: string, ...actions: ActionLike[]) =>
  receiverDefinition({ actions, map: { event_id: "id", person_email: path, payment: "payment" } });
const correct = (...actions: ActionLike[]) => editRelay(running, define("buyer", ...actions));

/** Sends an event that the wrong path assigns to Ada, although Bob bought. */
async function buy(id: string, more: object = {}): Promise<string> {
  const event = await sendEvent(running, id, { email: ADA, buyer: BOB, payment: `pay_${id}`, ...more });
  await running.drain();
  return event;
}

async function again(event: string, body?: object) {
  const answer = await running.api("POST", `/events/${event}/replay`, body);
  expect([answer.status, answer.body.code]).toEqual([202, undefined]);
  await running.drain();
  return results(event);
}

const results = async (event: string) =>
  // biome-ignore lint/suspicious/noExplicitAny: results have a shape for each action
  ((await showEvent(running, event)).runs.at(-1)?.results ?? []).map(({ outcome, code }: any) => code ?? outcome);
const message = async (event: string) => (await showEvent(running, event)).runs.at(-1)?.results[0].message;
const planOf = async (event: string) => (await running.api("GET", `/events/${event}/replay`)).body.plan.actions;
const idOf = async (email: string) => (await running.api("GET", `/persons?email=${email}`)).body.items[0]?.id;

async function holds(email: string) {
  const id = await idOf(email);
  if (id === undefined) return "nobody";
  const { access, credits, plan } = (await running.api("GET", `/persons/${id}`)).body;
  const grants = access.grants.map(({ entitlement }: { entitlement: string }) => entitlement).sort();
  return `${[...grants, credits].join(" ")} on ${plan}`;
}

/** Lists the receipts under a ref, newest first: `<kind> <address> <whether it moved>`. */
async function under(ref: string) {
  const { items } = (await running.api("GET", `/purchases?ref=${ref}`)).body;
  return items.map(({ kind, personEmail, movedTo }: { kind: string; personEmail: string | null; movedTo: string | null }) =>
    [kind, personEmail ?? "erased", ...(movedTo === null ? [] : ["moved"])].join(" "),
  );
}
const MOVED = [`purchase ${BOB}`, `refund ${ADA} moved`, `purchase ${ADA} moved`];
const [NOTHING, A_LAMP] = ["0 on free", "lamp 100 on free"];

describe("a product's purchase", () => {
  test("names both people, stays by default, moves if chosen, and moves once", async () => {
    await editRelay(running, define("email", LAMP));
    const event = await buy("1");
    await correct(LAMP);
    const [planned] = await planOf(event);
    expect(planned).toMatchObject({ will: "other_person", mayChoose: true, doneFor: { id: await idOf(ADA), name: ADA } });
    expect(planned.nowFor).toEqual({ id: null, name: BOB });
    expect(planned.message).toMatch(/for ada@example.com, and the event is about bob@example.com now\. Choosing it moves the purchase/);
    expect(await again(event)).toEqual(["other_person"]);
    expect(await message(event)).toContain(`Its work was done for ${ADA}, and the event is about ${BOB} now`);
    expect([await holds(ADA), await holds(BOB), await under("pay_1")]).toEqual([A_LAMP, NOTHING, [`purchase ${ADA}`]]);
    expect(await planOf(event)).toMatchObject([{ will: "other_person", mayChoose: true, nowFor: { id: await idOf(BOB) } }]);

    expect(await again(event, { run: [0] })).toEqual(["done"]);
    expect(await message(event)).toBe(`The purchase moved from ${ADA} to ${BOB}.`);
    expect([await holds(ADA), await holds(BOB), await under("pay_1")]).toEqual([NOTHING, A_LAMP, MOVED]);
    const { items } = (await running.api("GET", "/audit?action=receipt.moved")).body;
    expect(items).toMatchObject([{ actor: "relay:orders", before: { person: await idOf(ADA) }, after: { person: await idOf(BOB), eventId: event } }]);

    expect(await planOf(event)).toMatchObject([{ will: "skip", mayChoose: false }]);
    expect(await again(event)).toEqual(["skipped"]);
    expect((await running.api("POST", `/events/${event}/replay`, { run: [0] })).body.code).toBe("invalid_input");
    expect([await holds(ADA), await holds(BOB), await under("pay_1")]).toEqual([NOTHING, A_LAMP, MOVED]);
  });

  test("of a relay that also calls a URL moves too, and its refund event finds it", async () => {
    await editRelay(running, define("email", LAMP, CALL));
    const event = await buy("1");
    await correct(LAMP, CALL);
    expect(await again(event)).toEqual(["other_person", "done"]);
    expect(await again(event, { run: [0] })).toEqual(["done", "done"]);
    expect(await again(event)).toEqual(["skipped", "done"]);
    expect([await holds(ADA), await holds(BOB)]).toEqual([NOTHING, A_LAMP]);
    const map = { event_id: "id", person_email: "buyer", payment: "payment" };
    await saveRelay(running, receiverDefinition({ name: "refunds", map, actions: [{ ...LAMP, type: "refund_product" }] }));
    const refund = await sendEvent(running, "r1", { buyer: BOB, payment: "pay_1" }, "refunds");
    await running.drain();
    expect(await results(refund)).toEqual(["done"]);
    expect([await holds(BOB), await under("pay_1")]).toEqual([NOTHING, [`refund ${BOB}`, ...MOVED]]);
    const wrong = await sendEvent(running, "r2", { buyer: ADA, payment: "pay_1" }, "refunds");
    await running.drain();
    expect([await results(wrong), await message(wrong)]).toEqual([["skipped"], expect.stringContaining("was already refunded")]);
  });

  test("moves once although the service stops between the move and the call after it", async () => {
    await editRelay(running, define("email", LAMP, CALL));
    const event = await buy("1");
    await correct(LAMP, CALL);
    caller.reply = () => "hang";
    await running.api("POST", `/events/${event}/replay`, { run: [0] });
    await until("the call is out", () => caller.hanging() === 1);
    let over = false;
    const restarted = running.restart().finally(() => {
      over = true;
    });
    caller.reply = () => OK;
    while (!over) await running.clock.advance(1_000);
    await restarted;
    await running.clock.advance(120_000);
    await running.drain();
    expect([await results(event), (await showEvent(running, event)).state]).toEqual([["skipped", "done"], "done"]);
    expect([await holds(ADA), await holds(BOB), await under("pay_1")]).toEqual([NOTHING, A_LAMP, MOVED]);
  });

  test("stays while the new sale fails, and moves at the attempt that succeeds", async () => {
    await editRelay(running, define("email", LAMP));
    const event = await buy("1");
    await correct(LAMP);
    await running.api("PUT", "/products/lamp", { credits: 100 });
    expect(await again(event, { run: [0] })).toEqual(["product_not_sold_here"]);
    expect([await holds(ADA), await holds(BOB), await under("pay_1")]).toEqual([A_LAMP, NOTHING, [`purchase ${ADA}`]]);
    await running.api("PUT", "/products/lamp", { credits: 100, soldThrough: { kind: "relay", relay: "orders" } });
    expect(await again(event, { run: [0] })).toEqual(["done"]);
    expect([await holds(ADA), await holds(BOB), await under("pay_1")]).toEqual([NOTHING, A_LAMP, MOVED]);
  });

  test("from two events moves once, whichever is replayed first, and also when both run at once", async () => {
    await editRelay(running, define("email", LAMP));
    const events = [await buy("1"), await buy("2", { payment: "pay_1" })];
    await correct(LAMP);
    const answers = await Promise.all([...events, ...events].map((event) => running.api("POST", `/events/${event}/replay`, { run: [0] })));
    const refused = answers.filter(({ status }) => status !== 202);
    expect(refused).toHaveLength(2);
    // If the first replay ran before the second request, no choice is left.
    for (const { body } of refused) expect(["not_replayable", "invalid_input"]).toContain(body.code);
    await running.drain();
    const did = await Promise.all(events.map(results));
    expect(did.flat().sort()).toEqual(["done", "skipped"]);
    expect([await holds(ADA), await holds(BOB), await under("pay_1")]).toEqual([NOTHING, A_LAMP, MOVED]);
  });

  test("stays refunded after its refund", async () => {
    await editRelay(running, define("email", LAMP));
    const event = await buy("1");
    const [{ id }] = (await running.api("GET", "/purchases?ref=pay_1")).body.items;
    expect((await running.api("POST", `/purchases/${id}/refund`)).status).toBe(201);
    await correct(LAMP);
    expect(await again(event, { run: [0] })).toEqual(["skipped"]);
    expect(await message(event)).toContain("it stays refunded");
    expect([await holds(ADA), await holds(BOB), await under("pay_1")]).toEqual([NOTHING, NOTHING, [`refund ${ADA}`, `purchase ${ADA}`]]);
  });

  test("moves on to a third person and back, each time from the current owner", async () => {
    await editRelay(running, define("email", LAMP));
    const event = await buy("1", { third: CAY });
    for (const [path, email] of [
      ["buyer", BOB],
      ["third", CAY],
      ["email", ADA],
    ] as const) {
      await editRelay(running, define(path, LAMP));
      expect(await again(event)).toEqual(["other_person"]);
      expect(await again(event, { run: [0] })).toEqual(["done"]);
      for (const other of [ADA, BOB, CAY])
        if (other === email) expect(await holds(other)).toBe(A_LAMP);
        else expect([NOTHING, "nobody"]).toContain(await holds(other));
    }
    expect((await under("pay_1")).filter((one: string) => !one.endsWith("moved"))).toEqual([`purchase ${ADA}`]);
  });

  test("moves from the old map's ref to the new map's ref", async () => {
    await editRelay(running, define("email", LAMP));
    const event = await buy("1", { invoice: "inv_1" });
    await editRelay(running, receiverDefinition({ actions: [LAMP], map: { event_id: "id", person_email: "buyer", payment: "invoice" } }));
    expect(await again(event, { run: [0] })).toEqual(["done"]);
    expect([await holds(ADA), await holds(BOB)]).toEqual([NOTHING, A_LAMP]);
    expect([await under("pay_1"), await under("inv_1")]).toEqual([[`refund ${ADA} moved`, `purchase ${ADA} moved`], [`purchase ${BOB}`]]);
  });

  test("leaves spent credits in place, and a manual refund then takes it only from the new person", async () => {
    await editRelay(running, define("email", LAMP));
    const event = await buy("1");
    await running.api("POST", `/persons/${await idOf(ADA)}/credits`, { amount: -70, reason: "spent", key: "k" });
    await correct(LAMP);
    expect(await again(event, { run: [0] })).toEqual(["done"]);
    expect([await holds(ADA), await holds(BOB)]).toEqual([NOTHING, A_LAMP]);
    const { items } = (await running.api("GET", "/purchases?ref=pay_1")).body;
    const [now, , before] = items;
    expect((await running.api("POST", `/purchases/${before.id}/refund`)).body).toMatchObject({ created: false });
    expect(await holds(BOB)).toBe(A_LAMP);
    expect((await running.api("POST", `/purchases/${now.id}/refund`)).body).toMatchObject({ created: true });
    expect(await holds(BOB)).toBe(NOTHING);
  });
});

describe("a suspended or erased person", () => {
  test("receives nothing while suspended, and receives the purchase once active", async () => {
    await editRelay(running, define("email", LAMP));
    const event = await buy("1");
    const bob = (await running.api("POST", "/persons", { email: BOB })).body.person.id;
    await running.api("PATCH", `/persons/${bob}`, { status: "suspended" });
    await correct(LAMP);
    expect(await again(event, { run: [0] })).toEqual(["person_suspended"]);
    expect([await holds(ADA), await under("pay_1")]).toEqual([A_LAMP, [`purchase ${ADA}`]]);
    await running.api("PATCH", `/persons/${bob}`, { status: "active" });
    expect(await planOf(event)).toMatchObject([{ will: "other_person", doneFor: { name: ADA }, nowFor: { name: BOB } }]);
    expect(await again(event, { run: [0] })).toEqual(["done"]);
    expect([await holds(ADA), await holds(BOB), await under("pay_1")]).toEqual([NOTHING, A_LAMP, MOVED]);
  });

  test("can lose a purchase while suspended", async () => {
    await editRelay(running, define("email", LAMP));
    const event = await buy("1");
    await running.api("PATCH", `/persons/${await idOf(ADA)}`, { status: "suspended" });
    await correct(LAMP);
    expect(await again(event, { run: [0] })).toEqual(["done"]);
    await running.api("PATCH", `/persons/${await idOf(ADA)}`, { status: "active" });
    expect([await holds(ADA), await holds(BOB), await under("pay_1")]).toEqual([NOTHING, A_LAMP, MOVED]);
  });

  test("can lose a purchase if the erasure came after the event was reassigned", async () => {
    await editRelay(running, define("email", LAMP));
    const event = await buy("1");
    await correct(LAMP);
    expect(await again(event)).toEqual(["other_person"]);
    const ada = await idOf(ADA);
    await running.api("DELETE", `/persons/${ada}`);
    await running.clock.advance(120_000);
    await running.drain();
    const [planned] = await planOf(event);
    expect(planned).toMatchObject({ will: "other_person", doneFor: { id: ada } });
    expect(planned.message).toContain(`a person who was erased (${ada})`);
    expect(await again(event, { run: [0] })).toEqual(["done"]);
    expect(await holds(BOB)).toBe(A_LAMP);
    expect(await under("pay_1")).toEqual([`purchase ${BOB}`, "refund erased moved", "purchase erased moved"]);
  });

  test("who was erased while owning an event ends it: the event never runs again", async () => {
    await editRelay(running, define("email", LAMP));
    const event = await buy("1");
    await running.api("DELETE", `/persons/${await idOf(ADA)}`);
    await running.clock.advance(120_000);
    await correct(LAMP);
    const refused = await running.api("POST", `/events/${event}/replay`, { run: [0] });
    expect([refused.status, refused.body.code]).toEqual([409, "payload_expunged"]);
  });

  test("receives nothing after an erasure", async () => {
    await editRelay(running, define("email", LAMP));
    const event = await buy("1");
    const bob = (await running.api("POST", "/persons", { email: BOB })).body.person.id;
    await editRelay(running, receiverDefinition({ actions: [LAMP], map: { event_id: "id", person_id: "who", payment: "payment" } }));
    const second = await sendEvent(running, "2", { who: bob, email: ADA, payment: "pay_2" });
    await running.drain();
    await running.api("DELETE", `/persons/${bob}`);
    await running.clock.advance(120_000);
    await running.drain();
    expect((await running.api("POST", `/events/${second}/replay`)).body.code).toBe("payload_expunged");
    expect([await holds(ADA), await under("pay_1")]).toEqual([A_LAMP, [`purchase ${ADA}`]]);
    expect(await results(event)).toEqual(["done"]);
  });
});

describe("a plan's payment", () => {
  test("moves the plan, and leaves the first person with the plan that their other payments provide", async () => {
    const basic = { ...PRO, plan: "basic" };
    await editRelay(running, define("email", basic));
    await sendEvent(running, "0", { email: ADA, payment: "pay_0" });
    await running.drain();
    await editRelay(running, define("email", PRO));
    const event = await buy("1");
    expect([await holds(ADA), await holds(BOB)]).toEqual(["pro 0 on pro", "nobody"]);
    await correct(PRO);
    expect(await again(event, { run: [0] })).toEqual(["done"]);
    expect([await holds(ADA), await holds(BOB), await under("pay_1")]).toEqual(["basic 0 on basic", "pro 0 on pro", MOVED]);
    expect(await again(event)).toEqual(["skipped"]);
    expect([await holds(ADA), await holds(BOB)]).toEqual(["basic 0 on basic", "pro 0 on pro"]);
  });

  test("leaves a plan that another payment of the first person provides, and orders the new person's plans by arrival", async () => {
    await editRelay(running, define("email", PRO));
    const event = await buy("1");
    await sendEvent(running, "2", { email: ADA, buyer: ADA, payment: "pay_2" });
    await running.drain();
    await correct({ ...PRO, plan: "basic" });
    await sendEvent(running, "3", { buyer: BOB, payment: "pay_3" });
    await running.drain();
    await correct(PRO);
    expect(await again(event, { run: [0] })).toEqual(["done"]);
    expect([await holds(ADA), await holds(BOB), await under("pay_1")]).toEqual(["pro 0 on pro", "basic 0 on basic", MOVED]);
  });

  test("also moves without a ref", async () => {
    const pro = { type: "grant_plan", plan: "pro" };
    await editRelay(running, define("email", pro));
    const event = await buy("1");
    await correct(pro);
    expect(await again(event, { run: [0] })).toEqual(["done"]);
    expect([await holds(ADA), await holds(BOB), await under(`rly:${event}`)]).toEqual([NOTHING, "pro 0 on pro", MOVED]);
  });

  test("waits while the card processor bills the new person's plan, and moves at the first retry after that ends", async () => {
    const bob = (await running.api("POST", "/persons", { email: BOB })).body.person.id;
    await running.api("POST", "/receipts", { ref: "card", person: bob, plan: "basic" });
    await editRelay(running, define("email", PRO));
    const event = await buy("1");
    await correct(PRO);
    expect(await again(event, { run: [0] })).toEqual(["billed_by_processor"]);
    expect([await holds(ADA), await holds(BOB), await under("pay_1")]).toEqual(["pro 0 on pro", "basic 0 on basic", [`purchase ${ADA}`]]);
    await running.api("POST", `/subscriptions/${(await running.api("GET", `/persons/${bob}`)).body.subscription.id}/end`);
    running.clock.jump(60_000);
    await running.clock.advance(5_000);
    await running.drain();
    expect(await results(event)).toEqual(["done"]);
    expect([await holds(ADA), await holds(BOB), await under("pay_1")]).toEqual([NOTHING, "pro 0 on pro", MOVED]);
  });
});

const credits = (amount: number): ActionLike => ({ type: "grant_credits", amount });

const HOLDERS = ["a new person", "an older person", "two others in turn"] as const;

/** Grants Ada 5 credits. Then her address becomes another one, other people get the old one, and the action is edited. */
async function handAddressOver(to: (typeof HOLDERS)[number]): Promise<string> {
  const bob = to === "a new person" ? null : (await running.api("POST", "/persons", { email: BOB })).body.person.id;
  await editRelay(running, define("email", credits(5)));
  const event = await buy("1");
  await running.clock.advance(1_000);
  await running.api("POST", `/persons/${await idOf(ADA)}/change-address`, { email: CAY });
  const given = await (bob === null
    ? running.api("POST", "/persons", { email: ADA })
    : running.api("POST", `/persons/${bob}/change-address`, { email: ADA }));
  expect(given.body.person.email).toBe(ADA);
  if (to === "two others in turn") {
    await running.clock.advance(1_000);
    await running.api("POST", `/persons/${bob}/change-address`, { email: BOB });
    await running.api("POST", "/persons", { email: ADA });
  }
  await editRelay(running, define("email", credits(7)));
  return event;
}

describe("other actions", () => {
  test("run for the new person if chosen, and actions without a person offer no choice", async () => {
    const actions: ActionLike[] = [
      { type: "grant_credits", amount: 5, ref: "{{mapped.payment}}" },
      { type: "grant_access", entitlement: "access:members" },
      WRITE,
      { ...WRITE, data: { order: "{{person.email}}" } },
    ];
    await running.api("PUT", "/access/members", {});
    await editRelay(running, define("email", ...actions));
    const event = await buy("1");
    await correct(...actions);
    expect((await planOf(event)).map(({ will }: { will: string }) => will)).toEqual(["other_person", "other_person", "skip", "other_person"]);
    expect(await again(event, { run: [0, 1] })).toEqual(["done", "done", "skipped", "other_person"]);
    expect([await holds(ADA), await holds(BOB)]).toEqual(["access:members 5 on free", "access:members 5 on free"]);
    expect((await planOf(event)).map(({ will }: { will: string }) => will)).toEqual(["skip", "skip", "skip", "other_person"]);
    expect(await again(event)).toEqual(["skipped", "skipped", "skipped", "other_person"]);
  });

  test.each(HOLDERS)("stay done once after %s got the changed address of the person", async (to) => {
    const event = await handAddressOver(to);
    expect(await planOf(event)).toMatchObject([{ will: "edited", mayChoose: true }]);
    expect(await again(event)).toEqual(["edited_after"]);
    expect([await holds(CAY), await holds(ADA)]).toEqual(["5 on free", NOTHING]);
  });

  test("chosen for another person do not run after the event's person is the same again", async () => {
    await editRelay(running, define("email", CALL, credits(5)));
    const event = await buy("1");
    await correct(CALL, credits(7));
    expect((await planOf(event))[1]).toMatchObject({ will: "other_person", mayChoose: true });
    caller.reply = () => BROKEN;
    expect(await again(event, { run: [1] })).toEqual(["http_error"]);
    await editRelay(running, define("email", CALL, credits(7)));
    caller.reply = () => OK;
    running.clock.jump(60_000);
    await running.clock.advance(5_000);
    await running.drain();
    expect(await results(event)).toEqual(["done", "edited_after"]);
    expect([await holds(ADA), await holds(BOB)]).toEqual(["5 on free", NOTHING]);
  });

  test("chosen as edited do not run for another person", async () => {
    await editRelay(running, define("email", CALL, credits(5)));
    const event = await buy("1");
    await editRelay(running, define("email", CALL, credits(7)));
    expect((await planOf(event))[1]).toMatchObject({ will: "edited", mayChoose: true });
    caller.reply = () => BROKEN;
    expect(await again(event, { run: [1] })).toEqual(["http_error"]);
    await correct(CALL, credits(7));
    caller.reply = () => OK;
    running.clock.jump(60_000);
    await running.clock.advance(5_000);
    await running.drain();
    expect(await results(event)).toEqual(["done", "other_person"]);
    expect([await holds(ADA), await holds(BOB)]).toEqual(["5 on free", NOTHING]);
  });

  test("an automatic retry moves nothing, names both people, and leaves the choice open", async () => {
    caller.reply = () => BROKEN;
    await editRelay(running, define("email", LAMP, CALL));
    const event = await buy("1");
    await correct(LAMP, CALL);
    caller.reply = () => OK;
    running.clock.jump(60_000);
    await running.clock.advance(5_000);
    await running.drain();
    expect(await results(event)).toEqual(["other_person", "done"]);
    expect((await showEvent(running, event)).warnings).toEqual([
      `The event was about ${ADA} at the attempt before and is about ${BOB} now: the work for ${ADA} is not changed. To do it for ${BOB}, replay the event and choose it.`,
    ]);
    expect(await again(event, { run: [0] })).toEqual(["done", "done"]);
    expect([await holds(ADA), await holds(BOB), await under("pay_1")]).toEqual([NOTHING, A_LAMP, MOVED]);
  });
});

describe("a bulk replay", () => {
  const begin = async (body: object) => {
    const { replay } = (await running.api("POST", "/bulk-replays", { state: "dead", ...body })).body;
    expect(replay).toMatchObject({ state: "running" });
    for (let second = 0; second < 60; second++) {
      if ((await running.api("GET", `/bulk-replays/${replay.id}`)).body.replay.state !== "running") break;
      await running.clock.advance(1_000);
    }
    await running.drain();
    return (await running.api("GET", `/bulk-replays/${replay.id}`)).body.replay;
  };

  test("counts the events in its preview, changes none by default, and moves all of them if chosen", async () => {
    await editRelay(running, define("email", LAMP, NOWHERE));
    for (const id of ["1", "2", "3"]) await buy(id);
    await buy("4", { buyer: ADA });
    await correct(LAMP, NOWHERE);
    const { plan } = (await running.api("POST", "/bulk-replays/plan", { state: "dead" })).body;
    expect(plan).toMatchObject({ matched: 4, otherPerson: 3 });
    expect(plan.actions).toContainEqual({ type: "fulfil_product", will: "other_person", events: 3 });
    const said = await runCommand(["replays", "start", "--plan", "--move", "--data-dir", running.dataDir], {
      cwd: running.dataDir,
      env: running.commandEnv,
      clock: running.clock,
    });
    expect(said.said).toContain(
      "3 did their work for a person other than their person now: Relay does that work for the new person, and purchases move.",
    );
    expect(await begin({})).toMatchObject({ state: "done", replayed: 4, move: false });
    expect([await holds(ADA), await holds(BOB)]).toEqual(["lamp lamp lamp lamp 400 on free", NOTHING]);
    await correct(LAMP);
    expect(await begin({ move: true })).toMatchObject({ state: "done", replayed: 4, move: true });
    expect([await holds(ADA), await holds(BOB)]).toEqual(["lamp 100 on free", "lamp lamp lamp 300 on free"]);
    for (const id of ["1", "2", "3"]) expect(await under(`pay_${id}`)).toEqual(MOVED);
  });

  test.each(HOLDERS)("of done events leaves out an event whose address %s has now", async (to) => {
    const event = await handAddressOver(to);
    const { plan } = (await running.api("POST", "/bulk-replays/plan", { state: "done", relay: "orders" })).body;
    expect(plan).toMatchObject({ matched: 1, otherPerson: 0, leftOut: { same_person: 1 } });
    expect(await begin({ state: "done", relay: "orders", move: true })).toMatchObject({ replayed: 0, leftOut: { same_person: 1 } });
    expect(await results(event)).toEqual(["done"]);
    expect([await holds(CAY), await holds(ADA)]).toEqual(["5 on free", NOTHING]);
  });

  describe("of a person who was merged into the event's person", () => {
    const CREDITS: ActionLike = { type: "grant_credits", amount: 500 };
    const plan = async () => (await running.api("POST", "/bulk-replays/plan", { state: "done", relay: "orders" })).body.plan;
    const merge = async (from: string, into: string) => {
      await running.clock.advance(1_000);
      expect((await running.api("POST", `/persons/${await idOf(from)}/merge`, { into })).body.merged).toBe(true);
      await running.clock.advance(1_000);
    };
    beforeEach(async () => {
      for (const email of [ADA, BOB, CAY]) await running.api("POST", "/persons", { email });
    });

    test("leaves out the work that was done before the merges, and a replay skips it", async () => {
      const map = { event_id: "id", person_token: "token" };
      await editRelay(running, receiverDefinition({ actions: [CREDITS, LAMP], map: { ...map, payment: "payment" } }));
      await running.api("PUT", `/persons/${await idOf(ADA)}/tokens`, { token: "tok_1" });
      const event = await sendEvent(running, "1", { token: "tok_1", payment: "pay_1" });
      await running.drain();
      await merge(ADA, BOB);
      for (const holder of [BOB, CAY]) {
        expect(await plan()).toMatchObject({ matched: 1, otherPerson: 0, leftOut: { same_person: 1 } });
        expect(await begin({ state: "done", relay: "orders", move: true })).toMatchObject({ replayed: 0, leftOut: { same_person: 1 } });
        expect(await planOf(event)).toMatchObject([{ will: "skip" }, { will: "skip" }]);
        expect(await again(event)).toEqual(["skipped", "skipped"]);
        expect([await holds(ADA), await holds(holder)]).toEqual([NOTHING, "lamp 600 on free"]);
        if (holder === BOB) await merge(BOB, CAY);
      }
    });

    test("selects the work that was done after the merge", async () => {
      await editRelay(running, define("email", CREDITS));
      await running.api("POST", `/persons/${await idOf(ADA)}/credits`, { amount: 1, reason: "by hand", key: "k1" });
      await merge(ADA, BOB);
      await buy("1");
      await correct(CREDITS);
      expect(await plan()).toMatchObject({ matched: 1, otherPerson: 1 });
      expect(await begin({ state: "done", relay: "orders" })).toMatchObject({ replayed: 1 });
      expect([await holds(ADA), await holds(BOB)]).toEqual(["500 on free", "501 on free"]);
    });
  });

  test("of done events selects only events whose work was for another person, and moves it", async () => {
    await editRelay(running, define("email", LAMP, CALL));
    const [first] = [await buy("1"), await buy("2"), await buy("3", { buyer: ADA })];
    await correct(LAMP, CALL);
    const { plan } = (await running.api("POST", "/bulk-replays/plan", { state: "done", relay: "orders" })).body;
    expect(plan).toMatchObject({ matched: 3, otherPerson: 2, leftOut: { same_person: 1 } });
    expect(plan.actions).toEqual([
      { type: "fulfil_product", will: "other_person", events: 2 },
      { type: "call_url", will: "again", events: 2 },
    ]);
    const called = caller.requests.length;
    expect(await begin({ state: "done", relay: "orders" })).toMatchObject({ replayed: 2, leftOut: { same_person: 1 }, move: true });
    expect(caller.requests.length - called).toBe(2);
    expect([await holds(ADA), await holds(BOB)]).toEqual([A_LAMP, "lamp lamp 200 on free"]);
    expect(await begin({ state: "done", relay: "orders" })).toMatchObject({ replayed: 0, leftOut: { same_person: 3 } });
    expect(await results(first)).toEqual(["done", "done"]);
    expect((await running.api("POST", "/bulk-replays/plan", { state: "done", relay: "orders" })).body.plan).toMatchObject({ otherPerson: 0 });
  });
});
