/** A small shop on a server, with one of everything that the API's examples name. */

import { EXAMPLE_RELAY } from "../../src/interfaces/docs/example-relay.ts";
import { createOwner } from "../../src/platform/account/owner.ts";
import { createSession } from "../../src/platform/account/session.ts";
import { raiseAlert } from "../../src/platform/audit/alert.ts";
import { bindScheme } from "../../src/rules/verify/registry.ts";
import { createPersonSession } from "../../src/shop/portal/person-session.ts";
import { type ApiServer, startApi } from "./api-server.ts";
import { mintAppKey } from "./app-visitor.ts";
import { FakeCaller } from "./fake-caller.ts";

interface DocsShop extends AsyncDisposable {
  api: ApiServer;
  /** Returns the values of `$BASE` and the other placeholders. It creates sessions and plans each time, because an example can end them. */
  readVariables(): Promise<Readonly<Record<string, string>>>;
}

const WEBHOOK = { kind: "webhook", fields: { url: "https://example.com/relay-alerts" } };
const ADA = "ada@example.com";
const PAGE = "https://shop.example.com";

export async function openDocsShop(): Promise<DocsShop> {
  let txt = "";
  const api = await startApi({}, { caller: new FakeCaller(), resolveTxt: async () => [txt] });
  const E = api.E;
  const ask = async (method: string, path: string, body?: unknown) => {
    const reply = await api.call(path.startsWith("/") ? path : `${E}/${path}`, {
      method,
      key: api.keys.dev,
      ...(body === undefined ? {} : { body }),
    });
    if (reply.status >= 300) throw new Error(`${method} ${path}: ${reply.text}`);
    return reply.json;
  };
  const { version } = (await ask("GET", "settings")).settings;
  await ask("PUT", "settings", { version, mail: { smtp: { host: "mail.example.com" } } });
  const { senderDomain } = await ask("PUT", "sender-domain", { domain: "example.com" });
  txt = senderDomain.record.value;
  await ask("POST", "sender-domain/verify");
  const { email } = await ask("POST", "mail/test", { to: "ann@example.com" });
  const link = { kind: "payment_link", url: "https://pay.example.com/1" };
  await ask("POST", "collections", { name: "orders", kind: "addressed", fields: { order: "text" } });
  await ask("POST", "collections", { name: "todos", kind: "private", fields: { text: "text" } });
  await ask("PUT", "access", { items: [{ slug: "members" }] });
  await ask("PUT", "products/premium", { title: "Premium", credits: 10 });
  await ask("PUT", "products/linked", { soldThrough: link });
  await ask("PUT", "plans/free", { default: true });
  await ask("PUT", "plans/team", { title: "Team" });
  await ask("PUT", "plans/linked-plan", { soldThrough: link });
  const ada = (await ask("POST", "persons", { email: ADA })).person.id;
  await ask("PATCH", `persons/${ada}`, { status: "active" });
  const other = (await ask("POST", "persons", { email: "eve@example.com" })).person.id;
  const { receiverSecret } = await ask("POST", "relays", { definition: EXAMPLE_RELAY });
  const body = new TextEncoder().encode('{"id":"41","type":"order.paid","email":"ada@example.com"}');
  const draft = { body, contentType: "application/json", receiverUrl: "", nowMs: api.clock.now() };
  const signed = bindScheme({ scheme: "hooks" })?.sign(receiverSecret, draft);
  const sent = await fetch(`${api.base}/hooks/shop/orders`, { method: "POST", headers: signed?.headers ?? {}, body });
  const { eventId } = (await sent.json()) as { eventId: string };
  await fetch(`${api.base}/hooks/shop/orders`, { method: "POST", body });
  const call = (await ask("GET", "calls")).items[0]?.id ?? "";
  const grant = (await ask("POST", `persons/${ada}/grants`, { entitlement: "access:members" })).grant.id;
  const record = (await ask("POST", "collections/orders/records", { data: { order: "1" }, to: ada })).record.id;
  const note = (await ask("POST", "collections/todos/records", { data: { text: "Begin" }, owner: ada })).record.id;
  const purchase = (await ask("POST", "receipts", { ref: "first", person: ada, product: "premium" })).receipt.id;
  const file = await api.call(`${E}/files?name=a.txt`, {
    method: "POST",
    key: api.keys.dev,
    bytes: new Uint8Array([97]),
    headers: { "content-type": "text/plain" },
  });
  await ask("POST", "receipts", { ref: "plan-1", person: ada, plan: "team" });
  const subscription = (await ask("GET", "subscriptions")).items[0]?.id ?? "";
  const replay = (await ask("POST", "bulk-replays", { state: "dead" })).replay.id;
  const nowMs = api.clock.now();
  const environmentId = api.environments.development.id;
  const live = async (path: string, body: unknown) =>
    (await api.call(`/api/apps/shop/production/${path}`, { method: "POST", key: api.keys.live, body })).json;
  const definition = { ...EXAMPLE_RELAY, name: "carried", actions: [{ type: "call_url", url: "https://example.com/notice" }] };
  const relays = [definition];
  const approvedPlan = (await live("sync/plan", { relays })).plan;
  const asked = await live("approvals", { relays, plan: approvedPlan });
  const owner = await api.store.write("app", async (tx) => {
    await raiseAlert(tx, { environmentId, code: "relay_failed", target: "relay:orders", message: "It died.", count: 1, nowMs });
    return await createOwner(tx, { email: "former@example.com", passwordHash: null, nowMs });
  });
  const startSessions = () =>
    api.store.write("app", async (tx) => ({
      own: await createSession(tx, api.ownerId, nowMs),
      other: await createSession(tx, api.ownerId, nowMs),
      person: await createPersonSession(tx, { environmentId, personId: ada, nowMs }),
    }));
  const first = async (path: string): Promise<string> => {
    const [list] = Object.values((await api.call(path, { session: true })).json).filter(Array.isArray);
    return list?.[0]?.id ?? "";
  };
  const given = {
    BASE: api.base,
    KEY: api.keys.dev,
    LIVE_KEY: api.keys.live,
    APP_KEY: await mintAppKey(api, "development", [PAGE]),
    PAGE,
    PERSON: ada,
    OTHER_PERSON: other,
    EVENT: eventId,
    CALL: call,
    GRANT: grant,
    RECORD: record,
    NOTE: note,
    PURCHASE: purchase,
    SUBSCRIPTION: subscription,
    REPLAY: replay,
    FILE: file.json.file.id,
    OTHER_OWNER: owner.id,
    OTHER_KEY: await first(`${E}/keys`),
    ALERT: await first(`${E}/alerts`),
    EMAIL: email.id,
    APPROVAL: asked.approval?.id ?? "",
    APPROVED_PLAN: approvedPlan,
  };
  return {
    api,
    async readVariables() {
      const sessions = await startSessions();
      const cookie = `relay_session=${sessions.own.token}`;
      const { sessions: listed } = (await (await fetch(`${api.base}/api/sessions`, { headers: { cookie } })).json()) as {
        sessions: { id: string; current?: boolean }[];
      };
      return {
        ...given,
        SESSION: cookie,
        PERSON_SESSION: sessions.person.token,
        OTHER_SESSION: listed.find(({ current }) => current !== true)?.id ?? "",
        CAPTURE: (await ask("POST", "captures")).capture.id,
        CHANNEL: (await ask("GET", "alert-channels")).channels[0]?.id ?? (await ask("POST", "alert-channels", WEBHOOK)).channel.id,
        CATALOG: (await ask("GET", "catalog")).version,
        PLAN: (await ask("POST", "sync/plan", { relays: [] })).plan,
        LIVE_PLAN: (await live("sync/plan", { relays: [] })).plan,
      };
    },
    [Symbol.asyncDispose]: () => api[Symbol.asyncDispose](),
  };
}
