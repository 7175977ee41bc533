/**
 * Finds what a set of files would change in an environment, item by item. The plan's id is a hash of both sides, so that exactly the plan
 * that was read is applied. This file only reads; plan-apply.ts finds what a save rejects.
 */
import { toIso } from "../../base/clock.ts";
import { isJsonObject, type Json, writeCanonicalJson, writeJson } from "../../base/json.ts";
import { listDifferences } from "../../base/json-diff.ts";
import type { Checked } from "../../rules/relay/definition.ts";
import type { Definition } from "../../rules/relay/definition-shape.ts";
import { findRelay, RELAY, relayTarget, type SecretKind } from "../../rules/relay/relay.ts";
import { isSource, listAllFollowers, sourceNameOf, withScheme } from "../../rules/relay/source.ts";
import { describeCapturedCall, widensUnsigned } from "../../rules/relay/unsigned-rule.ts";
import type { Reader } from "../../store/port.ts";
import type { Catalog } from "./catalog-file.ts";
import { hashCatalog, type Item, isEqual, listOffers, listResources } from "./catalog-item.ts";
import { findLastChange, type SyncItem } from "./deployed-state.ts";
import type { EntryView, PlanPreview } from "./plan-view.ts";
import { compareSides, markOf, type SeenItems } from "./side-comparison.ts";
import { findSynced, matchesSynced, syncTarget } from "./synced.ts";

/** A set of files, each checked by itself. */
export interface Files {
  relays: readonly Checked[];
  /** Null if there is no catalog file. */
  catalog: Catalog | null;
  /** True if synced relays whose file is missing are deleted. */
  prune: boolean;
  /** The folder's last knowledge of the environment. Null if it saw nothing or is unknown, so the environment's last sync decides. */
  seen: SeenItems | null;
  /** The git commit of the folder, or null. */
  commit: string | null;
  /** The environment whose content this is, where it comes from no files. */
  source: Source | null;
}

interface Source {
  environmentId: number;
  /** The environment's name. */
  environment: string;
  /** A hash of the content with its versions. */
  stamp: string;
  /** Relays that break one of today's rules, and why. */
  invalidRelays: readonly { name: string; message: string }[];
}

/** The most bytes of files in one sync, because one transaction saves everything and blocks the event loop. A relay is about 2 KB. */
export const MAX_SYNC_BYTES = 256 * 1024;

/** One item of either side. */
export type Entry = {
  kind: SyncItem["kind"];
  name: string;
  state: EntryView["state"];
  /** The current content and what the files make of it, as a file writes it. It is null for nothing. */
  before: Json;
  after: Json;
  /** The version of an existing relay. */
  version: number | null;
  newer?: NonNullable<EntryView["newer"]>;
  /** The definitions of a follower with the scheme of its source, before and after the plan; absent for other relays. */
  following?: { before: Definition | null; after: Definition };
  /** The synced relay without a file that has the same definition under another name. */
  renamed?: Omit<NonNullable<EntryView["renamed"]>, "receiverUrl"> & { isReceiver: boolean };
};

export interface Plan {
  /** A hash of both sides and of what would be done. */
  id: string;
  entries: Entry[];
}

/** Reports whether applying the plan changes it. */
export function isChange({ state }: Pick<Entry, "state">, replacesEdited: boolean): boolean {
  return (
    state === "created" ||
    state === "changed" ||
    state === "deleted" ||
    (replacesEdited && isUnseen({ state }))
  );
}

/** Reports whether the environment has a version that the files do not know. It is replaced only where that is asked for. */
export function isUnseen({ state }: Pick<Entry, "state">): boolean {
  return state === "edited" || state === "behind" || state === "conflict";
}

export async function readPlan(tx: Reader, environmentId: number, files: Files): Promise<Plan> {
  const { catalog, relays, prune, source } = files;
  const entries: Entry[] = [];
  for (const { definition } of relays)
    entries.push(await readRelayEntry(tx, environmentId, definition, files.seen));
  for (const { name } of source?.invalidRelays ?? [])
    entries.push({ kind: "relay", name, state: "not_carried", before: null, after: null, version: null });
  const unmatched = await readUnmatchedRelays(tx, environmentId, files);
  await findRenamed(tx, environmentId, entries, unmatched);
  entries.push(...unmatched);
  await resolveSources(tx, environmentId, entries);
  for (const item of catalog === null ? [] : [...listResources(catalog), ...listOffers(catalog)]) {
    entries.push(await readItemEntry(tx, environmentId, item, files));
  }
  // Warnings also depend on items that no file names.
  const stands = await hashCatalog(tx, environmentId);
  // The texts of an entry name who changed an item. They do not change what the plan does, so an approval stays valid.
  const compared = entries.map(
    ({ newer: _newer, renamed: _renamed, following: _following, ...entry }) => entry,
  );
  const sides = { environmentId, prune, entries: compared, stands, stamp: source?.stamp ?? null };
  const id = new Bun.CryptoHasher("sha256").update(writeCanonicalJson(sides)).digest("hex");
  return { id: `pln_${id.slice(0, 40)}`, entries };
}

