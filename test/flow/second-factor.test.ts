/** The second factor of members: an authenticator app, recovery codes, their reset, and the rule that each member needs one. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { HOUR_MS, MINUTE_MS } from "../../src/base/limit.ts";
import { EVERY } from "../../src/platform/account/permission.ts";
import { createSigninLink } from "../../src/platform/account/session.ts";
import { SERVER_SCOPE } from "../../src/platform/audit/audit.ts";
import { type ApiServer, changesBetween, type Reply, startApi } from "../kit/api-server.ts";
import { addMember, addSigned, beginSignin, codeOf, cookieOf, enroll, PASSWORD, post, signIn, wrongCode } from "../kit/factor.ts";

const BEA = "bea@example.com";
const STEP_MS = 30_000;

let api: ApiServer;
beforeEach(async () => {
  api = await startApi();
});
afterEach(async () => {
  await api[Symbol.asyncDispose]();
});

const of = ({ status, json }: Reply) => [status, json?.code];
const audited = (action: string) =>
  api.store.read((tx) =>
    tx.all<{ actor: string; target: string; after: string | null }>(
      "SELECT actor, target, after FROM audit WHERE environment_id = ?1 AND action = ?2 ORDER BY seq",
      SERVER_SCOPE,
      action,
    ),
  );
const setRule = (required: boolean, cookie?: string) =>
  api.call("/api/second-factor", {
    method: "PUT",
    body: { required },
    ...(cookie === undefined ? { session: true } : { headers: { cookie, origin: api.base } }),
  });

describe("an authenticator app", () => {
  test("is a factor after its first code, and the answer has ten recovery codes once", async () => {
    const bea = await addSigned(api, BEA);
    const begun = await bea.call("/api/session/factors/totp", { method: "POST", body: { name: " My phone\n" } });
    expect(begun.status).toBe(201);
    expect(begun.json.uri).toContain(`secret=${begun.json.secret}`);
    expect(begun.json.uri).toContain("otpauth://totp/Relay%20Service:bea%40example.com?");
    expect(begun.json.qr.path).toStartWith("M0 0h1v1h-1z");
    expect((await signIn(api, BEA)).json).toEqual({ owner: { email: BEA } });
    const path = `/api/session/factors/${begun.json.id}/confirm`;
    const wrong = await bea.call(path, { method: "POST", body: { totp: wrongCode(begun.json.secret, api.clock.now()) } });
    expect(of(wrong)).toEqual([400, "invalid_input"]);
    const done = await bea.call(path, { method: "POST", body: { totp: codeOf(begun.json.secret, api.clock.now()) } });
    expect(done.status).toBe(200);
    expect(done.json.factor).toMatchObject({ id: begun.json.id, kind: "totp", name: "My phone", usedAt: null });
    expect(new Set(done.json.recoveryCodes).size).toBe(10);
    for (const code of done.json.recoveryCodes) expect(code).toMatch(/^[BCDFGHJKLMNPQRSTVWXZ]{5}-[BCDFGHJKLMNPQRSTVWXZ]{5}$/);
    const listed = await bea.call("/api/session/factors");
    expect(listed.json).toMatchObject({ factors: [{ name: "My phone" }], recoveryCodes: 10, required: false });
    const all = [...(await api.snapshot()).values()].flat().join("\n") + api.logged.join("\n");
    for (const secret of [begun.json.secret, ...done.json.recoveryCodes]) expect(all).not.toContain(secret);
    expect(await audited("owner.factor_added")).toMatchObject([{ actor: `owner:${BEA}`, target: `owner:${BEA}` }]);
  });

  test("ends the sessions that began without a factor, except the one that added it", async () => {
    const bea = await addSigned(api, BEA);
    const other = cookieOf(await signIn(api, BEA));
    await enroll(api, bea);
    expect((await bea.call("/api/session")).json.owner).toEqual({ email: BEA });
    expect((await api.call("/api/session", { headers: { cookie: other } })).json.owner).toBeNull();
  });

  test("is needed after the password, and after a reset link", async () => {
    const bea = await enroll(api, await addSigned(api, BEA));
    const reply = await signIn(api, BEA);
    expect([reply.status, reply.json.owner, reply.headers.getSetCookie()]).toEqual([200, null, []]);
    expect(reply.json.factor.methods).toEqual(["totp", "recoveryCode"]);
    const link = await api.store.write("dashboard", (tx) => createSigninLink(tx, { kind: "reset", ownerId: bea.id, nowMs: api.clock.now() }));
    const reset = await post(api, "/api/session/reset", { token: link.token, password: "another good one" });
    expect([reset.json.owner, reset.headers.getSetCookie()]).toEqual([null, []]);
    // The old password began the first of the two sign-ins.
    const body = { token: reply.json.factor.token, totp: codeOf(bea.secret, api.clock.now()) };
    expect(of(await post(api, "/api/session/factor", body))).toEqual([401, "unauthenticated"]);
    const done = await post(api, "/api/session/factor", { ...body, token: reset.json.factor.token });
    expect(done.json).toEqual({ owner: { email: BEA } });
    expect((await api.call("/api/session", { headers: { cookie: cookieOf(done) } })).json.owner).toEqual({ email: BEA });
    expect((await audited("owner.signed_in")).at(-1)?.after).toContain("reset link and authenticator app");
  });

  test("accepts the code of the step before and after, and no other", async () => {
    const bea = await enroll(api, await addSigned(api, BEA));
    await api.clock.advance(10 * STEP_MS);
    for (const [steps, status] of [
      [-2, 401],
      [2, 401],
      [-1, 200],
      [0, 200],
      [1, 200],
    ] as const) {
      const token = await beginSignin(api, BEA);
      const totp = codeOf(bea.secret, api.clock.now(), steps);
      expect([steps, (await post(api, "/api/session/factor", { token, totp })).status]).toEqual([steps, status]);
    }
  });

  test("can be removed, and the recovery codes go with the last one", async () => {
    const bea = await enroll(api, await addSigned(api, BEA));
    await api.clock.advance(STEP_MS);
    const second = await bea.call("/api/session/factors/totp", { method: "POST", body: { name: "Tablet" } });
    const totp = codeOf(second.json.secret, api.clock.now());
    const confirmed = await bea.call(`/api/session/factors/${second.json.id}/confirm`, { method: "POST", body: { totp } });
    expect(confirmed.json.recoveryCodes).toEqual([]);
    expect((await bea.call(`/api/session/factors/${bea.factorId}`, { method: "DELETE" })).status).toBe(204);
    expect((await bea.call("/api/session/factors")).json).toMatchObject({ factors: [{ name: "Tablet" }], recoveryCodes: 10 });
    expect((await bea.call(`/api/session/factors/${second.json.id}`, { method: "DELETE" })).status).toBe(204);
    expect((await bea.call("/api/session/factors")).json).toMatchObject({ factors: [], recoveryCodes: 0 });
    expect((await signIn(api, BEA)).json).toEqual({ owner: { email: BEA } });
  });

  const LATER_MS = 16 * MINUTE_MS;
  const confirm = (bea: Awaited<ReturnType<typeof enroll>>, body: object) => bea.call("/api/session/confirm", { method: "POST", body });
  const PROOFS: readonly [what: string, proof: (bea: Awaited<ReturnType<typeof enroll>>) => object][] = [
    ["the app", (bea) => ({ totp: codeOf(bea.secret, api.clock.now()) })],
    ["a recovery code", (bea) => ({ recoveryCode: bea.recoveryCodes[0] })],
  ];
  test.each(PROOFS)("is changed after a confirmation with %s, not with the password", async (_what, proof) => {
    const bea = await enroll(api, await addSigned(api, BEA));
    await api.clock.leap(LATER_MS);
    expect((await confirm(bea, { password: PASSWORD })).status).toBe(200);
    const path = "/api/session/factors";
    const remove = () => bea.call(`${path}/${bea.factorId}`, { method: "DELETE" });
    const others = [
      ["POST", `${path}/totp`, { name: "Tablet" }],
      ["POST", `${path}/${bea.factorId}/confirm`, { totp: codeOf(bea.secret, api.clock.now()) }],
      ["POST", "/api/session/recovery-codes", undefined],
    ] as const;
    const before = await api.snapshot();
    for (const [method, to, body] of others)
      expect(of(await bea.call(to, { method, ...(body === undefined ? {} : { body }) }))).toEqual([403, "reauthentication_required"]);
    const refused = await remove();
    expect([...of(refused), refused.json.methods]).toEqual([403, "reauthentication_required", ["totp", "recoveryCode"]]);
    expect(refused.json.message).toContain("You have a second factor, so a password is not enough to change factors");
    expect(changesBetween(before, await api.snapshot())).toEqual({});
    expect((await confirm(bea, proof(bea))).status).toBe(200);
    expect((await remove()).status).toBe(204);
  });

  test("is not changed with a new password, because the new session proved no factor", async () => {
    const bea = await enroll(api, await addSigned(api, BEA));
    await api.clock.leap(LATER_MS);
    await confirm(bea, { password: PASSWORD });
    const body = { current: PASSWORD, password: "another long password" };
    const changed = await bea.call("/api/session/password", { method: "PUT", body });
    const headers = { origin: api.base, cookie: cookieOf(changed) };
    const removed = await api.call(`/api/session/factors/${bea.factorId}`, { method: "DELETE", headers });
    expect([changed.status, ...of(removed)]).toEqual([204, 403, "reauthentication_required"]);
  });

  test("of another member is neither confirmed nor removed", async () => {
    const bea = await enroll(api, await addSigned(api, BEA));
    const kim = await addSigned(api, "kim@example.com");
    const begun = await bea.call("/api/session/factors/totp", { method: "POST", body: { name: "Tablet" } });
    const totp = codeOf(begun.json.secret, api.clock.now());
    expect(of(await kim.call(`/api/session/factors/${begun.json.id}/confirm`, { method: "POST", body: { totp } }))).toEqual([404, "not_found"]);
    expect(of(await kim.call(`/api/session/factors/${bea.factorId}`, { method: "DELETE" }))).toEqual([404, "not_found"]);
    expect((await bea.call("/api/session/factors")).json.factors.length).toBe(1);
  });

  test("is not confirmed ten minutes after it was begun", async () => {
    const bea = await addSigned(api, BEA);
    const begun = await bea.call("/api/session/factors/totp", { method: "POST", body: { name: "Phone" } });
    await api.clock.advance(10 * MINUTE_MS + 1);
    const totp = codeOf(begun.json.secret, api.clock.now());
    expect(of(await bea.call(`/api/session/factors/${begun.json.id}/confirm`, { method: "POST", body: { totp } }))).toEqual([404, "not_found"]);
  });
});

describe("a refused code", () => {
  test.each([
    ["wrong", "is not the code of your app now", '{"method":"totp","why":"wrong"}'],
    ["used at this sign-in's step", "was used already", '{"method":"totp","why":"used"}'],
    ["older than the last one", "was used already", '{"method":"totp","why":"used"}'],
    ["of no recovery code", "is not one of your recovery codes", '{"method":"recoveryCode","why":"wrong"}'],
    ["a used recovery code", "was used already", '{"method":"recoveryCode","why":"used"}'],
  ])("that is %s says so, is audited and changes nothing else", async (what, sentence, after) => {
    const bea = await enroll(api, await addSigned(api, BEA));
    await api.clock.advance(2 * STEP_MS);
    const used = { totp: codeOf(bea.secret, api.clock.now()), recoveryCode: bea.recoveryCodes[0] ?? "" };
    for (const [name, code] of Object.entries(used))
      expect((await post(api, "/api/session/factor", { token: await beginSignin(api, BEA), [name]: code })).status).toBe(200);
    const body: Record<string, Record<string, string>> = {
      wrong: { totp: wrongCode(bea.secret, api.clock.now()) },
      "used at this sign-in's step": { totp: used.totp },
      "older than the last one": { totp: codeOf(bea.secret, api.clock.now(), -1) },
      "of no recovery code": { recoveryCode: "BCDFG-HJKLM" },
      "a used recovery code": { recoveryCode: used.recoveryCode.toLowerCase().replace("-", " ") },
    };
    const token = await beginSignin(api, BEA);
    const before = await api.snapshot();
    const reply = await post(api, "/api/session/factor", { token, ...body[what] });
    expect([...of(reply), reply.headers.getSetCookie()]).toEqual([401, "unauthenticated", []]);
    expect(reply.json.message).toContain(sentence);
    expect(Object.keys(changesBetween(before, await api.snapshot())).sort()).toEqual(["audit", "pending_signin"]);
    expect((await audited("owner.factor_refused")).map((row) => row.after)).toEqual([after]);
    // The sign-in continues with the next code.
    await api.clock.advance(STEP_MS);
    expect((await post(api, "/api/session/factor", { token, totp: codeOf(bea.secret, api.clock.now(), 1) })).status).toBe(200);
  });

  test("ends the sign-in when it is the fifth", async () => {
    const bea = await enroll(api, await addSigned(api, BEA));
    await api.clock.advance(STEP_MS);
    const token = await beginSignin(api, BEA);
    const wrong = { token, totp: wrongCode(bea.secret, api.clock.now()) };
    for (let n = 0; n < 5; n++) expect((await post(api, "/api/session/factor", wrong)).json.message).toContain("is not the code");
    const totp = codeOf(bea.secret, api.clock.now());
    expect((await post(api, "/api/session/factor", { token, totp })).json.message).toContain("This sign-in has ended");
    expect((await post(api, "/api/session/factor", { token: await beginSignin(api, BEA), totp })).status).toBe(200);
  });

  test("counts in the limits of sign-in: ten in a quarter of an hour, whatever else is tried", async () => {
    const bea = await enroll(api, await addSigned(api, BEA));
    await api.clock.advance(STEP_MS);
    const guess = async () => {
      const begun = await signIn(api, BEA);
      if (begun.status === 429) return 429;
      return (await post(api, "/api/session/factor", { token: begun.json.factor.token, totp: wrongCode(bea.secret, api.clock.now()) })).status;
    };
    const statuses: number[] = [];
    for (let n = 0; n < 14; n++) statuses.push(await guess());
    expect(statuses).toEqual([...Array(10).fill(401), 429, 429, 429, 429]);
    expect((await audited("owner.factor_refused")).length).toBe(10);
  });
});

describe("a sign-in that waits for a factor", () => {
  test("ends after ten minutes", async () => {
    const bea = await enroll(api, await addSigned(api, BEA));
    const token = await beginSignin(api, BEA);
    await api.clock.advance(10 * MINUTE_MS);
    expect(of(await post(api, "/api/session/factor", { token, totp: codeOf(bea.secret, api.clock.now()) }))).toEqual([401, "unauthenticated"]);
  });

  test("works once", async () => {
    const bea = await enroll(api, await addSigned(api, BEA));
    const token = await beginSignin(api, BEA);
    const [one = "", other = ""] = bea.recoveryCodes;
    expect((await post(api, "/api/session/factor", { token, recoveryCode: one })).status).toBe(200);
    expect((await post(api, "/api/session/factor", { token, recoveryCode: other })).status).toBe(401);
    expect((await bea.call("/api/session/factors")).json.recoveryCodes).toBe(9);
  });

  test("accepts no factor of another member", async () => {
    await enroll(api, await addSigned(api, BEA));
    const kim = await enroll(api, await addSigned(api, "kim@example.com"));
    await api.clock.advance(STEP_MS);
    const token = await beginSignin(api, BEA);
    for (const body of [{ totp: codeOf(kim.secret, api.clock.now()) }, { recoveryCode: kim.recoveryCodes[0] }])
      expect(of(await post(api, "/api/session/factor", { token, ...body }))).toEqual([401, "unauthenticated"]);
  });

  test.each([
    ["no method", {}],
    ["two methods", { totp: "123456", recoveryCode: "BCDFG-HJKLM" }],
  ])("rejects %s", async (_, body) => {
    await enroll(api, await addSigned(api, BEA));
    expect(of(await post(api, "/api/session/factor", { token: await beginSignin(api, BEA), ...body }))).toEqual([400, "invalid_input"]);
  });

  test("needs the dashboard's own origin", async () => {
    const bea = await enroll(api, await addSigned(api, BEA));
    const body = { token: await beginSignin(api, BEA), recoveryCode: bea.recoveryCodes[0] };
    const reply = await api.call("/api/session/factor", { method: "POST", body, headers: { origin: "https://evil.example" } });
    expect(of(reply)).toEqual([403, "wrong_origin"]);
  });
});

describe("two requests at once", () => {
  test.each([
    ["one code of the app", (secret: string) => ({ totp: codeOf(secret, api.clock.now()) })],
    ["one recovery code", (_: string, codes: string[]) => ({ recoveryCode: codes[3] })],
  ])("with %s: only one signs in", async (_, make) => {
    const bea = await enroll(api, await addSigned(api, BEA));
    await api.clock.advance(STEP_MS);
    const tokens = [await beginSignin(api, BEA), await beginSignin(api, BEA), await beginSignin(api, BEA)];
    const body = make(bea.secret, bea.recoveryCodes);
    const replies = await Promise.all(tokens.map((token) => post(api, "/api/session/factor", { token, ...body })));
    expect(replies.map(({ status }) => status).sort()).toEqual([200, 401, 401]);
  });
});

describe("recovery codes", () => {
  test("are replaced together", async () => {
    const bea = await enroll(api, await addSigned(api, BEA));
    const made = await bea.call("/api/session/recovery-codes", { method: "POST" });
    expect([made.status, made.json.recoveryCodes.length]).toEqual([201, 10]);
    const token = await beginSignin(api, BEA);
    expect((await post(api, "/api/session/factor", { token, recoveryCode: bea.recoveryCodes[0] })).status).toBe(401);
    expect((await post(api, "/api/session/factor", { token, recoveryCode: made.json.recoveryCodes[0] })).status).toBe(200);
    expect(await audited("owner.recovery_code_used")).toMatchObject([{ target: `owner:${BEA}` }]);
  });

  test("need a factor", async () => {
    const bea = await addSigned(api, BEA);
    expect(of(await bea.call("/api/session/recovery-codes", { method: "POST" }))).toEqual([404, "not_found"]);
  });
});

describe("an owner", () => {
  test("resets the factors of another member: their sessions end, and the password is enough", async () => {
    const bea = await enroll(api, await addSigned(api, BEA));
    const token = await beginSignin(api, BEA);
    expect((await api.call("/api/owners", { session: true })).json.owners.find((one: { email: string }) => one.email === BEA).hasFactor).toBe(true);
    expect((await api.call(`/api/owners/${bea.id}/factors`, { method: "DELETE", session: true })).status).toBe(204);
    expect((await bea.call("/api/session")).json.owner).toBeNull();
    expect((await post(api, "/api/session/factor", { token, recoveryCode: bea.recoveryCodes[0] })).status).toBe(401);
    expect((await signIn(api, BEA)).json).toEqual({ owner: { email: BEA } });
    expect(await audited("owner.factors_reset")).toMatchObject([{ actor: "owner:ann@example.com", target: `owner:${BEA}` }]);
  });

  test("does not reset their own, and a member without the role resets none", async () => {
    const bea = await addSigned(api, BEA);
    expect(of(await bea.call(`/api/owners/${bea.id}/factors`, { method: "DELETE" }))).toEqual([409, "in_use"]);
    const kim = await addSigned(api, "kim@example.com", [{ appId: EVERY, name: EVERY, role: "viewer", payloads: false }]);
    expect(of(await kim.call(`/api/owners/${bea.id}/factors`, { method: "DELETE" }))).toEqual([403, "forbidden"]);
  });
});

describe("the rule that each member needs a second factor", () => {
  test("is turned on only by an owner who has one", async () => {
    expect(of(await setRule(true))).toEqual([409, "in_use"]);
    const bea = await enroll(api, await addSigned(api, BEA));
    expect((await setRule(true, bea.cookie)).json).toEqual({ required: true, given: false });
    expect(await audited("server.factor_rule_changed")).toMatchObject([{ actor: `owner:${BEA}`, target: "server" }]);
  });

  test("lets a member without a factor only add one, then do everything", async () => {
    const bea = await enroll(api, await addSigned(api, BEA));
    const kim = await addSigned(api, "kim@example.com");
    await setRule(true, bea.cookie);
    expect((await kim.call("/api/session")).json).toMatchObject({ owner: { email: "kim@example.com" }, needsFactor: true, apps: [], may: [] });
    for (const [method, path] of [
      ["GET", "/api/apps"],
      ["GET", "/api/owners"],
      ["GET", `${api.E}/relays`],
      ["PUT", "/api/session/password"],
      ["POST", "/api/login/look"],
      ["PUT", "/api/second-factor"],
    ] as const) {
      const reply = await kim.call(path, { method, ...(method === "GET" ? {} : { body: {} }) });
      expect([path, ...of(reply)]).toEqual([path, 403, "second_factor_required"]);
    }
    expect((await kim.call("/api/session/factors")).json).toMatchObject({ factors: [], required: true });
    await enroll(api, kim);
    expect((await kim.call("/api/session")).json.needsFactor).toBe(false);
    expect((await kim.call(`${api.E}/relays`)).status).toBe(200);
  });

  test("keeps the last factor of a member", async () => {
    const bea = await enroll(api, await addSigned(api, BEA));
    await setRule(true, bea.cookie);
    expect(of(await bea.call(`/api/session/factors/${bea.factorId}`, { method: "DELETE" }))).toEqual([409, "in_use"]);
  });

  test("refuses the key of relay login of a member without a factor, and no key of an environment", async () => {
    const bea = await enroll(api, await addSigned(api, BEA));
    const begun = await post(api, "/api/login", { machine: "laptop" });
    await post(api, "/api/login/approve", { code: begun.json.userCode, app: "shop", environment: "development" }, bea.cookie);
    const { token } = (await post(api, "/api/login/token", { deviceCode: begun.json.deviceCode })).json;
    await setRule(true, bea.cookie);
    const asked = () => api.call(`${api.E}/relays`, { key: token });
    expect((await asked()).status).toBe(200);
    await api.call(`/api/session/factors/${bea.factorId}`, { method: "DELETE", headers: { cookie: bea.cookie, origin: api.base } });
    await api.store.write("dashboard", (tx) => tx.run("DELETE FROM totp"));
    expect(of(await asked())).toEqual([403, "second_factor_required"]);
    expect((await api.call(`${api.E}/relays`, { key: api.keys.dev })).status).toBe(200);
  });

  test("asks a member whose factor was reset for a new one", async () => {
    const bea = await enroll(api, await addSigned(api, BEA));
    await setRule(true, bea.cookie);
    const kim = await enroll(api, await addSigned(api, "kim@example.com"));
    expect((await kim.call(`/api/owners/${bea.id}/factors`, { method: "DELETE" })).status).toBe(204);
    const again = cookieOf(await signIn(api, BEA));
    expect((await api.call("/api/session", { headers: { cookie: again } })).json.needsFactor).toBe(true);
  });

  test("of --second-factor is not changed in Settings", async () => {
    await using given = await startApi({ secondFactor: true });
    const reply = await given.call("/api/second-factor", { method: "PUT", session: true, body: { required: false } });
    expect(of(reply)).toEqual([403, "second_factor_required"]);
    await given.store.write("dashboard", (tx) => tx.run("UPDATE session SET two_factor = 1"));
    expect((await given.call("/api/second-factor", { session: true })).json).toEqual({ required: true, given: true });
    expect(of(await given.call("/api/second-factor", { method: "PUT", session: true, body: { required: false } }))).toEqual([409, "in_use"]);
  });
});

test("an old session of a member keeps its factor over a new password", async () => {
  const bea = await enroll(api, await addSigned(api, BEA));
  await setRule(true, bea.cookie);
  const changed = await bea.call("/api/session/password", { method: "PUT", body: { current: PASSWORD, password: "another good one" } });
  const session = await api.call("/api/session", { headers: { cookie: cookieOf(changed) } });
  expect(session.json).toMatchObject({ owner: { email: BEA }, needsFactor: false });
});

test("the daily maintenance deletes what was never completed", async () => {
  const bea = await enroll(api, await addSigned(api, BEA));
  await bea.call("/api/session/factors/totp", { method: "POST", body: { name: "Tablet" } });
  await beginSignin(api, BEA);
  await api.clock.advance(25 * HOUR_MS);
  const counts = await api.store.read((tx) => tx.get("SELECT (SELECT count(*) FROM pending_signin) AS pending, (SELECT count(*) FROM totp) AS apps"));
  expect(counts).toEqual({ pending: 0, apps: 1 });
});

test("local development has no second factor", async () => {
  await using local = await startApi({ mode: "local" });
  await addMember(local, BEA);
  const reply = await local.call("/api/session/factors/totp", { method: "POST", session: true, body: { name: "Phone" } });
  expect(of(reply)).toEqual([403, "forbidden"]);
});
