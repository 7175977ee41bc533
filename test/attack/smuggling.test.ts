/**
 * Requests that two readers can understand differently: two hosts, two lengths, a length and chunks, a path that a proxy reads in another way. The
 * tests use raw sockets. The service refuses such a request before any rule reads it, and never answers a request that hides behind one.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PATIENCE_MS } from "../kit/patience.ts";
import { receiverDefinition, saveRelay, signedCall } from "../kit/relay-definition.ts";
import { APP, type RunningService, startRunningService } from "../kit/running-service.ts";

let running: RunningService;

beforeAll(async () => {
  running = await startRunningService();
  const actions = [{ type: "call_url", url: "https://example.test/" }];
  await saveRelay(running, receiverDefinition({ actions }));
});

afterAll(async () => {
  await running[Symbol.asyncDispose]();
});

/** Time to wait for anything after a response. */
const MORE_MS = 400;

/** Returns everything that comes back, until nothing more comes for a moment. */
function speak(text: string, to = running): Promise<string> {
  return new Promise((resolve) => {
    let heard = "";
    const socket = connect(Number(new URL(to.service.url).port), "127.0.0.1");
    const end = (): void => {
      socket.destroy();
      resolve(heard);
    };
    let timer = setTimeout(end, PATIENCE_MS);
    socket.on("data", (chunk) => {
      heard += chunk.toString("latin1");
      clearTimeout(timer);
      timer = setTimeout(end, MORE_MS);
    });
    socket.on("error", end);
    socket.on("close", () => {
      clearTimeout(timer);
      end();
    });
    socket.on("connect", () => socket.write(Buffer.from(text, "latin1")));
  });
}

const statuses = (heard: string): number[] => [...heard.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, code]) => Number(code));
const codeOf = (heard: string): string | undefined => /"code":"([a-z_]+)"/.exec(heard)?.[1];

let next = 0;
/** Returns a request with a valid signature and these lines instead of its Host and its length. */
function call(lines: (length: number) => string, path = `/hooks/${APP}/orders`, body?: string): string {
  const signed = signedCall(body ?? { id: `smuggled-${next++}` });
  return `POST ${path} HTTP/1.1\r\n${lines(signed.body.length)}\r\nx-signature: ${signed.headers["x-signature"]}\r\n\r\n${signed.body}`;
}

describe("a request with two hosts is refused", () => {
  test.each(["a.test", "b.test", ""])("with another Host of %s", async (other) => {
    for (const target of [
      `GET /healthz HTTP/1.1\r\n`,
      `GET / HTTP/1.1\r\n`,
      `GET /openapi.json HTTP/1.1\r\n`,
      `GET /nothing/at/all HTTP/1.1\r\n`,
      `OPTIONS /client/me HTTP/1.1\r\n`,
    ]) {
      const heard = await speak(`${target}connection: close\r\nhost: a.test\r\nhost: ${other}\r\n\r\n`);
      expect([target, statuses(heard), codeOf(heard)]).toEqual([target, [400], "ambiguous_request"]);
    }
    const heard = await speak(call((length) => `host: a.test\r\nHOST: ${other}\r\ncontent-length: ${length}`));
    expect([statuses(heard), codeOf(heard)]).toEqual([[400], "ambiguous_request"]);
  });
  test("with two in one line", async () => {
    const heard = await speak("GET /healthz HTTP/1.1\r\nhost: a.test, b.test\r\n\r\n");
    expect([statuses(heard), codeOf(heard)]).toEqual([[400], "ambiguous_request"]);
  });
});

