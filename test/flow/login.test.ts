/** Tests the sign-in of a command through the dashboard: each code works once within ten minutes, and the key has limits and an end. */
import { afterAll, beforeEach, describe, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { newId } from "../../src/base/id.ts";
import { DAY_MS, HOUR_MS, LOGIN_LIFE_MS, MAX_LOGIN_CODE_TRIES, MAX_LOGINS_PER_ADDRESS, MAX_WAITING_LOGINS } from "../../src/base/limit.ts";
import { startApi } from "../kit/api-server.ts";
import { START_MS } from "../kit/virtual-clock.ts";

const api = await startApi();
afterAll(() => api[Symbol.asyncDispose]());

const post = (path: string, body: unknown, session = false) => api.call(path, { method: "POST", body, session });
/** Moves the clock, so that each test begins with fresh rate limits per address. */
beforeEach(async () => {
  await api.clock.leap(LOGIN_LIFE_MS);
  await api.confirmSessions();
});

async function begin(more: object = {}) {
  const { status, json } = await post("/api/login", { machine: "laptop", account: "ann", ...more });
  expect(status).toBe(200);
  return json as { deviceCode: string; userCode: string; verificationUri: string; expiresAt: string; interval: number };
}
const look = (code: string) => post("/api/login/look", { code }, true);
const approve = (code: string, environment = "development", app = "shop") => post("/api/login/approve", { code, app, environment }, true);
const deny = (code: string) => post("/api/login/deny", { code }, true);
const fetchKey = (deviceCode: string) => post("/api/login/token", { deviceCode });
async function signIn(environment = "development", more: object = {}) {
  const { deviceCode, userCode } = await begin(more);
  await approve(userCode, environment);
  return (await fetchKey(deviceCode)).json as { token: string; key: { id: string }; owner: string; expiresAt: string };
}
const of = ({ status, json }: { status: number; json: { code?: string; message?: string } }) => [status, json?.code];

describe("a login", () => {
  test("can be started by any caller, is shown to an owner, is approved for an environment, and returns its key once", async () => {
    const begun = await begin({ days: 7 });
    expect(begun.userCode).toMatch(/^[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$/);
    expect(begun.deviceCode).toMatch(/^[A-Za-z0-9]{43}$/);
    expect([begun.verificationUri, begun.interval]).toEqual([`${api.base}/login`, 5]);
    expect(Date.parse(begun.expiresAt) - api.clock.now()).toBe(LOGIN_LIFE_MS);
    expect(of(await fetchKey(begun.deviceCode))).toEqual([400, "authorization_pending"]);
    const shown = (await look(begun.userCode.toLowerCase().replace("-", " "))).json;
    expect(shown).toMatchObject({ here: true, login: { machine: "laptop", account: "ann", source: "127.0.0.1", days: 7 } });
    expect(JSON.stringify(shown)).not.toContain(begun.deviceCode);
    expect((await approve(begun.userCode, "production")).status).toBe(200);
    const { status, json } = await fetchKey(begun.deviceCode);
    expect([status, json.app, json.environment, json.owner]).toEqual([200, "shop", "production", "ann@example.com"]);
    expect(json.token).toMatch(/^relay_live_[A-Za-z0-9]{32}$/);
    expect(Date.parse(json.expiresAt) - api.clock.now()).toBe(7 * DAY_MS);
    const known = await api.call("/api/key", { key: json.token });
    expect(known.json).toMatchObject({ app: "shop", environment: "production", owner: "ann@example.com", expiresAt: json.expiresAt });
  });

  test("stores neither code, and the key only as a hash", async () => {
    const { deviceCode, userCode } = await begin();
    await approve(userCode);
    const { token } = (await fetchKey(deviceCode)).json;
    const all = [...(await api.snapshot()).values()].flat().join("\n") + api.logged.join("\n");
    for (const secret of [deviceCode, userCode, userCode.replace("-", ""), token, token.slice(7)]) expect(all).not.toContain(secret);
  });

  test("that an owner denied creates no key, and says so", async () => {
    const { deviceCode, userCode } = await begin();
    expect((await deny(userCode)).status).toBe(204);
    expect(of(await fetchKey(deviceCode))).toEqual([400, "access_denied"]);
    expect(of(await approve(userCode))).toEqual([409, "login_used"]);
  });

  test.each([
    ["look", look],
    ["approve", (code: string) => approve(code)],
    ["deny", deny],
  ])("that was answered or has ended is rejected by %s", async (_what, ask) => {
    const [answered, ended] = [await begin(), await begin()];
    await approve(answered.userCode);
    expect(of(await ask(answered.userCode))).toEqual([409, "login_used"]);
    await api.clock.advance(LOGIN_LIFE_MS);
    expect(of(await ask(ended.userCode))).toEqual([400, "expired_token"]);
    expect(of(await ask("BCDF-GHJK"))).toEqual([404, "not_found"]);
    expect(of(await ask("' OR 1=1 --"))).toEqual([404, "not_found"]);
  });

  test("ends after ten minutes, approved or not, and is deleted later", async () => {
    const [waiting, allowed] = [await begin(), await begin()];
    await api.clock.advance(LOGIN_LIFE_MS - 1000);
    await approve(allowed.userCode);
    await api.clock.advance(1000);
    for (const { deviceCode } of [waiting, allowed]) expect(of(await fetchKey(deviceCode))).toEqual([400, "expired_token"]);
    expect(of(await fetchKey("A".repeat(43)))).toEqual([400, "expired_token"]);
    await api.clock.leap(2 * DAY_MS + HOUR_MS);
    expect(await api.rows("SELECT id FROM login_request")).toEqual([]);
  });

  test("survives a restart with working codes", async () => {
    const [waiting, allowed] = [await begin(), await begin()];
    await approve(allowed.userCode);
    await api.restart();
    expect(of(await fetchKey(waiting.deviceCode))).toEqual([400, "authorization_pending"]);
    expect((await fetchKey(allowed.deviceCode)).status).toBe(200);
    expect((await look(waiting.userCode)).status).toBe(200);
  });

  test("whose key is fetched twice loses the key, because one of the two callers is an attacker", async () => {
    const { deviceCode, userCode } = await begin();
    await approve(userCode);
    const { token } = (await fetchKey(deviceCode)).json;
    expect((await api.call("/api/key", { key: token })).status).toBe(200);
    expect(of(await fetchKey(deviceCode))).toEqual([409, "login_used"]);
    expect((await api.call("/api/key", { key: token })).json.message).toContain("was revoked at");
    expect(of(await fetchKey(deviceCode))).toEqual([409, "login_used"]);
  });

  test("has only one answer among concurrent ones", async () => {
    const { deviceCode, userCode } = await begin();
    const answers = await Promise.all([approve(userCode), approve(userCode, "production"), deny(userCode)]);
    expect(answers.filter(({ status }) => status < 300)).toHaveLength(1);
    expect([200, 400]).toContain((await fetchKey(deviceCode)).status);
    const [made] = await api.rows<{ count: number }>(
      "SELECT count(*) AS count FROM login_request WHERE state = 'waiting' AND expires_at > ?1",
      api.clock.now(),
    );
    expect(made?.count).toBe(0);
  });

  test("shows text from a stranger as plain, truncated words", async () => {
    const { userCode } = await begin({ machine: `<b>\u001b[31mevil\u202e${"x".repeat(150)}`, account: "😀".repeat(60) });
    const { machine, account } = (await look(userCode)).json.login;
    for (const tricky of ["\u001b", "\u202e"]) expect(machine).not.toContain(tricky);
    expect([machine.length <= 40, account.length <= 30]).toEqual([true, true]);
    const { deviceCode, userCode: other } = await begin({ machine: "ä".repeat(200), account: "ö".repeat(200) });
    await approve(other);
    expect((await fetchKey(deviceCode)).status).toBe(200);
  });

  test.each([
    ["no machine", {}],
    ["a machine name that is too long", { machine: "x".repeat(201) }],
    ["no days", { machine: "x", days: 0 }],
    ["days beyond a year", { machine: "x", days: 366 }],
    ["an unknown field", { machine: "x", scope: "all" }],
  ])("with %s is rejected", async (_what, body) => {
    expect(of(await post("/api/login", body))).toEqual([400, "invalid_input"]);
  });

  test("for an unknown environment is rejected, and can still be approved for another", async () => {
    const { userCode } = await begin();
    expect(of(await approve(userCode, "staging"))).toEqual([404, "not_found"]);
    expect((await approve(userCode)).status).toBe(200);
  });
});

describe("a rate limit", () => {
  test("for one login asks the caller to slow down, by five seconds each time", async () => {
    const { deviceCode } = await begin();
    expect(of(await fetchKey(deviceCode))).toEqual([400, "authorization_pending"]);
    const early = await fetchKey(deviceCode);
    expect([...of(early), early.json.interval]).toEqual([400, "slow_down", 10]);
    await api.clock.advance(5_000);
    expect((await fetchKey(deviceCode)).json).toMatchObject({ code: "slow_down", interval: 15 });
    await api.clock.advance(15_000);
    expect(of(await fetchKey(deviceCode))).toEqual([400, "authorization_pending"]);
  });

  test("for new logins applies per address", async () => {
    for (let at = 0; at < MAX_LOGINS_PER_ADDRESS; at++) await begin();
    const { status, json } = await post("/api/login", { machine: "x" });
    expect([status, json.code, typeof json.resetAt]).toEqual([429, "login_capped", "string"]);
  });

  describe("at the maximum of waiting logins", () => {
    /** Adds waiting logins from other addresses, with `each` logins per address. */
    async function flood(each: number): Promise<void> {
      const columns = "id, device_hash, code_digest, machine, account, source, days, created_at, expires_at, state";
      await api.store.write("app", async (tx) => {
        for (let at = 0; at < MAX_WAITING_LOGINS; at++)
          await tx.run(
            `INSERT INTO login_request (${columns}) VALUES (?1, ?4, ?5, 'x', '', ?2, 1, 0, ?3, 'waiting')`,
            newId("lgn", api.clock.now()),
            `198.51.100.${Math.floor(at / each)}`,
            api.clock.now() + LOGIN_LIFE_MS,
            randomBytes(32),
            randomBytes(32),
          );
      });
    }

    test("a new login can start, and logins of busier addresses do not remove it", async () => {
      const { userCode } = await begin();
      await flood(10);
      await begin();
      await flood(2);
      await begin();
      expect((await look(userCode)).status).toBe(200);
    });

    test("a new login replaces one from the same address if every other address has only one", async () => {
      const { userCode: first } = await begin();
      await flood(1);
      expect((await look(first)).status).toBe(200);
      const { userCode: second } = await begin();
      expect((await look(first)).status).toBe(404);
      expect((await look(second)).status).toBe(200);
    });
  });

  test("for unknown codes applies, and a valid code does not count", async () => {
    const { userCode } = await begin();
    for (let at = 0; at < MAX_LOGIN_CODE_TRIES; at++) expect((await look("BCDF-GHJK")).status).toBe(404);
    expect(of(await look(userCode))).toEqual([429, "login_capped"]);
    await api.clock.advance(LOGIN_LIFE_MS - 1);
  });
});

describe("only an owner's session can answer", () => {
  test.each(["look", "approve", "deny"])("%s: rejects a key, a stranger and another page's origin", async (what) => {
    const { userCode } = await begin();
    const body = { code: userCode, ...(what === "approve" ? { app: "shop", environment: "development" } : {}) };
    const path = `/api/login/${what}`;
    expect(of(await post(path, body))).toEqual([401, "unauthenticated"]);
    expect(of(await api.call(path, { method: "POST", body, key: api.keys.live }))).toEqual([403, "forbidden"]);
    expect(of(await api.call(path, { method: "POST", body, session: true, headers: { origin: "https://evil.example" } }))).toEqual([
      403,
      "wrong_origin",
    ]);
  });
});

describe("the key of a login", () => {
  const E = "/api/apps/shop/development";

  test("belongs to the owner: listed with owner and expiry, and named in the audit next to its id", async () => {
    const { token, key, expiresAt } = await signIn();
    const listed = (await api.call(`${E}/keys`, { session: true })).json.items;
    expect(listed.find(({ id }: { id: string }) => id === key.id)).toMatchObject({
      kind: "secret",
      name: "relay login on laptop by ann",
      owner: "ann@example.com",
      expiresAt,
    });
    expect(listed.filter(({ owner }: { owner: string | null }) => owner === null).length).toBeGreaterThan(0);
    expect((await api.call(`${E}/persons`, { method: "POST", key: token, body: { email: "new@example.com" } })).status).toBe(201);
    expect((await api.call(`${E}/access/beta`, { method: "PUT", key: token, body: {} })).status).toBeLessThan(300);
    const { items } = (await api.call(`${E}/audit?target=access:beta`, { session: true })).json;
    expect(items[0].actor).toBe(`owner:ann@example.com by key:${key.id}`);
    const made = (await api.call(`${E}/audit?target=key:${key.id}`, { session: true })).json.items;
    expect(made.map(({ actor, action }: { actor: string; action: string }) => [actor, action])).toEqual([["owner:ann@example.com", "key.created"]]);
  });

  test("cannot create or revoke keys, leave its environment, or act as the owner", async () => {
    const { token, key } = await signIn();
    for (const [method, path, body, status] of [
      ["POST", `${E}/keys`, { name: "more" }, 403],
      ["DELETE", `${E}/keys/${key.id}`, undefined, 403],
      ["GET", "/api/apps/shop/production/relays", undefined, 403],
      ["GET", "/api/apps", undefined, 403],
      ["POST", "/api/login/look", { code: "BCDF-GHJK" }, 403],
      ["GET", `${E}/relays`, undefined, 200],
    ] as const)
      expect([path, (await api.call(path, { method, key: token, body })).status]).toEqual([path, status]);
  });

  test("expires, and the error says what to do", async () => {
    const { token, expiresAt } = await signIn("development", { days: 1 });
    await api.clock.leap(DAY_MS - 1000);
    expect((await api.call(`${E}/relays`, { key: token })).status).toBe(200);
    await api.clock.advance(1000);
    const { status, json } = await api.call(`${E}/relays`, { key: token });
    expect([status, json.code, json.message]).toEqual([
      401,
      "unauthenticated",
      `The key of this login expired at ${expiresAt}: run relay login to get a new one.`,
    ]);
  });

  test("can revoke itself, unlike any other secret key", async () => {
    const { token } = await signIn();
    expect(of(await api.call("/api/key", { method: "DELETE", key: api.keys.dev }))).toEqual([403, "forbidden"]);
    expect(of(await api.call("/api/key", { method: "DELETE", key: api.keys.app }))).toEqual([403, "forbidden"]);
    expect(of(await api.call("/api/key", { method: "DELETE", session: true }))[0]).toBe(401);
    expect((await api.call("/api/key", { method: "DELETE", key: token })).status).toBe(204);
    expect((await api.call("/api/key", { key: token })).json.message).toContain("run relay login to get a new one");
    expect(of(await api.call("/api/key", { method: "DELETE", key: token }))[0]).toBe(401);
  });

  test("can be revoked in the dashboard", async () => {
    const { token, key } = await signIn();
    expect((await api.call(`${E}/keys/${key.id}`, { method: "DELETE", session: true })).status).toBe(204);
    expect((await api.call(`${E}/relays`, { key: token })).json.message).toContain("was revoked at");
  });

  test("ends when its owner is removed or gets a new password", async () => {
    const [first, waiting] = [await signIn(), await begin()];
    await approve(waiting.userCode);
    const { ownerId } = api;
    const { setOwnerPassword, createOwner } = await import("../../src/platform/account/owner.ts");
    const { createSession } = await import("../../src/platform/account/session.ts");
    const other = await api.store.write("app", async (tx) => {
      const owner = await createOwner(tx, { email: "bob@example.com", passwordHash: null, nowMs: START_MS });
      return { ...(await createSession(tx, owner.id, api.clock.now())), id: owner.id };
    });
    const theirs = await begin();
    const headers = { cookie: `relay_session=${other.token}`, origin: api.base };
    await api.call("/api/login/approve", { method: "POST", body: { code: theirs.userCode, app: "shop", environment: "development" }, headers });
    const { token } = (await fetchKey(theirs.deviceCode)).json;
    expect((await api.call("/api/key", { key: token })).json.owner).toBe("bob@example.com");
    await api.store.write("app", (tx) => setOwnerPassword(tx, ownerId, "a hash", api.clock.now()));
    expect((await api.call("/api/key", { key: first.token })).status).toBe(401);
    expect(of(await fetchKey(waiting.deviceCode))).toEqual([400, "expired_token"]);
    expect((await api.call("/api/key", { key: token })).status).toBe(200);
    await api.store.write("app", (tx) => tx.run("DELETE FROM owner WHERE id = ?1", other.id));
    expect((await api.call("/api/key", { key: token })).status).toBe(401);
    // The environment's own keys belong to no owner and stay valid.
    expect((await api.call(`${E}/relays`, { key: api.keys.dev })).status).toBe(200);
  });
});
