/** Alerts by mail: one for a burst, with counts, to every owner, at most once; and where nothing can be sent, the dashboard alone. */

import { beforeEach, describe, expect, test } from "bun:test";
import { saveSettings } from "../../src/account/environment.ts";
import { createOwner } from "../../src/account/owner.ts";
import { AlertMail } from "../../src/caretaker/alert-mail.ts";
import type { JsonObject } from "../../src/ground/json.ts";
import { MINUTE_MS } from "../../src/ground/limit.ts";
import { createLog } from "../../src/ground/log.ts";
import { intendEmail, markTextLeft } from "../../src/mail/email.ts";
import { endInterruptedMails } from "../../src/mail/interrupted-mail.ts";
import type { MailOutcome, OutgoingMail } from "../../src/mail/mailer.ts";
import { listUnmailedAlerts, markAlertMailed, raiseAlert } from "../../src/watch/alert.ts";
import { type FreshStore, openFreshStore } from "../kit/fresh-store.ts";

const SMTP = {
  host: "smtp.example.com",
  port: 587,
  security: "starttls",
  username: null,
  password: null,
  passwordSetAt: null,
};

let fresh: FreshStore;
let environmentId: number;
let answers: MailOutcome[];
let left: OutgoingMail[];
let logged: string[];
let mailing: AlertMail;

beforeEach(async () => {
  fresh = await openFreshStore();
  environmentId = (await fresh.environment("development")).id;
  answers = [];
  left = [];
  logged = [];
  mailing = makeMailing(false);
  mailing.start();
});

function makeMailing(local: boolean): AlertMail {
  return new AlertMail({
    store: fresh.store,
    clock: fresh.clock,
    log: createLog({ clock: fresh.clock, format: "json", sink: (line) => logged.push(line) }),
    mailer: {
      async send(mail) {
        left.push(mail);
        return answers.shift() ?? { kind: "sent" };
      },
    },
    local,
    baseUrl: () => "https://relay.example.com",
  });
}

async function addOwner(email = "ada@example.com"): Promise<void> {
  await fresh.store.write("app", (tx) => createOwner(tx, { email, passwordHash: null, nowMs: fresh.clock.now() }));
}

async function set(sections: JsonObject): Promise<void> {
  const environment = await fresh.environment("development");
  await fresh.store.write("app", (tx) => saveSettings(tx, environment, sections, environment.version));
}

async function verifyDomain(): Promise<void> {
  await fresh.store.write("app", (tx) =>
    tx.run("INSERT INTO sender_domain (environment_id, domain, verification_token, verified_at) VALUES (?1, 'shop.example', 't', 1)", environmentId),
  );
}

/** Everything a server needs to mail its owner. */
async function makeReady(): Promise<void> {
  await addOwner();
  await set({ mail: { sends: true, smtp: SMTP } });
  await verifyDomain();
}

function raise(name = "orders", code: Parameters<typeof raiseAlert>[1]["code"] = "relay_failed", count?: number): Promise<void> {
  const message = `An event of ${name} is dead.`;
  return fresh.store.write("app", (tx) =>
    raiseAlert(tx, {
      environmentId,
      code,
      target: `relay:${name}`,
      message,
      count,
      nowMs: fresh.clock.now(),
    }),
  );
}

async function rows(): Promise<{ mailed: number; emails: string[] }> {
  return fresh.store.read(async (tx) => ({
    mailed: (await tx.all("SELECT 1 FROM alert WHERE mailed_at IS NOT NULL")).length,
    emails: (await tx.all<{ kind: string; state: string }>("SELECT kind, state FROM email ORDER BY seq")).map(
      ({ kind, state }) => `${kind} ${state}`,
    ),
  }));
}

