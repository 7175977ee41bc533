/**
 * Attacks on the dashboard by another site's page, by a stranger's browser and by a person who guesses. The suites api-gate and api-signin cover what
 * is not here.
 */
import { describe, expect, test } from "bun:test";
import { connect } from "node:net";
import { type ApiServer, startApi } from "../kit/api-server.ts";

/** Sends a request as bytes, because a library would add an Origin or normalize the path. */
function speak(api: ApiServer, text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let heard = "";
    const socket = connect(Number(new URL(api.base).port), "127.0.0.1");
    socket.on("connect", () => socket.write(text));
    socket.on("data", (chunk) => {
      heard += chunk.toString("latin1");
    });
    socket.on("close", () => resolve(heard));
    socket.on("error", reject);
  });
}

function request(api: ApiServer, line: string, headers: readonly string[], body = ""): Promise<string> {
  const { host } = new URL(api.base);
  const all = [`host: ${host}`, "connection: close", `content-length: ${Buffer.byteLength(body)}`, ...headers];
  return speak(api, `${line} HTTP/1.1\r\n${all.join("\r\n")}\r\n\r\n${body}`);
}

const statusOf = (answer: string): number => Number(/^HTTP\/1\.1 (\d{3})/.exec(answer)?.[1]);
const person = '{"email":"eve@example.com"}';

describe("a page of another site with the owner's cookie writes nothing", () => {
  test.each([
    ["without an Origin", []],
    ["as a form post", ["content-type: application/x-www-form-urlencoded", "origin: https://evil.example"]],
    ["as text, which asks no preflight", ["content-type: text/plain", "origin: https://evil.example"]],
    ["as a form with files", ["content-type: multipart/form-data; boundary=x", "origin: null"]],
    ["from another port of this host", ["origin: http://127.0.0.1:1"]],
    ["with two Origins", ["origin: https://evil.example", "origin: OWN"]],
    ["with the Origin in another place", ["x-origin: OWN", "referer: OWN/"]],
    ["with the Host it would need", ["origin: http://evil.example", "x-forwarded-host: evil.example"]],
  ])("%s", async (_name, headers) => {
    await using api = await startApi();
    const sent = headers.map((header) => header.replace("OWN", api.base));
    const answer = await request(api, `POST ${api.E}/persons`, [`cookie: ${api.cookie}`, ...sent], person);
    expect(statusOf(answer)).toBe(403);
    expect(answer).toContain("wrong_origin");
    expect(await api.store.read((tx) => tx.all("SELECT id FROM person"))).toEqual([]);
  });

  test("the same request from the dashboard's own page is accepted", async () => {
    await using api = await startApi();
    const headers = [`cookie: ${api.cookie}`, `origin: ${api.base}`];
    expect(statusOf(await request(api, `POST ${api.E}/persons`, headers, person))).toBe(201);
  });
});

test.each(["x-http-method-override: DELETE", "x-http-method: DELETE", "x-method-override: DELETE"])(
  "a read stays a read with %s, and with a query or a field that asks for another method",
  async (header) => {
    await using api = await startApi();
    await api.call(`${api.E}/persons`, {
      method: "POST",
      key: api.keys.dev,
      body: { email: "bo@example.com" },
    });
    const [row] = await api.store.read((tx) => tx.all<{ id: string }>("SELECT id FROM person"));
    const path = `${api.E}/persons/${row?.id}`;
    expect(statusOf(await request(api, `GET ${path}`, [`cookie: ${api.cookie}`, header]))).toBe(200);
    expect(statusOf(await request(api, `GET ${path}?_method=DELETE`, [`cookie: ${api.cookie}`]))).toBe(400);
    const post = [`cookie: ${api.cookie}`, `origin: ${api.base}`, header];
    expect(statusOf(await request(api, `POST ${path}`, post, "_method=DELETE"))).toBe(405);
    expect(await api.store.read((tx) => tx.all("SELECT id FROM person"))).toHaveLength(1);
  },
);

