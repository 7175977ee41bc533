/**
 * Tests captures: temporary receiver URLs that store requests for an hour, verified or not. A request that is not stored gets the answer of an unknown
 * receiver, and a flood does not grow the database.
 */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { CAPTURE_LIFE_MS, DEFAULT_LIMITS, MAX_CAPTURED_REQUESTS, MAX_OPEN_CAPTURES, MAX_RECEIVER_BODY_BYTES } from "../../src/base/limit.ts";
import { type CaptureView, RequestCaptures } from "../../src/engine/receiver/request-capture.ts";
import { Sealer } from "../../src/platform/secret/seal.ts";
import { type Answer, type RunningService, startRunningService } from "../kit/running-service.ts";
import { VirtualClock } from "../kit/virtual-clock.ts";

let running: RunningService;

beforeEach(async () => {
  running = await startRunningService({
    environments: ["development", "production"],
    config: { limits: { ...DEFAULT_LIMITS, unverifiedCallsPerMinute: 200 } },
  });
});
afterEach(() => running[Symbol.asyncDispose]());

async function create(environment: "development" | "production" = "development"): Promise<CaptureView> {
  const { status, body } = await running.api("POST", "/captures", {}, environment);
  expect(status).toBe(201);
  return body.capture;
}

async function read({ id }: { id: string }): Promise<CaptureView> {
  const { status, body } = await running.api("GET", `/captures/${id}`);
  expect(status).toBe(200);
  return body.capture;
}

/** Sends to the path of a URL, as the provider does. */
async function send(url: string, init: RequestInit = {}, more = ""): Promise<Answer> {
  const { pathname } = new URL(url);
  const answer = await fetch(`${running.service.url}${pathname}${more}`, { method: "POST", ...init });
  const text = await answer.text();
  const isJson = answer.headers.get("content-type")?.includes("json") === true;
  return { status: answer.status, headers: answer.headers, body: isJson ? JSON.parse(text) : text };
}

const countRows = async (): Promise<number[]> => {
  const of = async (table: string) => Number((await running.rows<{ count: number }>(`SELECT count(*) AS count FROM ${table}`))[0]?.count);
  return [await of("request_capture"), await of("captured_request")];
};

const unknown = async (): Promise<[number, unknown]> => {
  const { status, body } = await send("https://relay.example.test/hooks/app_test/no-such-receiver", { body: "{}" });
  return [status, body];
};

const JSON_TYPE = { "content-type": "application/json" };

test("a capture has a URL that cannot be guessed, and is open for an hour", async () => {
  const [one, other] = [await create(), await create()];
  expect(one).toMatchObject({ requests: [], isFull: false });
  expect(one.url).toMatch(/^https:\/\/relay\.example\.test\/hooks\/app_test\/cap_[0-9a-f]{32}-[A-Za-z0-9_-]{32}$/);
  expect(Date.parse(one.expiresAt) - Date.parse(one.createdAt)).toBe(CAPTURE_LIFE_MS);
  expect(one.url.slice(-32)).not.toBe(other.url.slice(-32));
  const audited = await running.rows<{ action: string; target: string }>("SELECT action, target FROM audit");
  expect(audited).toEqual([one, other].map(({ id }) => ({ action: "capture.created", target: `capture:${id}` })));
});

