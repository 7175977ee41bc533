import { expect, test } from "bun:test";
import type { RefusalCode } from "../../src/base/code/refusal-code.ts";
import { plans } from "../../src/shop/selling/plan.ts";
import { products } from "../../src/shop/selling/product.ts";
import { refusalOf } from "../kit/fresh-store.ts";
import { openSellingStore } from "../kit/selling-store.ts";

const market = await openSellingStore();
const { store, environmentId } = market;
const soldThrough = { kind: "payment_link", url: "https://pay.example/x" };
await market.product("linked", { soldThrough });
await market.plan("team", { soldThrough });

const product = (name: string) => store.read((tx) => products.requirePaymentLink(tx, environmentId, name));
const plan = (name: string) => store.read((tx) => plans.requirePaymentLink(tx, environmentId, name));

test("a product or plan sold by a payment link has that link as checkout URL", async () => {
  expect([await product("linked"), await plan("team")]).toEqual([soldThrough.url, soldThrough.url]);
});

test.each<[string, () => Promise<string>, RefusalCode, number]>([
  ["buy on a product sold through a relay returns 409", () => product("lamp"), "product_not_sellable", 409],
  ["checkout on a plan sold through a relay returns 409", () => plan("pro"), "plan_not_sellable", 409],
  ["a plan that is not sold has no checkout", () => plan("free"), "plan_not_sellable", 409],
  ["buy on a product that does not exist returns 404", () => product("chair"), "not_found", 404],
  ["checkout on a plan that does not exist returns 404", () => plan("gold"), "not_found", 404],
])("%s", async (_rule, work, code, status) => {
  const refusal = await refusalOf(work);
  expect([refusal.code, refusal.status]).toEqual([code, status]);
});

test("a product or plan that a relay sells at a URL is refused with that URL", async () => {
  const sold = { kind: "relay", relay: "shop", url: "https://buy.example/lamp" };
  await market.product("bought", { soldThrough: sold });
  await market.plan("bought-plan", { soldThrough: sold });
  for (const work of [() => product("bought"), () => plan("bought-plan")]) {
    const refusal = await refusalOf(work);
    expect([refusal.status, refusal.extra.details]).toEqual([409, { url: sold.url }]);
  }
});
