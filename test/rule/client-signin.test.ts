/** The rules of signing in with a code sent by email. */
import { describe, expect, test } from "bun:test";
import type { MailFailureCode } from "../../src/base/code/mail-code.ts";
import { DAY_MS, DEFAULT_LIMITS, HOUR_MS, MINUTE_MS, type RaisableLimits } from "../../src/base/limit.ts";
import { listAlerts } from "../../src/platform/audit/alert.ts";
import { listProblems } from "../../src/platform/audit/problem.ts";
import type { MailOutcome, OutgoingMail } from "../../src/platform/mail/mailer.ts";
import { Sealer } from "../../src/platform/secret/seal.ts";
import { findPersonByEmail, updatePerson } from "../../src/shop/people/person.ts";
import { invitePerson } from "../../src/shop/people/person-invite.ts";
import { deleteEndedPersonSessions, endPersonSessions, findPersonSession } from "../../src/shop/portal/person-session.ts";
import { PersonSignin, type SigninContext } from "../../src/shop/portal/person-signin.ts";
import { erase } from "../kit/erasing.ts";
import { openFreshStore, refusalOf } from "../kit/fresh-store.ts";

const { store, clock, environment } = await openFreshStore();
const environmentId = (await environment("development")).id;
const otherId = (await environment("production")).id;

let count = 0;
const newEmail = (): string => `visitor${++count}@example.com`;

interface Door {
  place: SigninContext;
  mails: OutgoingMail[];
  signin: PersonSignin;
  /** Requests a code and returns the code from the mail. */
  code(email: string): Promise<string>;
}

function openDoor(options: { outcome?: MailOutcome; local?: boolean; limits?: Partial<RaisableLimits> } = {}): Door {
  const mails: OutgoingMail[] = [];
  const mailer = {
    async send(mail: OutgoingMail): Promise<MailOutcome> {
      mails.push(mail);
      return options.outcome ?? { kind: "mailbox" };
    },
  };
  const signin = new PersonSignin({
    store,
    clock,
    sealer: new Sealer(new Uint8Array(32).fill(7)),
    mailer,
    local: options.local ?? true,
    limits: { ...DEFAULT_LIMITS, invitesPerDay: 0, signupsPerDay: 1_000_000, ...options.limits },
  });
  const place = { appId: "app_test", environmentId, by: "key:key_page", source: "203.0.113.7" };
  return {
    place,
    mails,
    signin,
    async code(email) {
      await signin.requestCode(place, email);
      return mails.at(-1)?.text.slice(0, 6) ?? "";
    },
  };
}

const wrongOf = (code: string): string => String((Number(code) + 1) % 1_000_000).padStart(6, "0");
const rows = (table: string) => store.read((tx) => tx.all<Record<string, unknown>>(`SELECT * FROM ${table}`));

interface Unsent {
  settings?: string;
  domain?: boolean;
  local?: boolean;
}
const unsent: [string, Unsent, string][] = [
  ["a server has no verified sender domain", { settings: '{"mail":{"smtp":{"host":"h"}}}' }, "no verified sender domain"],
  ["a server has no SMTP server", { domain: true }, "no SMTP server"],
  ["sending mail is turned off in the settings", { settings: '{"mail":{"sends":false}}', local: true }, "turned off in the settings"],
];

/** Stores the mail settings and a verified domain, or removes them. */
async function set({ settings = "{}", domain = false }: Unsent): Promise<void> {
  await store.write("app", async (tx) => {
    await tx.run("UPDATE environment SET settings = ?1 WHERE id = ?2", settings, environmentId);
    await tx.run("DELETE FROM sender_domain");
    if (domain)
      await tx.run(
        `INSERT INTO sender_domain (environment_id, domain, verification_token, verified_at) VALUES (?1, 'example.com', 't', 1)`,
        environmentId,
      );
  });
}

