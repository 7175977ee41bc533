/**
 * Every index can hold the longest text that a person, a sender or a definition gives. PostgreSQL refuses a row whose index entry takes more than
 * 2,704 bytes. Each indexed text is shorter, by a limit on input or because the service makes it.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import {
  MAX_ACCOUNT_TOKEN_CHARS,
  MAX_CUSTOMER_ID_CHARS,
  MAX_EMAIL_CHARS,
  MAX_EMAIL_LOCAL_CHARS,
  MAX_MAPPED_VALUE_BYTES,
  MAX_ONCE_KEY_CHARS,
  MAX_RECORD_BYTES,
  MAX_REF_CHARS,
} from "../../src/base/limit.ts";
import { MAX_CALL_URL_CHARS } from "../../src/platform/outbound/call-target.ts";
import { ON_POSTGRES } from "../kit/chosen-store.ts";
import { sendEvent, showEvent } from "../kit/event-flow.ts";
import { FakeCaller } from "../kit/fake-caller.ts";
import { receiverDefinition, saveRelay } from "../kit/relay-definition.ts";
import { type Answer, type RunningService, startRunningService } from "../kit/running-service.ts";

const MAX_NAME_CHARS = 63;
const FILE_ID = `fil_${"0123456789abcdef".repeat(2)}`;
let running: RunningService;
let person: string;

beforeAll(async () => {
  running = await startRunningService({ ports: { caller: new FakeCaller() } });
  person = (await made("POST", "/persons", { email: "ada@example.com" })).person.id;
  await made("PUT", "/products/book", { title: "Book", credits: 0 });
  const fields = { text: { type: "text" }, any: { type: "json" } };
  await made("POST", "/collections", { name: "notes", kind: "shared", fields });
});
afterAll(() => running[Symbol.asyncDispose]());

/** Builds a text that no index can compress. Its characters take four bytes, or three where a limit counts four-byte ones double. */
function noise(chars: number, bytes: 3 | 4 = 4): string {
  const [first, many] = bytes === 4 ? [0x2_0000, 0xa000] : [0x4e00, 0x5000];
  return Array.from({ length: chars }, () => String.fromCodePoint(first + Math.floor(Math.random() * many))).join("");
}

const letters = (chars: number): string => Array.from({ length: chars }, () => "abcdefghijklmnop"[Math.floor(Math.random() * 16)]).join("");
const longName = (): string => letters(MAX_NAME_CHARS);

async function made(method: string, path: string, body: unknown): Promise<Answer["body"]> {
  const answer = await running.api(method, path, body);
  if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
  return answer.body;
}

/** Sends an event with this id and these values, and returns each action's code or outcome. */
async function outcomesOf(definition: Record<string, unknown>, id: string, values: object): Promise<unknown[]> {
  const event = await sendEvent(running, id, values, String(definition["name"]));
  await running.drain();
  return (await showEvent(running, event)).runs.at(-1)?.results.map(({ outcome, code }) => code ?? outcome) ?? [];
}

