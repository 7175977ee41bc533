/** Tests the client API over HTTP: its keys and origins, CORS for pages of other origins, and signed-in people. */
import { describe, expect, test } from "bun:test";
import { DAY_MS } from "../../src/base/limit.ts";
import { ROUTES } from "../../src/interfaces/api/route-list.ts";
import { changesBetween, startApi } from "../kit/api-server.ts";
import { LIVE_ORIGIN, mailedCode, manage, mintAppKey, signIn, visitor } from "../kit/app-visitor.ts";

const LOCAL = { mode: "local" } as const;
const clientRoutes = ROUTES.filter(({ who }) => who === "client" || who === "person");
const fill = (path: string): string => path.replaceAll(/:\w+/g, "some-thing");
const bodyOf = (method: string) => (method === "GET" ? {} : { body: {} });

describe("every route of the client API is rejected", () => {
  test("without a live app key, with CORS headers so that a page can read the error", async () => {
    await using api = await startApi(LOCAL);
    const before = await api.snapshot();
    const origin = "https://page.example";
    for (const { method, path } of clientRoutes) {
      for (const [headers, code, status] of [
        [{}, "unauthenticated", 401],
        [{ "x-app-key": `ak_dev_${"x".repeat(32)}` }, "unauthenticated", 401],
        [{ authorization: `Bearer ps_${"x".repeat(43)}` }, "unauthenticated", 401],
        [{ "x-app-key": api.keys.dev }, "forbidden", 403],
        [{ authorization: `Bearer ${api.keys.live}` }, "forbidden", 403],
      ] as const) {
        const call = { method, headers: { ...headers, origin }, ...bodyOf(method) };
        const reply = await api.call(fill(path), call);
        expect(`${method} ${path} ${reply.status} ${reply.json.code}`).toBe(`${method} ${path} ${status} ${code}`);
        expect(reply.headers.get("access-control-allow-origin")).toBe(origin);
      }
    }
    expect(changesBetween(before, await api.snapshot())).toEqual({});
  });

  test("without a session of that environment, for a person's route", async () => {
    await using api = await startApi(LOCAL);
    const rival = await mintAppKey(api, "production", [LIVE_ORIGIN]);
    const { token } = await signIn(api, "bo@example.com");
    const live = visitor(api, rival, token);
    for (const { method, path } of clientRoutes.filter(({ who }) => who === "person")) {
      const short = fill(path).replace("/client", "");
      const body = method === "GET" ? undefined : {};
      for (const reply of [
        await visitor(api, api.keys.app).call(method, short, body),
        await visitor(api, api.keys.app, `ps_${"x".repeat(43)}`).call(method, short, body),
        await live.call(method, short, body, { origin: LIVE_ORIGIN }),
      ])
        expect(`${method} ${path} ${reply.status} ${reply.json.code}`).toBe(`${method} ${path} 401 signed_out`);
    }
  });

  test("for an unknown field or query parameter, by name", async () => {
    await using api = await startApi(LOCAL);
    const person = await signIn(api, "bo@example.com");
    for (const { method, path } of clientRoutes) {
      const short = fill(path).replace("/client", "");
      const reply = method === "GET" ? await person.call(method, `${short}?qqqq=1`) : await person.call(method, short, { qqqq: 1 });
      expect(`${method} ${path} ${reply.status}`).toBe(`${method} ${path} 400`);
      expect(reply.json.message).toStartWith("`qqqq` is not a known field: remove it");
    }
  });
});

