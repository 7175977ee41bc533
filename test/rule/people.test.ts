import { describe, expect, test } from "bun:test";
import { DAY_MS } from "../../src/base/limit.ts";
import { readPageRequest } from "../../src/base/page.ts";
import type { PersonKey } from "../../src/base/shape.ts";
import { checkAccess, grantAccess } from "../../src/shop/people/access-grant.ts";
import { addCredits, listCredits } from "../../src/shop/people/credit.ts";
import { findPerson, findPersonByEmail, markSignedIn, parseEmailAddress, updatePerson, viewPerson } from "../../src/shop/people/person.ts";
import { digestAddress } from "../../src/shop/people/person-erase.ts";
import { fileToken, findPersonByToken, listTokens, removeToken, resolvePersonKey } from "../../src/shop/people/person-identifier.ts";
import { invitePerson } from "../../src/shop/people/person-invite.ts";
import { findPersons, listPersons } from "../../src/shop/people/person-list.ts";
import { uploadFile } from "../../src/shop/records/file.ts";
import { writeRecord } from "../../src/shop/records/record.ts";
import { erase, eraseSealer } from "../kit/erasing.ts";
import { refusalOf } from "../kit/fresh-store.ts";
import { openTown } from "../kit/people.ts";

const town = await openTown();
const { store, clock, environmentId, otherEnvironmentId } = town;

const invite = (email: string, options: { at?: number; invitesPerDay?: number } = {}) =>
  store.write("app", (tx) =>
    invitePerson(tx, {
      environmentId: options.at ?? environmentId,
      email,
      createdBy: "relay:shop",
      nowMs: clock.now(),
      invitesPerDay: options.invitesPerDay ?? 100_000,
    }),
  );

describe("an email address", () => {
  const good: [string, string][] = [
    ["ada@example.com", "is a name, one @ and a domain"],
    ["Ada.Lovelace+shop@mail.example.co.uk", "may hold dots, a plus and subdomains"],
    ["o'brien_1@example.com", "may hold an apostrophe and an underscore"],
    ["grüße@exämple.de", "may hold letters beyond ASCII"],
    ["  ada@example.com ", "loses the spaces around it"],
    [`${"a".repeat(64)}@example.com`, "may have 64 characters before the @"],
  ];
  test.each(good)("%p %s", (text) => {
    expect(parseEmailAddress(text)).toBe(text.trim());
  });

  const bad: [string, string][] = [
    ["", "is empty"],
    ["ada", "has no @"],
    ["ada@", "has no domain"],
    ["@example.com", "has no name"],
    ["ada@@example.com", "has two @"],
    ["ada@home", "has a domain without a dot"],
    ["ada@example..com", "has an empty label"],
    ["ada@-example.com", "has a label that begins with a hyphen"],
    ["ada@exa mple.com", "has a space in its domain"],
    ["a da@example.com", "has a space in its name"],
    [".ada@example.com", "begins with a dot"],
    ["a..da@example.com", "has two dots in a row"],
    ["ada@example.com\r\nBcc: eve@example.com", "would inject a header"],
    ["ada\u0000@example.com", "holds a control character"],
    ["Ada <ada@example.com>", "is a display name with an address"],
    ["ada@example.com,eve@example.com", "is two addresses"],
    ['"ada"@example.com', "is quoted"],
    ["ada@[127.0.0.1]", "has an address literal"],
    ["ada\u2028@example.com", "holds a line separator"],
    ["ada\ud800@example.com", "holds half a surrogate pair"],
    [`${"a".repeat(65)}@example.com`, "has 65 characters before the @"],
    [`ada@${"a.".repeat(130)}com`, "is longer than 254 characters"],
  ];
  test.each(bad)("%j is invalid: it %s", (text) => {
    expect(parseEmailAddress(text)).toBeNull();
  });
});

