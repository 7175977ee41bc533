/** Tests live sync and promote over the API: an owner approves one exact plan, once, within 10 minutes. */
import { describe, expect, spyOn, test } from "bun:test";
import { DAY_MS, DEFAULT_LIMITS, HOUR_MS } from "../../src/base/limit.ts";
import { createOwner, removeOwner } from "../../src/platform/account/owner.ts";
import { type ApiServer, changesBetween, type Reply, startApi } from "../kit/api-server.ts";
import { breakRelay } from "../kit/relay-definition.ts";

const NOTES = { collections: { notes: { kind: "shared", fields: { text: { type: "text" } } } } };
const WRITES = [{ type: "write_record", collection: "notes", data: { text: "x" } }];
const GRANTS = [{ type: "grant_credits", amount: 10 }];
const receiver = (name: string, verify: object = { scheme: "hooks" }, actions: object[] = WRITES, more: object = {}) => ({
  name,
  trigger: { kind: "receiver", verify, map: { event_id: "id", person_id: "user" }, ...more },
  actions,
});
const TOKEN = { scheme: "shared_token" };
const TRUST = { trustUnsignedEvents: true };
const ED25519 = { scheme: "signature", header: "x-signature", algorithm: "ed25519", encoding: "hex", signedPayload: "{body}" };
const HMAC = { scheme: "signature", header: "x-signature", encoding: "hex", signedPayload: "{body}" };

const LIVE = "/api/apps/shop/production";
const DEV = "/api/apps/shop/development";

/** Replaces development's relays and catalog. */
async function setDevelopment(api: ApiServer, relays: unknown[], catalog: unknown = NOTES): Promise<void> {
  const planned = await api.call(`${DEV}/sync/plan`, { method: "POST", key: api.keys.dev, body: { relays, catalog } });
  const body = { relays, catalog, replaceEdited: true, plan: planned.json.plan };
  expect((await api.call(`${DEV}/sync/apply`, { method: "POST", key: api.keys.dev, body })).status).toBe(200);
}

const PROMOTE = { from: "development", to: "production" };
const post = (api: ApiServer, path: string, body: unknown, key: string | null = api.keys.dev) =>
  api.call(path, { method: "POST", ...(key === null ? { session: true } : { key }), body });
const planOf = async (api: ApiServer, wanted: object = PROMOTE): Promise<Reply> => await post(api, `${DEV}/sync/plan`, wanted);

/** Plans the change, requests an approval and returns it. */
async function ask(api: ApiServer, wanted: object = PROMOTE, key: string | null = api.keys.dev) {
  const { json } = await planOf(api, wanted);
  const reply = await post(api, `${DEV}/approvals`, { ...wanted, plan: json.plan }, key);
  expect(reply.status).toBe(201);
  return reply.json.approval as { id: string; plan: string; url: string; state: string; secondsLeft: number };
}

type Asked = Pick<Awaited<ReturnType<typeof ask>>, "id" | "plan">;
const decide = (api: ApiServer, { id, plan }: Asked, decision: string, key: string | null = null) =>
  post(api, `/api/approvals/${id}`, { decision, plan }, key);
const apply = (api: ApiServer, { id }: Asked, key: string | null = api.keys.dev) => post(api, `/api/approvals/${id}/apply`, {}, key);
const see = async (api: ApiServer, { id }: Asked, key: string | null = api.keys.dev) =>
  (await api.call(`/api/approvals/${id}`, key === null ? { session: true } : { key })).json.approval;
const relayOf = async (api: ApiServer, name: string, place = LIVE) => (await api.call(`${place}/relays/${name}`, { session: true })).json.relay;
const editLive = async (api: ApiServer, definition: { name: string }, place = LIVE) => {
  const { version } = await relayOf(api, definition.name, place);
  const saved = await api.call(`${place}/relays/${definition.name}`, { method: "PUT", session: true, body: { definition, version } });
  expect(saved.status).toBe(200);
};
const titleAccess = (api: ApiServer, title: string, place: string, slug = "beta") =>
  api.call(`${place}/access/${slug}`, { method: "PUT", session: true, body: { title } });
const titleProduct = async (api: ApiServer, title: string, place: string) => {
  const { json } = await api.call(`${place}/products/book`, { session: true });
  const body = { title, key: "book", credits: 0, version: (json.product ?? json).version };
  expect((await api.call(`${place}/products/book`, { method: "PUT", session: true, body })).status).toBe(200);
};
const namesOf = async (api: ApiServer) =>
  (await api.call(`${LIVE}/relays`, { session: true })).json.items.map(({ name }: { name: string }) => name).sort();

