/**
 * Strangers at an app's sign-in by code: how often they can guess a code, whom they can lock out, and how much they can use up of what the app's own
 * events need.
 */
import { describe, expect, test } from "bun:test";
import { DAY_MS, DEFAULT_LIMITS, HOUR_MS, type RaisableLimits } from "../../src/base/limit.ts";
import { listAlerts } from "../../src/platform/audit/alert.ts";
import { findExceededCap, recordIntendedEmail } from "../../src/platform/mail/email.ts";
import type { MailOutcome, OutgoingMail } from "../../src/platform/mail/mailer.ts";
import { Sealer } from "../../src/platform/secret/seal.ts";
import { invitePerson } from "../../src/shop/people/person-invite.ts";
import { PersonSignin, SIGNIN_SECTION } from "../../src/shop/portal/person-signin.ts";
import { type FreshStore, openFreshStore, refusalOf } from "../kit/fresh-store.ts";

const OWN = "203.0.113.7";

interface Town extends FreshStore {
  environmentId: number;
  signin: PersonSignin;
  mails: OutgoingMail[];
  /** The mail server's result, and how long it takes. */
  outcome: MailOutcome;
  takesMs: number;
  ask(email: string, source?: string, environmentId?: number): Promise<{ expiresAt: number }>;
  /** Returns the newest code that was emailed to the address. */
  codeOf(email: string): string;
  enter(email: string, code: string, source?: string): ReturnType<PersonSignin["signIn"]>;
  invite(email: string, invitesPerDay?: number): ReturnType<typeof invitePerson>;
  /** Replaces the sign-in as a restart does, without the memory of a process. */
  restart(): void;
}

async function openTown(limits: Partial<RaisableLimits> = {}): Promise<Town> {
  const fresh = await openFreshStore();
  const { store, clock } = fresh;
  const environmentId = (await fresh.environment("development")).id;
  const mails: OutgoingMail[] = [];
  const sealer = new Sealer(new Uint8Array(32).fill(7));
  const place = { appId: "app_test", environmentId, by: "key:key_page" };
  const mailer = {
    async send(mail: OutgoingMail): Promise<MailOutcome> {
      mails.push(mail);
      if (town.takesMs > 0) await clock.advance(town.takesMs);
      return town.outcome;
    },
  };
  const start = () =>
    new PersonSignin({
      store,
      clock,
      sealer,
      mailer,
      local: true,
      limits: { ...DEFAULT_LIMITS, ...limits },
    });
  const town: Town = {
    ...fresh,
    environmentId,
    signin: start(),
    mails,
    outcome: { kind: "mailbox" },
    takesMs: 0,
    ask: (email, source = OWN, environmentId = place.environmentId) => town.signin.requestCode({ ...place, source, environmentId }, email),
    codeOf: (email) => mails.findLast(({ to }) => to === email)?.text.slice(0, 6) ?? "",
    enter: (email, code, source = OWN) => town.signin.signIn({ ...place, source }, { email, code }),
    restart: () => {
      town.signin = start();
    },
    invite: (email, invitesPerDay = 1_000) =>
      store.write("app", (tx) =>
        invitePerson(tx, {
          environmentId,
          email,
          createdBy: "relay:shop",
          nowMs: clock.now(),
          invitesPerDay,
        }),
      ),
  };
  return town;
}

/** Returns `taken`, or the code of the refusal. */
const tried = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => "taken",
    (error: { code?: string }) => String(error.code),
  );

const wrongOf = (codes: readonly string[]): string => {
  for (let n = 0; ; n++) {
    const code = String(n).padStart(6, "0");
    if (!codes.includes(code)) return code;
  }
};

