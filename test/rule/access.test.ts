import { describe, expect, test } from "bun:test";
import { DAY_MS } from "../../src/base/limit.ts";
import { readPageRequest } from "../../src/base/page.ts";
import {
  checkAccess,
  endGrantManually,
  type Grant,
  grantAccess,
  grantManually,
  listGrants,
  listHolders,
  listLiveGrants,
  type ManualGrant,
  revokeAccess,
  revokeGrantsOfSource,
} from "../../src/shop/people/access-grant.ts";
import { deleteAccessSlug, findEntitlement, listAccessSlugs, putAccessSlug, putAccessSlugs } from "../../src/shop/people/entitlement.ts";
import { addHoldings, listPersons } from "../../src/shop/people/person-list.ts";
import { saveProduct } from "../../src/shop/selling/product.ts";
import { dryRun } from "../../src/store/dry-run.ts";
import type { Writer } from "../../src/store/port.ts";
import { refusalOf } from "../kit/fresh-store.ts";
import { openTown } from "../kit/people.ts";

const town = await openTown();
const { store, clock, environmentId, otherEnvironmentId } = town;
await store.write("app", (tx) => putAccessSlug(tx, environmentId, { slug: "members", title: "Members" }, 0));
await town.product("course", { key: "access:members" });
await town.product("lamp");
await town.plan("pro");

const grant = (personId: string, more: Partial<Grant> = {}) =>
  store.write("app", (tx) =>
    grantAccess(tx, {
      environmentId,
      personId,
      entitlement: "access:members",
      source: "hand",
      sourceRef: "key:test",
      relayName: null,
      eventId: null,
      reason: null,
      expiresAtMs: null,
      arrival: 1,
      nowMs: clock.now(),
      ...more,
    }),
  );
const check = (personId: string, entitlement: string | null = "access:members") =>
  store.read((tx) => checkAccess(tx, { environmentId, personId, entitlement, nowMs: clock.now() }));

test("lists the newest of 700 grants of a person in order, with live and ended grants mixed", async () => {
  const personId = (await town.newPerson()).id;
  const made: string[] = [];
  await store.write("app", async (tx) => {
    const given = { sourceRef: null, relayName: null, eventId: null, reason: null, expiresAtMs: null, arrival: 1 } as const;
    for (let at = 0; at < 700; at++) {
      const entitlement = at % 7 === 0 ? "lamp" : "access:members";
      const row = await grantAccess(tx, {
        ...given,
        environmentId,
        personId,
        entitlement,
        source: "hand",
        nowMs: clock.now() + Math.floor(at / 3),
      });
      if (entitlement === "access:members") made.push(row.id);
    }
  });
  const newest = made.reverse().slice(0, 200);
  const held = await check(personId);
  expect([held.granted, held.until]).toEqual([true, null]);
  expect(held.grants.map(({ id }) => id)).toEqual(newest);
});

/** Asks every query about grants whether the person holds the entitlement. */
async function askEverywhere(personId: string, entitlement: string): Promise<boolean[]> {
  const nowMs = clock.now();
  const page = readPageRequest({});
  const hasPerson = ({ items }: { items: readonly { id?: string; person?: string }[] }) =>
    items.some(({ id, person }) => id === personId || person === personId);
  const lists = await store.read(async (tx) => {
    const people = await listPersons(tx, environmentId, page, { access: { granted: true, nowMs } });
    const all = await addHoldings(tx, await listPersons(tx, environmentId, page), nowMs);
    return [
      (await checkAccess(tx, { environmentId, personId, entitlement, nowMs })).granted,
      (await listLiveGrants(tx, { environmentId, personId, entitlement, nowMs })).length > 0,
      (await listGrants(tx, { environmentId, personId, nowMs }, page)).items.some((one) => one.entitlement === entitlement && one.live),
      hasPerson(await listHolders(tx, { environmentId, entitlement, nowMs }, page)),
      hasPerson(people),
      all.items.find(({ id }) => id === personId)?.access.granted === true,
    ];
  });
  const refused = async (work: (tx: Writer) => Promise<unknown>) =>
    ((await dryRun(store, "app", work).catch((error: unknown) => error)) as { code?: string } | null)?.code;
  const change = { environmentId, by: "key:test", nowMs };
  const deleted = await refused((tx) => deleteAccessSlug(tx, environmentId, entitlement.slice("access:".length), nowMs));
  const moved = await refused((tx) => saveProduct(tx, change, "timed", { key: "access:members" }));
  return [...lists, deleted === "in_use", moved === "key_in_use"];
}

