/**
 * Requests everything of one environment from another environment and another app: by id and name, in paths, filters and bodies. The table is the
 * list of routes, so it includes each new route. Foreign rows are 404 and never show.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { ROUTES } from "../../src/interfaces/api/route-list.ts";
import { mintApiKey } from "../../src/platform/account/api-key.ts";
import { createApp } from "../../src/platform/account/app.ts";
import { requireEnvironment } from "../../src/platform/account/environment.ts";
import { createOwner } from "../../src/platform/account/owner.ts";
import { createSession } from "../../src/platform/account/session.ts";
import { raiseAlert } from "../../src/platform/audit/alert.ts";
import { recordIntendedEmail } from "../../src/platform/mail/email.ts";
import { createPersonSession } from "../../src/shop/portal/person-session.ts";
import { readWhole } from "../kit/change-stream.ts";
import { COLUMNS } from "../kit/chosen-store.ts";
import { receiverDefinition, signedCall, writeOrder } from "../kit/relay-definition.ts";
import { APP, type RunningService, startRunningService } from "../kit/running-service.ts";

/** Occurs in every text that belongs to development. */
const MARK = "development-only";

let running: RunningService;
/** Maps each list's path to an id or name that development holds. */
const held: Record<string, string> = {};
let recordId = "";
let appKey = "";
let session = "";
/** Authenticates the request to revoke a key in the wrong environment, because only owners can revoke keys. */
let ownerToken = "";

interface Asker {
  /** Holds the path of the environment in which the request is made. */
  at: string;
  key: string;
}
const askers: Record<string, Asker> = {};

beforeAll(async () => {
  running = await startRunningService({ environments: ["development", "production"] });
  const rival = await running.service.store.write("app", async (tx) => {
    const nowMs = running.clock.now();
    const app = await createApp(tx, { id: "rival", name: "Rival", environments: ["development"], nowMs });
    const [environment] = app.environments;
    if (environment === undefined) throw new Error("no environment");
    return await mintApiKey(tx, { environment, kind: "secret", name: "test", nowMs });
  });
  askers["another environment"] = {
    at: `/api/apps/${APP}/production`,
    key: running.keys["production"] ?? "",
  };
  askers["another app"] = { at: "/api/apps/rival/development", key: rival.token };
  await fillDevelopment();
});

afterAll(async () => {
  await running[Symbol.asyncDispose]();
});

// biome-ignore lint/suspicious/noExplicitAny: a test reads answers by their fields
async function make(method: string, path: string, body?: unknown): Promise<any> {
  const answer = await running.api(method, path, body);
  if (answer.status >= 300) throw new Error(`${method} ${path}: ${JSON.stringify(answer.body)}`);
  return answer.body;
}

