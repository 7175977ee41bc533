/**
 * Products: catalog items with the entitlement (key) and credits that a purchase grants. A change or deletion takes nothing back: this file
 * never changes a grant, a credit or a receipt.
 */
import { type Static, Type } from "typebox";
import { MAX_CREDIT_LINE } from "../../base/limit.ts";
import { Refusal, type Warning } from "../../base/refusal.ts";
import { orNull, show, time } from "../../base/schema.ts";
import { ENTITLEMENT_NAME } from "../../base/shape.ts";
import type { Change } from "../../platform/audit/audit.ts";
import type { Reader, Writer } from "../../store/port.ts";
import { defineTable, integer, type RowOf, text } from "../../store/table.ts";
import { liveSql } from "../people/live-grant.ts";
import { CatalogItems, ITEM_COLUMNS, type ItemInput, readTitle, soldThroughView } from "./catalog-item.ts";

const PRODUCT = defineTable({
  name: "product",
  key: ["environmentId", "name"],
  columns: {
    ...ITEM_COLUMNS,
    /** The entitlement that a purchase grants: a product or plan name, or `access:<slug>`. */
    key: text(),
    /** Credits that a purchase adds; 0: none. */
    credits: integer(),
  },
});
export type Product = RowOf<typeof PRODUCT>;

export const productView = Type.Object({
  name: Type.String(),
  title: Type.String(),
  key: Type.String(),
  credits: Type.Integer(),
  soldThrough: orNull(soldThroughView),
  version: Type.Integer(),
  createdAt: time,
  updatedAt: time,
});

export function viewProduct(row: Product): Static<typeof productView> {
  return show(productView, row);
}

export const products = new CatalogItems({
  kind: "product",
  table: PRODUCT,
  view: viewProduct,
  codes: {
    notSellable: "product_not_sellable",
    unknown: "product_unknown",
    notSoldHere: "product_not_sold_here",
  },
});

/** A complete product; an absent key is the name, absent credits are 0. */
export interface ProductInput extends ItemInput {
  key?: string | undefined;
  credits?: number | undefined;
}

/**
 * Creates or replaces a product, audited. Throws `invalid_input`, `name_taken` (a plan has the name), `relay_missing`, `version_conflict`, and
 * `key_in_use` for another key while people hold the current one.
 */
export async function saveProduct(
  tx: Writer,
  change: Change,
  name: string,
  input: ProductInput,
): Promise<{ product: Product; created: boolean; warnings: Warning[] }> {
  const { environmentId } = change;
  const { before, item } = await products.prepare(tx, change, name, input);
  const key = readKey(input.key ?? name);
  const last = before?.key ?? (await findKeyBeforeDeletion(tx, environmentId, name));
  if (last !== null && last !== key) await requireFreeKey(tx, change, { name, key: last });
  const title = readTitle(input.title, name);
  const product: Product = { ...item, title, key, credits: readCredits(input.credits ?? 0) };
  await products.save(tx, change, before, product);
  return { product, created: before === null, warnings: await listKeyWarnings(tx, environmentId, product) };
}

/** Deletes a product, audited. Purchases stay valid. Throws `not_found` and `version_conflict`. */
export async function deleteProduct(
  tx: Writer,
  change: Change,
  name: string,
  version?: number,
): Promise<void> {
  await products.delete(tx, change, await products.requireAt(tx, change.environmentId, name, version));
}

/** The most live grants of a key that are checked one by one. */
const MAX_GRANTS_LOOKED_AT = 5_000;

/**
 * Throws `key_in_use` if people hold the current key through this product: purchases, actions and checks would then use the new key, and lose
 * those who hold the old one.
 */
