/**
 * Fills a database with data of every kind through the API and writes it to a fixture. scripts/upgrade-fixtures.ts copies this file into the tree of
 * each release and runs it there, so this file uses only what every release since 0.9.0 has in test/kit.
 * Arguments: the file to write, and the fixture's head as JSON. TEST_STORE=postgres selects the database.
 */
import { Database } from "bun:sqlite";
import { createHmac } from "node:crypto";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { SQL } from "bun";
import { type Reply, startApi } from "../kit/api-server.ts";
import { mailedCode, visitor } from "../kit/app-visitor.ts";
import { FakeCaller, OK } from "../kit/fake-caller.ts";
import { HOOK_SECRET, receiverDefinition, signedCall } from "../kit/relay-definition.ts";
import { SHOP_RELAYS, signStripe } from "../kit/shop.ts";
import { settle } from "../kit/virtual-clock.ts";

const MINUTE_MS = 60_000;
const DOWN = { kind: "answered", ok: false, status: 503, body: "Service Unavailable" } as const;
const PROCESSOR_SECRET = "whsec_4cVqGZKd2TtW0nY8mRjXsLb6HuEaPo9f";
const OTHER_SECRET = "another-secret-of-the-same-sender";
const LIVE = "/api/apps/shop/production";

/** A recipe whose signatures are accepted once. */
const TOKEN_RECIPE = {
  scheme: "signature",
  signatureField: "signature",
  timestampField: "timestamp",
  tokenField: "token",
  signedPayload: "{timestamp}{token}",
  encoding: "hex",
};
const byEmail = { event_id: "id", person_email: "email" };
const call = (url: string) => ({ type: "call_url", url });
const write = { type: "write_record", collection: "notes", data: { text: "{{mapped.event_id}}" } };
const RECEIVERS = [
  receiverDefinition({ name: "notices", map: byEmail, actions: [call("https://warehouse.example.com/notice")] }),
  receiverDefinition({ name: "down", map: byEmail, actions: [write, call("https://down.example.com/notice")] }),
  receiverDefinition({ name: "hangs", map: byEmail, actions: [write, call("https://hangs.example.com/notice")] }),
  receiverDefinition({ name: "dies", map: byEmail, actions: [write, { type: "write_record", collection: "missing", data: { text: "x" } }] }),
  receiverDefinition({
    name: "gives",
    map: { ...byEmail, event_type: "type" },
    when: { event_type: "given" },
    actions: [
      write,
      { type: "grant_access", entitlement: "access:forum", expiresAt: "30d", reason: "{{mapped.event_id}}" },
      { type: "grant_credits", amount: 5, ref: "{{mapped.event_id}}" },
      { type: "email_person", subject: "Given {{mapped.event_id}}", text: "Hello {{person.email}}." },
    ],
  }),
  receiverDefinition({ name: "ends", map: byEmail, actions: [{ type: "revoke_access", entitlement: "access:forum" }] }),
  receiverDefinition({ name: "tokens", map: { event_id: "id" }, verify: TOKEN_RECIPE, trustUnsignedEvents: true, actions: [write] }),
  receiverDefinition({ name: "paused", map: byEmail, actions: [write] }),
  receiverDefinition({ name: "gone", map: byEmail, actions: [write] }),
];
const OTHERS = [
  { name: "nightly", trigger: { kind: "schedule", every: "1h" }, actions: [call("https://warehouse.example.com/report")] },
  {
    name: "note-made",
    trigger: { kind: "data_change", collection: "notes", on: ["created", "updated", "deleted"] },
    actions: [call("https://warehouse.example.com/note")],
  },
];

