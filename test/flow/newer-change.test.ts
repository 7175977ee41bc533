/**
 * Tests that the verdict "still exists" yields to a change that is newer than the last failure: new mail settings, a test mail, a new version of the
 * definition or a new secret. A failure after the change brings the verdict back.
 */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { createOwner } from "../../src/platform/account/owner.ts";
import type { MailOutcome } from "../../src/platform/mail/mailer.ts";
import { CALL, editRelay, putEvents, sendEvent, WRITE } from "../kit/event-flow.ts";
import { BROKEN, FakeCaller } from "../kit/fake-caller.ts";
import { makeOrders, receiverDefinition, saveRelay, signedCall } from "../kit/relay-definition.ts";
import { type RunningService, startRunningService } from "../kit/running-service.ts";

const MINUTE = 60_000;
const AT = String.raw`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`;
const SMTP = { host: "smtp.example.com", port: 587, security: "starttls", username: "ada", password: "secret" };
const NOT_SENT: MailOutcome = { kind: "failed", reason: "auth_refused", message: "The mail server refused the login.", retry: true };
const MAP = { event_id: "id", person_email: "email" };
const GREET = receiverDefinition({ map: MAP, actions: [{ type: "email_person", subject: "Hi", text: "Hello" }] });
const ADA = { email: "ada@example.com" };

let running: RunningService;
let caller: FakeCaller;
let isBroken: boolean;
beforeEach(async () => {
  isBroken = true;
  caller = new FakeCaller();
  const mailer = { send: async (): Promise<MailOutcome> => (isBroken ? NOT_SENT : { kind: "sent" }) };
  running = await startRunningService({ ports: { caller, mailer } });
  await makeOrders(running);
});
afterEach(() => running[Symbol.asyncDispose]());

const said = (pattern: string) => expect.stringMatching(new RegExp(`^${pattern}$`));

async function readNeed(code: string) {
  const { needs } = (await running.api("GET", "/overview")).body;
  return needs.find((one: { code: string }) => one.code === code);
}

async function addSender(): Promise<void> {
  const domain = `INSERT INTO sender_domain (environment_id, domain, verification_token, verified_at) SELECT id, 'shop.example', 't', 1 FROM environment`;
  await running.service.store.write("app", (tx) => tx.run(domain));
}

async function sendTestMail(): Promise<void> {
  isBroken = false;
  await running.clock.advance(1_000);
  const owner = { email: "ada@example.com", passwordHash: null, nowMs: running.clock.now() };
  await running.service.store.write("app", (tx) => createOwner(tx, owner));
  const sent = await running.api("POST", "/mail/test", {});
  expect(sent.body.email).toMatchObject({ state: "sent" });
}

async function setMail(): Promise<void> {
  const { version } = (await running.api("GET", "/settings")).body.settings;
  const { status, body } = await running.api("PUT", "/settings", { version, mail: { smtp: SMTP } });
  expect([status, body.code]).toEqual([200, undefined]);
}

/** Lets one event die after its last attempt and another wait for its retry, both because the mail server refuses the login. */
async function loseMail(): Promise<void> {
  await addSender();
  await saveRelay(running, GREET);
  await running.clock.advance(60 * MINUTE);
  await sendEvent(running, "a", ADA);
  await running.drain();
  await running.service.store.write("app", (tx) => tx.run("UPDATE event SET attempts = 6"));
  await running.clock.advance(2 * MINUTE);
  await running.drain();
  await sendEvent(running, "b", ADA);
  await running.drain();
  await running.clock.advance(10_000);
}

test("a dead mail is unknown after the mail server was changed, exists after the next failure, and is unknown after a test mail", async () => {
  await loseMail();
  const stands = { stands: "yes", message: "1 event failed the same way and will be retried." };
  expect((await readNeed("relay_failed")).dead).toMatchObject({ failure: { code: "mail_not_sent" }, cause: stands });
  await setMail();
  const changed = { stands: "unknown", message: said(`The mail server was changed at ${AT}\\. Replay one event to see\\.`) };
  expect((await readNeed("relay_failed")).dead.cause).toMatchObject(changed);
  expect((await running.api("GET", "/relays/orders")).body.health.cause).toMatchObject(changed);
  const { items } = (await running.api("GET", "/alerts?open=true")).body;
  const alert = items.find(({ code }: { code: string }) => code === "relay_failed");
  expect(alert.hints).toEqual([said(`The cause may no longer exist\\. The mail server was changed at ${AT}\\. Replay one event to see\\.`)]);
  await running.clock.advance(6 * MINUTE);
  await running.drain();
  expect((await readNeed("relay_failed")).dead.cause).toMatchObject(stands);
  await sendTestMail();
  expect((await readNeed("relay_failed")).dead.cause).toMatchObject({
    stands: "unknown",
    message: said(`A test mail was sent at ${AT}\\. Replay one event to see\\.`),
  });
});