describe("six digits", () => {
  test("are compared at most 80 times an hour for one address, from any number of networks", async () => {
    const town = await openTown();
    const email = "ada@example.com";
    let compared = 0;
    // A round takes ten minutes. The attackers ask for all available codes and then guess from 400 networks, five times each.
    for (let round = 0; round < 6; round++) {
      for (let n = 0; n < 40; n++) await tried(town.ask(email, `10.${round}.0.${n}`));
      const codes = town.mails.map(({ text }) => text.slice(0, 6));
      for (let n = 0; n < 400; n++) {
        for (let guess = 0; guess < 5; guess++) await tried(town.enter(email, wrongOf(codes), `10.${round}.${n >> 7}.${n & 127}`));
      }
      const sql = "SELECT coalesce(sum(wrong_tries + foreign_tries), 0) AS tries FROM person_code WHERE expires_at > ?1";
      compared += (await town.store.read((tx) => tx.get<{ tries: number }>(sql, town.clock.now())))?.tries ?? 0;
      await town.clock.advance(10 * 60_000);
    }
    expect(town.mails).toHaveLength(10);
    expect(compared).toBe(10 * (5 + 3));
    // A guess is right once in a million, so an even chance takes a year.
    const evenAfterHours = Math.log(0.5) / Math.log(1 - compared / 1_000_000);
    expect(Math.round(evenAfterHours / 24)).toBe(361);
  });

  test("are compared at most 800 times an hour in a whole environment", async () => {
    const town = await openTown();
    for (let n = 0; n < 60; n++) await town.invite(`p${n}@example.com`);
    for (let n = 0; n < 600; n++) await tried(town.ask(`p${n % 60}@example.com`, `10.0.${n % 150}.1`));
    expect(town.mails).toHaveLength(100);
    expect(town.mails.length * (5 + 3)).toBe(800);
  });
});

describe("a person signs in", () => {
  test("with the code they asked for, whatever codes strangers request or enter for their address", async () => {
    const town = await openTown();
    const email = "ada@example.com";
    await town.invite(email);
    await town.ask(email);
    const code = town.codeOf(email);
    for (let n = 0; n < 9; n++) await tried(town.ask(email, `198.51.100.${n}`));
    for (let n = 0; n < 200; n++) await tried(town.enter(email, wrongOf([code]), `198.51.100.${n}`));
    expect((await town.enter(email, code)).person.email).toBe(email);
  });

  test("at a known place, even after strangers used up every code of the address and of the hour", async () => {
    const town = await openTown();
    const email = "ada@example.com";
    await town.invite(email);
    await town.ask(email);
    await town.enter(email, town.codeOf(email));
    for (let n = 0; n < 20; n++) await tried(town.ask(email, `198.51.100.${n}`));
    expect(await tried(town.ask(email, "198.51.100.99"))).toBe("code_capped");
    for (let n = 0; n < 300; n++) await tried(town.ask(`nobody${n}@example.com`, `192.0.${n}.1`));
    for (let n = 0; n < 4; n++) await town.ask(email);
    expect((await town.enter(email, town.codeOf(email))).person.email).toBe(email);
  });

  test("for the first time, even after 300 strangers asked for codes to unknown addresses", async () => {
    const town = await openTown();
    const email = "ada@example.com";
    await town.invite(email);
    for (let n = 0; n < 300; n++) await tried(town.ask(`nobody${n}@example.com`, `192.0.${n}.1`));
    await town.ask(email);
    expect((await town.enter(email, town.codeOf(email))).person.email).toBe(email);
  });
});

