/** Tests sign-in to the dashboard: its methods, the cookie, and the limits on pages of other origins. */
import { describe, expect, test } from "bun:test";
import { hashToken } from "../../src/base/id.ts";
import { createOwner, hashPassword, listOwners, passwordQueue, setOwnerPassword } from "../../src/platform/account/owner.ts";
import { createSigninLink } from "../../src/platform/account/session.ts";
import { type ApiServer, changesBetween, type Reply, startApi } from "../kit/api-server.ts";
import { START_MS } from "../kit/virtual-clock.ts";

const PASSWORD = "correct horse battery";

async function withOwner(api: ApiServer, email = "bea@example.com"): Promise<string> {
  const passwordHash = await hashPassword(PASSWORD);
  return (await api.store.write("dashboard", (tx) => createOwner(tx, { email, passwordHash, nowMs: START_MS }))).id;
}

/** Starts a server without an owner, like a first start. */
async function startUnowned(): Promise<ApiServer> {
  const api = await startApi();
  await api.store.write("dashboard", (tx) => tx.run("DELETE FROM owner"));
  return api;
}

function makeLink(api: ApiServer, kind: "setup" | "reset" | "local", ownerId: string | null = null): Promise<{ token: string }> {
  return api.store.write("dashboard", (tx) => createSigninLink(tx, { kind, ownerId, nowMs: api.clock.now() }));
}

function post(api: ApiServer, path: string, body: unknown, headers: Record<string, string> = {}): Promise<Reply> {
  return api.call(path, { method: "POST", body, headers: { origin: api.base, ...headers } });
}

function cookieOf(reply: Reply): string {
  return (reply.headers.get("set-cookie") ?? "").split(";")[0] ?? "";
}

