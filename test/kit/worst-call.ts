/**
 * The most expensive calls of every route, on a store as full as years of use make it: the largest bodies, the widest filters, the longest lists. No
 * call may block the event loop for long, because every receiver waits meanwhile. `npm run bench -- --only lag` times them, and
 * test/attack/worst-call.test.ts counts their work. That test fails if a route has no entry here.
 */
import { ROUTES } from "../../src/interfaces/api/route-list.ts";
import { COLLECTIONS_TO_DELETE, FIRST_WIDE_RECORD, PERSON_WITH_LONG_ADDRESS, PERSON_WITHOUT_HOLDINGS, rowId } from "./filled-store.ts";
import { hostile, MB, manyProblems, manyTemplates, missed, nearNames, SYNCED } from "./worst-body.ts";

export const E = "/api/apps/shop/development";

export interface Ask {
  path: string;
  method?: string;
  body?: unknown;
  bytes?: Uint8Array<ArrayBuffer>;
  /** The expected status of the response; any 2xx by default. */
  status?: number;
}

/** The most expensive calls of a route. A call that uses something up takes another one for each try. */
type Worst = (turn: number) => (Ask | string)[];

/** Placeholders for ids that are known once the service has started. */
export const WIDE_EVENT = "{wide event}";
export const APPROVAL = "{approval}";
export const CAPTURE = "{capture}";
export const OTHER_EVENT = /\{other event (\d)\}/;
const otherEvent = (turn: number): string => `{other event ${turn}}`;
const person = rowId("per", 1);
const wideRecord = rowId("rec", FIRST_WIDE_RECORD);
const long = "a".repeat(199);
const wideText = { text: "c".repeat(250_000) };
const notes = `${E}/collections/notes/records`;
const wide = `${E}/collections/wide/records`;

const get =
  (path: string): Worst =>
  () => [path];
const list =
  (path: string, ...queries: string[]): Worst =>
  () =>
    ["", ...queries].map((query) => `${E}${path}?limit=200&${query}`);
/** Returns a body that is refused with this status after it was read. */
const no = (status: number, body: unknown): Ask => ({ path: "", status, body });
const isRefused = (body: unknown): body is Ask => (body as Ask | undefined)?.path === "";
const send =
  (method: string, path: string, ...bodies: unknown[]): Worst =>
  () =>
    bodies.map((body) => (isRefused(body) ? { ...body, method, path } : { method, path, body }));

const refused = (status: number, method: string, path: string, ...bodies: unknown[]): Worst =>
  send(method, path, ...bodies.map((body) => no(status, body)));

