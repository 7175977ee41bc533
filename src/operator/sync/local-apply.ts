/** Applies files to the environment of local development, each by itself: a rejected file does not stop the others. Reads no file. */

import type { Clock } from "../../base/clock.ts";
import { isJsonObject, type JsonObject, parseJson, writeJson } from "../../base/json.ts";
import { listMessages, Refusal, type Warning } from "../../base/refusal.ts";
import { type Actor, formatActor } from "../../platform/account/api-key.ts";
import type { Environment } from "../../platform/account/environment.ts";
import type { Change } from "../../platform/audit/audit.ts";
import { warnLostSpace } from "../../rules/relay/customer-space.ts";
import type { Definition } from "../../rules/relay/definition-shape.ts";
import { findRelay, type RelayRow, relayTarget } from "../../rules/relay/relay.ts";
import { listSoldThroughWarnings } from "../../rules/relay/relay-reference.ts";
import { createRelay, deleteRelay, type UpdateContext, updateRelay } from "../../rules/relay/relay-save.ts";
import type { Reader, Store, Writer } from "../../store/port.ts";
import type { Catalog } from "./catalog-file.ts";
import {
  findItem,
  formatItem,
  type Item,
  isEqual,
  listDetachments,
  listOffers,
  listResources,
} from "./catalog-item.ts";
import { findLastChange } from "./deployed-state.ts";
import { deleteSynced, findSynced, matchesSynced, recordSynced, syncTarget } from "./synced.ts";

/** The environment that files are applied to, and the actor. */
export interface ApplyDeps extends Omit<UpdateContext, "nowMs"> {
  store: Store;
  environment: Environment;
  actor: Actor;
  clock: Clock;
}

/** Makes the context of a save at this moment. */
export function makeSaveContext(deps: ApplyDeps): UpdateContext {
  return { ...deps, nowMs: deps.clock.now() };
}

type AppliedRelay =
  /** `warnings` leave out what the relay names, because the catalog is applied after it. */
  | { outcome: "created"; warnings: Warning[] }
  /** `overwritesEdit`: the dashboard's edit is older and was in no file. Now only the audit has it. */
  | { outcome: "changed"; warnings: Warning[]; overwritesEdit: boolean }
  | { outcome: "same" }
  /** The dashboard's edit must be written to the file. `newer`: the file was edited too, and the dashboard's edit is newer. */
  | { outcome: "behind"; newer: boolean }
  /** The dashboard deleted the relay, and its file has not changed since. */
  | { outcome: "deleted" }
  | { outcome: "refused"; message: string };

interface WrittenRelay {
  definition: Definition;
  secret: string | null;
  signingSecret: string | null;
  /** The time when the file was written. The newer of two edits wins. */
  writtenMs: number;
}

const FROM_FILE = { kind: "file", synced: false } as const;

/** Creates or changes the relay of a definition file. The last common content tells which side changed. */
export async function applyRelay(deps: ApplyDeps, written: WrittenRelay): Promise<AppliedRelay> {
  const { definition, secret, signingSecret, writtenMs } = written;
  const { name } = definition;
  try {
    return await deps.store.write("dashboard", async (tx): Promise<AppliedRelay> => {
      const context = makeSaveContext(deps);
      const row = await findRelay(tx, context.environment.id, name);
      const fileContent = writeJson(definition);
      const base = (await findSynced(tx, context.environment.id, relayTarget(name)))?.content ?? null;
      if (row === null) {
        if (base === fileContent) return { outcome: "deleted" };
        const made = await createRelay(tx, context, { definition, secret, signingSecret, origin: FROM_FILE });
        await recordSyncedRelay(tx, deps, definition);
        return { outcome: "created", warnings: made.warnings };
      }
      const storedContent = writeJson(row.definition);
      if (storedContent === fileContent) {
        if (base !== fileContent) await recordSyncedRelay(tx, deps, definition);
        return { outcome: "same" };
      }
      const isNewer = row.originKind === "dashboard" && row.originAt > writtenMs;
      const moved = base === null ? isNewer : base !== storedContent;
      if (moved && (base === fileContent || isNewer))
        return { outcome: "behind", newer: base !== fileContent };
      const change = { definition, version: row.version, origin: FROM_FILE };
      const saved = await updateRelay(tx, context, name, change);
      await recordSyncedRelay(tx, deps, definition);
      return { outcome: "changed", warnings: saved.warnings, overwritesEdit: moved };
    });
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    return { outcome: "refused", message: error.message };
  }
}

/** Records that the relay and its file are the same, also after a write to the file. */
export function recordSyncedRelay(
  tx: Writer,
  { environment, clock }: ApplyDeps,
  definition: Definition,
): Promise<void> {
  return recordSynced(tx, environment.id, relayTarget(definition.name), definition, clock.now());
}

