/**
 * What files say, put into an environment: a relay by its definition, and the items of a catalog. What the catalog does not name is left
 * alone, because a collection holds records and a plan has subscribers; those are deleted in the dashboard. Nothing here reads a file.
 */

import { type Actor, actorWords } from "../account/api-key.ts";
import type { Environment } from "../account/environment.ts";
import type { Clock } from "../ground/clock.ts";
import { writeJson } from "../ground/json.ts";
import { Refusal, type Warning } from "../ground/refusal.ts";
import { findAccessSlug, putAccessSlug } from "../people/entitlement.ts";
import { putCollection, viewCollection } from "../records/collection.ts";
import type { Definition } from "../relay/definition-shape.ts";
import { findRelay, type RelayContext } from "../relay/relay.ts";
import { createRelay, deleteRelay, updateRelay } from "../relay/relay-save.ts";
import { isSoldAs, type SoldThrough } from "../selling/catalog-item.ts";
import { plans, savePlan } from "../selling/plan.ts";
import { products, saveProduct } from "../selling/product.ts";
import type { Store, Writer } from "../store/port.ts";
import { type Change, writeAudit } from "../watch/audit.ts";
import type { Catalog } from "./catalog-file.ts";

/** The environment that files are applied to, and by whom. */
export interface ApplyDeps extends Omit<RelayContext, "nowMs"> {
  store: Store;
  environment: Environment;
  actor: Actor;
  clock: Clock;
}

/** The context of a save made now. */
export function contextOf(deps: ApplyDeps): RelayContext {
  return { ...deps, nowMs: deps.clock.now() };
}

type AppliedRelay =
  /** `warnings`: without those about what the relay names, which may be in the catalog that is applied after it. */
  | { outcome: "created" | "changed"; warnings: Warning[] }
  | { outcome: "same" }
  /** The dashboard's edit is newer than the file. */
  | { outcome: "kept" }
  | { outcome: "refused"; message: string };

interface WrittenRelay {
  definition: Definition;
  secret: string | null;
  signingSecret: string | null;
  /** When the file was written, where a newer edit in the dashboard shall win; null where the file wins. */
  writtenMs: number | null;
}

const FROM_FILE = { kind: "file", synced: false } as const;

/** Creates or changes the relay of a definition file. */
export async function applyRelay(deps: ApplyDeps, written: WrittenRelay): Promise<AppliedRelay> {
  const { definition, secret, signingSecret, writtenMs } = written;
  const { name } = definition;
  try {
    return await deps.store.write("dashboard", async (tx): Promise<AppliedRelay> => {
      const context = contextOf(deps);
      const row = await findRelay(tx, context.environment.id, name);
      if (row === null) {
        const made = await createRelay(tx, context, { definition, secret, signingSecret, origin: FROM_FILE });
        return { outcome: "created", warnings: made.warnings };
      }
      if (writeJson(row.definition) === writeJson(definition)) return { outcome: "same" };
      if (writtenMs !== null && row.originKind === "dashboard" && row.originAt > writtenMs) {
        return { outcome: "kept" };
      }
      const change = { definition, version: row.version, origin: FROM_FILE };
      const saved = await updateRelay(tx, context, name, change);
      return { outcome: "changed", warnings: saved.warnings };
    });
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    return { outcome: "refused", message: error.message };
  }
}

/** Deletes the relay whose file is gone; one that the dashboard made or edited stays. */
export async function removeRelay(deps: ApplyDeps, name: string): Promise<"deleted" | "kept" | "absent"> {
  return await deps.store.write("dashboard", async (tx) => {
    const row = await findRelay(tx, deps.environment.id, name);
    if (row === null) return "absent";
    if (row.originKind !== "file") return "kept";
    await deleteRelay(tx, contextOf(deps), name);
    return "deleted";
  });
}

/** What was done and what was refused, one sentence each. */
export interface AppliedCatalog {
  done: string[];
  refused: string[];
}

/** Applies one item; answers what was done, one sentence each. */
type Step = (tx: Writer, change: Change) => Promise<string[]>;

/**
 * Collections and access: what relays write to and grant. Applied before the relays; so is letting go of a relay that is gone, because a
 * relay is not saved while what it sells is bound to one that does not exist.
 */