describe("a promote", () => {
  test("shows the changes of production, waits for an owner, applies them once, and shows the secrets once", async () => {
    await using api = await startApi();
    await setDevelopment(api, [receiver("one"), receiver("two")]);
    const planned = await planOf(api);
    expect(planned.json.entries.map(({ kind, name, state }: Record<string, string>) => `${state} ${kind}:${name}`)).toEqual([
      "created relay:one",
      "created relay:two",
      "created collection:notes",
    ]);
    const asked = await ask(api);
    expect(asked.url).toBe(`${api.base}/approvals/${asked.id}`);
    expect([asked.state, asked.secondsLeft]).toEqual(["pending", 600]);
    expect((await apply(api, asked)).json.code).toBe("approval_pending");
    expect(await namesOf(api)).toEqual([]);
    expect((await decide(api, asked, "approve")).json.approval.state).toBe("approved");
    const done = await apply(api, asked);
    expect([done.status, done.json.changes]).toEqual([200, 3]);
    expect(done.json.secrets.map((one: object) => Object.keys(one))).toEqual([
      ["relay", "receiverSecret"],
      ["relay", "receiverSecret"],
    ]);
    expect(done.json.notLive).toEqual(["one", "two"]);
    expect(await namesOf(api)).toEqual(["one", "two"]);
    expect((await apply(api, asked)).json.code).toBe("approval_used");
    const after = await see(api, asked);
    expect([after.state, after.decidedBy, after.shown]).toEqual(["done", "owner:ann@example.com", undefined]);
    // An owner rotates these secrets if the response that showed them was lost.
    expect(after.secretsOf).toEqual(["one", "two"]);
    const live = await relayOf(api, "one");
    expect([live.origin, live.secret.kind]).toEqual([{ kind: "file", at: expect.any(String), promotedFrom: "development" }, "minted"]);
    const [version] = (await api.call(`${LIVE}/relays/one/versions`, { session: true })).json.items;
    expect([version.origin, version.promotedFrom]).toEqual(["file", "development"]);
    expect(live.secret.fingerprint).not.toBe((await relayOf(api, "one", DEV)).secret.fingerprint);
    // A node of version 0.15.0 saves a file over the relay without the promoted origin.
    await api.store.write("app", (tx) => tx.run("UPDATE relay SET version = version + 1 WHERE id = ?1", live.id));
    expect((await relayOf(api, "one")).origin).toEqual({ kind: "file", at: expect.any(String) });
    await api.store.write("app", (tx) => tx.run("UPDATE relay SET version = version - 1 WHERE id = ?1", live.id));
    expect((await planOf(api)).json.changes).toBe(0);
    const { json } = await api.call(`${LIVE}/audit?kind=change`, { session: true });
    const rows = json.items.filter(({ action }: { action: string }) => action.startsWith("approval."));
    expect(rows.map(({ action, actor }: Record<string, string>) => [action, actor?.replace(/key_.*/, "key")]).reverse()).toEqual([
      ["approval.asked", "key:key"],
      ["approval.approved", "owner:ann@example.com"],
      ["approval.used", "key:key"],
    ]);
    expect(rows.at(-1).after).toMatchObject({ askedFrom: "127.0.0.1", source: "development", changes: 3 });
    expect(rows.at(-1).after.askedWith).toStartWith("test (relay_dev_…");
    const edit = { definition: live.definition, version: live.version };
    const edited = (await api.call(`${LIVE}/relays/one`, { method: "PUT", body: edit, session: true })).json.relay;
    expect(edited.origin).toEqual({ kind: "dashboard", at: expect.any(String) });
  });

  test("shows the commit of the files to the owner, and keeps it in the history of the relay", async () => {
    await using api = await startApi();
    const commit = "0123456789abcdef0123456789abcdef01234567-dirty";
    const wanted = { relays: [receiver("one")], catalog: NOTES, to: "production", base: [], commit };
    const asked = await ask(api, wanted);
    expect((await see(api, asked, null)).sourceCommit).toBe(commit);
    expect((await decide(api, asked, "approve")).status).toBe(200);
    expect((await apply(api, asked)).status).toBe(200);
    expect((await see(api, asked, null)).sourceCommit).toBe(commit);
    const [version] = (await api.call(`${LIVE}/relays/one/versions`, { session: true })).json.items;
    expect([version.actorName, version.commit]).toEqual(["test", commit]);
    const promoted = await ask(api, { ...PROMOTE, replaceEdited: true }).catch(() => null);
    expect(promoted).toBeNull();
  });

  test("does not show a key the approvals of others, and counts them", async () => {
    await using api = await startApi();
    await ask(api, { relays: [receiver("one")], to: "production" });
    const list = async (key: string) => (await api.call(`${LIVE}/approvals`, { key })).json;
    expect(await list(api.keys.live)).toEqual({ approvals: [], others: 1 });
    const own = (await api.call(`${DEV}/approvals`, { key: api.keys.dev })).json;
    expect(own).toMatchObject({ approvals: [{ sourceCommit: null }], others: 0 });
  });

  test("reads the checklists of the first 5 relays of the plan", async () => {
    await using api = await startApi();
    await setDevelopment(
      api,
      ["one", "two", "three", "four", "five", "six"].map((name) => receiver(name)),
    );
    const asked = await ask(api);
    await decide(api, asked, "approve");
    const { json } = await apply(api, asked);
    expect([json.secrets.length, json.notLive.length]).toEqual([6, 5]);
  });

  test("answers the new secrets if the checklists cannot be read", async () => {
    await using api = await startApi();
    await setDevelopment(api, [receiver("one")]);
    const asked = await ask(api);
    await decide(api, asked, "approve");
    await api.store.write("app", (tx) => tx.run("ALTER TABLE recent_request RENAME TO unreadable"));
    const done = await apply(api, asked);
    await api.store.write("app", (tx) => tx.run("ALTER TABLE unreadable RENAME TO recent_request"));
    expect([done.status, done.json.secrets.length, done.json.notLive]).toEqual([200, 1, []]);
    expect(api.logged.join("\n")).toContain("The checklists of the applied relays were not read.");
    expect((await see(api, asked)).state).toBe("done");
  });

  test("names relays that break the unsigned-event rule as not carried, and applies the others", async () => {
    await using api = await startApi();
    await setDevelopment(api, [receiver("good"), receiver("broken", TOKEN, GRANTS, TRUST)]);
    await breakRelay(api.store, "broken", ({ trigger }) => delete trigger.trustUnsignedEvents);
    const { json } = await planOf(api);
    const broken = json.entries.find(({ name }: { name: string }) => name === "broken");
    expect([broken.state, broken.refusal.code]).toEqual(["not_carried", "invalid_definition"]);
    expect(broken.refusal.message).toContain("trustUnsignedEvents");
    const asked = await ask(api);
    await decide(api, asked, "approve");
    expect((await apply(api, asked)).json.changes).toBe(2);
    expect(await namesOf(api)).toEqual(["good"]);
  });

  test("excludes the products of a broken relay with it, and applies the others", async () => {
    await using api = await startApi();
    const sells = receiver("broken", TOKEN, [{ type: "fulfil_product", product: "book" }], TRUST);
    const products = { book: { soldThrough: { kind: "relay", relay: "broken" } }, pen: {} };
    await setDevelopment(api, [receiver("good"), sells], { ...NOTES, products });
    await breakRelay(api.store, "broken", ({ trigger }) => delete trigger.trustUnsignedEvents);
    const { json } = await planOf(api);
    const book = json.entries.find(({ name }: { name: string }) => name === "book");
    expect([book.state, book.refusal.message.includes("sold by the relay broken")]).toEqual(["not_carried", true]);
    const asked = await ask(api);
    await decide(api, asked, "approve");
    expect((await apply(api, asked)).json.changes).toBe(3);
    expect((await api.call(`${LIVE}/products`, { session: true })).json.items.map(({ name }: { name: string }) => name)).toEqual(["pen"]);
  });

  test("promotes an opt-in with its warning each time, and says what a captured request could buy and whether that grew", async () => {
    await using api = await startApi();
    await setDevelopment(api, [receiver("token", TOKEN, GRANTS, TRUST)]);
    const promote = async () => {
      const { json } = await planOf(api);
      const [entry] = json.entries;
      const asked = await ask(api);
      await decide(api, asked, "approve");
      expect((await apply(api, asked)).status).toBe(200);
      return [entry.warnings.map(({ code }: { code: string }) => code), entry.capturedCall];
    };
    const buys = "run grant_credits with forged values";
    expect(await promote()).toEqual([["unsigned_events"], { before: null, after: buys, widens: true }]);
    await setDevelopment(api, [receiver("token", TOKEN, [...GRANTS, ...WRITES], TRUST)]);
    expect(await promote()).toEqual([["unsigned_events"], { before: buys, after: buys, widens: false }]);
    await setDevelopment(api, [receiver("token", TOKEN, [{ type: "grant_credits", amount: 20 }], TRUST)]);
    expect(await promote()).toEqual([["unsigned_events"], { before: buys, after: buys, widens: true }]);
    await setDevelopment(api, [receiver("token", { scheme: "hooks" }, GRANTS)]);
    expect((await promote())[1] as object | null).toEqual({ before: buys, after: null, widens: false });
  });

  for (const [was, is, words] of [
    [HMAC, ED25519, "was deleted"],
    [ED25519, HMAC, "new secret was created"],
  ] as const) {
    test(`clears the stored value if the recipe changes from ${"algorithm" in was ? "a public key to HMAC" : "HMAC to a public key"}`, async () => {
      await using api = await startApi();
      await setDevelopment(api, [receiver("kind", was)]);
      let asked = await ask(api);
      await decide(api, asked, "approve");
      await apply(api, asked);
      if (was === ED25519) {
        const value = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";
        expect((await api.call(`${LIVE}/relays/kind/secret`, { method: "PUT", session: true, body: { value } })).status).toBe(200);
      }
      expect((await relayOf(api, "kind")).secret.kind).toBe(was === HMAC ? "minted" : "public_key");
      await setDevelopment(api, [receiver("kind", is)]);
      asked = await ask(api);
      const shown = (await see(api, asked, null)).shown;
      expect(shown.entries[0].warnings.map(({ message }: { message: string }) => message).join()).toContain(words);
      await decide(api, asked, "approve");
      await apply(api, asked);
      expect((await relayOf(api, "kind")).secret.kind).toBe(is === HMAC ? "minted" : "none");
    });
  }

  test("keeps items that exist only in production, and production's edits unless asked to replace them", async () => {
    await using api = await startApi();
    await setDevelopment(api, [receiver("one")]);
    await api.call(`${LIVE}/collections`, { method: "POST", session: true, body: { name: "notes", ...NOTES.collections.notes } });
    await api.call(`${LIVE}/relays`, { method: "POST", session: true, body: { definition: receiver("only") } });
    await api.call(`${LIVE}/relays`, { method: "POST", session: true, body: { definition: receiver("one", HMAC) } });
    const { json } = await planOf(api);
    expect(json.entries.map(({ state, name }: Record<string, string>) => `${state} ${name}`)).toEqual([
      "edited one",
      "only_there only",
      "unchanged notes",
    ]);
    expect((await post(api, `${DEV}/approvals`, { ...PROMOTE, plan: json.plan })).json.code).toBe("invalid_input");
    const asked = await ask(api, { ...PROMOTE, replaceEdited: true });
    await decide(api, asked, "approve");
    expect((await apply(api, asked)).json.changes).toBe(1);
    expect((await relayOf(api, "one")).definition).toEqual(receiver("one"));
    expect(await namesOf(api)).toEqual(["one", "only"]);
  });
});