describe("an invite", () => {
  test("creates a person with status invited, stores who did it, and writes an audit row without the address", async () => {
    const { person, created } = await invite("new@example.com");
    expect(created).toBe(true);
    expect(viewPerson(person)).toEqual({
      id: person.id,
      email: "new@example.com",
      status: "invited",
      attributes: {},
      createdBy: "relay:shop",
      createdAt: "2026-01-15T12:00:00.000Z",
      updatedAt: "2026-01-15T12:00:00.000Z",
    });
    const audit = await store.read((tx) =>
      tx.all<{ actor: string; action: string; after: string }>("SELECT actor, action, after FROM audit WHERE target = ?1", `person:${person.id}`),
    );
    expect(audit).toEqual([{ actor: "relay:shop", action: "person.invited", after: '{"status":"invited"}' }]);
  });

  test("of a known address in any case returns the existing person", async () => {
    const first = await invite("Known@Example.com");
    const second = await invite(" kNOWN@example.COM ");
    expect([second.created, second.person.id, second.person.email]).toEqual([false, first.person.id, "Known@Example.com"]);
  });

  test("of a domain in punycode finds the person with the same domain in letters, and the reverse", async () => {
    const first = await invite("Zoe@Bücher.example");
    const again = await invite("zoe@xn--bcher-kva.EXAMPLE");
    expect([again.created, again.person.id, again.person.email]).toEqual([false, first.person.id, "Zoe@Bücher.example"]);
    const other = await invite("zoe@xn--mnchen-3ya.example");
    expect((await invite("zoe@münchen.example")).person.id).toBe(other.person.id);
    expect(digestAddress(eraseSealer, "zoe@münchen.example")).toEqual(digestAddress(eraseSealer, other.person.email));
    expect((await invite("zoe@munchen.example")).created).toBe(true);
  });

  test("of a domain that an earlier version stored in punycode returns the existing person", async () => {
    const old = await invite("old@xn--gre-sna.example");
    await store.write("app", (tx) => tx.run("UPDATE person SET email_key = 'old@xn--gre-sna.example' WHERE id = ?1", old.person.id));
    const again = await invite("old@göre.example");
    expect([again.created, again.person.id]).toEqual([false, old.person.id]);
  });

  test("of the same address in another environment creates another person", async () => {
    const here = await invite("both@example.com");
    const there = await invite("both@example.com", { at: otherEnvironmentId });
    expect([there.created, there.person.id === here.person.id]).toEqual([true, false]);
  });

  test("of an invalid address is refused with invalid_input", async () => {
    expect((await refusalOf(() => invite("nobody"))).code).toBe("invalid_input");
  });

  test("over the cap of the UTC day is refused until midnight UTC, while known people are still found", async () => {
    const other = (email: string) => invite(email, { at: otherEnvironmentId, invitesPerDay: 3 });
    clock.jump(DAY_MS);
    for (const email of ["one@example.com", "two@example.com", "three@example.com"]) await other(email);
    const refusal = await refusalOf(() => other("four@example.com"));
    expect([refusal.code, refusal.status, refusal.extra.resetAtMs]).toEqual(["invite_capped", 429, Date.UTC(2026, 0, 17)]);
    expect(refusal.message).toContain("3 people");
    expect((await other("one@example.com")).created).toBe(false);
    clock.jump(12 * 3_600_000);
    expect((await other("four@example.com")).created).toBe(true);
  });

  test("sent fifty times at once creates one person and counts once", async () => {
    clock.jump(7 * DAY_MS);
    const at = { at: otherEnvironmentId, invitesPerDay: 1 };
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, index) => invite(index % 2 === 0 ? "same@example.com" : "SAME@example.com", at)),
    );
    expect(answers.filter((answer) => answer.created)).toHaveLength(1);
    expect(new Set(answers.map((answer) => answer.person.id)).size).toBe(1);
    expect((await refusalOf(() => invite("next@example.com", at))).code).toBe("invite_capped");
  });
});