/** `holds` lists the indexed columns that contain the text. */
const LONGEST: readonly { what: string; holds: readonly string[]; give: () => Promise<unknown>; comes: unknown }[] = [
  {
    what: "a person's address",
    holds: ["person.email_key", "former_address.email_key", "person_code.email_key", "owner.email"],
    give: async () => {
      const local = letters(MAX_EMAIL_LOCAL_CHARS);
      const labels = [63, 63, 57].map(letters).join(".");
      const email = `${local}@${labels}.com`;
      expect(email.length).toBe(MAX_EMAIL_CHARS);
      return (await made("POST", "/persons", { email })).person.status;
    },
    comes: "invited",
  },
  {
    what: "a store account token",
    holds: ["person_token.token"],
    give: async () => (await made("PUT", `/persons/${person}/tokens`, { token: noise(MAX_ACCOUNT_TOKEN_CHARS, 3) })).token.token.length,
    comes: MAX_ACCOUNT_TOKEN_CHARS,
  },
  {
    what: "a provider's id of a customer, and its space",
    holds: ["person_customer.customer_id", "person_customer.space"],
    give: async () => {
      const map = { event_id: "id", person_email: "email", customer_id: "customer" };
      const actions = [{ type: "grant_credits", amount: 5 }];
      const definition = receiverDefinition({ name: longName(), map, customer: { id: "customer_id" }, actions });
      await saveRelay(running, definition);
      const customer = noise(MAX_CUSTOMER_ID_CHARS, 3);
      await outcomesOf(definition, "customer", { email: "grace@example.com", customer });
      const [row] = await running.rows<{ customer: string }>("SELECT customer_id AS customer FROM person_customer");
      return row?.customer.length;
    },
    comes: MAX_CUSTOMER_ID_CHARS,
  },
  {
    what: "the key of a change of credits",
    holds: ["credit.once_key"],
    give: async () => (await made("POST", `/persons/${person}/credits`, { amount: 5, reason: "gift", key: noise(MAX_ONCE_KEY_CHARS) })).applied,
    comes: true,
  },
  {
    what: "a receipt's ref",
    holds: ["purchase.ref", "access_grant.source_ref"],
    give: async () => (await made("POST", "/receipts", { ref: noise(MAX_REF_CHARS), person, product: "book" })).created,
    comes: true,
  },
  ...["text", "any"].map((field) => ({
    what: `a record's ${field === "text" ? "text" : "value of a json field"} that begins like a file's id`,
    holds: ["record_file.file_id"],
    give: async () => {
      const value = `fil_${noise(Math.floor(MAX_RECORD_BYTES / 4) - 20)}`;
      const { record } = await made("POST", "/collections/notes/records", { data: { [field]: value } });
      const changed = await made("PUT", `/collections/notes/records/${record.id}`, { data: { [field]: `${FILE_ID}${value.slice(FILE_ID.length)}` } });
      return changed.record.data[field].length;
    },
    comes: 4 + 2 * (Math.floor(MAX_RECORD_BYTES / 4) - 20),
  })),
  {
    what: "the names of a relay, a collection, a product, a plan and an access slug",
    holds: [
      ...["relay.name", "relay_name.name", "collection.name", "product.name", "plan.name", "access_slug.slug", "record.collection"],
      ...["record_watch.collection", "past_record_watch.collection", "access_grant.entitlement", "subscription.plan", "effect.key"],
      ...["access_revocation.entitlement", "plan_cancellation.plan", "plan_cancellation.ref"],
      ...["rejected_count.relay_name", "passed_count.relay_name"],
      ...["audit.target", "problem.target", "synced.target", "signature_memory.relay_name", "retired_secret.relay_name"],
    ],
    give: async () => {
      const [relay, watcher, collection, product, plan, slug] = Array.from({ length: 6 }, longName);
      await made("POST", "/collections", { name: collection, kind: "shared", fields: { text: { type: "text" } } });
      const catalog = { [`products/${product}`]: { title: "Product", credits: 1 }, [`plans/${plan}`]: { title: "Plan" } };
      for (const [path, item] of Object.entries(catalog)) await made("PUT", `/${path}`, item);
      await made("PUT", `/access/${slug}`, { title: "Access" });
      await made("POST", "/relays", {
        definition: {
          name: watcher,
          trigger: { kind: "data_change", collection, on: ["created", "updated", "deleted"] },
          actions: [{ type: "call_url", url: "https://example.com/notice" }],
        },
      });
      const actions = [
        { type: "write_record", collection, data: { text: "{{mapped.event_id}}" } },
        { type: "grant_access", entitlement: `access:${slug}` },
        { type: "fulfil_product", product, ref: "{{mapped.event_id}}" },
        { type: "grant_plan", plan },
        { type: "revoke_access", entitlement: `access:${slug}` },
        { type: "revoke_plan", plan, ref: "{{mapped.ref}}" },
        // A relay that sends stores each completed effect in its own row.
        { type: "call_url", url: "https://example.com/notice" },
      ];
      const map = { event_id: "id", person_email: "email", ref: "ref" };
      const definition = { ...receiverDefinition({ map, actions }), name: relay };
      await saveRelay(running, definition);
      for (const [path, item] of Object.entries(catalog))
        await made("PUT", `/${path}`, { ...item, version: 1, soldThrough: { kind: "relay", relay } });
      return await outcomesOf(definition, "evt_1", { email: "ada@example.com", ref: noise(MAX_REF_CHARS) });
    },
    comes: Array.from({ length: 7 }, () => "done"),
  },
  {
    what: "the URL of a call_url next to stored effects",
    holds: ["effect.key"],
    give: async () => {
      const start = "https://example.com/?";
      const url = start + noise(MAX_CALL_URL_CHARS - start.length, 3);
      const actions = [
        { type: "write_record", collection: "notes", data: { text: "{{mapped.event_id}}" } },
        { type: "call_url", url },
      ];
      const definition = { ...receiverDefinition({ actions }), name: "caller" };
      await saveRelay(running, definition);
      return await outcomesOf(definition, "evt_2", {});
    },
    comes: ["done", "done"],
  },
  {
    what: "an event's id, and a ref that is too long",
    holds: ["purchase.ref", "credit.once_key"],
    give: async () => {
      const id = noise(MAX_MAPPED_VALUE_BYTES / 4 - 1);
      const actions = [{ type: "grant_credits", amount: 1, ref: "{{mapped.event_id}}" }];
      const map = { event_id: "id", person_email: "email" };
      const definition = { ...receiverDefinition({ map, actions }), name: "ids" };
      await saveRelay(running, definition);
      return await outcomesOf(definition, id, { email: "ada@example.com" });
    },
    comes: ["ref_unresolved"],
  },
  {
    what: "the key of a sync",
    holds: ["apply_response.request_key"],
    give: async () => {
      const { plan } = await made("POST", "/sync/plan", { relays: [] });
      return (await made("POST", "/sync/apply", { relays: [], plan, key: letters(MAX_ONCE_KEY_CHARS) })).changes;
    },
    comes: 0,
  },
  {
    what: "the name of a case",
    holds: ["relay_case.name"],
    give: async () => {
      await saveRelay(running, receiverDefinition({ name: "with-case" }));
      const name = letters(MAX_NAME_CHARS);
      return (await made("PUT", `/relays/with-case/cases/${name}`, { body: '{"id":"a"}' })).case.name.length;
    },
    comes: MAX_NAME_CHARS,
  },
  {
    what: "the name in a request to a receiver that does not exist",
    holds: ["unknown_request.name"],
    give: async () => (await running.hook(letters(2_000), { headers: {}, body: "{}" })).status,
    comes: 404,
  },
];