export function applyStock(deps: ApplyDeps, catalog: Catalog): Promise<AppliedCatalog> {
  return applySteps(deps, [
    ...catalog.collections.map((collection): [string, Step] => [
      `collections.${collection.name}`,
      async (tx, change) => {
        const { environmentId, nowMs } = change;
        const { before, after } = await putCollection(tx, environmentId, collection, nowMs);
        if (before?.version === after.version) return [];
        const done = before === null ? "created" : "changed";
        await writeAudit(tx, {
          ...change,
          action: `collection.${done}`,
          target: `collection:${after.name}`,
          before: before === null ? null : viewCollection(before),
          after: viewCollection(after),
        });
        return [`collection ${after.name} ${done}`];
      },
    ]),
    ...catalog.access.map((entry): [string, Step] => [
      `access.${entry.slug}`,
      async (tx, change) => {
        const { environmentId, nowMs } = change;
        const { slug, title = slug } = entry;
        const standing = await findAccessSlug(tx, environmentId, slug);
        if (standing?.title === title) return [];
        await putAccessSlug(tx, environmentId, entry, nowMs);
        await writeAudit(tx, {
          ...change,
          action: "access.changed",
          target: `access:${slug}`,
          before: standing === null ? null : { slug, title: standing.title },
          after: { slug, title },
        });
        return [`access:${slug} ${standing === null ? "created" : "changed"}`];
      },
    ]),
    ...catalog.products.map(({ name, soldThrough }) =>
      letGo("products", products, name, soldThrough, (tx, change, { title, key, credits }) =>
        saveProduct(tx, change, name, { title, key, credits }),
      ),
    ),
    ...catalog.plans.map(({ name, soldThrough }) =>
      letGo("plans", plans, name, soldThrough, (tx, change, { title, isDefault }) =>
        savePlan(tx, change, name, { title, default: isDefault }),
      ),
    ),
  ]);
}

/** Saves an item without its relay where that is gone and the catalog sells the item another way. */
function letGo<Row extends { soldThrough: SoldThrough | null }>(
  section: string,
  items: { find(tx: Writer, environmentId: number, name: string): Promise<Row | null> },
  name: string,
  wanted: unknown,
  save: (tx: Writer, change: Change, standing: Row) => Promise<unknown>,
): [string, Step] {
  const step: Step = async (tx, change) => {
    const standing = await items.find(tx, change.environmentId, name);
    if (standing?.soldThrough?.kind !== "relay" || isSoldAs(standing.soldThrough, wanted)) return [];
    if ((await findRelay(tx, change.environmentId, standing.soldThrough.relay)) === null)
      await save(tx, change, standing);
    return [];
  };
  return [`${section}.${name}`, step];
}

/** Products and plans, which may name a relay as the way they are sold. Applied after the relays. */
export function applyOffers(deps: ApplyDeps, catalog: Catalog): Promise<AppliedCatalog> {
  // The new default takes over before the old one is saved without it.
  const inOrder = [...catalog.plans].sort(
    (one, other) => Number(other.default === true) - Number(one.default === true),
  );
  return applySteps(deps, [
    ...catalog.products.map((product): [string, Step] => [
      `products.${product.name}`,
      async (tx, change) => {
        const { name, title = name, key = name, credits = 0, soldThrough } = product;
        const standing = await products.find(tx, change.environmentId, name);
        const same = standing?.title === title && standing.key === key && standing.credits === credits;
        if (same && isSoldAs(standing.soldThrough, soldThrough)) return [];
        const saved = await saveProduct(tx, change, name, { title, key, credits, soldThrough });
        const warnings = saved.warnings.map(({ message }) => `product ${name}: warning: ${message}`);
        return [`product ${name} ${saved.created ? "created" : "changed"}`, ...warnings];
      },
    ]),
    ...inOrder.map((plan): [string, Step] => [
      `plans.${plan.name}`,
      async (tx, change) => {
        const { name, title = name, soldThrough } = plan;
        const standing = await plans.find(tx, change.environmentId, name);
        const isDefault = plan.default ?? standing?.isDefault;
        const same = standing?.title === title && standing.isDefault === isDefault;
        if (same && isSoldAs(standing.soldThrough, soldThrough)) return [];
        const { created } = await savePlan(tx, change, name, { title, default: isDefault, soldThrough });
        return [`plan ${name} ${created ? "created" : "changed"}`];
      },
    ]),
  ]);
}

/** All in one transaction, each undone alone when it is refused. */
async function applySteps(
  { store, environment, actor, clock }: ApplyDeps,
  steps: readonly [place: string, Step][],
): Promise<AppliedCatalog> {
  if (steps.length === 0) return { done: [], refused: [] };
  const change = { environmentId: environment.id, by: actorWords(actor), nowMs: clock.now() };
  return await store.write("dashboard", async (tx) => {
    const outcome: AppliedCatalog = { done: [], refused: [] };
    for (const [place, step] of steps) {
      try {
        outcome.done.push(...(await tx.attempt(() => step(tx, change))));
      } catch (error) {
        if (!(error instanceof Refusal)) throw error;
        outcome.refused.push(`${place}: ${error.message}`);
      }
    }
    return outcome;
  });
}