describe("a path with two readings is refused before any rule reads it", () => {
  const paths = [
    "/hooks\\..\\healthz",
    "/hooks/..\\healthz",
    "/hooks/../healthz",
    "/hooks/./../healthz",
    "/hooks/%2e%2e/healthz",
    "/hooks/%2E./healthz",
    "/hooks/..%2fhealthz",
    "/hooks/..%5chealthz",
    "/%2e/healthz",
    "/.\\healthz",
    "/health%2ez",
    "/api\\session",
    "/api%2fsession",
    "/api/%2e%2e/api/session",
    `/hooks/${APP}\\orders`,
    `/hooks/${APP}%5corders`,
    `/hooks/${APP}%2forders`,
    `/hooks/${APP}/x\\..\\orders`,
    `/hooks/${APP}/orders\\`,
    `/hooks/${APP}/%2e%2e/orders`,
    `/hooks/${APP}/orders/%2e`,
    `/hooks/${APP}/orders/.`,
    `/hooks/${APP}/../${APP}/orders`,
    `/api/apps/${APP}/..\\..\\..\\hooks\\x/relays`,
    `/api/apps/${APP}/%2e%2e%2f%2e%2e/relays`,
    `/a/b/c/d/e/f/g/h/i/j${"/..".repeat(10)}/healthz`,
    `/a/b/c/d/e/f/g/h/i/j${"/..".repeat(10)}/`,
    `/hooks/..\\setup`,
    "//healthz",
    "//elsewhere/healthz",
    "/hooks//../healthz",
    "/hooks/..//healthz",
    "/%2e%2e/",
    "/hooks/%2e%2e/",
    "/hooks/%2e%2e/healthz/",
    "/hooks/../openapi.json/",
    `/hooks//${APP}/orders`,
    `//hooks/${APP}/orders`,
    `/hooks/${APP}/orders/%2e/`,
    `/hooks/${APP}/orders/%2e%2e/orders/`,
    `/hooks/${APP}/orders//`,
    `/hooks/${APP}/%2e%2e/${APP}/orders/`,
  ];
  test.each(paths)("%s", async (path) => {
    const got = await speak(`GET ${path} HTTP/1.1\r\nhost: a.test\r\nconnection: close\r\n\r\n`);
    expect([statuses(got), codeOf(got)]).toEqual([[400], "ambiguous_request"]);
    const posted = await speak(call((length) => `host: a.test\r\nconnection: close\r\ncontent-length: ${length}`, path));
    expect([statuses(posted), codeOf(posted)]).toEqual([[400], "ambiguous_request"]);
  });
  test.each(["/healthz/", "/openapi.json/", "/hooks/..\\openapi.json/", `/x/%2e%2e/hooks/${APP}/orders/`])(
    "only a page answers a path that ends in a slash, which can hide dots: %s",
    async (path) => {
      const got = await speak(`GET ${path} HTTP/1.1\r\nhost: a.test\r\nconnection: close\r\n\r\n`);
      expect([statuses(got), codeOf(got)]).toEqual([[404], "not_found"]);
      const posted = await speak(call((length) => `host: a.test\r\nconnection: close\r\ncontent-length: ${length}`, path));
      expect([statuses(posted), codeOf(posted)]).toEqual([[404], "not_found"]);
    },
  );
  test.each(["a", "ab", "abc", "", "x/y", "é"])("no part of the path counts as part of the Host: %s", async (host) => {
    for (const part of ["e", "elsewhere"]) {
      const got = await speak(`GET /${part}/healthz HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n\r\n`);
      expect([part, statuses(got), codeOf(got)]).toEqual([part, [404], "not_found"]);
      const lines = (length: number) => `host: ${host}\r\nconnection: close\r\ncontent-length: ${length}`;
      const posted = await speak(call(lines, `/${part}/hooks/${APP}/orders`));
      expect([part, statuses(posted), codeOf(posted)]).toEqual([part, [404], "not_found"]);
    }
  });
  test("a plain path is served, with dots and slashes in the query or an escaped slash in a token", async () => {
    for (const path of ["/healthz", "/healthz?a=..%2f..%5c", "/"]) {
      const heard = await speak(`GET ${path} HTTP/1.1\r\nhost: a.test\r\nconnection: close\r\n\r\n`);
      expect(statuses(heard)).toHaveLength(1);
      expect(codeOf(heard)).not.toBe("ambiguous_request");
    }
    const path = `/api/apps/${APP}/development/persons/per_none/tokens/a%2Fb`;
    const heard = await speak(`PUT ${path} HTTP/1.1\r\nhost: a.test\r\ncontent-length: 0\r\n\r\n`);
    expect([statuses(heard), codeOf(heard)]).toEqual([[401], "unauthenticated"]);
  });
});