describe("what is stored", () => {
  const ROWS: readonly (readonly [what: string, init: RequestInit, more: string, stored: object])[] = [
    [
      "a signed request, with its headers",
      { body: '{"id":1}', headers: { ...JSON_TYPE, "X-Acme-Signature": "abc", Authorization: "Bearer t" } },
      "",
      {
        method: "POST",
        search: "",
        contentType: "application/json",
        body: '{"id":1}',
        bytes: 8,
        headers: { "x-acme-signature": "abc", authorization: "Bearer t" },
      },
    ],
    ["a request with a query", { body: "{}" }, "?token=abc", { method: "POST", search: "?token=abc", body: "{}" }],
    ["a form", { body: new URLSearchParams({ a: "é" }) }, "", { body: "a=%C3%A9", contentType: expect.stringContaining("form") }],
    ["a text that is no JSON", { body: "hello é" }, "", { body: "hello é", bytes: 8 }],
    ["no body", {}, "", { body: "", bytes: 0 }],
    ["a GET, with which some providers check a URL", { method: "GET" }, "?challenge=1", { method: "GET", search: "?challenge=1", body: "" }],
    ["a HEAD", { method: "HEAD" }, "", { method: "HEAD", search: "" }],
  ];
  test.each(ROWS)("%s", async (_what, init, more, stored) => {
    const capture = await create();
    const answer = await send(capture.url, init, more);
    expect([answer.status, answer.body]).toEqual([200, init.method === undefined ? { received: true } : ""]);
    const [request, ...others] = (await read(capture)).requests;
    expect(request).toMatchObject({ id: "1", ...stored });
    expect(others).toEqual([]);
    expect(Object.keys(request?.headers ?? {})).not.toContain("host");
  });

  test.each(["PUT", "PATCH", "DELETE"])("a %s is answered like at a receiver, and not stored", async (method) => {
    const capture = await create();
    const body = method === "DELETE" ? null : "{}";
    const atReceiver = await send("https://relay.example.test/hooks/app_test/other", { method, body });
    expect((await send(capture.url, { method, body })).status).toBe(atReceiver.status);
    expect((await read(capture)).requests).toEqual([]);
  });

  test("a body above the limit of a receiver is refused", async () => {
    const capture = await create();
    const { status, body } = await send(capture.url, { body: "a".repeat(MAX_RECEIVER_BODY_BYTES + 1) });
    expect([status, body.code, await countRows()]).toEqual([413, "body_too_large", [1, 0]]);
  });

  test("everything is sealed: no column and no log line has a header, a body or the token of the URL", async () => {
    const { url } = await create();
    await send(url, { body: '{"email":"ada@example.com"}', headers: { Authorization: "Bearer very-secret" } });
    const [row] = await running.rows<{ sealed: Uint8Array }>("SELECT sealed FROM captured_request");
    const stored = Buffer.from(row?.sealed ?? []).toString("latin1");
    const all = `${stored} ${JSON.stringify(await running.rows("SELECT * FROM request_capture"))} ${running.logged.join("\n")} ${running.lines.join("\n")}`;
    expect(stored.length).toBeGreaterThan(100);
    for (const text of ["ada@example.com", "very-secret", "email", url.slice(-32)]) expect(all).not.toContain(text);
  });

  test("the dashboard learns of a request by the change stream's kind call", async () => {
    const heard: string[] = [];
    const stop = running.service.store.listen((changes) => void heard.push(...changes.keys()));
    const capture = await create();
    await send(capture.url, { body: "{}" });
    stop();
    expect(heard).toContain("call");
  });

  test("the guess takes a captured request unchanged", async () => {
    const capture = await create();
    await send(capture.url, { body: '{"id":"evt_1","type":"a.b","data":{}}', headers: { ...JSON_TYPE, "X-Acme-Token": "0123456789" } });
    const [{ body, contentType, headers, search } = { body: "", contentType: "", headers: {}, search: "" }] = (await read(capture)).requests;
    const guessed = await running.api("POST", "/relays/guess", { body, contentType, headers, search, url: capture.url });
    expect(guessed.body.guess).toMatchObject({ verify: { value: { scheme: "shared_token", header: "x-acme-token" } }, eventId: { path: "id" } });
  });
});

describe("a request that is not stored gets the answer of an unknown receiver", () => {
  test("after the most requests, and the database does not grow", async () => {
    const capture = await create();
    for (let at = 0; at < MAX_CAPTURED_REQUESTS; at++) expect((await send(capture.url, { body: "{}" })).status).toBe(200);
    expect((await read(capture)).isFull).toBe(true);
    for (let at = 0; at < 30; at++) {
      const { status, body } = await send(capture.url, { body: "{}" });
      expect([status, body]).toEqual(await unknown());
    }
    expect(await countRows()).toEqual([1, MAX_CAPTURED_REQUESTS]);
  });

  test("after the most bytes", async () => {
    const capture = await create();
    const big = { body: "a".repeat(200_000) };
    expect([(await send(capture.url, big)).status, (await send(capture.url, big)).status]).toEqual([200, 200]);
    expect((await send(capture.url, { body: "{}" })).status).toBe(404);
    expect(await read(capture)).toMatchObject({ isFull: true, requests: [{ bytes: 200_000 }, { bytes: 200_000 }] });
  });

  test("after a deletion", async () => {
    const capture = await create();
    await send(capture.url, { body: "{}" });
    expect((await running.api("DELETE", `/captures/${capture.id}`)).status).toBe(204);
    expect(await countRows()).toEqual([0, 0]);
    for (let at = 0; at < 2; at++) {
      const { status, body } = await send(capture.url, { body: "{}" });
      expect([status, body]).toEqual(await unknown());
    }
    expect((await running.api("GET", `/captures/${capture.id}`)).status).toBe(404);
    expect((await running.api("DELETE", `/captures/${capture.id}`)).status).toBe(404);
  });

  test("after the hour, when everything is deleted", async () => {
    const capture = await create();
    await send(capture.url, { body: "{}" });
    await running.clock.advance(CAPTURE_LIFE_MS - 1);
    expect((await read(capture)).requests).toHaveLength(1);
    const later = await create();
    await running.clock.advance(1);
    const { status, body } = await send(capture.url, { body: "{}" });
    expect([status, body]).toEqual(await unknown());
    expect((await running.api("GET", `/captures/${capture.id}`)).status).toBe(404);
    await running.clock.advance(1_000);
    expect(await running.rows<{ id: string }>("SELECT id FROM request_capture")).toEqual([{ id: later.id }]);
    expect(await countRows()).toEqual([1, 0]);
  });

  test("after the hour in which the server did not run", async () => {
    await send((await create()).url, { body: "{}" });
    let passing: Promise<void> = Promise.resolve();
    await running.restart(() => {
      passing = running.clock.advance(CAPTURE_LIFE_MS);
    });
    await passing;
    await running.clock.advance(2_000);
    expect(await countRows()).toEqual([0, 0]);
  });

  test.each([
    ["a forged token", (url: string) => url.slice(0, -1) + (url.endsWith("A") ? "B" : "A")],
    ["no token", (url: string) => url.slice(0, -33)],
    ["the URL of another app", (url: string) => url.replace("app_test", "app_other")],
    ["another ID", (url: string) => url.replace(/cap_.{32}/, `cap_${"0".repeat(32)}`)],
    ["a text after it", (url: string) => `${url}x`],
    ["only the prefix", () => "https://relay.example.test/hooks/app_test/cap_"],
  ])("with %s, and without a query or a row", async (_what, change) => {
    const capture = await create();
    const wrong = change(capture.url);
    for (let at = 0; at < 3; at++) {
      const { status, body } = await send(wrong, { body: "{}" });
      expect([status, body]).toEqual(await unknown());
    }
    const [, appId = "", name = ""] = /hooks\/([^/]+)\/(.*)$/.exec(wrong) ?? [];
    const store = new Proxy({} as RunningService["service"]["store"], {
      get() {
        throw new Error("The store was asked.");
      },
    });
    const captures = new RequestCaptures({ store, clock: running.clock, sealer: running.service.sealer });
    expect(captures.find(appId, name)).toBe(null);
    expect(await running.rows("SELECT name FROM unknown_request WHERE name LIKE 'cap%' OR name LIKE '% characters%'")).toEqual([]);
    expect((await read(capture)).requests).toEqual([]);
  });

  test("another master key opens no URL", () => {
    const clock = new VirtualClock(Date.parse("2026-01-15T12:00:00Z"));
    const [one, other] = [1, 2].map((byte) => new Sealer(new Uint8Array(32).fill(byte))) as [Sealer, Sealer];
    const id = `cap_${clock.now().toString(16).padStart(12, "0")}${"0".repeat(20)}`;
    const captures = new RequestCaptures({ store: running.service.store, clock, sealer: one });
    expect([one, other].map((sealer) => captures.find("shop", `${id}-${sealer.captureToken("shop", id)}`))).toEqual([id, null]);
  });
});

