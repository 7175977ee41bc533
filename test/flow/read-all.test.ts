/** Reads every page and list of the OpenAPI document after an expunge, an erasure and a retention run. Missing rows must not break one. */
import { expect, test } from "bun:test";
import { DAY_MS, HOUR_MS } from "../../src/base/limit.ts";
import { type ApiServer, startApi } from "../kit/api-server.ts";
import { signIn } from "../kit/app-visitor.ts";
import { CALL, until, WRITE } from "../kit/event-flow.ts";
import { BROKEN, FakeCaller, OK } from "../kit/fake-caller.ts";
import { readAll } from "../kit/read-all.ts";
import { HOOK_SECRET, receiverDefinition, signedCall } from "../kit/relay-definition.ts";

const PERSON = { event_id: "id", event_type: "type", person_email: "email", ref: "ref" };
const receivers = [
  receiverDefinition({
    name: "orders",
    map: PERSON,
    actions: [
      { ...WRITE, to: "person" },
      { type: "grant_access", entitlement: "access:forum" },
    ],
  }),
  receiverDefinition({ name: "lost", map: PERSON, actions: [{ ...WRITE, collection: "nowhere" }] }),
  receiverDefinition({ name: "calls", map: PERSON, actions: [{ type: "grant_credits", amount: 5 }, CALL] }),
  receiverDefinition({ name: "ghosts", map: { event_id: "id", person_id: "who" }, actions: [{ ...WRITE, to: "person" }] }),
  receiverDefinition({ name: "course", map: PERSON, actions: [{ type: "fulfil_product", product: "course", ref: "{{mapped.ref}}" }] }),
  receiverDefinition({ name: "pro", map: PERSON, actions: [{ type: "grant_plan", plan: "pro", ref: "{{mapped.ref}}" }] }),
  receiverDefinition({
    name: "mails",
    map: PERSON,
    actions: [{ type: "email_person", subject: "{{mapped.event_id}}", text: "Hello {{person.email}}." }],
  }),
];
const others = [
  { name: "hourly", trigger: { kind: "schedule", every: "1h" }, actions: [{ type: "call_url", url: "https://example.com/tick" }] },
  {
    name: "watcher",
    trigger: { kind: "data_change", collection: "orders", on: ["created"] },
    actions: [{ type: "call_url", url: "https://example.com/change" }],
  },
];

const UNATTEMPTED = "SELECT seq FROM event WHERE state = 'running' OR (state = 'queued' AND next_attempt_at IS NULL)";
const caller = new FakeCaller();
let api: ApiServer;

async function must(method: string, path: string, body?: unknown) {
  const reply = await api.call(api.E + path, { method, key: api.keys.dev, ...(body === undefined ? {} : { body }) });
  if (reply.status >= 300) throw new Error(`${method} ${path}: ${reply.status} ${reply.text}`);
  return reply.json;
}

const hook = (name: string, event: object) => {
  const { headers, body } = signedCall({ type: "order.paid", ...event });
  return api.call(`/hooks/shop/${name}`, { method: "POST", headers, body });
};