async function fillDevelopment(): Promise<void> {
  const { person } = await make("POST", "/persons", { email: `${MARK}@example.com` });
  held["/persons"] = person.id;
  await make("PATCH", `/persons/${person.id}`, { status: "active", attributes: { note: MARK } });
  await make("PUT", `/persons/${person.id}/tokens/${MARK}`);
  await make("PUT", `/access/${MARK}`, { title: MARK });
  held["/access"] = MARK;
  const granted = await make("POST", `/persons/${person.id}/grants`, {
    entitlement: `access:${MARK}`,
    reason: MARK,
  });
  held["/grants"] = granted.grant.id;
  await make("POST", `/persons/${person.id}/credits`, { amount: 5, reason: MARK, key: MARK });
  const fields = { order: { type: "text" }, amount: { type: "text" } };
  await make("POST", "/collections", { name: "orders", kind: "shared", fields });
  held["/collections"] = "orders";
  const { record } = await make("POST", "/collections/orders/records", { data: { order: MARK } });
  recordId = record.id;
  const uploaded = await fetch(`${running.service.url}/api/apps/${APP}/development/files?name=${MARK}.txt`, {
    method: "POST",
    headers: { authorization: `Bearer ${running.keys["development"]}`, "content-type": "text/plain" },
    body: MARK,
  });
  held["/files"] = ((await uploaded.json()) as { file: { id: string } }).file.id;
  await make("PUT", `/products/${MARK}`, { title: MARK });
  held["/products"] = MARK;
  await make("PUT", `/plans/${MARK}-plan`, { title: MARK });
  held["/plans"] = `${MARK}-plan`;
  const bought = await make("POST", "/receipts", { ref: MARK, person: person.id, product: MARK });
  held["/purchases"] = bought.purchase?.id ?? (await make("GET", "/purchases")).items[0].id;
  await make("POST", "/receipts", { ref: `${MARK}-2`, person: person.id, plan: `${MARK}-plan` });
  held["/subscriptions"] = (await make("GET", "/subscriptions")).items[0].id;
  await make("POST", "/relays", { definition: receiverDefinition({ name: MARK, actions: [writeOrder] }) });
  held["/relays"] = MARK;
  await make("PUT", `/relays/${MARK}/secret`, { value: "Qk7bXFQsq4OKAPhAIVqsHMpkNhzCwRnS" });
  await running.hook(MARK, signedCall({ id: MARK, type: MARK, amount: MARK }));
  await running.hook(MARK, signedCall({ id: "2" }, "anotherSecretOfTwentyFour1"));
  await running.drain();
  await running.clock.advance(2_000);
  held["/events"] = (await make("GET", "/events")).items[0].id;
  held["/calls"] = (await make("GET", "/calls")).items[0].id;
  const channel = { kind: "slack", name: MARK, fields: { url: "https://hooks.slack.com/services/T0/B0/x" } };
  held["/alert-channels"] = (await make("POST", "/alert-channels", channel)).channel.id;
  held["/captures"] = (await make("POST", "/captures")).capture.id;
  await running.service.store.write("app", async (tx) => {
    const nowMs = running.clock.now();
    const environment = await requireEnvironment(tx, APP, "development");
    const environmentId = environment.id;
    const mint = (kind: "secret" | "app") => mintApiKey(tx, { environment, kind, name: MARK, nowMs });
    held["/keys"] = (await mint("secret")).key.id;
    appKey = (await mint("app")).token;
    const owner = await createOwner(tx, { email: "ann@example.com", passwordHash: null, nowMs });
    ownerToken = (await createSession(tx, owner.id, nowMs)).token;
    const mail = { recipient: `${MARK}@example.com`, sender: "event@example.com", subject: MARK, text: MARK };
    const made = {
      environmentId,
      personId: person.id,
      relayName: MARK,
      eventId: held["/events"] ?? null,
      nowMs,
    };
    held["/emails"] = await recordIntendedEmail(tx, { ...mail, ...made, kind: "event" });
    await raiseAlert(tx, { environmentId, code: "relay_failed", target: MARK, message: MARK, nowMs });
    session = (await createPersonSession(tx, { environmentId, personId: person.id, nowMs })).token;
  });
  held["/alerts"] = (await make("GET", "/alerts")).items[0].id;
  held["/bulk-replays"] = (await make("POST", "/bulk-replays", { state: "dead", relay: MARK })).replay.id;
}

/** Holds valid bodies, so that each rejection comes from the id. */
const BODIES: Readonly<Record<string, () => unknown>> = {
  "POST /relays/:name/skipped/run": () => ({ at: ["2026-01-15T13:00:00.000Z"] }),
  "PATCH /persons/:id": () => ({ status: "suspended" }),
  "POST /persons/:id/grants": () => ({ entitlement: "access:mine" }),
  "POST /persons/:id/credits": () => ({ amount: 1, reason: "", key: "k" }),
  "PUT /persons/:id/tokens": () => ({ token: "mine" }),
  "PUT /persons/:id/customers": () => ({ space: "orders", id: "mine" }),
  "POST /persons/:id/customers/remove": () => ({ space: "orders", id: MARK }),
  "PUT /persons/:id/mail-stop": () => ({ stopped: true }),
  "POST /persons/:id/change-address": () => ({ email: "someone@example.com" }),
  "POST /purchases/:id/move": () => ({ person: "someone@example.com" }),
  "POST /persons/:id/merge": () => ({ into: "someone@example.com" }),
  "POST /persons/:id/tokens/remove": () => ({ token: MARK }),
  "PUT /collections/:name": () => ({ kind: "shared", fields: {} }),
  "POST /collections/:name/records": () => ({ data: { order: "mine" } }),
  "PUT /collections/:name/records/:id": () => ({ data: { order: "mine" } }),
  "PUT /relays/:name": () => ({ definition: receiverDefinition({ name: MARK }), version: 1 }),
  "POST /relays/:name/restore": () => ({ restores: 1, version: 1 }),
  "PUT /relays/:name/secret": () => ({ value: "aB3dEfGh1jKlMn0pQrStUvWx" }),
};

