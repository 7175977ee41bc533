/** Tests owners and their sessions: which sessions each can end, who can be removed, and that only a link sets a first password. */
import { expect, test } from "bun:test";
import { connect } from "node:net";
import { revokeApiKey } from "../../src/platform/account/api-key.ts";
import { createOwner, removeOwner } from "../../src/platform/account/owner.ts";
import { createSession } from "../../src/platform/account/session.ts";
import { runScenarios } from "../kit/api-scenario.ts";
import { type ApiServer, startApi } from "../kit/api-server.ts";
import { poll } from "../kit/patience.ts";
import { START_MS } from "../kit/virtual-clock.ts";

const FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:130.0) Gecko/20100101 Firefox/130.0";

/** Adds a second owner with one session. Ann already has two more. */
async function seedOthers(api: ApiServer): Promise<void> {
  await api.store.write("dashboard", async (tx) => {
    const bea = await createOwner(tx, { email: "bea@example.com", passwordHash: "a hash", nowMs: START_MS });
    const from = { source: "192.0.2.7", agent: `${FIREFOX}\u0000\n` };
    await createSession(tx, bea.id, START_MS, from);
    await createSession(tx, api.ownerId, START_MS - 1_000, from);
    await createSession(tx, api.ownerId, START_MS - 2_000);
  });
}

const rows = <Row>(api: ApiServer, sql: string) => api.store.read((tx) => tx.all<Row>(sql));
const sessionsOf = async (api: ApiServer) => (await api.call("/api/sessions", { session: true })).json.sessions;
const lastAudit = async (api: ApiServer) =>
  (await rows<{ action: string; target: string; actor: string }>(api, "SELECT action, target, actor FROM audit ORDER BY seq DESC LIMIT 1"))[0];