/** Creates two people with every kind of row, and failed, waiting and dead events of each kind. */
async function stage(): Promise<{ ada: string; session: string }> {
  await api.service.store.write("app", (tx) =>
    tx.run("INSERT INTO sender_domain (environment_id, domain, verification_token, verified_at) SELECT id, 'shop.example', 't', 1 FROM environment"),
  );
  const { settings } = await must("GET", "/settings");
  await must("PUT", "/settings", { version: settings.version, mail: { smtp: { host: "smtp.example.com", port: 465, security: "tls" } } });
  await must("POST", "/collections", { name: "orders", kind: "addressed", fields: { order: { type: "text" } } });
  await must("PUT", "/access/forum", {});
  for (const definition of receivers) await must("POST", "/relays", { definition, secret: HOOK_SECRET });
  for (const definition of others) await must("POST", "/relays", { definition });
  await must("PUT", "/products/course", { credits: 50, soldThrough: { kind: "relay", relay: "course" } });
  await must("PUT", "/plans/free", {});
  await must("PUT", "/plans/pro", { soldThrough: { kind: "relay", relay: "pro" } });
  const { id: ada } = await signIn(api, "ada@example.com");
  const { token: session } = await signIn(api, "bela@example.com");
  caller.reply = (url) => (url.endsWith("/notice") ? BROKEN : OK);
  for (const name of ["ada", "bela"])
    for (const [at, { name: relay }] of receivers.entries())
      await hook(relay as string, { id: `${name}-${at}`, email: `${name}@example.com`, ref: `pay-${name}`, who: "per_unknown" });
  await api.call("/hooks/shop/orders", { method: "POST", headers: { "x-signature": "0".repeat(64) }, body: { id: "forged" } });
  await api.call("/hooks/shop/nowhere", { method: "POST", body: { id: "unknown" } });
  await api.clock.advance(2_000);
  for (const [relay, event] of [
    ["calls", "at-last"],
    ["mails", "again"],
  ] as const)
    await hook(relay, { id: event, email: "ada@example.com", ref: event });
  await until("every event was attempted", async () => (await api.rows(UNATTEMPTED)).length === 0);
  // Moves the event of the called URL to its last attempt, after which it is dead.
  await api.service.store.write("app", (tx) => tx.run("UPDATE event SET attempts = 6 WHERE next_attempt_at IS NOT NULL"));
  await api.clock.leap(1.1 * HOUR_MS);
  await must("POST", "/bulk-replays", { state: "dead", relay: "lost", perSecond: 10 });
  await must("POST", `/persons/${ada}/grants`, { entitlement: "access:forum", reason: "a gift" });
  await must("POST", "/receipts", { kind: "purchase", ref: "cash-1", person: ada, product: "course", amountMinor: 500, currency: "EUR" });
  await api.clock.advance(5_000);
  return { ada, session };
}

async function readWithoutFault(asked: Awaited<ReturnType<typeof stage>>): Promise<Set<string>> {
  const reads = await readAll(api, {
    personSession: asked.session,
    named: {
      ...{ appId: ["shop"], environment: ["development"], code: ["not_found"], page: ["actions"], part: ["ref"], token: ["none"] },
      "/api/apps/{appId}/{environment}/persons": [asked.ada],
    },
    filters: {
      ...{ q: ["ada", "evt_", "order"], relay: receivers.map(({ name }) => name as string), person: [asked.ada], email: ["ada@example.com"] },
      ...{ since: [new Date(api.clock.now() - DAY_MS).toISOString()], until: [new Date(api.clock.now()).toISOString()], every: ["3600"] },
      ...{ mapped: ["event_id:ada-1"], reason: ["collection_missing", "payload_expunged"], target: ["relay:lost"], actor: ["owner:ann@example.com"] },
      ...{
        entitlement: ["access:forum"],
        ref: ["pay-ada"],
        owner: [asked.ada],
        to: [asked.ada],
        action: ["event.expunged"],
        code: ["bad_signature"],
      },
    },
  });
  expect(reads.filter(({ status }) => status >= 500)).toEqual([]);
  expect(reads.length).toBeGreaterThan(300);
  return new Set(reads.filter(({ status }) => status === 200).map(({ operation }) => operation));
}

async function listEvents(): Promise<{ id: string; state: string; relay: { name: string }; person: { id: string } | null }[]> {
  return (await must("GET", "/events?limit=200")).items;
}

test("every page and list can be read before, after an expunge, after an erasure, and after a retention run", async () => {
  await using started = await startApi({}, { caller, resolveTxt: async () => [] });
  api = started;
  const staged = await stage();
  const states = new Set((await listEvents()).map(({ state }) => state));
  expect([...states].sort()).toEqual(["dead", "done", "failed"]);
  for (const { id, state, person } of await listEvents())
    if (state === "dead" && person?.id !== staged.ada) await must("POST", `/events/${id}/expunge`);
  const before = await readWithoutFault(staged);
  const { needs } = await must("GET", "/overview");
  expect(needs).toContainEqual(
    expect.objectContaining({
      target: "relay:lost",
      message: expect.stringMatching(/^2 events are dead since .*: The action writes a record into a collection/),
      dead: expect.objectContaining({
        expunged: true,
        cause: expect.objectContaining({ message: "The newest of them was expunged and never runs again." }),
      }),
    }),
  );
  await must("DELETE", `/persons/${staged.ada}`);
  await api.clock.advance(10_000);
  const after = await readWithoutFault(staged);
  expect([...before].filter((operation) => !after.has(operation))).toEqual([]);
  api.clock.jump(31 * DAY_MS);
  await api.clock.leap(2 * HOUR_MS);
  expect((await listEvents()).filter(({ relay }) => relay.name === "lost")).toEqual([]);
  await readWithoutFault(staged);
});
