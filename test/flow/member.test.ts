/** Members and their roles: what each sees, and what happens when a role changes while a session or a stream is open. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { Membership } from "../../src/platform/account/permission.ts";
import { SERVER_SCOPE } from "../../src/platform/audit/audit.ts";
import { type ApiServer, type Call, changesBetween, startApi } from "../kit/api-server.ts";
import { until } from "../kit/event-flow.ts";
import { addMember, makeRole as role } from "../kit/member.ts";
import { receiverDefinition } from "../kit/relay-definition.ts";

let api: ApiServer;
beforeEach(async () => {
  api = await startApi();
});
afterEach(async () => {
  await api[Symbol.asyncDispose]();
});

interface Person {
  id: string;
  cookie: string;
  call(path: string, call?: Call): ReturnType<ApiServer["call"]>;
}

async function addPerson(name: string, memberships: readonly Membership[]): Promise<Person> {
  const { id, token } = await api.store.write("dashboard", (tx) => addMember(tx, name, { nowMs: api.clock.now(), memberships }));
  const cookie = `relay_session=${token}`;
  return { id, cookie, call: (path, call = {}) => api.call(path, { ...call, headers: { cookie, origin: api.base, ...call.headers } }) };
}

const put = (path: string, memberships: object[]) => api.call(path, { method: "PUT", session: true, body: { memberships } });
const audited = () =>
  api.store.read((tx) =>
    tx.all<{ action: string; target: string }>("SELECT action, target FROM audit WHERE environment_id = ?1 ORDER BY seq", SERVER_SCOPE),
  );

describe("a member", () => {
  test("sees only their apps and environments", async () => {
    const kim = await addPerson("kim", [role("support", "shop", "production"), role("viewer", "rival")]);
    const { json } = await kim.call("/api/session");
    expect(json.apps.map(({ id, environments }: { id: string; environments: string[] }) => [id, environments])).toEqual([
      ["rival", ["development", "production"]],
      ["shop", ["production"]],
    ]);
    expect(json.may).toEqual([]);
    expect(json.apps[1].may.production).toEqual(["read", "act_on_people", "replay"]);
    expect((await kim.call("/api/overview")).json.places.map(({ app, environment }: Record<string, string>) => `${app}/${environment}`)).toEqual([
      "rival/development",
      "rival/production",
      "shop/production",
    ]);
    const lee = await addPerson("lee", [role("viewer", "rival")]);
    expect((await lee.call("/api/apps")).json.items.map(({ id }: { id: string }) => id)).toEqual(["rival"]);
    const login = await lee.call("/api/apps/shop/contents");
    expect([login.status, login.json.code]).toEqual([404, "not_found"]);
  });

  test("of one app who owns it renames it, but manages no other app and no server", async () => {
    const kim = await addPerson("kim", [role("owner", "shop")]);
    const rename = (app: string) => kim.call(`/api/apps/${app}`, { method: "PATCH", body: { name: "New" } });
    expect([(await rename("shop")).status, (await rename("rival")).status]).toEqual([200, 404]);
    expect((await kim.call("/api/server")).json.message).toContain("Your role in this server may not manage members");
  });

  test("creates a key with at most their own permissions", async () => {
    const kim = await addPerson("kim", [role("developer")]);
    const make = (body: object) => kim.call(`${api.E}/keys`, { method: "POST", body: { name: "ci", ...body } });
    expect((await make({})).json.key.scopes).toContain("request_changes");
    const ofOwner = await api.call(`${api.E}/keys`, { method: "POST", session: true, body: { name: "ci" } });
    expect(ofOwner.json.key.scopes).toBeNull();
    expect((await make({ scopes: ["replay", "read"] })).json.key.scopes).toEqual(["read", "replay"]);
    expect((await make({ scopes: ["approve"] })).json.message).toContain("no key can have");
    expect((await make({ kind: "app", scopes: ["read"] })).json.message).toContain("not allowed for an app key");
    expect((await kim.call("/api/apps/shop/production/keys", { method: "POST", body: { name: "ci" } })).json.code).toBe("forbidden");
  });
});

describe("a key", () => {
  test("of a member without a role in production does not reach production", async () => {
    const kim = await addPerson("kim", [role("developer", "shop", "development")]);
    const make = (body: object) => kim.call(`${api.E}/keys`, { method: "POST", body: { name: "ci", ...body } });
    const made = await make({});
    expect(made.json.key.scopes).not.toContain("request_changes");
    expect((await make({ scopes: ["request_changes"] })).json.message).toContain("scopes has request_changes, which you do not have");
    const plan = (key: string) => api.call(`${api.E}/sync/plan`, { method: "POST", key, body: { from: "development", to: "production" } });
    const refused = await plan(made.json.token);
    expect([refused.status, refused.json.code]).toEqual([403, "forbidden"]);
    expect(refused.json.message).toContain("in shop/production, because its scopes do not have request_changes");
    const lee = await addPerson("lee", [role("developer", "shop")]);
    const other = await lee.call(`${api.E}/keys`, { method: "POST", body: { name: "ci", scopes: ["read", "request_changes"] } });
    expect((await plan(other.json.token)).status).toBe(200);
  });
});

test("a key of a developer reads production to request changes, and sees no result of a case there", async () => {
  const lee = await addPerson("lee", [role("developer", "shop")]);
  const { token } = (await lee.call(`${api.E}/keys`, { method: "POST", body: { name: "ci" } })).json;
  const definition = receiverDefinition({ name: "orders", actions: [{ type: "call_url", url: "https://shop.example.com/a" }] });
  const put = (path: string, body: object) => api.call(`${api.E}${path}`, { method: "POST", key: api.keys.dev, body });
  expect((await put("/relays", { definition })).status).toBe(201);
  const kept = { method: "PUT", key: api.keys.dev, body: { body: JSON.stringify({ id: "evt_1" }) } };
  expect((await api.call(`${api.E}/relays/orders/cases/one`, kept)).status).toBeLessThan(300);
  const casesFor = async (key: string) => {
    const { json } = await api.call(`${api.E}/sync/plan`, { method: "POST", key, body: { from: "development", to: "production" } });
    return json.entries.map(({ cases }: { cases?: string }) => cases ?? null);
  };
  expect([await casesFor(token), await casesFor(api.keys.dev)]).toEqual([[null], [expect.stringContaining("1 case")]]);
});

test("a save by a key that may not see payloads names no result of a case", async () => {
  const make = async (scopes: string[]) =>
    (await api.call(`${api.E}/keys`, { method: "POST", session: true, body: { name: "ci", scopes } })).json.token as string;
  const call = { type: "call_url", url: "https://shop.example.com/a" };
  const send = (method: string, path: string, key: string, body: object) => api.call(`${api.E}${path}`, { method, key, body });
  await send("POST", "/relays", api.keys.dev, { definition: receiverDefinition({ name: "orders", actions: [call] }) });
  await send("PUT", "/relays/orders/cases/one", api.keys.dev, { body: JSON.stringify({ id: "evt_1", type: "paid" }) });
  const saveBy = async (key: string, type: string) => {
    const { version } = (await api.call(`${api.E}/relays/orders`, { key: api.keys.dev })).json.relay;
    const definition = receiverDefinition({
      name: "orders",
      map: { event_id: "id", event_type: "type" },
      when: { event_type: type },
      actions: [call],
    });
    const { status, json } = await send("PUT", "/relays/orders", key, { version, definition });
    return [status, json.warnings.map(({ code }: { code: string }) => code)];
  };
  expect(await saveBy(await make(["read", "edit_definitions"]), "refunded")).toEqual([200, []]);
  expect(await saveBy(await make(["read", "edit_definitions", "read_payloads"]), "voided")).toEqual([200, ["case_changed"]]);
});

describe("an invitation", () => {
  const invite = async () =>
    (
      await api.call("/api/owners", {
        method: "POST",
        session: true,
        body: { email: "kim@example.com", memberships: [{ role: "viewer", app: "shop" }] },
      })
    ).json;
  const use = (url: string) =>
    api.call("/api/session/reset", {
      method: "POST",
      headers: { origin: api.base },
      body: { token: new URL(url).hash.slice(1), password: "a long password" },
    });
  const refusals = async () => (await audited()).filter(({ action }) => action === "owner.link_refused");

  test("sets the password of the member, who has the role of the invitation", async () => {
    const { link } = await invite();
    const reply = await use(link.url);
    expect(reply.status).toBe(200);
    const cookie =
      reply.headers
        .getSetCookie()
        .find((one) => one.startsWith("relay_session="))
        ?.split(";")[0] ?? "";
    const { json } = await api.call("/api/session", { headers: { cookie } });
    expect(json.apps.map(({ id }: { id: string }) => id)).toEqual(["shop"]);
  });

  const ENDED: readonly [why: string, end: (made: { owner: { id: string }; link: { url: string } }) => Promise<unknown>][] = [
    ["used", ({ link }) => use(link.url)],
    ["replaced", ({ owner }) => api.call(`/api/owners/${owner.id}/link`, { method: "POST", session: true })],
    ["expired", async () => api.clock.jump(25 * 3_600_000)],
  ];
  test.each(ENDED)("that was %s is refused in one sentence, changes nothing and is audited once", async (why, end) => {
    const made = await invite();
    await end(made);
    const before = await api.snapshot();
    for (let turn = 0; turn < 2; turn++) {
      const reply = await use(made.link.url);
      expect([reply.status, reply.json.code]).toEqual([401, "unauthenticated"]);
      expect(reply.json.message).toContain("This link was used already or has ended");
    }
    const changes = changesBetween(before, await api.snapshot());
    expect(changes).toEqual(why === "expired" ? { audit: 1, ended_link: 1, signin_link: -1 } : { audit: 1, ended_link: 0 });
    expect(await refusals()).toEqual([{ action: "owner.link_refused", target: "owner:kim@example.com" }]);
  });

  test("that never was is refused, and writes nothing", async () => {
    const before = await api.snapshot();
    expect((await use(`${api.base}/reset#${"x".repeat(32)}`)).json.code).toBe("unauthenticated");
    expect(changesBetween(before, await api.snapshot())).toEqual({});
  });
});

describe("a change of a role", () => {
  test("takes effect on the next request of an open session, and is audited with both roles", async () => {
    const kim = await addPerson("kim", [role("developer")]);
    const write = () => kim.call(`${api.E}/products/book`, { method: "PUT", body: { title: "Book" } });
    expect((await write()).status).toBeLessThan(300);
    expect((await put(`/api/owners/${kim.id}`, [{ role: "viewer", app: "shop" }])).status).toBe(200);
    const refused = await write();
    expect([refused.status, refused.json.code]).toEqual([403, "forbidden"]);
    expect(refused.json.message).toBe(
      "Your role in shop/development may not change relays, the catalog and collections, capture requests, send test events and import missed events: ask an owner of the server for a role with the permission edit_definitions.",
    );
    expect((await kim.call("/api/apps/rival/development/relays")).status).toBe(404);
    expect((await audited()).at(-1)).toEqual({ action: "owner.roles_changed", target: "owner:kim@example.com" });
  });

  test.each(["changed", "removed"])("that is %s ends the open streams of the member", async (how) => {
    const kim = await addPerson("kim", [role("developer")]);
    const stream = await fetch(`${api.base}${api.E}/stream`, { headers: { cookie: kim.cookie } });
    const reader = stream.body?.getReader();
    await reader?.read();
    if (how === "changed") await put(`/api/owners/${kim.id}`, [{ role: "viewer" }]);
    else await api.call(`/api/owners/${kim.id}`, { method: "DELETE", session: true });
    let isOver = false;
    void (async () => {
      while (!(await reader?.read())?.done);
      isOver = true;
    })();
    await until("the stream ends", async () => {
      await api.clock.advance(15_000);
      return isOver;
    });
  });

  const BAD: readonly [name: string, memberships: object[], message: string][] = [
    ["an unknown app", [{ role: "viewer", app: "none" }], "memberships names none, which does not exist"],
    ["an unknown environment of an app", [{ role: "viewer", app: "shop", environment: "local" }], "shop/local, which does not exist"],
    ["one place twice", [{ role: "viewer" }, { role: "support" }], "memberships names */* twice"],
    ["an unknown role", [{ role: "admin" }], "role"],
    ["no role", [], "memberships"],
  ];
  test.each(BAD)("with %s is refused, and changes nothing", async (_name, memberships, message) => {
    const kim = await addPerson("kim", [role("developer")]);
    const before = await api.snapshot();
    const reply = await put(`/api/owners/${kim.id}`, memberships);
    expect([reply.status, reply.json.code]).toEqual([400, "invalid_input"]);
    expect(reply.json.message).toContain(message);
    expect(changesBetween(before, await api.snapshot())).toEqual({});
  });
});