describe("the mail", () => {
  test("tells a burst once with its count, first and last, from the domain's account word", async () => {
    await makeReady();
    for (let index = 0; index < 40; index++) {
      await raise();
      await fresh.clock.advance(1_000);
    }
    await fresh.clock.advance(2 * MINUTE_MS);
    expect(left).toEqual([
      {
        environmentId,
        emailId: expect.stringMatching(/^eml_/),
        from: "account@shop.example",
        to: "ada@example.com",
        subject: "Test (development): relay_failed of orders, 40 times",
        text: expect.stringContaining(
          "orders · relay_failed · 40 times, first 2026-01-15T12:00:00.000Z, last 2026-01-15T12:00:39.000Z\nAn event of orders is dead.\n",
        ),
      },
    ]);
    expect(left[0]?.text).toContain("https://relay.example.com/apps/app_test/development/attention");
    expect(await rows()).toEqual({ mailed: 1, emails: ["alert sent"] });
  });

  test("goes to every owner, each a mail of their own", async () => {
    await makeReady();
    await addOwner("grace@example.com");
    await raise();
    await fresh.clock.advance(2 * MINUTE_MS);
    expect(left.map(({ to }) => to)).toEqual(["ada@example.com", "grace@example.com"]);
  });

  test("gathers what alerts in the same minutes, and then waits a quarter of an hour before the next", async () => {
    await makeReady();
    for (const name of ["orders", "refunds", "trials"]) await raise(name);
    await fresh.clock.advance(2 * MINUTE_MS);
    expect(left.map(({ subject }) => subject)).toEqual(["Test (development): 3 alerts"]);
    await raise("leads");
    await fresh.clock.advance(10 * MINUTE_MS);
    expect(left).toHaveLength(1);
    await fresh.clock.advance(6 * MINUTE_MS);
    expect(left.map(({ subject }) => subject)[1]).toBe("Test (development): relay_failed of leads");
  });

  test("of an hour's second burst says what the first one came to", async () => {
    await makeReady();
    await raise();
    await fresh.clock.advance(5 * MINUTE_MS);
    await raise("orders", "relay_failed", 500);
    await fresh.clock.advance(60 * MINUTE_MS);
    await raise();
    await fresh.clock.advance(2 * MINUTE_MS);
    expect(left).toHaveLength(2);
    expect(left[1]?.text).toContain("The burst before it, from 2026-01-15T12:00:00.000Z to 2026-01-15T12:05:00.000Z, came to 501.");
  });

  test("of a day of failures every minute is at most one an hour", async () => {
    await makeReady();
    for (let minute = 0; minute < 24 * 60; minute += 1) {
      await raise();
      await fresh.clock.advance(MINUTE_MS);
    }
    expect(left.length).toBe(24);
  });
});

