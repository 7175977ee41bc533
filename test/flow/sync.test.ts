/** Tests sync over the API: the preview, and an apply that runs exactly the preview in one transaction or changes nothing. */
import { describe, expect, test } from "bun:test";
import { DEFAULT_LIMITS } from "../../src/base/limit.ts";
import { type ApiServer, changesBetween, startApi } from "../kit/api-server.ts";

const receiver = (name: string, more: object = {}, actions: object[] = [{ type: "write_record", collection: "notes", data: { text: "x" } }]) => ({
  name,
  trigger: { kind: "receiver", verify: { scheme: "hooks" }, map: { event_id: "id", person_id: "user" }, ...more },
  actions,
});
const schedule = (name: string) => ({
  name,
  trigger: { kind: "schedule", every: "1d" },
  actions: [{ type: "write_record", collection: "notes", data: { text: "x" } }],
});
const NOTES = { collections: { notes: { kind: "shared", fields: { text: { type: "text" } } } } };

interface Sent {
  relays: unknown[];
  catalog?: unknown;
  prune?: boolean;
  replaceEdited?: boolean;
  base?: unknown;
  commit?: string;
  plan?: string;
}

const plan = (api: ApiServer, body: Sent) => api.call(`${api.E}/sync/plan`, { method: "POST", key: api.keys.dev, body });
const apply = (api: ApiServer, body: Sent) => api.call(`${api.E}/sync/apply`, { method: "POST", key: api.keys.dev, body });

/** Plans and applies, and returns the response of the apply. */
async function sync(api: ApiServer, body: Sent) {
  const planned = await plan(api, body);
  expect(planned.status).toBe(200);
  return await apply(api, { ...body, plan: planned.json.plan });
}

/** Formats each entry like `created relay:checkout`, in the plan's order. */
function states(json: { entries: { kind: string; name: string; state: string }[] }): string[] {
  return json.entries.map(({ kind, name, state }) => `${state} ${kind}:${name}`);
}

const edit = async (api: ApiServer, definition: { name: string }) => {
  const { json } = await api.call(`${api.E}/relays/${definition.name}`, { key: api.keys.dev });
  const body = { definition, version: json.relay.version };
  const saved = await api.call(`${api.E}/relays/${definition.name}`, { method: "PUT", session: true, body });
  expect(saved.status).toBe(200);
};
const make = async (api: ApiServer, definition: unknown) => {
  const made = await api.call(`${api.E}/relays`, { method: "POST", session: true, body: { definition } });
  expect(made.status).toBe(201);
};