/** Records how each follower is judged, also one whose source or whose own definition the files do not name. */
async function resolveSources(tx: Reader, environmentId: number, entries: readonly Entry[]): Promise<void> {
  const relays = new Map(entries.filter(({ kind }) => kind === "relay").map((entry) => [entry.name, entry]));
  const followers = await listAllFollowers(tx, environmentId);
  const stored = new Map<string, Definition | null>(followers.map((one) => [one.name, one.definition]));
  const findStored = async (name: string): Promise<Definition | null> => {
    if (!stored.has(name)) stored.set(name, (await findRelay(tx, environmentId, name))?.definition ?? null);
    return stored.get(name) ?? null;
  };
  const resolve = async (definition: Definition, side: "before" | "after"): Promise<Definition> => {
    const name = sourceNameOf(definition);
    if (name === null) return definition;
    const source = (relays.get(name)?.[side] as Definition | null | undefined) ?? (await findStored(name));
    return source === null ? definition : withScheme(definition, source);
  };
  for (const [name, entry] of relays) {
    if (entry.state === "deleted" || entry.state === "not_carried") continue;
    const isNamed = entry.state !== "only_there";
    const before = isNamed ? (entry.before as Definition | null) : (stored.get(name) ?? null);
    const after = isNamed ? (entry.after as Definition | null) : before;
    if (after === null) continue;
    const follows = sourceNameOf(after) !== null || (before !== null && sourceNameOf(before) !== null);
    if (!follows) continue;
    entry.following = {
      before: before === null ? null : await resolve(before, "before"),
      after: await resolve(after, "after"),
    };
  }
}

async function readRelayEntry(
  tx: Reader,
  environmentId: number,
  definition: Definition,
  seen: Files["seen"],
): Promise<Entry> {
  const { name } = definition;
  const row = await findRelay(tx, environmentId, name);
  const before = row?.definition ?? null;
  const after = definition;
  const compared = await compareItem(tx, environmentId, relayTarget(name), { before, after, seen });
  return { kind: "relay", name, ...compared, before, after, version: row?.version ?? null };
}

async function readItemEntry(
  tx: Reader,
  environmentId: number,
  item: Item,
  { source, seen }: Files,
): Promise<Entry> {
  const { kind, name } = item;
  const before = await item.find(tx, environmentId);
  const after = item.resolve(before);
  const seller = sellerOf(after);
  // An item is left out with the relay that sells it, where that relay is left out and does not exist.
  const isLeft =
    (source?.invalidRelays.some((left) => left.name === seller) ?? false) &&
    (await findRelay(tx, environmentId, seller ?? "")) === null;
  const compared = isLeft
    ? { state: "not_carried" as const }
    : await compareItem(tx, environmentId, syncTarget(item), { before, after, seen });
  return { kind, name, ...compared, before, after, version: null };
}

/** Returns the relay that sells it, or null. */
export function sellerOf(item: Json): string | null {
  const sold = isJsonObject(item) ? item.soldThrough : null;
  return isJsonObject(sold) && typeof sold.relay === "string" ? sold.relay : null;
}

/** Compares the environment's content with the file's. An item that the files do not know gets its last change in the environment. */
async function compareItem(
  tx: Reader,
  environmentId: number,
  target: string,
  { before, after, seen }: Pick<Entry, "before" | "after"> & Pick<Files, "seen">,
): Promise<Pick<Entry, "state" | "newer">> {
  const synced = await findSynced(tx, environmentId, target);
  const isAsSynced = before !== null && synced !== null && synced.content === writeJson(before);
  const isGone = before === null && seen?.has(target) === true;
  const deletion = isGone ? await findLastChange(tx, environmentId, target) : null;
  const compared = compareSides(before, after, seen, target, deletion !== null);
  // Git can bring the file of another person's sync, which this folder did not see at the server.
  const isBrought = compared === "conflict" && before !== null && synced?.content === writeJson(after);
  const known = isBrought ? "behind" : compared;
  const state = known !== "unknown" ? known : isAsSynced ? "changed" : "edited";
  if (!isUnseen({ state })) return { state };
  const change = deletion ?? (await findLastChange(tx, environmentId, target));
  if (change === null) return { state };
  // A pull records the content at another time than the change.
  const isSync = isAsSynced && toIso(synced.syncedAt) === change.at;
  const how = before === null ? "deleted" : isSync ? "synced" : "edited";
  return { state, newer: { ...change, how, commit: isSync ? synced.sourceCommit : null } };
}

const SYNCED_RELAY = RELAY.pick("name", "version", "syncedAt");