runScenarios([
  {
    name: "an owner sees only their own sessions: the address, the browser, and which one is current",
    given: seedOthers,
    request: "GET /api/sessions",
    call: { session: true },
    status: 200,
    also: (api, { json }) => {
      expect(json.sessions).toHaveLength(3);
      expect(json.sessions.filter((one: { current: boolean }) => one.current)).toHaveLength(1);
      expect(json.sessions[1]).toMatchObject({ source: "192.0.2.7", agent: FIREFOX, seenAt: "2026-01-15T11:59:59.000Z", current: false });
      expect(JSON.stringify(json)).not.toContain(api.cookie.split("=")[1]);
    },
  },
  {
    name: "everywhere but here: the others end, this one stays, and the audit holds the count",
    given: seedOthers,
    request: "DELETE /api/sessions?others=true",
    call: { session: true },
    status: 200,
    answer: { ended: 2 },
    changes: { session: -2, audit: 1 },
    also: async (api) => {
      expect(await sessionsOf(api)).toHaveLength(1);
      expect(await lastAudit(api)).toEqual({
        action: "owner.signed_out_everywhere",
        target: "owner:ann@example.com",
        actor: "owner:ann@example.com",
      });
    },
  },
  {
    name: "everywhere: this session ends too, and its cookie with it",
    given: seedOthers,
    request: "DELETE /api/sessions",
    call: { session: true },
    status: 200,
    answer: { ended: 3 },
    changes: { session: -3, audit: 1 },
    also: async (api, { headers }) => {
      expect(headers.get("set-cookie")).toContain("Max-Age=0");
      expect((await api.call("/api/sessions", { session: true })).status).toBe(401);
      expect(await rows(api, "SELECT 1 FROM session")).toHaveLength(1);
    },
  },
  {
    name: "without another session, nothing ends and nothing is audited",
    request: "DELETE /api/sessions?others=true",
    call: { session: true },
    status: 200,
    answer: { ended: 0 },
  },
  {
    name: "owners are listed with their number of sessions and last sign-in",
    given: seedOthers,
    request: "GET /api/owners",
    call: { session: true },
    status: 200,
    answer: {
      owners: [
        { email: "ann@example.com", hasPassword: false, sessions: 3, seenAt: "2026-01-15T12:00:00.000Z" },
        { email: "bea@example.com", hasPassword: true, sessions: 1 },
      ],
    },
    also: (_api, { text }) => expect(text).not.toContain("a hash"),
  },
  {
    name: "a new owner gets a link that only this response shows",
    request: "POST /api/owners",
    call: { session: true, body: { email: "cleo@example.com" } },
    status: 201,
    answer: { owner: { email: "cleo@example.com", hasPassword: false, sessions: 0 }, link: { expiresAt: "2026-01-16T12:00:00.000Z" } },
    changes: { owner: 1, membership: 1, signin_link: 1, audit: 1 },
    also: async (api, { json }) => {
      const token = new URL(json.link.url).hash.slice(1);
      expect(Bun.inspect([...(await api.snapshot())])).not.toContain(token);
      const body = { token, password: "a long password" };
      const signed = await api.call("/api/session/reset", { method: "POST", body, headers: { origin: api.base } });
      expect([signed.status, signed.json.owner.email]).toEqual([200, "cleo@example.com"]);
    },
  },
  ...(
    [
      ["an invalid address", "nobody", 400, "invalid_input"],
      ["an owner's address in other letter case", "Ann@Example.com", 409, "name_taken"],
    ] as const
  ).map(([what, email, status, code]) => ({
    name: `no owner is made of ${what}`,
    request: "POST /api/owners",
    call: { session: true, body: { email } },
    status,
    answer: { code },
  })),
  {
    name: "an owner without a password gets another link, and the previous one becomes invalid",
    given: (api) => api.call("/api/owners", { method: "POST", session: true, body: { email: "cleo@example.com" } }),
    request: "GET /api/owners",
    call: { session: true },
    status: 200,
    also: async (api, { json }) => {
      const { id } = json.owners[1];
      const again = await api.call(`/api/owners/${id}/link`, { method: "POST", session: true, body: {} });
      expect(again.status).toBe(201);
      expect(await rows(api, "SELECT 1 FROM signin_link")).toHaveLength(1);
    },
  },
]);

test("an owner cannot end another owner's session or set another owner's password", async () => {
  await using api = await startApi();
  await seedOthers(api);
  const [bea] = await rows<{ id: string; session: string }>(
    api,
    "SELECT owner.id, session.id AS session FROM owner JOIN session ON owner_id = owner.id WHERE email = 'bea@example.com'",
  );
  const ask = (method: string, path: string, body?: unknown) => api.call(path, { method, session: true, ...(body === undefined ? {} : { body }) });
  const before = await api.snapshot();
  const foreign = await ask("DELETE", `/api/sessions/${bea?.session}`);
  expect([foreign.status, foreign.json.code]).toEqual([404, "not_found"]);
  const link = await ask("POST", `/api/owners/${bea?.id}/link`, {});
  expect([link.status, link.json.code, link.json.message]).toEqual([409, "in_use", expect.stringContaining("relay admin reset")]);
  const self = await ask("DELETE", `/api/owners/${api.ownerId}`);
  expect([self.status, self.json.code]).toEqual([409, "in_use"]);
  expect(await api.snapshot()).toEqual(before);
  expect((await ask("DELETE", `/api/owners/${bea?.id}`)).status).toBe(204);
  expect(await rows(api, "SELECT 1 FROM session")).toHaveLength(3);
  expect(await lastAudit(api)).toMatchObject({ action: "owner.removed", target: "owner:bea@example.com" });
  const [old] = (await sessionsOf(api)).filter((one: { current: boolean }) => !one.current);
  expect((await ask("DELETE", `/api/sessions/${old.id}`)).status).toBe(204);
  expect(await lastAudit(api)).toMatchObject({ action: "session.ended", target: `session:${old.id}` });
});

