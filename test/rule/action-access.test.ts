import { describe, expect, test } from "bun:test";
import { checkShape } from "../../src/base/check-shape.ts";
import { numberedId } from "../../src/base/id.ts";
import type { JsonObject } from "../../src/base/json.ts";
import { DAY_MS } from "../../src/base/limit.ts";
import { readPageRequest } from "../../src/base/page.ts";
import { type GrantAccess, grantAccess, type RevokeAccess, revokeAccess } from "../../src/rules/action/access.ts";
import { checkAccess, grantManually, listGrants } from "../../src/shop/people/access-grant.ts";
import { deleteSpentRevocations, isGrantedBefore } from "../../src/shop/people/access-order.ts";
import { putAccessSlug } from "../../src/shop/people/entitlement.ts";
import type { PersonRow } from "../../src/shop/people/person.ts";
import { erase } from "../kit/erasing.ts";
import { openTown } from "../kit/people.ts";

const town = await openTown();
const { store, clock, environmentId } = town;
await store.write("app", (tx) => putAccessSlug(tx, environmentId, { slug: "members" }, 0));
await town.product("course", { key: "access:members" });
await town.plan("pro");

const MEMBERS = "access:members";
const grant = (person: PersonRow | null, action: Omit<GrantAccess, "type">, payload: JsonObject = {}) =>
  town.act(grantAccess, { type: "grant_access", ...action }, person, payload);
const revoke = (person: PersonRow | null, entitlement: string) => town.act(revokeAccess, { type: "revoke_access", entitlement }, person);
const access = (person: PersonRow, entitlement: string | null = MEMBERS) =>
  store.read((tx) => checkAccess(tx, { environmentId, personId: person.id, entitlement, nowMs: clock.now() }));
const iso = (ms: number) => new Date(ms).toISOString();