describe("no network uses up the codes of others", () => {
  const networks: [string, (n: number) => string][] = [
    ["58 code requests from one IPv6 /48", (n) => `2001:db8:1:${(n % 50).toString(16)}::/64`],
    ["58 code requests from one IPv4 /24", (n) => `198.51.100.${n % 40}`],
    ["400 code requests from as many /48 of one IPv6 /32", (n) => `2001:db8:${n.toString(16)}:1::/64`],
    ["400 code requests from three IPv4 /24", (n) => ["192.0.2.1", "198.51.100.1", "203.0.112.1"][n % 3]?.replace(/1$/, String(n % 40)) ?? ""],
    ["400 code requests from nine IPv6 /32", (n) => `2001:${n % 9}:1:${(n % 40).toString(16)}::/64`],
  ];
  const queryAll = async (town: Town, from: (n: number) => string, who: (n: number) => string): Promise<void> => {
    for (let n = 0; n < 400; n++) await tried(town.ask(who(n), from(n)));
  };

  test.each(networks)("after %s for addresses that no person has, a new person of another network signs up", async (_, from) => {
    const town = await openTown();
    await queryAll(town, from, (n) => `nobody${n}@example.com`);
    for (const [n, source] of ["2001:db9:7:1::/64", "203.0.113.7"].entries()) {
      await town.ask(`new${n}@example.com`, source);
      expect((await town.enter(`new${n}@example.com`, town.codeOf(`new${n}@example.com`), source)).person.status).toBe("active");
    }
  });

  test.each(networks)("after %s for people of the app, a person signs in at a new place", async (_, from) => {
    const town = await openTown();
    for (let n = 0; n < 60; n++) await town.invite(`p${n}@example.com`);
    await town.invite("ada@example.com");
    await queryAll(town, from, (n) => `p${n % 60}@example.com`);
    await town.ask("ada@example.com");
    expect((await town.enter("ada@example.com", town.codeOf("ada@example.com"))).person.email).toBe("ada@example.com");
  });

  test("k networks leave a share of 1 / (k + 1) to others", async () => {
    const mailed: number[] = [];
    for (const count of [1, 2, 4, 9]) {
      const town = await openTown();
      for (let n = 0; n < 100 * count; n++) await tried(town.ask(`nobody${n}@example.com`, `198.51.${n % count}.${n % 100}`));
      mailed.push(town.mails.length);
    }
    expect(mailed).toEqual([25, 34, 40, 45]);
  });

  test("the owner learns that one network used its share, and the refused caller learns which limit it was", async () => {
    const town = await openTown({ codesPerHour: 8 });
    for (let n = 0; n < 6; n++) await town.invite(`p${n}@example.com`);
    for (let n = 0; n < 4; n++) await town.ask(`p${n}@example.com`);
    const refusal = await refusalOf(() => town.ask("p4@example.com"));
    expect([refusal.code, refusal.message]).toEqual([
      "code_capped",
      "The network 203.0.113.0/24 has used its part of the 8 sign-in codes an hour of this app, and the other part is for other networks: wait until resetAt.",
    ]);
    const other = await openTown({ strangerCodesPerHour: 4 });
    for (let n = 0; n < 4; n++) await other.ask(`s${n}@example.com`);
    const alerts = await other.store.read((tx) => listAlerts(tx, other.environmentId, { limit: 10, after: null }));
    expect(alerts.items.map(({ message }) => message.split(".")[0])).toEqual([
      "One network used its part of the 4 sign-in codes an hour for unknown addresses",
    ]);
  });
});

