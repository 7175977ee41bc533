/**
 * The confirmation of a session: which requests need a recent authentication, how long one lasts, and what a person who has only the cookie
 * cannot do.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { TOOLS } from "../../src/interfaces/api/connector-tool.ts";
import { mintApiKey } from "../../src/platform/account/api-key.ts";
import { setMemberships } from "../../src/platform/account/membership.ts";
import { createOwner, hashPassword, setOwnerPassword } from "../../src/platform/account/owner.ts";
import { EVERY, type Membership } from "../../src/platform/account/permission.ts";
import { createSession } from "../../src/platform/account/session.ts";
import { type ApiServer, startApi } from "../kit/api-server.ts";
import { askOperation, isManagement, type Operation, readOperations } from "../kit/operation.ts";

const PASSWORD = "correct horse battery";
const OTHER_PASSWORD = "another long password";
const MINUTE_MS = 60_000;
const ALMOST_MS = 15 * MINUTE_MS - 1_000;

let hash = "";
let otherHash = "";
let api: ApiServer;
let operations: readonly Operation[];
let personId = "";
let people = 0;
/** The cookie of the person of this test. */
let cookie = "";

const FULL: readonly Membership[] = [{ appId: EVERY, name: EVERY, role: "owner", payloads: true }];

beforeAll(async () => {
  [hash, otherHash] = await Promise.all([hashPassword(PASSWORD), hashPassword(OTHER_PASSWORD)]);
  api = await startApi();
  operations = (await readOperations(api)).filter(isManagement);
});
afterAll(async () => {
  await api[Symbol.asyncDispose]();
});

beforeEach(async () => {
  people += 1;
  const email = `bea${people}@example.com`;
  const nowMs = api.clock.now();
  await api.store.write("dashboard", async (tx) => {
    personId = (await createOwner(tx, { email, passwordHash: hash, memberships: FULL, nowMs })).id;
    cookie = `relay_session=${(await createSession(tx, personId, nowMs)).token}`;
  });
});

const by = (of = cookie) => ({ headers: { cookie: of, origin: api.base } });
const confirm = (body: unknown = { password: PASSWORD }, of = cookie) => api.call("/api/session/confirm", { method: "POST", body, ...by(of) });
/** A sensitive request that changes nothing when it is admitted. */
const act = async (of = cookie): Promise<string> => (await api.call("/api/owners/unknown", { method: "DELETE", ...by(of) })).json.code;
const anotherSession = async (): Promise<string> =>
  `relay_session=${(await api.store.write("dashboard", (tx) => createSession(tx, personId, api.clock.now()))).token}`;
const auditOf = async () =>
  (
    await api.store.read((tx) =>
      tx.all<{ action: string }>("SELECT action FROM audit WHERE target = ?1 ORDER BY seq", `owner:bea${people}@example.com`),
    )
  ).map(({ action }) => action);

describe("a session", () => {
  test("is admitted to each route for 15 minutes, and then to each one that is not sensitive", async () => {
    const admit = async (operation: Operation) =>
      `${operation.method} ${operation.path} ${await askOperation(api, operation, by(), ["shop", "development"], "unknown")}`;
    const isHere = ({ path }: Operation): boolean => !path.includes("/approvals/{id}");
    await api.clock.leap(ALMOST_MS);
    for (const one of operations.filter(isHere)) expect(await admit(one)).toBe(`${one.method} ${one.path} admitted`);
    await api.clock.leap(1_000);
    for (const one of operations.filter(isHere))
      expect(await admit(one)).toBe(`${one.method} ${one.path} ${one.isSensitive ? "reauthentication_required" : "admitted"}`);
  });

  test("gets one sentence, the methods of the account and the error page", async () => {
    await api.clock.leap(15 * MINUTE_MS);
    const reply = await api.call("/api/owners", { method: "POST", body: { email: "cleo@example.com" }, ...by() });
    expect([reply.status, reply.json]).toEqual([
      403,
      {
        code: "reauthentication_required",
        message:
          "This action needs a recent authentication, and yours is 15 minutes old or older: confirm with POST /api/session/confirm or sign in again, then send the request again.",
        docs: `${api.base}/docs/errors/reauthentication_required`,
        methods: ["password"],
      },
    ]);
    expect((await api.call("/docs/errors/reauthentication_required")).status).toBe(200);
  });

  test("that an older version started counts from its start", async () => {
    await api.store.write("dashboard", (tx) => tx.run("UPDATE session SET authenticated_at = NULL WHERE owner_id = ?1", personId));
    await api.clock.leap(ALMOST_MS);
    expect(await act()).toBe("not_found");
    await api.clock.leap(1_000);
    expect(await act()).toBe("reauthentication_required");
  });

  test("without the permission is refused for that, before the confirmation", async () => {
    await api.clock.leap(15 * MINUTE_MS);
    const support: Membership[] = [{ appId: "shop", name: EVERY, role: "support", payloads: false }];
    await api.store.write("dashboard", (tx) => setMemberships(tx, personId, support, api.clock.now()));
    expect(await act()).toBe("forbidden");
    expect((await confirm()).status).toBe(200);
    expect(await act()).toBe("forbidden");
  });
});

