/**
 * What files say, put into the environment of local development, each by itself: what is refused holds nothing else up. Nothing here reads a file.
 */

import { type Actor, actorWords } from "../account/api-key.ts";
import type { Environment } from "../account/environment.ts";
import type { Clock } from "../ground/clock.ts";
import { writeJson } from "../ground/json.ts";
import { Refusal, tellWarnings, type Warning } from "../ground/refusal.ts";
import type { Definition } from "../relay/definition-shape.ts";
import { findRelay, type RelayContext } from "../relay/relay.ts";
import { createRelay, deleteRelay, updateRelay } from "../relay/relay-save.ts";
import type { Store, Writer } from "../store/port.ts";
import type { Change } from "../watch/audit.ts";
import type { Catalog } from "./catalog-file.ts";
import { type Item, isSame, itemWords, listLetGoes, listOffers, listStock } from "./catalog-item.ts";

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

/** Collections and access, and letting go of relays that are gone; applied before the relays. */
export function applyStock(deps: ApplyDeps, catalog: Catalog): Promise<AppliedCatalog> {
  return applySteps(deps, [...listStock(catalog).map(stepOf), ...listLetGoes(catalog)]);
}

/** Products and plans; applied after the relays. */
export function applyOffers(deps: ApplyDeps, catalog: Catalog): Promise<AppliedCatalog> {
  return applySteps(deps, listOffers(catalog).map(stepOf));
}

/** Applies one item; answers what was done, one sentence each. */
interface Step {
  place: string;
  run(tx: Writer, change: Change): Promise<string[]>;
}

function stepOf(item: Item): Step {
  return {
    place: item.place,
    async run(tx, change) {
      const standing = await item.find(tx, change.environmentId);
      if (standing !== null && isSame(standing, item.want(standing))) return [];
      const warnings = await item.save(tx, change);
      const words = itemWords(item);
      return [
        `${words} ${standing === null ? "created" : "changed"}`,
        ...tellWarnings(warnings).map((message) => `${words}: warning: ${message}`),
      ];
    },
  };
}

/** All in one transaction, each undone alone when it is refused. */
async function applySteps(
  { store, environment, actor, clock }: ApplyDeps,
  steps: readonly Step[],
): Promise<AppliedCatalog> {
  if (steps.length === 0) return { done: [], refused: [] };
  const change = { environmentId: environment.id, by: actorWords(actor), nowMs: clock.now() };
  return await store.write("dashboard", async (tx) => {
    const outcome: AppliedCatalog = { done: [], refused: [] };
    for (const { place, run } of steps) {
      try {
        outcome.done.push(...(await tx.attempt(() => run(tx, change))));
      } catch (error) {
        if (!(error instanceof Refusal)) throw error;
        outcome.refused.push(`${place}: ${error.message}`);
      }
    }
    return outcome;
  });
}