describe("strangers use up nothing that the app itself needs", () => {
  test("199 sign-ups leave all of a day's invites to paid events", async () => {
    const town = await openTown({ codesPerHour: 1_000, strangerCodesPerHour: 1_000 });
    for (let n = 0; n < 199; n++) {
      const [email, source] = [`s${n}@example.com`, `192.0.${n}.1`];
      await town.ask(email, source);
      await town.enter(email, town.codeOf(email), source);
    }
    expect((await town.invite("buyer@example.com", 1)).created).toBe(true);
    expect((await refusalOf(() => town.invite("late@example.com", 1))).code).toBe("invite_capped");
  });

  test("400 code requests leave every email of the hour to events, and send 50 emails", async () => {
    const town = await openTown();
    for (let n = 0; n < 400; n++) await tried(town.ask(`s${n}@example.com`, `192.0.${n >> 1}.${n & 1}`));
    expect(town.mails).toHaveLength(50);
    const nowMs = town.clock.now();
    const limits = { emailsPerHour: 1, eventEmailsPerPersonPerDay: 5 };
    const mail = { appId: "app_test", personId: "per_1", kind: "event", nowMs } as const;
    const isRoom = () => town.store.read((tx) => findExceededCap(tx, mail, limits));
    expect(await isRoom()).toBeNull();
    await town.store.write("relay", (tx) =>
      recordIntendedEmail(tx, {
        environmentId: town.environmentId,
        personId: null,
        recipient: "a@example.com",
        sender: "event@example.com",
        kind: "event",
        subject: "",
        text: "",
        relayName: "shop",
        eventId: null,
        nowMs,
      }),
    );
    expect(await isRoom()).toContain("1 mails within an hour");
  });

  test("the owner gets one alert that names the limit", async () => {
    const town = await openTown();
    for (let n = 0; n < 120; n++) await tried(town.ask(`s${n}@example.com`, `192.0.${n}.1`));
    const alerts = await town.store.read((tx) => listAlerts(tx, town.environmentId, { limit: 10, after: null }));
    expect(alerts.items.map(({ code }) => code)).toEqual(["codes_capped"]);
    expect(alerts.items[0]?.message).toContain("RELAY_LIMIT_STRANGER_CODES_PER_HOUR");
  });
});

