/** Tests error responses: code and message, docs for developers, resetAt for caps, and never a stack. */
import { expect, test } from "bun:test";
import { REFUSALS } from "../../src/base/code/refusal-code.ts";
import { RESULTS } from "../../src/base/code/result-code.ts";
import { StoreUnavailable } from "../../src/store/port.ts";
import { startApi } from "../kit/api-server.ts";

const MISSING = "/collections/none";

test("errors link docs for a development key and a session, and never for a live key or a stranger", async () => {
  await using api = await startApi();
  const docs = `${api.base}/docs/errors/not_found`;
  const live = "/api/apps/shop/production";
  expect((await api.call(api.E + MISSING, { key: api.keys.dev })).json).toMatchObject({
    code: "not_found",
    docs,
  });
  expect((await api.call(live + MISSING, { session: true })).json).toMatchObject({ code: "not_found", docs });
  expect(Object.keys((await api.call(live + MISSING, { key: api.keys.live })).json)).toEqual(["code", "message"]);
  expect(Object.keys((await api.call(api.E + MISSING)).json)).toEqual(["code", "message"]);
  expect(Object.keys((await api.call(api.E + MISSING, { key: api.keys.app })).json)).toEqual(["code", "message"]);
});

test("docs links begin with the configured address, and the page at the default address explains the code", async () => {
  await using own = await startApi({ docsUrl: "https://docs.example.com/relay" });
  const reply = await own.call(own.E + MISSING, { key: own.keys.dev });
  expect(reply.json.docs).toBe("https://docs.example.com/relay/errors/not_found");
  const page = await own.call("/docs/errors/not_found", { headers: { accept: "text/plain" } });
  expect(page.text).toStartWith("# not_found (404)\n");
  const shown = await own.call("/docs/errors/not_found", { headers: { accept: "text/html" } });
  expect([shown.headers.get("content-type"), shown.text]).toEqual(["text/html; charset=utf-8", expect.stringContaining("<h1>not_found (404)</h1>")]);
  expect((await own.call("/docs/errors/constructor")).json.code).toBe("not_found");
});

test("every code that an event's results can contain has a page, as text and as JSON", async () => {
  await using own = await startApi();
  for (const [code, { what, todo }] of Object.entries({ ...REFUSALS, ...RESULTS })) {
    const page = await own.call(`/docs/errors/${code}`);
    expect([page.status, page.json]).toEqual([
      200,
      expect.objectContaining({ code, when: what, todo, meanings: expect.arrayContaining([expect.objectContaining({ what, todo })]) }),
    ]);
  }
  const text = await own.call("/docs/errors/http_error.md");
  expect(text.text).toStartWith("# http_error\n");
});

test("a cap answers with resetAt and Retry-After", async () => {
  await using api = await startApi();
  const wrong = {
    method: "POST",
    headers: { origin: api.base },
    body: { email: "ann@example.com", password: "wrong password" },
  };
  for (let attempt = 0; attempt < 10; attempt++) expect((await api.call("/api/session", wrong)).status).toBe(401);
  const capped = await api.call("/api/session", wrong);
  expect(capped.status).toBe(429);
  expect(capped.json).toMatchObject({ code: "signin_capped", resetAt: "2026-01-15T12:15:00.000Z" });
  expect(capped.headers.get("retry-after")).toBe("900");
  await api.clock.advance(15 * 60_000);
  expect((await api.call("/api/session", wrong)).status).toBe(401);
});

test("an unknown path is 404 in JSON, and an unsupported method is 405 with Allow", async () => {
  await using api = await startApi();
  for (const path of ["/api", "/api/app/shop", "/hooks/shop", "/client/x", "/nothing.js", "/api/apps/shop/development/"]) {
    const reply = await api.call(path, { headers: { accept: "text/html" } });
    expect([path, reply.status, reply.json.code]).toEqual([path, 404, "not_found"]);
  }
  for (const [method, path, allow] of [
    ["DELETE", "/healthz", "GET"],
    ["GET", "/hooks/shop/orders", "POST"],
    ["POST", "/openapi.json", "GET"],
    ["GET", "/api/apps/shop", "PATCH, DELETE"],
    ["PATCH", `${api.E}/relays`, "GET, POST"],
    ["DELETE", `${api.E}/events/x/replay`, "GET, POST"],
    ["OPTIONS", `${api.E}/relays`, "GET, POST"],
  ] as const) {
    const reply = await api.call(path, { method });
    expect([path, reply.status, reply.json.code]).toEqual([path, 405, "method_not_allowed"]);
    expect(reply.headers.get("allow")).toBe(allow);
  }
});

test("an unavailable store is 503 not_recorded", async () => {
  await using api = await startApi();
  Object.assign(api.store, { write: () => Promise.reject(new StoreUnavailable("The disk is full.")) });
  const reply = await api.call(`${api.E}/persons`, {
    method: "POST",
    session: true,
    body: { email: "bo@example.com" },
  });
  expect([reply.status, reply.json.code]).toEqual([503, "not_recorded"]);
  expect(reply.text).not.toContain("disk");
  expect(api.logged.join()).toContain("The disk is full.");
});

test("any other error is 500 internal, with its stack in the log and not in the response", async () => {
  await using api = await startApi();
  Object.assign(api.store, { read: () => Promise.reject(new TypeError("secret detail of the inside")) });
  const reply = await api.call("/api/apps", { session: true });
  expect([reply.status, Object.keys(reply.json)]).toEqual([500, ["code", "message"]]);
  expect(reply.text).not.toContain("inside");
  const line = JSON.parse(api.logged.at(-1) ?? "{}");
  expect(line).toMatchObject({
    level: "error",
    message: "A request failed.",
    method: "GET",
    path: "/api/apps",
  });
  expect(line.error.stack).toContain("secret detail of the inside");
});

test("readiness reports its problem with 503", async () => {
  await using api = await startApi();
  Object.assign(api.store, { write: () => Promise.reject(new StoreUnavailable("The disk is full.")) });
  const reply = await api.call("/readyz");
  const problem = "The store cannot be written now: the server's log says why.";
  expect([reply.status, reply.json]).toEqual([503, { ready: false, problem }]);
});

test("every response has the headers against framing, sniffing and leaking", async () => {
  await using api = await startApi();
  for (const path of ["/", "/healthz", "/changes.txt", "/openapi.json", "/nothing", `${api.E}/relays`, "/readyz"]) {
    const { headers } = await api.call(path);
    expect([path, headers.get("x-frame-options"), headers.get("x-content-type-options")]).toEqual([path, "DENY", "nosniff"]);
    expect(headers.get("referrer-policy")).toBe("no-referrer");
    expect(headers.get("cross-origin-opener-policy")).toBe("same-origin");
    expect(headers.get("content-security-policy")).toContain("default-src 'none'");
    expect(headers.get("content-security-policy")).not.toContain("unsafe");
    expect(headers.get("access-control-allow-origin")).toBeNull();
  }
});
