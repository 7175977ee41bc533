/** Alert mails: one for each burst with counts, to every owner, at most once. If none can be sent, only the dashboard shows the alert. */

import { beforeEach, describe, expect, test } from "bun:test";
import type { JsonObject } from "../../src/base/json.ts";
import { DAY_MS, MINUTE_MS } from "../../src/base/limit.ts";
import { createLog } from "../../src/base/log.ts";
import { alertDead } from "../../src/engine/event/alert.ts";
import { insertEvent, makePayload } from "../../src/engine/event/insert.ts";
import { AlertMail } from "../../src/engine/maintenance/alert-mail.ts";
import { saveSettings } from "../../src/platform/account/environment.ts";
import { createOwner } from "../../src/platform/account/owner.ts";
import { listAlerts, listUnmailedAlerts, markAlertMailed, raiseAlert, resolveAlert } from "../../src/platform/audit/alert.ts";
import { clearProblem, listOpenProblemsOfTarget, raiseProblem } from "../../src/platform/audit/problem.ts";
import { markTextLeft, recordIntendedEmail } from "../../src/platform/mail/email.ts";
import { endInterruptedMails } from "../../src/platform/mail/interrupted-mail.ts";
import type { MailOutcome, OutgoingMail } from "../../src/platform/mail/mailer.ts";
import { relayOf, seqOf } from "../kit/event-sql.ts";
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

