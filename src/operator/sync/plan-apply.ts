/**
 * Applies a set of files to an environment: the complete plan in one transaction, or nothing. A preview applies the plan and undoes it,
 * so it shows exactly what the saves would reject and warn of.
 */

import { isJsonObject, writeJson } from "../../base/json.ts";
import { Refusal, type Warning } from "../../base/refusal.ts";
import { formatActor } from "../../platform/account/api-key.ts";
import type { Change } from "../../platform/audit/audit.ts";
import { readMisfits, recheckMisfits } from "../../rules/relay/catalog-edit.ts";
import type { Checked } from "../../rules/relay/definition.ts";
import { receiverUrl, relayTarget } from "../../rules/relay/relay.ts";
import { listReferenceWarnings, refreshMisfitProblem } from "../../rules/relay/relay-problem.ts";
import { listSoldThroughWarnings, makeCatalogLookup } from "../../rules/relay/relay-reference.ts";
import { createRelay, deleteRelay, type UpdateContext, updateRelay } from "../../rules/relay/relay-save.ts";
import { dryRun } from "../../store/dry-run.ts";
import { yieldToEventLoop } from "../../store/index-scan.ts";
import type { Store, Writer } from "../../store/port.ts";
import { hashCatalog, type Item, listDetachments, listOffers, listResources } from "./catalog-item.ts";
import { requirePlan } from "./environment-files.ts";
import { type Entry, type Files, isChange, type Plan, readPlan, sellerOf, viewEntry } from "./plan.ts";
import type { PlanResult } from "./plan-view.ts";
import { addOptInWarning, listProductionWarnings } from "./production-warning.ts";
import { listRemovedFieldWarnings } from "./removed-field.ts";
import { deleteSynced, matchesSynced, recordSynced, syncTarget } from "./synced.ts";

const FROM_SYNC = { kind: "file", synced: true } as const;

/** Counts the changes of an environment. Throws `sync_capped` for too many. */
export interface ChangeCap {
  take(tx: Writer, changes: number): Promise<void>;
}

/** `replacesEdited`: also replaces what the dashboard edited since the last sync. */
interface Deployment {
  files: Files;
  replacesEdited: boolean;
}

/** Runs the cases of relays, each time after `prepare` in a transaction that is undone. Returns the report of each relay that has cases. */
export type CaseTrial = (
  relayNames: readonly string[],
  prepare: (tx: Writer) => Promise<void>,
) => Promise<ReadonlyMap<string, { message: string; warnings: Warning[] }>>;

/**
 * Reads the plan with everything that its saves would reject and warn of, and changes nothing. A plan of more than `most` changes is not
 * tried. A change between reading and trying appears as a conflict.
 */
export async function previewPlan(
  store: Store,
  context: UpdateContext,
  deployment: Deployment,
  most: number,
  runCases: CaseTrial,
): Promise<PlanResult & { read: Plan }> {
  const plan = await store.read((tx) => readPlan(tx, context.environment.id, deployment.files));
  await yieldToEventLoop();
  const changed = plan.entries.filter((entry) => isChange(entry, deployment.replacesEdited));
  const lost = await listRemovedFieldWarnings(store, context.environment.id, changed);
  const applyTo = async (tx: Writer): Promise<PlanApplier> => {
    // A preview records no ticks: none changes its result, and a month of ticks is thousands of rows.
    const withoutTicks = { ...context, recordDue: async () => undefined };
    const applier = new PlanApplier(tx, withoutTicks, deployment, plan, { isDryRun: true });
    if (applier.changes > 0 && applier.changes <= most) await applier.apply();
    return applier;
  };
  const applier = await dryRun(store, "dashboard", applyTo);
  if (applier.changes > 0 && applier.changes <= most) {
    const prepare = async (tx: Writer): Promise<void> => void (await applyTo(tx));
    applier.addCases(await runCases(applier.listSavedRelays(), prepare));
  }
  await yieldToEventLoop();
  return { ...applier.toResult(lost), read: plan };
}