test("a live sync applies only the files that were sent", async () => {
  await using api = await startApi();
  await setDevelopment(api, [receiver("development")]);
  const wanted = { relays: [receiver("file")], catalog: NOTES, to: "production" };
  const asked = await ask(api, wanted);
  const { shown, source } = await see(api, asked, null);
  expect([source, shown.secretsOf]).toEqual(["files", ["file"]]);
  expect(shown.entries[0]).toMatchObject({ kind: "relay", name: "file", state: "created", before: null, after: receiver("file") });
  await decide(api, asked, "approve");
  expect((await apply(api, asked)).status).toBe(200);
  expect(await namesOf(api)).toEqual(["file"]);
});

test("a pending approval needs attention in production and in the overview, until an owner decides or it expires", async () => {
  await using api = await startApi();
  const needs = async (environment: string): Promise<string[][]> => {
    const { json } = await api.call(`/api/apps/shop/${environment}/overview`, { session: true });
    return json.needs
      .filter(({ target }: { target: string }) => target !== "server")
      .map(({ code, target, message }: Record<string, string>) => [code, target, message]);
  };
  const counted = async (): Promise<number> => {
    const { json } = await api.call("/api/overview", { session: true });
    return json.places.find(({ app, environment }: Record<string, string>) => app === "shop" && environment === "production").needs;
  };
  await setDevelopment(api, [receiver("one")]);
  expect([await needs("production"), await counted()]).toEqual([[], 0]);
  const asked = await ask(api);
  expect(await needs("production")).toEqual([
    ["approval_waiting", `approval:${asked.id}`, expect.stringContaining("A change of production waits for an owner's approval, asked for with ")],
  ]);
  expect([await counted(), await needs("development")]).toEqual([1, []]);
  await decide(api, asked, "approve");
  expect([await needs("production"), await counted()]).toEqual([[], 0]);
  expect((await apply(api, asked)).status).toBe(200);
  await setDevelopment(api, [receiver("two")]);
  await ask(api);
  expect(await counted()).toBe(1);
  await api.clock.leap(600_000);
  expect(await counted()).toBe(0);
});

