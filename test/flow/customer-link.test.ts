/** Tests customer ids that a person links by hand: `relay people link` and `unlink` on a data directory and on a server, and their routes. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { RETRY_DELAYS_MS } from "../../src/base/limit.ts";
import { COMMAND_PLACES, runAt } from "../kit/cli-place.ts";
import { replay, sendEvent, showEvent } from "../kit/event-flow.ts";
import { receiverDefinition, saveRelay } from "../kit/relay-definition.ts";
import { type RunningService, startRunningService } from "../kit/running-service.ts";

const [ADA, BOB] = ["ada@example.com", "bob@example.com"];
const CUSTOMER = { id: "customer_id" };
const ACTIONS = [{ type: "grant_credits", amount: 5 }];
const ENDED = { name: "stripe", map: { event_id: "id", customer_id: "customer" }, customer: CUSTOMER, actions: ACTIONS };
let running: RunningService;
let [ada, bob] = ["", ""];

beforeEach(async () => {
  running = await startRunningService();
  ada = (await running.api("POST", "/persons", { email: ADA })).body.person.id;
  bob = (await running.api("POST", "/persons", { email: BOB })).body.person.id;
  await saveRelay(running, receiverDefinition(ENDED));
});
afterEach(() => running[Symbol.asyncDispose]());

const customersOf = async (person: string) => (await running.api("GET", `/persons/${person}`)).body.customers;
const audited = async (action: string) => (await running.api("GET", `/audit?action=${action}`)).body.items;
const link = (person: string, id: string, space = "stripe") => running.api("PUT", `/persons/${person}/customers`, { space, id });

describe.each(COMMAND_PLACES)("%s", (place) => {
  const run = (line: string) => runAt(place, running, ["people", ...line.split(" ")]);
  const told = async (line: string) => {
    const { code, told } = await run(line);
    return [code, told.trim()];
  };

  test("a command finds the person by the id", async () => {
    await link(ada, "cus_1");
    expect((await run("show cus_1")).said).toContain(ADA);
    expect((await run("show cus_2")).told).toContain('No person "cus_2" exists');
    expect((await run("show ada")).told).toContain('No person "ada" exists');
  });

  test("links ids, shows them, and links them only once", async () => {
    const linked = (id: string) =>
      `${id} of stripe is linked to ${ADA}. Events that wait for it run at their next retry, or now with relay events retry.`;
    expect(await told(`link ${ADA} --customers stripe cus_1 cus_2`)).toEqual([0, `${linked("cus_1")}\n${linked("cus_2")}`]);
    expect(await told(`link ${ADA} --customers stripe cus_1`)).toEqual([0, `Nothing changed: ${ADA} already has cus_1 of stripe.`]);
    const { said } = await run(`show ${ADA}`);
    expect(said).toMatch(/^ {2}customer {2}cus_1 of stripe since \d/m);
    expect(said).toMatch(/^ {2}customer {2}cus_2 of stripe since \d/m);
    const rows = await audited("person.customer_linked");
    const after = { space: "stripe", customer: expect.stringMatching(/^hmac:/) };
    expect(rows).toMatchObject([1, 2].map(() => ({ target: `person:${ada}`, after })));
    expect(JSON.stringify(rows)).not.toContain("cus_");
  });

  test("moves an id of another person, says from whom, and audits it at both", async () => {
    await link(bob, "cus_1");
    expect(await told(`link ${ADA} --customers stripe cus_1`)).toEqual([0, `cus_1 of stripe is linked to ${ADA} now, and no longer to ${bob}.`]);
    expect([await customersOf(ada), await customersOf(bob)]).toMatchObject([[{ space: "stripe", id: "cus_1", eventId: null }], []]);
    expect(await audited("person.customer_moved")).toMatchObject([
      { target: `person:${ada}`, after: { from: bob, space: "stripe", event: null } },
      { target: `person:${bob}`, after: { to: ada, space: "stripe", event: null } },
    ]);
  });

  test("unlinks ids, and prints both with --json", async () => {
    const linked = JSON.parse((await run(`link ${ADA} --customers stripe cus_1 --json`)).said);
    expect(linked).toEqual({ person: ada, customers: [{ customer: (await customersOf(ada))[0], linked: true, movedFrom: null }] });
    const unlinked = await run(`unlink ${ADA} --customers stripe cus_1 --json`);
    expect(unlinked.told.trim()).toBe(`cus_1 of stripe is removed from ${ADA}.`);
    expect(JSON.parse(unlinked.said)).toEqual({ person: ada, customers: [{ space: "stripe", id: "cus_1", removed: true }] });
    expect(await customersOf(ada)).toEqual([]);
    expect(await audited("person.customer_unlinked")).toMatchObject([{ target: `person:${ada}`, before: { space: "stripe" } }]);
  });

  test.each([
    ["link ada@example.com cus_1", 2, "--customers is missing: write the space of the ids after it"],
    ["link ada@example.com --customers stripe", 2, "<customer id> is missing: write the ids after the person"],
    [
      "link ada@example.com --customers strip cus_1",
      1,
      "`space`: there is no space strip in this environment, because a space is the name of a receiver relay. Did you mean stripe?",
    ],
    [`link ada@example.com --customers stripe ${"x".repeat(201)}`, 1, "`id` is not valid: use 1 to 200 characters on one line"],
    ["link eve@example.com --customers stripe cus_1", 1, "exists in this environment"],
    ["unlink ada@example.com --customers stripe cus_9", 1, "The customer ID does not belong to this person in this space"],
  ])("refuses %s", async (line, code, sentence) => {
    const refused = await run(line);
    expect([refused.code, refused.told]).toEqual([code, expect.stringContaining(sentence)]);
    expect(await customersOf(ada)).toEqual([]);
  });
});

test("a link has no spaces around its id, as an event has none", async () => {
  await link(ada, " cus_1 ");
  expect(await customersOf(ada)).toMatchObject([{ id: "cus_1" }]);
});

test("an event that waits for the id finds the person at its next retry, and at once when it is retried now", async () => {
  const [first, second] = [
    await sendEvent(running, "a", { customer: "cus_1" }, "stripe"),
    await sendEvent(running, "b", { customer: "cus_1" }, "stripe"),
  ];
  await running.drain();
  expect((await showEvent(running, first)).reason).toBe("customer_unknown");
  await link(ada, "cus_1");
  expect((await running.api("POST", `/events/${first}/retry`)).status).toBeLessThan(300);
  await running.drain();
  expect((await showEvent(running, first)).person?.id).toBe(ada);
  await running.clock.advance(RETRY_DELAYS_MS[0] as number);
  await running.drain();
  expect((await showEvent(running, second)).state).toBe("done");
});

test("a link by hand is after each event that arrived, and before the next one", async () => {
  const map = { event_id: "id", person_email: "email", customer_id: "customer" };
  await saveRelay(running, receiverDefinition({ ...ENDED, name: "paid", map, customer: { ...CUSTOMER, space: "stripe" } }));
  const earlier = await sendEvent(running, "a", { customer: "cus_1", email: BOB }, "paid");
  await running.drain();
  await link(ada, "cus_1");
  await replay(running, earlier);
  await running.drain();
  expect([await customersOf(ada), await customersOf(bob)]).toMatchObject([[{ id: "cus_1" }], []]);
  await sendEvent(running, "b", { customer: "cus_1", email: BOB }, "paid");
  await running.drain();
  expect([await customersOf(ada), await customersOf(bob)]).toMatchObject([[], [{ id: "cus_1" }]]);
});

test("the search for a person takes a customer id, and so do a filter of events and a merge", async () => {
  await link(ada, "cus_1");
  expect((await running.api("GET", "/persons?find=cus_1")).body.items).toMatchObject([{ id: ada }]);
  expect((await running.api("GET", "/persons?find=cus_2")).body.items).toEqual([]);
  const event = await sendEvent(running, "a", { customer: "cus_1" }, "stripe");
  await running.drain();
  expect((await running.api("GET", "/events?person=cus_1")).body.items).toMatchObject([{ id: event }]);
  expect((await running.api("GET", "/events?person=cus_2")).body.code).toBe("invalid_input");
  expect((await running.api("POST", `/persons/${bob}/merge`, { into: "cus_1", plan: true })).body.plan.to).toBe(ada);
});

test("an erased person is not found by the id, and cannot be linked", async () => {
  await link(ada, "cus_1");
  await running.api("DELETE", `/persons/${ada}`);
  expect((await running.api("GET", "/persons?find=cus_1")).body.items).toEqual([]);
  expect((await link(ada, "cus_1")).body.code).toBe("not_found");
  expect((await link(bob, "cus_1")).body).toMatchObject({ linked: true, movedFrom: null });
});