/** Lists the routes that create an item of that name in the caller's environment, because names are unique per environment. */
const MAKES_ITS_OWN = new Set(["PUT /products/:name", "PUT /plans/:name", "PUT /access/:slug"]);

const PREFIX = "/api/apps/:appId/:environment";
const routes = ROUTES.filter(({ who }) => who === "environment").map((route) => ({
  ...route,
  below: route.path.slice(PREFIX.length),
}));

/** Fills the path with development's ids. */
function fill(below: string): string {
  const list = below.replace(/\/:.*$/, "");
  const [, ...more] = below.slice(list.length).split("/");
  const filled = more.map((part) => {
    if (part === ":token" || part === ":entitlement") return part === ":token" ? MARK : `access:${MARK}`;
    if (!part.startsWith(":")) return part;
    return list === "/collections" && part === ":id" ? recordId : (held[list] ?? "");
  });
  return [list, ...filled].join("/");
}

/** Lists values for which GET /find returns a result in development. */
const found = (): string[] => [held["/events"] ?? "", recordId, held["/persons"] ?? "", `${MARK}@example.com`, MARK];

async function ask(asker: Asker, method: string, path: string, body?: unknown): Promise<{ status: number; text: string }> {
  const by =
    method === "DELETE" && path.startsWith("/keys/")
      ? { cookie: `__Host-relay_session=${ownerToken}`, origin: running.service.baseUrl }
      : { authorization: `Bearer ${asker.key}` };
  const answer = await fetch(`${running.service.url}${asker.at}${path}`, {
    method,
    headers: { ...by, "content-type": "application/json" },
    ...(method === "GET" ? {} : { body: JSON.stringify(body ?? {}) }),
  });
  return { status: answer.status, text: await readWhole(answer) };
}

/** Reads all rows of development from every table with environments. */
async function readDevelopment(): Promise<string> {
  const tables = await running.rows<{ name: string }>(
    `SELECT tableName AS name FROM ${COLUMNS} WHERE columnName = 'environment_id' AND tableName NOT IN ('api_key', 'node_lease')`,
  );
  const all = await Promise.all(
    tables.map(({ name }) =>
      running.rows(`SELECT * FROM "${name}" WHERE environment_id = (SELECT id FROM environment WHERE app_id = ?1 AND name = 'development')`, APP),
    ),
  );
  return all.map((rows, at) => `${tables[at]?.name}\n${rows.map((row) => Bun.inspect(row)).join("\n")}`).join("\n");
}

/** Maps routes to their required queries. */
const QUERIES: Readonly<Record<string, string>> = {
  "/find": `?q=${MARK}`,
  "/persons/access/:entitlement": `?email=${MARK}@example.com`,
  "/simulations/effect": `?person=${MARK}@example.com&events=`,
};

test("development finds each of these items, so that the other tests prove something", async () => {
  const own = { at: `/api/apps/${APP}/development`, key: running.keys["development"] ?? "" };
  for (const { method, below } of routes) {
    if (method !== "GET" || below === "/sender-domain") continue;
    expect(`${below} ${(await ask(own, "GET", `${fill(below)}${QUERIES[below] ?? ""}`)).status}`).toBe(`${below} 200`);
  }
  for (const name of found()) expect(JSON.parse((await ask(own, "GET", `/find?q=${encodeURIComponent(name)}`)).text).found).toHaveLength(1);
});