describe("a code", () => {
  test("has six digits, is mailed only to the address, and expires after ten minutes", async () => {
    const door = openDoor();
    const email = newEmail();
    const { expiresAt } = await door.signin.requestCode(door.place, email);
    expect(expiresAt).toBe(clock.now() + 10 * MINUTE_MS);
    expect(door.mails).toHaveLength(1);
    expect(door.mails[0]).toMatchObject({ to: email, from: "account@localhost" });
    expect(door.mails[0]?.text).toMatch(/^\d{6} is your code to sign in to Test\./);
    expect(door.mails[0]?.subject).not.toMatch(/\d/);
  });

  test("signs in once", async () => {
    const door = openDoor();
    const email = newEmail();
    const code = await door.code(email);
    const { person, token } = await door.signin.signIn(door.place, { email, code });
    expect(person).toMatchObject({ email, status: "active", createdBy: "key:key_page" });
    expect(token).toMatch(/^ps_[A-Za-z0-9]{43}$/);
    const again = await refusalOf(() => door.signin.signIn(door.place, { email, code }));
    expect([again.code, again.status]).toEqual(["code_invalid", 401]);
  });

  test("can be typed with spaces, and the address in a different case", async () => {
    const door = openDoor();
    const email = newEmail();
    const code = await door.code(email);
    const typed = { email: ` ${email.toUpperCase()} `, code: ` ${code.slice(0, 3)} ${code.slice(3)}` };
    expect((await door.signin.signIn(door.place, typed)).person.status).toBe("active");
  });

  test("goes to the person's own mailbox, never to one with a similar spelling", async () => {
    const door = openDoor();
    const email = `kim${newEmail()}`;
    await door.signin.signIn(door.place, { email, code: await door.code(email) });
    for (const like of [email.toUpperCase(), email.replace("k", "\u212a")]) {
      const code = await door.code(like);
      expect(door.mails.at(-1)?.to).toBe(email);
      await door.signin.signIn(door.place, { email: like, code });
    }
    const stranger = `\u212a${newEmail()}`;
    await door.code(stranger);
    expect(door.mails.at(-1)?.to).toBe(stranger.replace("\u212a", "K"));
  });

  test("works in its last millisecond and not after ten minutes", async () => {
    const door = openDoor();
    const [early, late] = [newEmail(), newEmail()];
    const codes = [await door.code(early), await door.code(late)];
    await clock.advance(10 * MINUTE_MS - 1);
    await door.signin.signIn(door.place, { email: early, code: codes[0] ?? "" });
    await clock.advance(1);
    const refusal = await refusalOf(() => door.signin.signIn(door.place, { email: late, code: codes[1] ?? "" }));
    expect(refusal.code).toBe("code_invalid");
  });

  test("works at the fifth try, and is invalid after five wrong ones", async () => {
    const door = openDoor();
    for (const wrongTries of [4, 5]) {
      const email = newEmail();
      const code = await door.code(email);
      for (let wrong = 0; wrong < wrongTries; wrong++) {
        const refusal = await refusalOf(() => door.signin.signIn(door.place, { email, code: wrongOf(code) }));
        expect(refusal.code).toBe("code_invalid");
      }
      const last = door.signin.signIn(door.place, { email, code });
      if (wrongTries === 4) expect((await last).person.email).toBe(email);
      else expect((await refusalOf(() => last)).code).toBe("code_invalid");
    }
  });

  test("counts each of many concurrent tries", async () => {
    const door = openDoor();
    const email = newEmail();
    const code = await door.code(email);
    const tries = await Promise.allSettled([
      ...Array.from({ length: 5 }, () => door.signin.signIn(door.place, { email, code: wrongOf(code) })),
      door.signin.signIn(door.place, { email, code }),
    ]);
    expect(tries.map(({ status }) => status)).toEqual(Array(6).fill("rejected"));
  });

  test("stays valid when another is requested with its own tries, and one sign-in ends all codes", async () => {
    const door = openDoor();
    const email = newEmail();
    const codes = [await door.code(email)];
    for (let wrong = 0; wrong < 4; wrong++) await refusalOf(() => door.signin.signIn(door.place, { email, code: wrongOf(codes[0] ?? "") }));
    codes.push(await door.code(email), await door.code(email));
    const signIn = (code: string | undefined) => door.signin.signIn(door.place, { email, code: code ?? "" });
    expect((await signIn(codes[0])).person.email).toBe(email);
    for (const code of codes) expect((await refusalOf(() => signIn(code))).code).toBe("code_invalid");
    expect((await signIn(await door.code(email))).person.email).toBe(email);
  });

  test("allows five wrong tries from the network that asked, and three from all others together", async () => {
    const door = openDoor();
    const email = newEmail();
    const from = (source: string) => ({ ...door.place, source });
    const code = await door.code(email);
    const other = (n: number) => from(`198.51.100.${n}`);
    for (let n = 0; n < 20; n++) await refusalOf(() => door.signin.signIn(other(n), { email, code: wrongOf(code) }));
    expect((await refusalOf(() => door.signin.signIn(other(99), { email, code }))).code).toBe("code_invalid");
    for (let n = 0; n < 4; n++) await refusalOf(() => door.signin.signIn(door.place, { email, code: wrongOf(code) }));
    expect((await door.signin.signIn(door.place, { email, code })).person.email).toBe(email);
    const second = await door.code(email);
    expect((await door.signin.signIn(other(1), { email, code: second })).person.email).toBe(email);
  });

  test("works only in its own environment and for its own address", async () => {
    const door = openDoor();
    const email = newEmail();
    const code = await door.code(email);
    const elsewhere = { ...door.place, environmentId: otherId };
    expect((await refusalOf(() => door.signin.signIn(elsewhere, { email, code }))).code).toBe("code_invalid");
    const other = { email: newEmail(), code };
    expect((await refusalOf(() => door.signin.signIn(door.place, other))).code).toBe("code_invalid");
  });

  test("is not in the store of a server, and is only a keyed digest in that of local development", async () => {
    await store.write("app", (tx) =>
      tx.run(`INSERT INTO sender_domain (environment_id, domain, verification_token, verified_at) VALUES (?1, 'example.com', 't', 1)`, environmentId),
    );
    const smtp = '{"mail":{"smtp":{"host":"localhost"}}}';
    await store.write("app", (tx) => tx.run("UPDATE environment SET settings = ?1 WHERE id = ?2", smtp, environmentId));
    const door = openDoor({ local: false, outcome: { kind: "sent" } });
    const email = newEmail();
    const code = await door.code(email);
    expect(door.mails[0]).toMatchObject({ from: "account@example.com" });
    const [kept] = (await rows("email")).filter(({ recipient }) => recipient === email);
    expect(kept).toMatchObject({ kind: "account", state: "sent" });
    expect(kept?.text).toStartWith("•••••• is your code");
    expect(Bun.inspect([await rows("email"), await rows("person_code")])).not.toContain(`${code} is`);
    const [{ code_digest: digest } = {}] = await rows("person_code");
    const plain = new Bun.CryptoHasher("sha256").update(code).digest("hex");
    expect(Buffer.from(digest as Uint8Array).toString("hex")).not.toBe(plain);
    await store.write("app", async (tx) => {
      await tx.run("DELETE FROM sender_domain");
      await tx.run("UPDATE environment SET settings = '{}'");
    });
  });

  test("that expired is deleted when the next is made", async () => {
    const door = openDoor();
    await door.code(newEmail());
    await clock.advance(10 * MINUTE_MS);
    await door.code(newEmail());
    expect(await rows("person_code")).toHaveLength(1);
  });
});