describe("a preview", () => {
  test("lists created, changed, unchanged, edited and unmatched items, and changes nothing", async () => {
    await using api = await startApi();
    const files = { relays: ["one", "two", "three"].map((name) => receiver(name)), catalog: NOTES };
    expect((await sync(api, files)).json.changes).toBe(4);
    await edit(api, receiver("three", { when: { event_id: "a" } }));
    await make(api, receiver("by-hand"));
    const before = await api.snapshot();
    const next = {
      relays: [
        receiver("one"),
        receiver("two", {}, [{ type: "write_record", collection: "notes", data: { text: "y" } }]),
        receiver("three"),
        receiver("four"),
      ],
      catalog: { ...NOTES, access: { beta: {} } },
    };
    const { json } = await plan(api, next);
    expect(states(json)).toEqual([
      "unchanged relay:one",
      "changed relay:two",
      "edited relay:three",
      "created relay:four",
      "only_there relay:by-hand",
      "unchanged collection:notes",
      "created access:beta",
    ]);
    expect(json.changes).toBe(3);
    expect(json.entries[1].diff).toEqual([{ field: "actions.0.data.text", before: "x", after: "y" }]);
    expect(json.entries[2].diff).toEqual([{ field: "trigger.when", before: { event_id: "a" } }]);
    expect(changesBetween(before, await api.snapshot())).toEqual({});
    expect((await plan(api, next)).json.plan).toBe(json.plan);
  });

  test("shows each save's errors and warnings, with the set checked as a whole", async () => {
    await using api = await startApi();
    await sync(api, { relays: [receiver("kind")], catalog: NOTES });
    const sells = [{ type: "fulfil_product", product: "book" }];
    const { json } = await plan(api, {
      relays: [schedule("kind"), receiver("sells", {}, sells), receiver("lost", {}, [{ type: "grant_access", entitlement: "access:nowhere" }])],
      catalog: { ...NOTES, products: { book: { soldThrough: { kind: "relay", relay: "sells" } } } },
    });
    const [kind, sold, lost] = json.entries;
    expect(kind.refusal.code).toBe("trigger_kind_fixed");
    expect(kind.refusal.message).toMatch(/rename the relay.*relay sync --prune/);
    expect([sold.refusal, sold.warnings.map(({ code }: { code: string }) => code)]).toEqual([null, []]);
    expect(lost.warnings.map(({ code, field }: Record<string, string>) => [code, field])).toEqual([["reference_missing", "actions.0.entitlement"]]);
  });

  test("is rejected with every problem of every file", async () => {
    await using api = await startApi();
    const { status, json } = await plan(api, {
      relays: [{ ...receiver("one"), extra: 1 }, receiver("two"), receiver("two")],
      catalog: { plans: { free: { titel: "x" } } },
    });
    expect([status, json.code]).toEqual([400, "invalid_definition"]);
    expect(json.problems.map(({ field }: { field: string }) => field)).toEqual(["relays.one.extra", "relays.two", "catalog.plans.free.titel"]);
  });

  test("is allowed for production, but an apply there needs an approval", async () => {
    await using api = await startApi();
    for (const [place, key, to] of [
      ["production", api.keys.live, {}],
      ["development", api.keys.dev, { to: "production" }],
    ] as const) {
      const told = await api.call(`/api/apps/shop/${place}/sync/plan`, { method: "POST", key, body: { relays: [receiver("one")], ...to } });
      expect([told.status, states(told.json)]).toEqual([200, ["created relay:one"]]);
      const body = { relays: [receiver("one")], ...to, plan: told.json.plan };
      const before = await api.snapshot();
      const reply = await api.call(`/api/apps/shop/${place}/sync/apply`, { method: "POST", key, body });
      expect([reply.status, reply.json.code]).toEqual([403, "approval_needed"]);
      const pruned = await api.call(`/api/apps/shop/${place}/sync/plan`, { method: "POST", key, body: { relays: [], prune: true, ...to } });
      expect([pruned.status, pruned.json.code]).toEqual([400, "invalid_input"]);
      expect(changesBetween(before, await api.snapshot())).toEqual({});
    }
  });
});

describe("the folder's base", () => {
  const COMMIT = "0123456789abcdef0123456789abcdef01234567";
  const base = (mark: string, changed = false) => [{ kind: "relay", name: "one", mark, changed }];

  test("decides between changed, behind and conflict, and a behind item is applied only with replaceEdited", async () => {
    await using api = await startApi();
    await sync(api, { relays: [receiver("one")], catalog: NOTES });
    const items = async () => (await api.call(`${api.E}/sync/items`, { key: api.keys.dev })).json.items;
    const [{ mark: old }] = await items();
    const newer = receiver("one", { when: { event_id: "a" } });
    expect((await sync(api, { relays: [newer], base: base(old, true), commit: COMMIT })).json.changes).toBe(1);
    const { entries } = (await plan(api, { relays: [receiver("one")], base: base(old) })).json;
    const { at, by, ...who } = entries[0].newer;
    expect([entries[0].state, who]).toEqual(["behind", { byName: "test", how: "synced", commit: COMMIT }]);
    expect([Date.parse(at), by]).toEqual([api.clock.now(), expect.stringMatching(/^key:/)]);
    expect(states((await plan(api, { relays: [receiver("one")], base: base(old, true) })).json)).toEqual(["conflict relay:one"]);
    expect(states((await plan(api, { relays: [receiver("one")], base: [] })).json)).toEqual(["conflict relay:one"]);
    // A caller that sends no base, such as an earlier version, gets the answer of that version.
    expect(states((await plan(api, { relays: [receiver("one")] })).json)).toEqual(["changed relay:one"]);
    const files = { relays: [receiver("one")], base: base(old) };
    expect((await sync(api, files)).json.changes).toBe(0);
    expect((await sync(api, { ...files, replaceEdited: true })).json.changes).toBe(1);
    const [newest] = (await api.call(`${api.E}/relays/one/versions`, { key: api.keys.dev })).json.items;
    expect([newest.version, newest.commit]).toEqual([3, undefined]);
  });

  test.each([
    ["a commit that is no hash", { commit: "main; rm -rf /" }],
    ["a commit that is too long", { commit: `${COMMIT}${COMMIT}` }],
    ["a mark that is no hash", { base: base("x") }],
    ["an unknown kind", { base: [{ kind: "file", name: "x", mark: COMMIT, changed: true }] }],
    ["a name that is too long", { base: [{ kind: "relay", name: "x".repeat(201), mark: COMMIT, changed: true }] }],
    ["too many items", { base: Array.from({ length: 2_001 }, (_, at) => ({ kind: "access", name: `a${at}`, mark: COMMIT, changed: true })) }],
  ])("is refused: %s", async (_what, more) => {
    await using api = await startApi();
    const refused = await plan(api, { relays: [], ...more });
    expect([refused.status, refused.json.code]).toEqual([400, "invalid_input"]);
  });
});