describe("an owner's view of an approval", () => {
  const warningsOf = async (api: ApiServer, target: string): Promise<[string, string][]> => {
    const { shown } = await see(api, await ask(api), null);
    const entry = shown.entries.find(({ kind, name }: Record<string, string>) => `${kind}:${name}` === target);
    return entry.warnings.map(({ code, message }: Record<string, string>) => [code, message]);
  };
  const SELLS = (url: string, title = "Book") => ({ title, soldThrough: { kind: "payment_link", url } });

  test("warns of a payment link that production lacks, and not of one that it has", async () => {
    await using api = await startApi();
    const testLink = "https://pay.example.com/test_1";
    const plans = { free: { default: true }, pro: SELLS(testLink, "Pro") };
    await setDevelopment(api, [receiver("one")], { ...NOTES, products: { book: SELLS(testLink) }, plans });
    for (const target of ["product:book", "plan:pro"]) {
      const [[code, message] = ["", ""]] = await warningsOf(api, target);
      expect(code).toBe("payment_link_goes_live");
      expect(message).toContain(`\`soldThrough.url\` is ${testLink}, which production does not have yet`);
    }
    const asked = await ask(api);
    await decide(api, asked, "approve");
    expect((await apply(api, asked)).status).toBe(200);
    await setDevelopment(api, [receiver("one")], { ...NOTES, products: { book: SELLS(testLink, "The book") } });
    expect(await warningsOf(api, "product:book")).toEqual([]);
    const other = "https://pay.example.com/2";
    await setDevelopment(api, [receiver("one")], { ...NOTES, products: { book: SELLS(other) } });
    expect((await warningsOf(api, "product:book"))[0]?.[1]).toContain(other);
    const throughRelay = { soldThrough: { kind: "relay", relay: "one", url: "https://buy.example.com/test_2" } };
    await setDevelopment(api, [receiver("one")], { ...NOTES, products: { book: throughRelay } });
    expect((await warningsOf(api, "product:book"))[0]?.[1]).toContain("https://buy.example.com/test_2");
  });

  test("warns of what a captured request could buy when only the product that its relay sells changes", async () => {
    await using api = await startApi();
    const sells = (verify: object, trust: object) => receiver("sells", verify, [{ type: "fulfil_product", product: "book" }], trust);
    const book = (credits: number) => ({ products: { book: { credits, soldThrough: { kind: "relay", relay: "sells" } } } });
    const promote = async () => {
      const asked = await ask(api);
      await decide(api, asked, "approve");
      expect((await apply(api, asked)).status).toBe(200);
    };
    await setDevelopment(api, [sells(TOKEN, TRUST)], book(5));
    await promote();
    await setDevelopment(api, [sells(TOKEN, TRUST)], book(5_000));
    const [[code, message] = ["", ""]] = await warningsOf(api, "product:book");
    expect(code).toBe("unsigned_events");
    expect(message).toContain("`soldThrough.relay` is sells, which acts on events that its sender does not sign");
    await setDevelopment(api, [sells({ scheme: "hooks" }, {})], book(5_000));
    expect(await warningsOf(api, "product:book")).toEqual([]);
  });

  test("warns of a plan that becomes the default instead of a plan that exists only in production", async () => {
    await using api = await startApi();
    expect((await api.call(`${LIVE}/plans/basic`, { method: "PUT", session: true, body: { title: "Basic" } })).status).toBe(200);
    await setDevelopment(api, [], { plans: { free: { default: true } } });
    const [[code, message] = ["", ""]] = await warningsOf(api, "plan:free");
    expect(code).toBe("default_plan_moves");
    expect(message).toContain("free takes the place of basic");
  });

  test("warns of a removed field with values in production's records, with their count, and not of an unused field", async () => {
    await using api = await startApi();
    const catalog = (...fields: string[]) => ({
      collections: { notes: { kind: "shared", fields: Object.fromEntries(fields.map((name) => [name, { type: "text" }])) } },
    });
    await setDevelopment(api, [], catalog("text", "color", "size"));
    const asked = await ask(api);
    await decide(api, asked, "approve");
    expect((await apply(api, asked)).status).toBe(200);
    const write = (data: object) => api.call(`${LIVE}/collections/notes/records`, { method: "POST", session: true, body: { data } });
    for (const data of [{ text: "a", color: "red" }, { text: "b", color: "blue" }, { text: "c" }]) expect((await write(data)).status).toBe(201);
    await setDevelopment(api, [], catalog("text"));
    const told = await warningsOf(api, "collection:notes");
    expect(told).toEqual([
      ["field_holds_values", expect.stringMatching(/^`fields\.color` goes from notes, and 2 records hold a value there: they keep it, /)],
    ]);
    const again = await ask(api);
    await decide(api, again, "approve");
    expect((await apply(api, again)).status).toBe(200);
    const [first] = (await api.call(`${LIVE}/collections/notes/records`, { session: true })).json.items.toReversed();
    expect(first.data).toEqual({ text: "a", color: "red" });
  });

  test("names the fix for a relay that development recreated with another kind", async () => {
    await using api = await startApi();
    await setDevelopment(api, [receiver("one")]);
    const asked = await ask(api);
    await decide(api, asked, "approve");
    await apply(api, asked);
    expect((await api.call(`${DEV}/relays/one`, { method: "DELETE", session: true })).status).toBe(204);
    const ticks = { name: "one", trigger: { kind: "schedule", every: "1h" }, actions: WRITES };
    await setDevelopment(api, [ticks as never]);
    const refused = (await planOf(api)).json.entries[0].refusal;
    expect([refused.code, refused.message.includes("delete it in production's dashboard")]).toEqual(["trigger_kind_fixed", true]);
    expect((await api.call(`${LIVE}/relays/one`, { method: "DELETE", session: true })).status).toBe(204);
    expect((await planOf(api)).json.entries[0].refusal).toBeNull();
  });
});