describe("the person of an event", () => {
  const resolve = async (key: PersonKey, value: string | null, invitesPerDay = 100_000) => {
    const found = await store.write("relay", (tx) =>
      resolvePersonKey(tx, {
        environmentId,
        key,
        value,
        createdBy: "relay:shop",
        nowMs: clock.now(),
        invitesPerDay,
        event: { seq: 1, createdAt: clock.now() },
        digestAddress: (email) => digestAddress(eraseSealer, email),
      }),
    );
    if (found === "erased") throw new Error("The person was erased.");
    return found;
  };
  const countPersons = async () => (await store.read((tx) => tx.get<{ count: number }>("SELECT count(*) AS count FROM person")))?.count;

  test("is found by id", async () => {
    const person = await town.newPerson();
    expect((await resolve("person_id", person.id))?.id).toBe(person.id);
  });

  test("is found by a store account token", async () => {
    const person = await town.newPerson();
    await store.write("app", (tx) => fileToken(tx, { environmentId, personId: person.id, token: "tok-1", nowMs: clock.now() }));
    expect((await resolve("person_token", "tok-1"))?.id).toBe(person.id);
  });

  test("is created by an unknown address, as an invite would do", async () => {
    const person = await resolve("person_email", "fresh@example.com");
    expect([person?.status, person?.createdBy]).toEqual(["invited", "relay:shop"]);
    expect((await resolve("person_email", "FRESH@example.com"))?.id).toBe(person?.id ?? "");
  });

  test("is found although suspended", async () => {
    const person = await town.newPerson({ suspended: true });
    expect((await resolve("person_id", person.id))?.status).toBe("suspended");
  });

  const nobody: [string, PersonKey, string | null][] = [
    ["an unknown id", "person_id", "per_00000000000000000000000000000000"],
    ["an unknown token", "person_token", "unknown"],
    ["an invalid address", "person_email", "not an address"],
    ["a path that resolved to nothing", "person_email", null],
    ["an empty value", "person_email", "  "],
    ["an address given as an id", "person_id", "ada@example.com"],
  ];
  test.each(nobody)("by %s does not exist and is not created", async (_what, key, value) => {
    const before = await countPersons();
    expect(await resolve(key, value)).toBeNull();
    expect(await countPersons()).toBe(before);
  });

  test("of another environment is not found here", async () => {
    const person = await town.newPerson({ environmentId: otherEnvironmentId });
    expect(await resolve("person_id", person.id)).toBeNull();
  });

  test("by a new address over the cap is refused with invite_capped", async () => {
    expect((await refusalOf(() => resolve("person_email", "late@example.com", 0))).code).toBe("invite_capped");
  });
});

describe("a store account token", () => {
  const file = (personId: string, token: string) => store.write("app", (tx) => fileToken(tx, { environmentId, personId, token, nowMs: clock.now() }));

  test("filed twice for one person is filed once", async () => {
    const person = await town.newPerson();
    const first = await file(person.id, "tok-twice");
    clock.jump(1000);
    expect(await file(person.id, "tok-twice")).toEqual(first);
    expect(await store.read((tx) => listTokens(tx, environmentId, person.id))).toHaveLength(1);
  });

  test("never moves to another person automatically", async () => {
    const [person, other] = [await town.newPerson(), await town.newPerson()];
    await file(person.id, "tok-mine");
    expect((await refusalOf(() => file(other.id, "tok-mine"))).code).toBe("token_taken");
  });

  test.each(["", "a\nb", "x".repeat(201), "half \ud800"])("%j is refused with invalid_input", async (token) => {
    const person = await town.newPerson();
    expect((await refusalOf(() => file(person.id, token))).code).toBe("invalid_input");
  });

  test("that was removed finds no person", async () => {
    const person = await town.newPerson();
    await file(person.id, "tok-gone");
    const filing = { environmentId, personId: person.id, token: "tok-gone" };
    await store.write("app", (tx) => removeToken(tx, filing));
    expect(await store.read((tx) => findPersonByToken(tx, environmentId, "tok-gone"))).toBeNull();
    expect((await refusalOf(() => store.write("app", (tx) => removeToken(tx, filing)))).code).toBe("not_found");
  });
});