describe("an apply", () => {
  test("saves everything in one transaction, shows new secrets once, and marks the items as from file", async () => {
    await using api = await startApi();
    const calls = [{ type: "call_url", url: "https://example.com/notice" }];
    const done = await sync(api, { relays: [receiver("one"), receiver("two", {}, calls)], catalog: NOTES });
    expect(done.status).toBe(200);
    const made = done.json.secrets.map((one: Record<string, string>) => [one.relay, ...Object.keys(one).slice(1)]);
    expect(made).toEqual([
      ["one", "receiverSecret"],
      ["two", "receiverSecret", "signingSecret"],
    ]);
    const { json } = await api.call(`${api.E}/relays/one`, { key: api.keys.dev });
    expect([json.relay.origin.kind, json.relay.secret.kind]).toEqual(["file", "minted"]);
    const audit = await api.call(`${api.E}/audit`, { key: api.keys.dev });
    expect(audit.json.items.map(({ action }: { action: string }) => action).sort()).toEqual(["collection.created", "relay.created", "relay.created"]);
    expect((await plan(api, { relays: [receiver("one"), receiver("two", {}, calls)], catalog: NOTES })).json.changes).toBe(0);
  });

  for (const [moved, move] of [
    ["a relay of the set was edited", (api: ApiServer) => edit(api, receiver("one", { when: { event_id: "a" } }))],
    [
      "a relay of the set was edited and reverted",
      async (api: ApiServer) => {
        await edit(api, receiver("one", { when: { event_id: "a" } }));
        await edit(api, receiver("one"));
      },
    ],
    ["a relay was created in the dashboard", (api: ApiServer) => make(api, receiver("new"))],
    [
      "an item of the catalog was edited",
      (api: ApiServer) => api.call(`${api.E}/access/beta`, { method: "PUT", session: true, body: { title: "Other" } }),
    ],
    [
      "an item that no file names was created",
      (api: ApiServer) => api.call(`${api.E}/access/gamma`, { method: "PUT", session: true, body: { title: "Gamma" } }),
    ],
  ] as const) {
    test(`is a version conflict without a change if ${moved} after the preview`, async () => {
      await using api = await startApi();
      await sync(api, { relays: [receiver("one")], catalog: { access: { beta: {} } } });
      const files = { relays: [receiver("one"), receiver("two")], catalog: { access: { beta: {} } } };
      const planned = await plan(api, files);
      await move(api);
      const before = await api.snapshot();
      const reply = await apply(api, { ...files, plan: planned.json.plan });
      expect([reply.status, reply.json.code]).toEqual([409, "version_conflict"]);
      expect(changesBetween(before, await api.snapshot())).toEqual({});
    });
  }

  test("is a version conflict if the files changed after the preview", async () => {
    await using api = await startApi();
    const planned = await plan(api, { relays: [receiver("one")] });
    const reply = await apply(api, { relays: [receiver("one", { when: { event_id: "a" } })], plan: planned.json.plan });
    expect([reply.status, reply.json.code]).toEqual([409, "version_conflict"]);
  });

  test("saves nothing if one save is rejected", async () => {
    await using api = await startApi();
    await sync(api, { relays: [receiver("kind")] });
    const files = { relays: [receiver("first"), schedule("kind")], catalog: NOTES };
    const planned = await plan(api, files);
    const before = await api.snapshot();
    const reply = await apply(api, { ...files, plan: planned.json.plan });
    expect([reply.status, reply.json.code]).toEqual([409, "trigger_kind_fixed"]);
    expect(reply.json.message).toStartWith("relay kind: ");
    expect(changesBetween(before, await api.snapshot())).toEqual({});
  });

  test("keeps the dashboard's edits unless asked to replace them", async () => {
    await using api = await startApi();
    const files = { relays: [receiver("one")], catalog: NOTES };
    await sync(api, files);
    const edited = receiver("one", { when: { event_id: "a" } });
    await edit(api, edited);
    await sync(api, { ...files, relays: [...files.relays, receiver("two")] });
    const read = async () => (await api.call(`${api.E}/relays/one`, { key: api.keys.dev })).json.relay;
    expect((await read()).definition).toEqual(edited);
    const done = await sync(api, { ...files, replaceEdited: true });
    expect(done.json.changes).toBe(1);
    const after = await read();
    expect([after.definition, after.origin.kind]).toEqual([receiver("one"), "file"]);
  });

  test("never deletes, and with prune deletes only items that a sync created and no person edited", async () => {
    await using api = await startApi();
    await sync(api, { relays: ["gone", "touched", "stays"].map((name) => receiver(name)), catalog: NOTES });
    await edit(api, receiver("touched", { when: { event_id: "a" } }));
    await make(api, receiver("by-hand"));
    const files = { relays: [receiver("stays")] };
    expect((await sync(api, files)).json.changes).toBe(0);
    const pruned = await sync(api, { ...files, prune: true, replaceEdited: true });
    expect(states(pruned.json)).toEqual(["unchanged relay:stays", "only_there relay:by-hand", "deleted relay:gone", "only_there relay:touched"]);
    const left = await api.call(`${api.E}/relays`, { key: api.keys.dev });
    expect(left.json.items.map(({ name }: { name: string }) => name).sort()).toEqual(["by-hand", "stays", "touched"]);
    expect((await api.call(`${api.E}/collections`, { key: api.keys.dev })).json.items.length).toBe(1);
    // A new name is the remedy for a fixed trigger kind.
    expect((await sync(api, { relays: [schedule("gone")] })).status).toBe(200);
  });

  test("takes up to 30 changes per minute, all of a plan or none, and a failed apply takes none", async () => {
    await using api = await startApi({ limits: { ...DEFAULT_LIMITS, relaysPerEnvironment: 100 } });
    const relays = (count: number) => Array.from({ length: count }, (_, at) => receiver(`relay${at}`));
    // The first sync into an empty environment does not count.
    expect((await sync(api, { relays: relays(1) })).status).toBe(200);
    const tooMany = await plan(api, { relays: relays(32) });
    expect(tooMany.json.refusal.code).toBe("sync_capped");
    expect(tooMany.json.refusal.message).toContain("RELAY_LIMIT_SYNC_CHANGES_PER_MINUTE");
    expect((await sync(api, { relays: relays(32) })).json.code).toBe("sync_capped");
    expect((await sync(api, { relays: relays(21) })).status).toBe(200);
    const capped = await sync(api, { relays: relays(32) });
    expect([capped.status, capped.json.code]).toEqual([429, "sync_capped"]);
    expect(capped.json.message).toContain("10 are left");
    expect((await apply(api, { relays: relays(25), plan: "pln_other" })).json.code).toBe("version_conflict");
    // The preview refuses what the apply refuses now, and says until when.
    const refused = (await plan(api, { relays: relays(32) })).json.refusal;
    expect(refused).toEqual({ code: "sync_capped", message: capped.json.message, resetAt: capped.json.resetAt });
    expect((await sync(api, { relays: relays(31) })).status).toBe(200);
    expect((await sync(api, { relays: [receiver("relay0", { when: { event_id: "a" } })] })).status).toBe(429);
    await api.clock.advance(60_000);
    expect((await sync(api, { relays: relays(32) })).status).toBe(200);
  });

  test("takes up to 300 changes into an empty environment, and then counts again", async () => {
    await using api = await startApi({ limits: { ...DEFAULT_LIMITS, relaysPerEnvironment: 500 } });
    const relays = (count: number) => Array.from({ length: count }, (_, at) => receiver(`relay${at}`));
    const catalog = { access: Object.fromEntries(Array.from({ length: 301 }, (_, at) => [`slug${at}`, {}])) };
    const tooMany = await plan(api, { relays: [], catalog });
    expect(tooMany.json.refusal).toMatchObject({
      code: "sync_capped",
      message: expect.stringContaining("the first sync into an empty environment may make 300"),
    });
    expect((await plan(api, { relays: relays(40) })).json.refusal).toBeNull();
    expect((await sync(api, { relays: relays(40) })).json.changes).toBe(40);
    expect((await sync(api, { relays: relays(71) })).json.code).toBe("sync_capped");
    expect((await sync(api, { relays: relays(70) })).status).toBe(200);
  });

  test("counts the waiting events of the relays that a prune deletes", async () => {
    await using api = await startApi();
    await sync(api, { relays: ["gone", "idle", "stays"].map((name) => receiver(name)), catalog: NOTES });
    await api.call(`${api.E}/relays/gone/pause`, { method: "POST", session: true });
    for (let at = 0; at < 3; at++) {
      const sent = await api.call(`${api.E}/relays/gone/test-event`, { method: "POST", session: true, body: {} });
      expect(sent.status).toBe(200);
    }
    const { json } = await plan(api, { relays: [receiver("stays")], prune: true });
    const deleted = json.entries.filter(({ state }: { state: string }) => state === "deleted");
    expect(deleted.map(({ name, waitingEvents }: Record<string, unknown>) => [name, waitingEvents])).toEqual([
      ["gone", 3],
      ["idle", 0],
    ]);
    const kept = await plan(api, { relays: [receiver("stays")] });
    expect(kept.json.entries.map(({ waitingEvents }: { waitingEvents?: number }) => waitingEvents)).toEqual([undefined, undefined, undefined]);
  });

  test("saves relays in any necessary order, and reuses the slot of a pruned relay", async () => {
    await using api = await startApi({ limits: { ...DEFAULT_LIMITS, relaysPerEnvironment: 2 } });
    const catalog = { products: { book: { soldThrough: { kind: "relay", relay: "zeta" } } } };
    const sells = [{ type: "fulfil_product", product: "book" }];
    await sync(api, { relays: [receiver("zeta", {}, sells)], catalog });
    await api.call(`${api.E}/relays/zeta`, { method: "DELETE", session: true });
    const done = await sync(api, { relays: [receiver("alpha", {}, sells), receiver("zeta", {}, sells)], catalog });
    expect([done.status, done.json.changes]).toEqual([200, 2]);
    const renamed = await sync(api, { relays: [receiver("alpha", {}, sells), receiver("other")], catalog: {}, prune: true });
    expect([renamed.status, renamed.json.changes]).toEqual([200, 2]);
  });

  test.each([
    ["unchanged", async () => undefined],
    ["edited", (api: ApiServer) => edit(api, receiver("one", { when: { event_id: "a" } }))],
  ])("reports what the catalog's change breaks in a relay with an unchanged file: %s", async (state, given) => {
    await using api = await startApi();
    const relays = [receiver("one"), receiver("two")];
    await sync(api, { relays, catalog: NOTES });
    await given(api);
    const catalog = { collections: { notes: { kind: "shared", fields: { body: { type: "text" } } } } };
    const next = { relays: [receiver("one"), receiver("two", {}, [{ type: "write_record", collection: "notes", data: { body: "x" } }])], catalog };
    const { json } = await plan(api, next);
    expect(states(json)).toEqual([`${state} relay:one`, "changed relay:two", "changed collection:notes"]);
    expect(json.warnings).toMatchObject([{ code: "record_does_not_fit", field: "relays.one.actions.0.data.text" }]);
    const problems = async () => (await api.call(`${api.E}/problems`, { key: api.keys.dev })).json.items;
    expect(await problems()).toEqual([]);
    expect((await sync(api, next)).json.warnings).toEqual(json.warnings);
    expect(await problems()).toMatchObject([{ code: "relay_misfit", target: "relay:one" }]);
  });

  test.each([
    ["its file is unchanged", {}],
    ["its file changes too", { when: { event_id: "a" } }],
  ])("resolves a relay's problem of a missing product when a sync adds it: %s", async (_what, change) => {
    await using api = await startApi();
    const sells = [{ type: "fulfil_product", product: "book" }];
    const catalog = { products: { book: { soldThrough: { kind: "relay", relay: "one" } } } };
    await sync(api, { relays: [receiver("one", {}, sells)], catalog });
    const problems = async () => (await api.call(`${api.E}/problems`, { key: api.keys.dev })).json.items;
    await api.call(`${api.E}/products/book`, { method: "DELETE", session: true });
    expect(await problems()).toMatchObject([{ code: "relay_misfit", target: "relay:one" }]);
    expect((await sync(api, { relays: [receiver("one", change, sells)], catalog })).status).toBe(200);
    expect(await problems()).toEqual([]);
  });

  test("reports the products of a pruned relay, unless another relay sells them now", async () => {
    await using api = await startApi();
    const sells = [{ type: "fulfil_product", product: "book" }];
    const through = (relay: string) => ({ products: { book: { soldThrough: { kind: "relay", relay } } } });
    await sync(api, { relays: [receiver("one", {}, sells)], catalog: through("one") });
    const { json } = await plan(api, { relays: [], prune: true });
    expect(json.entries).toMatchObject([
      { name: "one", state: "deleted", warnings: [{ code: "reference_missing", field: "products.book.soldThrough.relay" }] },
    ]);
    const moved = await sync(api, { relays: [receiver("two", {}, sells)], catalog: through("two"), prune: true });
    expect(states(moved.json)).toContain("deleted relay:one");
    expect(moved.json.entries.flatMap(({ warnings }: { warnings: unknown[] }) => warnings)).toEqual([]);
  });

  test("saves the purchase page of a product that a relay sells, and finds it unchanged the next time", async () => {
    await using api = await startApi();
    const sells = [{ type: "fulfil_product", product: "book" }];
    const at = (url?: string) => ({ products: { book: { soldThrough: { kind: "relay", relay: "one", ...(url === undefined ? {} : { url }) } } } });
    const relays = [receiver("one", {}, sells)];
    await sync(api, { relays, catalog: at() });
    expect(states((await sync(api, { relays, catalog: at("https://buy.example/book") })).json)).toEqual([
      "unchanged relay:one",
      "changed product:book",
    ]);
    const again = await plan(api, { relays, catalog: at("https://buy.example/book") });
    expect(states(again.json)).toEqual(["unchanged relay:one", "unchanged product:book"]);
    expect((await api.call(`${api.E}/products/book`, { key: api.keys.dev })).json.product.soldThrough).toEqual({
      kind: "relay",
      relay: "one",
      url: "https://buy.example/book",
    });
    const pulled = await api.call(`${api.E}/sync/items`, { key: api.keys.dev });
    expect(pulled.text).toContain("https://buy.example/book");
    const refused = await plan(api, { relays, catalog: at("https://u:p@buy.example/book") });
    expect([refused.status, refused.text]).toEqual([400, expect.stringContaining("products.book.soldThrough.url")]);
  });

  test("reports what the catalog's change breaks in a relay without a file", async () => {
    await using api = await startApi();
    await sync(api, { relays: [], catalog: NOTES });
    await make(api, receiver("by-hand"));
    const done = await sync(api, { relays: [], catalog: { collections: { notes: { kind: "shared", fields: { title: { type: "text" } } } } } });
    expect(done.json.warnings.map(({ field }: { field: string }) => field)).toEqual(["relays.by-hand.actions.0.data.text"]);
  });

  test("reports the number of unchecked relays, and of warnings beyond the limit", async () => {
    await using api = await startApi({ limits: { ...DEFAULT_LIMITS, relaysPerEnvironment: 100 } });
    const writes = { type: "write_record", collection: "notes", data: { text: "x" } };
    const names = Array.from({ length: 28 }, (_, at) => `relay-${at}`);
    const relays = names.map((name) => receiver(name, {}, [writes, writes, writes]));
    await sync(api, { relays, catalog: NOTES });
    await api.clock.advance(60_000);
    const catalog = { collections: { notes: { kind: "shared", fields: { body: { type: "text" } } } } };
    const given = { relays: [{ ...relays[0], actions: [{ ...writes, data: { body: "x" } }] }, ...relays.slice(1)], catalog };
    const { json } = await plan(api, given);
    expect(json.warnings.filter(({ code }: { code: string }) => code === "record_does_not_fit")).toHaveLength(50);
    expect(json.warnings.slice(50)).toEqual([
      { code: "relays_not_told", field: "relays", message: expect.stringMatching(/^25 more warnings .* the problems of the relays show them/) },
      { code: "relays_not_told", field: "relays", message: expect.stringMatching(/^2 more relays .* were not checked: save each of them/) },
    ]);
    expect((await sync(api, given)).json.warnings).toEqual(json.warnings);
  });
});
