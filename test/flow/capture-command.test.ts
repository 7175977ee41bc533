/** Tests `relay capture` and `relay guess`: the URL, each request with its guesses, and the deletion at the end. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { createHmac } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../src/base/clock.ts";
import { type ApiServer, startApi } from "../kit/api-server.ts";
import { runCommand } from "../kit/cli-io.ts";
import { startRunningService } from "../kit/running-service.ts";

const SECRET = "Qk7bXFQsq4OKAPhAIVqsHMpkNhzCwRnS";
const BODY = '{"id":"evt_7","type":"order.paid","data":{"email":"ada@example.com"}}';
const SIGNATURE = createHmac("sha256", SECRET).update(BODY).digest("hex");

let api: ApiServer;
let cwd: string;
let env: Record<string, string>;

beforeAll(async () => {
  api = await startApi();
  cwd = mkdtempSync(join(tmpdir(), "relay-capture-"));
  env = { RELAY_URL: api.base, RELAY_KEY: api.keys.dev };
});
afterAll(async () => {
  rmSync(cwd, { recursive: true });
  await api[Symbol.asyncDispose]();
});

interface Stopping {
  /** Sends a request to the URL when the command prints it. */
  post: (url: string) => Promise<unknown>;
  /** Ends the command when a text with this word is printed. */
  until: string;
}

/** Runs `relay capture` until it printed the word, as if the person pressed Ctrl+C then. */
async function capture(line: readonly string[], { post, until }: Stopping, more: Record<string, string> = {}) {
  let stop = (): void => undefined;
  const stopped = new Promise<void>((resolve) => {
    stop = resolve;
  });
  const hear = (text: string): void => {
    const url = /https?:\/\/[^\s"]+cap_[^\s"]+/.exec(text)?.[0];
    if (url !== undefined) void post(`${api.base}${new URL(url).pathname}`);
    if (text.includes(until)) stop();
  };
  return await runCommand(["capture", ...line], { cwd, env: { ...env, ...more }, clock: systemClock, hear, untilStopped: () => stopped });
}

const send = (url: string) =>
  fetch(url, { method: "POST", body: BODY, headers: { "x-acme-signature": SIGNATURE } }).then((answer) => answer.arrayBuffer());
const countRows = () => api.store.read((tx) => tx.get<{ count: number }>("SELECT count(*) AS count FROM request_capture"));

test("relay capture prints the URL and each request with its guesses, and Ctrl+C deletes all of it", async () => {
  const { code, said, told } = await capture([], { post: send, until: "Request 1" });
  expect([code, await countRows()]).toEqual([0, { count: 0 }]);
  expect(told).toContain("Enter this URL at the provider.");
  for (const text of ["/hooks/", "x-acme-signature: ", BODY, "type      type = order.paid.", "event ID  id = evt_7.", '"name": "acme"'])
    expect(said).toContain(text);
  expect(said).not.toContain("It verifies.");
});

test("with --once --json it prints the capture and the first request as lines of JSON, with the secret tried", async () => {
  const { code, said } = await capture(["--once", "--json"], { post: send, until: "nothing" }, { RELAY_SECRET: SECRET });
  const [opened, arrived, ...more] = said.split("\n").map((line) => JSON.parse(line));
  expect([code, more, await countRows()]).toEqual([0, [], { count: 0 }]);
  expect(opened.capture).toMatchObject({ id: expect.stringMatching(/^cap_/), url: expect.stringContaining("/hooks/") });
  expect(arrived.request).toMatchObject({ method: "POST", body: BODY });
  expect(arrived.guess.verify).toMatchObject({ verified: true, value: { header: "x-acme-signature" } });
  expect(said).not.toContain(SECRET);
});

test("a server that restarts keeps the capture, and the command continues", async () => {
  const pass = (request: Request) => fetch(request.url.replace(/^http:\/\/[^/]+/, api.base), request);
  let front = Bun.serve({ port: 0, fetch: pass });
  const port = front.port ?? 0;
  let url = "";
  let posted: Promise<unknown> | null = null;
  const hear = (text: string): void => {
    const found = /\/hooks\/\S+cap_\S+/.exec(text)?.[0];
    if (found !== undefined && url === "") {
      url = `${api.base}${found}`;
      void front.stop(true);
    }
    if (text.includes("The next attempt") && posted === null) {
      front = Bun.serve({ port, fetch: pass });
      posted = send(url);
    }
  };
  const given = { cwd, env: { ...env, RELAY_URL: `http://127.0.0.1:${port}` }, clock: systemClock, hear };
  const { code, said } = await runCommand(["capture", "--once"], given);
  expect([code, await countRows()]).toEqual([0, { count: 0 }]);
  expect(said).toContain("Request 1 at");
  await posted;
  await front.stop(true);
});