test.each([...LONGEST])("$what", async ({ give, comes }) => {
  expect(await give()).toEqual(comes);
});

/**
 * Columns whose texts the service makes, all of them short: ids, hashes, fixed words, days and names of backups. An issuer has 200 characters and a subject
 * 255 (test/flow/oidc.test.ts).
 */
const OURS =
  /[._](id|utc_day|fingerprint|state|kind|trigger|code|change|outcome)$|^environment\.name$|^event\.reason$|^writer_commit\.connection$|^apply_response\.caller$|^backup_copy\.name$|^(group_)?membership\.(environment|role)$|^oidc_identity\.(issuer|subject)$/;

const INDEXED = ON_POSTGRES
  ? `SELECT DISTINCT c.relname || '.' || a.attname AS name FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indrelid
     JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = ANY(i.indkey) AND a.atttypid = 'text'::regtype
     WHERE c.relnamespace = 'public'::regnamespace`
  : `SELECT DISTINCT t.name || '.' || c.name AS name FROM sqlite_master AS t JOIN pragma_index_list(t.name) AS i JOIN pragma_index_info(i.name) AS c
     JOIN pragma_table_info(t.name) AS of ON of.name = c.name AND of.type = 'TEXT' WHERE t.type = 'table'`;

test("every indexed text is listed above or made by the service", async () => {
  const held = new Set(LONGEST.flatMap(({ holds }) => holds));
  const indexed = (await running.rows<{ name: string }>(INDEXED)).map(({ name }) => name);
  expect(indexed.filter((name) => !held.has(name) && !OURS.test(name)).sort()).toEqual([]);
});
