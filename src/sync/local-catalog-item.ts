/**
 * The items of a catalog put into the local environment: what it names is created or changed. What it does not name is left alone, because a
 * collection holds records and a plan has subscribers; those are deleted in the dashboard.
 */
import { actorWords, COMMAND_LINE } from "../account/owner.ts";
import { Refusal } from "../ground/refusal.ts";
import { findAccessSlug, putAccessSlug } from "../people/entitlement.ts";
import { putCollection, viewCollection } from "../records/collection.ts";
import { findRelay } from "../relay/relay.ts";
import { type CatalogChange, isSoldAs, type SoldThrough } from "../selling/catalog-item.ts";
import { plans, savePlan } from "../selling/plan.ts";
import { products, saveProduct } from "../selling/product.ts";
import type { Writer } from "../store/port.ts";
import { writeAudit } from "../watch/audit.ts";
import type { Catalog } from "./catalog-file.ts";
import type { LocalParts } from "./local-parts.ts";

/** What was done and what was refused, one sentence each. */
export interface CatalogOutcome {
  done: string[];
  refused: string[];
}

type Step = (tx: Writer, change: CatalogChange, outcome: CatalogOutcome) => Promise<void>;

/**
 * Collections and access: what relays write to and grant. Applied before the relays; so is letting go of a relay that is gone, because a
 * relay is not saved while what it sells is bound to one that does not exist.
 */
export function applyStock(parts: LocalParts, catalog: Catalog): Promise<CatalogOutcome> {
  return applySteps(parts, [
    ...catalog.collections.map((collection): [string, Step] => [
      `collections.${collection.name}`,
      async (tx, change, outcome) => {
        const { before, after } = await putCollection(tx, change.environmentId, collection, change.nowMs);
        if (before?.version === after.version) return;
        outcome.done.push(`collection ${after.name} ${before === null ? "created" : "changed"}`);
        await writeAudit(tx, {
          environmentId: change.environmentId,
          atMs: change.nowMs,
          actor: change.by,
          action: before === null ? "collection.created" : "collection.changed",
          target: `collection:${after.name}`,
          before: before === null ? null : viewCollection(before),
          after: viewCollection(after),
        });
      },
    ]),
    ...catalog.access.map((entry): [string, Step] => [
      `access.${entry.slug}`,
      async (tx, change, outcome) => {
        const standing = await findAccessSlug(tx, change.environmentId, entry.slug);
        if (standing?.title === (entry.title ?? entry.slug)) return;
        await putAccessSlug(tx, change.environmentId, entry, change.nowMs);
        await writeAudit(tx, {
          environmentId: change.environmentId,
          atMs: change.nowMs,
          actor: change.by,
          action: "access.changed",
          target: `access:${entry.slug}`,
          before: standing === null ? null : { slug: entry.slug, title: standing.title },
          after: { slug: entry.slug, title: entry.title ?? entry.slug },
        });
        outcome.done.push(`access:${entry.slug} ${standing === null ? "created" : "changed"}`);
      },
    ]),
    ...catalog.products.map(({ name, soldThrough }): [string, Step] => [
      `products.${name}`,
      async (tx, change) => {
        const standing = await products.find(tx, change.environmentId, name);
        if (standing === null || !(await isLost(tx, change, standing.soldThrough, soldThrough))) return;
        const { title, key, credits } = standing;
        await saveProduct(tx, change, name, { title, key, credits });
      },
    ]),
    ...catalog.plans.map(({ name, soldThrough }): [string, Step] => [
      `plans.${name}`,
      async (tx, change) => {
        const standing = await plans.find(tx, change.environmentId, name);
        if (standing === null || !(await isLost(tx, change, standing.soldThrough, soldThrough))) return;
        await savePlan(tx, change, name, { title: standing.title, default: standing.isDefault });
      },
    ]),
  ]);
}

/** Whether what is sold through a relay that is gone shall be sold another way. */
async function isLost(
  tx: Writer,
  { environmentId }: CatalogChange,
  standing: SoldThrough | null,
  wanted: unknown,
): Promise<boolean> {
  if (standing?.kind !== "relay" || isSoldAs(standing, wanted)) return false;
  return (await findRelay(tx, environmentId, standing.relay)) === null;
}

/** Products and plans, which may name a relay as the way they are sold. Applied after the relays. */
export function applyOffers(parts: LocalParts, catalog: Catalog): Promise<CatalogOutcome> {
  // The new default takes over before the old one is saved without it.
  const inOrder = [...catalog.plans].sort(
    (one, other) => Number(other.default === true) - Number(one.default === true),
  );
  return applySteps(parts, [
    ...catalog.products.map((product): [string, Step] => [
      `products.${product.name}`,
      async (tx, change, outcome) => {
        const { name, title = name, key = name, credits = 0, soldThrough } = product;
        const standing = await products.find(tx, change.environmentId, name);
        const same =
          standing?.title === title &&
          standing.key === key &&
          standing.credits === credits &&
          isSoldAs(standing.soldThrough, soldThrough);
        if (same) return;
        const saved = await saveProduct(tx, change, name, { title, key, credits, soldThrough });
        outcome.done.push(`product ${name} ${saved.created ? "created" : "changed"}`);
        outcome.done.push(...saved.warnings.map((warning) => `product ${name}: warning: ${warning}`));
      },
    ]),
    ...inOrder.map((plan): [string, Step] => [
      `plans.${plan.name}`,
      async (tx, change, outcome) => {
        const { name, title = name, soldThrough } = plan;
        const standing = await plans.find(tx, change.environmentId, name);
        const isDefault = plan.default ?? standing?.isDefault;
        const same =
          standing?.title === title &&
          standing.isDefault === isDefault &&
          isSoldAs(standing.soldThrough, soldThrough);
        if (same) return;
        const { created } = await savePlan(tx, change, name, { title, default: isDefault, soldThrough });
        outcome.done.push(`plan ${name} ${created ? "created" : "changed"}`);
      },
    ]),
  ]);
}

/** All in one transaction, each undone alone when it is refused. */
async function applySteps(
  parts: LocalParts,
  steps: readonly [place: string, Step][],
): Promise<CatalogOutcome> {
  if (steps.length === 0) return { done: [], refused: [] };
  const change = {
    environmentId: parts.environment.id,
    by: actorWords(COMMAND_LINE),
    nowMs: parts.clock.now(),
  };
  return await parts.store.write("dashboard", async (tx) => {
    const outcome: CatalogOutcome = { done: [], refused: [] };
    for (const [place, step] of steps) {
      try {
        await tx.attempt(() => step(tx, change, outcome));
      } catch (error) {
        if (!(error instanceof Refusal)) throw error;
        outcome.refused.push(`${place}: ${error.message}`);
      }
    }
    return outcome;
  });
}