describe("changing a person", () => {
  const change = (personId: string, given: Parameters<typeof updatePerson>[2]) =>
    store.write("app", (tx) => updatePerson(tx, { environmentId, personId, nowMs: clock.now() }, given));

  test("suspends and activates, and returns before and after", async () => {
    const person = await town.newPerson();
    const { before, after } = await change(person.id, { status: "suspended" });
    expect([before.status, after.status]).toEqual(["invited", "suspended"]);
    expect((await change(person.id, { status: "active" })).after.status).toBe("active");
  });

  test("sets the given attributes, removes those given null, and keeps the others with every digit", async () => {
    const person = await town.newPerson();
    await change(person.id, { attributes: { name: "Ada", plan: 1, big: 9007199254740993n } });
    const { after } = await change(person.id, { attributes: { plan: null, city: "London" } });
    expect(viewPerson(after).attributes).toEqual({ name: "Ada", big: 9007199254740993n, city: "London" });
  });

  test.each([
    ["a list", []],
    ["a control character", { name: "a\u0007" }],
    ["more than 16 KB", { name: "x".repeat(20_000) }],
    ["a control character deep inside", { a: [{ b: "\u0000" }] }],
  ])("refuses attributes that are %s", async (_what, attributes) => {
    const person = await town.newPerson();
    expect((await refusalOf(() => change(person.id, { attributes }))).code).toBe("invalid_input");
  });

  test("activates an invited person at the first sign-in, but never a suspended one", async () => {
    const [invited, suspended] = [await town.newPerson(), await town.newPerson({ suspended: true })];
    for (const { id } of [invited, suspended]) {
      await store.write("app", (tx) => markSignedIn(tx, { environmentId, personId: id, nowMs: clock.now() }));
    }
    const statusOf = async (id: string) => (await store.read((tx) => findPerson(tx, environmentId, id)))?.status;
    expect([await statusOf(invited.id), await statusOf(suspended.id)]).toEqual(["active", "suspended"]);
  });

  test("of another environment is refused with not_found", async () => {
    const person = await town.newPerson({ environmentId: otherEnvironmentId });
    expect((await refusalOf(() => change(person.id, { status: "suspended" }))).code).toBe("not_found");
  });
});

describe("the list of people", () => {
  test("is paged newest first, lists each person once, and searches by part of the address", async () => {
    for (let index = 0; index < 5; index++) await invite(`Paged.${index}@list.example.com`);
    const seen: string[] = [];
    let cursor: string | undefined;
    do {
      const request = readPageRequest({ limit: "2", cursor });
      const page = await store.read((tx) => listPersons(tx, environmentId, request, { q: "@LIST.example" }));
      seen.push(...page.items.map((item) => item.email));
      cursor = page.next ?? undefined;
    } while (cursor !== undefined);
    expect(seen).toEqual([4, 3, 2, 1, 0].map((index) => `Paged.${index}@list.example.com`));
  });

  test("finds part of a domain in either spelling, and shows the given spelling", async () => {
    const { person } = await invite("kim@XN--bcher-kva.list.example");
    for (const q of ["xn--bcher", "kim@xn--bch", "BÜCHER.list"]) {
      const page = await store.read((tx) => listPersons(tx, environmentId, readPageRequest({}), { q }));
      expect(page.items.map(({ id }) => id)).toEqual([person.id]);
    }
    const other = await invite("kim@list.example");
    const found = async (text: string) => {
      const page = await store.read((tx) => findPersons(tx, environmentId, { limit: 10, after: null }, text));
      return page.items.map(({ id }) => id);
    };
    for (const text of ["kim@xn--b", "KIM@xn--bcher-kva.li", "kim@bü"]) expect(await found(text)).toEqual([person.id]);
    expect(await found("kim@xn--z")).toEqual([]);
    expect(await found("kim@")).toEqual([person.id, other.person.id].toSorted());
  });

  test("filters by status and by the beginning of an id, and takes % literally", async () => {
    const person = await town.newPerson({ suspended: true });
    const list = async (filter: Parameters<typeof listPersons>[3]) =>
      (await store.read((tx) => listPersons(tx, environmentId, readPageRequest({ limit: "200" }), filter))).items.map((item) => item.id);
    expect(await list({ status: "suspended" })).toContain(person.id);
    expect(await list({ q: person.id })).toEqual([person.id]);
    expect(await list({ q: "%" })).toEqual([]);
  });
});