const [file = "fixture", head = "{}"] = process.argv.slice(2);
const caller = new FakeCaller((url) => (url.includes("down") ? DOWN : url.includes("hangs") ? "hang" : OK));
const txt: string[] = [];
const api = await startApi({}, { caller, resolveTxt: async () => txt });
const { clock } = api;
await setUp();
const people = await fillPeople();
await fillEvents();
await fillAccount();
await leaveUnfinished();
const whole = {
  ...JSON.parse(head),
  nowMs: clock.now(),
  keys: api.keys,
  masterKey: readFileSync(join(api.dataDir, "master.key"), "utf8").trim(),
  people,
};
const { RELAY_DATABASE: url } = api.commandEnv;
const content = url === undefined ? copyFile() : await dump(url);
const text = Buffer.from(`${JSON.stringify(whole)}\n`);
writeFileSync(file, Bun.zstdCompressSync(Buffer.concat([text, content]), { level: 19 }));
process.exit(0);

/** Creates settings, mail, catalog and relays. */
async function setUp(): Promise<void> {
  const { settings } = await must("GET", "/settings");
  const mail = { smtp: { host: "smtp.example.com", port: 465, security: "tls" } };
  await must("PUT", "/settings", { version: settings.version, processorSecret: PROCESSOR_SECRET, mail });
  txt.push((await must("PUT", "/sender-domain", { domain: "shop.example", eventWord: "orders" })).senderDomain.record.value);
  await must("POST", "/sender-domain/verify");
  await must("POST", "/collections", { name: "orders", kind: "addressed", fields: { payment: "text" } });
  await must("POST", "/collections", { name: "notes", kind: "shared", fields: { text: "text", scan: { type: "file" } } });
  await must("POST", "/collections", { name: "diary", kind: "private", fields: { text: "text" } });
  await must("PUT", "/access/forum", { title: "The forum" });
  for (const definition of [...SHOP_RELAYS, ...OTHERS]) await must("POST", "/relays", { definition });
  for (const definition of RECEIVERS) await must("POST", "/relays", { definition, secret: HOOK_SECRET });
  await must("PUT", "/products/course", { credits: 50, soldThrough: { kind: "relay", relay: "checkout" } });
  await must("PUT", "/plans/free", {});
  await must("PUT", "/plans/pro", { soldThrough: { kind: "relay", relay: "invoice" } });
  await must("PUT", "/plans/team", { title: "Team" });
}

/** Creates invited, active, suspended and erased people, with data from an app and from an operator. */
async function fillPeople(): Promise<Record<string, string>> {
  const ids: Record<string, string> = {};
  for (const name of ["ada", "bela", "carol", "dmitri", "emeka"])
    ids[name] = (await must("POST", "/persons", { email: `${name}@example.com` })).person.id;
  const { ada, bela, carol, dmitri, emeka } = ids;
  await must("PATCH", `/persons/${ada}`, { attributes: { city: "Turin" } });
  await must("PUT", `/persons/${ada}/tokens`, { token: "00000000-0000-4000-8000-000000000001" });
  await must("POST", `/persons/${ada}/grants`, { entitlement: "access:forum", reason: "by hand" });
  const { grant } = await must("POST", `/persons/${bela}/grants`, { entitlement: "access:forum" });
  await must("DELETE", `/grants/${grant.id}`);
  await must("POST", `/persons/${ada}/credits`, { amount: 20, reason: "by hand", key: "first" });
  await must("POST", "/receipts", { ref: "card_1", person: ada, product: "course", amountMinor: 9_900, currency: "EUR" });
  await must("POST", "/receipts", { ref: "card_2", person: bela, plan: "team", amountMinor: 2_900, currency: "EUR" });
  await must("POST", "/receipts", { ref: "card_3", person: carol, product: "course", amountMinor: 9_900, currency: "EUR" });
  await must("POST", "/receipts", { kind: "refund", ref: "card_3", person: carol, product: "course" });
  await must("PUT", `/persons/${carol}/mail-stop`, { stopped: true });
  await must("PATCH", `/persons/${dmitri}`, { status: "suspended" });
  const scan = await api.call(`${api.E}/files?name=scan.txt`, { method: "POST", key: api.keys.dev, bytes: new TextEncoder().encode("a scan") });
  const made = await must("POST", "/collections/notes/records", { data: { text: "by hand", scan: scan.json.file.id } });
  await must("PUT", `/collections/notes/records/${made.record.id}`, { data: { text: "by hand, again", scan: scan.json.file.id } });
  await must("POST", "/collections/diary/records", { data: { text: "dear diary" }, owner: ada });
  await must("DELETE", `/persons/${emeka}`);
  await signIn("ada@example.com");
  await signIn("newcomer@example.com");
  return ids;
}