test("one address that sends more requests in a minute than its cap is refused, and none of them is stored", async () => {
  await using capped = await startRunningService({ config: { limits: { ...DEFAULT_LIMITS, unverifiedCallsPerMinute: 3 } } });
  const { capture } = (await capped.api("POST", "/captures", {})).body;
  const statuses: number[] = [];
  for (let at = 0; at < 6; at++) {
    const answer = await fetch(`${capped.service.url}${new URL(capture.url).pathname}`, { method: "POST", body: "{}" });
    statuses.push(answer.status);
    await answer.arrayBuffer();
  }
  expect(statuses).toEqual([200, 200, 200, 429, 429, 429]);
  expect(await capped.rows("SELECT number FROM captured_request")).toHaveLength(3);
});

test("an environment has at most ten open captures: a new one replaces the oldest", async () => {
  const all: CaptureView[] = [];
  for (let at = 0; at <= MAX_OPEN_CAPTURES; at++) {
    all.push(await create());
    await running.clock.advance(1);
  }
  const other = await create("production");
  const left = await running.rows<{ id: string }>("SELECT id FROM request_capture ORDER BY id");
  expect(left.map(({ id }) => id)).toEqual([...all.slice(1), other].map(({ id }) => id));
  expect((await send(all[0]?.url ?? "", { body: "{}" })).status).toBe(404);
  expect((await send(all[1]?.url ?? "", { body: "{}" })).status).toBe(200);
});

test.each(["GET", "DELETE"])("%s: a capture is only in its environment, and a key of another one is refused", async (method) => {
  const capture = await create();
  expect((await running.api(method, `/captures/${capture.id}`, undefined, "production")).status).toBe(404);
  const path = `/api/apps/app_test/development/captures/${capture.id}`;
  const headers = { authorization: `Bearer ${running.keys.production}` };
  const answer = await fetch(`${running.service.url}${path}`, { method, headers });
  expect([answer.status, (await answer.json()).code]).toEqual([403, "wrong_environment"]);
  expect(await countRows()).toEqual([1, 0]);
});

test("a deleted app loses its captures, and their URLs take no request", async () => {
  const capture = await create();
  await send(capture.url, { body: "{}" });
  await running.service.store.write("app", (tx) => tx.run("UPDATE environment SET deleted_at = 1"));
  await running.service.store.write("app", (tx) => tx.run("UPDATE app SET deleted_at = 1"));
  running.service.refresh();
  expect((await send(capture.url, { body: "{}" })).status).toBe(404);
  await running.clock.advance(120_000);
  expect(await countRows()).toEqual([0, 0]);
});
