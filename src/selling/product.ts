/**
 * Products: a name, the entitlement (key) and credits a purchase of it grants, and the way it is sold. What was granted stays granted
 * when a product changes or goes: this file never touches a grant, a credit or a receipt.
 */
import { toIso } from "../ground/clock.ts";
import { MAX_CREDIT_LINE } from "../ground/limit.ts";
import { makeNameKey, makePage, type Page, type PageRequest, parseNameKey } from "../ground/page.ts";
import { Refusal } from "../ground/refusal.ts";
import type { Reader, Writer } from "../store/port.ts";
import { writeAudit } from "../watch/audit.ts";
import { readTitle, requireFreeName, requireItemVersion } from "./catalog-name.ts";
import {
  parseSoldThrough,
  readSoldThrough,
  requireSellingRelay,
  type SoldThrough,
  writeSoldThrough,
} from "./sold-through.ts";

export interface Product {
  name: string;
  title: string;
  /** The entitlement a purchase grants: a product or plan name, or `access:<slug>`. */
  key: string;
  /** Credits a purchase adds; 0 for none. */
  credits: number;
  soldThrough: SoldThrough | null;
  version: number;
  createdAt: number;
  updatedAt: number;
}

interface ProductView extends Omit<Product, "createdAt" | "updatedAt"> {
  createdAt: string;
  updatedAt: string;
}

/** A whole product: what is absent takes its default (title and key: the name; credits: 0; soldThrough: none). */
export interface ProductInput {
  title?: string | undefined;
  key?: string | undefined;
  credits?: number | undefined;
  /** As written; checked here. */
  soldThrough?: unknown;
  /** The version it was read at; absent overwrites whatever is there. */
  version?: number | undefined;
}

/** Where and by whom a catalog change is made; `by` in words: `key:<id>`, `owner:<email>`, `command line`. */
export interface CatalogChange {
  environmentId: number;
  by: string;
  nowMs: number;
}

type ProductRow = Omit<Product, "soldThrough"> & { soldThrough: string | null };

const COLUMNS = `name, title, key, credits, sold_through AS soldThrough, version, created_at AS createdAt,
  updated_at AS updatedAt`;
const ENTITLEMENT = /^(access:)?[a-z][a-z0-9_-]{0,62}$/;

/** The product as the API shows it. */
export function viewProduct(product: Product): ProductView {
  return { ...product, createdAt: toIso(product.createdAt), updatedAt: toIso(product.updatedAt) };
}

export async function findProduct(tx: Reader, environmentId: number, name: string): Promise<Product | null> {
  const sql = `SELECT ${COLUMNS} FROM product WHERE environment_id = ?1 AND name = ?2`;
  const row = await tx.get<ProductRow>(sql, environmentId, name);
  return row === null ? null : toProduct(row);
}

/** As `findProduct`; refuses with `not_found`. */
export async function requireProduct(tx: Reader, environmentId: number, name: string): Promise<Product> {
  const product = await findProduct(tx, environmentId, name);
  if (product !== null) return product;
  throw new Refusal(
    "not_found",
    "No product of this name exists here; the list of products shows which ones do.",
  );
}

/** Every product, newest first. */
export async function listProducts(
  tx: Reader,
  environmentId: number,
  request: PageRequest,
): Promise<Page<ProductView>> {
  const after = parseNameKey(request.after);
  const sql = `SELECT ${COLUMNS} FROM product
    WHERE environment_id = ?1 AND (?2 IS NULL OR created_at < ?2 OR (created_at = ?2 AND name > ?3))
    ORDER BY created_at DESC, name LIMIT ?4`;
  const rows = await tx.all<ProductRow>(sql, environmentId, after.createdAt, after.name, request.limit + 1);
  return makePage(rows, request, makeNameKey, (row) => viewProduct(toProduct(row)));
}

/**
 * Creates or replaces a product and audits it. Refuses with `invalid_input`, `name_taken` (a plan has the name), `relay_missing`,
 * `version_conflict`, and with `key_in_use` another key while people hold the one it has. `warnings`: one sentence each.
 */
export async function saveProduct(
  tx: Writer,
  change: CatalogChange,
  name: string,
  input: ProductInput,
): Promise<{ product: Product; created: boolean; warnings: string[] }> {
  const { environmentId, nowMs } = change;
  await requireFreeName(tx, environmentId, "product", name);
  const before = await findProduct(tx, environmentId, name);
  requireItemVersion("product", name, before?.version ?? null, input.version);
  const soldThrough = parseSoldThrough(input.soldThrough);
  await requireSellingRelay(tx, environmentId, soldThrough);
  const key = readKey(input.key ?? name);
  const last = before?.key ?? (await findKeyBeforeDeletion(tx, environmentId, name));
  if (last !== null && last !== key) await requireFreeKey(tx, change, { name, key: last });
  const product: Product = {
    name,
    title: readTitle(input.title, name),
    key,
    credits: readCredits(input.credits ?? 0),
    soldThrough,
    version: (before?.version ?? 0) + 1,
    createdAt: before?.createdAt ?? nowMs,
    updatedAt: nowMs,
  };
  await tx.run(
    `INSERT INTO product (environment_id, name, title, key, credits, sold_through, version, created_at, updated_at)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
     ON CONFLICT (environment_id, name) DO UPDATE SET title = excluded.title, key = excluded.key,
       credits = excluded.credits, sold_through = excluded.sold_through, version = excluded.version,
       updated_at = excluded.updated_at`,
    environmentId,
    name,
    product.title,
    product.key,
    product.credits,
    writeSoldThrough(soldThrough),
    product.version,
    product.createdAt,
    nowMs,
  );
  await auditProduct(tx, change, before, product);
  return { product, created: before === null, warnings: await warnOfKey(tx, environmentId, product) };
}

