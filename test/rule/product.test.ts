import { describe, expect, test } from "bun:test";
import type { RefusalCode } from "../../src/base/code/refusal-code.ts";
import { listAudit } from "../../src/platform/audit/audit.ts";
import { fulfilProduct, grantPlan, refundProduct } from "../../src/rules/action/sale.ts";
import { deletePlan, findDefaultPlan, type PlanInput, plans, savePlan } from "../../src/shop/selling/plan.ts";
import { deleteProduct, type ProductInput, products, saveProduct, viewProduct } from "../../src/shop/selling/product.ts";
import { refusalOf } from "../kit/fresh-store.ts";
import { openSellingStore } from "../kit/selling-store.ts";

const market = await openSellingStore();
const { store, environmentId, otherEnvironmentId, clock } = market;
const change = { environmentId, by: "owner:a@example.com", nowMs: clock.now() };
const elsewhere = { ...change, environmentId: otherEnvironmentId };
const product = (name: string, input: ProductInput = {}) => store.write("app", (tx) => saveProduct(tx, change, name, input));
const plan = (name: string, input: PlanInput = {}, where = change) => store.write("app", (tx) => savePlan(tx, where, name, input));
const defaults = async () => {
  const { items } = await store.read((tx) => plans.list(tx, environmentId, { limit: 200, after: null }));
  return items.filter((one) => one.default).map((one) => one.name);
};