describe("grant_access", () => {
  test("gives a grant of source relay with the relay and the event, and reports access before and after", async () => {
    const person = await town.newPerson();
    const outcome = await grant(person, { entitlement: MEMBERS, reason: "Order {{mapped.id}}" }, { mapped: { id: 7 } });
    const held = await access(person);
    expect(held.grants).toHaveLength(1);
    expect(held.grants[0]).toMatchObject({
      source: "relay",
      sourceRef: "shop",
      relay: "shop",
      eventId: "evt_test",
      reason: "Order 7",
      expiresAt: null,
    });
    expect(outcome).toEqual({
      outcome: "done",
      before: { entitlement: MEMBERS, granted: false, until: null },
      after: { entitlement: MEMBERS, granted: true, until: null, grant: held.grants[0]?.id ?? "" },
    });
  });

  const ends: [string, number][] = [
    ["12h", DAY_MS / 2],
    ["30d", 30 * DAY_MS],
    ["2w", 14 * DAY_MS],
    ["2026-02-01", Date.UTC(2026, 1, 1) - clock.now()],
    ["2026-02-01T10:00:00+02:00", Date.UTC(2026, 1, 1, 8) - clock.now()],
  ];
  test.each(ends)("with expiresAt %s ends at that offset from the time it runs", async (expiresAt, lengthMs) => {
    const person = await town.newPerson();
    await grant(person, { entitlement: "pro", expiresAt });
    expect((await access(person, "pro")).until).toBe(iso(clock.now() + lengthMs));
  });

  test("never shortens access that the person already has", async () => {
    const person = await town.newPerson();
    await grant(person, { entitlement: MEMBERS });
    const outcome = await grant(person, { entitlement: MEMBERS, expiresAt: "1h" });
    expect(outcome).toMatchObject({
      before: { granted: true, until: null },
      after: { granted: true, until: null },
    });
    expect((await access(person)).grants).toHaveLength(2);
  });

  test("of a product gives the product's key", async () => {
    const person = await town.newPerson();
    await grant(person, { entitlement: "course" });
    expect((await access(person)).granted).toBe(true);
  });

  const reasons: [string, string, string | null][] = [
    ["is cut at 200 characters", "x".repeat(300), "x".repeat(200)],
    ["is not cut inside a character", `${"x".repeat(199)}👩‍🚀tail`, "x".repeat(199)],
    ["keeps a character of two code units whole", `${"x".repeat(199)}😀😀`, `${"x".repeat(199)}😀`],
    ["is one line", "a\r\nb\u0000c", "a b c"],
    ["has no half surrogate pairs", "a\ud800", "a\ufffd"],
    ["that renders empty becomes null", "  ", null],
  ];
  test.each(reasons)("its reason %s", async (_what, text, shown) => {
    const person = await town.newPerson();
    await grant(person, { entitlement: MEMBERS, reason: "{{mapped.x}}" }, { mapped: { x: text } });
    expect((await access(person)).grants[0]?.reason).toBe(shown);
  });

  const failures: [string, Omit<GrantAccess, "type">, string][] = [
    ["an unknown slug", { entitlement: "access:none" }, "entitlement_unknown"],
    ["an unknown name", { entitlement: "none" }, "entitlement_unknown"],
    ["a date in the past", { entitlement: "pro", expiresAt: "2026-01-15" }, "data_invalid"],
    ["the very moment at which it runs", { entitlement: "pro", expiresAt: "2026-01-15T12:00:00Z" }, "data_invalid"],
  ];
  test.each(failures)("of %s fails finally and gives nothing", async (_what, action, code) => {
    const person = await town.newPerson();
    expect(await grant(person, action)).toMatchObject({ outcome: "failed", code, final: true });
    expect((await access(person, null)).granted).toBe(false);
  });

  test("for a suspended person fails finally with person_suspended", async () => {
    const person = await town.newPerson({ suspended: true });
    expect(await grant(person, { entitlement: MEMBERS })).toMatchObject({
      code: "person_suspended",
      final: true,
    });
  });

  test("for a person erased since the event fails with person_not_found and gives nothing", async () => {
    const person = await town.newPerson();
    const erasure = { environmentId, personId: person.id, by: "key:x", nowMs: clock.now() };
    await erase(store, erasure);
    expect(await grant(person, { entitlement: MEMBERS })).toMatchObject({
      code: "person_not_found",
      final: false,
    });
    const at = { environmentId, personId: person.id, nowMs: clock.now() };
    expect((await store.read((tx) => listGrants(tx, at, readPageRequest({})))).items).toEqual([]);
  });
});

describe("revoke_access", () => {
  test("ends every live grant of the entitlement, also manual ones, in the relay's name", async () => {
    const person = await town.newPerson();
    await grant(person, { entitlement: MEMBERS });
    await grant(person, { entitlement: "pro" });
    const hand = {
      environmentId,
      personId: person.id,
      entitlement: MEMBERS,
      reason: null,
      expiresAtMs: null,
    };
    await store.write("app", (tx) => grantManually(tx, { ...hand, by: "key:x", nowMs: clock.now() }));
    const outcome = await revoke(person, MEMBERS);
    expect(outcome).toMatchObject({
      outcome: "done",
      before: { granted: true },
      after: { granted: false, revoked: 2 },
    });
    expect([(await access(person)).granted, (await access(person, "pro")).granted]).toEqual([false, true]);
    const at = { environmentId, personId: person.id, nowMs: clock.now() };
    const all = await store.read((tx) => listGrants(tx, at, readPageRequest({})));
    expect(all.items.map((item) => item.revokedBy).sort()).toEqual([null, "relay:shop", "relay:shop"].sort());
  });

  test("of an entitlement that the person does not hold succeeds and says so", async () => {
    const outcome = await revoke(await town.newPerson(), "pro");
    expect(outcome).toMatchObject({
      outcome: "done",
      before: { granted: false, grants: [] },
      after: { revoked: 0 },
    });
    expect(outcome.outcome === "done" ? outcome.message : "").toContain("nothing changed");
  });

  test("with a product's name ends the grants of the product's key", async () => {
    const person = await town.newPerson();
    await grant(person, { entitlement: MEMBERS });
    await revoke(person, "course");
    expect((await access(person)).granted).toBe(false);
  });

  test("of an unknown entitlement fails finally", async () => {
    const outcome = await revoke(await town.newPerson(), "access:none");
    expect(outcome).toMatchObject({ outcome: "failed", code: "entitlement_unknown", final: true });
  });

  test("for a suspended person fails finally with person_suspended", async () => {
    const outcome = await revoke(await town.newPerson({ suspended: true }), MEMBERS);
    expect(outcome).toMatchObject({ outcome: "failed", code: "person_suspended", final: true });
  });
});