describe("an entitlement", () => {
  test.each([
    ["access:members", "access", "access:members"],
    ["course", "product", "access:members"],
    ["lamp", "product", "lamp"],
    ["pro", "plan", "pro"],
  ])("%s is known as %s and held as %s", async (name, kind, key) => {
    const found = await store.read((tx) => findEntitlement(tx, environmentId, name));
    expect([found?.kind, found?.key]).toEqual([kind as "access", key]);
  });

  test.each(["access:nobody", "members", "nothing", "access:", ""])("%j is unknown", async (name) => {
    expect(await store.read((tx) => findEntitlement(tx, environmentId, name))).toBeNull();
  });

  test("is unknown when it belongs to another environment", async () => {
    expect(await store.read((tx) => findEntitlement(tx, otherEnvironmentId, "pro"))).toBeNull();
  });
});

describe("a grant", () => {
  test("is live until its last millisecond and not in the next", async () => {
    const { id } = await town.newPerson();
    await grant(id, { expiresAtMs: clock.now() + DAY_MS });
    clock.jump(DAY_MS - 1);
    const live = await check(id);
    expect([live.granted, live.until, live.grants.length]).toEqual([true, "2026-01-16T12:00:00.000Z", 1]);
    clock.jump(1);
    expect(await check(id)).toEqual({ granted: false, until: null, grants: [] });
  });

  test("is live for every query until its last millisecond, and for none in the next", async () => {
    const person = await town.newPerson();
    const entitlement = "access:timed";
    await store.write("app", (tx) => putAccessSlug(tx, environmentId, { slug: "timed", title: "Timed" }, 0));
    await town.product("timed");
    for (const one of [entitlement, "timed"]) await grant(person.id, { entitlement: one, expiresAtMs: clock.now() + DAY_MS });
    clock.jump(DAY_MS - 1);
    expect(await askEverywhere(person.id, entitlement)).toEqual([true, true, true, true, true, true, true, true]);
    clock.jump(1);
    expect(await askEverywhere(person.id, entitlement)).toEqual([false, false, false, false, false, false, false, false]);
  });

  test("that has ended does not shorten a grant that never expires", async () => {
    const { id } = await town.newPerson();
    await grant(id, { expiresAtMs: clock.now() + 1 });
    await grant(id);
    clock.jump(1);
    expect((await check(id)).granted).toBe(true);
    const page = await store.read((tx) => listPersons(tx, environmentId, readPageRequest({})));
    const people = await store.read((tx) => addHoldings(tx, page, clock.now()));
    expect(people.items.find((one) => one.id === id)?.access).toEqual({ granted: true, until: null });
  });

  const KEYS = ["a1", "a2", "a3", "a4", "a5", "a6", "a7", "a8"];
  test.each<[what: string, grants: Partial<Grant>[], keys: string[], count: number]>([
    ["nothing", [], [], 0],
    ["a key once, however many grants", [{}, {}, { entitlement: "lamp" }], ["access:members", "lamp"], 2],
    ["no key that has ended", [{ expiresAtMs: 1 }, { entitlement: "lamp", expiresAtMs: Date.UTC(2099, 0) }], ["lamp"], 1],
    ["the first six of more keys", KEYS.map((entitlement) => ({ entitlement })), KEYS.slice(0, 6), 8],
  ])("is in the list of people with its keys by name: %s", async (_what, grants, entitlements, count) => {
    const { id } = await town.newPerson();
    for (const given of grants) await grant(id, given);
    const page = await store.read((tx) => listPersons(tx, environmentId, readPageRequest({})));
    const people = await store.read((tx) => addHoldings(tx, page, clock.now()));
    expect(people.items.find((one) => one.id === id)?.holds).toEqual({ plan: null, entitlements, count });
  });

  test("shows its source and all its fields", async () => {
    const { id } = await town.newPerson();
    await grant(id, {
      source: "relay",
      sourceRef: "shop",
      relayName: "shop",
      eventId: "evt_1",
      reason: "Order 7",
    });
    const [shown] = (await check(id)).grants;
    expect(shown).toMatchObject({
      person: id,
      entitlement: "access:members",
      source: "relay",
      sourceRef: "shop",
      relay: "shop",
      eventId: "evt_1",
      reason: "Order 7",
      live: true,
      expiresAt: null,
      revokedAt: null,
    });
  });

  test("shares `until` with the person's other grants: the latest end, or null if one never expires", async () => {
    const { id } = await town.newPerson();
    await grant(id, { expiresAtMs: clock.now() + DAY_MS });
    await grant(id, { expiresAtMs: clock.now() + 3 * DAY_MS });
    expect((await check(id)).until).toBe(new Date(clock.now() + 3 * DAY_MS).toISOString());
    await grant(id);
    expect([(await check(id)).granted, (await check(id)).until]).toEqual([true, null]);
  });

  test("counts only for its own entitlement, and a check without an entitlement returns all live grants", async () => {
    const { id } = await town.newPerson();
    await grant(id);
    await grant(id, { entitlement: "pro" });
    expect((await check(id, "lamp")).granted).toBe(false);
    expect((await check(id, null)).grants.map((row) => row.entitlement).sort()).toEqual(["access:members", "pro"]);
  });
});

