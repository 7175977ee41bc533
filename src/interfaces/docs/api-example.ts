/**
 * The examples of the API's pages: names, a body, and the status if it differs from the route's own. The tests send every example to a server
 * with a small shop.
 */
import type { JsonObject } from "../../base/json.ts";
import { EXAMPLE_RELAY } from "./example-relay.ts";

export interface ApiExample {
  /** Values of the names in the path. */
  params?: Readonly<Record<string, string>>;
  /** The caller, if it is not the route's usual one. */
  as?: "owner" | "live";
  query?: string;
  headers?: readonly string[];
  body?: JsonObject;
  /** The body of a route that takes raw bytes. */
  raw?: string;
  /** The status of this example, if a success needs more than one line can show. */
  status?: number;
  /** The reason for the status. */
  note?: string;
}

const NOBODY = { name: "orders" };
const PERSON = { id: "$PERSON" };
const EVENT = { id: "$EVENT" };
const NO_PASSKEYS = "Passkeys need a server at an https address with a name, or at http://localhost.";
const ONCE = "The link or the code belongs to one person, so this line by itself is rejected.";

/** The routes whose order in a page differs from the code's. Deletions come last. */
export const ORDER: readonly string[] = [
  "POST {E}/relays/:name/resume",
  "POST {E}/relays/:name/retry",
  "DELETE {E}/relays/:name",
  "POST {E}/persons/:id/tokens/remove",
  "POST {E}/persons/:id/customers/remove",
  "DELETE {E}/persons/:id",
  "DELETE {E}/sender-domain",
  "DELETE {E}/products/:name",
  "DELETE {E}/plans/:name",
  "DELETE {E}/access/:slug",
  "DELETE {E}/collections/:name",
  "DELETE /client/auth/session",
  "DELETE /client/auth/sessions",
  "DELETE /api/session/factors/:id",
  "DELETE /api/sessions/:id",
  "DELETE /api/sessions",
  "DELETE /api/oidc",
  "POST /api/oidc/test",
  "PUT /api/oidc/passwords",
  "DELETE /api/session",
  "POST /api/session/oidc/end",
  "PUT /api/session/password",
];