describe("asking for a code", () => {
  test("gives the same response and writes the same, whether or not the address has a person", async () => {
    const door = openDoor();
    const [known, suspended, unknown] = [newEmail(), newEmail(), newEmail()];
    for (const email of [known, suspended]) {
      const invite = { environmentId, email, createdBy: "key:test", nowMs: clock.now(), invitesPerDay: 1e6 };
      const { person } = await store.write("app", (tx) => invitePerson(tx, invite));
      const at = { environmentId, personId: person.id, nowMs: clock.now() };
      if (email === suspended) await store.write("app", (tx) => updatePerson(tx, at, { status: "suspended" }));
    }
    const answers = [];
    for (const email of [known, suspended, unknown]) {
      const before = [(await rows("person")).length, (await rows("email")).length];
      answers.push(await door.signin.requestCode(door.place, email));
      const after = [(await rows("person")).length, (await rows("email")).length];
      expect(after).toEqual([before[0] ?? 0, (before[1] ?? 0) + 1]);
    }
    expect(new Set(answers.map((answer) => JSON.stringify(answer))).size).toBe(1);
    expect(new Set(door.mails.map(({ text, to }) => text.replace(/^\d{6}/, "").replace(to, ""))).size).toBe(1);
  });

  test("is limited to five an hour for one address from one network, whatever its spelling", async () => {
    const door = openDoor();
    const email = newEmail();
    for (let n = 0; n < 5; n++) await door.signin.requestCode(door.place, n % 2 ? email : email.toUpperCase());
    const ask = () => door.signin.requestCode(door.place, email);
    const refusal = await refusalOf(ask);
    expect([refusal.code, refusal.status]).toEqual(["code_capped", 429]);
    expect(refusal.message).toContain("5 sign-in codes an hour");
    expect(refusal.extra.resetAtMs).toBe(clock.now() + 60 * MINUTE_MS);
    clock.jump(DAY_MS);
    expect((await refusalOf(ask)).code).toBe("code_capped");
    clock.jump(-DAY_MS);
    await clock.advance(60 * MINUTE_MS);
    await ask();
  });

  test("is limited to ten an hour for one address, except from networks where the person has signed in", async () => {
    const door = openDoor();
    const email = newEmail();
    await door.signin.signIn(door.place, { email, code: await door.code(email) });
    const from = (n: number) => ({ ...door.place, source: `10.0.0.${n}` });
    // The code from before the person existed counts too.
    for (let n = 0; n < 9; n++) await door.signin.requestCode(from(n), email);
    const refusal = await refusalOf(() => door.signin.requestCode(from(99), email));
    expect([refusal.code, refusal.message]).toEqual(["code_capped", expect.stringContaining("10 sign-in codes")]);
    const restarted = openDoor();
    expect((await restarted.signin.signIn(door.place, { email, code: await restarted.code(email) })).person.email).toBe(email);
    expect((await door.signin.signIn(door.place, { email, code: await door.code(email) })).person.email).toBe(email);
    await clock.advance(30 * DAY_MS);
    await store.write("app", (tx) => deleteEndedPersonSessions(tx, clock.now()));
    expect((await rows("person_network")).length).toBe(0);
  });

  test("is limited to thirty an hour from one network address, for any number of people", async () => {
    const door = openDoor({ limits: { strangerCodesPerHour: 100 } });
    for (let n = 0; n < 30; n++) await door.signin.requestCode(door.place, newEmail());
    const refusal = await refusalOf(() => door.signin.requestCode(door.place, newEmail()));
    expect(refusal.code).toBe("code_capped");
    expect(refusal.message).toContain("30 sign-in codes an hour");
    await door.signin.requestCode({ ...door.place, source: "203.0.113.8" }, newEmail());
  });

  test("requires an email address", async () => {
    const door = openDoor();
    for (const email of ["", "nobody", "a@b", "a@b.c\nBcc: d@e.f", "ü".repeat(200)]) {
      expect((await refusalOf(() => door.signin.requestCode(door.place, email))).code).toBe("invalid_input");
    }
    expect(door.mails).toHaveLength(0);
  });

  test.each(unsent)("is refused if %s, and writes nothing", async (_, given, words) => {
    await set(given);
    const door = openDoor({ local: given.local ?? false });
    const before = [await rows("email"), await rows("person_code")];
    const refusal = await refusalOf(() => door.signin.requestCode(door.place, newEmail()));
    expect([refusal.code, refusal.status]).toEqual(["code_not_sent", 503]);
    expect(refusal.message).toContain(words);
    expect([await rows("email"), await rows("person_code")]).toEqual(before);
    expect(door.mails).toHaveLength(0);
    await set({});
  });

  test("reports that the mail server refused the mail, and stores its message only on the mail's row", async () => {
    const door = openDoor({
      outcome: {
        kind: "failed",
        reason: "recipient_refused",
        message: "550 no such user here",
        retry: false,
      },
    });
    const email = newEmail();
    const refusal = await refusalOf(() => door.signin.requestCode(door.place, email));
    expect(refusal.code).toBe("code_not_sent");
    expect(refusal.message).not.toContain("550");
    const [row] = (await rows("email")).filter(({ recipient }) => recipient === email);
    expect(row).toMatchObject({ state: "failed", message: "550 no such user here" });
  });
});