/** Deletes a product and audits it; what people bought stays theirs. Refuses with `not_found` and `version_conflict`. */
export async function deleteProduct(
  tx: Writer,
  change: CatalogChange,
  name: string,
  version?: number,
): Promise<void> {
  const before = await requireProduct(tx, change.environmentId, name);
  requireItemVersion("product", name, before.version, version);
  await tx.run("DELETE FROM product WHERE environment_id = ?1 AND name = ?2", change.environmentId, name);
  await auditProduct(tx, change, before, null);
}

/** Live grants of a key that are looked at one by one. */
const MAX_GRANTS_LOOKED_AT = 5_000;

/** A purchase, an action and a check name the product and mean its key: those who hold the old one would fall between them. */
async function requireFreeKey(
  tx: Reader,
  { environmentId, nowMs }: CatalogChange,
  { name, key }: Pick<Product, "name" | "key">,
): Promise<void> {
  const held = await tx.get<{ live: number; count: number | null }>(
    `SELECT count(*) AS live, sum(hangs) AS count FROM (
       SELECT ?2 = ?4 OR EXISTS (SELECT 1 FROM purchase WHERE purchase.id = source_ref AND item_kind = 'product' AND item = ?4) AS hangs
       FROM access_grant INDEXED BY access_grant_by_entitlement
       WHERE environment_id = ?1 AND entitlement = ?2 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ?3) LIMIT ?5)`,
    environmentId,
    key,
    nowMs,
    name,
    MAX_GRANTS_LOOKED_AT + 1,
  );
  const isMore = held !== null && held.live > MAX_GRANTS_LOOKED_AT;
  const count = held?.count ?? 0;
  if (count === 0 && isMore) {
    throw new Refusal(
      "key_in_use",
      `\`key\` cannot change while more than ${MAX_GRANTS_LOOKED_AT} live grants of ${key} exist, of which some may hang on the product ${name}: make another product with the new key and sell that one.`,
      { details: { grants: held.live } },
    );
  }
  if (count === 0) return;
  const grants = isMore ? `more than ${Math.min(count, MAX_GRANTS_LOOKED_AT)}` : `${count}`;
  const hang =
    count === 1 && !isMore ? `1 live grant of ${key} hangs` : `${grants} live grants of ${key} hang`;
  throw new Refusal(
    "key_in_use",
    `\`key\` cannot change while ${hang} on the product ${name}: revoke them first, or make another product with the new key and sell that one.`,
    { details: { grants: count } },
  );
}

/** The key of a product that was deleted and is made again under its name: deleting it is no way around `requireFreeKey`. */
async function findKeyBeforeDeletion(
  tx: Reader,
  environmentId: number,
  name: string,
): Promise<string | null> {
  const sql = `SELECT before ->> '$.key' AS key FROM audit WHERE environment_id = ?1 AND target = ?2 AND event_id IS NULL
    AND action = 'product.deleted' ORDER BY seq DESC LIMIT 1`;
  return (await tx.get<{ key: string | null }>(sql, environmentId, `product:${name}`))?.key ?? null;
}

async function warnOfKey(tx: Reader, environmentId: number, { name, key }: Product): Promise<string[]> {
  if (key === name) return [];
  const sql = key.startsWith("access:")
    ? "SELECT 1 FROM access_slug WHERE environment_id = ?1 AND slug = substr(?2, 8)"
    : `SELECT 1 FROM product WHERE environment_id = ?1 AND name = ?2
       UNION ALL SELECT 1 FROM plan WHERE environment_id = ?1 AND name = ?2`;
  if ((await tx.get(sql, environmentId, key)) !== null) return [];
  const what = key.startsWith("access:") ? "access slug" : "product or plan";
  return [
    `\`key\` names ${key}, and there is no such ${what} here yet: create it, or nothing can ask for what a purchase grants.`,
  ];
}

async function auditProduct(
  tx: Writer,
  change: CatalogChange,
  before: Product | null,
  after: Product | null,
): Promise<void> {
  await writeAudit(tx, {
    environmentId: change.environmentId,
    atMs: change.nowMs,
    actor: change.by,
    action: before === null ? "product.created" : after === null ? "product.deleted" : "product.changed",
    target: `product:${(after ?? before)?.name}`,
    before: before === null ? null : viewProduct(before),
    after: after === null ? null : viewProduct(after),
  });
}

function readKey(key: string): string {
  if (ENTITLEMENT.test(key)) return key;
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

function toProduct(row: ProductRow): Product {
  return { ...row, soldThrough: readSoldThrough(row.soldThrough) };
}