describe("an app key works from", () => {
  const rows: [string, "development" | "production", Record<string, string>, boolean][] = [
    ["any https page in development", "development", { origin: "https://anything.example" }, true],
    ["localhost in development", "development", { origin: "http://localhost:5173" }, true],
    ["a loopback address in development", "development", { origin: "http://127.0.0.1:8080" }, true],
    ["a program outside browsers in development", "development", {}, true],
    ["no remote http page", "development", { origin: "http://anything.example" }, false],
    ["no page without an origin", "development", { origin: "null" }, false],
    ["the origins a live key names", "production", { origin: LIVE_ORIGIN }, true],
    ["no other origin with a live key", "production", { origin: "https://evil.example" }, false],
    ["no origin that ends like it", "production", { origin: `${LIVE_ORIGIN}.evil.example` }, false],
    ["no origin with another port", "production", { origin: `${LIVE_ORIGIN}:8443` }, false],
    ["no origin over http", "production", { origin: LIVE_ORIGIN.replace("https", "http") }, false],
    ["not localhost with a live key", "production", { origin: "http://localhost:5173" }, false],
    ["no request without an origin, with a live key", "production", {}, false],
    ["not the service's own origin with a live key that does not name it", "production", { "sec-fetch-site": "same-origin" }, false],
  ];
  test.each(rows)("%s", async (_, environment, headers, works) => {
    await using api = await startApi(LOCAL);
    const key = await mintAppKey(api, environment, environment === "production" ? [LIVE_ORIGIN] : []);
    const reply = await visitor(api, key).call("GET", "/me", undefined, headers);
    expect(reply.json.code).toBe(works ? "signed_out" : "wrong_origin");
    expect(reply.status).toBe(works ? 401 : 403);
    const { origin } = headers as { origin?: string };
    expect(reply.headers.get("access-control-allow-origin")).toBe(works ? (origin ?? null) : null);
    expect(reply.headers.get("vary")).toContain("origin");
    expect(reply.headers.get("access-control-allow-credentials")).toBeNull();
  });

  test("a page of the service's own origin, if a live key names that origin", async () => {
    await using api = await startApi({ baseUrl: "https://shop.example.com" });
    const key = await mintAppKey(api, "production", [LIVE_ORIGIN]);
    const reply = await visitor(api, key).call("GET", "/me", undefined, { "sec-fetch-site": "same-origin" });
    expect(reply.json.code).toBe("signed_out");
  });

  test("a request with the key as bearer token and the session in a separate header", async () => {
    await using api = await startApi(LOCAL);
    const { token } = await signIn(api, "bo@example.com");
    const headers = { "x-person-session": token };
    const reply = await api.call("/client/me", { key: api.keys.app, headers });
    expect([reply.status, reply.json.person?.email]).toEqual([200, "bo@example.com"]);
  });
});

describe("a preflight", () => {
  const ask = { "access-control-request-method": "POST", "access-control-request-headers": "x-app-key" };

  test("is answered only for origins from which some live app key works", async () => {
    await using api = await startApi(LOCAL);
    await api.store.write("app", (tx) => tx.run("UPDATE api_key SET revoked_at = 1 WHERE kind = 'app'"));
    const preflight = async (origin: string, path = "/client/payments/buy") => {
      const reply = await api.call(path, { method: "OPTIONS", headers: { ...ask, origin } });
      return [reply.status, reply.headers.get("access-control-allow-origin")];
    };
    expect(await preflight(LIVE_ORIGIN)).toEqual([204, null]);
    await mintAppKey(api, "production", [LIVE_ORIGIN]);
    expect(await preflight(LIVE_ORIGIN)).toEqual([204, LIVE_ORIGIN]);
    expect(await preflight("https://evil.example")).toEqual([204, null]);
    expect(await preflight("http://localhost:5173")).toEqual([204, null]);
    await mintAppKey(api, "development");
    expect(await preflight("https://evil.example")).toEqual([204, "https://evil.example"]);
    expect(await preflight("http://evil.example")).toEqual([204, null]);
    expect(await preflight("null")).toEqual([204, null]);
  });

  test("names the path's methods and headers, for ten minutes", async () => {
    await using api = await startApi(LOCAL);
    const headers = { ...ask, origin: LIVE_ORIGIN };
    const reply = await api.call("/client/collections/notes/records/rec_1", { method: "OPTIONS", headers });
    expect(reply.headers.get("access-control-allow-methods")?.split(", ").sort()).toEqual(["DELETE", "GET", "PUT"]);
    expect(reply.headers.get("access-control-allow-headers")).toBe("authorization, content-type, x-app-key, x-person-session");
    expect(reply.headers.get("access-control-max-age")).toBe("600");
    expect(reply.headers.get("vary")).toStartWith("origin");
  });

  test("names no origin outside the client API's routes", async () => {
    await using api = await startApi(LOCAL);
    for (const route of ROUTES.filter(({ path }) => !path.startsWith("/client/"))) {
      const path = route.path.replace(":appId", "shop").replace(":environment", "development");
      for (const method of ["OPTIONS", route.method]) {
        const headers = { ...ask, origin: "https://page.example" };
        const reply = await api.call(fill(path), { method, key: api.keys.dev, headers });
        const named = [...reply.headers.keys()].filter((name) => name.startsWith("access-control"));
        expect([method, path, named]).toEqual([method, path, []]);
      }
    }
    const unknown = await api.call("/client/nothing", {
      method: "OPTIONS",
      headers: { origin: LIVE_ORIGIN },
    });
    expect([unknown.status, unknown.json.code]).toEqual([404, "not_found"]);
  });
});

