/** Tests the key of an apply: a repeated request gets the first response with its secrets, for ten minutes and only for its caller. */
import { afterEach, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../src/base/clock.ts";
import { APPLY_RESPONSE_LIFE_MS, HOUR_MS, MAX_APPLY_RESPONSES } from "../../src/base/limit.ts";
import { type ApiServer, type Reply, startApi } from "../kit/api-server.ts";
import { runCommand } from "../kit/cli-io.ts";

const NOTES = { collections: { notes: { kind: "shared", fields: { text: { type: "text" } } } } };
const receiver = (name: string) => ({
  name,
  trigger: { kind: "receiver", verify: { scheme: "hooks" }, map: { event_id: "id" } },
  actions: [{ type: "write_record", collection: "notes", data: { text: "x" } }],
});
const LIVE = "/api/apps/shop/production";

const post = (api: ApiServer, path: string, body: object, key: string | null = api.keys.dev) =>
  api.call(path, { method: "POST", ...(key === null ? { session: true } : { key }), body });
/** Plans a sync of these relays, and returns the body of its apply. */
async function planOf(api: ApiServer, names: string[], catalog: object | null = NOTES) {
  const files = { relays: names.map(receiver), catalog };
  return { ...files, plan: (await post(api, `${api.E}/sync/plan`, files)).json.plan };
}
const apply = (api: ApiServer, body: object, key: string | null = api.keys.dev) => post(api, `${api.E}/sync/apply`, body, key);
const kept = (api: ApiServer) => api.rows<{ requestKey: string }>("SELECT request_key AS requestKey FROM apply_response");
const secretOf = ({ json }: Reply): string => json.secrets[0].receiverSecret;
/** Finds each table with a row that has the text, also as bytes. */
async function tablesWith(api: ApiServer, text: string): Promise<string[]> {
  const found = [...(await api.snapshot())].filter(([, rows]) => rows.some((row) => row.includes(text))).map(([table]) => table);
  const sealed = await api.rows<{ response: Uint8Array }>("SELECT response FROM apply_response");
  return sealed.some(({ response }) => Buffer.from(response).includes(text)) ? [...found, "apply_response"] : found;
}

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
});

test("a repeated request gets the first response with its secrets, again after a restart, and applies nothing", async () => {
  await using api = await startApi();
  const body = { ...(await planOf(api, ["orders"])), key: "first" };
  const first = await apply(api, body);
  expect([first.status, first.json.changes, first.json.repeated]).toEqual([200, 2, undefined]);
  expect(secretOf(first)).toStartWith("whsec_");
  const before = await api.snapshot();
  for (let round = 0; round < 2; round++) {
    const again = await apply(api, body);
    expect([again.status, again.json]).toEqual([200, { ...first.json, repeated: true }]);
  }
  expect(await api.snapshot()).toEqual(before);
  await api.restart();
  expect(secretOf(await apply(api, body))).toBe(secretOf(first));
  expect(await tablesWith(api, secretOf(first))).toEqual([]);
  expect(await tablesWith(api, "orders")).toContain("relay");
  expect(api.logged.join("\n")).not.toContain(secretOf(first));
});

test("two requests at once apply once, and both get the same secrets", async () => {
  await using api = await startApi();
  const body = { ...(await planOf(api, ["orders"])), key: "race" };
  const both = await Promise.all([apply(api, body), apply(api, body)]);
  expect(both.map(({ status }) => status)).toEqual([200, 200]);
  expect(secretOf(both[0])).toBe(secretOf(both[1]));
  expect(both.map(({ json }) => json.repeated === true).sort()).toEqual([false, true]);
});

test("the key of another request is refused, and nothing is applied", async () => {
  await using api = await startApi();
  await apply(api, { ...(await planOf(api, ["orders"])), key: "one" });
  const other = { ...(await planOf(api, ["other"])), key: "one" };
  const before = await api.snapshot();
  const refused = await apply(api, other);
  expect([refused.status, refused.json.code, refused.json.message]).toEqual([
    400,
    "invalid_input",
    "key was used for another request in the last ten minutes, and nothing was applied: repeat that request unchanged, or use a new key.",
  ]);
  expect(await api.snapshot()).toEqual(before);
  expect((await apply(api, { ...other, key: "two" })).json.changes).toBe(1);
});

test("another caller with the same key does not get the response", async () => {
  await using api = await startApi();
  const body = { ...(await planOf(api, ["orders"])), key: "one" };
  expect((await apply(api, body)).status).toBe(200);
  const other = await apply(api, body, null);
  expect([other.status, other.json.code]).toEqual([409, "version_conflict"]);
  expect(other.text).not.toContain("whsec_");
});

test("a response is kept for ten minutes, then deleted", async () => {
  await using api = await startApi();
  const body = { ...(await planOf(api, ["orders"])), key: "one" };
  await apply(api, body);
  await api.clock.advance(APPLY_RESPONSE_LIFE_MS - 1_000);
  expect((await apply(api, body)).json.repeated).toBe(true);
  await api.clock.advance(1_000);
  expect((await apply(api, body)).json.code).toBe("version_conflict");
  expect(await kept(api)).toHaveLength(1);
  // The next apply with a key deletes what expired, and so does the hourly maintenance.
  expect((await apply(api, { ...(await planOf(api, ["orders"])), key: "one" })).json.changes).toBe(0);
  expect(await kept(api)).toHaveLength(1);
  await api.clock.leap(2 * HOUR_MS, 5 * 60_000);
  expect(await kept(api)).toEqual([]);
});

