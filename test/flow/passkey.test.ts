/** Passkeys of members: adding one, signing in with it by itself or after the password, confirming with it, and what is refused. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { MINUTE_MS } from "../../src/base/limit.ts";
import { findPasskeySite } from "../../src/platform/account/passkey.ts";
import { SERVER_SCOPE } from "../../src/platform/audit/audit.ts";
import { type ApiServer, changesBetween, type Reply, startApi } from "../kit/api-server.ts";
import { addMember, cookieOf, PASSWORD } from "../kit/factor.ts";
import { SoftwarePasskey } from "../kit/software-passkey.ts";

const ORIGIN = "http://localhost:4747";
const BEA = "bea@example.com";
const KIM = "kim@example.com";

let api: ApiServer;
beforeEach(async () => {
  api = await startApi({ baseUrl: ORIGIN });
});
afterEach(async () => {
  await api[Symbol.asyncDispose]();
});

const of = ({ status, json }: Reply) => [status, json?.code];
const post = (path: string, body: unknown, cookie?: string) =>
  api.call(path, { method: "POST", body, headers: { origin: ORIGIN, ...(cookie === undefined ? {} : { cookie }) } });
const signIn = (email: string) => post("/api/session", { email, password: PASSWORD });
const optionsOf = async (path: string, body: object = {}, cookie?: string): Promise<string> => (await post(path, body, cookie)).json.options;
const refused = async (): Promise<string[]> =>
  (
    await api.store.read((tx) =>
      tx.all<{ after: string }>(
        "SELECT after FROM audit WHERE environment_id = ?1 AND action IN ('owner.factor_refused', 'owner.confirmation_refused') ORDER BY seq",
        SERVER_SCOPE,
      ),
    )
  ).map(({ after }) => after);

interface Member {
  id: string;
  cookie: string;
}

async function addSigned(email: string): Promise<Member> {
  const id = await addMember(api, email);
  return { id, cookie: cookieOf(await signIn(email)) };
}

async function add(member: Member, key = new SoftwarePasskey(ORIGIN)): Promise<{ key: SoftwarePasskey; reply: Reply }> {
  const options = await optionsOf("/api/session/factors/passkey/options", {}, member.cookie);
  const passkey = key.create(options);
  return { key, reply: await post("/api/session/factors/passkey", { name: "Laptop", passkey }, member.cookie) };
}

async function signWith(key: SoftwarePasskey, lies: Parameters<SoftwarePasskey["sign"]>[1] = {}): Promise<Reply> {
  return await post("/api/session/passkey", { passkey: key.sign(await optionsOf("/api/session/passkey/options"), lies) });
}

describe("a passkey", () => {
  test("is added with recovery codes, and then signs in by itself as both factors", async () => {
    const bea = await addSigned(BEA);
    const { key, reply } = await add(bea);
    expect([reply.status, reply.json.recoveryCodes.length]).toEqual([201, 10]);
    expect(reply.json.factor).toMatchObject({ kind: "passkey", name: "Laptop", usedAt: null });
    const done = await signWith(key);
    expect([done.status, done.json]).toEqual([200, { owner: { email: BEA } }]);
    const cookie = cookieOf(done);
    const rule = await api.call("/api/second-factor", { method: "PUT", body: { required: true }, headers: { cookie, origin: ORIGIN } });
    expect(rule.status).toBe(200);
    expect((await api.call("/api/session", { headers: { cookie } })).json).toMatchObject({ owner: { email: BEA }, needsFactor: false });
  });

  test("completes a sign-in with the password", async () => {
    const { key } = await add(await addSigned(BEA));
    const begun = await signIn(BEA);
    expect([begun.json.owner, begun.json.factor.methods]).toEqual([null, ["passkey", "recoveryCode"]]);
    const { token } = begun.json.factor;
    const options = await optionsOf("/api/session/passkey/options", { token });
    expect(JSON.parse(options).allowCredentials).toMatchObject([{ id: Buffer.from(key.id).toString("base64url") }]);
    expect((await post("/api/session/factor", { token, passkey: key.sign(options) })).json).toEqual({ owner: { email: BEA } });
  });

  test("confirms a session whose authentication is old", async () => {
    const bea = await addSigned(BEA);
    const { key } = await add(bea);
    await api.clock.advance(16 * MINUTE_MS);
    const recovery = () => post("/api/session/recovery-codes", {}, bea.cookie);
    const asked = await recovery();
    expect([...of(asked), asked.json.methods]).toEqual([403, "reauthentication_required", ["password", "passkey", "recoveryCode"]]);
    await post("/api/session/confirm", { password: PASSWORD }, bea.cookie);
    for (const path of ["/api/session/recovery-codes", "/api/session/factors/passkey/options"]) {
      const withPassword = await post(path, {}, bea.cookie);
      expect([...of(withPassword), withPassword.json.methods]).toEqual([403, "reauthentication_required", ["passkey", "recoveryCode"]]);
    }
    const options = await optionsOf("/api/session/confirm/options", {}, bea.cookie);
    expect((await post("/api/session/confirm", { passkey: key.sign(options) }, bea.cookie)).json).toEqual({ method: "passkey" });
    expect((await recovery()).status).toBe(201);
  });

  test("of an authenticator that does not count signs in again and again", async () => {
    const { key } = await add(await addSigned(BEA), new SoftwarePasskey(ORIGIN, 0));
    for (let n = 0; n < 3; n++) expect((await signWith(key)).status).toBe(200);
  });

  test("is removed like any factor", async () => {
    const bea = await addSigned(BEA);
    const { key, reply } = await add(bea);
    const path = `/api/session/factors/${reply.json.factor.id}`;
    expect((await api.call(path, { method: "DELETE", headers: { cookie: bea.cookie, origin: ORIGIN } })).status).toBe(204);
    expect(of(await signWith(key))).toEqual([401, "unauthenticated"]);
    expect((await signIn(BEA)).json).toEqual({ owner: { email: BEA } });
  });
});

describe("a passkey is refused in one sentence, is audited and changes nothing", () => {
  const lies: [string, (key: SoftwarePasskey) => Parameters<SoftwarePasskey["sign"]>[1], string][] = [
    ["of another origin", () => ({ origin: "https://evil.example" }), "wrong"],
    ["of another site", () => ({ rpId: "evil.example" }), "wrong"],
    ["without user verification", () => ({ flags: 0x01 }), "wrong"],
    ["without a user", () => ({ flags: 0x00 }), "wrong"],
    ["that names another member", () => ({ userHandle: Buffer.from("own_other").toString("base64url") }), "wrong"],
    [
      "with a challenge of another server",
      () => ({ challenge: Buffer.from("1768478500000.aaaaaaaaaaaaaaaaaaaaaa.b").toString("base64url") }),
      "wrong",
    ],
    ["as a new passkey", () => ({ type: "webauthn.create" }), "wrong"],
    ["whose counter goes back", (key) => ({ counter: key.counter - 1 }), "counter"],
    ["whose counter stays", (key) => ({ counter: key.counter }), "counter"],
    ["whose counter is 0 again", () => ({ counter: 0 }), "counter"],
  ];
  test.each(lies)("%s", async (_, lie, why) => {
    const { key } = await add(await addSigned(BEA));
    expect((await signWith(key)).status).toBe(200);
    const options = await optionsOf("/api/session/passkey/options");
    const before = await api.snapshot();
    const reply = await post("/api/session/passkey", { passkey: key.sign(options, lie(key)) });
    expect([...of(reply), reply.headers.getSetCookie()]).toEqual([401, "unauthenticated", []]);
    const changed = Object.keys(changesBetween(before, await api.snapshot()));
    expect(changed.filter((name) => name !== "used_challenge")).toEqual(["audit"]);
    expect(await refused()).toEqual([`{"method":"passkey","why":"${why}"}`]);
  });

  test("with a signature of another key", async () => {
    const { key } = await add(await addSigned(BEA));
    const other = new SoftwarePasskey(ORIGIN);
    const options = await optionsOf("/api/session/passkey/options");
    const forged = { ...JSON.parse(key.sign(options)), response: JSON.parse(other.sign(options)).response };
    expect(of(await post("/api/session/passkey", { passkey: JSON.stringify(forged) }))).toEqual([401, "unauthenticated"]);
    expect(await refused()).toEqual(['{"method":"passkey","why":"wrong"}']);
  });

  test("whose answer was sent before", async () => {
    const { key } = await add(await addSigned(BEA), new SoftwarePasskey(ORIGIN, 0));
    const passkey = key.sign(await optionsOf("/api/session/passkey/options"));
    expect((await post("/api/session/passkey", { passkey })).status).toBe(200);
    const again = await post("/api/session/passkey", { passkey });
    expect(again.json.message).toContain("was sent before");
    expect(await refused()).toEqual(['{"method":"passkey","why":"used"}']);
  });

  test("whose challenge is older than five minutes", async () => {
    const { key } = await add(await addSigned(BEA));
    const passkey = key.sign(await optionsOf("/api/session/passkey/options"));
    await api.clock.advance(5 * MINUTE_MS);
    expect(of(await post("/api/session/passkey", { passkey }))).toEqual([401, "unauthenticated"]);
  });

  test("of another member, after the password", async () => {
    await add(await addSigned(BEA));
    const { key } = await add(await addSigned(KIM));
    const { token } = (await signIn(BEA)).json.factor;
    const passkey = key.sign(await optionsOf("/api/session/passkey/options", { token }));
    expect(of(await post("/api/session/factor", { token, passkey }))).toEqual([401, "unauthenticated"]);
    expect(await refused()).toEqual(['{"method":"passkey","why":"wrong"}']);
  });

  test("whose challenge belongs to another sign-in or purpose", async () => {
    const bea = await addSigned(BEA);
    const { key } = await add(bea);
    const [one, other] = [(await signIn(BEA)).json.factor.token, (await signIn(BEA)).json.factor.token];
    const ofOther = key.sign(await optionsOf("/api/session/passkey/options", { token: other }));
    expect(of(await post("/api/session/factor", { token: one, passkey: ofOther }))).toEqual([401, "unauthenticated"]);
    const ofSignin = key.sign(await optionsOf("/api/session/passkey/options"));
    expect(of(await post("/api/session/confirm", { passkey: ofSignin }, bea.cookie))).toEqual([403, "forbidden"]);
  });

  test("that no member has", async () => {
    const reply = await signWith(new SoftwarePasskey(ORIGIN));
    expect([...of(reply), reply.json.message]).toEqual([401, "unauthenticated", expect.stringContaining("belongs to no member")]);
  });

  test("ten times in a quarter of an hour", async () => {
    const { key } = await add(await addSigned(BEA));
    const statuses: number[] = [];
    for (let n = 0; n < 12; n++) statuses.push((await signWith(key, { origin: "https://evil.example" })).status);
    expect(statuses).toEqual([...Array(10).fill(401), 429, 429]);
  });

  test.each(["", "{}", "[]", '{"id":1,"response":{}}', '{"id":"x"}', "not JSON"])("that is the text %p", async (passkey) => {
    expect(of(await post("/api/session/passkey", { passkey }))).toEqual([400, "invalid_input"]);
  });
});

describe("two requests at once", () => {
  test("with one answer of a passkey: only one signs in", async () => {
    const { key } = await add(await addSigned(BEA), new SoftwarePasskey(ORIGIN, 0));
    const passkey = key.sign(await optionsOf("/api/session/passkey/options"));
    const replies = await Promise.all([1, 2, 3].map(() => post("/api/session/passkey", { passkey })));
    expect(replies.map(({ status }) => status).sort()).toEqual([200, 401, 401]);
  });
});

describe("a new passkey is refused", () => {
  const lies: [string, Parameters<SoftwarePasskey["create"]>[1]][] = [
    ["of another origin", { origin: "https://evil.example" }],
    ["of another site", { rpId: "evil.example" }],
    ["without user verification", { flags: 0x41 }],
    ["with a challenge of its own", { challenge: Buffer.from("a challenge").toString("base64url") }],
    ["as a signature", { type: "webauthn.get" }],
  ];
  test.each(lies)("%s", async (_, lie) => {
    const bea = await addSigned(BEA);
    const passkey = new SoftwarePasskey(ORIGIN).create(await optionsOf("/api/session/factors/passkey/options", {}, bea.cookie), lie);
    const before = await api.snapshot();
    expect(of(await post("/api/session/factors/passkey", { name: "Laptop", passkey }, bea.cookie))).toEqual([400, "invalid_input"]);
    expect(changesBetween(before, await api.snapshot())).toEqual({});
  });

  test("with the challenge of another session", async () => {
    const [bea, kim] = [await addSigned(BEA), await addSigned(KIM)];
    const passkey = new SoftwarePasskey(ORIGIN).create(await optionsOf("/api/session/factors/passkey/options", {}, kim.cookie));
    expect(of(await post("/api/session/factors/passkey", { name: "Laptop", passkey }, bea.cookie))).toEqual([400, "invalid_input"]);
  });

  test("that was added before, by this or another member", async () => {
    const [bea, kim] = [await addSigned(BEA), await addSigned(KIM)];
    const { key } = await add(bea);
    expect(of((await add(bea, key)).reply)).toEqual([409, "name_taken"]);
    expect(of((await add(kim, key)).reply)).toEqual([409, "name_taken"]);
  });

  test("without a recent authentication", async () => {
    const bea = await addSigned(BEA);
    const passkey = new SoftwarePasskey(ORIGIN).create(await optionsOf("/api/session/factors/passkey/options", {}, bea.cookie));
    await api.clock.advance(16 * MINUTE_MS);
    for (const path of ["/api/session/factors/passkey/options", "/api/session/factors/passkey"])
      expect(of(await post(path, { name: "Laptop", passkey }, bea.cookie))).toEqual([403, "reauthentication_required"]);
  });
});

describe("a server whose address has no passkeys", () => {
  test.each([
    ["http://127.0.0.1:4747", "only for a name"],
    ["https://203.0.113.7", "only for a name"],
    ["https://[2001:db8::1]", "only for a name"],
    ["http://relay.example.com", "only over https"],
  ])("%s says why", (address, why) => {
    expect(findPasskeySite(address)).toContain(why);
  });

  test("refuses them with this reason", async () => {
    await using plain = await startApi();
    const reply = await plain.call("/api/session/passkey/options", { method: "POST", body: {}, headers: { origin: plain.base } });
    expect([...of(reply), reply.json.message]).toEqual([403, "base_url_needed", expect.stringContaining("only for a name")]);
    const factors = await plain.call("/api/session/factors", { session: true });
    expect(factors.json.passkeyProblem).toBe(reply.json.message);
  });

  test("that has a name and https, or is localhost, has a site", () => {
    expect(findPasskeySite("https://relay.example.com")).toEqual({ rpId: "relay.example.com", origin: "https://relay.example.com" });
    expect(findPasskeySite(ORIGIN)).toEqual({ rpId: "localhost", origin: ORIGIN });
  });
});
