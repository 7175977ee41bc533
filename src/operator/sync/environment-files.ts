/** The content of an environment as definition files and a catalog file, for promote and pull. */

import type { Json, JsonObject } from "../../base/json.ts";
import { writeCanonicalJson, writeJson } from "../../base/json.ts";
import { MAX_PAGE_SIZE, type Page, type PageRequest, readCursor } from "../../base/page.ts";
import { Refusal, rejectDefinition } from "../../base/refusal.ts";
import { placeProblems } from "../../base/shape.ts";
import { utf8Bytes } from "../../base/text.ts";
import type { Environment } from "../../platform/account/environment.ts";
import { type Checked, checkDefinition } from "../../rules/relay/definition.ts";
import { listRelayRows } from "../../rules/relay/relay.ts";
import { listAccessSlugs } from "../../shop/people/entitlement.ts";
import { listCollections } from "../../shop/records/collection.ts";
import { plans } from "../../shop/selling/plan.ts";
import { products } from "../../shop/selling/product.ts";
import { yieldToEventLoop } from "../../store/index-scan.ts";
import type { Reader, Store } from "../../store/port.ts";
import { checkCatalog } from "./catalog-file.ts";
import { hashCatalog } from "./catalog-item.ts";
import { type Files, MAX_SYNC_BYTES, type Plan, readPlan } from "./plan.ts";

interface StoredFiles {
  /** The relays, sorted by name. */
  relays: readonly { name: string; version: number; definition: Json }[];
  /** The catalog, as `catalog.json` has it. */
  catalog: JsonObject;
  /** A hash of everything, with each version. */
  stamp: string;
}

/** Reads everything. Throws `body_too_large` for more than one sync may have. */
async function readStoredFiles(tx: Reader, environmentId: number): Promise<StoredFiles> {
  const rows = await listRelayRows(tx, environmentId);
  const relays = rows
    .map(({ name, version, definition }) => ({ name, version, definition }))
    .sort((one, other) => (one.name < other.name ? -1 : 1));
  const catalog = await readCatalog(tx, environmentId);
  requireSyncSize(utf8Bytes(writeJson({ relays: relays.map(({ definition }) => definition), catalog })));
  const all = writeCanonicalJson({ relays, catalog: await hashCatalog(tx, environmentId) });
  const stamp = new Bun.CryptoHasher("sha256").update(all).digest("hex");
  return { relays, catalog, stamp };
}

/** Reads the catalog in the form of `catalog.json`. Throws `body_too_large` for more than one sync may have. */
async function readCatalog(tx: Reader, environmentId: number): Promise<JsonObject> {
  const collections = await readAll((request) => listCollections(tx, environmentId, request));
  const sold = await readAll((request) => products.list(tx, environmentId, request));
  const tiers = await readAll((request) => plans.list(tx, environmentId, request));
  const access = await listAccessSlugs(tx, environmentId);
  return {
    ...section(
      "collections",
      collections.map(({ name, kind, fields }) => [name, { kind, fields: fields as JsonObject }]),
    ),
    ...section(
      "access",
      access.map(({ slug, title }) => [slug, { title }]),
    ),
    ...section(
      "products",
      sold.map(({ name, title, key, credits, soldThrough }) => [
        name,
        { title, key, credits, ...(soldThrough === null ? {} : { soldThrough }) },
      ]),
    ),
    ...section(
      "plans",
      tiers.map(({ name, title, default: isDefault, soldThrough }) => [
        name,
        { title, default: isDefault, ...(soldThrough === null ? {} : { soldThrough }) },
      ]),
    ),
  };
}

/** Returns the catalog with its version, which every save of an item changes. */
export async function showCatalog(
  tx: Reader,
  environmentId: number,
): Promise<{ catalog: JsonObject; version: string }> {
  const catalog = await readCatalog(tx, environmentId);
  requireSyncSize(utf8Bytes(writeJson(catalog)));
  return { catalog, version: await hashCatalog(tx, environmentId) };
}

/** Returns the content as a set of files. Relays that break one of today's rules are listed separately. */
export async function readEnvironmentFiles(
  store: Store,
  { id: environmentId, name: environment }: Pick<Environment, "id" | "name">,
  nowMs: number,
): Promise<Files> {
  const { relays, catalog, stamp } = await store.read((tx) => readStoredFiles(tx, environmentId));
  const checkedRelays: Checked[] = [];
  const invalidRelays: { name: string; message: string }[] = [];
  for (const { name, definition } of relays) {
    const checked = checkDefinition(definition, nowMs);
    if ("problems" in checked) {
      const message = checked.problems.slice(0, MAX_SHOWN_PROBLEMS).map((problem) => problem.message);
      invalidRelays.push({ name, message: message.join(" ") });
    } else checkedRelays.push(checked);
    await yieldToEventLoop();
  }
  const read = checkCatalog(catalog);
  if ("problems" in read) throw rejectDefinition(placeProblems("catalog", read.problems));
  const source = { environmentId, environment, stamp, invalidRelays };
  return { relays: checkedRelays, catalog: read.catalog, prune: false, seen: null, commit: null, source };
}

/** The most problems of one relay. */
const MAX_SHOWN_PROBLEMS = 3;

/** Returns the plan of this id. Throws `version_conflict` where either side changed since it was read. */
export async function requirePlan(
  tx: Reader,
  environmentId: number,
  files: Files,
  planId: string,
): Promise<Plan> {
  const { source } = files;
  const isSourceSame =
    source === null || (await readStoredFiles(tx, source.environmentId)).stamp === source.stamp;
  const plan = await readPlan(tx, environmentId, files);
  if (plan.id === planId && isSourceSame) return plan;
  throw new Refusal(
    "version_conflict",
    "The files or the environment changed since the plan was read, and nothing was applied: read the plan again and apply that one.",
    { details: { plan: plan.id } },
  );
}

/** Throws `body_too_large`. */
export function requireSyncSize(bytes: number): void {
  if (bytes <= MAX_SYNC_BYTES) return;
  throw new Refusal(
    "body_too_large",
    `The files are ${bytes} bytes together, and one sync carries at most ${MAX_SYNC_BYTES}: make them smaller, or split the app.`,
  );
}

/** Reads a complete list, sorted by name. Throws early for a list that is too long for a sync. */
async function readAll<Item extends { name: string }>(
  list: (request: PageRequest) => Promise<Page<Item>>,
): Promise<Item[]> {
  const items: Item[] = [];
  for (let after: string | null = null; ; ) {
    const page = await list({ limit: MAX_PAGE_SIZE, after });
    items.push(...page.items);
    requireSyncSize(items.length * MIN_ITEM_BYTES);
    if (page.next === null) break;
    after = readCursor(page.next);
  }
  return items.sort((one, other) => (one.name < other.name ? -1 : 1));
}

/** The size of the shortest item in a catalog file. */
const MIN_ITEM_BYTES = 30;

function section(name: string, entries: readonly (readonly [string, JsonObject])[]): JsonObject {
  return entries.length === 0 ? {} : { [name]: Object.fromEntries(entries) };
}