/** Lets every attempt of a relay that calls a URL fail. */
async function breakCalls(): Promise<void> {
  await saveRelay(running, receiverDefinition({ map: { event_id: "id" }, actions: [CALL] }));
  caller.reply = () => BROKEN;
  await putEvents(running, ["a", "b", "c"]);
  await running.drain();
  for (let round = 0; round < 9; round++) {
    await running.clock.advance(5 * MINUTE);
    await running.drain();
  }
  await running.clock.advance(1_000);
  expect(await readNeed("relay_failing")).toMatchObject({ doubt: null });
}

test("a test mail and a new receiver secret say nothing about failed calls, but a new signing secret does", async () => {
  await breakCalls();
  await addSender();
  await setMail();
  await sendTestMail();
  expect(await readNeed("relay_failing")).toMatchObject({ doubt: null });
  expect((await running.api("GET", "/problems")).body.items).toMatchObject([{ code: "relay_failing", hints: [] }]);
  await editRelay(running, receiverDefinition({ map: { event_id: "id" }, actions: [{ ...CALL, url: "https://example.com/new" } as never] }));
  await running.clock.advance(1_000);
  const stored = await running.api("PUT", "/relays/orders/secret", { value: "TheNewOneOfTheSender0123456789ab", overlapSeconds: 0 });
  expect(stored.status).toBe(200);
  const doubt = async () => (await readNeed("relay_failing")).doubt.message;
  expect(await doubt()).toStartWith("The definition of orders was changed at ");
  await running.api("PUT", "/relays/orders/signing-secret");
  expect(await doubt()).toStartWith("The signing secret of orders was changed at ");
});

test("attempts that fail are unknown after the definition was changed, until one fails again", async () => {
  await breakCalls();
  await editRelay(running, receiverDefinition({ map: { event_id: "id" }, actions: [{ ...CALL, url: "https://example.com/new" } as never] }));
  const doubt = { stands: "unknown", message: said(`The definition of orders was changed at ${AT}\\. Retry one event to see\\.`) };
  expect((await readNeed("relay_failing")).doubt).toMatchObject(doubt);
  expect((await running.api("GET", "/relays/orders")).body.health.cause).toMatchObject(doubt);
  await running.clock.advance(1_000);
  await running.api("POST", "/relays/orders/retry", {});
  await running.drain();
  expect(await readNeed("relay_failing")).toMatchObject({ doubt: null });
});

test("rejected requests are unknown after a new secret was stored, until one is rejected again", async () => {
  await saveRelay(running, receiverDefinition({ actions: [WRITE] }));
  await sendEvent(running, "verified");
  const reject = (id: string) => running.hook("orders", signedCall({ id }, "another secret that is not the relay's"));
  for (let call = 0; call < 5; call++) {
    await running.clock.advance(5 * MINUTE);
    await reject(`x${call}`);
  }
  await running.clock.advance(2_000);
  expect(await readNeed("relay_refusing")).toMatchObject({ doubt: null });
  await running.api("PUT", "/relays/orders/secret", { value: "TheNewOneOfTheSender0123456789ab", overlapSeconds: 0 });
  expect((await readNeed("relay_refusing")).doubt).toMatchObject({
    stands: "unknown",
    message: said(`The secret of orders was changed at ${AT}\\. The next request shows whether this fixed the problem\\.`),
  });
  await running.clock.advance(1_000);
  await reject("y");
  await running.clock.advance(2_000);
  expect(await readNeed("relay_refusing")).toMatchObject({ doubt: null });
  // The figures are those of now, not those of the moment when the problem was raised.
  const figures = new RegExp(` 6 requests were rejected since ${AT}, the last at ${AT}\\.$`);
  expect((await readNeed("relay_refusing")).message).toMatch(figures);
  for (const path of ["/alerts?open=true", "/problems"]) expect((await running.api("GET", path)).body.items[0].message).toMatch(figures);
  expect((await running.api("GET", "/relays/orders")).body.relay.problems[0].message).toMatch(figures);
});
