import { beforeEach, describe, expect, test } from "bun:test";
import { checkShape } from "../../src/base/check-shape.ts";
import type { Json } from "../../src/base/json.ts";
import { DAY_MS, DEFAULT_LIMITS } from "../../src/base/limit.ts";
import { saveSettings } from "../../src/platform/account/environment.ts";
import { listEmails, markTextLeft } from "../../src/platform/mail/email.ts";
import { endInterruptedMails } from "../../src/platform/mail/interrupted-mail.ts";
import { setMailStop } from "../../src/platform/mail/mail-stop.ts";
import type { MailOutcome, OutgoingMail } from "../../src/platform/mail/mailer.ts";
import type { ActionOutcome, ActionPorts, ActionRun } from "../../src/rules/action/contract.ts";
import { type EmailPerson, emailPerson } from "../../src/rules/action/email-person.ts";
import type { PersonRow } from "../../src/shop/people/person.ts";
import type { Occurrence } from "../kit/people.ts";
import { openSellingStore } from "../kit/selling-store.ts";

const market = await openSellingStore();
const { store, environmentId, otherEnvironmentId, clock, environment } = market;
const action: EmailPerson = { type: "email_person", subject: "Hello", text: "Text" };
let answer: MailOutcome;
let left: OutgoingMail[];
const doors: ActionPorts = {
  caller: { call: () => Promise.reject(new Error("no calls")) },
  mailer: {
    async send(mail) {
      left.push(mail);
      return answer;
    },
  },
};

beforeEach(async () => {
  answer = { kind: "sent" };
  left = [];
  await store.write("app", async (tx) => {
    await tx.run("DELETE FROM email");
    await tx.run("DELETE FROM alert");
    await tx.run("DELETE FROM sender_domain");
    await tx.run(
      "INSERT INTO sender_domain (environment_id, domain, verification_token, verified_at) VALUES (?1, 'shop.example', 't', 1)",
      environmentId,
    );
  });
  await switchSends(true);
});

async function switchSends(sends: boolean): Promise<void> {
  const now = await environment("development");
  await store.write("dashboard", (tx) => saveSettings(tx, now, { mail: { sends } }, now.version));
}

/** Runs the action as the runner does: it intends, sends and settles. */
async function mail(person: PersonRow, more: Partial<EmailPerson> = {}, on: Occurrence = {}): Promise<ActionOutcome> {
  const run = market.makeRun(person, on);
  const intent = await store.write("relay", (tx) => emailPerson.intend(tx, { ...action, ...more }, run));
  if ("outcome" in intent) return intent;
  const sent = await emailPerson.send(intent.plan, run, doors);
  return store.write("relay", (tx) => emailPerson.settle(tx, intent.plan, sent, run));
}
const emails = async () => (await store.read((tx) => listEmails(tx, environmentId, { limit: 200, after: null }))).items;
const mailAlerts = () =>
  store.read((tx) =>
    tx.all<{ target: string; message: string; count: number }>("SELECT target, message, count FROM alert WHERE code = 'mail_unknown'"),
  );
const summary = (outcome: ActionOutcome) =>
  outcome.outcome === "failed" ? [outcome.code, outcome.final ? "final" : "tried again"] : [outcome.outcome];
async function mailTimes(times: number, person: PersonRow, more: Partial<EmailPerson> = {}) {
  for (let time = 0; time < times; time++) expect(summary(await mail(person, more))).toEqual(["done"]);
}