describe("a body has one end", () => {
  const hidden = "GET /openapi.json HTTP/1.1\r\nhost: a.test\r\n\r\n";
  test.each<[string, string]>([
    ["two lengths", call((length) => `host: a.test\r\ncontent-length: 4\r\ncontent-length: ${length}`)],
    ["a list of lengths", call((length) => `host: a.test\r\ncontent-length: 4, ${length}`)],
    ["a length and chunks", call((length) => `host: a.test\r\ncontent-length: ${length}\r\ntransfer-encoding: chunked`)],
    ["chunks and a length", call((length) => `host: a.test\r\ntransfer-encoding: chunked\r\ncontent-length: ${length}`)],
    ["chunks that another reader does not see", call((length) => `host: a.test\r\ntransfer-encoding : chunked\r\ncontent-length: ${length}`)],
    ["chunks twice over", call(() => "host: a.test\r\ntransfer-encoding: chunked, chunked")],
    ["chunks under another name", call(() => "host: a.test\r\ntransfer-encoding: identity, xchunked")],
    [
      "a chunk's size with white space before it",
      `POST /hooks/${APP}/orders HTTP/1.1\r\nhost: a.test\r\ntransfer-encoding: chunked\r\n\r\n 1\r\n{\r\n0\r\n\r\n`,
    ],
  ])("a body with %s is refused, and a request hidden behind it gets no answer", async (_words, sent) => {
    const before = (await running.rows("SELECT seq FROM event")).length;
    const heard = await speak(sent + hidden);
    expect(statuses(heard)[0]).toBeGreaterThanOrEqual(400);
    expect(statuses(heard)[0]).toBeLessThan(500);
    expect(heard).not.toContain('"openapi"');
    expect((await running.rows("SELECT seq FROM event")).length).toBe(before);
  });
});

describe("on the network without a base URL the service sets no cookie", () => {
  const start = (host: string, baseUrl: string | null): Promise<RunningService> =>
    startRunningService({
      config: { host, baseUrl, dataDir: mkdtempSync(join(tmpdir(), "relay-cookie-")) },
    });
  const signIns = ["/api/session", "/api/session/link", "/api/setup", "/api/session/reset"];
  const secrets = { email: "owner@example.com", password: "a long password of mine", token: "x".repeat(32) };

  test("the response says so and how to fix it, and no guess is checked", async () => {
    await using open = await start("0.0.0.0", null);
    for (const path of signIns) {
      const url = `http://127.0.0.1:${open.service.port}`;
      const { email, password, token } = secrets;
      const fields = path === "/api/session" ? { email, password } : { token };
      const more = path === "/api/setup" ? { email, password } : path.endsWith("reset") ? { password } : {};
      const response = await fetch(`${url}${path}`, {
        method: "POST",
        headers: { origin: url, "content-type": "application/json" },
        body: JSON.stringify({ ...fields, ...more }),
      });
      const said = (await response.json()) as { code: string; message: string };
      expect([path, response.status, said.code]).toEqual([path, 403, "base_url_needed"]);
      expect(said.message).toContain("Start it with --base-url");
      expect(response.headers.get("set-cookie")).toBeNull();
    }
  });

  test.each<[string, string | null]>([
    ["127.0.0.1", null],
    ["0.0.0.0", "https://relay.example.test"],
  ])("on %s with the base URL %s sign-in works as usual", async (host, baseUrl) => {
    await using open = await start(host, baseUrl);
    const url = `http://127.0.0.1:${open.service.port}`;
    const response = await fetch(`${url}/api/session`, {
      method: "POST",
      headers: { origin: baseUrl ?? url, "content-type": "application/json" },
      body: JSON.stringify({ email: secrets.email, password: secrets.password }),
    });
    expect(((await response.json()) as { code: string }).code).toBe("unauthenticated");
  });
});