/** The calls by method and path. `{E}` is an environment's path. */
export const WORST_CALLS: Record<string, Worst> = {
  "GET /healthz": get("/healthz"),
  "GET /readyz": get("/readyz"),
  "GET /metrics": get("/metrics"),
  "GET /changes.json": get("/changes.json"),
  "GET /changes.txt": get("/changes.txt"),
  "GET /docs": get("/docs"),
  "GET /docs/search": get(`/docs/search?q=${Array.from({ length: 8 }, (_, at) => "aeiorstn"[at]).join("+")}`),
  "GET /docs/definition.schema.json": get("/docs/definition.schema.json"),
  "GET /docs/catalog.schema.json": get("/docs/catalog.schema.json"),
  "GET /docs/errors/:code": get("/docs/errors/not_found"),
  "GET /docs/:page": get("/docs/definition"),
  "GET /docs/:page/:part": get("/docs/errors/not_found.md"),
  "GET /api/session": get("/api/session"),
  "POST /api/session": refused(401, "POST", "/api/session", { email: "x@example.com", password: long }),
  "POST /api/session/link": refused(400, "POST", "/api/session/link", { token: long }),
  "POST /api/link": refused(400, "POST", "/api/link", { token: "a".repeat(MB - 1000) }),
  "POST /api/setup": refused(400, "POST", "/api/setup", {
    token: long,
    email: "x@example.com",
    password: long,
  }),
  "POST /api/session/reset": refused(400, "POST", "/api/session/reset", { token: long, password: long }),
  "DELETE /api/session": refused(400, "DELETE", "/api/session?x=1", undefined),
  "PUT /api/session/password": refused(400, "PUT", "/api/session/password", { current: long, password: "x" }),
  "POST /api/session/confirm": refused(400, "POST", "/api/session/confirm", { password: long }),
  "POST /api/session/factor": refused(401, "POST", "/api/session/factor", { token: "x".repeat(100), totp: "1".repeat(40) }),
  "POST /api/session/confirm/options": refused(403, "POST", "/api/session/confirm/options", {}),
  "POST /api/session/passkey/options": refused(403, "POST", "/api/session/passkey/options", { token: "x".repeat(100) }),
  "POST /api/session/passkey": refused(403, "POST", "/api/session/passkey", { passkey: "[".repeat(1_600) }),
  "POST /api/session/factors/passkey/options": refused(403, "POST", "/api/session/factors/passkey/options", {}),
  "POST /api/session/factors/passkey": refused(403, "POST", "/api/session/factors/passkey", { name: "x", passkey: "[".repeat(2_500) }),
  "GET /api/session/factors": get("/api/session/factors"),
  "POST /api/session/factors/totp": refused(400, "POST", "/api/session/factors/totp", { name: "x".repeat(201) }),
  "POST /api/session/factors/:id/confirm": refused(404, "POST", "/api/session/factors/fac_none/confirm", { totp: "123456" }),
  "DELETE /api/session/factors/:id": refused(404, "DELETE", "/api/session/factors/fac_none", undefined),
  "POST /api/session/recovery-codes": refused(404, "POST", "/api/session/recovery-codes", {}),
  "GET /api/sessions": get("/api/sessions"),
  "DELETE /api/sessions/:id": refused(404, "DELETE", "/api/sessions/ses_none", undefined),
  "DELETE /api/sessions": send("DELETE", "/api/sessions?others=true", undefined),
  "GET /api/server": get("/api/server"),
  "GET /api/nodes": get("/api/nodes"),
  "GET /api/backups": get("/api/backups"),
  "GET /api/audit": () => ["/api/audit?limit=200", "/api/audit?action=ref_refused", "/api/audit?target=nothing"],
  "POST /api/backups": refused(400, "POST", "/api/backups", { file: long }),
  "PUT /api/backups/copies": refused(400, "PUT", "/api/backups/copies", {
    endpoint: long,
    bucket: long,
    accessKeyId: long,
    passphrase: long,
    keep: 1,
  }),
  "DELETE /api/backups/copies": send("DELETE", "/api/backups/copies", undefined),
  "POST /api/backups/copies/test": refused(409, "POST", "/api/backups/copies/test", undefined),
  "PUT /api/backups/schedule": refused(400, "PUT", "/api/backups/schedule", { everyHours: long, keep: long }),
  "GET /api/oidc": get("/api/oidc"),
  "PUT /api/oidc": refused(400, "PUT", "/api/oidc", {
    issuer: `https://${"a".repeat(190)}`,
    clientId: long,
    domains: Array.from({ length: 10 }, () => `${"a.".repeat(49)}@`),
    roles: Array.from({ length: 24 }, () => ({ group: "a".repeat(100), role: "viewer", app: "a".repeat(63) })),
  }),
  "DELETE /api/oidc": send("DELETE", "/api/oidc", undefined),
  "POST /api/oidc/test": refused(409, "POST", "/api/oidc/test", undefined),
  "PUT /api/oidc/passwords": refused(409, "PUT", "/api/oidc/passwords", { passwords: false }),
  "POST /api/session/oidc/start": refused(400, "POST", "/api/session/oidc/start", { returnTo: `//${"a".repeat(990)}` }),
  "POST /api/session/confirm/oidc": refused(400, "POST", "/api/session/confirm/oidc", { returnTo: `//${"a".repeat(990)}` }),
  "POST /api/session/oidc": refused(401, "POST", "/api/session/oidc", { response: `?state=${"a".repeat(2_590)}` }),
  "POST /api/session/oidc/end": refused(400, "POST", "/api/session/oidc/end", { none: long }),
  "GET /api/owners": get("/api/owners"),
  "POST /api/owners": refused(400, "POST", "/api/owners", { email: "x".repeat(MB - 100) }, { email: `${"a.".repeat(120)}@@` }),
  "POST /api/owners/:id/link": refused(404, "POST", "/api/owners/own_none/link", {}),
  "PUT /api/owners/:id": refused(404, "PUT", "/api/owners/own_none", {
    memberships: Array.from({ length: 16 }, () => ({ role: "viewer", app: "a".repeat(63) })),
  }),
  "DELETE /api/owners/:id": refused(404, "DELETE", "/api/owners/own_none", undefined),
  "DELETE /api/owners/:id/identity": refused(404, "DELETE", "/api/owners/own_none/identity", undefined),
  "DELETE /api/owners/:id/factors": refused(404, "DELETE", "/api/owners/own_none/factors", undefined),
  "GET /api/second-factor": get("/api/second-factor"),
  "PUT /api/second-factor": refused(400, "PUT", "/api/second-factor", { required: long }),
  "PATCH /api/apps/:appId": refused(400, "PATCH", "/api/apps/shop", { name: "x".repeat(MB - 100) }),
  "GET /api/apps/:appId/contents": get("/api/apps/shop/contents"),
  "DELETE /api/apps/:appId": refused(400, "DELETE", "/api/apps/shop", { confirm: "x".repeat(MB - 100) }, { confirm: "none" }),
  "GET /api/apps": get("/api/apps?limit=200"),
  "POST /api/apps": refused(400, "POST", "/api/apps", { name: "x".repeat(MB - 100) }),
  "GET {E}/relays": list("/relays", "sort=trouble", "sort=traffic&state=ok&search=busy"),
  "POST {E}/relays": send(
    "POST",
    `${E}/relays`,
    { definition: manyTemplates },
    no(400, { definition: manyProblems }),
    no(400, { definition: nearNames }),
  ),
  "POST {E}/relays/validate": send(
    "POST",
    `${E}/relays/validate`,
    ...["wide", "notes"].map((collection) => ({
      definition: {
        name: "seen",
        trigger: { kind: "data_change", collection, on: ["created"], where: { text: "x" } },
        actions: manyTemplates.actions.slice(0, 1),
      },
    })),
    { definition: manyTemplates },
    { definition: manyProblems },
    { definition: nearNames },
  ),
  "POST {E}/relays/explain": send(
    "POST",
    `${E}/relays/explain`,
    { definition: { ...manyTemplates, name: "busy1" }, body: `{"items":[${"[],".repeat(80_000)}1]}` },
    { definition: { ...manyTemplates, name: "busy1" }, body: `{"text":"${"c".repeat(250_000)}"}`, headers: { "x-signature": "0".repeat(64) } },
    no(400, { definition: manyProblems }),
    no(400, { definition: nearNames }),
  ),
  "POST {E}/sync/plan": send(
    "POST",
    `${E}/sync/plan`,
    ...SYNCED,
    no(400, { relays: [manyProblems] }),
    no(413, { relays: Array.from({ length: 4 }, () => manyTemplates) }),
  ),
  // A refused apply costs as much as a plan, because the service applies the changes and rolls them back.
  "POST {E}/sync/apply": refused(409, "POST", `${E}/sync/apply`, ...SYNCED.map((files) => ({ ...files, plan: "pln_other" }))),
  "GET {E}/sync/items": list("/sync/items"),
  "POST {E}/sync/pulled": send("POST", `${E}/sync/pulled`, {
    items: Array.from({ length: 100 }, (_, at) => ({ kind: "relay", name: `busy${at}`, mark: "x".repeat(9_000) })),
  }),
  // A refused approval costs as much as a plan and stores nothing.
  "POST {E}/approvals": refused(409, "POST", `${E}/approvals`, ...SYNCED.map(({ prune: _, ...files }) => ({ ...files, plan: "pln_other" }))),
  "GET {E}/approvals": get(`${E}/approvals`),
  "GET /api/approvals/:id": get(`/api/approvals/${APPROVAL}`),
  "POST /api/approvals/:id": refused(409, "POST", `/api/approvals/${APPROVAL}`, { decision: "approve", plan: "pln_other" }),
  "POST /api/approvals/:id/apply": refused(403, "POST", `/api/approvals/${APPROVAL}/apply`, {}),
  "GET {E}/relays/:name": get(`${E}/relays/busy0`),
  "GET {E}/relays/:name/funnel": get(`${E}/relays/busy/funnel`),
  "GET {E}/relays/:name/checklist": get(`${E}/relays/busy/checklist`),
  "GET {E}/relays/:name/cases": get(`${E}/relays/busy/cases`),
  "POST {E}/captures": send("POST", `${E}/captures`, {}),
  "GET {E}/captures/:id": get(`${E}/captures/${CAPTURE}`),
  "DELETE {E}/captures/:id": refused(404, "DELETE", `${E}/captures/cap_none`, undefined),
  "POST {E}/relays/guess": send(
    "POST",
    `${E}/relays/guess`,
    { body: `{"items":[${"[],".repeat(80_000)}1]}`, secret: "Qk7bXFQsq4OKAPhAIVqs" },
    { body: `{"text":"${"c".repeat(250_000)}"}`, headers: { "x-signature": "0".repeat(64) }, secret: "Qk7bXFQsq4OKAPhAIVqs" },
    {
      body: `{${'"a":1,'.repeat(5_000)}"b":1}`,
      headers: Object.fromEntries(Array.from({ length: 60 }, (_, at) => [`x-signature-${at}`, "a".repeat(64)])),
      secret: `whsec_${"a".repeat(40)}`,
    },
    { body: `{${Array.from({ length: 9_000 }, (_, at) => `"user${at}":"a@b.example"`).join()}}` },
    { body: "x=1&".repeat(900), contentType: "application/x-www-form-urlencoded", search: `?${"a=1&".repeat(900)}`, secret: "Qk7bXFQsq4OKAPhAIVqs" },
  ),
  "POST {E}/relays/:name/cases/run": send("POST", `${E}/relays/busy/cases/run`, {}),
  "PUT {E}/relays/:name/cases/:case": send("PUT", `${E}/relays/busy/cases/paid`, { body: `{"x":"${"y".repeat(60_000)}"}` }),
  "DELETE {E}/relays/:name/cases/:case": refused(404, "DELETE", `${E}/relays/busy/cases/none`),
  "GET {E}/relays/:name/rejected": get(`${E}/relays/busy/rejected`),
  "POST {E}/relays/:name/rejected/close": send("POST", `${E}/relays/busy/rejected/close`, {}),
  "GET {E}/relays/:name/skipped": get(`${E}/relays/busy/skipped`),
  "POST {E}/relays/:name/skipped/run": refused(400, "POST", `${E}/relays/busy/skipped/run`, { at: Array(100).fill("2026-11-21T00:00:00.000Z") }),
  "PUT {E}/relays/:name": send("PUT", `${E}/relays/busy0`, {
    definition: { ...manyTemplates, name: "busy0" },
    version: 1,
  }),
  "GET {E}/relays/:name/versions": list("/relays/busy0/versions"),
  "POST {E}/relays/:name/restore": refused(404, "POST", `${E}/relays/busy0/restore`, { restores: 999, version: 1 }),
  "DELETE {E}/relays/:name": (turn) => [{ method: "DELETE", path: `${E}/relays/gone${turn}` }],
  "GET {E}/relays/:name/retry": get(`${E}/relays/busy1/retry`),
  "POST {E}/relays/:name/retry": send("POST", `${E}/relays/busy1/retry`, {}),
  "POST {E}/relays/:name/pause": send("POST", `${E}/relays/busy1/pause`, {}),
  "POST {E}/relays/:name/resume": send("POST", `${E}/relays/busy1/resume`, {}),
  "POST {E}/relays/:name/explain": send(
    "POST",
    `${E}/relays/busy1/explain`,
    { body: `{"items":[${"[],".repeat(80_000)}1]}` },
    { body: `{"text":"${"c".repeat(250_000)}"}`, headers: { "x-signature": "0".repeat(64) } },
    { body: "x=1&".repeat(900), contentType: "application/x-www-form-urlencoded" },
    no(404, { event: long.slice(0, 90) }),
  ),
  "POST {E}/relays/:name/import-missed": (turn) => [
    ...missed(turn).flatMap((body) => [
      { method: "POST", path: `${E}/relays/missed/import-missed`, body },
      { method: "POST", path: `${E}/relays/missed/import-missed?dryRun=true`, body },
    ]),
    { method: "POST", path: `${E}/relays/missed/import-missed`, body: "\n".repeat(MB), status: 413 },
  ],
  "POST {E}/relays/:name/test-event": (turn) => [
    ...[`{"id":"t${turn}","items":[${"[],".repeat(85_000)}1]}`, JSON.stringify({ id: `u${turn}`, large: '"'.repeat(120_000) })].map((body) => ({
      method: "POST",
      path: `${E}/relays/missed/test-event`,
      body: { body },
    })),
    { method: "POST", path: `${E}/relays/missed/test-event`, body: {} },
  ],
  "POST {E}/simulations": refused(400, "POST", `${E}/simulations`, { kit: "lemon-squeezy", life: "subscription-life" }),
  "GET {E}/simulations/effect": get(`${E}/simulations/effect?person=${"e".repeat(200)}&events=`),
  "PUT {E}/relays/:name/secret": refused(400, "PUT", `${E}/relays/busy1/secret`, {
    value: "x".repeat(MB - 100),
  }),
  "DELETE {E}/relays/:name/previous-secret": (_turn) => [{ method: "DELETE", path: `${E}/relays/busy1/previous-secret`, status: 404 }],
  "PUT {E}/relays/:name/signing-secret": refused(400, "PUT", `${E}/relays/busy1/signing-secret`, {}),
  "GET /api/relay-templates": get("/api/relay-templates?limit=200"),
  "GET /api/senders": get(`/api/senders?limit=200&q=${"e".repeat(100)}`),
  "GET {E}/relays/:name/sender": get(`${E}/relays/busy1/sender`),
  "GET /api/senders/:name": get("/api/senders/stripe"),
  "GET /api/verifiers": get("/api/verifiers?limit=200"),
  "GET /api/kits": get("/api/kits?limit=200"),
  "GET /api/kits/:sender": get("/api/kits/lemon-squeezy"),
  "POST {E}/kits/:sender": send("POST", `${E}/kits/stripe`, { plan: "kit-basic", plan2: "kit-pro" }, no(409, { product: "other" })),
  "GET {E}/events": list(
    "/events",
    "relay=wide",
    `q=${long}b`,
    "q=nowhere",
    "mapped=order:nowhere",
    "state=dead&trigger=schedule",
    "state=queued&relay=wide",
    `person=${person}&trigger=schedule`,
    `relay=busy&state=running`,
    "until=2020-01-01T00:00:00Z",
    "since=2020-01-01T00:00:00Z&trigger=schedule",
    "since=2020-01-01T00:00:00Z&until=2100-01-01T00:00:00Z",
    "since=2020-01-01T00:00:00Z&until=2100-01-01T00:00:00Z&relay=busy&trigger=schedule",
  ),
  "GET {E}/events/counts": () =>
    [
      "",
      "relay=busy",
      "relay=wide",
      "trigger=receiver",
      "trigger=schedule",
      `person=${person}`,
      `person=${person}&trigger=schedule`,
      "q=nowhere",
      "since=2020-01-01T00:00:00Z",
      "until=2020-01-01T00:00:00Z",
    ].map((query) => `${E}/events/counts?${query}`),
  "GET {E}/events/histogram": () =>
    [
      "",
      "relay=busy",
      "relay=wide",
      "trigger=schedule",
      "relay=busy&trigger=receiver",
      "state=queued&relay=wide",
      `person=${person}&trigger=schedule`,
      "q=nowhere",
      "mapped=order:nowhere",
      "since=2020-01-01T00:00:00Z",
      "every=6h",
    ].map((query) => `${E}/events/histogram?${query}`),
  "GET {E}/events/:id": get(`${E}/events/${WIDE_EVENT}`),
  "GET {E}/events/:id/cause": get(`${E}/events/${otherEvent(1)}/cause`),
  "GET {E}/events/:id/replay": get(`${E}/events/${WIDE_EVENT}/replay`),
  "POST {E}/events/:id/replay": send("POST", `${E}/events/${WIDE_EVENT}/replay`, {}),
  "POST {E}/events/:id/retry": refused(409, "POST", `${E}/events/${WIDE_EVENT}/retry`, {}),
  "POST {E}/events/:id/expunge": (turn) => [{ method: "POST", path: `${E}/events/${otherEvent(turn)}/expunge`, body: {} }],
  "POST {E}/bulk-replays/plan": send(
    "POST",
    `${E}/bulk-replays/plan`,
    { state: "dead" },
    { state: "failed", trigger: "schedule" },
    { state: "dead", person, since: "2020-01-01T00:00:00Z", until: "2100-01-01T00:00:00Z" },
    { state: "done" },
    { state: "done", relay: "busy" },
    { state: "done", relay: "wide" },
    { state: "dead", reason: "none" },
  ),
  // The service counts all events, and none matches.
  "POST {E}/bulk-replays": send("POST", `${E}/bulk-replays`, { state: "dead", trigger: "schedule" }),
  "GET {E}/bulk-replays": list("/bulk-replays"),
  "GET {E}/bulk-replays/:id": refused(404, "GET", `${E}/bulk-replays/rpl_none`, undefined),
  "POST {E}/bulk-replays/:id/stop": refused(404, "POST", `${E}/bulk-replays/rpl_none/stop`, {}),
  "GET {E}/catalog": get(`${E}/catalog`),
  "PUT {E}/catalog": send(
    "PUT",
    `${E}/catalog`,
    no(400, { catalog: manyProblems, version: "x" }),
    ...SYNCED.flatMap(({ catalog }) => (catalog === undefined ? [] : [no(409, { catalog, version: "x" })])),
  ),
  "GET {E}/catalog-uses": get(`${E}/catalog-uses`),
  "GET {E}/overview": get(`${E}/overview`),
  "GET /api/overview": get("/api/overview"),
  "GET {E}/url-times": get(`${E}/url-times`),
  "GET {E}/stream": get(`${E}/stream`),
  "GET {E}/find": () => [`${E}/find?q=p`, `${E}/find?q=${wideRecord}`],
  "GET {E}/calls": list("/calls", "relay=nothing"),
  "GET {E}/calls/counts": () => [`${E}/calls/counts`, `${E}/calls/counts?relay=nothing`],
  "GET {E}/calls/:id": refused(404, "GET", `${E}/calls/999999999999`, undefined),
  "GET {E}/unknown-calls": list("/unknown-calls"),
  "GET {E}/collections/:name/records": () => [
    `${wide}?limit=200`,
    `${notes}?limit=200&to=${person}`,
    `${notes}?limit=200&q=nothing`,
    `${wide}?limit=200&q=nothing`,
    `${notes}?limit=200&owner=${rowId("per", 2)}`,
    `${notes}?limit=200&owner=${rowId("per", 2)}&to=${rowId("per", 3)}`,
    `${wide}?limit=200&owner=${person}`,
  ],
  "POST {E}/collections/:name/records": send(
    "POST",
    wide,
    { data: wideText },
    { data: { json: Array.from({ length: 24_000 }, () => 1234567) } },
    no(400, { data: { text: "\u0001".repeat(40_000) } }),
    no(400, { data: Object.fromEntries(Array.from({ length: 20_000 }, (_, at) => [`txt${at}`, 1])) }),
  ),
  "GET {E}/collections/:name/records/:id": get(`${wide}/${wideRecord}`),
  "PUT {E}/collections/:name/records/:id": send("PUT", `${wide}/${wideRecord}`, { data: wideText }),
  "DELETE {E}/collections/:name/records/:id": (turn) => [{ method: "DELETE", path: `${wide}/${rowId("rec", FIRST_WIDE_RECORD + 1 + turn)}` }],
  "GET {E}/collections": list("/collections"),
  "POST {E}/collections": refused(400, "POST", `${E}/collections`, {
    name: "many",
    kind: "shared",
    fields: Object.fromEntries(Array.from({ length: 30_000 }, (_, at) => [`Field ${at}`, { typ: "text" }])),
  }),
  "GET {E}/collections/:name": get(`${E}/collections/wide`),
  "PUT {E}/collections/:name": refused(400, "PUT", `${E}/collections/wide`, {
    kind: "private",
    fields: Object.fromEntries(Array.from({ length: 30_000 }, (_, at) => [`field${at}`, { type: "txt" }])),
  }),
  "DELETE {E}/collections/:name": (turn) => {
    const name = COLLECTIONS_TO_DELETE[turn];
    return name === undefined ? [] : [{ method: "DELETE", path: `${E}/collections/${name}?force=true` }];
  },
  "GET {E}/files": list("/files"),
  "POST {E}/files": () => [{ method: "POST", path: `${E}/files?name=a.bin`, bytes: new Uint8Array(5 * MB) }],
  "GET {E}/files/:id": get(`${E}/files/${rowId("fil", 100_001)}`),
  "DELETE {E}/files/:id": (turn) => [{ method: "DELETE", path: `${E}/files/${rowId("fil", 100_001 + turn)}` }],
  "GET {E}/persons": list(
    "/persons",
    "q=nobody-has-this",
    "status=suspended",
    `q=${long}`,
    "status=invited&q=p",
    "access=true",
    "access=false",
    "find=p",
    `find=${long}`,
  ),
  "POST {E}/persons": refused(
    400,
    "POST",
    `${E}/persons`,
    { email: `${"a.".repeat(300_000)}@example.com` },
    { email: `a@${"a-".repeat(300_000)}` },
    { email: "a".repeat(MB - 100) },
  ),
  "GET {E}/persons/:id": get(`${E}/persons/${person}`),
  "GET {E}/persons/:id/story": list(`/persons/${person}/story`),
  "GET {E}/persons/:id/similar": () => [PERSON_WITHOUT_HOLDINGS, PERSON_WITH_LONG_ADDRESS].map((id) => `${E}/persons/${id}/similar`),
  "POST {E}/persons/:id/change-address": send("POST", `${E}/persons/${person}/change-address`, { email: "new-address@example.com" }),
  "POST {E}/persons/:id/merge": send("POST", `${E}/persons/${rowId("per", 8)}/merge`, { into: rowId("per", 7) }),
  "PATCH {E}/persons/:id": refused(400, "PATCH", `${E}/persons/${person}`, {
    attributes: Object.fromEntries(Array.from({ length: 60_000 }, (_, at) => [`n${at}`, "x"])),
  }),
  "DELETE {E}/persons/:id": (turn) => [{ method: "DELETE", path: `${E}/persons/${rowId("per", 2 + turn)}` }],
  "PUT {E}/persons/:id/tokens/:token": send("PUT", `${E}/persons/${person}/tokens/${long}`, {}),
  "DELETE {E}/persons/:id/tokens/:token": send("DELETE", `${E}/persons/${person}/tokens/${long}`, {}),
  "PUT {E}/persons/:id/tokens": send("PUT", `${E}/persons/${person}/tokens`, { token: long }),
  "POST {E}/persons/:id/tokens/remove": send("POST", `${E}/persons/${person}/tokens/remove`, { token: long }),
  "PUT {E}/persons/:id/customers": send("PUT", `${E}/persons/${person}/customers`, { space: "crowd1", id: long }),
  "POST {E}/persons/:id/customers/remove": send("POST", `${E}/persons/${person}/customers/remove`, { space: "busy", id: "cus_7" }),
  "GET {E}/persons/:id/access": get(`${E}/persons/${person}/access`),
  "GET {E}/persons/:id/access/:entitlement": get(`${E}/persons/${person}/access/access:e1`),
  "DELETE {E}/persons/:id/access/:entitlement": send("DELETE", `${E}/persons/${person}/access/access:e1`, {}),
  "GET {E}/persons/access/:entitlement": get(`${E}/persons/access/access:e1?email=${encodeURIComponent(`a@${long}`)}`),
  "POST {E}/sessions/verify": send("POST", `${E}/sessions/verify`, { token: `ps_${"x".repeat(43)}` }),
  "GET {E}/persons/:id/grants": list(`/persons/${person}/grants`),
  "POST {E}/persons/:id/grants": send(
    "POST",
    `${E}/persons/${person}/grants`,
    no(400, { entitlement: "access:beta", reason: "x".repeat(MB - 1000) }),
    { entitlement: "access:beta" },
  ),
  "DELETE {E}/grants/:id": send("DELETE", `${E}/grants/${rowId("grt", 100_001)}`, {}),
  "GET {E}/persons/:id/credits": list(`/persons/${person}/credits`),
  "POST {E}/persons/:id/credits": refused(400, "POST", `${E}/persons/${person}/credits`, {
    amount: 1,
    reason: "x".repeat(MB - 1000),
  }),
  "GET {E}/access": list("/access"),
  "PUT {E}/access": send(
    "PUT",
    `${E}/access?force=true`,
    no(400, { items: Array.from({ length: 8_000 }, (_, at) => ({ slug: `s${at}` })) }),
    { items: [{ slug: "beta" }, ...Array.from({ length: 999 }, (_, at) => ({ slug: `s${at}` }))] },
    { items: [{ slug: "beta" }] },
  ),
  "PUT {E}/access/:slug": refused(400, "PUT", `${E}/access/beta`, { title: "x".repeat(MB - 1000) }),
  "DELETE {E}/access/:slug": refused(409, "DELETE", `${E}/access/beta`, {}),
  "GET {E}/products": list("/products"),
  "GET {E}/products/:name": get(`${E}/products/book`),
  "PUT {E}/products/:name": send("PUT", `${E}/products/book`, no(400, { title: "x".repeat(MB - 1000) }), {
    title: "Book",
    credits: 1,
  }),
  "DELETE {E}/products/:name": send("DELETE", `${E}/products/gone`, {}),
  "GET {E}/plans": list("/plans"),
  "GET {E}/plans/:name": get(`${E}/plans/pro`),
  "PUT {E}/plans/:name": send("PUT", `${E}/plans/pro`, { title: "Pro", default: true }),
  "DELETE {E}/plans/:name": send("DELETE", `${E}/plans/old`, {}),
  "POST {E}/receipts": (turn) => [
    {
      method: "POST",
      path: `${E}/receipts`,
      body: {
        kind: "purchase",
        ref: `r${turn}`,
        person,
        product: "book",
        amountMinor: 1,
        currency: "EUR",
        data: { text: "c".repeat(16_000) },
      },
    },
  ],
  "GET {E}/purchases": list("/purchases", `person=${person}`, "kind=refund", `person=${rowId("per", 7)}&kind=refund`, "ref=ref7"),
  "GET {E}/grants": list("/grants", "entitlement=access:beta"),
  "GET {E}/purchases/:id": get(`${E}/purchases/${rowId("prc", 1)}`),
  "GET {E}/purchases/:id/refund": get(`${E}/purchases/${rowId("prc", 1)}/refund`),
  "POST {E}/purchases/:id/refund": send("POST", `${E}/purchases/${rowId("prc", 1)}/refund`, {}),
  "POST {E}/purchases/:id/move": send("POST", `${E}/purchases/${rowId("prc", 1)}/move`, { person: rowId("per", 7) }),
  "GET {E}/subscriptions": list("/subscriptions", `person=${rowId("per", 7)}`, "status=active"),
  "POST {E}/subscriptions/:id/end": send("POST", `${E}/subscriptions/${rowId("sub", 1)}/end`, {}),
  "GET {E}/emails": list("/emails", `person=${rowId("per", 70)}`, "kind=account", "state=failed"),
  "GET {E}/emails/:id": get(`${E}/emails/${rowId("eml", 1)}`),
  "POST {E}/emails/:id/send-again": refused(409, "POST", `${E}/emails/${rowId("eml", 1)}/send-again`, {}),
  "POST {E}/mail/test": refused(400, "POST", `${E}/mail/test`, { to: "a".repeat(MB - 1000) }),
  "GET /mail/stop/:token": refused(404, "GET", `/mail/stop/${"1.".repeat(4_000)}`, undefined),
  "POST /mail/stop/:token": refused(404, "POST", `/mail/stop/${"1.per_".repeat(1_000)}`, undefined),
  "GET {E}/mail/stops": list("/mail/stops"),
  "GET {E}/persons/:id/mail-stop": get(`${E}/persons/${person}/mail-stop`),
  "PUT {E}/persons/:id/mail-stop": send("PUT", `${E}/persons/${person}/mail-stop`, { stopped: true }, { stopped: false }),
  "GET {E}/sender-domain": get(`${E}/sender-domain`),
  "PUT {E}/sender-domain": refused(400, "PUT", `${E}/sender-domain`, { domain: "a-".repeat(300_000) }),
  "POST {E}/sender-domain/verify": refused(404, "POST", `${E}/sender-domain/verify`, {}),
  "DELETE {E}/sender-domain": send("DELETE", `${E}/sender-domain`, {}),
  "POST /api/login": (turn) => [
    { method: "POST", path: "/api/login", body: { machine: `${"x".repeat(190)}${turn}`, account: "ä".repeat(200), days: 365 } },
  ],
  "POST /api/login/token": refused(400, "POST", "/api/login/token", { deviceCode: long.slice(0, 100) }, { deviceCode: "x".repeat(MB - 100) }),
  "POST /api/login/look": refused(404, "POST", "/api/login/look", { code: "BCDF-GHJK" }),
  "POST /api/login/approve": refused(404, "POST", "/api/login/approve", { code: "BCDF-GHJK", app: "shop", environment: "development" }),
  "POST /api/login/deny": refused(404, "POST", "/api/login/deny", { code: "BCDF-GHJK" }),
  "DELETE /api/key": refused(401, "DELETE", "/api/key", undefined),
  "GET /api/key": () => [{ path: "/api/key", status: 401 }],
  "POST {E}/mcp": send(
    "POST",
    `${E}/mcp`,
    { jsonrpc: "2.0", id: 1, method: "tools/list" },
    { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "read_event", arguments: { id: WIDE_EVENT } } },
    { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "validate_relay", arguments: { definition: manyProblems } } },
    { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "list_events", arguments: { limit: 200 } } },
  ),
  "GET {E}/settings": get(`${E}/settings`),
  "GET {E}/limits": get(`${E}/limits`),
  "PUT {E}/settings": send(
    "PUT",
    `${E}/settings`,
    { version: 1, held: true },
    { version: 2, held: false },
    no(400, { version: 3, mail: { smtp: { host: "a-".repeat(200_000) } } }),
    no(400, { version: 3, mail: { fromName: "é".repeat(400_000), replyTo: "a".repeat(100_000) } }),
  ),
  "GET {E}/keys": list("/keys"),
  "POST {E}/keys": refused(400, "POST", `${E}/keys`, {
    kind: "app",
    name: "x",
    origins: Array.from({ length: 20_000 }, (_, at) => `https://a${at}.example`),
  }),
  "DELETE {E}/keys/:id": refused(404, "DELETE", `${E}/keys/key_none`, {}),
  "GET {E}/audit": list("/audit", "actor=nobody", "action=ref_refused", "target=nothing", "kind=run", "kind=run&actor=nobody", "target=relay:wide"),
  "GET {E}/problems": list("/problems", "all=true"),
  "GET {E}/alerts": list("/alerts", "open=true"),
  "GET {E}/alert-channels": get(`${E}/alert-channels`),
  "POST {E}/alert-channels": refused(400, "POST", `${E}/alert-channels`, { kind: "webhook", fields: { url: `https://${"a".repeat(1_900)}` } }),
  "PUT {E}/alert-channels/:id": refused(404, "PUT", `${E}/alert-channels/chn_none`, { fields: { url: `https://${"a".repeat(1_900)}` } }),
  "POST {E}/alert-channels/:id/test": refused(404, "POST", `${E}/alert-channels/chn_none/test`, {}),
  "DELETE {E}/alert-channels/:id": refused(404, "DELETE", `${E}/alert-channels/chn_none`, undefined),
  "POST {E}/alerts/:id/resolve": refused(404, "POST", `${E}/alerts/${rowId("alt", 1)}/resolve`, {}),
  "GET /client/g.js": get("/client/g.js"),
  "POST /client/auth/code": send(
    "POST",
    "/client/auth/code",
    no(400, { email: `${"a.".repeat(300_000)}@example.com` }),
    no(503, { email: "p1@example.com" }),
  ),
  "POST /client/auth/session": send(
    "POST",
    "/client/auth/session",
    no(400, { email: "p1@example.com", code: "1".repeat(MB - 1000) }),
    no(401, { email: "p1@example.com", code: "123456" }),
  ),
  "DELETE /client/auth/session": refused(400, "DELETE", "/client/auth/session?x=1", undefined),
  "DELETE /client/auth/sessions": refused(400, "DELETE", "/client/auth/sessions?x=1", undefined),
  "GET /client/me": get("/client/me"),
  "GET /client/access/:entitlement": get("/client/access/access:e1"),
  "GET /client/credits": get("/client/credits"),
  "GET /client/collections/:name/records": () => [
    "/client/collections/notes/records?limit=200",
    "/client/collections/wide/records?limit=200",
    "/client/collections/watched/records?limit=200",
  ],
  "POST /client/collections/:name/records": send("POST", "/client/collections/watched/records", {
    data: wideText,
  }),
  "GET /client/collections/:name/records/:id": get(`/client/collections/wide/records/${wideRecord}`),
  "PUT /client/collections/:name/records/:id": send("PUT", `/client/collections/notes/records/${rowId("rec", 1_000_001)}`, { data: wideText }),
  "DELETE /client/collections/:name/records/:id": (turn) => [
    { method: "DELETE", path: `/client/collections/notes/records/${rowId("rec", 1_000_010 + turn)}` },
  ],
  "POST /client/payments/buy": refused(404, "POST", "/client/payments/buy", {
    product: "x".repeat(MB - 1000),
  }),
  "POST /client/subscriptions/checkout": refused(404, "POST", "/client/subscriptions/checkout", {
    plan: "x".repeat(MB - 1000),
  }),
  "GET /openapi.json": get("/openapi.json"),
  "GET /": get("/"),
  "POST /hooks/:appId/:name": () => [
    { method: "POST", path: "/hooks/shop/busy2", body: hostile(250_000).integers, status: 401 },
    { method: "POST", path: "/hooks/shop/busy2", body: `[${"[],".repeat(80_000)}1]`, status: 401 },
  ],
};

