/**
 * Tests whether the cause of a dead event still exists. Other events' success proves nothing about one event's data or person. The event's page and
 * Home must agree.
 */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { raiseProblem } from "../../src/platform/audit/problem.ts";
import type { MailOutcome } from "../../src/platform/mail/mailer.ts";
import { CALL, editRelay, putEvents, sendEvent } from "../kit/event-flow.ts";
import { FakeCaller } from "../kit/fake-caller.ts";
import { makeOrders, receiverDefinition, saveRelay } from "../kit/relay-definition.ts";
import { type RunningService, startRunningService } from "../kit/running-service.ts";

const HOUR = 3_600_000;
const PERSON = { event_id: "id", person_email: "email" };
const BOUNCE = { email: "bounce@example.com" };
const ADA = { email: "ada@example.com" };
const WELCOME = { type: "email_person", subject: "Welcome", text: "Hello" };
const REFUSED: MailOutcome = { kind: "failed", reason: "recipient_refused", message: "Refused (550).", retry: false };

let running: RunningService;
let caller: FakeCaller;
let refuses: boolean;
beforeEach(async () => {
  refuses = true;
  caller = new FakeCaller();
  const mailer = {
    send: async ({ to }: { to: string }): Promise<MailOutcome> => (refuses && to.startsWith("bounce") ? REFUSED : { kind: "sent" }),
  };
  running = await startRunningService({ ports: { caller, mailer } });
  await makeOrders(running);
  const domain = `INSERT INTO sender_domain (environment_id, domain, verification_token, verified_at) SELECT id, 'shop.example', 't', 1 FROM environment`;
  await running.service.store.write("app", (tx) => tx.run(domain));
});
afterEach(() => running[Symbol.asyncDispose]());

const causeOf = async (id: string) => (await running.api("GET", `/events/${id}/cause`)).body.cause;
const need = async (code: string) => (await running.api("GET", "/overview")).body.needs.find((one: { code: string }) => one.code === code);
const save = (change: Parameters<typeof receiverDefinition>[0]) => saveRelay(running, receiverDefinition({ map: PERSON, ...change }));
async function send(id: string, more: object): Promise<string> {
  const sent = await sendEvent(running, id, more);
  await running.drain();
  await running.clock.advance(HOUR);
  return sent;
}

test("a rejected mail for one person stays a problem after another person's mail succeeds", async () => {
  await save({ actions: [WELCOME] });
  const dead = await send("a", BOUNCE);
  await send("b", ADA);
  expect(await causeOf(dead)).toMatchObject({
    stands: "unknown",
    message:
      "None of this person's events ran since. Check the person's address and the mail server's reply, and fix the cause. Then replay the event.",
  });
  expect(await need("relay_failed")).toMatchObject({
    todo: expect.stringMatching(/^Fix the cause/),
    dead: { cause: { stands: "unknown" }, person: expect.stringMatching(/^per_/) },
    newest: { event: dead, reason: "mail_refused", person: expect.stringMatching(/^per_/), status: null },
  });
  refuses = false;
  await send("c", BOUNCE);
  expect(await causeOf(dead)).toMatchObject({ stands: "no" });
});

test("an unresolved ref of one event stays a problem after other events succeed, until the definition changes", async () => {
  const map = { ...PERSON, payment: "payment" };
  const grant = { type: "grant_credits", amount: 1 };
  await save({ map, actions: [{ ...grant, ref: "{{mapped.payment}}" }] });
  const dead = await send("a", ADA);
  expect((await running.api("GET", `/events/${dead}`)).body.event).toMatchObject({ state: "dead", reason: "ref_unresolved" });
  await send("b", { ...ADA, payment: "pi_1" });
  expect(await causeOf(dead)).toMatchObject({
    stands: "unknown",
    message: expect.stringMatching(/^Since then other events were done, but that does not show that this one works\. Name a path/),
  });
  await editRelay(running, receiverDefinition({ map, actions: [{ ...grant, ref: "{{mapped.event_id}}" }] }));
  await send("c", ADA);
  expect(await causeOf(dead)).toMatchObject({ stands: "no" });
});