test("a refused apply keeps nothing, and its key can be used again", async () => {
  await using api = await startApi();
  const body = await planOf(api, ["orders"]);
  expect((await apply(api, { ...body, plan: "pln_other", key: "one" })).json.code).toBe("version_conflict");
  expect(await kept(api)).toEqual([]);
  expect((await apply(api, { ...body, key: "one" })).json.changes).toBe(2);
  for (const key of ["", "two words", "x".repeat(201), "é"]) expect((await apply(api, { ...body, key })).json.code).toBe("invalid_input");
});

test("a caller has the newest responses up to the limit", async () => {
  await using api = await startApi();
  await apply(api, { ...(await planOf(api, ["orders"])), key: "first" });
  for (let at = 0; at < MAX_APPLY_RESPONSES; at++) {
    await api.clock.advance(1_000);
    expect((await apply(api, { ...(await planOf(api, ["orders"])), key: `key${at}` })).status).toBe(200);
  }
  const keys = (await kept(api)).map(({ requestKey }) => requestKey);
  expect([keys.length, keys.includes("first")]).toEqual([MAX_APPLY_RESPONSES, false]);
});

test("an approval that was applied with a key gives its secrets again to the requester", async () => {
  await using api = await startApi();
  await apply(api, await planOf(api, ["orders"]));
  const wanted = { from: "development", to: "production" };
  const { plan } = (await post(api, `${api.E}/sync/plan`, wanted)).json;
  const { id } = (await post(api, `${api.E}/approvals`, { ...wanted, plan })).json.approval;
  await post(api, `/api/approvals/${id}`, { decision: "approve", plan }, null);
  const done = () => post(api, `/api/approvals/${id}/apply`, { key: "one" });
  const [first, second] = await Promise.all([done(), done()]);
  const third = await done();
  expect([first.status, second.status, third.status]).toEqual([200, 200, 200]);
  expect(new Set([first, second, third].map(secretOf)).size).toBe(1);
  expect([third.json.repeated, third.json.notLive]).toEqual([true, ["orders"]]);
  expect((await post(api, `/api/approvals/${id}/apply`, { key: "two" })).json.code).toBe("approval_used");
  expect((await post(api, `/api/approvals/${id}/apply`, { key: "one" }, api.keys.live)).json.code).toBe("not_found");
  expect((await api.call(`${LIVE}/relays/orders`, { session: true })).json.relay.version).toBe(1);
});

/** Runs `relay sync` through a program that answers the applies first, with `answer`, after it passed them on. */
async function syncThrough(api: ApiServer, answer: (at: number) => "lost" | "bad gateway" | "earlier" | null) {
  const laptop = mkdtempSync(join(tmpdir(), "relay-laptop-"));
  folders.push(laptop);
  mkdirSync(join(laptop, "service", "relays"), { recursive: true });
  writeFileSync(join(laptop, "service", "relays", "orders.json"), JSON.stringify(receiver("orders")));
  writeFileSync(join(laptop, "service", "catalog.json"), JSON.stringify(NOTES));
  const keys: unknown[] = [];
  const between = createServer(async (request, response) => {
    const body = await new Response(request as never).text();
    const isApply = request.url?.endsWith("/apply") === true;
    const { authorization = "" } = request.headers;
    const what = isApply ? answer(keys.length) : null;
    if (isApply) keys.push(JSON.parse(body).key);
    if (what === "earlier") {
      const problems = [{ field: "key", message: "`key` is not a known field." }];
      response.writeHead(400, { "content-type": "application/json" }).end(JSON.stringify({ code: "invalid_input", message: "No.", problems }));
      return;
    }
    const init = { method: request.method ?? "GET", headers: { authorization, "content-type": "application/json" } };
    const reply = await fetch(api.base + request.url, body === "" ? init : { ...init, body });
    const text = await reply.text();
    if (what === "lost") response.destroy();
    else if (what === "bad gateway") response.writeHead(502).end("<html>Bad Gateway</html>");
    else response.writeHead(reply.status, { "content-type": "application/json" }).end(text);
  });
  await new Promise<void>((resolve) => between.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(between.address() as { port: number }).port}`;
  try {
    const ran = await runCommand(["sync"], { cwd: laptop, clock: systemClock, env: { RELAY_KEY: api.keys.dev, RELAY_URL: url } });
    const file = readFileSync(join(laptop, "service", ".secrets.json"), "utf8");
    return { ...ran, keys, secret: JSON.parse(file)[`${url}/shop/development`].orders.receiverSecret as string };
  } finally {
    between.closeAllConnections();
    between.close();
  }
}

test("relay sync repeats an apply whose response was lost with the same key, says so, and stores the secrets", async () => {
  await using api = await startApi();
  const { code, told, keys, secret } = await syncThrough(api, (at) => (["lost", "bad gateway"] as const)[at] ?? null);
  expect([code, keys.length, new Set(keys).size]).toEqual([0, 3, 1]);
  expect(told.split("The server's response was lost. The command sends the same request again").length).toBe(3);
  expect(secret).toStartWith("whsec_");
  expect(told).not.toContain(secret);
});

test("relay sync works with a server of an earlier version, which knows no key", async () => {
  await using api = await startApi();
  const { code, keys, secret } = await syncThrough(api, (at) => (at === 0 ? "earlier" : null));
  expect([code, keys]).toEqual([0, [expect.any(String), undefined]]);
  expect(secret).toStartWith("whsec_");
});