export const EXAMPLES: Readonly<Record<string, ApiExample>> = {
  "GET /docs/search": { query: "?q=rotate+a+secret" },
  "GET /docs/errors/:code": { params: { code: "bad_signature" } },
  "GET /docs/:page": { params: { page: "first-hour" } },
  "GET /docs/:page/:part": { params: { page: "errors", part: "bad_signature" } },
  "POST /api/session": {
    body: { email: "ann@example.com", password: "a long password" },
    headers: ['-H "Origin: $BASE"'],
    status: 401,
    note: "The password is not hers.",
  },
  "POST /api/session/link": {
    body: { token: "KnjxCsYyL984c4QtKY42x4WMv4sfjHen" },
    headers: ['-H "Origin: $BASE"'],
    status: 401,
    note: ONCE,
  },
  "POST /api/link": {
    body: { kind: "reset", token: "KnjxCsYyL984c4QtKY42x4WMv4sfjHen" },
    headers: ['-H "Origin: $BASE"'],
    note: "It only says whether the link still works.",
  },
  "POST /api/setup": {
    body: {
      token: "KnjxCsYyL984c4QtKY42x4WMv4sfjHen",
      email: "ann@example.com",
      password: "a long password",
    },
    headers: ['-H "Origin: $BASE"'],
    status: 401,
    note: ONCE,
  },
  "POST /api/session/reset": {
    body: { token: "KnjxCsYyL984c4QtKY42x4WMv4sfjHen", password: "a long password" },
    headers: ['-H "Origin: $BASE"'],
    status: 401,
    note: ONCE,
  },
  "POST /api/session/factor": {
    body: { token: "KnjxCsYyL984c4QtKY42x4WMv4sfjHen", totp: "492039" },
    headers: ['-H "Origin: $BASE"'],
    status: 401,
    note: ONCE,
  },
  "POST /api/session/oidc/start": {
    body: { returnTo: "/" },
    headers: ['-H "Origin: $BASE"'],
    status: 409,
    note: "Without a provider.",
  },
  "POST /api/session/confirm": {
    body: { password: "a long password" },
    status: 400,
    note: "Her account has no password here.",
  },
  "POST /api/session/confirm/options": { status: 403, note: NO_PASSKEYS },
  "POST /api/session/factors/passkey/options": { status: 403, note: NO_PASSKEYS },
  "POST /api/session/factors/passkey": {
    body: { name: "Laptop", passkey: "{}" },
    status: 403,
    note: NO_PASSKEYS,
  },
  "POST /api/session/passkey/options": {
    body: {},
    headers: ['-H "Origin: $BASE"'],
    status: 403,
    note: NO_PASSKEYS,
  },
  "POST /api/session/passkey": {
    body: { passkey: "{}" },
    headers: ['-H "Origin: $BASE"'],
    status: 403,
    note: NO_PASSKEYS,
  },
  "POST /api/session/factors/totp": { body: { name: "Phone" } },
  "POST /api/session/factors/:id/confirm": {
    params: { id: "fac_019a5f0c4b7c7d0e9a3b2c1d0e9f8a7b" },
    body: { totp: "492039" },
    status: 404,
    note: "No new app waits for its first code.",
  },
  "DELETE /api/session/factors/:id": {
    params: { id: "fac_019a5f0c4b7c7d0e9a3b2c1d0e9f8a7b" },
    status: 404,
    note: "She has no factor with this id.",
  },
  "POST /api/session/recovery-codes": { status: 404, note: "She has no second factor." },
  "POST /api/session/confirm/oidc": { body: { returnTo: "/" }, status: 409, note: "Without a provider." },
  "POST /api/session/oidc": {
    body: { response: "?code=abc&state=def" },
    headers: ['-H "Origin: $BASE"'],
    status: 401,
    note: ONCE,
  },
  "PUT /api/oidc": {
    body: {
      name: "Example ID",
      issuer: "https://id.example.com",
      clientId: "relay",
      clientSecret: "a client secret",
      domains: ["example.com"],
      roles: [{ group: "support", app: "shop", environment: "production", role: "support" }],
    },
  },
  "POST /api/oidc/test": { status: 409, note: "The provider was removed before." },
  "PUT /api/oidc/passwords": {
    body: { passwords: true },
    status: 409,
    note: "The provider was removed before.",
  },
  "GET /api/session": { headers: ['-H "Cookie: $SESSION"'] },
  "PUT /api/session/password": { body: { current: "a long password", password: "another long password" } },
  "DELETE /api/sessions/:id": { params: { id: "$OTHER_SESSION" } },
  "DELETE /api/sessions": { query: "?others=true" },
  "POST /api/owners": { body: { email: "bea@example.com" } },
  "POST /api/owners/:id/link": { params: { id: "$OTHER_OWNER" } },
  "PUT /api/owners/:id": {
    params: { id: "$OTHER_OWNER" },
    body: { memberships: [{ app: "shop", role: "support", payloads: true }] },
  },
  "DELETE /api/owners/:id": { params: { id: "$OTHER_OWNER" } },
  "DELETE /api/owners/:id/factors": { params: { id: "$OTHER_OWNER" } },
  "DELETE /api/owners/:id/identity": {
    params: { id: "$OTHER_OWNER" },
    status: 404,
    note: "The member is linked to no account.",
  },
  "PUT /api/second-factor": { body: { required: false } },
  "POST /api/login": { body: { machine: "laptop" } },
  "POST /api/login/token": {
    body: { deviceCode: "KnjxCsYyL984c4QtKY42x4WMv4sfjHen" },
    status: 400,
    note: ONCE,
  },
  "POST /api/login/look": { body: { code: "BCDF-GHJK" }, status: 404, note: ONCE },
  "POST /api/login/approve": {
    body: { code: "BCDF-GHJK", app: "shop", environment: "development" },
    status: 404,
    note: ONCE,
  },
  "POST /api/login/deny": { body: { code: "BCDF-GHJK" }, status: 404, note: ONCE },
  "POST /api/apps": { body: { id: "second", name: "Second shop" } },
  "DELETE /api/apps/:appId": { params: { appId: "second" }, body: { confirm: "second" } },
  "PATCH /api/apps/:appId": { body: { name: "My shop" } },
  "PUT /api/backups/copies": {
    body: {
      endpoint: "https://s3.example.com",
      bucket: "my-backups",
      region: "eu-central-1",
      prefix: "relay",
      accessKeyId: "AKIAEXAMPLE",
      secretAccessKey: "a secret access key",
      passphrase: "correct horse battery staple",
      keep: 30,
    },
  },
  "POST /api/backups/copies/test": { status: 409, note: "The endpoint was removed before." },
  "PUT /api/backups/schedule": { body: { everyHours: 24, keep: 7 } },
  "GET /api/key": { headers: ['-H "Authorization: Bearer $KEY"'] },
  "DELETE /api/key": {
    headers: ['-H "Authorization: Bearer $KEY"'],
    status: 403,
    note: "This key was made by no login, so an owner revokes it.",
  },
  "POST {E}/keys": { as: "owner", body: { kind: "app", name: "web", origins: ["https://shop.example.com"] } },
  "DELETE {E}/keys/:id": { as: "owner", params: { id: "$OTHER_KEY" } },
  "POST {E}/relays": { body: { definition: { ...EXAMPLE_RELAY, name: "signups" } } },
  "POST {E}/relays/validate": { body: { definition: { ...EXAMPLE_RELAY, name: "Sign ups" } } },
  "POST {E}/relays/explain": {
    body: {
      definition: { ...EXAMPLE_RELAY, name: "refunds" },
      body: '{"id":"42","type":"order.paid","email":"ada@example.com"}',
    },
  },
  "POST {E}/captures": { body: {} },
  "GET {E}/captures/:id": { params: { id: "$CAPTURE" } },
  "DELETE {E}/captures/:id": { params: { id: "$CAPTURE" } },
  "POST {E}/relays/guess": {
    body: {
      body: '{"id":"evt_42","type":"order.paid","data":{"email":"ada@example.com"}}',
      headers: { "x-shop-signature": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08" },
    },
  },
  "GET {E}/relays/:name": { params: NOBODY },
  "GET {E}/relays/:name/funnel": { params: NOBODY },
  "GET {E}/relays/:name/checklist": { params: NOBODY },
  "GET {E}/relays/:name/cases": { params: NOBODY },
  "POST {E}/relays/:name/cases/run": { params: NOBODY, body: {} },
  "PUT {E}/relays/:name/cases/:case": {
    params: { ...NOBODY, case: "paid" },
    body: { body: '{"type":"order.paid"}' },
  },
  "DELETE {E}/relays/:name/cases/:case": { params: { ...NOBODY, case: "paid" } },
  "GET {E}/relays/:name/rejected": { params: NOBODY },
  "POST {E}/relays/:name/rejected/close": { params: NOBODY },
  "GET {E}/relays/:name/skipped": { params: NOBODY },
  "POST {E}/relays/:name/skipped/run": {
    params: NOBODY,
    body: { at: ["2026-11-21T00:00:00.000Z"] },
    status: 400,
    note: "The relay is not a schedule, so it has no skipped run.",
  },
  "PUT {E}/relays/:name": {
    params: NOBODY,
    body: { definition: { ...EXAMPLE_RELAY, name: "orders" }, version: 1 },
  },
  "GET {E}/relays/:name/versions": { params: NOBODY },
  "POST {E}/relays/:name/restore": { params: NOBODY, body: { restores: 1, version: 2 } },
  "DELETE {E}/relays/:name": { params: { name: "signups" } },
  "GET {E}/relays/:name/retry": { params: NOBODY },
  "POST {E}/relays/:name/retry": { params: NOBODY },
  "POST {E}/relays/:name/pause": { params: NOBODY },
  "POST {E}/relays/:name/resume": { params: NOBODY },
  "POST {E}/relays/:name/explain": {
    params: NOBODY,
    body: {
      body: '{"id":"42","type":"order.paid","email":"ada@example.com"}',
      headers: { "hooks-id": "msg_1" },
    },
  },
  "PUT {E}/relays/:name/secret": { params: NOBODY, body: { overlapSeconds: 3600 } },
  "DELETE {E}/relays/:name/previous-secret": { params: NOBODY },
  "PUT {E}/relays/:name/signing-secret": { params: NOBODY },
  "GET /api/senders/:name": { params: { name: "stripe" } },
  "GET /api/kits/:sender": { params: { sender: "lemon-squeezy" } },
  "POST {E}/kits/:sender": {
    params: { sender: "lemon-squeezy" },
    body: { product: "My Course" },
    status: 400,
    note: "Names of relays contain the name, so it has only lowercase letters, digits and hyphens.",
  },
  "POST {E}/sync/plan": { body: { relays: [] } },
  "POST {E}/sync/apply": { body: { relays: [], plan: "$PLAN" } },
  "POST {E}/sync/pulled": { body: { items: [] } },
  "POST {E}/approvals": {
    as: "live",
    params: { environment: "production" },
    body: { relays: [], plan: "$LIVE_PLAN" },
    status: 400,
    note: "There is nothing to carry, so nothing to approve.",
  },
  "GET /api/approvals/:id": { as: "owner", params: { id: "$APPROVAL" } },
  "POST /api/approvals/:id": {
    params: { id: "$APPROVAL" },
    as: "owner",
    body: { decision: "refuse", plan: "$APPROVED_PLAN" },
  },
  "POST /api/approvals/:id/apply": {
    as: "live",
    params: { id: "$APPROVAL" },
    status: 409,
    note: "An owner refused it.",
  },
  "POST {E}/relays/:name/import-missed": {
    params: NOBODY,
    query: "?dryRun=true",
    raw: '{"id":"43","type":"order.paid"}',
  },
  "POST {E}/relays/:name/test-event": {
    params: NOBODY,
    body: { body: '{"id":"44","type":"order.paid","email":"ada@example.com"}' },
  },
  "POST {E}/simulations": {
    body: { kit: "lemon-squeezy", life: "purchase" },
    status: 400,
    note: "The kit is not saved in this environment.",
  },
  "GET {E}/simulations/effect": { query: "?person=ada@example.com&events=$EVENT" },
  "GET {E}/calls/:id": { params: { id: "$CALL" } },
  "GET {E}/events": { query: "?state=done&relay=orders" },
  "GET {E}/events/:id": { params: EVENT },
  "GET {E}/events/:id/cause": { params: EVENT },
  "GET {E}/events/:id/replay": { params: EVENT },
  "POST {E}/events/:id/replay": { params: EVENT },
  "POST {E}/events/:id/retry": {
    params: EVENT,
    status: 409,
    note: "It has ended, so that it is replayed.",
  },
  "POST {E}/events/:id/expunge": { params: EVENT },
  "POST {E}/bulk-replays/plan": { body: { state: "dead", relay: "orders" } },
  "POST {E}/bulk-replays": { body: { state: "dead", relay: "orders" } },
  "GET {E}/bulk-replays/:id": { params: { id: "$REPLAY" } },
  "POST {E}/bulk-replays/:id/stop": { params: { id: "$REPLAY" } },
  "GET {E}/audit": { query: "?target=relay:orders" },
  "POST {E}/alert-channels": {
    body: { kind: "webhook", name: "Ops", fields: { url: "https://example.com/relay-alerts" } },
  },
  "PUT {E}/alert-channels/:id": {
    params: { id: "$CHANNEL" },
    body: { codes: ["relay_failed", "relay_silent"] },
  },
  "POST {E}/alert-channels/:id/test": { params: { id: "$CHANNEL" } },
  "DELETE {E}/alert-channels/:id": { params: { id: "$CHANNEL" } },
  "POST {E}/alerts/:id/resolve": { params: { id: "$ALERT" } },
  "GET {E}/stream": { headers: ["-N --max-time 1"], note: "It stays open; `--max-time` ends it here." },
  "GET {E}/find": { query: "?q=ada" },
  "POST {E}/collections": {
    body: { name: "notes", kind: "private", fields: { text: { type: "text", required: true } } },
  },
  "GET {E}/collections/:name": { params: NOBODY },
  "PUT {E}/collections/:name": {
    params: { name: "notes" },
    body: { kind: "private", fields: { text: { type: "text" }, at: { type: "date" } } },
  },
  "DELETE {E}/collections/:name": { params: { name: "notes" } },
  "GET {E}/collections/:name/records": { params: NOBODY },
  "POST {E}/collections/:name/records": { params: NOBODY, body: { data: { order: "42" }, to: "$PERSON" } },
  "GET {E}/collections/:name/records/:id": { params: { ...NOBODY, id: "$RECORD" } },
  "PUT {E}/collections/:name/records/:id": {
    params: { ...NOBODY, id: "$RECORD" },
    body: { data: { order: "42" }, to: "$PERSON" },
  },
  "DELETE {E}/collections/:name/records/:id": { params: { ...NOBODY, id: "$RECORD" } },
  "POST {E}/files": { query: "?name=note.txt", headers: ['-H "Content-Type: text/plain"'], raw: "hello" },
  "GET {E}/files/:id": { params: { id: "$FILE" } },
  "DELETE {E}/files/:id": { params: { id: "$FILE" } },
  "POST {E}/persons": { body: { email: "bob@example.com" } },
  "GET {E}/persons/:id": { params: PERSON },
  "GET {E}/persons/:id/story": { params: PERSON },
  "GET {E}/persons/:id/similar": { params: { id: "$OTHER_PERSON" } },
  "POST {E}/persons/:id/change-address": {
    params: { id: "$OTHER_PERSON" },
    body: { email: "new@example.com", plan: true },
  },
  "POST {E}/persons/:id/merge": {
    params: { id: "$OTHER_PERSON" },
    body: { into: "ada@example.com", plan: true },
  },
  "PATCH {E}/persons/:id": { params: PERSON, body: { attributes: { plan: "team" } } },
  "DELETE {E}/persons/:id": { params: { id: "$OTHER_PERSON" } },
  "PUT {E}/persons/:id/tokens": { params: PERSON, body: { token: "store-account-7" } },
  "POST {E}/persons/:id/tokens/remove": { params: PERSON, body: { token: "store-account-7" } },
  "PUT {E}/persons/:id/customers": { params: PERSON, body: { space: "orders", id: "cus_123" } },
  "POST {E}/persons/:id/customers/remove": { params: PERSON, body: { space: "orders", id: "cus_123" } },
  "PUT {E}/persons/:id/tokens/:token": { params: { ...PERSON, token: "store-account-8" } },
  "DELETE {E}/persons/:id/tokens/:token": { params: { ...PERSON, token: "store-account-8" } },
  "GET {E}/persons/:id/access": { params: PERSON },
  "GET {E}/persons/:id/access/:entitlement": { params: { ...PERSON, entitlement: "access:members" } },
  "DELETE {E}/persons/:id/access/:entitlement": { params: { ...PERSON, entitlement: "access:beta" } },
  "GET {E}/persons/access/:entitlement": {
    params: { entitlement: "access:members" },
    query: "?email=ada%40example.com",
  },
  "POST {E}/sessions/verify": { body: { token: "$PERSON_SESSION" } },
  "GET {E}/persons/:id/grants": { params: PERSON },
  "POST {E}/persons/:id/grants": {
    params: PERSON,
    body: { entitlement: "access:members", expiresAt: "2030-01-31T00:00:00Z", reason: "by hand" },
  },
  "DELETE {E}/grants/:id": { params: { id: "$GRANT" } },
  "GET {E}/persons/:id/credits": { params: PERSON },
  "POST {E}/persons/:id/credits": {
    params: PERSON,
    body: { amount: 100, reason: "Welcome", key: "welcome-1" },
  },
  "GET {E}/persons/:id/mail-stop": { params: PERSON },
  "PUT {E}/persons/:id/mail-stop": { params: PERSON, body: { stopped: false } },
  "GET {E}/products/:name": { params: { name: "premium" } },
  "PUT {E}/products/:name": { params: { name: "book" }, body: { title: "A book", credits: 10 } },
  "DELETE {E}/products/:name": { params: { name: "book" } },
  "GET {E}/plans/:name": { params: { name: "team" } },
  "PUT {E}/plans/:name": { params: { name: "solo" }, body: { title: "Solo" } },
  "DELETE {E}/plans/:name": { params: { name: "solo" } },
  "PUT {E}/access": { body: { items: [{ slug: "members", title: "Members" }] } },
  "PUT {E}/access/:slug": { params: { slug: "beta" }, body: { title: "Beta testers" } },
  "DELETE {E}/access/:slug": { params: { slug: "beta" } },
  "GET {E}/purchases/:id": { params: { id: "$PURCHASE" } },
  "GET {E}/purchases/:id/refund": { params: { id: "$PURCHASE" } },
  "POST {E}/purchases/:id/refund": { params: { id: "$PURCHASE" } },
  "POST {E}/purchases/:id/move": {
    params: { id: "$PURCHASE" },
    body: { person: "ada@example.com", plan: true },
  },
  "POST {E}/subscriptions/:id/end": { params: { id: "$SUBSCRIPTION" } },
  "POST {E}/receipts": {
    body: { ref: "pay_1", person: "$PERSON", product: "premium", amountMinor: 4200, currency: "EUR" },
  },
  "GET {E}/emails/:id": { params: { id: "$EMAIL" } },
  "POST {E}/emails/:id/send-again": {
    params: { id: "$EMAIL" },
    status: 409,
    note: "Only mail whose end is unknown is sent again; of this one it is known.",
  },
  "POST {E}/mail/test": { body: { to: "ann@example.com" } },
  "PUT {E}/sender-domain": { body: { domain: "example.com" } },
  "GET /mail/stop/:token": { params: { token: "KnjxCsYyL984c4QtKY42x4WMv4sfjHen" }, status: 404, note: ONCE },
  "POST /mail/stop/:token": {
    params: { token: "KnjxCsYyL984c4QtKY42x4WMv4sfjHen" },
    status: 404,
    note: ONCE,
  },
  "PUT {E}/catalog": { body: { catalog: { access: { beta: {} } }, version: "$CATALOG" } },
  "PUT {E}/settings": { body: { version: 2, signin: { invitedOnly: true } } },
  "POST {E}/mcp": {
    headers: ['-H "Accept: application/json, text/event-stream"'],
    body: { jsonrpc: "2.0", id: 1, method: "tools/list" },
  },
  "GET /client/access/:entitlement": { params: { entitlement: "access:members" } },
  "POST /client/auth/code": { body: { email: "ada@example.com" } },
  "POST /client/auth/session": {
    body: { email: "ada@example.com", code: "000000" },
    status: 401,
    note: "The code is not the one that was mailed.",
  },
  "POST /client/payments/buy": { body: { product: "linked" } },
  "POST /client/subscriptions/checkout": { body: { plan: "linked-plan" } },
  "GET /client/collections/:name/records": { params: NOBODY },
  "POST /client/collections/:name/records": {
    params: { name: "todos" },
    body: { data: { text: "Write to Bob" } },
  },
  "GET /client/collections/:name/records/:id": { params: { name: "todos", id: "$NOTE" } },
  "PUT /client/collections/:name/records/:id": {
    params: { name: "todos", id: "$NOTE" },
    body: { data: { text: "Write to Carol" } },
  },
  "DELETE /client/collections/:name/records/:id": { params: { name: "todos", id: "$NOTE" } },
};