describe("erasing a person", () => {
  const sql = <Row>(text: string, ...values: string[]) => store.read((tx) => tx.all<Row>(text, ...values));

  test("removes personal data and keeps the records of money under the id", async () => {
    const [person, friend] = [await town.newPerson(), await town.newPerson()];
    await town.newCollection("diary", "private", { text: "text", scan: "file" });
    await town.newCollection("notices", "addressed", { text: "text" });
    await town.newCollection("letters", "direct", { text: "text", scan: "file" });
    const nowMs = clock.now();
    const of = { environmentId, personId: person.id };
    await store.write("app", async (tx) => {
      const upload = async (name: string) => (await uploadFile(tx, { environmentId, name, mediaType: null, content: new Uint8Array(3), nowMs })).id;
      const [mine, shared] = [await upload("mine"), await upload("shared")];
      const write = (collection: string, ownerId: string | null, recipientId: string | null, data: object) =>
        writeRecord(tx, {
          environmentId,
          collection,
          ownerId,
          recipientId,
          data: { ...data },
          by: "key:test",
          nowMs,
        });
      await write("diary", person.id, null, { text: "dear diary", scan: mine });
      await write("diary", person.id, null, { text: "and this", scan: shared });
      await write("notices", null, person.id, { text: "your order" });
      await write("letters", person.id, friend.id, { text: "from them" });
      await write("letters", friend.id, person.id, { text: "to them", scan: shared });
      await write("diary", friend.id, null, { text: "of a friend" });
      await fileToken(tx, { ...of, token: "tok-erase", nowMs });
      await updatePerson(tx, { ...of, nowMs }, { attributes: { name: "Ada" } });
      await grantAccess(tx, {
        ...of,
        entitlement: "access:members",
        source: "hand",
        sourceRef: "key:test",
        relayName: null,
        eventId: null,
        reason: null,
        expiresAtMs: null,
        arrival: 0,
        nowMs,
      });
      await addCredits(tx, {
        ...of,
        amount: 7,
        reason: "gift",
        source: "hand",
        relayName: null,
        eventId: null,
        onceKey: null,
        nowMs,
      });
      await tx.run(
        `INSERT INTO subscription (id, environment_id, person_id, plan, status, billed_by, started_at)
         VALUES ('sub_erase', ?1, ?2, 'pro', 'active', 'relay', 0)`,
        environmentId,
        person.id,
      );
      await tx.run(
        "INSERT INTO person_customer (environment_id, space, customer_id, person_id, arrival, created_at) VALUES (?1, 'stripe', 'cus_erase', ?2, 0, 0)",
        environmentId,
        person.id,
      );
      await tx.run(
        `INSERT INTO email (id, environment_id, person_id, recipient, sender, kind, subject, text, state, created_at)
         VALUES ('eml_erase', ?1, ?2, ?3, 'a@b.example', 'event', 'Hello Ada', 'Dear Ada', 'sent', 0)`,
        environmentId,
        person.id,
        person.email,
      );
    });

    const count = await erase(store, { ...of, by: "owner:o@example.com", nowMs });
    expect(count).toEqual({ records: 4, grants: 1, subscriptions: 1, tokens: 1, customers: 1, mails: 1 });

    expect(await store.read((tx) => findPerson(tx, environmentId, person.id))).toBeNull();
    expect(await store.read((tx) => findPersonByEmail(tx, environmentId, person.email))).toBeNull();
    expect(await store.read((tx) => findPersonByToken(tx, environmentId, "tok-erase"))).toBeNull();
    expect(await sql("SELECT email, email_key, status, attributes FROM person WHERE id = ?1", person.id)).toEqual([
      { email: null, email_key: null, status: "erased", attributes: "{}" },
    ]);
    const left = await sql<{ data: string }>(
      "SELECT data FROM record WHERE owner_id IN (?1, ?2) OR recipient_id IN (?1, ?2) ORDER BY seq",
      person.id,
      friend.id,
    );
    expect(left.map((row) => JSON.parse(row.data).text)).toEqual(["to them", "of a friend"]);
    const held = { ...of, entitlement: null, nowMs };
    expect((await store.read((tx) => checkAccess(tx, held))).granted).toBe(false);
    const ledger = await store.read((tx) => listCredits(tx, of, readPageRequest({})));
    expect([ledger.balance, ledger.items.length]).toEqual([7, 1]);
    expect(await sql("SELECT status FROM subscription WHERE id = 'sub_erase'")).toEqual([{ status: "ended" }]);
    expect(await sql("SELECT recipient, subject, text FROM email WHERE id = 'eml_erase'")).toEqual([{ recipient: "erased", subject: "", text: "" }]);
    const everything = JSON.stringify([await sql("SELECT * FROM audit"), await sql("SELECT * FROM person")]);
    expect(everything).not.toContain(person.email);
  });

  test("frees the address for a new person, and is refused the second time", async () => {
    const person = await town.newPerson();
    const eraseThem = () => erase(store, { environmentId, personId: person.id, by: "key:test", nowMs: clock.now() });
    await eraseThem();
    expect((await refusalOf(eraseThem)).code).toBe("not_found");
    const again = await invite(person.email);
    expect([again.created, again.person.id === person.id]).toEqual([true, false]);
  });
});