describe("codes that cannot be mailed", () => {
  const standing = async () => (await store.read((tx) => listProblems(tx, environmentId, true, { limit: 5, after: null }))).items;
  const alerts = async () => (await store.read((tx) => listAlerts(tx, environmentId, { limit: 5, after: null }, true))).items;
  const failed = (reason: MailFailureCode): MailOutcome => ({ kind: "failed", reason, message: `It is ${reason}.`, retry: true });
  const ask = (door: Door): Promise<unknown> => door.signin.requestCode(door.place, newEmail()).catch(() => undefined);
  const settle = () => ask(openDoor());

  test.each(unsent)("raise one problem and one alert if %s, until a code leaves", async (_, given, words) => {
    // Waits until the burst of the previous row has ended.
    await clock.advance(2 * HOUR_MS);
    await set(given);
    const door = openDoor({ local: given.local ?? false });
    await ask(door);
    await ask(door);
    expect(await standing()).toMatchObject([{ code: "codes_unmailed", target: "signin:codes" }]);
    expect((await standing())[0]?.message).toMatch(new RegExp(`^Sign-in codes cannot be mailed, so new people cannot sign in: .*${words}.*relay `));
    expect(await alerts()).toMatchObject([{ code: "codes_unmailed", count: 1 }]);
    await set({});
    await settle();
    expect([await standing(), await alerts()]).toEqual([[], []]);
  });

  test.each<MailFailureCode>(["auth_refused", "tls_failed", "no_server", "address_refused"])(
    "raise a problem at once if the mail server fails with %s",
    async (reason) => {
      await ask(openDoor({ outcome: failed(reason) }));
      expect(await standing()).toMatchObject([{ code: "codes_unmailed", message: expect.stringContaining(`It is ${reason}.`) }]);
      await settle();
      expect(await standing()).toEqual([]);
    },
  );

  test("raise no problem for one address that its server refuses", async () => {
    await ask(openDoor({ outcome: failed("recipient_refused") }));
    expect(await standing()).toEqual([]);
  });

  const passing: MailFailureCode[] = ["timed_out", "connection_refused", "name_not_found", "sender_refused"];
  test.each(passing)("raise a problem after 15 minutes without a sent mail, if the server can recover: %s", async (reason) => {
    await clock.advance(2 * HOUR_MS);
    const away = openDoor({ outcome: failed(reason) });
    await settle();
    await ask(away);
    await clock.advance(14 * MINUTE_MS);
    await ask(away);
    expect(await standing()).toEqual([]);
    await clock.advance(MINUTE_MS);
    await ask(away);
    expect(await standing()).toMatchObject([{ code: "codes_unmailed" }]);
    await settle();
    await ask(away);
    expect(await standing()).toEqual([]);
    await settle();
  });
});