describe("sign-in over HTTP", () => {
  test("sends a code, starts a session, returns the person, and signs out", async () => {
    await using api = await startApi(LOCAL);
    const stranger = visitor(api, api.keys.app);
    const email = "Bo@Example.com";
    const before = await api.snapshot();
    const asked = await stranger.call("POST", "/auth/code", { email });
    expect([asked.status, asked.json]).toEqual([202, { expiresAt: "2026-01-15T12:10:00.000Z" }]);
    expect(changesBetween(before, await api.snapshot())).toEqual({ email: 1, person_code: 1 });
    const code = mailedCode(api, email);
    const signed = await stranger.call("POST", "/auth/session", { email, code });
    expect(signed.status).toBe(201);
    expect(signed.json.person).toEqual({
      id: expect.stringMatching(/^per_/),
      email,
      createdAt: "2026-01-15T12:00:00.000Z",
    });
    expect(signed.headers.get("set-cookie")).toBeNull();
    expect(changesBetween(before, await api.snapshot())).toEqual({
      email: 1,
      person: 1,
      person_session: 1,
      person_network: 1,
      invite_count: 1,
      audit: 1,
    });
    const person = visitor(api, api.keys.app, signed.json.token);
    expect((await person.call("GET", "/me")).json).toEqual({ person: signed.json.person, plan: null });
    expect((await person.call("DELETE", "/auth/session")).status).toBe(204);
    expect((await person.call("GET", "/me")).json.code).toBe("signed_out");
  });

  test("ends one session or all of them", async () => {
    await using api = await startApi(LOCAL);
    const sessions = [];
    for (let n = 0; n < 3; n++) sessions.push(await signIn(api, "bo@example.com"));
    const other = await signIn(api, "cy@example.com");
    const [first, second, third] = sessions;
    await first?.call("DELETE", "/auth/session");
    expect((await second?.call("GET", "/me"))?.status).toBe(200);
    await third?.call("DELETE", "/auth/sessions");
    expect((await second?.call("GET", "/me"))?.json.code).toBe("signed_out");
    expect((await other.call("GET", "/me")).status).toBe(200);
  });

  test("lasts while it is used once in thirty days", async () => {
    await using api = await startApi(LOCAL);
    const person = await signIn(api, "bo@example.com");
    for (let month = 0; month < 3; month++) {
      api.clock.jump(29 * 86_400_000);
      expect((await person.call("GET", "/me")).status).toBe(200);
    }
    api.clock.jump(30 * 86_400_000);
    expect((await person.call("GET", "/me")).json.code).toBe("signed_out");
  });

  test("ends at once when a management request suspends or erases the person", async () => {
    await using api = await startApi(LOCAL);
    const [bo, cy] = [await signIn(api, "bo@example.com"), await signIn(api, "cy@example.com")];
    await manage(api, "PATCH", `/persons/${bo.id}`, { status: "suspended" });
    await manage(api, "DELETE", `/persons/${cy.id}`);
    for (const person of [bo, cy]) expect((await person.call("GET", "/me")).json.code).toBe("signed_out");
  });

  test("has a limit per caller address, with resetAt and Retry-After", async () => {
    await using api = await startApi(LOCAL);
    const stranger = visitor(api, api.keys.app);
    for (let n = 0; n < 5; n++) expect((await stranger.call("POST", "/auth/code", { email: "bo@example.com" })).status).toBe(202);
    const capped = await stranger.call("POST", "/auth/code", { email: "BO@example.com" }, { origin: LIVE_ORIGIN });
    expect(capped.json).toMatchObject({ code: "code_capped", resetAt: "2026-01-15T13:00:00.000Z" });
    expect([capped.status, capped.headers.get("retry-after")]).toEqual([429, "3600"]);
    expect(capped.headers.get("access-control-expose-headers")).toBe("retry-after");
  });
});