/** Runs the action of an event with this arrival number, at any time. */
const giveAs = (person: PersonRow, arrival: number) =>
  store.write("relay", (tx) =>
    grantAccess.bind({ type: "grant_access", entitlement: MEMBERS })(tx, town.makeRun(person, { arrival, event: `evt_${arrival}`, relay: "paid" })),
  );
const takeAs = (person: PersonRow, arrival: number) =>
  store.write("relay", (tx) =>
    revokeAccess.bind({ type: "revoke_access", entitlement: MEMBERS })(
      tx,
      town.makeRun(person, { arrival, event: `evt_${arrival}`, relay: "canceled" }),
    ),
  );
const grantsOf = async (person: PersonRow) => {
  const at = { environmentId, personId: person.id, nowMs: clock.now() };
  return (await store.read((tx) => listGrants(tx, at, readPageRequest({})))).items;
};

describe("the order of arrival", () => {
  test("ends a late grant at once and names the revocation's event when its own event arrived first", async () => {
    const person = await town.newPerson();
    expect(await takeAs(person, 9_020)).toMatchObject({ outcome: "done", after: { granted: false, revoked: 0 } });
    const late = await giveAs(person, 9_010);
    expect(late).toMatchObject({
      outcome: "done",
      message: expect.stringContaining("evt_9020"),
      after: { granted: false, endedByEvent: "evt_9020" },
    });
    expect((await grantsOf(person)).map(({ live, revokedBy, eventId }) => [live, revokedBy, eventId])).toEqual([
      [false, "relay:canceled", "evt_9010"],
    ]);
    expect(await giveAs(person, 9_030)).toMatchObject({ outcome: "done", after: { granted: true } });
  });

  test("keeps a grant that arrived after the revocation, and says so", async () => {
    const person = await town.newPerson();
    await giveAs(person, 9_110);
    await giveAs(person, 9_130);
    const outcome = await takeAs(person, 9_120);
    expect(outcome).toMatchObject({
      outcome: "done",
      message: expect.stringContaining("1 ended, and the person keeps 1 grant that came after this event arrived"),
      before: { granted: true },
      after: { granted: true, revoked: 1, kept: [expect.any(String)] },
    });
    expect((await grantsOf(person)).filter(({ live }) => live).map(({ eventId }) => eventId)).toEqual(["evt_9130"]);
  });

  test("ends a grant from an earlier action of the same event, but not one from a later action", async () => {
    const person = await town.newPerson();
    await giveAs(person, 9_210);
    await takeAs(person, 9_210);
    expect((await access(person)).granted).toBe(false);
    await giveAs(person, 9_210);
    expect((await access(person)).granted).toBe(true);
  });

  test("orders a manual grant after the newest event at the time it was made", async () => {
    const person = await town.newPerson();
    const hand = { environmentId, personId: person.id, entitlement: MEMBERS, reason: null, expiresAtMs: null, by: "key:x", nowMs: clock.now() };
    const [before] = await store.read((tx) => tx.all<{ seq: number }>("SELECT seq FROM event_last"));
    await store.write("app", (tx) => tx.run("UPDATE event_last SET seq = 9305"));
    await store.write("app", (tx) => grantManually(tx, hand));
    expect(await takeAs(person, 9_305)).toMatchObject({ after: { granted: true, revoked: 0 } });
    expect(await takeAs(person, 9_306)).toMatchObject({ after: { granted: false, revoked: 1 } });
    await store.write("app", (tx) => tx.run("UPDATE event_last SET seq = ?1", before?.seq ?? 0));
  });

  test("orders a grant without an arrival number by its event's id or by its time", async () => {
    const arrivedAtMs = clock.now();
    const event = { id: "evt_x", arrival: 50, arrivedAtMs };
    const given = { arrival: null, eventId: null, grantedAt: arrivedAtMs };
    const former = "evt_0199b7a1f3c07d3e8a5b6c7d8e9f0a1c";
    const cases: [grant: Parameters<typeof isGrantedBefore>[0], before: boolean][] = [
      [{ ...given, eventId: numberedId("evt", arrivedAtMs + 9, 49) }, true],
      [{ ...given, eventId: numberedId("evt", arrivedAtMs - 9, 51) }, false],
      [{ ...given, eventId: former, grantedAt: arrivedAtMs - 1 }, true],
      [{ ...given, eventId: former }, false],
      [{ ...given, grantedAt: arrivedAtMs - 1 }, true],
      [given, false],
    ];
    expect(cases.map(([grant]) => isGrantedBefore(grant, event))).toEqual(cases.map(([, before]) => before));
  });

  test("deletes a revocation marker when no earlier event can still run", async () => {
    const person = await town.newPerson();
    await takeAs(person, 9_420);
    await store.write("app", async (tx) => {
      while (await deleteSpentRevocations(tx));
    });
    const sql = "SELECT count(*) AS count FROM access_revocation";
    expect(await store.read((tx) => tx.get<{ count: number }>(sql))).toEqual({ count: 0 });
  });
});