describe("the sensitive routes", () => {
  const find = (words: string): Operation => {
    const [method, path] = words.split(" ");
    const found = operations.find((one) => one.method === method && one.path.replace("/api/apps/{appId}/{environment}", "{E}") === path);
    if (found === undefined) throw new Error(`There is no ${words}.`);
    return found;
  };
  test.each([
    ["secrets", "PUT {E}/relays/{name}/secret"],
    ["secrets", "PUT {E}/relays/{name}/signing-secret"],
    ["secrets", "DELETE {E}/relays/{name}/previous-secret"],
    ["secrets", "PUT {E}/settings"],
    ["keys", "POST {E}/keys"],
    ["keys", "DELETE {E}/keys/{id}"],
    ["keys", "POST /api/login/approve"],
    ["roles", "POST /api/owners"],
    ["roles", "PUT /api/owners/{id}"],
    ["deleting", "DELETE /api/apps/{appId}"],
    ["deleting", "DELETE {E}/relays/{name}"],
    ["deleting", "DELETE {E}/persons/{id}"],
    ["deleting", "DELETE {E}/collections/{name}/records/{id}"],
    ["deleting", "POST {E}/events/{id}/expunge"],
    ["deleting", "POST {E}/sync/apply"],
    ["live approval", "POST /api/approvals/{id}"],
  ])("include %s: %s", (_, words) => {
    expect(find(words).isSensitive).toBe(true);
  });

  test("include no tool of the connector", () => {
    expect(TOOLS.filter(({ route }) => route.sensitive).map(({ name }) => name)).toEqual([]);
  });

  test("include no read, and each deletion except of what is temporary or can be given again", () => {
    expect(operations.filter(({ method, isSensitive }) => method === "GET" && isSensitive)).toEqual([]);
    const others = operations.filter(({ method, isSensitive }) => method === "DELETE" && !isSensitive);
    expect(others.map(({ path }) => path).sort()).toEqual([
      "/api/apps/{appId}/{environment}/captures/{id}",
      "/api/apps/{appId}/{environment}/grants/{id}",
      "/api/apps/{appId}/{environment}/persons/{id}/access/{entitlement}",
      "/api/apps/{appId}/{environment}/persons/{id}/tokens/{token}",
      "/api/session",
      "/api/sessions",
      "/api/sessions/{id}",
    ]);
  });
});