describe("a product", () => {
  test("uses its name as title and key, and has no credits, unless they are set", async () => {
    const { product: saved, created } = await product("plain");
    expect(created).toBe(true);
    expect(viewProduct(saved)).toEqual({
      name: "plain",
      title: "plain",
      key: "plain",
      credits: 0,
      soldThrough: null,
      version: 1,
      createdAt: "2026-01-15T12:00:00.000Z",
      updatedAt: "2026-01-15T12:00:00.000Z",
    });
  });

  test("is replaced completely, and its version increases", async () => {
    await product("whole", { title: "Whole", credits: 5, soldThrough: { kind: "relay", relay: "shop" } });
    const { product: saved, created } = await product("whole", { title: "Half" });
    expect([created, saved.title, saved.credits, saved.soldThrough, saved.version]).toEqual([false, "Half", 0, null, 2]);
    expect(await store.read((tx) => products.require(tx, environmentId, "whole"))).toEqual(saved);
  });

  test.each<[string, string, ProductInput, RefusalCode]>([
    ["an invalid name", "Lamp!", {}, "invalid_input"],
    ["a plan's name", "pro", {}, "name_taken"],
    ["a title of two lines", "bad", { title: "a\nb" }, "invalid_input"],
    ["an empty title", "bad", { title: "  " }, "invalid_input"],
    ["a title over 200 characters", "bad", { title: "x".repeat(201) }, "invalid_input"],
    ["a key that is no entitlement", "bad", { key: "Access" }, "invalid_input"],
    ["a fraction of a credit", "bad", { credits: 1.5 }, "invalid_input"],
    ["credits below zero", "bad", { credits: -1 }, "invalid_input"],
    ["a relay that does not exist here", "bad", { soldThrough: { kind: "relay", relay: "ghost" } }, "relay_missing"],
    ["an invalid relay name", "bad", { soldThrough: { kind: "relay", relay: "No" } }, "invalid_input"],
    ["an unknown way of selling", "bad", { soldThrough: { kind: "barter" } }, "invalid_input"],
    ["a way of selling with an extra field", "bad", { soldThrough: { kind: "relay", relay: "shop", link: "x" } }, "invalid_input"],
    ["a relay with an invalid URL", "bad", { soldThrough: { kind: "relay", relay: "shop", url: "x" } }, "invalid_input"],
    ["a relay with a URL without TLS", "bad", { soldThrough: { kind: "relay", relay: "shop", url: "http://a.example" } }, "invalid_input"],
    ["a relay with a URL that is no text", "bad", { soldThrough: { kind: "relay", relay: "shop", url: null } }, "invalid_input"],
    ["a payment link without TLS", "bad", { soldThrough: { kind: "payment_link", url: "http://a.example" } }, "invalid_input"],
    ["a payment link with credentials", "bad", { soldThrough: { kind: "payment_link", url: "https://a:b@a.example" } }, "invalid_input"],
    ["a payment link with a javascript URL", "bad", { soldThrough: { kind: "payment_link", url: "javascript:alert(1)" } }, "invalid_input"],
    ["a version for a product that does not exist", "bad", { version: 1 }, "version_conflict"],
  ])("refuses %s", async (_rule, name, input, code) => {
    expect((await refusalOf(() => product(name, input))).code).toBe(code);
    expect(await store.read((tx) => products.find(tx, environmentId, "bad"))).toBeNull();
  });

  test("keeps its key while live grants depend on it, and the refusal counts them", async () => {
    await product("keyed", { key: "access:members", soldThrough: { kind: "relay", relay: "shop" } });
    const person = await market.newPerson();
    await market.sell(fulfilProduct, { type: "fulfil_product", product: "keyed", ref: "keyed-1" }, person);
    await product("keyed", {
      key: "access:members",
      title: "Other words",
      soldThrough: { kind: "relay", relay: "shop" },
    });
    const refused = await refusalOf(() => product("keyed", { key: "access:other" }));
    expect([refused.code, refused.status, refused.extra.details]).toEqual(["key_in_use", 409, { grants: 1 }]);
    expect(refused.message).toContain("while 1 active grant of access:members depends on the product keyed");
    await store.write("app", (tx) => deleteProduct(tx, change, "keyed"));
    expect((await refusalOf(() => product("keyed", { key: "access:other" }))).code).toBe("key_in_use");
    await product("keyed", { key: "access:members", soldThrough: { kind: "relay", relay: "shop" } });
    await market.sell(refundProduct, { type: "refund_product", product: "keyed", ref: "keyed-1" }, person);
    expect((await product("keyed", { key: "access:other" })).product.key).toBe("access:other");
  });

  test("keeps a key with very many holders, and the refusal counts up to a limit", async () => {
    await product("crowded", { key: "access:crowd" });
    const hold = (more: number) =>
      store.write("app", (tx) =>
        tx.run(
          `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?2)
           INSERT INTO access_grant (id, environment_id, person_id, entitlement, source, granted_at)
           SELECT 'grt_crowd_' || ?3 || '_' || i, ?1, 'per_' || i, 'access:crowd', 'hand', 0 FROM n`,
          environmentId,
          more,
          String(more),
        ),
      );
    await hold(5_000);
    expect((await product("crowded", { key: "access:other" })).product.key).toBe("access:other");
    await product("crowded", { key: "access:crowd" });
    await hold(1);
    const refused = await refusalOf(() => product("crowded", { key: "access:other" }));
    expect([refused.code, refused.extra.details]).toEqual(["key_in_use", { grants: 5_001 }]);
    expect(refused.message).toContain("more than 5000 active grants of access:crowd exist");
  });

  test("can change its key if people hold the key only from other sources", async () => {
    await product("shared-key", { key: "access:members" });
    const person = await market.newPerson();
    await market.sell(fulfilProduct, { type: "fulfil_product", product: "lamp", ref: "lamp-1" }, person);
    expect((await product("shared-key", { key: "lamp" })).product.key).toBe("lamp");
    expect((await product("shared-key", { key: "shared-key" })).product.key).toBe("shared-key");
  });

  test.each([
    ["an access slug that does not exist", "access:nowhere", "no such access slug"],
    ["a product or plan that does not exist", "nothing", "no such product or plan"],
  ])("is saved with a warning when its key names %s", async (_rule, key, says) => {
    expect((await product("warned", { key })).warnings).toEqual([
      { code: "key_names_nothing", field: "key", message: expect.stringContaining(says) },
    ]);
    expect((await product("warned")).warnings).toEqual([]);
  });

  test("cannot be sold through a relay of another environment", async () => {
    await market.newRelay("faraway", "production");
    const input = { soldThrough: { kind: "relay", relay: "faraway" } };
    expect((await refusalOf(() => product("far", input))).code).toBe("relay_missing");
  });

  test("keeps its relay's name after that relay is deleted", async () => {
    await market.newRelay("brief");
    await product("bound", { soldThrough: { kind: "relay", relay: "brief" } });
    await market.deleteRelay("brief");
    const bound = await store.read((tx) => products.require(tx, environmentId, "bound"));
    expect(bound.soldThrough).toEqual({ kind: "relay", relay: "brief" });
  });

  test("is not saved at an older version, and the refusal names the current one", async () => {
    await product("moving");
    await product("moving", { version: 1, title: "Moved" });
    const refusal = await refusalOf(() => product("moving", { version: 1, title: "Lost" }));
    expect([refusal.code, refusal.extra.details]).toEqual(["version_conflict", { version: 2 }]);
  });

  test("has one audit row with before and after for each change", async () => {
    await product("traced");
    await product("traced", { credits: 3 });
    await store.write("app", (tx) => deleteProduct(tx, change, "traced", 2));
    const filter = { target: "product:traced" };
    const { items } = await store.read((tx) => listAudit(tx, environmentId, filter, { limit: 9, after: null }));
    expect(items).toMatchObject([
      { action: "product.deleted", actor: "owner:a@example.com", before: { credits: 3 }, after: null },
      { action: "product.changed", before: { credits: 0 }, after: { credits: 3 } },
      { action: "product.created", before: null, after: { credits: 0 } },
    ]);
  });

  test("is listed newest first, page by page, once each", async () => {
    const seen: string[] = [];
    let after: string | null = null;
    do {
      const page = await store.read((tx) => products.list(tx, environmentId, { limit: 2, after }));
      seen.push(...page.items.map((one) => one.name));
      after = page.next === null ? null : Buffer.from(page.next, "base64url").toString();
    } while (after !== null);
    const stored = await store.read((tx) => tx.all<{ name: string }>("SELECT name FROM product"));
    expect(seen.toSorted()).toEqual(stored.map((row) => row.name).toSorted());
    expect(new Set(seen).size).toBe(seen.length);
  });
});

