/**
 * Compares the files of a folder with an environment, item by item, against their last common content, to find which side changed. Writes
 * no file.
 */
import { existsSync } from "node:fs";
import { isJsonObject, type Json, type JsonObject } from "../../base/json.ts";
import { listDifferences } from "../../base/json-diff.ts";
import { rejectDefinition } from "../../base/refusal.ts";
import { showText } from "../../base/shape.ts";
import { checkDefinition } from "../../rules/relay/definition.ts";
import { catalogPath, checkCatalog, checkCatalogFile } from "./catalog-file.ts";
import { editCatalog, listItems } from "./catalog-file-edit.ts";
import { isEqual } from "./catalog-item.ts";
import { definitionPath, listDefinitionFiles, relayNameOf, relaysFolder } from "./definition-file.ts";
import type { DeployedState, SyncItem } from "./deployed-state.ts";
import { parseFileText, readFileText } from "./json-file.ts";
import type { MergeBase } from "./merge-base.ts";
import { syncTarget } from "./synced.ts";

type PullState =
  /** New, only on the server. */
  | "created"
  /** Changed only on the server. */
  | "changed"
  | "unchanged"
  /** Changed only in the file. */
  | "changed_here"
  /** Changed on both sides, or the common content is unknown. */
  | "changed_both"
  /** New, only in the files. */
  | "only_here"
  /** Both had it, and its file is missing. */
  | "deleted_here"
  /** Both had it, the server deleted it, and the file is unchanged. */
  | "deleted_there";

/** A field with its common value and the value of each side. An absent value is left out. */
interface ThreeWay {
  field: string;
  was?: Json;
  here?: Json;
  there?: Json;
}

export interface PullEntry extends SyncItem {
  state: PullState;
  /** The file that has it, or would. */
  path: string;
  /** The changes to the file. Empty for a new item. */
  diff: { field: string; before?: Json; after?: Json }[];
  /** The fields that differ where both sides changed. Empty otherwise. */
  threeWay: ThreeWay[];
  /** The server's content; null if it is deleted. */
  there: JsonObject | null;
  /** The reason why the server's content is no valid definition or catalog item and is never written; null if it is valid. */
  problem: string | null;
  mark: string | null;
}

/** The content of a folder. */
export interface Folder {
  serviceDir: string;
  items: ReadonlyMap<string, LocalItem>;
  /** The texts as they were read, by path. Later writes replace exactly these. */
  texts: ReadonlyMap<string, string>;
}

interface LocalItem extends SyncItem {
  path: string;
  /** The file's content, completed from `current` where the file leaves a field out. A text where the file cannot be parsed. */
  resolve(current: JsonObject | null): Json;
}

/** Reads the folder. Throws `invalid_definition` for a catalog with problems, because then nothing is known of its items. */
export async function readFolder(serviceDir: string): Promise<Folder> {
  const texts = new Map<string, string>();
  const items = new Map<string, LocalItem>();
  const add = (local: LocalItem): void => void items.set(syncTarget(local), local);
  for (const path of await listDefinitionFiles(serviceDir)) {
    const read = (await readFileText(path)) ?? { refusal: "It is gone." };
    if ("text" in read) texts.set(path, read.text);
    const file = parseFileText(read);
    const value = file.ok ? file.value : "text" in read ? read.text : read.refusal;
    add({ kind: "relay", name: relayNameOf(path), path, resolve: () => value });
  }
  const path = catalogPath(serviceDir);
  const read = await readFileText(path);
  if (read === null) return { serviceDir, items, texts };
  const file = parseFileText(read);
  const checked = checkCatalogFile(file);
  if (!checked.ok)
    throw rejectDefinition(
      checked.problems.map(({ field, message }) => ({ field, message: `${path}: ${message}` })),
    );
  if ("text" in read) texts.set(path, read.text);
  for (const item of file.ok ? listItems(file.value) : [])
    add({ kind: item.kind, name: item.name, path, resolve: (current) => item.resolve(current) });
  return { serviceDir, items, texts };
}

/**
 * Returns the last common content of the folder and the environment. A folder that knows nothing of the environment, such as a fresh clone,
 * has the content of the environment's last sync for the items in its files.
 */
export function chooseBase(
  memory: MergeBase,
  { items }: Pick<Folder, "items">,
  deployedItems: readonly DeployedState[],
): MergeBase {
  if (memory.size > 0) return memory;
  const known = deployedItems.filter((one) => one.brought !== null && items.has(syncTarget(one)));
  return new Map(known.map((one) => [syncTarget(one), one.brought?.content as Json]));
}

