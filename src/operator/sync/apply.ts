/**
 * What files say, put into the environment of local development, each by itself: what is refused holds nothing else up. Nothing here reads a file.
 */

import type { Clock } from "../../base/clock.ts";
import { isJsonObject, type JsonObject, parseJson, writeJson } from "../../base/json.ts";
import { Refusal, tellWarnings, type Warning } from "../../base/refusal.ts";
import { type Actor, actorWords } from "../../platform/account/api-key.ts";
import type { Environment } from "../../platform/account/environment.ts";
import type { Change } from "../../platform/audit/audit.ts";
import type { Definition } from "../../rules/relay/definition-shape.ts";
import { findRelay, type RelayRow, relayTarget } from "../../rules/relay/relay.ts";
import { warnOfSold } from "../../rules/relay/relay-reference.ts";
import { createRelay, deleteRelay, type UpdateContext, updateRelay } from "../../rules/relay/relay-save.ts";
import type { Reader, Store, Writer } from "../../store/port.ts";
import type { Catalog } from "./catalog-file.ts";
import {
  findItem,
  type Item,
  isSame,
  itemWords,
  listLetGoes,
  listOffers,
  listStock,
} from "./catalog-item.ts";
import { entryTarget } from "./plan.ts";
import { findLastChange } from "./standing.ts";
import { findBrought, forgetBrought, isAsBrought, rememberBrought } from "./synced.ts";

/** The environment that files are applied to, and by whom. */
export interface ApplyDeps extends Omit<UpdateContext, "nowMs"> {
  store: Store;
  environment: Environment;
  actor: Actor;
  clock: Clock;
}

/** The context of a save made now. */
export function contextOf(deps: ApplyDeps): UpdateContext {
  return { ...deps, nowMs: deps.clock.now() };
}

type AppliedRelay =
  /** `warnings`: without those about what the relay names, which may be in the catalog that is applied after it. */
  | { outcome: "created"; warnings: Warning[] }
  /** `overEdit`: the dashboard's edit, which no file had yet, is older and now in the audit alone. */
  | { outcome: "changed"; warnings: Warning[]; overEdit: boolean }
  | { outcome: "same" }
  /** The dashboard's edit is to go into the file; `newer`: than the file, which was edited too. */
  | { outcome: "behind"; newer: boolean }
  /** The dashboard deleted it, and its file is as it was then. */
  | { outcome: "deleted" }
  | { outcome: "refused"; message: string };

interface WrittenRelay {
  definition: Definition;
  secret: string | null;
  signingSecret: string | null;
  /** When the file was written: of two edits the newer one counts. */
  writtenMs: number;
}

const FROM_FILE = { kind: "file", synced: false } as const;

/** Creates or changes the relay of a definition file, by what file and relay had in common last. */
export async function applyRelay(deps: ApplyDeps, written: WrittenRelay): Promise<AppliedRelay> {
  const { definition, secret, signingSecret, writtenMs } = written;
  const { name } = definition;
  try {
    return await deps.store.write("dashboard", async (tx): Promise<AppliedRelay> => {
      const context = contextOf(deps);
      const row = await findRelay(tx, context.environment.id, name);
      const said = writeJson(definition);
      const base = (await findBrought(tx, context.environment.id, relayTarget(name)))?.content ?? null;
      if (row === null) {
        if (base === said) return { outcome: "deleted" };
        const made = await createRelay(tx, context, { definition, secret, signingSecret, origin: FROM_FILE });
        await remember(tx, deps, definition);
        return { outcome: "created", warnings: made.warnings };
      }
      const stands = writeJson(row.definition);
      if (stands === said) {
        if (base !== said) await remember(tx, deps, definition);
        return { outcome: "same" };
      }
      const isNewer = row.originKind === "dashboard" && row.originAt > writtenMs;
      const moved = base === null ? isNewer : base !== stands;
      if (moved && (base === said || isNewer)) return { outcome: "behind", newer: base !== said };
      const change = { definition, version: row.version, origin: FROM_FILE };
      const saved = await updateRelay(tx, context, name, change);
      await remember(tx, deps, definition);
      return { outcome: "changed", warnings: saved.warnings, overEdit: moved };
    });
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    return { outcome: "refused", message: error.message };
  }
}

/** Remembers that the relay and its file are the same; also what was just written to the file. */
export function remember(
  tx: Writer,
  { environment, clock }: ApplyDeps,
  definition: Definition,
): Promise<void> {
  return rememberBrought(tx, environment.id, relayTarget(definition.name), definition, clock.now());
}