export interface WorstCall {
  /** Method and path of the route, and the number of the call. */
  name: string;
  /** Returns undefined once the call has used up its rows. */
  ask(turn: number): Ask | undefined;
}

/** Returns the name of a route in the table. */
export const nameRoute = (method: string, path: string): string => `${method} ${path.replace("/api/apps/:appId/:environment", "{E}")}`;

/** Lists each call of each route. A route that takes a body gets the hostile bodies too. */
export function listWorstCalls(): WorstCall[] {
  return Object.entries(WORST_CALLS).flatMap(([name, worst]) => {
    const route = ROUTES.find((one) => nameRoute(one.method, one.path) === name);
    const own = worst(0).map((_, at) => ({
      name: `${name}, call ${at + 1}`,
      ask: (turn: number) => refuseLong(plainAsk(worst(turn)[at]), route?.maxBytes ?? MB),
    }));
    const bodies = route?.body === undefined || route.body === null ? [] : Object.entries(hostile(route.maxBytes));
    const others = bodies.map(([kind, body]) => ({
      name: `${name}, hostile ${kind}`,
      ask: (turn: number) => {
        const last = plainAsk(worst(turn).at(-1));
        return last === undefined ? undefined : { ...last, body, status: 400 };
      },
    }));
    return [...own, ...others];
  });
}

/** Expects 413 for a body that is longer than its route allows. */
function refuseLong(asked: Ask | undefined, maxBytes: number): Ask | undefined {
  if (asked === undefined || Buffer.byteLength(writeBody(asked) ?? "") <= maxBytes) return asked;
  return { ...asked, status: 413 };
}

/** Returns the body as text, or null without one. */
export function writeBody({ body }: Ask): string | null {
  if (body === undefined) return null;
  return typeof body === "string" ? body : JSON.stringify(body);
}

function plainAsk(asked: Ask | string | undefined): Ask | undefined {
  return typeof asked === "string" ? { path: asked } : asked;
}