describe("in a definition", () => {
  const checkGrant = (action: unknown) => {
    const problems = checkShape(grantAccess.shape, action);
    return problems.length > 0 ? problems : grantAccess.check(action as GrantAccess);
  };
  const checkRevoke = (action: unknown) => checkShape(revokeAccess.shape, action);

  test.each(grantAccess.examples.map((example) => [example]))("%j is valid", (example) => {
    expect(checkGrant(example)).toEqual([]);
  });
  test.each(revokeAccess.examples.map((example) => [example]))("%j is valid", (example) => {
    expect(checkRevoke(example)).toEqual([]);
  });

  const bad: [string, JsonObject, string][] = [
    ["no entitlement", {}, "entitlement"],
    ["a template as entitlement", { entitlement: "access:{{mapped.x}}" }, "entitlement"],
    ["an entitlement with capitals", { entitlement: "Pro" }, "entitlement"],
    ["a duration in months", { entitlement: "pro", expiresAt: "3m" }, "expiresAt"],
    ["a duration of zero", { entitlement: "pro", expiresAt: "0d" }, "expiresAt"],
    ["a date that does not exist", { entitlement: "pro", expiresAt: "2026-02-30" }, "expiresAt"],
    ["a template as expiresAt", { entitlement: "pro", expiresAt: "{{mapped.x}}" }, "expiresAt"],
    ["a reason of 201 characters", { entitlement: "pro", reason: "x".repeat(201) }, "reason"],
    ["an expression in its reason", { entitlement: "pro", reason: "{{mapped.a + mapped.b}}" }, "reason"],
    ["an unknown name", { entitlement: "pro", until: "30d" }, "until"],
  ];
  test.each(bad)("grant_access with %s is refused at the field", (_what, fields, field) => {
    expect(checkGrant({ type: "grant_access", ...fields }).map((problem) => problem.field)).toEqual([field]);
  });

  test("both require a person, name their entitlement, and say whether they give or take", () => {
    const given: GrantAccess = { type: "grant_access", entitlement: "pro" };
    const taken: RevokeAccess = { type: "revoke_access", entitlement: "pro" };
    expect([grantAccess.needsPerson(given), revokeAccess.needsPerson(taken)]).toEqual([true, true]);
    expect([grantAccess.effect, revokeAccess.effect]).toEqual(["gives", "takes"]);
    expect([grantAccess.target(given), revokeAccess.target(taken)]).toEqual(["pro", "pro"]);
    const reference = { kind: "entitlement" as const, name: "pro", field: "entitlement" };
    expect([grantAccess.references(given), revokeAccess.references(taken)]).toEqual([[reference], [reference]]);
  });
});