test("a body cannot imitate a line of the command", async () => {
  const post = async (url: string) =>
    await (await fetch(url, { method: "POST", body: "a\nRequest 2 at noon\n  verify    It verifies." })).arrayBuffer();
  const { said } = await capture(["--once"], { post, until: "nothing" });
  expect(said.split("\n").filter((line) => /^(Request| {2}verify)/.test(line)).length).toBe(2);
  expect(said).toContain("\n    a\n    Request 2 at noon\n      verify    It verifies.\n");
});

test.each([
  ["a long content type", { body: BODY, headers: { "content-type": `application/json; a=${"b".repeat(300)}` } }, ["event ID  id = evt_7."]],
  ["a body of other bytes", { body: new Uint8Array(100_000).fill(255) }, []],
  ["a body of control characters", { body: new Uint8Array(200_000) }, []],
])("a request with %s does not end the capture", async (_what, odd, wanted) => {
  const post = async (url: string) => {
    await (await fetch(url, { method: "POST", ...odd })).arrayBuffer();
    await send(url);
  };
  const { code, said, told } = await capture([], { post, until: "Request 2 at" });
  expect(code).toBe(0);
  for (const text of ["Request 1 at", "Request 2 at", ...wanted]) expect(said).toContain(text);
  expect(told.includes("Request 1 cannot be guessed: ")).toBe(wanted.length === 0);
});

test("it ends by itself when the capture is full or deleted", async () => {
  const full = await capture([], { post: async (url) => await Promise.all(Array.from({ length: 20 }, () => send(url))), until: "nothing" });
  expect([full.code, full.told]).toEqual([0, expect.stringContaining("The capture is full")]);
  const gone = await capture([], { post: () => api.store.write("app", (tx) => tx.run("DELETE FROM request_capture")), until: "nothing" });
  expect([gone.code, gone.told]).toEqual([0, expect.stringContaining("The capture is over.")]);
});

test.each([
  ["capture", [], { status: 404, code: "not_found" }],
  ["guess", ["-"], { status: 405, code: "method_not_allowed" }],
])("relay %s says that a server without its route is of an earlier version", async (name, line, { status, code: refused }) => {
  const ofKey = { app: "app_test", environment: "development", owner: null, expiresAt: null };
  await using older = Bun.serve({
    port: 0,
    fetch: ({ url }) =>
      url.endsWith("/api/key") ? Response.json(ofKey) : Response.json({ code: refused, message: "This path does not exist." }, { status }),
  });
  const origin = `http://127.0.0.1:${older.port}`;
  const { code, told } = await runCommand([name, ...line], { cwd, env: { ...env, RELAY_URL: origin }, input: BODY });
  expect([code, told]).toEqual([1, expect.stringContaining(`The server at ${origin} is of an earlier version`)]);
});

test("on a data directory without a server it is refused, and makes no capture", async () => {
  // The note of a running server is written by relay serve, and not by a service in this process.
  await using running = await startRunningService();
  const line = ["capture", "--data-dir", running.dataDir, "--app", "app_test", "--environment", "development"];
  const { code, told } = await runCommand(line, { cwd, env: running.commandEnv });
  expect([code, told]).toEqual([1, expect.stringContaining("No service runs on")]);
  expect(await running.rows("SELECT id FROM request_capture")).toEqual([]);
});

/** Texts that a person can paste, and what the command prints of them. */
const TEXTS: readonly (readonly [what: string, text: string, said: string])[] = [
  ["a curl command", `curl https://x.test/a -H 'X-Acme-Signature: ${SIGNATURE}' --data-raw '${BODY}'`, "It verifies."],
  ["headers and a body", `X-Acme-Signature: ${SIGNATURE}\n\n${BODY}`, "It verifies."],
  ["only a body", BODY, "event ID  id = evt_7."],
];

test.each(TEXTS)("relay guess reads %s, from a file and from standard input", async (_what, text, wanted) => {
  writeFileSync(join(cwd, "request.txt"), text);
  const given = { cwd, env: { ...env, RELAY_SECRET: SECRET } };
  const read = await runCommand(["guess", "request.txt"], given);
  const piped = await runCommand(["guess", "-"], { ...given, input: text });
  expect([read.code, read.said]).toEqual([0, piped.said]);
  for (const part of [wanted, "No known sender", '"actions": []']) expect(read.said).toContain(part);
  const { guess } = JSON.parse((await runCommand(["guess", "request.txt", "--json"], given)).said);
  expect(guess.definition.trigger.map).toMatchObject({ event_id: "id", event_type: "type" });
});

test.each([
  ["a file that does not exist", ["guess", "none.txt"], 1, "cannot be read"],
  ["standard input without a request", ["guess", "-"], 1, "Standard input is empty"],
  ["request and secret from standard input", ["guess", "-", "--secret-stdin"], 2, "set RELAY_SECRET"],
])("%s is refused", async (_what, line, code, told) => {
  expect(await runCommand(line, { cwd, env })).toMatchObject({ code, told: expect.stringContaining(told) });
});
