/** Tests mail that an owner sends over HTTP: a resend of a mail with an unknown result, and a test of the settings. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { recordIntendedEmail } from "../../src/platform/mail/email.ts";
import type { MailOutcome } from "../../src/platform/mail/mailer.ts";
import { invitePerson } from "../../src/shop/people/person-invite.ts";
import { type ApiServer, startApi } from "../kit/api-server.ts";

const FAILED: MailOutcome = {
  kind: "failed",
  reason: "recipient_refused",
  message: "The mail server rejected the recipient's address. Its reply was 550 5.1.1. Check the recipient's address.",
  retry: false,
};

let api: ApiServer;
let personId: string;

beforeEach(async () => {
  api = await startApi();
  personId = await makePerson("ada@example.com");
  await api.store.write("app", (tx) =>
    tx.run(
      "INSERT INTO sender_domain (environment_id, domain, verification_token, verified_at) VALUES (?1, 'shop.example', 't', 1)",
      api.environments.development.id,
    ),
  );
});
afterEach(() => api[Symbol.asyncDispose]());

function makePerson(email: string): Promise<string> {
  return api.store.write("app", async (tx) => {
    const environmentId = api.environments.development.id;
    const nowMs = api.clock.now();
    return (await invitePerson(tx, { environmentId, email, createdBy: "test", nowMs, invitesPerDay: 200 })).person.id;
  });
}

/** Creates a relay's mail in this state. */
function makeMail(state: string, more: { relayName?: string | null } = {}): Promise<string> {
  return api.store.write("app", async (tx) => {
    const id = await recordIntendedEmail(tx, {
      environmentId: api.environments.development.id,
      personId,
      recipient: "ada@example.com",
      sender: "event@old.example",
      kind: "event",
      subject: "Thank you",
      text: "Your order is on its way.",
      relayName: "orders",
      eventId: "evt_1",
      nowMs: api.clock.now(),
      ...more,
    });
    await tx.run("UPDATE email SET state = ?2, left_at = 1 WHERE id = ?1", id, state);
    return id;
  });
}

const again = (id: string) => api.call(`${api.E}/emails/${id}/send-again`, { method: "POST", body: {}, session: true });
const testMail = (body: object = {}, how: object = { session: true }) => api.call(`${api.E}/mail/test`, { method: "POST", body, ...how });

describe("a resend", () => {
  test("sends a mail whose result is unknown with the same text to the same person, from the sender that is verified now", async () => {
    const id = await makeMail("unknown");
    expect(await again(id)).toMatchObject({
      status: 200,
      json: { email: { id, state: "sent", from: "event@shop.example", message: null, reason: null } },
    });
    expect(api.mail.sent).toMatchObject([{ emailId: id, to: "ada@example.com", subject: "Thank you", text: "Your order is on its way." }]);
    const audit = await api.call(`${api.E}/audit`, { session: true });
    expect(audit.json.items[0]).toMatchObject({ action: "email.sent_again", target: `email:${id}` });
  });

  test.each<[string, MailOutcome]>([
    ["is rejected", FAILED],
    ["has an unknown result again", { kind: "unknown", reason: "connection_lost", message: "The connection ended." }],
  ])("of a mail that %s leaves it unknown, because the first one may have been sent, and gives the reason", async (_rule, outcome) => {
    const id = await makeMail("unknown");
    api.mail.outcome = outcome;
    const { status, json } = await again(id);
    expect([status, json.email.state]).toEqual([200, "unknown"]);
    expect(json.email.message).toContain("message" in outcome ? outcome.message : "?");
    api.mail.outcome = { kind: "sent" };
    expect((await again(id)).json.email.state).toBe("sent");
  });

  test("sends once for two concurrent requests", async () => {
    const id = await makeMail("unknown");
    const answers = await Promise.all([again(id), again(id)]);
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409]);
    expect(api.mail.sent).toHaveLength(1);
  });

  test.each<[string, () => Promise<string>, [number, string]]>([
    ["was sent", () => makeMail("sent"), [409, "mail_settled"]],
    ["failed", () => makeMail("failed"), [409, "mail_settled"]],
    ["is being sent", () => makeMail("intended"), [409, "mail_settled"]],
    ["no relay sent", () => makeMail("unknown", { relayName: null }), [409, "mail_settled"]],
    ["does not exist", async () => "eml_none", [404, "not_found"]],
    [
      "went to a person who is suspended now",
      async () => {
        await api.store.write("app", (tx) => tx.run("UPDATE person SET status = 'suspended'"));
        return makeMail("unknown");
      },
      [403, "person_suspended"],
    ],
    [
      "went to a person who was erased",
      async () => {
        const id = await makeMail("unknown");
        expect((await api.call(`${api.E}/persons/${personId}`, { method: "DELETE", session: true })).status).toBe(204);
        return id;
      },
      [409, "mail_settled"],
    ],
    [
      "went to a person who has unsubscribed since",
      async () => {
        const path = `${api.E}/persons/${personId}/mail-stop`;
        expect((await api.call(path, { method: "PUT", body: { stopped: true }, session: true })).status).toBe(200);
        return makeMail("unknown");
      },
      [409, "mail_not_possible"],
    ],
    [
      "has no verified sender now",
      async () => {
        await api.store.write("app", (tx) => tx.run("UPDATE sender_domain SET verified_at = NULL"));
        return makeMail("unknown");
      },
      [409, "mail_not_possible"],
    ],
  ])("rejects a mail that %s, and sends nothing", async (_rule, given, [status, code]) => {
    const answer = await again(await given());
    expect([answer.status, answer.json.code]).toEqual([status, code]);
    expect(api.mail.sent).toEqual([]);
  });
});

describe("a test mail", () => {
  test("goes to the requesting owner from the account sender, and is stored like other mail", async () => {
    const { status, json } = await testMail();
    expect([status, json.email.state, json.email.from]).toEqual([200, "sent", "account@shop.example"]);
    expect(api.mail.sent).toMatchObject([{ emailId: json.email.id, to: json.email.to }]);
    const listed = await api.call(`${api.E}/emails`, { key: api.keys.dev });
    expect(listed.json.items).toMatchObject([{ id: json.email.id, state: "sent", subject: "Test mail" }]);
  });

  test("that is rejected names its error class and quotes the mail server", async () => {
    api.mail.outcome = FAILED;
    expect((await testMail({}, { key: api.keys.dev })).json.email).toMatchObject({
      state: "failed",
      reason: "recipient_refused",
      message: "The mail server rejected the recipient's address. Its reply was 550 5.1.1. Check the recipient's address.",
    });
  });

  test.each<[string, object, () => Promise<unknown>, [number, string]]>([
    ["a recipient who is no owner", { to: "stranger@example.com" }, async () => undefined, [400, "invalid_input"]],
    [
      "an owner without a verified sender domain",
      {},
      () => api.store.write("app", (tx) => tx.run("DELETE FROM sender_domain")),
      [409, "mail_not_possible"],
    ],
    [
      "an owner with the switch off",
      {},
      () =>
        api.call(`${api.E}/settings`, {
          method: "PUT",
          body: { version: 1, mail: { sends: false } },
          session: true,
        }),
      [409, "mail_not_possible"],
    ],
    [
      "an owner over the app's hourly limit",
      {},
      async () => {
        for (let count = 0; count < 200; count++) await makeMail("sent");
      },
      [409, "mail_not_possible"],
    ],
  ])("is rejected for %s", async (_rule, body, given, [status, code]) => {
    await given();
    const answer = await testMail(body);
    expect([answer.status, answer.json.code]).toEqual([status, code]);
    expect(api.mail.sent).toEqual([]);
  });
});