describe("email_person", () => {
  test("mails the event's person from the local part for the kind", async () => {
    const person = await market.newPerson();
    expect(await mail(person, {}, { event: "evt_mail" })).toMatchObject({
      outcome: "done",
      after: { to: person.email },
    });
    expect(left).toMatchObject([{ from: "event@shop.example", to: person.email, subject: "Hello", text: "Text" }]);
    expect(await emails()).toMatchObject([
      {
        id: left[0]?.emailId ?? "",
        state: "sent",
        kind: "event",
        person: person.id,
        relay: "shop",
        eventId: "evt_mail",
      },
    ]);
  });

  test("uses the account address for kind account, and kind event by default", async () => {
    const person = await market.newPerson();
    await mail(person, { kind: "account" });
    await mail(person, { kind: "event" });
    expect(left.map(({ from }) => from)).toEqual(["account@shop.example", "event@shop.example"]);
  });

  test("renders subject and text, keeps the subject on one line, and keeps both limits", async () => {
    const person = await market.newPerson();
    const payload = { mapped: { id: "a\r\nBcc: eve@example.com", long: "x".repeat(20_000) } };
    await mail(person, { subject: "Order {{mapped.id}}", text: "{{mapped.id}} for {{person.email}}" }, { payload });
    await mail(person, { subject: "{{mapped.long}}", text: "{{mapped.long}}" }, { payload });
    expect(left[0]).toMatchObject({
      subject: "Order a Bcc: eve@example.com",
      text: `a\nBcc: eve@example.com for ${person.email}`,
    });
    expect([left[1]?.subject.length, left[1]?.text.length]).toEqual([300, 10_000]);
  });

  test.each([
    ["a subject whose only path resolves to nothing", { subject: "{{mapped.none}}", text: "Text" }, "subject"],
    ["a text of spaces", { subject: "Hello", text: " \n {{mapped.none}} " }, "text"],
    ["a text of invisible characters", { subject: "Hello", text: "{{mapped.hidden}}" }, "text"],
  ])("fails permanently and sends nothing if a rendered mail is empty: %s", async (_rule, words, which) => {
    const person = await market.newPerson();
    const outcome = await mail(person, words, { payload: { mapped: { hidden: "\u200b\u3164" } } });
    expect(summary(outcome)).toEqual(["mail_empty", "final"]);
    expect("message" in outcome && outcome.message).toContain(`The mail's ${which} is empty`);
    expect([left, await emails()]).toEqual([[], []]);
  });

  test("warns about text that a limit cuts, and not about text that fits", async () => {
    const warnings = async (length: number) => {
      const told: string[] = [];
      const person = await market.newPerson();
      const payload = { mapped: { long: "x".repeat(length) } };
      const run = {
        ...market.makeRun(person, { payload }),
        warn: (sentence: string) => void told.push(sentence),
      };
      const words = { subject: "{{mapped.long}}", text: "{{mapped.long}}" };
      await store.write("relay", (tx) => emailPerson.intend(tx, { ...action, ...words }, run));
      return told;
    };
    expect(await warnings(300)).toEqual([]);
    expect(await warnings(301)).toEqual(["The mail's subject was cut to its limit of 300 characters."]);
    expect(await warnings(10_001)).toEqual([
      "The mail's subject was cut to its limit of 300 characters.",
      "The mail's text was cut to its limit of 10,000 characters.",
    ]);
  });

  test("sends no event mail to a person who stopped it until they allow it again, and still sends account mail", async () => {
    const [person, other] = [await market.newPerson(), await market.newPerson()];
    const stop = (stopped: boolean) =>
      store.write("app", (tx) => setMailStop(tx, { environmentId, by: "test", nowMs: clock.now() }, { personId: person.id, stopped }));
    await stop(true);
    expect(await mail(person)).toMatchObject({ outcome: "skipped", code: "mail_unsubscribed" });
    expect([left, await emails()]).toEqual([[], []]);
    await mailTimes(1, person, { kind: "account" });
    await mailTimes(1, other);
    await stop(false);
    await mailTimes(1, person);
    expect(left.map(({ stopFor }) => stopFor)).toEqual([undefined, other.id, person.id]);
  });

  test("is refused until a sender domain is verified, and the result says so", async () => {
    const person = await market.newPerson();
    await store.write("app", (tx) => tx.run("UPDATE sender_domain SET verified_at = NULL"));
    expect(summary(await mail(person))).toEqual(["sender_domain_required", "tried again"]);
    await store.write("app", (tx) => tx.run("DELETE FROM sender_domain"));
    expect(summary(await mail(person))).toEqual(["sender_domain_required", "tried again"]);
    expect([left, await emails()]).toEqual([[], []]);
  });

  test("needs no domain in local development, and stores the mail in the mailbox", async () => {
    const person = await market.newPerson();
    await store.write("app", (tx) => tx.run("DELETE FROM sender_domain"));
    answer = { kind: "mailbox" };
    expect(await mail(person, {}, { local: true })).toMatchObject({
      outcome: "done",
      message: expect.stringContaining("mailbox"),
    });
    expect(await emails()).toMatchObject([{ state: "mailbox", from: "event@localhost" }]);
  });

  test("applies the owner's sends switch", async () => {
    const person = await market.newPerson();
    await switchSends(false);
    expect(summary(await mail(person))).toEqual(["sends_off", "tried again"]);
    await switchSends(true);
    expect(summary(await mail(person))).toEqual(["done"]);
    expect(left).toHaveLength(1);
  });

  test("refuses a suspended person permanently", async () => {
    expect(summary(await mail(await market.newPerson({ suspended: true })))).toEqual(["person_suspended", "final"]);
    expect(left).toEqual([]);
  });

  test("sends five event mails to a person in a UTC day, and does not limit account mails or other people", async () => {
    const [person, other] = [await market.newPerson(), await market.newPerson()];
    await mailTimes(5, person);
    const sixth = await mail(person);
    expect(summary(sixth)).toEqual(["email_capped", "tried again"]);
    expect("message" in sixth && sixth.message).toContain("5 event mails today");
    await mailTimes(1, person, { kind: "account" });
    await mailTimes(1, other);
    const untilMidnight = DAY_MS - (clock.now() % DAY_MS);
    clock.jump(untilMidnight - 1);
    expect(summary(await mail(person))).toEqual(["email_capped", "tried again"]);
    clock.jump(1);
    await mailTimes(1, person);
  });

  test("does not count mails that were sent while the clock was two months ahead", async () => {
    const person = await market.newPerson();
    const limits = { ...DEFAULT_LIMITS, emailsPerHour: 5 };
    clock.jump(60 * DAY_MS);
    for (let number = 0; number < 5; number++) expect(summary(await mail(person, {}, { limits }))).toEqual(["done"]);
    expect(summary(await mail(person, {}, { limits }))).toEqual(["email_capped", "tried again"]);
    clock.jump(-60 * DAY_MS);
    expect(summary(await mail(person, {}, { limits }))).toEqual(["done"]);
    expect(summary(await mail(person))).toEqual(["done"]);
  });

  test("sends 200 mails an hour for an app, across all its environments", async () => {
    const person = await market.newPerson();
    await store.write("app", async (tx) => {
      for (let number = 0; number < 199; number++) {
        await tx.run(
          `INSERT INTO email (id, environment_id, recipient, sender, kind, subject, text, state, relay_name, created_at)
           VALUES (?1, ?2, 'a', 'b', 'account', '', '', 'sent', 'shop', ?3)`,
          `eml_bulk${number}`,
          otherEnvironmentId,
          clock.now(),
        );
      }
    });
    await mailTimes(1, person);
    expect(summary(await mail(person, { kind: "account" }))).toEqual(["email_capped", "tried again"]);
    clock.jump(3_600_000);
    await mailTimes(1, person);
  });

  test("does not count alerts, sign-in mails or failed mails against the app's hourly cap", async () => {
    const person = await market.newPerson();
    const limits = { ...DEFAULT_LIMITS, emailsPerHour: 1 };
    await store.write("app", (tx) =>
      tx.run(
        `INSERT INTO email (id, environment_id, recipient, sender, kind, subject, text, state, created_at)
         VALUES ('eml_a', ?1, 'a', 'b', 'alert', '', '', 'sent', ?2), ('eml_b', ?1, 'a', 'b', 'event', '', '', 'failed', ?2)`,
        environmentId,
        clock.now(),
      ),
    );
    expect(summary(await mail(person, {}, { limits }))).toEqual(["done"]);
    expect(summary(await mail(person, {}, { limits }))).toEqual(["email_capped", "tried again"]);
  });

  test("uses the raised caps of the server", async () => {
    const person = await market.newPerson();
    const limits = { ...DEFAULT_LIMITS, eventEmailsPerPersonPerDay: 6 };
    await mailTimes(5, person);
    expect(summary(await mail(person, {}, { limits }))).toEqual(["done"]);
    expect(summary(await mail(person, {}, { limits }))).toEqual(["email_capped", "tried again"]);
  });

  test.each<[string, boolean, string[]]>([
    ["may accept later is retried", true, ["mail_not_sent", "tried again"]],
    ["refuses permanently is final", false, ["mail_refused", "final"]],
  ])("a mail that its server %s", async (_rule, retry, ends) => {
    const person = await market.newPerson();
    answer = { kind: "failed", reason: "recipient_refused", message: "Refused (451).", retry };
    expect(summary(await mail(person))).toEqual(ends);
    expect(await emails()).toMatchObject([{ state: "failed", message: "Refused (451).", reason: "recipient_refused" }]);
  });

  test("counts a mail with an unknown result as sent, says that it may not have left, and alerts owners about it", async () => {
    const person = await market.newPerson();
    answer = { kind: "unknown", reason: "connection_lost", message: "Connection closed" };
    expect(await mail(person)).toMatchObject({
      outcome: "done",
      message: expect.stringContaining("unknown whether this mail left"),
    });
    await mail(person);
    const kept = await emails();
    expect(kept.map(({ state }) => state)).toEqual(["unknown", "unknown"]);
    const [told, ...more] = await mailAlerts();
    expect(more).toEqual([]);
    expect(told).toMatchObject({ target: "relay:shop", count: 2 });
    for (const { id } of kept) expect(told?.message).toContain(id);
  });

  test("does not send a mail_unknown alert if it is switched off", async () => {
    const now = await environment("development");
    const off = { mail: { sends: true }, alerts: { mail_unknown: false } };
    await store.write("dashboard", (tx) => saveSettings(tx, now, off, now.version));
    answer = { kind: "unknown", reason: "connection_lost", message: "Connection closed" };
    await mail(await market.newPerson());
    expect(await mailAlerts()).toEqual([]);
    const after = await environment("development");
    await store.write("dashboard", (tx) => saveSettings(tx, after, { alerts: {} }, after.version));
  });

  describe("interrupted between intending and settling", () => {
    /** Intends a mail as an interrupted attempt does. `how` says whether the mail left and whether the process ended. */
    async function cutOff(how: { left: boolean; died: boolean }) {
      const person = await market.newPerson();
      const run = market.makeRun(person, { event: `evt_${person.id}` });
      const mark = await store.write("relay", async (tx) => {
        const intent = await emailPerson.intend(tx, action, run);
        if (!("plan" in intent)) throw new Error("The mail was refused.");
        if (how.left) await markTextLeft(tx, intent.plan.emailId, clock.now());
        return intent.mark;
      });
      if (how.died) await store.write("app", (tx) => endInterruptedMails(tx, clock.now()));
      return { ...run, mark };
    }
    const resume = ({ mark, ...run }: ActionRun & { mark: Json | undefined }, present = action) =>
      store.write("relay", async (tx) => {
        const outcome = await emailPerson.conclude?.(tx, run, mark);
        if (outcome != null) return { outcome };
        return await emailPerson.intend(tx, present, run);
      });

    for (const [who, died] of [
      ["by a crash", true],
      ["by a failing store", false],
    ] as const) {
      test(`${who}: sends a mail whose text had not left, once, with the relay's current text`, async () => {
        const run = await cutOff({ left: false, died });
        const intent = await resume(run, { ...action, text: "Corrected" });
        if (intent === undefined || !("plan" in intent)) throw new Error("It was not sent after all.");
        await store.write("relay", (tx) => emailPerson.settle(tx, intent.plan, { kind: "sent" }, run));
        expect(await emails()).toMatchObject([{ id: intent.plan.emailId, state: "sent", text: "Corrected" }]);
        expect(await mailAlerts()).toEqual([]);
      });

      test(`${who}: counts a mail whose text may have left as sent, never sends it again, and alerts owners about it`, async () => {
        const run = await cutOff({ left: true, died });
        expect(await resume(run)).toMatchObject({
          outcome: { outcome: "done", message: expect.stringContaining("unknown whether this mail left") },
        });
        const kept = await emails();
        expect([left, kept.map(({ state }) => state)]).toEqual([[], ["unknown"]]);
        expect(await mailAlerts()).toMatchObject([{ count: 1, message: expect.stringContaining(kept[0]?.id ?? "?") }]);
      });
    }

    test.each<[string, boolean, MailOutcome, string]>([
      ["did not leave is sent, even if the next attempt sent another", false, { kind: "sent" }, "plan"],
      ["may have left counts as sent, even if the next attempt sent another", true, { kind: "sent" }, "outcome"],
      [
        "may have left counts as sent, even if the next attempt failed at another",
        true,
        { kind: "failed", reason: "timed_out", message: "No answer.", retry: true },
        "outcome",
      ],
    ])("a mail that %s before it", async (_rule, hadLeft, other, ends) => {
      const cut = await cutOff({ left: hadLeft, died: true });
      clock.jump(1_000);
      const run = { ...cut, nowMs: clock.now() };
      await store.write("relay", async (tx) => {
        const intent = await emailPerson.intend(tx, { ...action, subject: "Put before it" }, run);
        if (!("plan" in intent)) throw new Error("The mail was refused.");
        await emailPerson.settle(tx, intent.plan, other, run);
      });
      clock.jump(60_000);
      expect(await resume({ ...run, nowMs: clock.now() })).toHaveProperty(ends);
      expect((await emails()).map(({ subject, state }) => `${subject}: ${state}`).toSorted()).toEqual([
        hadLeft ? "Hello: unknown" : "Hello: intended",
        `Put before it: ${other.kind}`,
      ]);
    });

    test("counts a mail that is sent after an interruption against its caps, once", async () => {
      const run = await cutOff({ left: false, died: false });
      const limits = { ...DEFAULT_LIMITS, eventEmailsPerPersonPerDay: 1 };
      let { mark } = run;
      for (let turn = 0; turn < 2; turn++) {
        const intent = await resume({ ...run, limits, mark });
        if (intent === undefined || !("plan" in intent)) throw new Error("It was not sent after all.");
        ({ mark } = intent);
      }
      await switchSends(false);
      expect(await resume({ ...run, limits, mark })).toMatchObject({ outcome: "failed", code: "sends_off" });
      expect(await emails()).toEqual([]);
    });
  });

  test("counts an intended mail against its caps before it leaves, so that two cannot both use the last place", async () => {
    const person = await market.newPerson();
    const limits = { ...DEFAULT_LIMITS, eventEmailsPerPersonPerDay: 1 };
    const run = market.makeRun(person, { limits });
    await store.write("relay", (tx) => emailPerson.intend(tx, action, run));
    expect(summary(await mail(person, {}, { limits }))).toEqual(["email_capped", "tried again"]);
  });
});

describe("an email_person definition", () => {
  test.each<[string, unknown]>(emailPerson.examples.map((example) => [example.subject, example]))("accepts %s", (_name, example) => {
    expect([checkShape(emailPerson.shape, example), emailPerson.check(example as EmailPerson)]).toEqual([[], []]);
  });

  test.each<[string, unknown]>([
    ["a subject over 300 characters", { ...action, subject: "x".repeat(301) }],
    ["a text over 10,000 characters", { ...action, text: "x".repeat(10_001) }],
    ["no subject", { type: "email_person", text: "x" }],
    ["a kind that is not known", { ...action, kind: "alert" }],
    ["its own recipient", { ...action, to: "eve@example.com" }],
  ])("refuses %s", (_rule, value) => {
    expect(checkShape(emailPerson.shape, value).length).toBeGreaterThan(0);
  });

  test("refuses an expression between the braces", () => {
    expect(emailPerson.check({ ...action, text: "{{mapped.a | upper}}" })).toMatchObject([{ field: "text" }]);
    expect(emailPerson.check({ ...action, subject: "{{mapped.a" })).toMatchObject([{ field: "subject" }]);
  });
});