test("a request for a plan that production rejects fails and names the item", async () => {
  await using api = await startApi();
  expect((await api.call(`${LIVE}/plans/book`, { method: "PUT", session: true, body: { default: true } })).status).toBe(200);
  await setDevelopment(api, [receiver("one")], { ...NOTES, products: { book: {} } });
  const { json } = await planOf(api);
  const refused = await post(api, `${DEV}/approvals`, { ...PROMOTE, plan: json.plan });
  expect([refused.status, refused.json.code]).toEqual([409, "name_taken"]);
  expect(refused.json.message).toStartWith("product book: `name` is taken by a plan");
});

test("a first promote can have up to 300 changes, more than the limit per minute of unattended syncs", async () => {
  await using api = await startApi({ limits: { ...DEFAULT_LIMITS, relaysPerEnvironment: 60 } });
  const relays = Array.from({ length: 50 }, (_, at) => receiver(`relay${at}`));
  const products = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, at) => [`book${at}`, {}]));
  const wanted = { relays, catalog: { ...NOTES, products: products(40) }, to: "production" };
  const asked = await ask(api, wanted);
  await decide(api, asked, "approve");
  const done = await apply(api, asked);
  expect([done.status, done.json.changes]).toEqual([200, 91]);
  const large = await planOf(api, { ...wanted, catalog: { ...NOTES, products: products(350) } });
  expect(large.json.refusal).toMatchObject({ code: "sync_capped", message: expect.stringContaining("one approval carries 300") });
});

describe("an approval is void when", () => {
  const moves: readonly (readonly [string, (api: ApiServer) => Promise<unknown>])[] = [
    ["development was edited", (api) => editLive(api, receiver("one", HMAC), DEV)],
    [
      "development was edited and reverted",
      async (api) => {
        await editLive(api, receiver("one", HMAC), DEV);
        await editLive(api, receiver("one"), DEV);
      },
    ],
    ["production was edited", (api) => editLive(api, receiver("base", HMAC))],
    [
      "production was edited and reverted",
      async (api) => {
        await editLive(api, receiver("base", HMAC));
        await editLive(api, receiver("base"));
      },
    ],
    [
      "an item of development's catalog was edited and reverted",
      async (api) => {
        await titleAccess(api, "Other", DEV);
        await titleProduct(api, "Other", DEV);
        await titleProduct(api, "Book", DEV);
        await titleAccess(api, "beta", DEV);
      },
    ],
    ["an item that exists only in production was edited", (api) => titleAccess(api, "Other", LIVE, "only")],
    [
      "an item of production's catalog was edited and reverted",
      async (api) => {
        await titleProduct(api, "Other", LIVE);
        await titleProduct(api, "Book", LIVE);
      },
    ],
    ["an item of production's catalog was edited", (api) => titleAccess(api, "Other", LIVE)],
  ];
  for (const [moved, move] of moves) {
    for (const when of ["before the owner said yes", "between yes and the use"] as const) {
      test(`${moved}, ${when}`, async () => {
        await using api = await startApi();
        const catalog = { ...NOTES, access: { beta: {} }, products: { book: { title: "Book" } } };
        await titleAccess(api, "Only", LIVE, "only");
        await setDevelopment(api, [receiver("base")], catalog);
        const first = await ask(api);
        await decide(api, first, "approve");
        expect((await apply(api, first)).status).toBe(200);
        await setDevelopment(api, [receiver("base"), receiver("one")], catalog);
        const asked = await ask(api);
        if (when === "before the owner said yes") {
          await move(api);
          const said = await decide(api, asked, "approve");
          expect([said.status, said.json.code]).toEqual([409, "approval_void"]);
          expect((await apply(api, asked)).json.code).toBe("approval_void");
        } else {
          await decide(api, asked, "approve");
          await move(api);
          const used = await apply(api, asked);
          expect([used.status, used.json.code]).toEqual([409, "version_conflict"]);
          expect((await apply(api, asked)).json.code).toBe("approval_void");
        }
        expect((await see(api, asked)).state).toBe("void");
        expect(await namesOf(api)).toEqual(["base"]);
      });
    }
  }

  test("development changes while its requester waits, without a decision", async () => {
    await using api = await startApi();
    await setDevelopment(api, [receiver("one")]);
    const asked = await ask(api);
    expect((await see(api, asked)).state).toBe("pending");
    await editLive(api, receiver("one", HMAC), DEV);
    await api.clock.advance(6_000);
    expect((await see(api, asked)).state).toBe("void");
  });
});