describe("email and password", () => {
  test("sign in, with a cookie that scripts and other sites cannot read", async () => {
    await using api = await startApi();
    await withOwner(api);
    const reply = await post(api, "/api/session", { email: "Bea@Example.com ", password: PASSWORD });
    expect([reply.status, reply.json]).toEqual([200, { owner: { email: "bea@example.com" } }]);
    expect(reply.headers.getSetCookie()[0]).toMatch(/^relay_session=\w{43}; Path=\/; Max-Age=2592000; HttpOnly; SameSite=Strict$/);
    const session = await api.call("/api/session", { headers: { cookie: cookieOf(reply) } });
    expect(session.json).toMatchObject({
      owner: { email: "bea@example.com" },
      setupNeeded: false,
      mode: "server",
    });
  });

  test("fail with the same answer whether the email or the password is wrong, and change no row", async () => {
    await using api = await startApi();
    await withOwner(api);
    const before = await api.snapshot();
    const wrong = await post(api, "/api/session", { email: "bea@example.com", password: "not the password" });
    const nobody = await post(api, "/api/session", { email: "nobody@example.com", password: PASSWORD });
    expect([wrong.status, wrong.text]).toEqual([nobody.status, nobody.text]);
    expect(wrong.json.code).toBe("unauthenticated");
    expect(wrong.headers.get("set-cookie")).toBeNull();
    expect(changesBetween(before, await api.snapshot())).toEqual({});
  });

  for (const [what, end] of [
    ["changed", (api: ApiServer, id: string) => api.store.write("app", (tx) => setOwnerPassword(tx, id, "another hash", START_MS))],
    ["a removed owner's", (api: ApiServer, id: string) => api.store.write("app", (tx) => tx.run("DELETE FROM owner WHERE id = ?1", id))],
  ] as const) {
    test(`are rejected if the password was ${what} while the sign-in waited in the queue`, async () => {
      await using api = await startApi();
      const id = await withOwner(api);
      const turn = Promise.withResolvers<void>();
      using slot = passwordQueue.take("known");
      const held = slot.run(() => turn.promise);
      const asked = post(api, "/api/session", { email: "bea@example.com", password: PASSWORD });
      await Bun.sleep(100);
      await end(api, id);
      turn.resolve();
      await held;
      const reply = await asked;
      expect([reply.status, reply.json.code, reply.headers.get("set-cookie")]).toEqual([401, "unauthenticated", null]);
      expect(await api.store.read((tx) => tx.all("SELECT 1 FROM session WHERE owner_id = ?1", id))).toEqual([]);
    });
  }

  test("are audited when the password changes, and end the one-time link that could set another", async () => {
    await using api = await startApi();
    const ownerId = await withOwner(api);
    const cookie = cookieOf(await post(api, "/api/session", { email: "bea@example.com", password: PASSWORD }));
    const { token } = await makeLink(api, "reset", ownerId);
    const changed = { current: PASSWORD, password: "another good one" };
    expect((await api.call("/api/session/password", { method: "PUT", body: changed, headers: { cookie, origin: api.base } })).status).toBe(204);
    const audited = await api.store.read((tx) => tx.get("SELECT actor, action, target FROM audit ORDER BY seq DESC LIMIT 1"));
    expect(audited).toEqual({ actor: "owner:bea@example.com", action: "owner.password_changed", target: "owner:bea@example.com" });
    expect((await post(api, "/api/session/reset", { token, password: "a third good one" })).status).toBe(401);
  });

  test("need the dashboard's own Origin, so that no other page signs a user in", async () => {
    await using api = await startApi();
    const body = { email: "bea@example.com", password: PASSWORD };
    for (const origin of ["https://evil.example", "null"]) {
      expect((await post(api, "/api/session", body, { origin })).json.code).toBe("wrong_origin");
    }
    expect((await api.call("/api/session", { method: "POST", body })).json.code).toBe("wrong_origin");
  });

  const addresses: [string, Parameters<typeof startApi>[0], (base: string) => [origin: string, host?: string], RegExp][] = [
    [
      "another host than the base URL's",
      { baseUrl: "https://relay.example.com" },
      (base) => [base],
      /open the dashboard at https:\/\/relay\.example\.com\.$/,
    ],
    [
      "a tunnel unknown to the server",
      {},
      () => ["https://tunnel.example", "tunnel.example"],
      /opened at https:\/\/tunnel\.example, which is not an address of this server: start the server with --base-url/,
    ],
    ["another page's origin", {}, () => ["https://evil.example"], /open the dashboard at http:\/\/127\.0\.0\.1:\d+\.$/],
    [
      "the tunnel of local development",
      { mode: "local", baseUrl: "https://tunnel.example" },
      () => ["https://tunnel.example", "tunnel.example"],
      /to the receivers: open the dashboard at http:\/\/127\.0\.0\.1:\d+ on the machine it runs on\.$/,
    ],
    [
      "another host in local development",
      { mode: "local" },
      () => ["http://relay.lan", "relay.lan"],
      /open http:\/\/127\.0\.0\.1:\d+ on the machine it runs on\.$/,
    ],
  ];
  test.each(addresses)("from %s are rejected with the correct address", async (_, config, from, sentence) => {
    await using api = await startApi(config);
    const [origin, host] = from(api.base);
    const headers = { origin, ...(host === undefined ? {} : { host }) };
    const reply = await post(api, "/api/session", { email: "bea@example.com", password: PASSWORD }, headers);
    expect([reply.status, reply.json.code, reply.json.message]).toEqual([403, "wrong_origin", expect.stringMatching(sentence)]);
  });

  test("set a Secure cookie bound to the host over HTTPS, and require https in the Origin", async () => {
    await using api = await startApi({ baseUrl: "https://relay.example.com" });
    await withOwner(api);
    const body = { email: "bea@example.com", password: PASSWORD };
    expect((await post(api, "/api/session", body)).json.code).toBe("wrong_origin");
    const reply = await post(api, "/api/session", body, { origin: "https://relay.example.com" });
    expect(reply.headers.getSetCookie()).toEqual([
      expect.stringMatching(/^__Host-relay_session=\w{43}; Path=\/; .*; Secure$/),
      expect.stringMatching(/^__Host-relay_device=[\w.-]+; Path=\/; .*; HttpOnly; SameSite=Strict; Secure$/),
    ]);
  });

  test("give each sign-in a new token, whatever cookie came with it (no fixation)", async () => {
    await using api = await startApi();
    await withOwner(api);
    const fixed = `relay_session=${"A".repeat(43)}`;
    const reply = await post(api, "/api/session", { email: "bea@example.com", password: PASSWORD }, { cookie: fixed });
    expect(cookieOf(reply)).not.toBe(fixed);
    expect((await api.call(`${api.E}/keys`, { headers: { cookie: fixed } })).status).toBe(401);
  });
});