test.each([
  "/../package.json",
  "/../../../../etc/passwd",
  "/%2e%2e/%2e%2e/etc/passwd",
  "/..%2f..%2fetc%2fpasswd",
  "/..%5c..%5cetc%5cpasswd",
  "/.%00./etc/passwd",
  "/%c0%ae%c0%ae/etc/passwd",
  "/file:///etc/passwd",
  "/.relay/relay.db",
  "/.relay/master.key",
  "/master.key",
  "/service/.secrets.json",
  "/src/main.ts",
  "/web/index.html",
  "/B:/~BUN/root/relay",
  "/$bunfs/root/relay",
])("%s leads to no file", async (path) => {
  await using api = await startApi();
  const answer = await request(api, `GET ${path}`, ["accept: */*"]);
  expect(statusOf(answer)).toBe(/%2f|%5c|%2e|\.\.\/|\/\//.test(path) ? 400 : 404);
  expect(answer).not.toContain("root:");
});

test("a file of any media type is served as a download that no page may run", async () => {
  await using api = await startApi();
  const types = ["text/html", "image/svg+xml", "application/javascript", "text/html; charset=\u00ff", "", "nonsense"];
  for (const type of types) {
    const upload = {
      method: "POST",
      key: api.keys.dev,
      bytes: new TextEncoder().encode("<script>alert(1)</script>"),
      headers: { "content-type": type },
    };
    const name = encodeURIComponent('x".html\r\nset-cookie: a=b');
    const made = await api.call(`${api.E}/files?name=${name}`, upload);
    expect([type, made.status < 500]).toEqual([type, true]);
    if (made.status !== 201) continue;
    const file = await api.call(`${api.E}/files/${made.json.file.id}`, { key: api.keys.dev });
    expect(file.status).toBe(200);
    expect(file.headers.get("content-disposition")).toStartWith("attachment;");
    expect(file.headers.get("content-security-policy")).toStartWith("default-src 'none'");
    expect(file.headers.get("x-content-type-options")).toBe("nosniff");
    expect(file.headers.get("set-cookie")).toBeNull();
  }
});

test("markup in a name, a payload or an address comes back only as JSON or plain text", async () => {
  await using api = await startApi();
  const markup = "<img src=x onerror=alert(1)>";
  const fields = { text: { type: "text" } };
  const by = { method: "POST", key: api.keys.dev };
  await api.call(`${api.E}/collections`, { ...by, body: { name: "notes", kind: "shared", fields } });
  const answers = [
    await api.call(`${api.E}/collections/notes/records`, { ...by, body: { data: { text: markup } } }),
    await api.call(`${api.E}/collections`, { ...by, body: { name: markup, kind: "shared", fields } }),
    await api.call(`${api.E}/relays/validate`, {
      ...by,
      body: { definition: { name: markup, [markup]: 1 } },
    }),
    await api.call(`${api.E}/relays?${encodeURIComponent(markup)}=1`, { key: api.keys.dev }),
    await api.call(`/${encodeURIComponent(markup)}`),
    await api.call(`/docs/errors/${encodeURIComponent(markup)}`),
    await api.call(`/client/${encodeURIComponent(markup)}`),
  ];
  for (const { headers } of answers) {
    expect(headers.get("content-type")).toMatch(/^(application\/json|text\/plain)/);
    expect(headers.get("x-content-type-options")).toBe("nosniff");
    expect(headers.get("content-security-policy")).toContain("default-src 'none'");
  }
});

test("no cache stores what belongs to an owner", async () => {
  await using api = await startApi();
  for (const path of ["/api/session", `${api.E}/relays`, `${api.E}/settings`, `${api.E}/keys`, "/api/apps"]) {
    const { headers } = await api.call(path, { session: true });
    expect([path, headers.get("cache-control")]).toEqual([path, "no-store"]);
  }
  const signedIn = await api.call("/", { session: true });
  const stranger = await api.call("/");
  expect(signedIn.text).toBe(stranger.text);
});

describe("guessing", () => {
  const guess = (api: ApiServer, headers: Record<string, string> = {}) =>
    api.call("/api/session", {
      method: "POST",
      body: { email: "ann@example.com", password: "wrong password" },
      headers: { origin: api.base, ...headers },
    });

  test("a password is limited, whatever address a header claims", async () => {
    await using api = await startApi();
    const codes: string[] = [];
    for (let n = 0; n < 12; n++) codes.push((await guess(api, { "x-forwarded-for": `203.0.113.${n}` })).json.code);
    expect(codes.slice(0, 10)).toEqual(Array(10).fill("unauthenticated"));
    expect(codes.slice(10)).toEqual(["signin_capped", "signin_capped"]);
  });

  test("a link from one address blocks no other address", async () => {
    await using api = await startApi({ trustedProxies: ["127.0.0.1"] });
    const open = (address: string) =>
      api.call("/api/session/link", {
        method: "POST",
        body: { token: "x".repeat(32) },
        headers: { origin: api.base, "x-forwarded-for": address },
      });
    for (let n = 0; n < 10; n++) await open("203.0.113.1");
    expect((await open("203.0.113.1")).json.code).toBe("signin_capped");
    expect((await open("203.0.113.2")).json.code).toBe("unauthenticated");
  });
});

describe("repeated slashes", () => {
  const PAGE = "accept: text/html,*/*";
  test.each([
    ["//docs", "/docs"],
    ["//apps//shop///events?state=dead", "/apps/shop/events?state=dead"],
    ["//elsewhere.example/x", "/elsewhere.example/x"],
    ["///elsewhere.example", "/elsewhere.example"],
  ])("in a browser's request for %s redirect to the same page of this service", async (path, plain) => {
    await using api = await startApi();
    const answer = await request(api, `GET ${path}`, [PAGE]);
    expect([statusOf(answer), /^location: (.*)$/im.exec(answer)?.[1]]).toEqual([307, plain]);
  });

  test.each(["GET //docs", "POST //docs", "GET //api/session", "GET /hooks//shop/orders", "GET //hooks/shop/orders", "GET /client//shop"])(
    "in %s are refused for a program, and for every client below the paths of programs",
    async (line) => {
      await using api = await startApi();
      for (const accept of line === "GET //docs" ? ["accept: application/json", "accept: */*"] : [PAGE, "accept: */*"]) {
        const answer = await request(api, line, [accept]);
        expect([statusOf(answer), answer]).toEqual([400, expect.stringContaining("ambiguous_request")]);
      }
    },
  );
});