async function signIn(email: string): Promise<void> {
  await taken(visitor(api, api.keys.app).call("POST", "/auth/code", { email }));
  await rest();
  const session = await taken(visitor(api, api.keys.app).call("POST", "/auth/session", { email, code: mailedCode(api, email) }));
  await visitor(api, api.keys.app, session.json.token).call("POST", "/collections/diary/records", { data: { text: "mine" } });
}

/** Creates events in every final state, replays, a rotation and rejected requests, and lets days pass. */
async function fillEvents(): Promise<void> {
  for (let at = 0; at < 6; at++) {
    const email = `${["ada", "bela", "carol"][at % 3]}@example.com`;
    await pay("checkout", `evt_buy_${at}`, "checkout.session.completed", { customer_details: { email }, payment_intent: `pi_${at}` });
    await pay("invoice", `evt_invoice_${at}`, "invoice.paid", { customer_email: email, id: `in_${at}` });
    for (const name of ["notices", "gives", "down", "dies"]) await hook(name, { id: `${name}_${at}`, type: "given", email });
    await advance(20 * MINUTE_MS);
  }
  await pay("refund", "evt_refund", "charge.refunded", { billing_details: { email: "ada@example.com" }, payment_intent: "pi_0" });
  await pay("cancellation", "evt_end", "customer.subscription.deleted", { metadata: { person: people.bela } });
  await pay("checkout", "evt_none", "checkout.session.completed", { customer_details: { email: "nobody@example.org" }, payment_intent: "pi_none" });
  await hook("gives", { id: "given_dmitri", type: "given", email: "dmitri@example.com" });
  await hook("ends", { id: "end_1", email: "carol@example.com" });
  await hook("gives", { id: "other_type", type: "other", email: "ada@example.com" });
  await hook("gives", { id: "gives_0", type: "given", email: "ada@example.com" });
  await hook("notices", { id: "long", email: "ada@example.com", text: "x".repeat(40_000) });
  await post("tokens", tokenCall("token-1"));
  await hook("gone", { id: "gone_1", email: "ada@example.com" });
  await advance(MINUTE_MS);
  for (const name of ["gives", "no-such-relay"]) await hook(name, { id: "forged" }, "a wrong secret");
  const { items: dead } = await must("GET", "/events?state=dead&limit=5");
  await must("POST", `/events/${dead[0].id}/replay`);
  await advance(MINUTE_MS);
  await must("POST", `/events/${dead[1].id}/expunge`);
  await must("POST", "/bulk-replays", { state: "dead", relay: "dies", perSecond: 100 });
  await advance(MINUTE_MS);
  const { items: alerts } = await must("GET", "/alerts");
  await must("POST", `/alerts/${alerts[0].id}/resolve`);
  await must("PUT", "/relays/notices/secret", { value: OTHER_SECRET, overlapSeconds: 3_600 });
  await hook("notices", { id: "rotated", email: "ada@example.com" }, OTHER_SECRET);
  await must("PUT", "/relays/tokens/secret", { value: OTHER_SECRET, overlapSeconds: 0 });
  await edit("gives", 1);
  await must("DELETE", "/relays/gone");
  await must("POST", "/relays/notices/test-event", { body: '{"id":"tried"}' });
  await advance(MINUTE_MS);
}