describe("a confirmation", () => {
  test("lets this session act for 15 minutes more, also in another tab, and no other session", async () => {
    const other = await anotherSession();
    await api.clock.leap(15 * MINUTE_MS);
    const confirmed = await confirm();
    expect([confirmed.status, confirmed.json]).toEqual([200, { method: "password" }]);
    expect([await act(), await act(other)]).toEqual(["not_found", "reauthentication_required"]);
    await api.clock.leap(ALMOST_MS);
    expect(await act()).toBe("not_found");
    await api.clock.leap(1_000);
    expect(await act()).toBe("reauthentication_required");
    expect(await auditOf()).toEqual(["owner.confirmed"]);
  });

  test.each([
    ["a wrong password", { password: "wrong" }, 403, "forbidden", "password is not your current password: type it again."],
    ["no method", {}, 400, "invalid_input", "The body must have exactly one method of the account: password."],
    ["an unknown method", { pin: "1234" }, 400, "invalid_input", expect.any(String)],
  ])("by %s changes nothing", async (_, body, status, code, message) => {
    await api.clock.leap(15 * MINUTE_MS);
    const reply = await confirm(body);
    expect([reply.status, reply.json.code, reply.json.message]).toEqual([status, code, message]);
    expect(await act()).toBe("reauthentication_required");
    expect(await auditOf()).toEqual(code === "forbidden" ? ["owner.confirmation_refused"] : []);
  });

  test("is refused after ten wrong passwords in a quarter of an hour, then even with the right one", async () => {
    const codes: string[] = [];
    for (let n = 0; n < 12; n++) codes.push((await confirm({ password: `wrong ${n}` })).json.code);
    expect(codes).toEqual([...Array(10).fill("forbidden"), "signin_capped", "signin_capped"]);
    expect((await confirm()).json.code).toBe("signin_capped");
    await api.clock.leap(15 * MINUTE_MS);
    expect((await confirm()).status).toBe(200);
  });

  test("shares its limit with a change of the password", async () => {
    const change = { method: "PUT", body: { current: "wrong", password: OTHER_PASSWORD }, ...by() };
    for (let n = 0; n < 5; n++) await confirm({ password: "wrong" });
    for (let n = 0; n < 5; n++) expect((await api.call("/api/session/password", change)).json.code).toBe("forbidden");
    expect((await confirm()).json.code).toBe("signin_capped");
    await api.clock.leap(15 * MINUTE_MS);
  });

  test("from another page is refused", async () => {
    await api.clock.leap(15 * MINUTE_MS);
    for (const headers of [{ cookie, origin: "https://evil.example" }, { cookie }]) {
      const reply = await api.call("/api/session/confirm", { method: "POST", body: { password: PASSWORD }, headers });
      expect([reply.status, reply.json.code]).toEqual([403, "wrong_origin"]);
    }
    expect(await act()).toBe("reauthentication_required");
  });

  test("does not revive a session that ended meanwhile", async () => {
    await api.clock.leap(15 * MINUTE_MS);
    const pending = confirm();
    const keeper = await anotherSession();
    expect((await api.call("/api/sessions?others=true", { method: "DELETE", ...by(keeper) })).status).toBe(200);
    expect([200, 401]).toContain((await pending).status);
    expect([await act(), (await confirm()).json.code]).toEqual(["unauthenticated", "unauthenticated"]);
  });

  test("with the password of before is refused after a change of the password ended the session", async () => {
    await api.store.write("dashboard", (tx) => setOwnerPassword(tx, personId, otherHash, api.clock.now()));
    expect((await confirm()).json.code).toBe("unauthenticated");
    const fresh = await anotherSession();
    await api.clock.leap(15 * MINUTE_MS);
    expect((await confirm({ password: PASSWORD }, fresh)).json.code).toBe("forbidden");
    expect((await confirm({ password: OTHER_PASSWORD }, fresh)).status).toBe(200);
  });

  test("needs a session: a key has none", async () => {
    const reply = await api.call("/api/session/confirm", { method: "POST", body: { password: PASSWORD }, key: api.keys.dev });
    expect([reply.status, reply.json.code]).toEqual([403, "forbidden"]);
  });
});

describe("a person without a password", () => {
  test("has no method, and sets a first password only soon after sign-in", async () => {
    await api.store.write("dashboard", (tx) => tx.run("UPDATE owner SET password_hash = NULL WHERE id = ?1", personId));
    await api.clock.leap(15 * MINUTE_MS);
    const change = { method: "PUT", body: { current: "", password: OTHER_PASSWORD }, ...by() };
    const refused = await api.call("/api/session/password", change);
    expect([refused.json.code, refused.json.methods]).toEqual(["reauthentication_required", []]);
    expect((await confirm({ password: "" })).json.code).toBe("invalid_input");
    const fresh = await anotherSession();
    expect((await api.call("/api/session/password", { ...change, ...by(fresh) })).status).toBe(204);
  });
});

test("a key and local development need no confirmation", async () => {
  await api.clock.leap(60 * MINUTE_MS);
  const { development } = api.environments;
  const { token } = await api.store.write("dashboard", (tx) =>
    mintApiKey(tx, { environment: development, kind: "secret", name: "old", nowMs: api.clock.now() }),
  );
  await api.clock.leap(60 * MINUTE_MS);
  expect((await api.call(`${api.E}/relays/unknown`, { method: "DELETE", key: token })).json.code).toBe("not_found");
  await using local = await startApi({ mode: "local" });
  await local.clock.leap(60 * MINUTE_MS);
  expect((await local.call("/api/apps/unknown", { method: "DELETE", session: true })).json.code).not.toBe("reauthentication_required");
});