test("a session's last use is recorded every ten minutes, with the address and the browser", async () => {
  await using api = await startApi();
  const seen = async () => (await sessionsOf(api))[0];
  expect(await seen()).toMatchObject({ seenAt: "2026-01-15T12:00:00.000Z", agent: null });
  api.clock.jump(9 * 60_000);
  await api.call("/api/apps", { session: true });
  expect(await seen()).toMatchObject({ seenAt: "2026-01-15T12:00:00.000Z" });
  api.clock.jump(60_000);
  await api.call("/api/apps", { session: true, headers: { "user-agent": FIREFOX } });
  expect(await poll(seen, ({ seenAt }) => seenAt !== "2026-01-15T12:00:00.000Z")).toMatchObject({
    seenAt: "2026-01-15T12:10:00.000Z",
    agent: FIREFOX,
    source: "127.0.0.1",
  });
});

for (const [what, end] of [
  ["session was ended", (api: ApiServer) => api.store.write("app", (tx) => tx.run("DELETE FROM session"))],
  ["owner was removed", (api: ApiServer) => api.store.write("app", (tx) => removeOwner(tx, api.ownerId))],
  [
    "key was revoked",
    async (api: ApiServer) => {
      const [key] = await rows<{ id: string }>(
        api,
        `SELECT id FROM api_key WHERE kind = 'secret' AND environment_id = ${api.environments.development.id}`,
      );
      await api.store.write("app", (tx) => revokeApiKey(tx, api.environments.development.id, key?.id ?? "", START_MS));
    },
  ],
] as const) {
  test(`a slow request body changes nothing after its ${what}`, async () => {
    await using api = await startApi();
    await seedOthers(api);
    const isKey = what.startsWith("key");
    const who = isKey ? `authorization: Bearer ${api.keys.dev}` : `cookie: ${api.cookie}\r\norigin: ${api.base}`;
    const body = JSON.stringify(isKey ? { name: "notes", kind: "shared", fields: { text: { type: "text" } } } : { name: "mine still" });
    const socket = connect(api.service.port, "127.0.0.1");
    let heard = "";
    const answered = new Promise<void>((resolve) => {
      socket.on("data", (chunk) => {
        heard += chunk.toString();
        if (heard.includes("\r\n\r\n")) resolve();
      });
      socket.on("close", () => resolve());
    });
    socket.write(
      `POST ${api.E}/${isKey ? "collections" : "keys"} HTTP/1.1\r\nhost: ${new URL(api.base).host}\r\n${who}\r\ncontent-length: ${body.length}\r\n\r\n${body.slice(0, 9)}`,
    );
    await Bun.sleep(100);
    await end(api);
    const before = await api.snapshot();
    await api.clock.advance(1_000);
    socket.write(body.slice(9));
    await answered;
    socket.destroy();
    expect(heard).toStartWith("HTTP/1.1 401");
    expect(await api.snapshot()).toEqual(before);
  });
}

test("renaming an app is audited and leaves its id unchanged", async () => {
  await using api = await startApi();
  const rename = (id: string, name: string) => api.call(`/api/apps/${id}`, { method: "PATCH", session: true, body: { name } });
  expect((await rename("shop", " The shop ")).json).toMatchObject({ app: { id: "shop", name: "The shop" } });
  expect(await lastAudit(api)).toMatchObject({ action: "app.renamed", target: "app:shop" });
  expect([(await rename("nobody", "x")).status, (await rename("shop", " ")).status, (await rename("shop", "x".repeat(101))).status]).toEqual([
    404, 400, 400,
  ]);
});

test("local development has one owner and cannot create or invite another", async () => {
  await using api = await startApi({ mode: "local" });
  const made = await api.call("/api/owners", { method: "POST", session: true, body: { email: "cleo@example.com" } });
  expect([made.status, made.json.code]).toEqual([403, "forbidden"]);
});