/** Creates owners, logins, syncs and approvals, and deletes another app. */
async function fillAccount(): Promise<void> {
  await session("POST", "/api/owners", { email: "bob@example.com" });
  for (const answer of ["approve", "wait"]) {
    const login = await taken(api.call("/api/login", { method: "POST", body: { machine: `laptop ${answer}`, account: "ann" } }));
    if (answer === "approve") {
      await session("POST", "/api/login/approve", { code: login.json.userCode, app: "shop", environment: "development" });
      await taken(api.call("/api/login/token", { method: "POST", body: { deviceCode: login.json.deviceCode } }));
    }
  }
  const wanted = { relays: [{ ...receiverDefinition({ name: "synced", map: byEmail, actions: [write] }) }] };
  const planned = await must("POST", "/sync/plan", wanted);
  await must("POST", "/sync/apply", { ...wanted, plan: planned.plan });
  const promote = { from: "development", to: "production" };
  for (const decision of ["approve", "wait"]) {
    const { plan } = await must("POST", "/sync/plan", promote);
    const { approval } = await must("POST", "/approvals", { ...promote, plan });
    if (decision === "wait") break;
    await session("POST", `/api/approvals/${approval.id}`, { decision, plan: approval.plan });
    await must("POST", `/api/approvals/${approval.id}/apply`, {});
    await edit("gives", 2, { actions: [write] });
  }
  await edit("gives", 3);
  await session("DELETE", "/api/apps/rival", { confirm: "rival", force: true });
  await advance(5 * MINUTE_MS);
}

/** Leaves events that wait for a retry, a pause and a hold, one whose call has no response, and a clock that was set back. */
async function leaveUnfinished(): Promise<void> {
  await must("POST", "/relays/paused/pause");
  await hook("paused", { id: "waits_1", email: "ada@example.com" });
  await must("PUT", `${LIVE}/relays/gives/secret`, { value: `${HOOK_SECRET}-live` });
  const { settings } = await must("GET", `${LIVE}/settings`);
  await must("PUT", `${LIVE}/settings`, { version: settings.version, held: true });
  await advance(MINUTE_MS);
  await hook("gives", { id: "held_1", type: "given", email: "ada@example.com" }, `${HOOK_SECRET}-live`);
  await hook("down", { id: "retried", email: "ada@example.com" });
  clock.jump(-10 * MINUTE_MS);
  await hook("notices", { id: "clock_back", email: "bela@example.com" }, OTHER_SECRET);
  clock.jump(10 * MINUTE_MS);
  await hook("hangs", { id: "hangs_1", email: "ada@example.com" });
  for (let turn = 0; turn < 500 && caller.hanging() === 0; turn++) await settle();
  if (caller.hanging() === 0) throw new Error("No call hangs.");
  await taken(visitor(api, api.keys.app).call("POST", "/auth/code", { email: "late@example.com" }));
  // The kit of the trees up to 0.17 names this connection `beside`.
  const { direct, beside = direct } = api as typeof api & { beside?: typeof api.direct };
  await beside.run(
    `INSERT INTO record (id, environment_id, collection, data, written_by, created_at, updated_at)
     SELECT 'rec_by_sql', environment_id, 'notes', '{"text":"by SQL"}', 'sql', created_at, updated_at FROM record LIMIT 1`,
  );
}

/** Saves a new version of the relay, with or without a change. */
async function edit(name: string, version: number, change: object = {}): Promise<void> {
  await must("PUT", `/relays/${name}`, { definition: { ...RECEIVERS.find((one) => one.name === name), ...change }, version });
}

/** Sends a management request to the development environment, or to the whole path if it begins with /api. Throws unless it is accepted. */
async function must(method: string, path: string, body?: unknown) {
  const live = path.startsWith(LIVE);
  const whole = path.startsWith("/api/") ? path : api.E + path;
  return (
    await taken(api.call(whole, { method, key: live ? api.keys.live : api.keys.dev, ...(body === undefined ? {} : { body }) }), `${method} ${path}`)
  ).json;
}