/** Reports whether the relay equals its file. If it does not, the dashboard created or edited it, and no file has that yet. */
export function matchesFile(row: RelayRow, base: string | null): boolean {
  return base === null ? row.originKind === "file" : base === writeJson(row.definition);
}

/**
 * Deletes the relay whose file is missing, and returns warnings about what it sold. Returns null if the dashboard created or edited it
 * later, so that it stays.
 */
export async function removeRelay(deps: ApplyDeps, name: string): Promise<Warning[] | null> {
  return await deps.store.write("dashboard", async (tx) => {
    const row = await findRelay(tx, deps.environment.id, name);
    if (row === null) return null;
    const target = relayTarget(name);
    if (!matchesFile(row, (await findSynced(tx, deps.environment.id, target))?.content ?? null)) return null;
    await deleteRelay(tx, makeSaveContext(deps), name);
    await deleteSynced(tx, deps.environment.id, target);
    const { id } = deps.environment;
    return [...(await listSoldThroughWarnings(tx, id, name)), ...(await warnLostSpace(tx, id, name))];
  });
}

/** The sentences about what was done and what was rejected. */
export interface AppliedCatalog {
  done: string[];
  refused: string[];
}

/** Applies collections and access, and detaches items from deleted relays. Runs before the relays. */
export function applyResources(
  deps: ApplyDeps,
  catalog: Catalog,
  writtenMs: number,
): Promise<AppliedCatalog> {
  const resources = listResources(catalog).map((item) => makeStep(item, writtenMs));
  return applySteps(deps, [...resources, ...listDetachments(catalog).map(makeDetachStep)]);
}

/** Applies products and plans. Runs after the relays. */
export function applyOffers(deps: ApplyDeps, catalog: Catalog, writtenMs: number): Promise<AppliedCatalog> {
  return applySteps(
    deps,
    listOffers(catalog).map((item) => makeStep(item, writtenMs)),
  );
}

/** The side that decides an item's content. */
type ItemSide = "same" | "file" | "environment";

/** Chooses the side that changed since both were the same, or the newer of two changes. The file decides if there is no common content. */
export async function chooseSide(
  tx: Reader,
  environmentId: number,
  item: Item,
  current: JsonObject | null,
  writtenMs: number,
): Promise<ItemSide> {
  const base = parseBase(await findSynced(tx, environmentId, syncTarget(item)));
  if (current !== null && isEqual(current, item.resolve(current))) return "same";
  if (base === null || (current !== null && isEqual(base, current))) return "file";
  if (isEqual(base, item.resolve(base))) return "environment";
  if (current === null) return "file";
  const changed = await findLastChange(tx, environmentId, syncTarget(item));
  return changed !== null && Date.parse(changed.at) > writtenMs ? "environment" : "file";
}

function parseBase(brought: { content: string } | null): JsonObject | null {
  const base = brought === null ? null : parseJson(brought.content);
  return isJsonObject(base) ? base : null;
}

/** Applies one item and returns what was done, one sentence each. */
interface Step {
  place: string;
  run(tx: Writer, change: Change): Promise<string[]>;
}

function makeStep(item: Item, writtenMs: number): Step {
  return {
    place: item.place,
    async run(tx, change) {
      const { environmentId, nowMs } = change;
      const current = await item.find(tx, environmentId);
      const side = await chooseSide(tx, environmentId, item, current, writtenMs);
      if (side === "environment") return [];
      const warnings = side === "same" ? [] : await item.save(tx, change);
      const storedContent = await item.find(tx, environmentId);
      if (!(await matchesSynced(tx, environmentId, syncTarget(item), storedContent)))
        await recordSynced(tx, environmentId, syncTarget(item), storedContent, nowMs);
      if (side === "same") return [];
      const words = formatItem(item);
      return [
        `${words} ${current === null ? "created" : "changed"}`,
        ...listMessages(warnings).map((message) => `${words}: warning: ${message}`),
      ];
    },
  };
}

/** A detachment follows from the file, so it is recorded as synced. */
function makeDetachStep({ place, run }: Step): Step {
  const [section, name = ""] = place.split(".");
  const kind = section === "plans" ? "plan" : "product";
  return {
    place,
    async run(tx, change) {
      const { environmentId, nowMs } = change;
      const before = await findItem(tx, environmentId, kind, name);
      const sentences = await run(tx, change);
      const after = await findItem(tx, environmentId, kind, name);
      if (!isEqual(before, after))
        await recordSynced(tx, environmentId, syncTarget({ kind, name }), after, nowMs);
      return sentences;
    },
  };
}

/** Runs all steps in one transaction. Only the rejected step is undone. */
async function applySteps(
  { store, environment, actor, clock }: ApplyDeps,
  steps: readonly Step[],
): Promise<AppliedCatalog> {
  if (steps.length === 0) return { done: [], refused: [] };
  const change = { environmentId: environment.id, by: formatActor(actor), nowMs: clock.now() };
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