describe.each(["another environment", "another app"])("from %s", (who) => {
  test("no id or name in a path finds a row", async () => {
    const before = await readDevelopment();
    for (const { method, below } of routes) {
      const name = `${method} ${below}`;
      if (!below.includes(":") || MAKES_ITS_OWN.has(name)) continue;
      const asker = askers[who] as Asker;
      const { status, text } = await ask(asker, method, `${fill(below)}${QUERIES[below] ?? ""}`, BODIES[name]?.());
      // This route answers for every address, also for unknown people.
      if (below === "/persons/access/:entitlement") expect(JSON.parse(text)).toMatchObject({ granted: false, grants: [] });
      else expect(`${name} ${status} ${JSON.parse(text || "{}").code}`).toBe(`${name} 404 not_found`);
    }
    expect(await readDevelopment()).toBe(before);
  });

  test("no list contains development's rows, whatever the filter", async () => {
    const asker = askers[who] as Asker;
    const filters: Record<string, string> = {
      relay: MARK,
      person: held["/persons"] ?? "",
      target: `relay:${MARK}`,
      q: MARK,
      email: `${MARK}@example.com`,
      state: "done",
    };
    for (const { method, below, query } of routes) {
      if (method !== "GET" || below.includes(":")) continue;
      const names = Object.keys(query?.properties ?? {}).filter((name) => Object.hasOwn(filters, name));
      for (const search of ["", ...names.map((name) => `?${name}=${filters[name]}`)]) {
        const { status, text } = await ask(asker, "GET", `${below}${search}`);
        if (status === 404 && below === "/sender-domain") continue;
        // A rejection repeats the requested value.
        const told = status === 400 ? text.replace(JSON.stringify(JSON.stringify(MARK)).slice(1, -1), "") : text;
        expect(`${below}${search} ${status < 500} ${told.includes(MARK)}`).toBe(`${below}${search} true false`);
      }
    }
  });

  test("no lookup by id, address or token finds a person or record", async () => {
    const asker = askers[who] as Asker;
    for (const name of found()) {
      const { status, text } = await ask(asker, "GET", `/find?q=${encodeURIComponent(name)}`);
      expect({ name, status, found: JSON.parse(text).found }).toEqual({ name, status: 200, found: [] });
    }
  });

  test("creating an item with the same name leaves the first item unchanged", async () => {
    const asker = askers[who] as Asker;
    const before = await readDevelopment();
    for (const below of ["/products/:name", "/plans/:name", "/access/:slug"]) {
      expect((await ask(asker, "PUT", fill(below), { title: "mine" })).status).toBe(200);
      expect((await ask(asker, "DELETE", `${fill(below)}?force=true`)).status).not.toBe(500);
    }
    expect(await readDevelopment()).toBe(before);
  });

  test("no body accepts a foreign id", async () => {
    const asker = askers[who] as Asker;
    const before = await readDevelopment();
    const person = held["/persons"];
    const kinds = { shared: {}, private: { owner: person }, addressed: { to: person } };
    for (const [kind, addressed] of Object.entries(kinds)) {
      const fields = { order: { type: "text" }, file: { type: "file" } };
      expect((await ask(asker, "POST", "/collections", { name: kind, kind, fields })).status).toBe(201);
      const data = kind === "shared" ? { file: held["/files"] } : { order: "mine" };
      const made = await ask(asker, "POST", `/collections/${kind}/records`, { data, ...addressed });
      expect(`${kind} ${made.status >= 400 && made.status < 500}`).toBe(`${kind} true`);
      expect(made.text).not.toContain(MARK);
    }
    for (const body of [
      { ref: "r", person, product: MARK },
      { ref: "r", person, plan: `${MARK}-plan` },
      { ref: MARK, kind: "refund", person, product: MARK },
    ]) {
      const made = await ask(asker, "POST", "/receipts", body);
      expect(made.status).toBeGreaterThanOrEqual(400);
      expect(made.status).toBeLessThan(500);
    }
    const soldThrough = { kind: "relay", relay: MARK };
    expect(JSON.parse((await ask(asker, "PUT", "/products/lamp", { soldThrough })).text).code).toBe("relay_missing");
    expect(await readDevelopment()).toBe(before);
  });
});

test("a person's session of one environment identifies no person under another environment's app key", async () => {
  const minted = await running.service.store.write("app", async (tx) => {
    const environment = await requireEnvironment(tx, APP, "production");
    const nowMs = running.clock.now();
    const origins = ["https://shop.example"];
    return await mintApiKey(tx, { environment, kind: "app", name: "app", origins, nowMs });
  });
  const call = async (key: string): Promise<string> => {
    const headers = { "x-app-key": key, "x-person-session": session, origin: "https://shop.example" };
    const answer = await fetch(`${running.service.url}/client/me`, { headers });
    return `${answer.status} ${((await answer.json()) as { code?: string }).code}`;
  };
  expect(await call(appKey)).toBe("200 undefined");
  expect(await call(minted.token)).toBe("401 signed_out");
});

test("a cursor of one environment's list returns no rows of it in another", async () => {
  const own = { at: `/api/apps/${APP}/development`, key: running.keys["development"] ?? "" };
  for (const list of ["/keys", "/audit"]) {
    const { next } = JSON.parse((await ask(own, "GET", `${list}?limit=1`)).text);
    expect(next).toBeString();
    for (const asker of Object.values(askers)) {
      const { status, text } = await ask(asker, "GET", `${list}?limit=200&cursor=${encodeURIComponent(next)}`);
      expect(`${status < 500} ${text.includes(MARK)}`).toBe("true false");
    }
  }
});