async function session(method: string, path: string, body: unknown) {
  // Releases since 0.18 need a recent authentication. Earlier ones have no time of it.
  await api.store.write("dashboard", (tx) => tx.run("UPDATE session SET authenticated_at = ?1", api.clock.now())).catch(() => undefined);
  return (await taken(api.call(path, { method, session: true, body }), `${method} ${path}`)).json;
}

async function taken(reply: Promise<Reply>, what = "A call"): Promise<Reply> {
  const answer = await reply;
  if (answer.status >= 300) throw new Error(`${what} was refused with ${answer.status}: ${answer.text}`);
  return answer;
}

function tokenCall(token: string): { headers: Record<string, string>; body: string } {
  const timestamp = String(Math.floor(clock.now() / 1_000));
  const signature = createHmac("sha256", HOOK_SECRET)
    .update(timestamp + token)
    .digest("hex");
  return { headers: { "content-type": "application/json" }, body: JSON.stringify({ id: token, timestamp, token, signature }) };
}

async function hook(name: string, event: object, secret = HOOK_SECRET): Promise<void> {
  await post(name, signedCall(event, secret));
}

async function pay(name: string, id: string, type: string, object: object): Promise<void> {
  await post(name, await signStripe({ clock }, id, type, object));
}

async function post(name: string, { headers, body }: { headers: Record<string, string>; body: string }): Promise<void> {
  await api.call(`/hooks/shop/${name}`, { method: "POST", headers, body });
}

async function advance(ms: number): Promise<void> {
  await rest();
  await clock.advance(ms);
  await rest();
}

/** Waits until no event runs or is due. */
async function rest(): Promise<void> {
  for (let turn = 0; turn < 2_000; turn++) {
    await settle();
    const [row] = await api.rows<{ count: number }>(
      `SELECT count(*) AS count FROM event JOIN relay_key ON relay_key.key = relay_key JOIN relay ON relay.id = relay_id
       JOIN environment ON environment.id = event.environment_id
       WHERE event.state = 'running' OR (event.state = 'queued' AND next_attempt_at IS NULL AND relay.state = 'active' AND held_at IS NULL)`,
    );
    if (row?.count === 0) return;
    if (turn > 200) await Bun.sleep(1);
  }
  throw new Error("The service did not come to rest.");
}

/** Returns the database file, including what its log contains. */
function copyFile(): Buffer {
  const copy = join(api.dataDir, "copy.db");
  using database = new Database(join(api.dataDir, "relay.db"), { readwrite: true });
  database.query("VACUUM INTO ?1").run(copy);
  const bytes = readFileSync(copy);
  rmSync(copy);
  return bytes;
}

/** Returns PostgreSQL's rows as JSON: tables with their columns and rows as text, and the last number of each sequence. */
async function dump(url: string): Promise<Buffer> {
  const sql = new SQL(url, { max: 1 });
  const tables: { name: string; columns: { name: string; type: string }[]; rows: (string | null)[][] }[] = [];
  const content = await sql.begin("isolation level repeatable read", async (tx) => {
    const columns = await tx.unsafe(
      `SELECT c.relname AS table, a.attname AS name, format_type(a.atttypid, a.atttypmod) AS type FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
       WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
       ORDER BY c.relname, a.attnum`,
    );
    for (const [name, own] of Map.groupBy(columns as { table: string; name: string; type: string }[], ({ table }) => table)) {
      const row = `jsonb_build_array(${own.map((column) => `"${column.name}"::text`).join(", ")})`;
      const [{ rows }] = await tx.unsafe(`SELECT coalesce(jsonb_agg(${row}), '[]')::text AS rows FROM "${name}"`);
      tables.push({ name, columns: own.map((column) => ({ name: column.name, type: column.type })), rows: JSON.parse(rows) });
    }
    const sequences = await tx.unsafe(
      "SELECT sequencename AS name, last_value::text AS last FROM pg_sequences WHERE schemaname = 'public' AND last_value IS NOT NULL",
    );
    return { tables, sequences: [...sequences] };
  });
  await sql.close();
  return Buffer.from(JSON.stringify(content));
}
