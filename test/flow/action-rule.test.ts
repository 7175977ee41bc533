/** Tests rules of people, access, credits and sales that show only in the running service, through the API and the runner. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { DAY_MS, DEFAULT_LIMITS } from "../../src/base/limit.ts";
import type { MailOutcome } from "../../src/platform/mail/mailer.ts";
import { alertsOf, type EventView, replay, sendEvent, showEvent, until } from "../kit/event-flow.ts";
import { FakeCaller } from "../kit/fake-caller.ts";
import { type ActionLike, receiverDefinition, saveRelay } from "../kit/relay-definition.ts";
import { type RunningService, startRunningService } from "../kit/running-service.ts";
import { lookAt } from "../kit/shop.ts";

const ADA = "ada@example.com";
const CLUB: ActionLike = { type: "grant_access", entitlement: "access:club" };
const CALL: ActionLike = { type: "call_url", url: "https://example.com/notice" };
const MAIL: ActionLike = { type: "email_person", subject: "Hello", text: "Text" };

let running: RunningService;
let caller: FakeCaller;
let mailed: string[];
let mailEnds: MailOutcome;
let ada: string;

beforeEach(async () => {
  caller = new FakeCaller();
  mailed = [];
  mailEnds = { kind: "sent" };
  const mailer = {
    async send({ to }: { to: string }) {
      mailed.push(to);
      return mailEnds;
    },
  };
  running = await startRunningService({
    ports: { caller, mailer },
    config: { limits: { ...DEFAULT_LIMITS, invitesPerDay: 2 } },
  });
  await running.api("PUT", "/access/club", {});
  await running.service.store.write("app", (tx) =>
    tx.run(
      `INSERT INTO sender_domain (environment_id, domain, verification_token, verified_at)
       SELECT id, 'shop.example', 't', 1 FROM environment`,
    ),
  );
  ada = (await running.api("POST", "/persons", { email: ADA })).body.person.id;
});
afterEach(() => running[Symbol.asyncDispose]());

async function relay(actions: ActionLike[], key = "person_email", name = "orders") {
  const map = { event_id: "id", ref: "ref", [key]: "who" };
  return saveRelay(running, receiverDefinition({ name, actions, map }));
}

async function send(id: string, who: string, more: object = {}, name = "orders"): Promise<EventView> {
  const event = await sendEvent(running, id, { who, ...more }, name);
  await running.drain();
  return showEvent(running, event);
}

const ended = ({ state, reason }: EventView) => [state, reason];
const outcomes = (event: EventView) => event.runs.at(-1)?.results.map(({ type, outcome, code }) => `${type} ${code ?? outcome}`);

describe("people", () => {
  test("counts people that events create against the daily invite cap, and delays the event that exceeds it", async () => {
    await relay([CLUB]);
    expect((await send("a", "bob@example.com")).state).toBe("done");
    const capped = await send("b", "eve@example.com");
    expect(ended(capped)).toEqual(["queued", "invite_capped"]);
    await running.clock.advance(60_000);
    await running.drain();
    expect(await alertsOf(running)).toMatchObject([{ code: "invite_capped", target: "relay:orders", count: 1 }]);
    const invited = await running.api("POST", "/persons", { email: "zoe@example.com" });
    expect([invited.status, invited.body.code]).toEqual([429, "invite_capped"]);
    expect((await send("c", ADA)).state).toBe("done");
    running.clock.jump(DAY_MS);
    await running.clock.advance(6_000);
    await running.drain();
    expect((await showEvent(running, capped.id)).state).toBe("done");
  });

  test.each(["person_id", "person_token"])("with %s, an action finds an existing person and never creates one", async (key) => {
    await relay([CLUB], key);
    const secret = "per_or_token_that_is_not_filed";
    const lost = await send("a", secret);
    expect(ended(lost)).toEqual(["failed", "person_not_found"]);
    const message: string = lost.runs[0]?.results[0].message ?? "";
    expect([message.includes(key), message.includes(secret)]).toEqual([true, false]);
    expect(await running.rows("SELECT id FROM person")).toHaveLength(1);
    if (key === "person_token") await running.api("PUT", `/persons/${ada}/tokens/${secret}`);
    const found = await send("b", key === "person_id" ? ada : secret);
    expect([found.state, found.person?.id]).toEqual(["done", ada]);
  });

  test("a suspended person's event is dead at once, and its replay runs after reactivation", async () => {
    await relay([CLUB]);
    await running.api("PATCH", `/persons/${ada}`, { status: "suspended" });
    const dead = await send("a", ADA);
    expect([...ended(dead), dead.attempts]).toEqual(["dead", "person_suspended", 1]);
    await running.api("PATCH", `/persons/${ada}`, { status: "active" });
    await replay(running, dead.id);
    await running.drain();
    expect((await lookAt(running, ada)).grants).toEqual(["access:club from relay"]);
  });

  test("a suspended person's dead event appears in their event list, their timeline and a bulk replay", async () => {
    await relay([CLUB]);
    await running.api("PATCH", `/persons/${ada}`, { status: "suspended" });
    const dead = await send("a", ADA);
    expect(dead.person).toEqual({ id: ada, email: ADA });
    expect((await running.api("GET", `/events?person=${ada}`)).body.items.map((item: { id: string }) => item.id)).toEqual([dead.id]);
    const story = (await running.api("GET", `/persons/${ada}/story`)).body.items as { eventId: string | null }[];
    expect(story.some(({ eventId }) => eventId === dead.id)).toBe(true);
    await running.api("PATCH", `/persons/${ada}`, { status: "active" });
    expect((await running.api("POST", "/bulk-replays/plan", { state: "dead", person: ada })).body.plan.matched).toBe(1);
  });

  test("a suspended person's event is dead at the first attempt, and runs none of its actions", async () => {
    const fields = { order: { type: "text" } };
    await running.api("POST", "/collections", { name: "orders", kind: "shared", fields });
    await relay([{ type: "write_record", collection: "orders", data: { order: "{{mapped.event_id}}" } }]);
    await running.api("PATCH", `/persons/${ada}`, { status: "suspended" });
    const dead = await send("a", ADA);
    expect([...ended(dead), dead.attempts]).toEqual(["dead", "person_suspended", 1]);
    expect(dead.runs[0]?.results.map(({ type, code }) => [type, code])).toEqual([["person", "person_suspended"]]);
    expect(await running.rows("SELECT id FROM record")).toEqual([]);
  });

  test("an erased person cannot be found, and the ledgers keep only the id", async () => {
    await relay([CLUB, { type: "grant_credits", amount: 7 }], "person_id");
    await send("a", ada);
    expect((await running.api("DELETE", `/persons/${ada}`)).status).toBe(204);
    expect(ended(await send("b", ada))).toEqual(["failed", "person_erased"]);
    expect(await running.rows("SELECT person_id AS id, balance FROM credit")).toEqual([{ id: ada, balance: 7 }]);
    expect(await running.rows("SELECT email, email_key AS k, status FROM person")).toEqual([{ email: null, k: null, status: "erased" }]);
  });

  test.each([
    ["erased", "person_erased", (id: string) => running.api("DELETE", `/persons/${id}`)],
    ["suspended", "person_suspended", (id: string) => running.api("PATCH", `/persons/${id}`, { status: "suspended" })],
  ])("a person who is %s during an outgoing call gets no sale, grant or mail from the actions after it", async (_what, code, end) => {
    const sale: ActionLike[] = [
      MAIL,
      { type: "fulfil_product", product: "lamp", ref: "{{mapped.ref}}" },
      { type: "grant_plan", plan: "pro", ref: "{{mapped.ref}}" },
      CLUB,
    ];
    const names = ["mail", "sale", "plan", "club"];
    for (const [index, name] of names.entries()) {
      const action = sale[index];
      if (action !== undefined) await relay([CALL, action], "person_id", name);
    }
    await running.api("PUT", "/products/lamp", { soldThrough: { kind: "relay", relay: "sale" } });
    await running.api("PUT", "/plans/pro", { soldThrough: { kind: "relay", relay: "plan" } });
    caller.reply = () => "hang";
    const events = await Promise.all(names.map((name) => sendEvent(running, "a", { who: ada, ref: "1" }, name)));
    await until("every notice is out", () => caller.hanging() === names.length);
    await end(ada);
    caller.letGo();
    await running.drain();
    for (const event of events) {
      expect((await showEvent(running, event)).runs[0]?.results[1]).toMatchObject({
        outcome: "failed",
        code,
      });
    }
    expect(mailed).toEqual([]);
    expect(await running.rows("SELECT id FROM purchase")).toEqual([]);
    expect(await running.rows("SELECT id FROM access_grant")).toEqual([]);
  });
});

describe("access", () => {
  test("a relay's grant has the source relay, which no key can create, and the API revokes it in the key's name", async () => {
    await relay([{ ...CLUB, expiresAt: "2w", reason: "Order {{mapped.ref}}" }]);
    await send("a", ADA, { ref: "77" });
    const body = { entitlement: "access:club", source: "relay" };
    const minted = await running.api("POST", `/persons/${ada}/grants`, body);
    expect([minted.status, minted.body.code]).toEqual([400, "invalid_input"]);
    const [grant] = (await running.api("GET", `/persons/${ada}/access/access:club`)).body.grants;
    expect(grant).toMatchObject({ source: "relay", relay: "orders", reason: "Order 77" });
    expect(grant.expiresAt).toBe("2026-01-29T12:00:00.000Z");
    expect((await running.api("DELETE", `/grants/${grant.id}`)).status).toBe(204);
    expect((await lookAt(running, ada)).grants).toEqual([]);
    const { items } = (await running.api("GET", `/audit?target=grant:${grant.id}`)).body;
    expect(items).toMatchObject([{ action: "grant.revoked", before: { live: true, relay: "orders" }, after: { live: false } }]);
    expect(items[0].actor).toStartWith("key:");
  });

  test("revoke_access revokes every active grant of the entitlement, also manual ones", async () => {
    await relay([CLUB]);
    await relay([{ type: "revoke_access", entitlement: "access:club" }], "person_email", "end");
    await send("a", ADA);
    await running.api("POST", `/persons/${ada}/grants`, { entitlement: "access:club" });
    expect((await lookAt(running, ada)).grants).toHaveLength(2);
    await send("b", ADA, {}, "end");
    expect((await lookAt(running, ada)).grants).toEqual([]);
  });
});

describe("credits", () => {
  test("thirty concurrent spends never take the balance below zero, and each key applies once", async () => {
    await relay([{ type: "grant_credits", amount: 10 }]);
    await send("a", ADA);
    const spend = (key: string) => running.api("POST", `/persons/${ada}/credits`, { amount: -1, reason: "", key });
    const answers = await Promise.all(Array.from({ length: 30 }, (_, n) => spend(`k${n}`)));
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(10);
    expect(answers.filter(({ body }) => body.code === "credits_short")).toHaveLength(20);
    expect((await lookAt(running, ada)).credits).toBe(0);
    await send("b", ADA);
    await Promise.all(Array.from({ length: 10 }, () => spend("same")));
    expect((await lookAt(running, ada)).credits).toBe(9);
  });
});

describe("sold through a relay", () => {
  const FULFIL: ActionLike = { type: "fulfil_product", product: "lamp", ref: "{{mapped.ref}}" };
  const GRANT_PLAN: ActionLike = { type: "grant_plan", plan: "pro", ref: "{{mapped.ref}}" };

  test.each(["/products/lamp", "/plans/pro"])("%s: rejects a relay that does not exist with 400 relay_missing", async (path) => {
    const body = { soldThrough: { kind: "relay", relay: "nobody" } };
    const refused = await running.api("PUT", path, body);
    expect([refused.status, refused.body.code]).toEqual([400, "relay_missing"]);
  });

  test.each<[string, string, ActionLike]>([
    ["fulfil_product", "/products/lamp", FULFIL],
    ["grant_plan", "/plans/pro", GRANT_PLAN],
  ])("saving %s for a deleted relay returns 400 relay_missing, and that relay can be restored", async (_type, path, action) => {
    await relay([CLUB], "person_email", "other");
    await relay([action]);
    await running.api("PUT", path, { soldThrough: { kind: "relay", relay: "orders" } });
    expect((await running.api("DELETE", "/relays/orders")).status).toBe(200);
    const map = { event_id: "id", ref: "ref", person_email: "who" };
    const made = await running.api("POST", "/relays", {
      definition: receiverDefinition({ name: "renamed", actions: [action], map }),
    });
    expect([made.status, made.body.code]).toEqual([400, "relay_missing"]);
    const edited = await running.api("PUT", "/relays/other", {
      definition: receiverDefinition({ name: "other", actions: [action], map }),
      version: 1,
    });
    expect([edited.status, edited.body.code]).toEqual([400, "relay_missing"]);
    await relay([action]);
    expect((await send("a", ADA, { ref: "1" })).state).toBe("done");
  });

  test("a refund or cancellation action can be saved in any relay", async () => {
    await relay([FULFIL]);
    await running.api("PUT", "/products/lamp", { soldThrough: { kind: "relay", relay: "orders" } });
    await running.api("DELETE", "/relays/orders");
    await relay([{ type: "refund_product", product: "lamp", ref: "{{mapped.ref}}" }]);
  });
});

describe("mail", () => {
  test("event mails are limited to five per person and UTC day, and the sixth waits until the next day", async () => {
    await relay([MAIL]);
    await relay([{ ...MAIL, kind: "account" }], "person_email", "account");
    for (const id of ["1", "2", "3", "4", "5"]) expect((await send(id, ADA)).state).toBe("done");
    const sixth = await send("6", ADA);
    expect(ended(sixth)).toEqual(["queued", "email_capped"]);
    expect((await send("a", ADA, {}, "account")).state).toBe("done");
    running.clock.jump(DAY_MS);
    await running.clock.advance(6_000);
    await running.drain();
    expect((await showEvent(running, sixth.id)).state).toBe("done");
    expect(mailed).toHaveLength(7);
  });

  test("the owner's sends switch holds all mail until it is on again", async () => {
    await relay([MAIL]);
    const turn = async (sends: boolean) => {
      const { settings } = (await running.api("GET", "/settings")).body;
      await running.api("PUT", "/settings", { version: settings.version, mail: { sends } });
    };
    await turn(false);
    const held = await send("a", ADA);
    expect(outcomes(held)).toEqual(["email_person sends_off"]);
    await turn(true);
    await running.clock.advance(61_000);
    await running.drain();
    expect([(await showEvent(running, held.id)).state, mailed]).toEqual(["done", [ADA]]);
  });

  test("a mail with a permanent failure is dead at the first attempt with an alert, and a deferred mail is retried", async () => {
    await relay([MAIL]);
    mailEnds = { kind: "failed", reason: "recipient_refused", message: "Refused (451).", retry: true };
    expect(ended(await send("a", ADA))).toEqual(["queued", "mail_not_sent"]);
    expect(await alertsOf(running)).toEqual([]);
    mailEnds = { ...mailEnds, message: "Refused (550).", retry: false };
    const refused = await send("b", ADA);
    expect([...ended(refused), refused.attempts]).toEqual(["dead", "mail_refused", 1]);
    expect(await alertsOf(running)).toMatchObject([{ code: "relay_failed", message: expect.stringContaining("Refused (550).") }]);
  });

  test("a mail whose template resolves to nothing is dead at the first attempt, and a truncated mail is sent with a warning", async () => {
    await relay([{ ...MAIL, text: "{{mapped.ref}}" }]);
    const empty = await send("a", ADA);
    expect([...ended(empty), empty.attempts, mailed]).toEqual(["dead", "mail_empty", 1, []]);
    const long = await send("b", ADA, { ref: "x".repeat(12_000) });
    expect([long.state, mailed]).toEqual(["done", [ADA]]);
    expect(long.warnings).toContain("The mail's text was cut to its limit of 10,000 characters.");
  });

  test("mail to a person who unsubscribed is skipped, and the actions after it run", async () => {
    await relay([MAIL, CLUB]);
    await running.api("PUT", `/persons/${ada}/mail-stop`, { stopped: true });
    const event = await send("a", ADA);
    expect([event.state, outcomes(event), mailed]).toEqual(["done", ["email_person mail_unsubscribed", "grant_access done"], []]);
  });
});
