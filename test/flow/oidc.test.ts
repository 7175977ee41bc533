/** Sign-in at a real OpenID provider: whom it admits, with which roles, and what it refuses. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { createOwner, hashPassword } from "../../src/platform/account/owner.ts";
import { removeFactor } from "../../src/platform/account/second-factor.ts";
import { SERVER_SCOPE } from "../../src/platform/audit/audit.ts";
import { type ApiServer, changesBetween, type Reply, startApi } from "../kit/api-server.ts";
import { addSigned, beginSignin, codeOf, enroll, PASSWORD as FACTOR_PASSWORD } from "../kit/factor.ts";
import { CLIENT_ID, CLIENT_SECRET, type OidcDouble, startOidcProvider } from "../kit/oidc-provider.ts";

const MINUTE_MS = 60_000;

let api: ApiServer;
let provider: OidcDouble;
beforeEach(async () => {
  api = await startApi({ allowPrivate: ["127.0.0.1"] });
  provider = await startOidcProvider({ redirectUrl: `${api.base}/signin/oidc`, after: `${api.base}/` });
});
afterEach(async () => {
  await provider[Symbol.asyncDispose]();
  await api[Symbol.asyncDispose]();
});

const SUPPORT = { group: "support", app: "shop", environment: "production", role: "support" };
const ADMINS = { group: "admins", role: "owner" };

async function configure(more: object = {}): Promise<void> {
  const body = { name: "Example ID", issuer: provider.issuer, clientId: CLIENT_ID, clientSecret: CLIENT_SECRET, roles: [SUPPORT, ADMINS], ...more };
  const { status, json } = await api.call("/api/oidc", { method: "PUT", session: true, body });
  expect([status, json.code]).toEqual([200, undefined]);
}

/** A browser with its cookies. */
class Browser {
  readonly cookies = new Map<string, string>();