describe("the last owner of everything", () => {
  test("cannot be demoted or removed", async () => {
    const before = await api.snapshot();
    const demoted = await put(`/api/owners/${api.ownerId}`, [{ role: "owner", app: "shop" }]);
    expect([demoted.status, demoted.json.code]).toEqual([409, "in_use"]);
    expect(demoted.json.message).toContain("the last owner of everything");
    await addPerson("kim", [role("owner", "shop")]);
    expect((await put(`/api/owners/${api.ownerId}`, [{ role: "viewer" }])).json.code).toBe("in_use");
    expect(changesBetween(before, await api.snapshot())).toEqual({ owner: 1, membership: 1, session: 1 });
  });

  test("stays one when two owners demote each other at the same time", async () => {
    const kim = await addPerson("kim", [role("owner")]);
    const viewer = { body: { memberships: [{ role: "viewer" }] }, method: "PUT" };
    const replies = await Promise.all([
      api.call(`/api/owners/${kim.id}`, { ...viewer, session: true }),
      kim.call(`/api/owners/${api.ownerId}`, viewer),
    ]);
    expect(replies.map(({ status }) => status).sort((one, other) => one - other)[0]).toBe(200);
    expect(replies.filter(({ status }) => status === 200)).toHaveLength(1);
    const { owners } =
      (await api.store.read((tx) => tx.get<{ owners: number }>("SELECT count(*) AS owners FROM membership WHERE role = 'owner'"))) ?? {};
    expect(owners).toBe(1);
  });
});

test("a login key follows the role of its person", async () => {
  const kim = await addPerson("kim", [role("developer")]);
  const login = await api.call("/api/login", { method: "POST", body: { machine: "laptop" } });
  const code = login.json.userCode;
  const foreign = await kim.call("/api/login/approve", { method: "POST", body: { code, app: "shop", environment: "development" } });
  expect(foreign.status).toBe(200);
  const { json } = await api.call("/api/login/token", { method: "POST", body: { deviceCode: login.json.deviceCode } });
  const write = () => api.call(`${api.E}/products/book`, { method: "PUT", key: json.token, body: { title: "Book" } });
  expect((await write()).status).toBeLessThan(300);
  await put(`/api/owners/${kim.id}`, [{ role: "viewer" }]);
  const refused = await write();
  expect([refused.status, refused.json.code]).toEqual([403, "forbidden"]);
  expect(refused.json.message).toContain("kim@example.com, whose login made this key, has no role in shop/development");
  await put(`/api/owners/${kim.id}`, [{ role: "viewer", app: "rival" }]);
  expect((await api.call(`${api.E}/relays`, { key: json.token })).json.code).toBe("forbidden");
});