/**
 * Applies the plan that was read under this name. Throws `version_conflict` where a side changed since, `sync_capped`, or what the first
 * rejected save throws.
 */
export async function applyPlan(
  tx: Writer,
  context: UpdateContext,
  deployment: Deployment,
  planId: string,
  cap: ChangeCap,
): Promise<PlanResult> {
  const plan = await requirePlan(tx, context.environment.id, deployment.files, planId);
  const applier = new PlanApplier(tx, context, deployment, plan);
  await cap.take(tx, applier.changes);
  await applier.apply();
  await applier.recordSynced();
  return applier.toResult();
}

/**
 * Saves the items of a catalog that was read at `version`. They count as edits, so a sync asks before it replaces them. Items that the catalog
 * leaves out stay. Throws `version_conflict` if the catalog changed since, `sync_capped`, or what the first rejected save throws.
 */
export async function saveCatalog(
  tx: Writer,
  context: UpdateContext,
  files: Files,
  version: string,
  cap: ChangeCap,
): Promise<{ changes: number; warnings: Warning[] }> {
  const { id } = context.environment;
  const current = await hashCatalog(tx, id);
  if (current !== version)
    throw new Refusal(
      "version_conflict",
      "The catalog changed since you read it, and nothing was saved: read it again, then save your change.",
      { details: { version: current } },
    );
  const deployment = { files, replacesEdited: true };
  const applier = new PlanApplier(tx, context, deployment, await readPlan(tx, id, files));
  await cap.take(tx, applier.changes);
  await applier.apply();
  const { changes, entries, warnings } = applier.toResult();
  return { changes, warnings: [...entries.flatMap((entry) => entry.warnings), ...warnings] };
}

/** A save in the dashboard. A sync asks before it replaces the item. */
const FROM_DASHBOARD = { kind: "dashboard", synced: false } as const;

/**
 * Saves new relays and catalog items in one transaction. An item that exists with the same content stays, and so does a collection that also accepts
 * the new records. Throws `name_taken` for the first one that exists with other content, `sync_capped`, or what the first rejected save throws.
 */
export async function saveNew(
  tx: Writer,
  context: UpdateContext,
  files: Files,
  cap: ChangeCap,
): Promise<PlanResult> {
  const read = await readPlan(tx, context.environment.id, files);
  const entries = read.entries.map((entry) =>
    acceptsRecords(entry) ? { ...entry, state: "unchanged" as const } : entry,
  );
  const plan = { ...read, entries };
  for (const { kind, name, state, after } of plan.entries) {
    if (after === null || state === "created" || state === "unchanged") continue;
    const todo = TAKEN[kind] ?? "choose other names, or rename or delete what exists";
    throw new Refusal(
      "name_taken",
      `The ${kind} ${name} exists with other content, so nothing was saved: ${todo}.`,
    );
  }
  const deployment = { files, replacesEdited: false };
  const applier = new PlanApplier(tx, context, deployment, plan, { origin: FROM_DASHBOARD });
  await cap.take(tx, applier.changes);
  await applier.apply();
  return applier.toResult();
}

/** Remedies for an item that exists. A relay or a collection of a kit takes its name from the provider. */
const TAKEN: Partial<Record<Entry["kind"], string>> = {
  relay: "edit that relay, or delete it first",
  collection: "add the missing fields to it in Records, or delete it there",
};

/** Reports whether an existing collection has every field of the new one, and requires no other field. */
function acceptsRecords({ kind, before, after }: Entry): boolean {
  if (kind !== "collection" || !isJsonObject(before) || !isJsonObject(after)) return false;
  const [had, wanted] = [before.fields ?? null, after.fields ?? null];
  if (before.kind !== after.kind || !isJsonObject(had) || !isJsonObject(wanted)) return false;
  return (
    Object.entries(wanted).every(([name, rule]) => writeJson(had[name] ?? null) === writeJson(rule)) &&
    Object.entries(had).every(
      ([name, rule]) => name in wanted || (isJsonObject(rule) && rule.required !== true),
    )
  );
}