describe("no response tells a stranger who exists", () => {
  const closings: [string, (town: Town) => Promise<unknown>][] = [
    [
      "where only invited people sign in",
      (town) =>
        town.store.write("app", (tx) =>
          tx.run(
            "UPDATE environment SET settings = ?1 WHERE id = ?2",
            JSON.stringify({ [SIGNIN_SECTION]: { invitedOnly: true } }),
            town.environmentId,
          ),
        ),
    ],
    [
      "once strangers used up their codes of the hour",
      async (town) => {
        for (let n = 0; n < 60; n++) await town.ask(`s${n}@example.com`, `192.0.${n}.1`);
      },
    ],
  ];
  describe.each(closings)("%s", (_, close) => {
    test("a stranger gets the same response after the same time, and no email is sent and no person created", async () => {
      const town = await openTown({ codesPerHour: 1_000 });
      await town.invite("ada@example.com");
      await close(town);
      const count = async (table: string) => (await town.store.read((tx) => tx.all(`SELECT * FROM ${table}`))).length;
      for (const [outcome, expected] of [
        [{ kind: "mailbox" }, "taken"],
        [{ kind: "failed", message: "no", retry: true, reason: "unreachable" }, "code_not_sent"],
      ] as const) {
        // Later sends replace earlier ones, because the service remembers twenty sends.
        const known = await openKnown(town, outcome as MailOutcome);
        const before = [await count("email"), await count("person"), town.mails.length];
        const startMs = town.clock.monotonicMs();
        const asking = tried(town.ask("stranger@example.com", "198.51.100.1"));
        await town.clock.advance(known.tookMs);
        expect([await asking, town.clock.monotonicMs() - startMs]).toEqual([expected, known.tookMs]);
        expect([known.answer, expected]).toEqual([expected, expected]);
        expect([await count("email"), await count("person"), town.mails.length]).toEqual(before);
      }
      expect(await tried(town.enter("stranger@example.com", "000000", "198.51.100.1"))).toBe("code_invalid");
      expect(await count("person_session")).toBe(0);
    });
  });

  const others: [string, (town: Town) => Promise<void>][] = [
    ["after a restart", async (town) => town.restart()],
    [
      "though another environment's mail server is quicker",
      async (town) => {
        const production = await town.environment("production");
        town.takesMs = 10;
        for (let n = 0; n < 20; n++) await town.ask(`o${n}@example.com`, `192.0.${n}.1`, production.id);
      },
    ],
    [
      "though a stranger asked for codes to addresses that are refused",
      async (town) => {
        town.outcome = { kind: "failed", message: "no", retry: false, reason: "recipient_refused" };
        for (let n = 0; n < 20; n++) await tried(town.ask(`r${n}@nowhere.example`, `192.0.${n}.1`));
      },
    ],
  ];
  test.each(others)("neither does the delay of a response, %s", async (_, happens) => {
    const town = await openTown({ codesPerHour: 1_000 });
    const { tookMs } = await openKnown(town, { kind: "mailbox" });
    await happens(town);
    await closings[0]?.[1](town);
    const startMs = town.clock.monotonicMs();
    let answer = "";
    const asking = tried(town.ask("stranger@example.com", "198.51.100.1")).then((code) => {
      answer = code;
    });
    await town.clock.advance(tookMs - 1);
    expect(answer).toBe("");
    await town.clock.advance(1);
    await asking;
    expect([answer, town.clock.monotonicMs() - startMs]).toEqual(["taken", tookMs]);
  });

  /** Sends twenty codes to existing people, with this result after 300 ms each. */
  async function openKnown(town: Town, outcome: MailOutcome): Promise<{ answer: string; tookMs: number }> {
    town.outcome = outcome;
    town.takesMs = 300;
    let answer = "";
    for (let n = 0; n < 20; n++) {
      const email = `known${n}${outcome.kind}@example.com`;
      await town.invite(email);
      answer = await tried(town.ask(email, `203.0.113.${n}`));
    }
    return { answer, tookMs: 300 };
  }

  const fillings: [string, (town: Town, email: string) => Promise<void>][] = [
    [
      "the codes of the environment's hour",
      async (town) => {
        for (let n = 0; n < 10; n++) await town.invite(`p${n}@example.com`);
        for (let n = 0; n < 10; n++) await town.ask(`p${n}@example.com`, `192.0.${n}.1`);
      },
    ],
    [
      "the address's own",
      async (town, email) => {
        for (let n = 0; n < 10; n++) await tried(town.ask(email, `192.0.${n}.1`));
      },
    ],
  ];
  test.each(fillings)("neither does a refusal because %s are used up", async (_, fill) => {
    const answer = async (known: boolean): Promise<string[]> => {
      const town = await openTown({ codesPerHour: 10, strangerCodesPerHour: 3 });
      const email = "ada@example.com";
      if (known) await town.invite(email);
      const first = await tried(town.ask(email));
      await fill(town, email).catch(() => undefined);
      return [first, await tried(town.ask(email))];
    };
    expect([await answer(true), await answer(false)]).toEqual(Array(2).fill(["taken", "code_capped"]));
  });

  test("and a code that was emailed before sign-in was restricted creates no person", async () => {
    const town = await openTown();
    await town.ask("stranger@example.com");
    await closings[0]?.[1](town);
    expect(await tried(town.enter("stranger@example.com", town.codeOf("stranger@example.com")))).toBe("code_invalid");
    expect(await town.store.read((tx) => tx.all("SELECT id FROM person"))).toEqual([]);
  });
});

test("every limit is reset after its hour or day", async () => {
  const town = await openTown({ codesPerHour: 2, strangerCodesPerHour: 1, signupsPerDay: 1 });
  await town.ask("a@example.com");
  await town.enter("a@example.com", town.codeOf("a@example.com"));
  await town.ask("b@example.com", "192.0.2.1");
  expect(town.codeOf("b@example.com")).toBe("");
  await town.invite("k@example.com");
  await town.ask("k@example.com", "192.0.2.3");
  expect(await tried(town.ask("c@example.com", "192.0.2.2"))).toBe("code_capped");
  await town.clock.advance(HOUR_MS);
  await town.ask("b@example.com", "192.0.2.1");
  const code = town.codeOf("b@example.com");
  expect(await tried(town.enter("b@example.com", code, "192.0.2.1"))).toBe("signup_capped");
  await town.clock.advance(DAY_MS);
  await town.ask("b@example.com", "192.0.2.1");
  expect((await town.enter("b@example.com", town.codeOf("b@example.com"), "192.0.2.1")).person.email).toBe("b@example.com");
});