/** Whether a relay came from a file as it stands; else the dashboard made or edited it, and no file has that yet. */
export function isOfFile(row: RelayRow, base: string | null): boolean {
  return base === null ? row.originKind === "file" : base === writeJson(row.definition);
}

/** Deletes the relay whose file is gone, and answers what was sold through it; null: the dashboard made or edited it since, and it stays. */
export async function removeRelay(deps: ApplyDeps, name: string): Promise<Warning[] | null> {
  return await deps.store.write("dashboard", async (tx) => {
    const row = await findRelay(tx, deps.environment.id, name);
    if (row === null) return null;
    const target = relayTarget(name);
    if (!isOfFile(row, (await findBrought(tx, deps.environment.id, target))?.content ?? null)) return null;
    await deleteRelay(tx, contextOf(deps), name);
    await forgetBrought(tx, deps.environment.id, target);
    return await warnOfSold(tx, deps.environment.id, name);
  });
}

/** What was done and what was refused, one sentence each. */
export interface AppliedCatalog {
  done: string[];
  refused: string[];
}

/** Collections and access, and letting go of relays that are gone; applied before the relays. */
export function applyStock(deps: ApplyDeps, catalog: Catalog, writtenMs: number): Promise<AppliedCatalog> {
  const stock = listStock(catalog).map((item) => stepOf(item, writtenMs));
  return applySteps(deps, [...stock, ...listLetGoes(catalog).map(letGoOf)]);
}

/** Products and plans; applied after the relays. */
export function applyOffers(deps: ApplyDeps, catalog: Catalog, writtenMs: number): Promise<AppliedCatalog> {
  return applySteps(
    deps,
    listOffers(catalog).map((item) => stepOf(item, writtenMs)),
  );
}

/** What of an item file and environment make of each other. */
type ItemSide = "same" | "file" | "environment";

/** Which side counts: the one that moved since both had the same, of two the newer. Where nothing is known the file does. */
export async function chooseSide(
  tx: Reader,
  environmentId: number,
  item: Item,
  standing: JsonObject | null,
  writtenMs: number,
): Promise<ItemSide> {
  const base = parseBase(await findBrought(tx, environmentId, entryTarget(item)));
  if (standing !== null && isSame(standing, item.want(standing))) return "same";
  if (base === null || (standing !== null && isSame(base, standing))) return "file";
  if (isSame(base, item.want(base))) return "environment";
  if (standing === null) return "file";
  const changed = await findLastChange(tx, environmentId, entryTarget(item));
  return changed !== null && Date.parse(changed.at) > writtenMs ? "environment" : "file";
}

function parseBase(brought: { content: string } | null): JsonObject | null {
  const base = brought === null ? null : parseJson(brought.content);
  return isJsonObject(base) ? base : null;
}

/** Applies one item; answers what was done, one sentence each. */
interface Step {
  place: string;
  run(tx: Writer, change: Change): Promise<string[]>;
}

function stepOf(item: Item, writtenMs: number): Step {
  return {
    place: item.place,
    async run(tx, change) {
      const { environmentId, nowMs } = change;
      const standing = await item.find(tx, environmentId);
      const side = await chooseSide(tx, environmentId, item, standing, writtenMs);
      if (side === "environment") return [];
      const warnings = side === "same" ? [] : await item.save(tx, change);
      const stands = await item.find(tx, environmentId);
      if (!(await isAsBrought(tx, environmentId, entryTarget(item), stands)))
        await rememberBrought(tx, environmentId, entryTarget(item), stands, nowMs);
      if (side === "same") return [];
      const words = itemWords(item);
      return [
        `${words} ${standing === null ? "created" : "changed"}`,
        ...tellWarnings(warnings).map((message) => `${words}: warning: ${message}`),
      ];
    },
  };
}

/** What lets go does so for the file, which is about to say more. */
function letGoOf({ place, run }: Step): Step {
  const [section, name = ""] = place.split(".");
  const kind = section === "plans" ? "plan" : "product";
  return {
    place,
    async run(tx, change) {
      const { environmentId, nowMs } = change;
      const before = await findItem(tx, environmentId, kind, name);
      const told = await run(tx, change);
      const after = await findItem(tx, environmentId, kind, name);
      if (!isSame(before, after))
        await rememberBrought(tx, environmentId, entryTarget({ kind, name }), after, nowMs);
      return told;
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