type Origin = typeof FROM_SYNC | typeof FROM_DASHBOARD;

interface ApplyOptions {
  /** True if a rejection is recorded and the rest is tried. */
  isDryRun?: boolean;
  origin?: Origin;
}

class PlanApplier {
  readonly changes: number;
  readonly #tx: Writer;
  readonly #context: UpdateContext;
  readonly #files: Files;
  readonly #plan: Plan;
  /** The entries that the plan saves or deletes. */
  readonly #changed: readonly Entry[];
  readonly #isDryRun: boolean;
  readonly #origin: Origin;
  readonly #changedByTarget: ReadonlyMap<string, Entry>;
  readonly #relays: ReadonlyMap<string, Checked>;
  readonly #refusals = new Map<string, Refusal>();
  readonly #warnings = new Map<string, Warning[]>();
  /** The reports of the cases of relays, by target. */
  readonly #cases = new Map<string, string>();
  readonly #secrets: PlanResult["secrets"] = [];
  #broken: Warning[] = [];

  constructor(
    tx: Writer,
    context: UpdateContext,
    { files, replacesEdited }: Deployment,
    plan: Plan,
    { isDryRun = false, origin = FROM_SYNC }: ApplyOptions = {},
  ) {
    this.#tx = tx;
    this.#context = context;
    this.#files = files;
    this.#plan = plan;
    this.#isDryRun = isDryRun;
    this.#origin = origin;
    this.#relays = new Map(files.relays.map((checked) => [checked.definition.name, checked]));
    this.#changed = plan.entries.filter((entry) => isChange(entry, replacesEdited));
    this.#changedByTarget = new Map(this.#changed.map((entry) => [syncTarget(entry), entry]));
    this.changes = this.#changed.length;
    for (const { name, message } of files.source?.invalidRelays ?? [])
      this.#refusals.set(relayTarget(name), new Refusal("invalid_definition", message));
    for (const entry of plan.entries) {
      if (entry.state !== "not_carried" || entry.kind === "relay") continue;
      const message = `It is sold by the relay ${sellerOf(entry.after)}, which is not synced and does not exist there: fix that relay first.`;
      this.#refusals.set(syncTarget(entry), new Refusal("relay_missing", message));
    }
  }