test("a suspended person's dead event stays a problem until the person is active, whatever other events do", async () => {
  await save({ actions: [{ type: "grant_credits", amount: 1 }] });
  const { person } = (await running.api("POST", "/persons", BOUNCE)).body;
  await running.api("PATCH", `/persons/${person.id}`, { status: "suspended" });
  const dead = await send("a", BOUNCE);
  await send("b", ADA);
  expect(await causeOf(dead)).toMatchObject({ stands: "yes", message: "The person is still suspended." });
  await running.api("PATCH", `/persons/${person.id}`, { status: "active" });
  expect(await causeOf(dead)).toMatchObject({ stands: "no", message: expect.stringContaining("active again") });
});

test("a dead event's page agrees with Home, shows the URL's response, and never promises a retry", async () => {
  caller.reply = () => ({ kind: "answered", ok: false, status: 410, body: "gone" });
  await save({ map: { event_id: "id" }, actions: [CALL] });
  const [dead = ""] = await putEvents(running, ["a"]);
  await running.drain();
  await running.service.store.write("app", (tx) => tx.run("UPDATE event SET attempts = 6"));
  await running.clock.advance(2 * 60_000);
  await running.drain();
  await running.clock.advance(1_000);
  expect(await causeOf(dead)).toEqual({
    stands: "unknown",
    message: "None of its events ran since. Read the response on the event's page, and fix the cause at the receiver. Then replay the event.",
    since: null,
    missing: null,
    change: null,
  });
  expect(await need("relay_failed")).toMatchObject({ newest: { event: dead, reason: "http_error", status: 410, person: null } });
  const [{ id = 0 } = {}] = await running.rows<{ id: number }>("SELECT id FROM environment WHERE name = 'development'");
  const key = { environmentId: id, code: "relay_failing", target: "relay:orders", message: "Every event fails." } as const;
  await running.service.store.write("app", (tx) => raiseProblem(tx, { ...key, nowMs: running.clock.now() }));
  const fails = { stands: "yes", message: "Every attempt of this relay still fails." };
  expect([await causeOf(dead), (await need("relay_failed")).dead.cause]).toMatchObject([fails, fails]);
  expect((await running.api("GET", "/relays/orders")).body.health).toMatchObject({ code: "relay_failed", cause: fails });
});

test("a relay that finds no person links to its newest event without a person", async () => {
  await save({ map: { event_id: "id", person_id: "user" }, actions: [{ type: "grant_credits", amount: 1 }] });
  const lost = await send("a", { user: "per_00000000000000000000000000000000" });
  const [{ id = 0 } = {}] = await running.rows<{ id: number }>("SELECT id FROM environment WHERE name = 'development'");
  const key = { environmentId: id, code: "relay_nobody", target: "relay:orders", message: "It finds nobody." } as const;
  await running.service.store.write("app", (tx) => raiseProblem(tx, { ...key, nowMs: running.clock.now() }));
  expect(await need("relay_nobody")).toMatchObject({ newest: { event: lost, reason: "person_not_found" } });
});

test("missed ticks are offered for replay only if they are still wanted", async () => {
  await save({ map: { event_id: "id" }, actions: [{ type: "write_record", collection: "orders", data: { order: "x" } }] });
  await send("a", {});
  await running.service.store.write("app", (tx) => tx.run("UPDATE event SET state = 'dead', reason = 'missed'"));
  await send("b", {});
  const { todo, dead } = await need("relay_failed");
  expect(dead).toMatchObject({ failure: { code: "missed" }, cause: { stands: "no" } });
  expect([dead.cause.message, todo]).toEqual([
    expect.stringMatching(/^Ticks run again since .*Z: replay those that are still wanted\.$/),
    expect.stringMatching(/^Replay the events that you still want/),
  ]);
});

test("an event that failed before and is done now is not listed as failed, whatever the reason", async () => {
  caller.reply = () => ({ kind: "answered", ok: false, status: 500, body: "" });
  await save({ map: { event_id: "id" }, actions: [CALL] });
  const [first] = await putEvents(running, ["a"]);
  await running.drain();
  const failed = async () => (await running.api("GET", "/events?reason=any")).body.items.map((one: { id: string }) => one.id);
  expect(await failed()).toEqual([first]);
  caller.reply = () => ({ kind: "answered", ok: true, status: 200, body: "" });
  await running.clock.advance(2 * 60_000);
  await running.drain();
  expect((await running.api("GET", `/events/${first}`)).body.event).toMatchObject({ state: "done", attempts: 2 });
  expect(await failed()).toEqual([]);
  const { counts } = (await running.api("GET", "/events/counts?reason=any")).body;
  expect(Object.values(counts)).toEqual(Array(5).fill({ count: 0, isMore: false }));
});
