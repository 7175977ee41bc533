/** Alert mails that are not sent raise a problem, which is not mailed itself. The first mail to an owner resolves it. */

import { beforeEach, describe, expect, test } from "bun:test";
import type { JsonObject } from "../../src/base/json.ts";
import { HOUR_MS, MINUTE_MS } from "../../src/base/limit.ts";
import { createLog } from "../../src/base/log.ts";
import { AlertMail } from "../../src/engine/maintenance/alert-mail.ts";
import { saveSettings } from "../../src/platform/account/environment.ts";
import { createOwner } from "../../src/platform/account/owner.ts";
import { raiseAlert } from "../../src/platform/audit/alert.ts";
import { listProblems } from "../../src/platform/audit/problem.ts";
import type { Mailer, MailOutcome } from "../../src/platform/mail/mailer.ts";
import { sendTestMail } from "../../src/platform/mail/manual-mail.ts";
import { type FreshStore, openFreshStore } from "../kit/fresh-store.ts";

const SMTP = { host: "smtp.example.com", port: 587, security: "starttls", username: null, password: null, passwordSetAt: null };

const SENT: MailOutcome = { kind: "sent" };
const REFUSED: MailOutcome = {
  kind: "failed",
  reason: "recipient_refused",
  message: "The mail server rejected the recipient's address. Its reply was 550.",
  retry: false,
};
const AWAY: MailOutcome = { kind: "failed", reason: "not_connected", message: "The mail server cannot be reached.", retry: true };
const UNKNOWN: MailOutcome = { kind: "unknown", reason: "connection_lost", message: "The connection ended." };

let fresh: FreshStore;
let environmentId: number;
/** The result of each next mail. The last one repeats. */
let answers: MailOutcome[];
let mailing: AlertMail;
const mailer: Mailer = {
  send: async () => (answers.length > 1 ? answers.shift() : answers[0]) ?? SENT,
};

beforeEach(async () => {
  fresh = await openFreshStore();
  environmentId = (await fresh.environment("development")).id;
  answers = [];
  mailing = new AlertMail({
    store: fresh.store,
    clock: fresh.clock,
    log: createLog({ clock: fresh.clock, format: "json", sink: () => undefined }),
    mailer,
    local: false,
    baseUrl: () => "https://relay.example.com",
  });
  mailing.start();
});

const addOwner = (email: string) => fresh.store.write("app", (tx) => createOwner(tx, { email, passwordHash: null, nowMs: fresh.clock.now() }));

async function set(sections: JsonObject): Promise<void> {
  const environment = await fresh.environment("development");
  await fresh.store.write("app", (tx) => saveSettings(tx, environment, sections, environment.version));
}

const verifyDomain = () =>
  fresh.store.write("app", (tx) =>
    tx.run("INSERT INTO sender_domain (environment_id, domain, verification_token, verified_at) VALUES (?1, 'shop.example', 't', 1)", environmentId),
  );

async function makeReady(owners = ["ada@example.com"]): Promise<void> {
  for (const email of owners) await addOwner(email);
  await set({ mail: { sends: true, smtp: SMTP } });
  await verifyDomain();
}

const raise = (name = "orders") =>
  fresh.store.write("app", (tx) =>
    raiseAlert(tx, { environmentId, code: "relay_failed", target: `relay:${name}`, message: "An event is dead.", nowMs: fresh.clock.now() }),
  );

const problems = async (all = false) => (await fresh.store.read((tx) => listProblems(tx, environmentId, !all, { limit: 50, after: null }))).items;
const codes = async () => (await problems()).map(({ code }) => code);
const STANDS = ["alerts_unmailed"];