describe("an approval is rejected", () => {
  const cases: readonly (readonly [string, (api: ApiServer, asked: Asked) => Promise<Reply>, number, string])[] = [
    [
      "twice",
      async (api, asked) => ((await decide(api, asked, "approve")).status === 200 ? decide(api, asked, "approve") : Promise.reject()),
      409,
      "approval_used",
    ],
    [
      "after it was refused",
      async (api, asked) => ((await decide(api, asked, "refuse")).status === 200 ? decide(api, asked, "approve") : Promise.reject()),
      409,
      "approval_denied",
    ],
    [
      "after it was withdrawn",
      async (api, asked) => ((await decide(api, asked, "withdraw", api.keys.dev)).status === 200 ? decide(api, asked, "approve") : Promise.reject()),
      409,
      "approval_void",
    ],
    ["after 10 minutes", (api, asked) => api.clock.leap(600_000).then(() => decide(api, asked, "approve")), 409, "approval_expired"],
    ["under another plan's name", (api, { id }) => decide(api, { id, plan: "pln_other" }, "approve"), 409, "version_conflict"],
    ["by the key that asked", (api, asked) => decide(api, asked, "approve", api.keys.dev), 403, "forbidden"],
    ["by a key of production", (api, asked) => decide(api, asked, "approve", api.keys.live), 404, "not_found"],
    ["by a key of another app", (api, asked) => decide(api, asked, "approve", api.keys.other), 404, "not_found"],
    ["by an app key", (api, asked) => decide(api, asked, "approve", api.keys.app), 403, "forbidden"],
    [
      "by nobody",
      (api, { id, plan }) => api.call(`/api/approvals/${id}`, { method: "POST", body: { decision: "approve", plan } }),
      401,
      "unauthenticated",
    ],
    [
      "from another page's origin",
      (api, { id, plan }) =>
        api.call(`/api/approvals/${id}`, {
          method: "POST",
          session: true,
          headers: { origin: "https://evil.example" },
          body: { decision: "approve", plan },
        }),
      403,
      "wrong_origin",
    ],
    ["that does not exist", (api, { plan }) => decide(api, { id: "apr_00000000000000000000000000000000", plan }, "approve"), 404, "not_found"],
  ];
  for (const [how, attempt, status, code] of cases) {
    test(how, async () => {
      await using api = await startApi();
      await setDevelopment(api, [receiver("one")]);
      const asked = await ask(api);
      const reply = await attempt(api, asked);
      expect([reply.status, reply.json.code]).toEqual([status, code]);
      expect(reply.json.message).toMatch(/^[A-Z`a-z].*[.:].*\.$/s);
      expect(await namesOf(api)).toEqual([]);
    });
  }

  test("with an unexpected field in the request to apply it: the response names the field", async () => {
    await using api = await startApi();
    await setDevelopment(api, [receiver("one")]);
    const asked = await ask(api);
    await decide(api, asked, "approve");
    const { json } = await post(api, `/api/approvals/${asked.id}/apply`, { plan: asked.plan });
    expect([json.code, json.message]).toEqual(["invalid_input", "`plan` is not a known field: remove it; the only field here is key."]);
    expect(await namesOf(api)).toEqual([]);
  });

  test("after the owner who approved it was removed: it is void", async () => {
    await using api = await startApi();
    await setDevelopment(api, [receiver("one")]);
    const asked = await ask(api);
    await decide(api, asked, "approve");
    await api.store.write("app", async (tx) => {
      await createOwner(tx, { email: "bea@example.com", passwordHash: null, nowMs: api.clock.now() });
      await removeOwner(tx, api.ownerId);
    });
    const { status, json } = await apply(api, asked);
    expect([status, json.code, json.message]).toEqual([
      409,
      "approval_void",
      expect.stringContaining("ann@example.com approved this, but is no longer an owner"),
    ]);
    expect((await see(api, asked)).state).toBe("void");
    expect(await api.store.read((tx) => tx.all("SELECT 1 FROM relay WHERE environment_id = ?1", api.environments.production.id))).toEqual([]);
  });

  test("for a caller who cannot see it, because a key sees only its own requests", async () => {
    await using api = await startApi();
    await setDevelopment(api, [receiver("one")]);
    const { id } = await ask(api);
    expect((await api.call(`/api/approvals/${id}`, { key: api.keys.live })).status).toBe(404);
    expect((await api.call(`/api/approvals/${id}/apply`, { method: "POST", key: api.keys.live, body: {} })).status).toBe(404);
    expect((await api.call(`/api/approvals/${id}/apply`, { method: "POST", session: true, body: {} })).status).toBe(403);
  });
});

describe("the time limit of an approval", () => {
  test("also applies to an approved request: 10 minutes", async () => {
    await using api = await startApi();
    await setDevelopment(api, [receiver("one")]);
    const asked = await ask(api);
    await decide(api, asked, "approve");
    await api.clock.leap(600_000);
    const { json } = await apply(api, asked);
    expect([json.code, json.message]).toEqual(["approval_expired", expect.stringContaining("An owner approved this, but the plan was not applied")]);
    expect((await see(api, asked)).state).toBe("expired");
    expect(await namesOf(api)).toEqual([]);
  });

  test("applies if the approval expires between the first check and the transaction", async () => {
    await using api = await startApi();
    await setDevelopment(api, [receiver("one")]);
    const asked = await ask(api);
    await decide(api, asked, "approve");
    await api.clock.leap(599_999);
    expect((await see(api, asked)).secondsLeft).toBe(1);
    const write = api.store.write.bind(api.store);
    const spy = spyOn(api.store, "write").mockImplementationOnce((origin, work) => {
      api.clock.jump(1);
      return write(origin, work);
    });
    expect((await apply(api, asked)).json.code).toBe("approval_expired");
    expect(spy).toHaveBeenCalled();
    spy.mockRestore();
    expect(await see(api, asked)).toMatchObject({ state: "expired", why: null });
    expect(await namesOf(api)).toEqual([]);
  });

  test("cannot be extended by setting the clock back", async () => {
    await using api = await startApi();
    await setDevelopment(api, [receiver("one")]);
    const asked = await ask(api);
    await decide(api, asked, "approve");
    await api.clock.leap(300_000);
    api.clock.jump(-240_000);
    expect((await see(api, asked)).secondsLeft).toBe(300);
    await api.clock.leap(300_000);
    expect((await apply(api, asked)).json.code).toBe("approval_expired");
  });
});

test("maintenance expires approvals permanently, and deletes them after a week", async () => {
  await using api = await startApi();
  await setDevelopment(api, [receiver("one")]);
  const asked = await ask(api);
  await decide(api, asked, "approve");
  const row = () => api.store.read((tx) => tx.get<{ state: string; files: string | null }>("SELECT state, files FROM approval"));
  const pass = async (ms: number) => {
    // The maintenance jobs pause between their steps.
    await api.clock.leap(ms);
    for (let step = 0; step < 60; step++) await api.clock.advance(1_000);
  };
  await pass(2 * HOUR_MS);
  await pass(HOUR_MS);
  expect(await row()).toEqual({ state: "expired", files: null });
  api.clock.jump(-4 * HOUR_MS);
  expect((await apply(api, asked)).json.code).toBe("approval_expired");
  await api.store.write("dashboard", (tx) => tx.run("UPDATE approval SET ended_at = ended_at - ?1", 8 * DAY_MS));
  await pass(2 * HOUR_MS);
  await pass(2 * HOUR_MS);
  expect(await row()).toBeNull();
});

describe("a request for an approval", () => {
  test("is rejected without changes, with an invalid save or under another plan's name, and stores nothing", async () => {
    await using api = await startApi();
    const none = await planOf(api);
    const before = await api.snapshot();
    expect((await post(api, `${DEV}/approvals`, { ...PROMOTE, plan: none.json.plan })).json.code).toBe("invalid_input");
    const wanted = { relays: [receiver("sells", { scheme: "hooks" }, [{ type: "write_record", collection: "nowhere" }])], to: "production" };
    expect((await post(api, `${DEV}/approvals`, { ...wanted, plan: "pln_x" })).json.code).toBe("invalid_definition");
    const moved = await post(api, `${DEV}/approvals`, { relays: [receiver("one")], to: "production", plan: none.json.plan });
    expect([moved.status, moved.json.code]).toEqual([409, "version_conflict"]);
    expect(changesBetween(before, await api.snapshot())).toEqual({});
  });

  test("withdraws the earlier request of the same key, and not another key's", async () => {
    await using api = await startApi();
    await setDevelopment(api, [receiver("one")]);
    const first = await ask(api);
    const mine = await ask(api, PROMOTE, null);
    const second = await ask(api);
    expect((await see(api, first)).state).toBe("withdrawn");
    expect((await see(api, mine, null)).state).toBe("pending");
    expect((await see(api, second)).state).toBe("pending");
    const { json } = await api.call(`${LIVE}/approvals`, { session: true });
    expect(json.approvals.map(({ id }: { id: string }) => id).sort()).toEqual([mine.id, second.id].sort());
    const own = await api.call(`${DEV}/approvals`, { key: api.keys.dev });
    expect(own.json.approvals.map(({ id }: { id: string }) => id)).toEqual([second.id]);
    expect((await api.call(`${LIVE}/approvals`, { key: api.keys.live })).json.approvals).toEqual([]);
  });

  test("has a limit per minute", async () => {
    await using api = await startApi();
    await setDevelopment(api, [receiver("one")]);
    for (let at = 0; at < 10; at++) await ask(api);
    const { json } = await planOf(api);
    const capped = await post(api, `${DEV}/approvals`, { ...PROMOTE, plan: json.plan });
    expect([capped.status, capped.json.code]).toEqual([429, "approval_capped"]);
    await api.clock.advance(60_000);
    await ask(api);
  });

  test("is refused while 20 others wait, and the preview refuses the same", async () => {
    await using api = await startApi();
    await setDevelopment(api, [receiver("one")]);
    await ask(api, PROMOTE, null);
    await api.store.write("dashboard", (tx) =>
      tx.run(
        `INSERT INTO approval (id, environment_id, plan, source, replace_edited, shown, state, asked_by, asked_from, created_at, expires_at)
         SELECT approval.id || value, environment_id, plan, source, replace_edited, shown, state, asked_by, asked_from, created_at, expires_at
         FROM approval, json_each('[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19]')`,
      ),
    );
    const { json } = await planOf(api);
    const capped = await post(api, `${DEV}/approvals`, { ...PROMOTE, plan: json.plan });
    expect([capped.status, capped.json.code, json.refusal]).toEqual([
      429,
      "approval_capped",
      { code: "approval_capped", message: capped.json.message },
    ]);
  });

  test("from the dashboard is applied there, in the same two steps", async () => {
    await using api = await startApi();
    await setDevelopment(api, [receiver("one")]);
    const asked = await ask(api, PROMOTE, null);
    expect((await apply(api, asked, null)).json.code).toBe("approval_pending");
    await decide(api, asked, "approve");
    expect((await apply(api, asked, null)).json.secrets.map(({ relay }: { relay: string }) => relay)).toEqual(["one"]);
  });
});

test("is applied once when two callers use it at once", async () => {
  await using api = await startApi();
  await setDevelopment(api, [receiver("one")]);
  const asked = await ask(api);
  await decide(api, asked, "approve");
  const replies = await Promise.all(Array.from({ length: 5 }, () => apply(api, asked)));
  expect(replies.map(({ status }) => status).sort()).toEqual([200, 409, 409, 409, 409]);
  expect(replies.filter(({ json }) => json.code !== undefined).map(({ json }) => json.code)).toEqual(Array(4).fill("approval_used"));
});

describe("at the same moment", () => {
  test("two owners' pages that approve one request record one approval", async () => {
    await using api = await startApi();
    await setDevelopment(api, [receiver("one")]);
    const asked = await ask(api);
    const replies = await Promise.all(Array.from({ length: 4 }, () => decide(api, asked, "approve")));
    expect(replies.map(({ status }) => status).sort()).toEqual([200, 409, 409, 409]);
    const { json } = await api.call(`${LIVE}/audit?kind=change`, { session: true });
    expect(json.items.filter(({ action }: { action: string }) => action === "approval.approved")).toHaveLength(1);
  });

  // Each pair also runs in the reverse order.
  const pairs: readonly (readonly [string, string])[] = [
    ["approve", "refuse"],
    ["approve", "withdraw"],
    ["approve", "edit development"],
    ["approve", "edit production"],
    ["use", "refuse"],
    ["use", "withdraw"],
    ["use", "edit development"],
    ["use", "edit production"],
    ["use", "ask again"],
  ];
  for (const pair of pairs) {
    for (const order of [pair, [...pair].reverse()]) {
      test(`${order.join(" and ")}: applies the plan that was shown, or nothing`, async () => {
        await using api = await startApi();
        await setDevelopment(api, [receiver("base")]);
        const first = await ask(api);
        await decide(api, first, "approve");
        await apply(api, first);
        await setDevelopment(api, [receiver("base"), receiver("one")]);
        const asked = await ask(api);
        if (pair[0] === "use") await decide(api, asked, "approve");
        const { plan } = asked;
        const edit = async (place: string) => {
          const { version } = await relayOf(api, "base", place);
          const body = { definition: receiver("base", HMAC), version };
          return api.call(`${place}/relays/base`, { method: "PUT", session: true, body });
        };
        const works: Record<string, () => Promise<Reply>> = {
          approve: () => decide(api, asked, "approve"),
          refuse: () => decide(api, asked, "refuse"),
          withdraw: () => decide(api, asked, "withdraw", api.keys.dev),
          use: () => apply(api, asked),
          "edit development": () => edit(DEV),
          "edit production": () => edit(LIVE),
          "ask again": () => post(api, `${DEV}/approvals`, { ...PROMOTE, plan }),
        };
        const replies = Object.fromEntries(await Promise.all(order.map(async (what) => [what, await works[what]?.()] as const)));
        for (const reply of Object.values(replies)) expect([200, 201, 409, 400]).toContain(reply?.status ?? 0);
        const { state } = await see(api, asked);
        const used = replies.use?.status === 200;
        expect(used).toBe(state === "done");
        expect(await namesOf(api)).toEqual(used ? ["base", "one"] : ["base"]);
        // The other call never reverts a decision, so a denied request is never applied.
        if (replies.refuse?.status === 200) expect(state).toBe("denied");
        if (replies["edit production"]?.status === 200 && !used && pair[0] === "use") expect(state).toBe("void");
        // An approval can be used once at most, and never after a side changed.
        const later = await apply(api, asked);
        const stands = replies.approve?.status === 200 && !("edit development" in replies) && !("edit production" in replies) && state === "approved";
        expect(later.status === 200).toBe(stands);
        expect((await apply(api, asked)).status).toBe(409);
      });
    }
  }
});
