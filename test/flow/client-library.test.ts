/** Tests the client library `g`: the file that the service serves, against a running service. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Client, ClientOptions, RelayError, SessionStorage } from "../../client/types.d.ts";
import { PROJECT_ROOT } from "../house/source-tree.ts";
import { type ApiServer, startApi } from "../kit/api-server.ts";
import { mailedCode, manage } from "../kit/app-visitor.ts";

interface Library {
  createClient(options: ClientOptions): Client;
  RelayError: typeof RelayError;
}

const folder = mkdtempSync(join(tmpdir(), "relay-library-"));
let library: Library;
let api: ApiServer;

beforeAll(async () => {
  api = await startApi({ mode: "local" });
  const served = await fetch(`${api.base}/client/g.js`);
  const file = join(folder, "g.mjs");
  await Bun.write(file, await served.text());
  library = (await import(file)) as Library;
  await manage(api, "POST", "/collections", {
    name: "notes",
    kind: "private",
    fields: { text: { type: "text" } },
  });
  await manage(api, "PUT", "/access", { items: [{ slug: "beta" }] });
  const link = { kind: "payment_link", url: "https://pay.example.com/book" };
  const relay = { kind: "relay", relay: "shop-sales" };
  const definition = {
    name: "shop-sales",
    trigger: { kind: "receiver", verify: { scheme: "hooks" }, map: { person_email: "email" } },
    actions: [{ type: "fulfil_product", product: "course" }],
  };
  await manage(api, "POST", "/relays", { definition });
  await manage(api, "PUT", "/products/book", { soldThrough: link, credits: 3 });
  await manage(api, "PUT", "/products/course", { soldThrough: relay });
  await manage(api, "PUT", "/products/poster", {});
  await manage(api, "PUT", "/plans/free", { default: true });
  await manage(api, "PUT", "/plans/pro", { soldThrough: { ...link, url: "https://pay.example.com/pro" } });
  await manage(api, "PUT", "/plans/team", { soldThrough: relay });
});
afterAll(async () => {
  await api[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

let count = 0;
const newClient = (options: Partial<ClientOptions> = {}): Client => library.createClient({ url: api.base, key: api.keys.app, ...options });

async function newPerson(options: Partial<ClientOptions> = {}) {
  const g = newClient(options);
  const email = `reader${++count}@example.com`;
  // Skips the limit on codes per address, because this test signs in many people.
  api.clock.jump(3_600_000);
  await g.auth.requestCode(email);
  const person = await g.auth.signIn(email, mailedCode(api, email));
  return { g, email, person };
}

async function errorOf(work: Promise<unknown>): Promise<RelayError> {
  const error = await work.then(
    () => null,
    (thrown: unknown) => thrown,
  );
  if (error instanceof library.RelayError) return error;
  throw new Error(`Not a RelayError: ${error}`);
}

describe("g.auth", () => {
  test("signs in with an emailed code, keeps the session, and signs out", async () => {
    const { g, email, person } = await newPerson();
    expect(person).toEqual({ id: expect.stringMatching(/^per_/), email, createdAt: expect.any(String) });
    expect(await g.auth.isSignedIn()).toBe(true);
    expect(await g.me()).toEqual({ person, plan: "free" });
    const token = await g.auth.token();
    expect((await manage(api, "POST", "/sessions/verify", { token })).person).toMatchObject({ id: person.id, email });
    await g.auth.signOut();
    expect([await g.auth.isSignedIn(), await g.auth.token(), await g.me()]).toEqual([false, null, null]);
    expect((await manage(api, "POST", "/sessions/verify", { token })).person).toBeNull();
    await g.auth.signOut();
  });

  test("rejects a wrong code and stays signed out", async () => {
    const g = newClient();
    await g.auth.requestCode("wrong@example.com");
    const wrong = String((Number(mailedCode(api, "wrong@example.com")) + 1) % 1e6).padStart(6, "0");
    const error = await errorOf(g.auth.signIn("wrong@example.com", wrong));
    expect([error.name, error.code, error.status]).toEqual(["RelayError", "code_invalid", 401]);
    expect(await g.auth.isSignedIn()).toBe(false);
  });

  const fail = (): never => {
    throw new Error("forbidden");
  };
  const missing: [what: string, read: () => unknown][] = [
    ["is missing, as in Node 20", () => undefined],
    ["has no functions, as in Node 25", () => ({})],
    ["is forbidden by the browser", fail],
  ];
  test.each(missing)("keeps the session in memory where localStorage %s", async (_what, read) => {
    Object.defineProperty(globalThis, "localStorage", { configurable: true, get: read });
    try {
      const g = newClient({ fetch: async () => Response.json({ token: "session", person: { id: "per_1" } }) });
      await g.auth.signIn("ada@example.com", "123456");
      expect([await g.auth.isSignedIn(), await newClient().auth.isSignedIn()]).toEqual([true, false]);
    } finally {
      Reflect.deleteProperty(globalThis, "localStorage");
    }
  });

  test("keeps the session in the given storage, also in an asynchronous one", async () => {
    const kept = new Map<string, string>();
    const storage: SessionStorage = {
      getItem: async (name) => kept.get(name) ?? null,
      setItem: async (name, value) => void kept.set(name, value),
      removeItem: async (name) => void kept.delete(name),
    };
    const { g, person } = await newPerson({ storage });
    expect([...kept.values()]).toEqual([expect.stringMatching(/^ps_/)]);
    expect((await newClient({ storage }).me())?.person).toEqual(person);
    await g.auth.signOut();
    expect(kept.size).toBe(0);
  });

  test("deletes a session that the service ended, and keeps one after any other error", async () => {
    const { g, person } = await newPerson();
    await errorOf(g.payments.buy("course"));
    expect(await g.auth.isSignedIn()).toBe(true);
    await manage(api, "PATCH", `/persons/${person.id}`, { status: "suspended" });
    expect((await errorOf(g.credits.balance())).code).toBe("signed_out");
    expect([await g.auth.isSignedIn(), await g.me()]).toEqual([false, null]);
  });

  test("signs out everywhere", async () => {
    const { g, email } = await newPerson();
    const other = newClient();
    await other.auth.requestCode(email);
    await other.auth.signIn(email, mailedCode(api, email));
    await g.auth.signOutEverywhere();
    expect([await g.me(), await other.me()]).toEqual([null, null]);
  });
});

test("g.records creates, reads, lists, changes and deletes the person's own records", async () => {
  const { g, person } = await newPerson();
  const notes = g.records<{ text: string }>("notes");
  const made = [];
  for (const text of ["one", "two", "three"]) made.push(await notes.create({ text }));
  const [one] = made;
  if (one === undefined) throw new Error("Nothing was made.");
  expect(one).toMatchObject({ collection: "notes", owner: person.id, data: { text: "one" } });
  const page = await notes.list({ limit: 2 });
  expect(page.items.map(({ data }) => data.text)).toEqual(["three", "two"]);
  const last = await notes.list({ cursor: page.next });
  expect([last.items.map(({ id }) => id), last.next]).toEqual([[one.id], null]);
  expect((await notes.update(one.id, { text: "uno" })).data).toEqual({ text: "uno" });
  expect((await notes.get(one.id)).data).toEqual({ text: "uno" });
  expect(await notes.delete(one.id)).toBeUndefined();
  expect((await errorOf(notes.get(one.id))).code).toBe("not_found");
  const broken = await errorOf(g.records("notes").create({ text: 5, more: true }));
  expect([broken.code, broken.status]).toEqual(["data_invalid", 400]);
  expect(broken.problems.map(({ field }) => field)).toEqual(["data.text", "data.more"]);
});

test("g.access and g.credits return what a receipt with a secret key granted", async () => {
  const { g, person } = await newPerson();
  expect(await g.access.check("book")).toEqual({ granted: false, until: null, grants: [] });
  expect(await g.credits.balance()).toBe(0);
  const receipt = { ref: "ch_1", person: person.id, product: "book", amountMinor: 990, currency: "EUR" };
  for (const created of [true, false]) expect((await manage(api, "POST", "/receipts", receipt)).created).toBe(created);
  const { granted, grants } = await g.access.check("book");
  expect([granted, grants.map(({ source }) => source)]).toEqual([true, ["purchase"]]);
  expect(await g.credits.balance()).toBe(3);
  await manage(api, "POST", "/receipts", {
    ref: "sub_1",
    person: person.id,
    plan: "pro",
    processorCustomerId: "cus_1",
  });
  expect((await g.me())?.plan).toBe("pro");
  await manage(api, "POST", "/receipts", { ...receipt, kind: "refund" });
  expect([(await g.access.check("book")).granted, await g.credits.balance()]).toEqual([false, 0]);
});

test("g.access reveals neither the source nor the reason of a grant", async () => {
  const { g, person } = await newPerson();
  const grant = { entitlement: "access:beta", reason: "a favour", expiresAt: "2030-01-01T00:00:00Z" };
  await api.call(`${api.E}/persons/${person.id}/grants`, { method: "POST", session: true, body: grant });
  expect(await g.access.check("access:beta")).toEqual({
    granted: true,
    until: "2030-01-01T00:00:00.000Z",
    grants: [{ source: "hand", grantedAt: expect.any(String), expiresAt: "2030-01-01T00:00:00.000Z" }],
  });
});

describe("buying", () => {
  const rows: [string, (g: Client) => Promise<{ url: string }>, string | number, string][] = [
    ["a product with a payment link returns the link", (g) => g.payments.buy("book"), "https://pay.example.com/book", ""],
    ["a product that a relay sells is 409", (g) => g.payments.buy("course"), 409, "product_not_sellable"],
    ["a product without a seller is 409", (g) => g.payments.buy("poster"), 409, "product_not_sellable"],
    ["an unknown product is 404", (g) => g.payments.buy("nothing"), 404, "not_found"],
    ["a plan with a payment link returns the link", (g) => g.subscriptions.checkout("pro"), "https://pay.example.com/pro", ""],
    ["a plan that a relay sells is 409", (g) => g.subscriptions.checkout("team"), 409, "plan_not_sellable"],
    ["a plan without a seller is 409", (g) => g.subscriptions.checkout("free"), 409, "plan_not_sellable"],
    ["an unknown plan is 404", (g) => g.subscriptions.checkout("book"), 404, "not_found"],
  ];
  test.each(rows)("%s", async (_, buy, expected, code) => {
    const { g } = await newPerson();
    if (typeof expected === "string") {
      expect(await buy(g)).toEqual({ url: expected });
      return;
    }
    const error = await errorOf(buy(g));
    expect([error.status, error.code]).toEqual([expected, code]);
    expect(error.message).toMatch(/^[A-Z].*\.$/);
  });

  test("answers 409 with the page where the relay's provider sells it", async () => {
    const { g } = await newPerson();
    const soldThrough = { kind: "relay", relay: "shop-sales", url: "https://buy.example.com/course" };
    await manage(api, "PUT", "/products/course", { soldThrough });
    await manage(api, "PUT", "/plans/team", { soldThrough });
    for (const buy of [g.payments.buy("course"), g.subscriptions.checkout("team")]) {
      const error = await errorOf(buy);
      expect([error.status, error.url]).toEqual([409, soldThrough.url]);
      expect(error.message).toBe(`This is bought at another address: go to ${soldThrough.url}.`);
    }
    expect((await errorOf(g.payments.buy("poster"))).url).toBeNull();
  });

  test("still answers 409 after its relay was deleted, because the product names the relay", async () => {
    const { g } = await newPerson();
    await manage(api, "DELETE", "/relays/shop-sales");
    expect((await errorOf(g.payments.buy("course"))).code).toBe("product_not_sellable");
    expect((await errorOf(g.subscriptions.checkout("team"))).code).toBe("plan_not_sellable");
  });

  test("requires a signed-in person", async () => {
    expect((await errorOf(newClient().payments.buy("book"))).code).toBe("signed_out");
  });
});

describe("a RelayError", () => {
  test("contains the end of a cap", async () => {
    const g = newClient();
    for (let n = 0; n < 5; n++) await g.auth.requestCode("often@example.com");
    const error = await errorOf(g.auth.requestCode("often@example.com"));
    expect([error.code, error.status]).toEqual(["code_capped", 429]);
    expect(error.resetAt?.getTime()).toBe(api.clock.now() + 3_600_000);
  });

  test("is thrown if no server answers, or another server does", async () => {
    const nowhere = await errorOf(newClient({ url: "http://127.0.0.1:1" }).auth.requestCode("a@example.com"));
    expect([nowhere.code, nowhere.status]).toEqual(["unreachable", 0]);
    using other = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch: () => new Response("<h1>Hi</h1>", { status: 502 }),
    });
    const answered = await errorOf(newClient({ url: other.url.href }).auth.requestCode("a@example.com"));
    expect([answered.code, answered.status]).toEqual(["bad_answer", 502]);
  });

  test("is thrown for an invalid key, and keeps the session", async () => {
    const { g } = await newPerson();
    const error = await errorOf(newClient({ key: api.keys.dev }).auth.requestCode("a@example.com"));
    expect([error.code, error.status]).toEqual(["forbidden", 403]);
    expect(await g.auth.isSignedIn()).toBe(true);
  });
});

describe("the library's file", () => {
  test("is served to pages of any origin as a module, and revalidated by its hash", async () => {
    const reply = await fetch(`${api.base}/client/g.js`, { headers: { origin: "https://page.example" } });
    expect(reply.status).toBe(200);
    expect(reply.headers.get("content-type")).toBe("text/javascript; charset=utf-8");
    expect(reply.headers.get("access-control-allow-origin")).toBe("*");
    expect(reply.headers.get("cross-origin-resource-policy")).toBe("cross-origin");
    expect(reply.headers.get("x-content-type-options")).toBe("nosniff");
    expect(await reply.text()).toBe(await Bun.file(join(PROJECT_ROOT, "client/g.js")).text());
    const etag = reply.headers.get("etag") ?? "";
    const again = await fetch(`${api.base}/client/g.js`, { headers: { "if-none-match": etag } });
    expect([again.status, await again.text()]).toEqual([304, ""]);
  });

  test("imports nothing, and declares its types", async () => {
    const scanned = new Bun.Transpiler({ loader: "js" }).scan(await Bun.file(join(PROJECT_ROOT, "client/g.js")).text());
    expect([scanned.imports, scanned.exports.sort()]).toEqual([[], ["RelayError", "createClient"]]);
    const check = Bun.spawnSync([process.execPath, "node_modules/typescript-compiler/bin/tsc", "-p", "client"], {
      cwd: PROJECT_ROOT,
    });
    expect(check.stdout.toString()).toBe("");
    expect(check.exitCode).toBe(0);
  });
});