  async post(path: string, body: object = {}, method = "POST"): Promise<Reply> {
    const cookie = [...this.cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const reply = await api.call(path, { method, body, headers: { origin: api.base, ...(cookie === "" ? {} : { cookie }) } });
    for (const one of reply.headers.getSetCookie()) {
      const [pair = ""] = one.split(";");
      const at = pair.indexOf("=");
      this.cookies.set(pair.slice(0, at), pair.slice(at + 1));
    }
    return reply;
  }

  async start(body: object = {}): Promise<string> {
    const { json } = await this.post("/api/session/oidc/start", body);
    return json.url;
  }

  finish(response: string): Promise<Reply> {
    return this.post("/api/session/oidc", { response });
  }

  async signIn(name: string, body: object = {}): Promise<Reply> {
    return await this.finish(await provider.signIn(await this.start(body), name));
  }

  async session() {
    const cookie = [...this.cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    return (await api.call("/api/session", { headers: { cookie } })).json;
  }
}

interface AuditRow {
  action: string;
  target: string;
  actor: string;
  after: string | null;
}
const audited = async (): Promise<[string, string][]> => {
  const sql = "SELECT action, target, actor, after FROM audit WHERE environment_id = ?1 ORDER BY seq";
  const rows = await api.store.read((tx) => tx.all<AuditRow>(sql, SERVER_SCOPE));
  return rows.filter(({ action }) => action.startsWith("owner.")).map(({ action, target }) => [action, target]);
};
const lastAudited = async () => (await audited()).at(-1);
const members = async () =>
  (await api.call("/api/owners", { session: true })).json.owners as {
    id: string;
    email: string;
    hasPassword: boolean;
    memberships: object[];
    groupMemberships: object[];
  }[];
const member = async (email: string) => (await members()).find((one) => one.email === email);

const kim = { email: "kim@example.com", email_verified: true, groups: ["staff", "support"] };

describe("a sign-in", () => {
  test("creates a member with the roles of their groups, and finds them again by the subject", async () => {
    await configure();
    provider.accounts.set("kim", kim);
    const browser = new Browser();
    const reply = await browser.signIn("kim", { returnTo: "/apps/shop/production/home?tab=a" });
    expect([reply.status, reply.json]).toEqual([200, { owner: { email: "kim@example.com" }, returnTo: "/apps/shop/production/home?tab=a" }]);
    const session = await browser.session();
    expect([session.owner.email, session.ofProvider, session.signin]).toEqual(["kim@example.com", true, { passwords: true, provider: "Example ID" }]);
    expect(session.apps.map(({ id, environments }: { id: string; environments: string[] }) => [id, environments])).toEqual([
      ["shop", ["production"]],
    ]);
    const made = await member("kim@example.com");
    expect([made?.hasPassword, made?.memberships, made?.groupMemberships]).toEqual([
      false,
      [],
      [{ app: "shop", environment: "production", role: "support", payloads: false }],
    ]);
    expect((await audited()).slice(-3)).toEqual([
      ["owner.created", "owner:kim@example.com"],
      ["owner.linked", "owner:kim@example.com"],
      ["owner.signed_in", "owner:kim@example.com"],
    ]);
    // The address at the provider changes, and the member stays.
    provider.accounts.set("kim", { ...kim, email: "kim.lee@example.com" });
    expect((await new Browser().signIn("kim")).json.owner.email).toBe("kim@example.com");
    expect((await members()).length).toBe(2);
  });

  test("asks with PKCE, a state and a nonce, and each of them is new", async () => {
    await configure();
    const urls = [await new Browser().start(), await new Browser().start()].map((url) => new URL(url).searchParams);
    for (const url of urls) {
      expect([url.get("response_type"), url.get("code_challenge_method"), url.get("redirect_uri"), url.get("scope")]).toEqual([
        "code",
        "S256",
        `${api.base}/signin/oidc`,
        "openid email profile groups",
      ]);
    }
    for (const name of ["state", "nonce", "code_challenge"]) expect(new Set(urls.map((url) => url.get(name))).size).toBe(2);
  });

  test("links a member by their verified address once, and then only by the subject", async () => {
    await configure();
    const memberships = [{ appId: "rival", name: "*", role: "viewer" as const, payloads: false }];
    await api.store.write("dashboard", (tx) =>
      createOwner(tx, { email: "Kim@example.com", passwordHash: null, memberships, nowMs: api.clock.now() }),
    );
    provider.accounts.set("kim", kim);
    expect((await new Browser().signIn("kim")).json.owner.email).toBe("Kim@example.com");
    const found = await member("Kim@example.com");
    expect([found?.memberships.length, found?.groupMemberships.length]).toEqual([1, 1]);
    // Another account with the address is another person.
    provider.accounts.set("other", kim);
    const refused = await new Browser().signIn("other");
    expect([refused.status, refused.json.code]).toEqual([403, "oidc_refused"]);
    expect(refused.json.message).toContain("kim@example.com is already linked to another account of Example ID");
  });

  test("admits a member with given roles although no group gives one", async () => {
    await configure();
    provider.accounts.set("ann", { email: "ann@example.com", email_verified: true });
    const browser = new Browser();
    expect((await browser.signIn("ann")).status).toBe(200);
    expect((await browser.session()).may).toContain("manage_server");
  });

  test("gives a role to everyone of an allowed domain", async () => {
    await configure({ domains: ["Example.com"], roles: [{ group: "*", role: "viewer", app: "rival" }] });
    provider.accounts.set("lee", { email: "lee@EXAMPLE.com", email_verified: true });
    expect((await new Browser().signIn("lee")).status).toBe(200);
    expect((await member("lee@EXAMPLE.com"))?.groupMemberships).toEqual([{ app: "rival", environment: "*", role: "viewer", payloads: false }]);
  });

  test("trusts an unverified address only if the operator says so", async () => {
    await configure({ trustsEmail: true });
    provider.accounts.set("kim", { email: "kim@example.com", groups: ["support"] });
    expect((await new Browser().signIn("kim")).status).toBe(200);
  });

  test("needs no second factor of the server", async () => {
    await configure();
    await api.store.write("dashboard", (tx) => tx.run("INSERT INTO factor_rule (one, required) VALUES (1, 1)"));
    provider.accounts.set("kim", { ...kim, groups: ["admins"] });
    const browser = new Browser();
    await browser.signIn("kim");
    expect((await browser.session()).needsFactor).toBe(false);
    expect((await browser.post("/api/apps", { name: "Another" })).status).toBe(201);
  });

  test("keeps its two factors when the member removes their last local factor", async () => {
    await configure();
    provider.accounts.set("kim", { ...kim, groups: ["admins"] });
    const browser = new Browser();
    await browser.signIn("kim");
    const { id: ownerId } = (await member(kim.email)) as { id: string };
    const { json: app } = await browser.post("/api/session/factors/totp", { name: "Phone" });
    await browser.post(`/api/session/factors/${app.id}/confirm`, { totp: codeOf(app.secret, api.clock.now()) });
    await api.store.write("dashboard", (tx) => removeFactor(tx, { ownerId, id: app.id, isRequired: false }));
    await api.store.write("dashboard", (tx) => tx.run("INSERT INTO factor_rule (one, required) VALUES (1, 1)"));
    expect((await browser.session()).needsFactor).toBe(false);
  });

  test("of a member without a password lets no owner set one for them", async () => {
    await configure();
    provider.accounts.set("kim", kim);
    await new Browser().signIn("kim");
    const { id } = (await member(kim.email)) as { id: string };
    const refused = await api.call(`/api/owners/${id}/link`, { method: "POST", session: true, body: {} });
    expect([refused.status, refused.json.code]).toEqual([409, "in_use"]);
    expect(refused.json.message).toStartWith("kim@example.com signs in at the OpenID provider");
    await api.call("/api/oidc", { method: "DELETE", session: true, body: {} });
    expect((await api.call(`/api/owners/${id}/link`, { method: "POST", session: true, body: {} })).status).toBe(201);
  });

  test("works in two tabs of one browser", async () => {
    await configure();
    provider.accounts.set("kim", kim);
    const browser = new Browser();
    const [first, second] = [await browser.start(), await browser.start()];
    expect((await browser.finish(await provider.signIn(second, "kim"))).status).toBe(200);
    expect((await browser.finish(await provider.signIn(first, "kim"))).status).toBe(200);
  });

  test("starts a new session, whatever cookie the browser had", async () => {
    await configure();
    provider.accounts.set("kim", kim);
    const browser = new Browser();
    browser.cookies.set("relay_session", "a".repeat(43));
    await browser.signIn("kim");
    const first = browser.cookies.get("relay_session");
    expect(first).not.toBe("a".repeat(43));
    await browser.signIn("kim");
    expect(browser.cookies.get("relay_session")).not.toBe(first as string);
  });
});

describe("the roles of groups", () => {
  test("follow the provider at the next sign-in", async () => {
    await configure({ roles: [SUPPORT, ADMINS, { group: "staff", app: "shop", environment: "production", role: "viewer", payloads: true }] });
    provider.accounts.set("kim", kim);
    await new Browser().signIn("kim");
    expect((await member(kim.email))?.groupMemberships).toEqual([
      { app: "shop", environment: "production", role: "support", payloads: false },
      { app: "shop", environment: "production", role: "viewer", payloads: true },
    ]);
    provider.accounts.set("kim", { ...kim, groups: ["admins"] });
    const browser = new Browser();
    await browser.signIn("kim");
    expect((await member(kim.email))?.groupMemberships).toEqual([{ app: "*", environment: "*", role: "owner", payloads: true }]);
    expect((await audited()).slice(-2)).toEqual([
      ["owner.roles_changed", "owner:kim@example.com"],
      ["owner.signed_in", "owner:kim@example.com"],
    ]);
  });

  test("end with the groups, also in the sessions that are open", async () => {
    await configure();
    provider.accounts.set("kim", kim);
    const open = new Browser();
    await open.signIn("kim");
    provider.accounts.set("kim", { ...kim, groups: [] });
    const refused = await new Browser().signIn("kim");
    expect([refused.status, refused.json.code]).toEqual([403, "oidc_refused"]);
    expect(refused.json.message).toBe("No group of yours at Example ID gives a role on this server: ask an owner for one.");
    expect((await audited()).slice(-2)).toEqual([
      ["owner.roles_changed", "owner:kim@example.com"],
      ["owner.signin_refused", "owner:kim@example.com"],
    ]);
    expect((await open.session()).apps).toEqual([]);
  });

  test("end if the domain of the address is no longer allowed", async () => {
    await configure({ domains: ["example.com"] });
    provider.accounts.set("kim", kim);
    const open = new Browser();
    await open.signIn("kim");
    await configure({ domains: ["other.example"] });
    expect((await new Browser().signIn("kim")).json.code).toBe("oidc_refused");
    expect((await member(kim.email))?.groupMemberships).toEqual([]);
    expect((await open.session()).apps).toEqual([]);
  });

  test("never end for the last owner of everything", async () => {
    await configure();
    provider.accounts.set("kim", { ...kim, groups: ["admins"] });
    await new Browser().signIn("kim");
    const ann = await member("ann@example.com");
    await api.store.write("dashboard", (tx) => tx.run("DELETE FROM owner WHERE id = ?1", ann?.id ?? ""));
    provider.accounts.set("kim", { ...kim, groups: ["support"] });
    const browser = new Browser();
    expect((await browser.signIn("kim")).status).toBe(200);
    expect((await browser.session()).may).toContain("manage_server");
  });

  test("leave out an app that was deleted", async () => {
    await configure({ roles: [SUPPORT, { group: "support", role: "viewer", app: "gone" }] });
    provider.accounts.set("kim", kim);
    await new Browser().signIn("kim");
    expect((await member(kim.email))?.groupMemberships.length).toBe(1);
  });
});

/** The tables that a refused sign-in may change: its own row, and the audit. */
const CHANGED = { audit: 1 };

interface BadSignin {
  name: string;
  account?: object;
  settings?: object;
  tamper?: (claims: Record<string, unknown>) => Record<string, unknown>;
  response?: (search: string) => string;
  code: string;
  message: string;
}

const setParameter = (name: string, value: string | null) => (search: string) => {
  const query = new URLSearchParams(search);
  if (value === null) query.delete(name);
  else query.set(name, value);
  return `?${query}`;
};

const BAD: readonly BadSignin[] = [
  {
    name: "a wrong state",
    response: setParameter("state", "x".repeat(43)),
    code: "oidc_failed",
    message: "This sign-in was completed before, has expired, or began in another browser",
  },
  { name: "no state", response: setParameter("state", null), code: "oidc_failed", message: "This sign-in was completed before" },
  { name: "a wrong code", response: setParameter("code", "wrong"), code: "oidc_failed", message: "did not accept the code of this sign-in" },
  {
    name: "the issuer of another provider (mix-up)",
    response: setParameter("iss", "https://evil.example.com"),
    code: "oidc_failed",
    message: "Example ID",
  },
  { name: "no issuer, although the provider names it", response: setParameter("iss", null), code: "oidc_failed", message: "Example ID" },
  {
    name: "a refusal of the provider",
    response: (search) => setParameter("error", "access_denied")(setParameter("code", null)(search)),
    code: "oidc_failed",
    message: "You did not sign in at Example ID",
  },
  {
    name: "a token for another audience",
    tamper: (claims) => ({ ...claims, aud: "another" }),
    code: "oidc_failed",
    message: "The ID token of Example ID is for another client",
  },
  {
    name: "a token of another issuer",
    tamper: (claims) => ({ ...claims, iss: "https://evil.example.com" }),
    code: "oidc_failed",
    message: "comes from another issuer",
  },
  { name: "an expired token", tamper: (claims) => ({ ...claims, exp: 1 }), code: "oidc_failed", message: "The ID token of Example ID has expired" },
  {
    name: "a token with another nonce",
    tamper: (claims) => ({ ...claims, nonce: "another" }),
    code: "oidc_failed",
    message: "belongs to another sign-in",
  },
  { name: "a token without a nonce", tamper: ({ nonce: _, ...claims }) => claims, code: "oidc_failed", message: "Example ID" },
  {
    name: "a token for another person than the user info",
    tamper: (claims) => ({ ...claims, sub: "other" }),
    code: "oidc_failed",
    message: "Example ID",
  },
  {
    name: "a group that gives no role",
    account: { ...kim, groups: ["staff"] },
    code: "oidc_refused",
    message: "No group of yours at Example ID gives a role on this server",
  },
  { name: "no groups", account: { email: kim.email, email_verified: true }, code: "oidc_refused", message: "No group of yours" },
  {
    name: "a domain that is not allowed",
    settings: { domains: ["other.example"] },
    code: "oidc_refused",
    message: "Addresses of example.com may not sign in on this server: use an address of other.example.",
  },
  {
    name: "a subdomain of an allowed domain",
    account: { ...kim, email: "kim@sub.example.com" },
    settings: { domains: ["example.com"] },
    code: "oidc_refused",
    message: "Addresses of sub.example.com may not sign in",
  },
  {
    name: "an unverified address",
    account: { ...kim, email_verified: false },
    code: "oidc_refused",
    message: "has not verified your email address kim@example.com",
  },
  { name: "no address", account: { groups: ["support"] }, code: "oidc_refused", message: "sent no email address" },
];

describe("a sign-in with", () => {
  for (const { name, account = kim, settings = {}, tamper, response, code, message } of BAD)
    test(`${name} is refused in one sentence, changes nothing and is audited`, async () => {
      await configure(settings);
      provider.accounts.set("kim", account);
      const browser = new Browser();
      const search = await provider.signIn(await browser.start(), "kim");
      provider.tamper = tamper ?? null;
      const before = await api.snapshot();
      const refused = await browser.finish(response?.(search) ?? search);
      expect([refused.json.code, refused.status]).toEqual([code, code === "oidc_failed" ? 401 : 403]);
      expect(refused.json.message).toContain(message);
      expect(refused.json.message).toMatch(/^[^\n]{20,250}[.]$/);
      const { oidc_signin: used = 0, limit_window: _, ...changes } = changesBetween(before, await api.snapshot());
      expect(changes).toEqual(CHANGED);
      expect([0, -1]).toContain(used);
      expect((await lastAudited())?.[0]).toBe("owner.signin_refused");
      expect((await browser.session()).owner).toBeNull();
    });
});

describe("a state", () => {
  beforeEach(async () => {
    await configure();
    provider.accounts.set("kim", kim);
  });

  test("works once", async () => {
    const browser = new Browser();
    const search = await provider.signIn(await browser.start(), "kim");
    expect((await browser.finish(search)).status).toBe(200);
    expect((await browser.finish(search)).json.code).toBe("oidc_failed");
  });

  test("works once for two requests at the same time", async () => {
    const browser = new Browser();
    const search = await provider.signIn(await browser.start(), "kim");
    const replies = await Promise.all([browser.finish(search), browser.finish(search)]);
    expect(replies.map(({ status }) => status).sort()).toEqual([200, 401]);
  });

  test("belongs to one browser, and another one does not use it up", async () => {
    const [browser, foreign] = [new Browser(), new Browser()];
    const search = await provider.signIn(await browser.start(), "kim");
    await foreign.start();
    expect((await foreign.finish(search)).json.code).toBe("oidc_failed");
    expect((await new Browser().finish(search)).json.code).toBe("oidc_failed");
    expect((await browser.finish(search)).status).toBe(200);
  });

  for (const [minutes, status] of [
    [9, 200],
    [10, 401],
  ] as const)
    test(`${status === 200 ? "works" : "has expired"} after ${minutes} minutes`, async () => {
      const browser = new Browser();
      const search = await provider.signIn(await browser.start(), "kim");
      await api.clock.advance(minutes * MINUTE_MS);
      expect((await browser.finish(search)).status).toBe(status);
    });

  test("of an earlier provider is refused", async () => {
    const browser = new Browser();
    const search = await provider.signIn(await browser.start(), "kim");
    await configure({ clientId: "another" });
    expect((await browser.finish(search)).json.message).toBe("The OpenID provider of this server was changed meanwhile: sign in again.");
  });

  for (const path of [
    "//evil.example.com",
    "https://evil.example.com",
    "/\\evil.example.com",
    "\\/evil",
    "javascript:alert(1)",
    "/a\nb",
    "home",
    "/.//evil.example.com",
    "/a/..//evil.example.com",
    "/%2e//evil.example.com",
  ])
    test(`never leads to ${JSON.stringify(path)}`, async () => {
      const refused = await new Browser().post("/api/session/oidc/start", { returnTo: path });
      expect([refused.status, refused.json.code]).toEqual([400, "invalid_input"]);
    });

  test("needs the dashboard's own page, at both ends", async () => {
    for (const path of ["/api/session/oidc/start", "/api/session/oidc"]) {
      const body = path.endsWith("start") ? {} : { response: "?state=a" };
      const reply = await api.call(path, { method: "POST", body, headers: { origin: "https://evil.example.com" } });
      expect(reply.json.code).toBe("wrong_origin");
    }
  });

  test("is limited by address", async () => {
    const tries = [];
    for (let at = 0; at < 61; at += 1) tries.push(await new Browser().post("/api/session/oidc/start"));
    expect(tries.map(({ json }) => json.code).filter(Boolean)).toEqual(["signin_capped"]);
  });
});

test("a sign-out ends the session here, and names the address that ends it at the provider", async () => {
  await configure();
  provider.accounts.set("kim", kim);
  const browser = new Browser();
  await browser.signIn("kim");
  const { json } = await browser.post("/api/session/oidc/end");
  const url = new URL(json.url);
  expect([url.origin + url.pathname, url.searchParams.get("post_logout_redirect_uri")]).toEqual([`${provider.issuer}/session/end`, `${api.base}/`]);
  expect(url.searchParams.get("id_token_hint")?.split(".").length).toBe(3);
  expect((await browser.session()).owner).toBeNull();
  const other = await api.call("/api/session/oidc/end", { method: "POST", session: true, body: {} });
  expect(other.json).toEqual({ url: null });
});

describe("a confirmation", () => {
  const browser = () => new Browser();
  const confirm = async (of: Browser) => (await of.post("/api/session/confirm/oidc", { returnTo: "/settings" })).json.url as string;
  const isRecent = async (of: Browser) =>
    (await of.post("/api/oidc/passwords", { passwords: true }, "PUT")).json.code !== "reauthentication_required";

  async function signedIn(): Promise<Browser> {
    await configure();
    provider.accounts.set("boss", { ...kim, groups: ["admins"] });
    provider.accounts.set("other", { email: "other@example.com", email_verified: true, groups: ["admins"] });
    const of = browser();
    await of.signIn("boss");
    await api.clock.advance(15 * MINUTE_MS);
    expect(await isRecent(of)).toBe(false);
    return of;
  }

  test("signs in at the provider again, and keeps the session", async () => {
    const of = await signedIn();
    const refused = await of.post("/api/oidc/passwords", { passwords: true }, "PUT");
    expect(refused.json.methods).toEqual(["oidc"]);
    const url = await confirm(of);
    expect([new URL(url).searchParams.get("prompt"), new URL(url).searchParams.get("max_age")]).toEqual(["login", "0"]);
    const cookie = of.cookies.get("relay_session");
    const reply = await of.finish(await provider.signIn(url, "boss"));
    expect([reply.status, reply.json]).toEqual([200, { owner: { email: kim.email }, returnTo: "/settings" }]);
    expect([of.cookies.get("relay_session"), await isRecent(of)]).toEqual([cookie, true]);
    expect(await lastAudited()).toEqual(["owner.confirmed", "owner:kim@example.com"]);
  });

  for (const [what, name, tamper, code] of [
    ["another person", "other", null, "oidc_refused"],
    ["an earlier sign-in at the provider", "boss", (claims: object) => ({ ...claims, auth_time: 1 }), "oidc_failed"],
    ["no time of the sign-in", "boss", ({ auth_time: _, ...claims }: Record<string, unknown>) => claims, "oidc_failed"],
  ] as const)
    test(`is refused with ${what}, and audited`, async () => {
      const of = await signedIn();
      const search = await provider.signIn(await confirm(of), name);
      provider.tamper = tamper;
      const before = await api.snapshot();
      const reply = await of.finish(search);
      expect(reply.json.code).toBe(code);
      expect(changesBetween(before, await api.snapshot())).toEqual({ audit: 1, oidc_signin: -1 });
      expect(await isRecent(of)).toBe(false);
    });
});

describe("the provider", () => {
  test("is shown without its secret, keeps it for the same client, and forgets it for another", async () => {
    await configure();
    const get = async () => (await api.call("/api/oidc", { session: true })).json;
    expect((await get()).redirectUrl).toBe(`${api.base}/signin/oidc`);
    expect(JSON.stringify(await get())).not.toContain(CLIENT_SECRET);
    const rows = await api.store.read((tx) => tx.all<{ secret: Uint8Array }>("SELECT client_secret AS secret FROM oidc_provider"));
    expect(Buffer.from(rows[0]?.secret ?? []).toString()).not.toContain(CLIENT_SECRET);
    const audit = await api.store.read((tx) => tx.all<object>("SELECT * FROM audit WHERE action = 'oidc.provider_set'"));
    expect(audit.length).toBe(1);
    expect(JSON.stringify(audit)).not.toContain(CLIENT_SECRET);
    await configure({ clientSecret: "" });
    expect((await get()).provider.hasSecret).toBe(true);
    await configure({ clientSecret: "", clientId: "another" });
    expect((await get()).provider.hasSecret).toBe(false);
    expect((await api.call("/api/oidc", { method: "DELETE", session: true })).json.provider).toBeNull();
    expect((await new Browser().post("/api/session/oidc/start")).json.code).toBe("oidc_not_set");
  });

  test("is tested by its discovery", async () => {
    await configure();
    const check = () => api.call("/api/oidc/test", { method: "POST", session: true, body: {} });
    expect((await check()).json).toEqual({ issuer: provider.issuer, signOut: true });
    await configure({ issuer: `${provider.issuer}/nothing` });
    expect((await check()).json.code).toBe("oidc_failed");
    await configure({ issuer: "https://10.1.2.3" });
    expect((await check()).json.message).toContain("--allow-private");
  });

  for (const [what, body, message] of [
    ["http on another machine", { issuer: "http://id.example.com" }, "`issuer` is not the issuer URL"],
    ["a password in the issuer", { issuer: "https://a:b@id.example.com" }, "`issuer` is not the issuer URL"],
    ["everyone without a domain", { roles: [{ group: "*", role: "viewer" }] }, "`roles[0].group` is *"],
    ["a wildcard domain", { domains: ["*.example.com"] }, "`domains` contains a text that is no domain"],
    ["a client ID of two lines", { clientId: "a\nb" }, "`clientId` is empty or contains control characters"],
  ] as const)
    test(`is refused with ${what}`, async () => {
      const usual = { issuer: "https://id.example.com", clientId: "relay", roles: [] };
      const { status, json } = await api.call("/api/oidc", { method: "PUT", session: true, body: { ...usual, ...body } });
      expect([status, json.code]).toEqual([400, "invalid_input"]);
      expect(json.message).toContain(message);
    });
});

test("an account that was created again at the provider signs in after the member is unlinked", async () => {
  await configure();
  provider.accounts.set("kim", kim);
  const before = new Browser();
  await before.signIn("kim");
  provider.accounts.set("kim2", kim);
  const refused = await new Browser().signIn("kim2");
  expect([refused.status, refused.json.code, refused.json.message]).toEqual([
    403,
    "oidc_refused",
    "kim@example.com is already linked to another account of Example ID: ask an owner to unlink it under Settings › Members, or with relay members unlink.",
  ]);
  const found = await member("kim@example.com");
  const unlink = () => api.call(`/api/owners/${found?.id}/identity`, { method: "DELETE", session: true });
  expect((await unlink()).status).toBe(204);
  expect(await lastAudited()).toEqual(["owner.unlinked", "owner:kim@example.com"]);
  expect((await before.session()).owner).toBeNull();
  const again = await unlink();
  expect([again.status, again.json.code]).toEqual([404, "not_found"]);
  expect((await new Browser().signIn("kim2")).json.owner.email).toBe("kim@example.com");
  expect((await members()).length).toBe(2);
  expect((await new Browser().signIn("kim")).json.code).toBe("oidc_refused");
});

describe("sign-in with passwords", () => {
  const switchTo = (passwords: boolean) => api.call("/api/oidc/passwords", { method: "PUT", session: true, body: { passwords } });
  const PASSWORD = "a long enough password";

  beforeEach(async () => {
    await configure();
    const passwordHash = await hashPassword(PASSWORD);
    await api.store.write("dashboard", (tx) => createOwner(tx, { email: "bob@example.com", passwordHash, nowMs: api.clock.now() }));
  });
  const signIn = () => new Browser().post("/api/session", { email: "bob@example.com", password: PASSWORD });

  test("stays on until an owner has signed in at the provider", async () => {
    expect((await switchTo(false)).json.code).toBe("in_use");
    provider.accounts.set("kim", kim);
    await new Browser().signIn("kim");
    expect((await switchTo(false)).json.message).toContain("No owner of everything has signed in with Example ID yet");
    expect((await signIn()).status).toBe(200);
  });

  test("ends every session that did not begin at the provider, once it is off", async () => {
    provider.accounts.set("boss", { ...kim, groups: ["admins"] });
    const boss = new Browser();
    await boss.signIn("boss");
    const bea = await enroll(api, await addSigned(api, "bea@example.com"));
    const count = async () => (await api.store.read((tx) => tx.all("SELECT id FROM session"))).length;
    const before = await count();
    const off = await boss.post("/api/oidc/passwords", { passwords: false }, "PUT");
    expect([off.status, off.json.provider.passwords, await count()]).toEqual([200, false, 1]);
    expect((await boss.session()).owner.email).toBe("kim@example.com");
    expect((await bea.call("/api/sessions")).json.code).toBe("unauthenticated");
    expect((await api.call("/api/sessions", { session: true })).json.code).toBe("unauthenticated");
    const row = await api.store.read((tx) => tx.get<{ after: string }>("SELECT after FROM audit WHERE action = 'oidc.passwords_changed'"));
    expect(JSON.parse(row?.after ?? "")).toEqual({ passwords: false, sessionsEnded: before - 1 });
    const again = await boss.post("/api/oidc/passwords", { passwords: true }, "PUT");
    expect([again.json.provider.passwords, await count()]).toEqual([true, 1]);
  });

  test("has no use for an invitation: the provider accepts it, and its link ends", async () => {
    const invite = { email: "kim@example.com", memberships: [{ role: "viewer", app: "shop" }] };
    const { link } = (await api.call("/api/owners", { method: "POST", session: true, body: invite })).json;
    const use = () => new Browser().post("/api/session/reset", { token: new URL(link.url).hash.slice(1), password: PASSWORD });
    provider.accounts.set("kim", { ...kim, groups: [] });
    const browser = new Browser();
    expect((await browser.signIn("kim")).json.owner.email).toBe("kim@example.com");
    expect((await browser.session()).apps.map(({ id }: { id: string }) => id)).toEqual(["shop"]);
    const used = await use();
    expect([used.status, used.json.code]).toEqual([401, "unauthenticated"]);
    expect(await lastAudited()).toEqual(["owner.link_refused", "owner:kim@example.com"]);
    expect((await member("kim@example.com"))?.hasPassword).toBe(false);
  });

  test("that was begun before it was switched off does not end with a code, and no password is changed", async () => {
    provider.accounts.set("boss", { ...kim, groups: ["admins"] });
    const boss = new Browser();
    await boss.signIn("boss");
    const bea = await enroll(api, await addSigned(api, "bea@example.com"));
    await api.clock.advance(MINUTE_MS);
    const token = await beginSignin(api, bea.email);
    expect((await switchTo(false)).status).toBe(200);
    const before = await api.snapshot();
    const late = await new Browser().post("/api/session/factor", { token, totp: codeOf(bea.secret, api.clock.now()) });
    expect([late.status, late.json.code]).toEqual([403, "password_signin_off"]);
    const body = { current: FACTOR_PASSWORD, password: "another good one" };
    const changed = await boss.post("/api/session/password", body, "PUT");
    expect([changed.status, changed.json.code]).toEqual([403, "password_signin_off"]);
    expect(changesBetween(before, await api.snapshot())).toEqual({});
  });

  test("is off, then on again with another provider or without one", async () => {
    provider.accounts.set("boss", { ...kim, groups: ["admins"] });
    const boss = new Browser();
    await boss.signIn("boss");
    expect((await switchTo(false)).json.provider.passwords).toBe(false);
    const refused = await signIn();
    expect([refused.status, refused.json.code]).toEqual([403, "password_signin_off"]);
    const link = await new Browser().post("/api/session/reset", { token: "a".repeat(32), password: PASSWORD });
    expect(link.json.code).toBe("password_signin_off");
    expect((await new Browser().signIn("boss")).status).toBe(200);
    expect((await new Browser().session()).signin).toEqual({ passwords: false, provider: "Example ID" });
    const moved = { name: "Example ID", issuer: "https://id.example.com", clientId: CLIENT_ID, roles: [ADMINS] };
    expect((await boss.post("/api/oidc", moved, "PUT")).status).toBe(200);
    expect((await signIn()).status).toBe(200);
    const rows = await api.store.read((tx) => tx.all<{ after: string }>("SELECT after FROM audit WHERE action = 'oidc.passwords_changed'"));
    expect(rows.length).toBe(1);
  });
});