/** Lists every item of either side. The base does not count where the folder lost all its files. */
export function planPull(
  folder: Folder,
  deployedItems: readonly DeployedState[],
  memory: MergeBase,
): PullEntry[] {
  const { serviceDir, items } = folder;
  const entries: PullEntry[] = [];
  const seen = new Set<string>();
  const lost = {
    relay: !existsSync(relaysFolder(serviceDir)),
    catalog: !existsSync(catalogPath(serviceDir)),
  };
  for (const remote of deployedItems) {
    const target = syncTarget(remote);
    seen.add(target);
    const local = items.get(target) ?? null;
    const isLost = lost[remote.kind === "relay" ? "relay" : "catalog"];
    const base = isLost ? undefined : findBase(local, remote, memory.get(target));
    const entry = compareItem(remote, local, remote.content as JsonObject | null, base, serviceDir);
    if (entry !== null) entries.push({ ...entry, mark: remote.mark });
  }
  for (const [target, local] of items) {
    if (seen.has(target)) continue;
    const entry = compareItem(local, local, null, memory.get(target), serviceDir);
    if (entry !== null) entries.push({ ...entry, mark: null });
  }
  followMovedDefault(entries, items);
  return entries;
}

/** Returns the last common content. It is the environment's last sync if the file has that content, for example after a `git pull`. */
function findBase(
  local: LocalItem | null,
  { brought }: DeployedState,
  base: Json | undefined,
): Json | undefined {
  if (local === null || brought === null) return base;
  const content = brought.content as JsonObject | null;
  return isEqual(local.resolve(content), content) ? content : base;
}

/** A file may leave out which plan is the default. The file must name the other plan where that changes. */
function followMovedDefault(entries: PullEntry[], items: Folder["items"]): void {
  const moved = entries.some(
    ({ kind, state, diff }) =>
      kind === "plan" && state === "changed" && diff.some(({ field }) => field === "default"),
  );
  for (const entry of moved ? entries : []) {
    if (entry.kind !== "plan" || entry.state !== "unchanged" || entry.there?.default !== true) continue;
    const declared = items.get(syncTarget(entry))?.resolve(null) ?? null;
    if (isEqual(declared, entry.there)) continue;
    Object.assign(entry, { state: "changed", diff: listDifferences(declared, entry.there) });
  }
}

function compareItem(
  { kind, name }: SyncItem,
  local: LocalItem | null,
  remote: JsonObject | null,
  base: Json | undefined,
  serviceDir: string,
): Omit<PullEntry, "mark"> | null {
  if (local === null && remote === null) return null;
  const state = findState(local, remote, base);
  const path = local?.path ?? (kind === "relay" ? definitionPath(serviceDir, name) : catalogPath(serviceDir));
  const declared = local === null ? null : local.resolve(remote);
  const shows = local !== null && remote !== null && state !== "unchanged";
  return {
    kind,
    name,
    state,
    path,
    there: remote,
    problem: remote === null ? null : findProblem(kind, name, remote),
    diff: shows ? listDifferences(declared, remote) : [],
    threeWay: state === "changed_both" ? threeWay(base, declared, remote) : [],
  };
}

/** Finds what a save would reject. Only valid server content is written to a file. */
function findProblem(kind: SyncItem["kind"], name: string, remote: JsonObject): string | null {
  const checked =
    kind === "relay"
      ? checkDefinition(remote)
      : checkCatalog(editCatalog({}, [{ kind, name, content: remote }]));
  if ("problems" in checked) return checked.problems[0]?.message ?? null;
  return kind === "relay" && remote.name !== name
    ? `\`name\` is ${showText(String(remote.name))}, and not ${name}.`
    : null;
}

function findState(local: LocalItem | null, remote: JsonObject | null, base: Json | undefined): PullState {
  if (local === null) return base === undefined ? "created" : "deleted_here";
  const isAsBase = base !== undefined && isEqual(local.resolve(isJsonObject(base) ? base : null), base);
  if (remote === null) return base === undefined ? "only_here" : isAsBase ? "deleted_there" : "changed_both";
  if (isEqual(local.resolve(remote), remote)) return "unchanged";
  if (isAsBase) return "changed";
  return base !== undefined && isEqual(base, remote) ? "changed_here" : "changed_both";
}

function threeWay(base: Json | undefined, local: Json, remote: Json): ThreeWay[] {
  const fields = new Map<string, ThreeWay>();
  const at = (field: string): ThreeWay => {
    const one = fields.get(field) ?? { field };
    fields.set(field, one);
    return one;
  };
  if (base === undefined) {
    for (const { field, before, after } of listDifferences(local, remote))
      Object.assign(at(field), omitUndefined({ here: before, there: after }));
    return [...fields.values()];
  }
  const sides = { here: listDifferences(base, local), there: listDifferences(base, remote) };
  for (const side of ["here", "there"] as const)
    for (const { field, before, after } of sides[side])
      Object.assign(at(field), omitUndefined({ was: before, [side]: after }));
  // A side that did not change a field has its common value.
  for (const one of fields.values())
    for (const side of ["here", "there"] as const)
      if (!sides[side].some(({ field }) => field === one.field) && one.was !== undefined) one[side] = one.was;
  return [...fields.values()];
}

function omitUndefined<Value extends object>(value: Value): Value {
  return Object.fromEntries(Object.entries(value).filter(([, one]) => one !== undefined)) as Value;
}
