/** Production changes that need a second person: who may request, who may approve, and what changes without an approval. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { type ApiServer, type Call, startApi } from "../kit/api-server.ts";
import { addMember } from "../kit/member.ts";
import { receiverDefinition, writeOrder } from "../kit/relay-definition.ts";

const LIVE = "/api/apps/shop/production";
const WANTED = { from: "development", to: "production" };

let api: ApiServer;
let bea: Call;
beforeEach(async () => {
  api = await startApi();
  const { token } = await api.store.write("dashboard", (tx) => addMember(tx, "bea", { nowMs: api.clock.now() }));
  bea = { headers: { cookie: `relay_session=${token}`, origin: api.base } };
  await send("POST", `${api.E}/collections`, {
    session: true,
    body: { name: "orders", kind: "shared", fields: { order: { type: "text" }, amount: { type: "text" } } },
  });
  await send("POST", `${api.E}/relays`, { session: true, body: { definition: receiverDefinition({ name: "orders", actions: [writeOrder] }) } });
});
afterEach(async () => {
  await api[Symbol.asyncDispose]();
});

const ann: Call = { session: true };

async function send(method: string, path: string, call: Call) {
  return await api.call(path, { ...call, method });
}

async function turn(secondPerson: boolean, by: Call = ann) {
  const { version } = (await api.call(`${LIVE}/settings`, ann)).json.settings;
  return await send("PUT", `${LIVE}/settings`, { ...by, body: { version, approvals: { secondPerson } } });
}

/** Requests the change of development's relay for production. */
async function request(by: Call, at = api.E) {
  const { plan } = (await send("POST", `${at}/sync/plan`, { ...by, body: WANTED })).json;
  return await send("POST", `${at}/approvals`, { ...by, body: { ...WANTED, plan } });
}

const decide = (by: Call, { id, plan }: { id: string; plan: string }, decision = "approve") =>
  send("POST", `/api/approvals/${id}`, { ...by, body: { decision, plan } });

describe("with the switch on", () => {
  beforeEach(async () => {
    expect((await turn(true)).status).toBe(200);
  });

  test("the person who asks cannot approve, another one can, and the audit shows both", async () => {
    const { approval } = (await request(ann)).json;
    const own = await decide(ann, approval);
    expect([own.status, own.json.code]).toEqual([403, "forbidden"]);
    expect(own.json.message).toBe("You requested this change, and production needs a second person: ask another owner to approve it.");
    expect((await decide(bea, approval)).json.approval.state).toBe("approved");
    expect((await send("POST", `/api/approvals/${approval.id}/apply`, { ...ann, body: {} })).status).toBe(200);
    const { items } = (await api.call(`${LIVE}/audit?target=approval:${approval.id}`, ann)).json;
    const actors = items.map(({ actor, action }: Record<string, string>) => `${action} ${actor}`);
    expect(actors).toEqual(
      expect.arrayContaining([expect.stringContaining("owner:ann@example.com"), expect.stringContaining("owner:bea@example.com")]),
    );
  });

  test("when both approve at the same time, only the second person does", async () => {
    const { approval } = (await request(ann)).json;
    const replies = await Promise.all([decide(ann, approval), decide(bea, approval), decide(ann, approval)]);
    expect(replies.map(({ status }) => status === 200)).toEqual([false, true, false]);
    const row = await api.store.read((tx) =>
      tx.get<{ decidedBy: string }>("SELECT decided_by AS decidedBy FROM approval WHERE id = ?1", approval.id),
    );
    expect(row).toEqual({ decidedBy: "owner:bea@example.com" });
  });

  test("a key that belongs to no person cannot request", async () => {
    const reply = await request({ key: api.keys.dev });
    expect([reply.status, reply.json.code]).toEqual([403, "forbidden"]);
    expect(reply.json.message).toContain("this request belongs to no person");
  });

  const DIRECT: readonly [method: string, path: string, body: object][] = [
    ["PUT", "/products/book", { title: "Book" }],
    ["POST", "/relays", { definition: receiverDefinition({ name: "other", actions: [writeOrder] }) }],
    ["PUT", "/catalog", {}],
    ["DELETE", "/relays/orders", {}],
  ];
  test.each(DIRECT)("%s %s in production is refused for an owner and a key", async (method, path, body) => {
    for (const by of [ann, { key: api.keys.live }]) {
      const reply = await send(method, LIVE + path, { ...by, body });
      expect([reply.status, reply.json.code]).toEqual([403, "approval_needed"]);
    }
  });

  test("what changes no relay and no catalog needs no second person", async () => {
    const made = await send("POST", `${LIVE}/captures`, { ...ann, body: {} });
    expect(made.status).toBe(201);
    const { id } = made.json.capture;
    expect((await api.call(`${LIVE}/captures/${id}`, ann)).status).toBe(200);
    const imported = await send("POST", `${LIVE}/relays/orders/import-missed`, { ...ann, body: { lines: "" } });
    expect(imported.json.code).not.toBe("approval_needed");
  });

  test("no key turns it off, an owner does", async () => {
    const reply = await turn(false, { key: api.keys.live });
    expect([reply.status, reply.json.code]).toEqual([403, "forbidden"]);
    expect((await turn(false)).json.settings.approvals).toEqual({ secondPerson: false });
    expect((await send("PUT", `${LIVE}/products/book`, { ...ann, body: { title: "Book" } })).status).toBeLessThan(300);
  });
});

test("a request of a key from before the switch cannot be approved after it", async () => {
  const { approval } = (await request({ key: api.keys.dev })).json;
  await turn(true);
  const reply = await decide(ann, approval);
  expect(reply.json.message).toContain("this request belongs to no person");
});

test("without the switch, one owner requests and approves", async () => {
  const { approval } = (await request(ann)).json;
  expect((await decide(ann, approval)).json.approval.state).toBe("approved");
});

test("development has no such setting", async () => {
  const { version } = (await api.call(`${api.E}/settings`, ann)).json.settings;
  const reply = await send("PUT", `${api.E}/settings`, { ...ann, body: { version, approvals: { secondPerson: true } } });
  expect([reply.status, reply.json.code]).toEqual([400, "invalid_input"]);
});