describe("signing in", () => {
  test("makes an invited person active", async () => {
    const door = openDoor();
    const email = newEmail();
    const invite = { environmentId, email, createdBy: "relay:shop", nowMs: clock.now(), invitesPerDay: 1e6 };
    const { person } = await store.write("app", (tx) => invitePerson(tx, invite));
    const signed = await door.signin.signIn(door.place, { email, code: await door.code(email) });
    expect(signed.person).toMatchObject({ id: person.id, status: "active", createdBy: "relay:shop" });
    const kept = await store.read((tx) => findPersonByEmail(tx, environmentId, email));
    expect(kept?.status).toBe("active");
  });

  test("creates a new person within the daily cap of sign-ups, and a refused code stays valid", async () => {
    const [first, second] = [newEmail(), newEmail()];
    const full = openDoor({ limits: { signupsPerDay: 0 } });
    const code = await full.code(first);
    const refusal = await refusalOf(() => full.signin.signIn(full.place, { email: first, code }));
    expect([refusal.code, refusal.status]).toEqual(["signup_capped", 429]);
    expect(await store.read((tx) => findPersonByEmail(tx, environmentId, first))).toBeNull();
    const open = openDoor();
    expect((await open.signin.signIn(open.place, { email: first, code })).person.email).toBe(first);
    await open.signin.signIn(open.place, { email: second, code: await open.code(second) });
    const known = await full.signin.signIn(full.place, { email: first, code: await full.code(first) });
    expect(known.person.email).toBe(first);
  });

  test("is refused to a suspended person who proved their address, and any other caller gets the refusal of a wrong code", async () => {
    const door = openDoor();
    const email = newEmail();
    const { person } = await door.signin.signIn(door.place, { email, code: await door.code(email) });
    const at = { environmentId, personId: person.id, nowMs: clock.now() };
    await store.write("app", (tx) => updatePerson(tx, at, { status: "suspended" }));
    const code = await door.code(email);
    const wrong = await refusalOf(() => door.signin.signIn(door.place, { email, code: wrongOf(code) }));
    expect(wrong.code).toBe("code_invalid");
    const right = await refusalOf(() => door.signin.signIn(door.place, { email, code }));
    expect([right.code, right.status]).toEqual(["person_suspended", 403]);
    const again = await refusalOf(() => door.signin.signIn(door.place, { email, code }));
    expect(again.code).toBe("code_invalid");
    expect((await rows("person_session")).filter((row) => row.person_id === person.id)).toEqual([]);
  });

  test("is limited to sixty an hour from one network address, right or wrong", async () => {
    const door = openDoor();
    const attempt = (source: string) => refusalOf(() => door.signin.signIn({ ...door.place, source }, { email: "a@example.com", code: "1" }));
    for (let n = 0; n < 60; n++) expect((await attempt("192.0.2.1")).code).toBe("code_invalid");
    const capped = await attempt("192.0.2.1");
    expect([capped.code, capped.extra.resetAtMs]).toEqual(["signin_capped", clock.now() + 60 * MINUTE_MS]);
    expect((await attempt("192.0.2.2")).code).toBe("code_invalid");
  });

  test("assigns the mails of the code to the person, so that an erasure blanks the address in them", async () => {
    const door = openDoor();
    const email = newEmail();
    await door.code(email.toUpperCase());
    const { person } = await door.signin.signIn(door.place, { email, code: await door.code(email) });
    await erase(store, { environmentId, personId: person.id, by: "key:test", nowMs: clock.now() });
    expect(Bun.inspect([await rows("email"), await rows("person_code")]).toLowerCase()).not.toContain(email);
  });
});