describe("a one-time link", () => {
  test("for set-up creates the first owner once", async () => {
    await using api = await startUnowned();
    const { token } = await makeLink(api, "setup");
    const body = { token, email: "cleo@example.com", password: PASSWORD };
    const reply = await post(api, "/api/setup", body);
    expect([reply.status, reply.json]).toEqual([201, { owner: { email: "cleo@example.com" } }]);
    expect((await api.call(`${api.E}/keys`, { headers: { cookie: cookieOf(reply) } })).status).toBe(200);
    const again = await post(api, "/api/setup", { ...body, email: "eve@example.com" });
    expect([again.status, again.json.code]).toEqual([401, "unauthenticated"]);
  });

  test("for set-up stays valid after a password that is too short", async () => {
    await using api = await startUnowned();
    const { token } = await makeLink(api, "setup");
    const body = { token, email: "cleo@example.com", password: "short" };
    expect((await post(api, "/api/setup", body)).json.code).toBe("invalid_input");
    expect((await post(api, "/api/setup", { ...body, password: PASSWORD })).status).toBe(201);
  });

  test.each<[string, (api: ApiServer) => Promise<unknown>]>([
    [
      "by another set-up link",
      async (api) => {
        const nowMs = api.clock.now();
        const token = "a".repeat(32);
        await api.store.write("dashboard", (tx) =>
          tx.run("INSERT INTO signin_link (token_hash, kind, owner_id, expires_at) VALUES (?1, 'setup', NULL, ?2)", hashToken(token), nowMs + 1_000),
        );
        const body = { token, email: "cleo@example.com", password: PASSWORD };
        expect((await post(api, "/api/setup", body)).status).toBe(201);
      },
    ],
    ["by relay admin create", (api) => withOwner(api)],
    [
      "by a local link",
      async (api) => {
        const { token } = await makeLink(api, "local");
        expect((await post(api, "/api/session/link", { token })).status).toBe(200);
      },
    ],
    [
      "by a restored copy, which holds an owner and a link",
      (api) => api.store.write("dashboard", (tx) => tx.run("INSERT INTO owner (id, email, created_at) VALUES ('own_1', 'a@example.com', 1)")),
    ],
  ])("for set-up becomes invalid when the first owner is created %s", async (_, makeOwner) => {
    await using api = await startUnowned();
    const { token } = await makeLink(api, "setup");
    await makeOwner(api);
    const owners = await api.store.read(listOwners);
    const reply = await post(api, "/api/setup", { token, email: "eve@example.com", password: PASSWORD });
    expect([reply.status, reply.json.code]).toEqual([401, "unauthenticated"]);
    expect(await api.store.read(listOwners)).toEqual(owners);
  });

  test("for set-up is deleted in the owner's transaction, and stays if that transaction fails", async () => {
    await using api = await startUnowned();
    await makeLink(api, "setup");
    const links = () => api.store.read((tx) => tx.all("SELECT 1 FROM signin_link WHERE kind = 'setup'"));
    await api.store
      .write("dashboard", async (tx) => {
        await createOwner(tx, { email: "bea@example.com", passwordHash: null, nowMs: START_MS });
        expect(await tx.all("SELECT 1 FROM signin_link WHERE kind = 'setup'")).toEqual([]);
        throw new Error("undone");
      })
      .catch(() => undefined);
    expect(await links()).toHaveLength(1);
    await withOwner(api);
    expect(await links()).toEqual([]);
  });

  test("for a reset sets the password and ends older sessions", async () => {
    await using api = await startApi();
    const ownerId = await withOwner(api);
    const first = cookieOf(await post(api, "/api/session", { email: "bea@example.com", password: PASSWORD }));
    const { token } = await makeLink(api, "reset", ownerId);
    expect((await post(api, "/api/session/reset", { token, password: "another good one" })).status).toBe(200);
    expect((await api.call(`${api.E}/keys`, { headers: { cookie: first } })).status).toBe(401);
    expect((await post(api, "/api/session", { email: "bea@example.com", password: "another good one" })).status).toBe(200);
  });

  test("for the local dashboard signs in without a password, once, within ten minutes", async () => {
    await using api = await startApi({ mode: "local" });
    const { token } = await makeLink(api, "local");
    const reply = await post(api, "/api/session/link", { token });
    expect(reply.status).toBe(200);
    expect((await api.call(`${api.E}/keys`, { headers: { cookie: cookieOf(reply) } })).status).toBe(200);
    expect((await post(api, "/api/session/link", { token })).json.code).toBe("unauthenticated");
    const late = await makeLink(api, "local");
    api.clock.jump(10 * 60_000 + 1);
    expect((await post(api, "/api/session/link", { token: late.token })).json.code).toBe("unauthenticated");
  });

  test("of one kind does not work as another kind", async () => {
    await using api = await startApi();
    const { token } = await makeLink(api, "local");
    const setup = await post(api, "/api/setup", { token, email: "eve@example.com", password: PASSWORD });
    expect(setup.json.code).toBe("unauthenticated");
  });

  test("can be checked without being used, and the check reveals only whether it works", async () => {
    await using api = await startUnowned();
    const look = async (kind: string, token: string) => {
      const { status, json } = await post(api, "/api/link", { kind, token });
      return [status, json];
    };
    const setup = await makeLink(api, "setup");
    for (let n = 0; n < 20; n++) expect(await look("setup", setup.token)).toEqual([200, { live: true }]);
    expect(await look("reset", setup.token)).toEqual([200, { live: false }]);
    expect(await look("setup", "x".repeat(32))).toEqual([200, { live: false }]);
    const ownerId = await withOwner(api);
    expect(await look("setup", setup.token)).toEqual([200, { live: false }]);
    const reset = await makeLink(api, "reset", ownerId);
    const before = await api.snapshot();
    expect(await look("reset", reset.token)).toEqual([200, { live: true }]);
    expect(changesBetween(before, await api.snapshot())).toEqual({});
    api.clock.jump(3_600_001);
    expect(await look("reset", reset.token)).toEqual([200, { live: false }]);
  });

  test("has the same rate limit for checks as for use", async () => {
    await using api = await startApi();
    const codes: (string | undefined)[] = [];
    for (let n = 0; n < 12; n++) codes.push((await post(api, "/api/link", { kind: "reset", token: `guess${n}` })).json.code);
    expect(codes).toEqual([...Array(10).fill(undefined), "signin_capped", "signin_capped"]);
    const foreign = await post(api, "/api/link", { kind: "reset", token: "x" }, { origin: "https://evil.example" });
    expect(foreign.json.code).toBe("wrong_origin");
  });

  test("has a limit on guesses", async () => {
    await using api = await startApi();
    const codes: string[] = [];
    for (let guess = 0; guess < 12; guess++) {
      codes.push((await post(api, "/api/session/link", { token: `guess${guess}` })).json.code);
    }
    expect(codes.filter((code) => code === "unauthenticated")).toHaveLength(10);
    expect(codes.at(-1)).toBe("signin_capped");
  });
});