function makeMailing(local: boolean, server = async (_mail: OutgoingMail): Promise<MailOutcome> => answers.shift() ?? { kind: "sent" }): AlertMail {
  return new AlertMail({
    store: fresh.store,
    clock: fresh.clock,
    log: createLog({ clock: fresh.clock, format: "json", sink: (line) => logged.push(line) }),
    mailer: {
      async send(mail) {
        left.push(mail);
        return await server(mail);
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

/** Stores everything that the server needs to mail its owner. */
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
  test("reports a burst once with its count and its first and last time, from the domain's account address", async () => {
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
        subject: "Test (development): orders: dead events, 40 times",
        text: expect.stringContaining(
          "orders: dead events (relay_failed) · 40 times, first 2026-01-15T12:00:00.000Z, last 2026-01-15T12:00:39.000Z\nWhat happened: An event of orders is dead.\nWhat to do: Read why (`relay events show`), fix the cause and replay the event (`relay events replay`).\nWhat happens next: The alert resolves when no event of the relay is dead any more.\nhttps://relay.example.com/apps/app_test/development/relays/orders\n",
        ),
      },
    ]);
    expect(left[0]?.text).toContain("https://relay.example.com/apps/app_test/development/alerts");
    expect(await rows()).toEqual({ mailed: 1, emails: ["alert sent"] });
  });

  test("takes the hints that were read before its transaction begins", async () => {
    await makeReady();
    const statements: string[] = [];
    const write = fresh.store.write.bind(fresh.store);
    fresh.store.write = (scope, work) =>
      write(scope, (tx) => {
        const recorded = new Proxy(tx, {
          get(target, name) {
            const value = Reflect.get(target, name);
            if (typeof value !== "function") return value;
            return (...values: unknown[]) => {
              statements.push(String(values[0]));
              return value.apply(target, values);
            };
          },
        });
        return work(recorded);
      });
    await raise();
    await fresh.clock.advance(2 * MINUTE_MS);
    expect(left).toHaveLength(1);
    expect(statements).toContainEqual(expect.stringContaining("INSERT INTO email "));
    expect(statements).not.toContainEqual(expect.stringContaining("audit_by_target"));
  });

  test("is sent for an alert after the clock was two months ahead, even if that alert was mailed then", async () => {
    await makeReady();
    fresh.clock.jump(60 * DAY_MS);
    await raise();
    await fresh.clock.advance(2 * MINUTE_MS);
    fresh.clock.jump(-60 * DAY_MS);
    await fresh.clock.advance(20 * MINUTE_MS);
    await raise();
    await raise();
    await fresh.clock.advance(2 * MINUTE_MS);
    expect(left.map(({ subject }) => subject)).toEqual([
      "Test (development): orders: dead events",
      "Test (development): orders: dead events, 2 times",
    ]);
  });

  test("goes to every owner in a separate mail", async () => {
    await makeReady();
    await addOwner("grace@example.com");
    await raise();
    await fresh.clock.advance(2 * MINUTE_MS);
    expect(left.map(({ to }) => to)).toEqual(["ada@example.com", "grace@example.com"]);
  });

  test("to one owner or of one environment does not wait for a slow mail server of another", async () => {
    await makeReady();
    await addOwner("grace@example.com");
    const other = await fresh.environment("production");
    await fresh.store.write("app", async (tx) => {
      await saveSettings(tx, other, { mail: { sends: true, smtp: SMTP } }, other.version);
      await tx.run(
        "INSERT INTO sender_domain (environment_id, domain, verification_token, verified_at) VALUES (?1, 'live.example', 't', 1)",
        other.id,
      );
      const about = { code: "relay_failed", target: "relay:orders", message: "An event of orders is dead." } as const;
      for (const id of [environmentId, other.id]) await raiseAlert(tx, { ...about, environmentId: id, nowMs: fresh.clock.now() });
    });
    await mailing.stop();
    const dripping: (() => void)[] = [];
    mailing = makeMailing(false, (mail) =>
      mail.environmentId === environmentId && mail.to === "ada@example.com"
        ? new Promise((resolve) => dripping.push(() => resolve({ kind: "unknown", reason: "timed_out", message: "It took too long." })))
        : Promise.resolve({ kind: "sent" }),
    );
    mailing.start();
    await fresh.clock.advance(2 * MINUTE_MS);
    const told = (id: number) => left.filter(({ environmentId: of }) => of === id).map(({ to }) => to);
    expect(told(other.id)).toEqual(["ada@example.com", "grace@example.com"]);
    expect(told(environmentId)).toEqual(["ada@example.com", "grace@example.com"]);
    for (const end of dripping) end();
    await fresh.clock.advance(MINUTE_MS);
    expect((await rows()).emails.toSorted()).toEqual(["alert sent", "alert sent", "alert sent", "alert unknown"]);
  });

  test("groups the alerts of the same minutes, and then waits 15 minutes before the next mail", async () => {
    await makeReady();
    for (const name of ["orders", "refunds", "trials"]) await raise(name);
    await fresh.clock.advance(2 * MINUTE_MS);
    expect(left.map(({ subject }) => subject)).toEqual(["Test (development): 3 alerts"]);
    await raise("leads");
    await fresh.clock.advance(10 * MINUTE_MS);
    expect(left).toHaveLength(1);
    await fresh.clock.advance(6 * MINUTE_MS);
    expect(left.map(({ subject }) => subject)[1]).toBe("Test (development): leads: dead events");
  });

  test("of a second burst within an hour reports the total of the first", async () => {
    await makeReady();
    await raise();
    await fresh.clock.advance(5 * MINUTE_MS);
    await raise("orders", "relay_failed", 500);
    await fresh.clock.advance(60 * MINUTE_MS);
    await raise();
    await fresh.clock.advance(2 * MINUTE_MS);
    expect(left).toHaveLength(2);
    expect(left[1]?.text).toContain("The same happened 501 times from 2026-01-15T12:00:00.000Z to 2026-01-15T12:05:00.000Z.");
  });

  test("is sent at most once an hour for six hours of failures every minute", async () => {
    await makeReady();
    for (let minute = 0; minute < 6 * 60; minute += 1) {
      await raise();
      await fresh.clock.advance(MINUTE_MS);
    }
    expect(left.length).toBe(6);
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
      "a mail that the server refused permanently is not sent again",
      { kind: "failed", reason: "recipient_refused", message: "550", retry: false },
      { mailed: 1, emails: ["alert failed"] },
      1,
    ],
    [
      "a mail that certainly did not leave is retried 15 minutes later",
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

  test("counts the alert as mailed before the mail leaves, so that a crash sends nothing twice", async () => {
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
  ])("a mail that a crash interrupted and which %s", async (_rule, mayHaveLeft, emails) => {
    await makeReady();
    await raise();
    const [alert] = await fresh.store.read((tx) => listUnmailedAlerts(tx, environmentId, 1));
    const nowMs = fresh.clock.now();
    const bare = { personId: null, sender: "a@b.c", subject: "s", text: "t", relayName: null, eventId: null };
    await fresh.store.write("app", async (tx) => {
      const id = await recordIntendedEmail(tx, {
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

describe("an alert is only on the dashboard, and not mailed,", () => {
  const WITHOUT: [string, () => Promise<void>, string | null][] = [
    [
      "without an owner",
      async () => {
        await set({ mail: { sends: true, smtp: SMTP } });
        await verifyDomain();
      },
      "there is no owner to mail",
    ],
    [
      "without an SMTP server",
      async () => {
        await addOwner();
        await verifyDomain();
      },
      "the environment has no SMTP server",
    ],
    [
      "without a verified sender domain",
      async () => {
        await addOwner();
        await set({ mail: { sends: true, smtp: SMTP } });
      },
      "the environment has no verified sender domain",
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
  test.each(WITHOUT)("%s, and the service logs once why it cannot send", async (_rule, prepare, why) => {
    await prepare();
    await raise();
    await fresh.clock.advance(30 * MINUTE_MS);
    expect(left).toEqual([]);
    expect(await rows()).toEqual({ mailed: 0, emails: [] });
    expect(logged.map((line) => JSON.parse(line).why)).toEqual(why === null ? [] : [why]);
  });

  test("when it is more than a day old by the time mail can be sent", async () => {
    await raise();
    await fresh.clock.advance(25 * 60 * MINUTE_MS);
    await makeReady();
    await fresh.clock.advance(10 * MINUTE_MS);
    expect(left).toEqual([]);
  });
});

test("in local development stays in the mailbox, addressed to the local owner or to no address", async () => {
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

describe("an alert is resolved", () => {
  const open = () => fresh.store.read((tx) => listAlerts(tx, environmentId, { limit: 50, after: null }, true));
  const all = () => fresh.store.read((tx) => listAlerts(tx, environmentId, { limit: 50, after: null }));
  const codes = async () => (await open()).items.map(({ code }) => code);
  const putEvent = (state: string, reason: string | null, replays = 0) =>
    fresh.store.write("app", async (tx) => {
      const payload = makePayload({ event: {}, mapped: {} });
      const row = { ...(await relayOf(tx, environmentId, "rly_a", "orders")), payload, unsigned: false, dedupe: null, nowMs: fresh.clock.now() };
      const { id } = await insertEvent(tx, { ...row, trigger: "receiver" });
      await tx.run("UPDATE event SET state = ?2, reason = ?3, replays = ?4 WHERE seq = ?1", seqOf(id), state, reason, replays);
      return id;
    });
  const move = (id: string, state: string, replays = 0) =>
    fresh.store.write("app", (tx) => tx.run("UPDATE event SET state = ?2, replays = ?3 WHERE seq = ?1", seqOf(id), state, replays));
  const look = () => fresh.clock.advance(2 * MINUTE_MS);

  test("manually, together with its problem, once", async () => {
    const key = { environmentId, code: "relay_ignoring", target: "relay:orders", nowMs: fresh.clock.now() } as const;
    await fresh.store.write("app", (tx) => raiseProblem(tx, { ...key, message: "It ignores." }));
    await raise("orders", "relay_ignoring");
    const id = (await open()).items[0]?.id ?? "";
    const resolve = (by: string) => fresh.store.write("app", (tx) => resolveAlert(tx, { environmentId, id, by, nowMs: fresh.clock.now() }));
    expect((await resolve("owner ada@example.com")).resolved).toBe(true);
    expect(await resolve("another")).toMatchObject({ resolved: false, alert: { resolvedBy: "owner ada@example.com" } });
    expect([await codes(), await fresh.store.read((tx) => listOpenProblemsOfTarget(tx, environmentId, "relay:orders"))]).toEqual([[], []]);
  });

  test("manually, with every earlier hour of the same cause, and with no other cause", async () => {
    for (const name of ["orders", "orders", "invoices"]) {
      await raise(name, "events_dropped");
      await fresh.clock.advance(120 * MINUTE_MS);
    }
    const [, ofOrders] = (await open()).items;
    const by = "owner ada@example.com";
    await fresh.store.write("app", (tx) => resolveAlert(tx, { environmentId, id: ofOrders?.id ?? "", by, nowMs: fresh.clock.now() }));
    expect((await open()).items).toMatchObject([{ target: "relay:invoices" }]);
    expect((await all()).items.map(({ resolvedBy }) => resolvedBy)).toEqual([null, by, by]);
  });

  test("automatically when its problem clears, and opens again without a second mail within the hour", async () => {
    await makeReady();
    const key = { environmentId, code: "relay_refusing", target: "relay:orders" } as const;
    const put = (nowMs: number) => fresh.store.write("app", (tx) => raiseProblem(tx, { ...key, message: "It refuses.", nowMs }));
    await put(fresh.clock.now());
    await raise("orders", "relay_refusing");
    await look();
    await fresh.store.write("app", (tx) => clearProblem(tx, { ...key, nowMs: fresh.clock.now() }));
    expect((await all()).items).toMatchObject([{ code: "relay_refusing", resolvedBy: "itself" }]);
    await raise("orders", "relay_refusing");
    expect((await open()).items).toMatchObject([{ code: "relay_refusing", count: 2, resolvedAt: null }]);
    await fresh.clock.advance(30 * MINUTE_MS);
    expect(left).toHaveLength(1);
  });

  test("automatically when all dead events were replayed successfully, and not while a replay runs", async () => {
    const ids = [await putEvent("dead", "call_failed"), await putEvent("dead", "call_failed")];
    await raise();
    await look();
    for (const [state, replays] of [
      ["queued", 1],
      ["running", 1],
    ] as const) {
      for (const id of ids) await move(id, state, replays);
      await look();
      expect(await codes()).toEqual(["relay_failed"]);
    }
    await move(ids[0] ?? "", "done", 1);
    await move(ids[1] ?? "", "dead", 1);
    await look();
    expect(await codes()).toEqual(["relay_failed"]);
    await move(ids[1] ?? "", "done", 1);
    await look();
    expect((await all()).items).toMatchObject([{ code: "relay_failed", resolvedBy: "itself" }]);
  });

  const WAITING = ["sender_domain_required", "invite_capped"] as const;
  test.each(WAITING)("automatically for %s when no event waits for it", async (code) => {
    const id = await putEvent("queued", code);
    await raise("orders", code);
    await look();
    expect(await codes()).toEqual([code]);
    await move(id, "done");
    await look();
    expect(await codes()).toEqual([]);
  });

  test("two hours after the last refusal of a cap, and only manually for lost data", async () => {
    await raise("codes", "codes_capped");
    await raise("orders", "events_dropped");
    await raise("orders", "relay_recovered");
    await fresh.clock.advance(118 * MINUTE_MS);
    expect((await codes()).sort()).toEqual(["codes_capped", "events_dropped"]);
    await fresh.clock.advance(4 * MINUTE_MS);
    expect(await codes()).toEqual(["events_dropped"]);
  });
});

test("the alert of a dead event names the newest event and counts the others", async () => {
  const die = (eventId: string) =>
    fresh.store.write("app", (tx) =>
      alertDead(tx, { environmentId, relayName: "orders", eventId, why: " (call_failed): it answered 500.", nowMs: fresh.clock.now() }),
    );
  const said = async () => (await fresh.store.read((tx) => listUnmailedAlerts(tx, environmentId, 5))).map(({ message }) => message);
  await die("evt_1");
  expect(await said()).toEqual(["The event evt_1 of orders is dead (call_failed): it answered 500. See it with relay events show evt_1."]);
  const since = "Since 2026-01-15T12:00:00.000Z";
  await fresh.clock.advance(MINUTE_MS);
  await die("evt_2");
  expect(await said()).toEqual([
    `The event evt_2 of orders is dead (call_failed): it answered 500. ${since} one more has died: relay events list --relay orders --state dead.`,
  ]);
  for (let event = 3; event <= 9; event++) await die(`evt_${event}`);
  expect(await said()).toEqual([
    `The event evt_9 of orders is dead (call_failed): it answered 500. ${since} 8 more have died: relay events list --relay orders --state dead.`,
  ]);
});