/** Lists relays without a file. Only a synced relay that was not edited since may be pruned. */
async function readUnmatchedRelays(
  tx: Reader,
  environmentId: number,
  { relays, prune, source, seen }: Files,
): Promise<Entry[]> {
  const named = new Set(relays.map(({ definition }) => definition.name));
  for (const { name } of source?.invalidRelays ?? []) named.add(name);
  const rows = await SYNCED_RELAY.all(tx, "WHERE environment_id = $environmentId ORDER BY name", {
    environmentId,
  });
  const entries: Entry[] = [];
  for (const { name, version, syncedAt } of rows) {
    if (named.has(name)) continue;
    const isPruned = prune && syncedAt !== null && (await isKnownRelay(tx, environmentId, name, seen));
    const state = isPruned ? "deleted" : "only_there";
    entries.push({ kind: "relay", name, state, before: null, after: null, version });
  }
  return entries;
}

/** The secret of a renamed relay, by the kind of the earlier one. A pasted secret is not copied. */
const SECRETS_OF_RENAMED: Readonly<Record<SecretKind, "new" | "missing" | null>> = {
  minted: "new",
  pasted: "missing",
  public_key: "missing",
  processor: null,
  none: null,
};

/** Records for each new relay which relay without a file has the same definition, because a renamed file is a new relay and an old one. */
async function findRenamed(
  tx: Reader,
  environmentId: number,
  entries: readonly Entry[],
  unmatched: readonly Entry[],
): Promise<void> {
  const created = entries.filter(({ kind, state }) => kind === "relay" && state === "created");
  if (created.length === 0) return;
  for (const { name } of unmatched) {
    const row = await findRelay(tx, environmentId, name);
    if (row === null || row.syncedAt === null) continue;
    const entry = created.find(
      (one) => one.renamed === undefined && isEqual({ ...row.definition, name: one.name }, one.after),
    );
    if (entry === undefined) continue;
    entry.renamed = {
      from: name,
      isReceiver: isSource(row.definition),
      secret: SECRETS_OF_RENAMED[row.secretKind],
      signingSecret: row.signingSecret !== null,
    };
  }
}

/** Reports whether the folder, or the last sync where the folder knows nothing, saw this version of the relay. */
async function isKnownRelay(
  tx: Reader,
  environmentId: number,
  name: string,
  seen: Files["seen"],
): Promise<boolean> {
  const row = await findRelay(tx, environmentId, name);
  if (row === null) return false;
  if (seen !== null) return seen.get(relayTarget(name))?.mark === markOf(row.definition);
  return await matchesSynced(tx, environmentId, relayTarget(name), row.definition);
}

/** Shows an entry. A new item has no differences, because its file has everything. `urlOf` returns a receiver's URL. */
export function viewEntry(
  entry: Entry,
  urlOf: (name: string) => string,
  warnings: EntryView["warnings"],
  refusal: EntryView["refusal"],
): EntryView {
  const { kind, name, state, before, after, newer } = entry;
  const differs = before !== null && (state === "changed" || isUnseen(entry));
  const diff = differs ? listDifferences(before, after) : [];
  return {
    kind,
    name,
    state,
    diff,
    warnings,
    refusal,
    capturedCall: viewCapturedCall(entry),
    ...(newer === undefined ? {} : { newer }),
    ...viewRenamed(entry, urlOf),
    ...(kind === "plan" ? { content: after } : {}),
  };
}

function viewRenamed({ name, renamed }: Entry, urlOf: (name: string) => string): Pick<EntryView, "renamed"> {
  if (renamed === undefined) return {};
  const { from, isReceiver, secret, signingSecret } = renamed;
  return { renamed: { from, receiverUrl: isReceiver ? urlOf(name) : null, secret, signingSecret } };
}

/** Judges a follower by the scheme of its source, so that an unchanged follower counts where its source widens. */
function viewCapturedCall({ kind, state, before, after, following }: Entry): EntryView["capturedCall"] {
  if (kind !== "relay" || (after === null && following === undefined)) return null;
  const was = following === undefined ? (before as Definition | null) : following.before;
  const is = following?.after ?? (after as Definition);
  const [earlier, later] = [was === null ? null : describeCapturedCall(was), describeCapturedCall(is)];
  if (earlier === null && later === null) return null;
  const widens = widensUnsigned(was, is);
  const isKept = state === "unchanged" || state === "only_there";
  return isKept && !widens ? null : { before: earlier, after: later, widens };
}

/** Finds the first rejection of a plan. Returns null if there is none. A relay that is left out does not stop the others. */
export function findRefusal({ entries }: Pick<PlanPreview, "entries">): EntryView["refusal"] {
  const refused = entries.find(({ state, refusal }) => refusal !== null && state !== "not_carried");
  if (refused === undefined || refused.refusal === null) return null;
  const { kind, name, refusal } = refused;
  return { code: refusal.code, message: `${kind} ${name}: ${refusal.message}` };
}