describe("revoking", () => {
  const event = { id: "evt_2", arrival: 2, arrivedAtMs: clock.now() };
  const at = () => ({ environmentId, by: "relay:shop", nowMs: clock.now() });

  test("ends every live grant of the entitlement, whatever its source, and no other grant", async () => {
    const { id } = await town.newPerson();
    for (const source of ["relay", "purchase", "plan", "hand"] as const) await grant(id, { source });
    await grant(id, { expiresAtMs: clock.now() - 1 });
    await grant(id, { entitlement: "pro" });
    const { ended } = await store.write("app", (tx) => revokeAccess(tx, { ...at(), event, personId: id, entitlement: "access:members" }));
    expect(ended.map((row) => row.source).sort()).toEqual(["hand", "plan", "purchase", "relay"]);
    expect((await check(id)).granted).toBe(false);
    expect((await check(id, "pro")).granted).toBe(true);
    const all = await store.read((tx) => listGrants(tx, { environmentId, personId: id, nowMs: clock.now() }, readPageRequest({ limit: "3" })));
    expect([all.items.length, all.next === null]).toEqual([3, false]);
  });

  test("of one purchase's grants leaves manual grants and other purchases unchanged", async () => {
    const { id } = await town.newPerson();
    await grant(id);
    await grant(id, { source: "purchase", sourceRef: "prc_1" });
    await grant(id, { source: "purchase", sourceRef: "prc_2" });
    const of = { ...at(), source: "purchase" as const, sourceRef: "prc_1" };
    expect(await store.write("app", (tx) => revokeGrantsOfSource(tx, of))).toBe(1);
    expect((await check(id)).grants.map((row) => row.sourceRef).sort()).toEqual(["key:test", "prc_2"]);
  });

  test("of one grant by id ends it once and keeps the first end", async () => {
    const { id } = await town.newPerson();
    const { id: grantId } = await grant(id);
    const revoke = (by: string) => store.write("app", (tx) => endGrantManually(tx, { environmentId, by, nowMs: clock.now() }, grantId));
    expect((await revoke("key:one")).revokedBy).toBe("key:one");
    expect((await revoke("key:two")).revokedBy).toBe("key:one");
    expect((await check(id)).granted).toBe(false);
  });

  test("of a grant in another environment is refused with not_found", async () => {
    const { id } = await town.newPerson();
    const { id: grantId } = await grant(id);
    const elsewhere = { environmentId: otherEnvironmentId, by: "key:x", nowMs: clock.now() };
    expect((await refusalOf(() => store.write("app", (tx) => endGrantManually(tx, elsewhere, grantId)))).code).toBe("not_found");
    expect((await check(id)).granted).toBe(true);
  });
});