describe("a session", () => {
  async function open(): Promise<{ token: string; personId: string }> {
    const door = openDoor();
    const email = newEmail();
    const { token, person } = await door.signin.signIn(door.place, { email, code: await door.code(email) });
    return { token, personId: person.id };
  }
  const find = (token: string, at = environmentId) => store.read((tx) => findPersonSession(tx, at, token, clock.now()));

  test("is found by its token only in its own environment, and stored as a hash", async () => {
    const { token, personId } = await open();
    expect((await find(token))?.personId).toBe(personId);
    expect(await find(token, otherId)).toBeNull();
    for (const wrong of ["", token.slice(3), `${token}x`, `${token.slice(0, -1)}_`]) expect(await find(wrong)).toBeNull();
    expect(Bun.inspect(await rows("person_session"))).not.toContain(token.slice(3));
  });

  test("expires thirty days after it was made, and is then deleted", async () => {
    const { token } = await open();
    await clock.advance(30 * DAY_MS - 1);
    expect(await find(token)).not.toBeNull();
    await clock.advance(1);
    expect(await find(token)).toBeNull();
    await store.write("app", (tx) => deleteEndedPersonSessions(tx, clock.now()));
    expect([await rows("person_session"), await rows("person_code")]).toEqual([[], []]);
  });

  const endings: [string, (personId: string) => Promise<unknown>][] = [
    [
      "when the person is suspended, and does not return when they are active again",
      async (personId) => {
        const at = { environmentId, personId, nowMs: clock.now() };
        await store.write("dashboard", (tx) => updatePerson(tx, at, { status: "suspended" }));
        await store.write("dashboard", (tx) => updatePerson(tx, at, { status: "active" }));
      },
    ],
    ["when the person is erased", (personId) => erase(store, { environmentId, personId, by: "key:test", nowMs: clock.now() })],
    ["when the person signs out everywhere", (personId) => store.write("app", (tx) => endPersonSessions(tx, personId))],
  ];
  test.each(endings)("ends %s", async (_, end) => {
    const ended = await open();
    const other = await open();
    await end(ended.personId);
    expect(await find(ended.token)).toBeNull();
    expect((await rows("person_session")).some((row) => row.person_id === ended.personId)).toBe(false);
    expect(await find(other.token)).not.toBeNull();
  });
});