describe("a session", () => {
  test("ends when its owner signs out, and the response clears the cookie", async () => {
    await using api = await startApi();
    const reply = await api.call("/api/session", { method: "DELETE", session: true });
    expect([reply.status, reply.text]).toEqual([204, ""]);
    expect(reply.headers.get("set-cookie")).toStartWith("relay_session=; Path=/; Max-Age=0;");
    expect((await api.call(`${api.E}/keys`, { session: true })).status).toBe(401);
  });

  test("is prolonged by use, at most once a day", async () => {
    await using api = await startApi();
    expect((await api.call(`${api.E}/keys`, { session: true })).headers.get("set-cookie")).toBeNull();
    api.clock.jump(86_400_000);
    expect((await api.call(`${api.E}/keys`, { session: true })).headers.get("set-cookie")).toContain("Max-Age=2592000");
    expect((await api.call(`${api.E}/keys`, { session: true })).headers.get("set-cookie")).toBeNull();
  });

  test("is required to see apps and the version", async () => {
    await using api = await startApi();
    expect((await api.call("/api/session")).json).toEqual({
      owner: null,
      setupNeeded: false,
      mode: "server",
      address: null,
      cookies: true,
      signin: { passwords: true, provider: null },
      ofProvider: false,
      version: null,
      apps: [],
      may: [],
      needsFactor: false,
    });
  });
});

describe("in local development", () => {
  test("every route rejects a Host other than this machine's loopback with the port", async () => {
    await using api = await startApi({ mode: "local" });
    const port = new URL(api.base).port;
    for (const host of ["evil.example", `evil.example:${port}`, "127.0.0.1", "127.0.0.1:1", `127.0.0.1.evil.example:${port}`, `localhost.:${port}`]) {
      for (const path of ["/", "/healthz", `${api.E}/keys`, "/openapi.json", "/api/session"]) {
        const reply = await api.call(path, { session: true, headers: { host } });
        expect([host, path, reply.status, reply.json.code]).toEqual([host, path, 403, "wrong_origin"]);
      }
    }
    for (const host of [`127.0.0.1:${port}`, `localhost:${port}`, `[::1]:${port}`, `LOCALHOST:${port}`]) {
      expect((await api.call("/healthz", { headers: { host } })).status).toBe(200);
    }
  });

  test("a tunnel as base URL reaches only the receivers, and the dashboard works at its own address", async () => {
    await using api = await startApi({ mode: "local", baseUrl: "https://tunnel.example" });
    const headers = { host: "tunnel.example" };
    const hook = await api.call("/hooks/shop/orders", { method: "POST", body: {}, headers });
    expect(hook.json.code).toBe("unknown_receiver");
    for (const path of ["/", "/healthz", "/api/session", "/hooksx", "/changes.txt"]) {
      expect([path, (await api.call(path, { headers })).json.code]).toEqual([path, "wrong_origin"]);
    }
    const { token } = await makeLink(api, "local");
    const signedIn = await post(api, "/api/session/link", { token });
    expect([signedIn.status, signedIn.headers.get("set-cookie")]).toEqual([200, expect.not.stringContaining("Secure")]);
  });
});