describe("at most once", () => {
  const ENDS: [string, MailOutcome, { mailed: number; emails: string[] }, number][] = [
    ["a mail that left is not sent again", { kind: "sent" }, { mailed: 1, emails: ["alert sent"] }, 1],
    [
      "a mail that may have left is not sent again",
      { kind: "unknown", reason: "connection_lost", message: "the connection ended" },
      { mailed: 1, emails: ["alert unknown"] },
      1,
    ],
    [
      "a mail that the server refused for good is not sent again",
      { kind: "failed", reason: "recipient_refused", message: "550", retry: false },
      { mailed: 1, emails: ["alert failed"] },
      1,
    ],
    [
      "a mail that certainly did not leave is tried again a quarter of an hour later",
      { kind: "failed", reason: "not_connected", message: "no connection", retry: true },
      { mailed: 1, emails: ["alert failed", "alert sent"] },
      2,
    ],
  ];
  test.each(ENDS)("%s", async (_rule, end, after, sent) => {
    await makeReady();
    answers = [end];
    await raise();
    await fresh.clock.advance(10 * MINUTE_MS);
    expect(left).toHaveLength(1);
    await fresh.clock.advance(60 * MINUTE_MS);
    expect(left).toHaveLength(sent);
    expect(await rows()).toEqual(after);
  });

  test("the alert counts as mailed before the mail leaves, so that a crash in between sends nothing twice", async () => {
    await makeReady();
    await raise();
    let seen: unknown;
    const watching = new AlertMail({
      store: fresh.store,
      clock: fresh.clock,
      log: createLog({ clock: fresh.clock, format: "json", sink: () => undefined }),
      mailer: {
        async send() {
          seen = await rows();
          return { kind: "sent" };
        },
      },
      local: false,
      baseUrl: () => "https://relay.example.com",
    });
    await mailing.stop();
    watching.start();
    await fresh.clock.advance(2 * MINUTE_MS);
    expect(seen).toEqual({ mailed: 1, emails: ["alert intended"] });
  });

  test.each<[string, boolean, string[]]>([
    ["had not begun to leave is mailed again after the start", false, ["alert failed", "alert sent"]],
    ["may have left is not mailed again", true, ["alert unknown"]],
  ])("a mail whose end a crash took and which %s", async (_rule, mayHaveLeft, emails) => {
    await makeReady();
    await raise();
    const [alert] = await fresh.store.read((tx) => listUnmailedAlerts(tx, environmentId, 1));
    const nowMs = fresh.clock.now();
    const bare = { personId: null, sender: "a@b.c", subject: "s", text: "t", relayName: null, eventId: null };
    await fresh.store.write("app", async (tx) => {
      const id = await intendEmail(tx, {
        ...bare,
        environmentId,
        recipient: "ada@example.com",
        kind: "alert",
        nowMs,
      });
      if (mayHaveLeft) await markTextLeft(tx, id, nowMs);
      await markAlertMailed(tx, alert?.id ?? "", nowMs);
    });
    await fresh.store.write("app", (tx) => endInterruptedMails(tx, nowMs));
    await fresh.clock.advance(2 * MINUTE_MS);
    expect((await rows()).emails).toEqual(emails);
    expect((await rows()).mailed).toBe(1);
  });
});

describe("an alert is on the dashboard alone, and not mailed,", () => {
  const WITHOUT: [string, () => Promise<void>, string | null][] = [
    [
      "without an owner",
      async () => {
        await set({ mail: { sends: true, smtp: SMTP } });
        await verifyDomain();
      },
      "no owner is there to be mailed",
    ],
    [
      "without an SMTP server",
      async () => {
        await addOwner();
        await verifyDomain();
      },
      "it has no SMTP server",
    ],
    [
      "without a verified sender domain",
      async () => {
        await addOwner();
        await set({ mail: { sends: true, smtp: SMTP } });
      },
      "it has no verified sender domain",
    ],
    [
      "with mail switched off",
      async () => {
        await makeReady();
        await set({ alerts: { mail: false } });
      },
      null,
    ],
    [
      "with its code switched off",
      async () => {
        await makeReady();
        await set({ alerts: { relay_failed: false } });
      },
      null,
    ],
  ];
  test.each(WITHOUT)("%s; that is logged once", async (_rule, prepare, why) => {
    await prepare();
    await raise();
    await fresh.clock.advance(30 * MINUTE_MS);
    expect(left).toEqual([]);
    expect(await rows()).toEqual({ mailed: 0, emails: [] });
    expect(logged.map((line) => JSON.parse(line).why)).toEqual(why === null ? [] : [why]);
  });

  test("when it is more than a day old by the time mail can leave", async () => {
    await raise();
    await fresh.clock.advance(25 * 60 * MINUTE_MS);
    await makeReady();
    await fresh.clock.advance(10 * MINUTE_MS);
    expect(left).toEqual([]);
  });
});

test("in local development the mail stays in the mailbox, for the owner there or for nobody in particular", async () => {
  await mailing.stop();
  const local = makeMailing(true);
  answers = [{ kind: "mailbox" }];
  local.start();
  await raise();
  await fresh.clock.advance(2 * MINUTE_MS);
  expect(left.map(({ from, to }) => [from, to])).toEqual([["account@localhost", "owner@localhost"]]);
  expect(await rows()).toEqual({ mailed: 1, emails: ["alert mailbox"] });
  await local.stop();
});