describe("a plan", () => {
  test("is the default if it is the first, whatever it says, and only one plan is", async () => {
    await plan("first", { default: false }, elsewhere);
    await plan("second", {}, elsewhere);
    const found = await store.read((tx) => findDefaultPlan(tx, otherEnvironmentId));
    expect(found?.name).toBe("first");
    expect(await defaults()).toEqual(["free"]);
  });

  test("takes over the default from the previous plan", async () => {
    await plan("base", { default: true });
    expect(await defaults()).toEqual(["base"]);
    await plan("free", { default: true });
    expect(await defaults()).toEqual(["free"]);
  });

  test("stays the default when a save does not mention it, and never gives it up without a successor", async () => {
    await plan("free", { title: "Free" });
    expect(await defaults()).toEqual(["free"]);
    expect((await refusalOf(() => plan("free", { default: false }))).code).toBe("invalid_input");
    expect(await defaults()).toEqual(["free"]);
  });

  test.each<[string, string, PlanInput, RefusalCode]>([
    ["a product's name", "lamp", {}, "name_taken"],
    ["a relay that does not exist here", "bad", { soldThrough: { kind: "relay", relay: "ghost" } }, "relay_missing"],
    ["a stale version", "pro", { version: 99 }, "version_conflict"],
    ["an invalid name", "-", {}, "invalid_input"],
  ])("refuses %s", async (_rule, name, input, code) => {
    expect((await refusalOf(() => plan(name, input))).code).toBe(code);
  });

  test("is not deleted while it is the default among others, or while people are on it", async () => {
    const remove = (name: string) => store.write("app", (tx) => deletePlan(tx, change, name));
    expect((await refusalOf(() => remove("free"))).code).toBe("in_use");
    const person = await market.newPerson();
    await market.sell(grantPlan, { type: "grant_plan", plan: "pro" }, person);
    expect((await refusalOf(() => remove("pro"))).code).toBe("in_use");
    await remove("base");
    expect((await refusalOf(() => store.read((tx) => plans.require(tx, environmentId, "base")))).code).toBe("not_found");
  });
});