describe("granting by hand", () => {
  const give = (personId: string, more: Partial<ManualGrant> = {}) =>
    store.write("app", (tx) =>
      grantManually(tx, {
        environmentId,
        personId,
        entitlement: "access:members",
        reason: null,
        expiresAtMs: null,
        by: "owner:o@example.com",
        nowMs: clock.now(),
        ...more,
      }),
    );

  test("stores the source hand and who gave it, and a product grants its key", async () => {
    const { id } = await town.newPerson();
    const row = await give(id, { entitlement: "course", reason: "A present" });
    expect([row.source, row.sourceRef, row.entitlement, row.reason]).toEqual(["hand", "owner:o@example.com", "access:members", "A present"]);
    expect((await check(id)).granted).toBe(true);
  });

  const refused: [string, Partial<ManualGrant>, string][] = [
    ["an entitlement that is not in the catalog", { entitlement: "access:none" }, "entitlement_unknown"],
    ["an end in the past", { expiresAtMs: 1 }, "invalid_input"],
    ["a reason of 201 characters", { reason: "x".repeat(201) }, "invalid_input"],
    ["a reason with a control character", { reason: "a\u0000" }, "invalid_input"],
    ["an unknown person", { personId: "per_0" }, "not_found"],
  ];
  test.each(refused)("refuses %s", async (_what, more, code) => {
    const { id } = await town.newPerson();
    expect((await refusalOf(() => give(id, more))).code as string).toBe(code);
    expect((await check(id, null)).granted).toBe(false);
  });

  test("refuses an end at the current time, and accepts one a millisecond later", async () => {
    const { id } = await town.newPerson();
    expect((await refusalOf(() => give(id, { expiresAtMs: clock.now() }))).code).toBe("invalid_input");
    await give(id, { expiresAtMs: clock.now() + 1 });
    expect((await check(id, null)).granted).toBe(true);
  });

  test("refuses a suspended person", async () => {
    const { id } = await town.newPerson({ suspended: true });
    expect((await refusalOf(() => give(id))).code).toBe("person_suspended");
  });
});

describe("the catalog of access slugs", () => {
  const slugs = async () => (await store.read((tx) => listAccessSlugs(tx, otherEnvironmentId))).map((row) => row.slug);
  const put = (entries: { slug: string; title?: string }[], force = false) =>
    store.write("app", (tx) => putAccessSlugs(tx, otherEnvironmentId, entries, clock.now(), { force }));

  test("becomes exactly the list that was saved", async () => {
    await put([{ slug: "beta" }, { slug: "alpha", title: "The alpha" }]);
    expect(await slugs()).toEqual(["alpha", "beta"]);
    await put([{ slug: "beta" }, { slug: "gamma" }]);
    expect(await slugs()).toEqual(["beta", "gamma"]);
  });

  test("keeps a slug that a person holds, unless forced", async () => {
    const { id } = await town.newPerson({ environmentId: otherEnvironmentId });
    await put([{ slug: "held" }]);
    await grant(id, { environmentId: otherEnvironmentId, entitlement: "access:held" });
    expect((await refusalOf(() => put([]))).code).toBe("in_use");
    expect(await slugs()).toEqual(["held"]);
    await put([], true);
    expect(await slugs()).toEqual([]);
  });

  test.each([
    ["a name with capitals", [{ slug: "Beta" }]],
    ["an empty title", [{ slug: "beta", title: "" }]],
    ["a title over two lines", [{ slug: "beta", title: "a\nb" }]],
    ["one slug twice", [{ slug: "beta" }, { slug: "beta" }]],
  ])("refuses %s and changes nothing", async (_what, entries) => {
    const before = await slugs();
    expect((await refusalOf(() => put(entries))).code).toBe("invalid_input");
    expect(await slugs()).toEqual(before);
  });

  test("refuses to delete a slug that does not exist", async () => {
    const work = () => store.write("app", (tx) => deleteAccessSlug(tx, environmentId, "nope", clock.now()));
    expect((await refusalOf(work)).code).toBe("not_found");
  });
});