async function requireFreeKey(
  tx: Reader,
  { environmentId, nowMs }: Change,
  { name, key }: Pick<Product, "name" | "key">,
): Promise<void> {
  const held = await tx.get<{ live: number; count: number | null }>(
    `SELECT count(*) AS live, count(*) FILTER (WHERE hangs) AS count FROM (
       SELECT $key = $name
         OR EXISTS (SELECT 1 FROM purchase WHERE purchase.id = source_ref AND item_kind = 'product' AND item = $name) AS hangs
       FROM access_grant INDEXED BY access_grant_by_entitlement
       WHERE environment_id = $environmentId AND entitlement = $key
         AND ${liveSql("$nowMs")} LIMIT $most)`,
    { environmentId, key, nowMs, name, most: MAX_GRANTS_LOOKED_AT + 1 },
  );
  const isMore = held !== null && held.live > MAX_GRANTS_LOOKED_AT;
  const count = held?.count ?? 0;
  if (count === 0 && isMore) {
    throw new Refusal(
      "key_in_use",
      `\`key\` cannot change while more than ${MAX_GRANTS_LOOKED_AT} active grants of ${key} exist, because some can depend on the product ${name}. Create another product with the new key and sell that one.`,
      { details: { grants: held.live } },
    );
  }
  if (count === 0) return;
  const grants = isMore ? `more than ${Math.min(count, MAX_GRANTS_LOOKED_AT)}` : `${count}`;
  const hang =
    count === 1 && !isMore ? `1 active grant of ${key} depends` : `${grants} active grants of ${key} depend`;
  throw new Refusal(
    "key_in_use",
    `\`key\` cannot change while ${hang} on the product ${name}. Revoke them first, with relay people end, or create another product with the new key and sell that one.`,
    { details: { grants: count } },
  );
}

/** Finds the key of a deleted product of this name, so that deleting and recreating it does not bypass `requireFreeKey`. */
async function findKeyBeforeDeletion(
  tx: Reader,
  environmentId: number,
  name: string,
): Promise<string | null> {
  const sql = `SELECT before ->> '$.key' AS key FROM audit WHERE environment_id = ?1 AND target = ?2 AND event_id IS NULL
    AND action = 'product.deleted' ORDER BY seq DESC LIMIT 1`;
  return (await tx.get<{ key: string | null }>(sql, environmentId, `product:${name}`))?.key ?? null;
}

/** The most products in one answer. */
const MAX_WARNINGS = 50;

/** Lists products whose key refers to this name (null: any access slug) although nothing of that name exists. */
export async function listOrphanKeyWarnings(
  tx: Reader,
  environmentId: number,
  name: string | null,
): Promise<Warning[]> {
  const isNamed = name === null ? "substr(key, 1, 7) = 'access:'" : "key = $key";
  const rest = `WHERE environment_id = $environmentId AND name <> key AND ${isNamed} ORDER BY name LIMIT ${MAX_WARNINGS}`;
  const found = await PRODUCT.all(tx, rest, { environmentId, ...(name === null ? {} : { key: name }) });
  const warnings: Warning[] = [];
  for (const product of found)
    for (const { code, message } of await listKeyWarnings(tx, environmentId, product))
      warnings.push({
        code,
        field: `products.${product.name}.key`,
        message: `The product ${product.name}: ${message}`,
      });
  return warnings;
}

async function listKeyWarnings(
  tx: Reader,
  environmentId: number,
  { name, key }: Product,
): Promise<Warning[]> {
  if (key === name) return [];
  const sql = key.startsWith("access:")
    ? "SELECT 1 FROM access_slug WHERE environment_id = ?1 AND slug = substr(?2, 8)"
    : `SELECT 1 FROM product WHERE environment_id = ?1 AND name = ?2
       UNION ALL SELECT 1 FROM plan WHERE environment_id = ?1 AND name = ?2`;
  if ((await tx.get(sql, environmentId, key)) !== null) return [];
  const what = key.startsWith("access:") ? "access slug" : "product or plan";
  const message = `\`key\` names ${key}, and there is no such ${what} in this environment: create it, or give the product another key. Until then, no app can check for the access that a purchase grants.`;
  return [{ code: "key_names_nothing", field: "key", message }];
}

function readKey(key: string): string {
  if (ENTITLEMENT_NAME.test(key)) return key;
  throw new Refusal(
    "invalid_input",
    "`key` is not an entitlement: write a product or plan name, or access:<slug>, in lowercase letters, digits, hyphens and underscores.",
  );
}

function readCredits(credits: number): number {
  if (Number.isInteger(credits) && credits >= 0 && credits <= MAX_CREDIT_LINE) return credits;
  throw new Refusal(
    "invalid_input",
    `\`credits\` is not valid: write an integer from 0 to ${MAX_CREDIT_LINE}, 0 for none.`,
  );
}