  async apply(): Promise<void> {
    const { catalog } = this.#files;
    const isCatalogChange = this.#changed.some(({ kind }) => kind !== "relay");
    const edited = { environmentId: this.#context.environment.id, nowMs: this.#context.nowMs };
    const changedRelays = this.#changed.filter(({ kind }) => kind === "relay");
    const saved = new Set(changedRelays.map(({ name }) => name));
    const before = isCatalogChange ? await readMisfits(this.#tx, edited.environmentId, saved) : null;
    const followed = await this.#deleteRelays();
    if (catalog !== null) await this.#saveResources(listResources(catalog));
    await this.#saveRelays();
    for (const entry of followed) await this.#guard(syncTarget(entry), () => this.#deleteRelay(entry));
    if (catalog !== null) await this.#saveItems(listOffers(catalog));
    await this.#collectReferenceWarnings();
    await this.#collectDeletionWarnings(edited.environmentId);
    if (before === null) return;
    this.#broken = await recheckMisfits(this.#tx, edited, before);
    // Products and plans were saved after the relays that sell them.
    for (const name of saved) {
      const checked = this.#relays.get(name);
      if (checked !== undefined) await refreshMisfitProblem(this.#tx, edited, checked.definition);
    }
  }

  #relaysToSave(): Entry[] {
    return this.#changed.filter(({ kind, state }) => kind === "relay" && state !== "deleted");
  }

  /** Lists the relays that the plan saves without a refusal. */
  listSavedRelays(): string[] {
    return this.#relaysToSave()
      .filter((entry) => !this.#refusals.has(syncTarget(entry)))
      .map(({ name }) => name);
  }

  /** Adds the reports of the cases, and their warnings. */
  addCases(reports: Awaited<ReturnType<CaseTrial>>): void {
    for (const [name, { message, warnings }] of reports) {
      const target = relayTarget(name);
      this.#cases.set(target, message);
      this.#warnings.set(target, [...(this.#warnings.get(target) ?? []), ...warnings]);
    }
  }

  /** Records what the environment and the files now have in common. Items that stay edited are left out. */
  async recordSynced(): Promise<void> {
    const { environment, nowMs } = this.#context;
    for (const entry of this.#plan.entries) {
      const target = syncTarget(entry);
      const { state, after } = entry;
      if (state === "deleted") await deleteSynced(this.#tx, environment.id, target);
      else if (state === "unchanged" || this.#changedByTarget.has(target)) {
        const isKnown =
          state === "unchanged" && (await matchesSynced(this.#tx, environment.id, target, after));
        if (isKnown) continue;
        await recordSynced(this.#tx, environment.id, target, after, nowMs, this.#files.commit);
      }
    }
  }

  /** `found`: warnings that were found before the trial, by target. */
  toResult(found: ReadonlyMap<string, readonly Warning[]> = new Map()): PlanResult {
    const { environment, baseUrl } = this.#context;
    const urlOf = (name: string): string => receiverUrl(baseUrl, environment.appId, name);
    const entries = this.#plan.entries.map((entry) => {
      const target = syncTarget(entry);
      const refusal = this.#refusals.get(target);
      const rejection = refusal === undefined ? null : { code: refusal.code, message: refusal.message };
      const warnings = [...(found.get(target) ?? []), ...(this.#warnings.get(target) ?? [])];
      const cases = this.#cases.get(target);
      const view = viewEntry(entry, urlOf, warnings, rejection);
      return cases === undefined ? view : { ...view, cases };
    });
    return {
      plan: this.#plan.id,
      changes: this.changes,
      entries,
      warnings: this.#broken,
      secrets: this.#secrets,
    };
  }

  /** Collects warnings about what deleted relays sold, after everything is applied. */
  async #collectDeletionWarnings(environmentId: number): Promise<void> {
    for (const entry of this.#plan.entries) {
      if (entry.state !== "deleted") continue;
      this.#warnings.set(
        syncTarget(entry),
        await listSoldThroughWarnings(this.#tx, environmentId, entry.name),
      );
    }
  }

  /** Deletes relays, followers before what they follow. Returns those that relays of the set still follow. */
  async #deleteRelays(): Promise<Entry[]> {
    let left = this.#plan.entries.filter(({ state }) => state === "deleted");
    for (let tried = -1; left.length > 0 && left.length !== tried; ) {
      tried = left.length;
      const followed: Entry[] = [];
      for (const entry of left)
        if (!(await this.#tryRelay(entry, () => this.#deleteRelay(entry)))) followed.push(entry);
      left = followed;
    }
    return left;
  }

  #deleteRelay({ name }: Entry): Promise<void> {
    return deleteRelay(this.#tx, this.#context, name);
  }

  async #saveResources(items: readonly Item[]): Promise<void> {
    const { catalog } = this.#files;
    await this.#saveItems(items);
    for (const { place, run } of catalog === null ? [] : listDetachments(catalog)) {
      const [section, name] = place.split(".");
      const target = `${section === "plans" ? "plan" : "product"}:${name}`;
      if (this.#changedByTarget.has(target)) await this.#guard(target, () => run(this.#tx, this.#change));
    }
  }

  async #saveItems(items: readonly Item[]): Promise<void> {
    for (const item of items) {
      const target = syncTarget(item);
      const entry = this.#changedByTarget.get(target);
      if (entry === undefined) continue;
      await this.#guard(target, async () => {
        const live = this.#isProduction
          ? await listProductionWarnings(this.#tx, this.#context.environment.id, entry)
          : [];
        this.#warnings.set(target, [...live, ...(await item.save(this.#tx, this.#change))]);
      });
    }
  }

  /** A relay that needs another relay of the set waits until that one is saved. */
  async #saveRelays(): Promise<void> {
    let left = this.#relaysToSave();
    while (left.length > 0) {
      const waiting: Entry[] = [];
      for (const entry of left)
        if (!(await this.#tryRelay(entry, () => this.#saveRelay(entry)))) waiting.push(entry);
      // No relay of the set resolves what these wait for, so each reports its own problem.
      if (waiting.length === left.length) {
        for (const entry of waiting) await this.#guard(syncTarget(entry), () => this.#saveRelay(entry));
        return;
      }
      left = waiting;
    }
  }

  /** Saves or deletes a relay. Returns false if a change of another relay has to come first. */
  async #tryRelay(entry: Entry, work: () => Promise<void>): Promise<boolean> {
    try {
      await this.#tx.attempt(work);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      if (error.code === "relay_missing" || error.extra.needsOtherRelay === true) return false;
      this.#reject(syncTarget(entry), error);
    }
    return true;
  }

  async #saveRelay({ name, version }: Entry): Promise<void> {
    const context = this.#context;
    const checked = this.#relays.get(name);
    if (checked === undefined) return;
    const promotedFrom = this.#files.source?.environment;
    const { commit } = this.#files;
    const origin = {
      ...this.#origin,
      ...(promotedFrom === undefined ? {} : { promotedFrom }),
      ...(commit === null ? {} : { commit }),
    };
    const input = { checked, origin };
    const saved =
      version === null
        ? await createRelay(this.#tx, context, { ...input, secret: null, signingSecret: null })
        : await updateRelay(this.#tx, context, name, { ...input, version });
    const made = { receiverSecret: saved.receiverSecret, signingSecret: saved.signingSecret };
    const shown = Object.entries(made).filter(([, secret]) => secret !== null);
    if (shown.length > 0) this.#secrets.push({ relay: name, ...Object.fromEntries(shown) });
    const warnings = this.#isProduction
      ? await addOptInWarning(this.#tx, context.environment.id, checked.definition, saved.warnings)
      : saved.warnings;
    this.#warnings.set(syncTarget({ kind: "relay", name }), warnings);
  }

  /** Collects warnings about what the saved relays name, after everything is applied. */
  async #collectReferenceWarnings(): Promise<void> {
    const lookup = makeCatalogLookup(this.#tx, this.#context.environment.id);
    for (const entry of this.#relaysToSave()) {
      const target = syncTarget(entry);
      if (this.#refusals.has(target)) continue;
      const definition = this.#relays.get(entry.name)?.definition;
      const misfits = definition === undefined ? [] : await listReferenceWarnings(lookup, definition);
      this.#warnings.set(target, [...(this.#warnings.get(target) ?? []), ...misfits]);
    }
  }

  async #guard(target: string, work: () => Promise<unknown>): Promise<void> {
    try {
      if (this.#isDryRun) await this.#tx.attempt(work);
      else await work();
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      this.#reject(target, error);
    }
  }

  #reject(target: string, refusal: Refusal): void {
    if (!this.#isDryRun) {
      const message = `${target.replace(":", " ")}: ${refusal.message}`;
      throw new Refusal(refusal.code, message, refusal.extra);
    }
    if (!this.#refusals.has(target)) this.#refusals.set(target, refusal);
  }

  get #isProduction(): boolean {
    return this.#context.environment.name === "production";
  }

  get #change(): Change {
    const { environment, actor, nowMs } = this.#context;
    return { environmentId: environment.id, by: formatActor(actor), nowMs };
  }
}