test("an error for an app key has no docs in any environment, and one for a secret key has them in development", async () => {
  await using api = await startApi(LOCAL);
  const live = await mintAppKey(api, "production", [LIVE_ORIGIN]);
  const refusal = async (key: string, headers = {}) => (await visitor(api, key).call("GET", "/me", undefined, headers)).json;
  expect(Object.keys(await refusal(live, { origin: LIVE_ORIGIN }))).toEqual(["code", "message"]);
  expect(Object.keys(await refusal(live))).toEqual(["code", "message"]);
  expect(Object.keys(await refusal(api.keys.app))).toEqual(["code", "message"]);
  expect(Object.keys(await refusal(api.keys.live))).toEqual(["code", "message"]);
  expect(await refusal(api.keys.dev)).toMatchObject({
    code: "forbidden",
    docs: `${api.base}/docs/errors/forbidden`,
  });
});

test("the log contains no secret of a sign-in", async () => {
  await using api = await startApi(LOCAL);
  const person = await signIn(api, "bo@example.com");
  await person.call("GET", "/me");
  await person.call("POST", "/payments/buy", { product: "none" });
  const told = api.logged.join("\n");
  for (const secret of [person.token, api.keys.app, mailedCode(api, "bo@example.com")]) expect(told).not.toContain(secret);
});

describe("the app's own server can verify a page's session token", () => {
  const verify = (api: Awaited<ReturnType<typeof startApi>>, token: string, key = api.keys.dev, E = api.E) =>
    api.call(`${E}/sessions/verify`, { method: "POST", key, body: { token } });
  const NOBODY = { person: null, expiresAt: null };

  test("and gets the person, and the check prolongs the session like any use", async () => {
    await using api = await startApi(LOCAL);
    const { id, token } = await signIn(api, "bo@example.com");
    const first = await verify(api, token);
    expect([first.status, first.json]).toEqual([
      200,
      { person: expect.objectContaining({ id, email: "bo@example.com", status: "active" }), expiresAt: expect.any(String) },
    ]);
    api.clock.jump(20 * DAY_MS);
    const later = await verify(api, token);
    expect(Date.parse(later.json.expiresAt)).toBe(Date.parse(first.json.expiresAt) + 20 * DAY_MS);
    api.clock.jump(20 * DAY_MS);
    expect((await verify(api, token)).json.person?.id).toBe(id);
  });

  test("and gets no person for other text, an ended session, a suspended person or another environment", async () => {
    await using api = await startApi(LOCAL);
    const person = await signIn(api, "bo@example.com");
    for (const token of ["", "x", api.keys.app, api.keys.dev, `ps_${"x".repeat(43)}`]) expect((await verify(api, token)).json).toEqual(NOBODY);
    expect((await verify(api, person.token, api.keys.live, api.E.replace("development", "production"))).json).toEqual(NOBODY);
    await manage(api, "PATCH", `/persons/${person.id}`, { status: "suspended" });
    expect((await verify(api, person.token)).json).toEqual(NOBODY);
    await manage(api, "PATCH", `/persons/${person.id}`, { status: "active" });
    const again = await signIn(api, "bo@example.com");
    expect((await verify(api, again.token)).json.person?.id).toBe(person.id);
    await again.call("DELETE", "/auth/session");
    expect((await verify(api, again.token)).json).toEqual(NOBODY);
  });

  test("but an app key cannot", async () => {
    await using api = await startApi(LOCAL);
    const { token } = await signIn(api, "bo@example.com");
    const reply = await verify(api, token, api.keys.app);
    expect([reply.status, reply.json.code]).toEqual([403, "forbidden"]);
  });
});