describe("the problem depends on the results of the mails:", () => {
  const ENDS: [string, MailOutcome[], number, boolean][] = [
    ["a sent mail", [SENT], 10, false],
    ["a permanently refused mail", [REFUSED], 3, true],
    ["a mail that may have been sent", [UNKNOWN], 90, false],
    ["one retryable failure before a sent mail", [AWAY, SENT], 90, false],
    ["retryable failures for half an hour", [AWAY], 35, false],
    ["retryable failures for more than an hour", [AWAY], 80, true],
    ["a mail that the end of the process stopped", [{ ...AWAY, reason: "stopped" }], 10, false],
  ];
  test.each(ENDS)("%s", async (_rule, ends, minutes, stands) => {
    await makeReady();
    answers = ends;
    await raise();
    await fresh.clock.advance(minutes * MINUTE_MS);
    expect(await codes()).toEqual(stands ? STANDS : []);
  });

  test.each<[string, MailOutcome[], boolean]>([
    ["one of two owners is refused, and the other gets the mail", [REFUSED, SENT], false],
    ["one is refused, and the other's mail may have been sent", [REFUSED, UNKNOWN], false],
    ["one is refused and the other's server is unavailable, so neither is retried", [REFUSED, AWAY], true],
  ])("%s", async (_rule, ends, stands) => {
    await makeReady(["ada@example.com", "grace@example.com"]);
    answers = ends;
    await raise();
    await fresh.clock.advance(3 * MINUTE_MS);
    expect(await codes()).toEqual(stands ? STANDS : []);
  });
});

test("the problem says why, is raised once, and has no alert", async () => {
  await makeReady();
  answers = [REFUSED];
  for (const name of ["orders", "refunds", "trials"]) {
    await raise(name);
    await fresh.clock.advance(20 * MINUTE_MS);
  }
  expect(await problems(true)).toMatchObject([
    {
      code: "alerts_unmailed",
      target: "mail",
      message: "The last alert mail reached no owner. The mail server rejected the recipient's address. Its reply was 550.",
      raisedAt: "2026-01-15T12:01:00.000Z",
      clearedAt: null,
    },
  ]);
  expect(await fresh.count("email")).toBe(3);
  expect(await fresh.count("alert")).toBe(3);
});

describe("an environment that cannot send any mail because it", () => {
  const WITHOUT: [string, () => Promise<unknown>, string][] = [
    [
      "has no sender domain",
      async () => [await addOwner("ada@example.com"), await set({ mail: { sends: true, smtp: SMTP } })],
      "relay domain verify",
    ],
    ["has no owner", async () => [await set({ mail: { sends: true, smtp: SMTP } }), await verifyDomain()], "there is no owner to mail"],
  ];
  test.each(WITHOUT)("%s raises the problem once an alert has waited for an hour", async (_rule, prepare, why) => {
    await prepare();
    await fresh.clock.advance(2 * HOUR_MS);
    await raise();
    await fresh.clock.advance(50 * MINUTE_MS);
    expect(await codes()).toEqual([]);
    await fresh.clock.advance(15 * MINUTE_MS);
    expect(await problems()).toMatchObject([{ code: "alerts_unmailed", message: expect.stringContaining(why) }]);
  });
});

test("an environment without a mail server has no such problem, because its owner does not rely on mail", async () => {
  await addOwner("ada@example.com");
  await raise();
  await fresh.clock.advance(2 * HOUR_MS);
  expect(await codes()).toEqual([]);
});

describe("the problem", () => {
  beforeEach(async () => {
    await makeReady();
    answers = [REFUSED];
    await raise();
    await fresh.clock.advance(3 * MINUTE_MS);
    expect(await codes()).toEqual(STANDS);
  });

  const testMail = () =>
    sendTestMail(
      { store: fresh.store, clock: fresh.clock, mailer, local: false },
      { environmentId, by: "owner:ada@example.com", origin: "app" },
      { appId: "app_test", limits: { emailsPerHour: 200, eventEmailsPerPersonPerDay: 5 } },
    );
  const leaves = (act: () => Promise<unknown>) => {
    answers = [SENT];
    return act();
  };
  const WAYS: [string, () => Promise<unknown>, boolean][] = [
    ["resolves when the next alert's mail is sent", () => leaves(() => raise("refunds")), true],
    ["resolves when a test mail is sent", () => leaves(testMail), true],
    ["stays when a test mail fails", () => testMail(), false],
    ["resolves when alert mail is switched off", () => set({ alerts: { mail: false } }), true],
    ["resolves when the mail server is removed", () => set({ mail: { sends: true, smtp: null } }), true],
    ["stays over time", () => Promise.resolve(), false],
  ];
  test.each(WAYS)("%s", async (_rule, act, over) => {
    await act();
    await fresh.clock.advance(20 * MINUTE_MS);
    expect(await codes()).toEqual(over ? [] : STANDS);
  });
});
