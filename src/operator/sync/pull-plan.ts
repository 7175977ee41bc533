/**
 * What the files of a folder and an environment make of each other, thing by thing, against what both had last: which side moved. It reads
 * files and writes none.
 */
import { existsSync } from "node:fs";
import { isJsonObject, type Json, type JsonObject, writeJson } from "../../base/json.ts";
import { listDifferences } from "../../base/json-diff.ts";
import { refuseDefinition } from "../../base/refusal.ts";
import { showText } from "../../base/shape.ts";
import { checkDefinition } from "../../rules/relay/definition.ts";
import { catalogPath, checkCatalog, checkCatalogFile } from "./catalog-file.ts";
import { editCatalog, listItems } from "./catalog-file-edit.ts";
import { definitionPath, listDefinitionFiles, relayNameOf, relaysFolder } from "./definition-file.ts";
import { type DeployedState, type SyncItem, targetOf } from "./deployed-state.ts";
import { parseFileText, readFileText } from "./json-file.ts";
import type { MergeBase } from "./merge-base.ts";

type PullState =
  /** There alone, and new. */
  | "created"
  /** Changed there, and here as both had it. */
  | "changed"
  | "unchanged"
  /** Changed here, and there as both had it. */
  | "changed_here"
  /** Changed on both sides, or nothing is known of what both had. */
  | "changed_both"
  /** Here alone, and new. */
  | "only_here"
  /** Both had it, and its file is gone. */
  | "deleted_here"
  /** Both had it, it is gone there, and here as both had it. */
  | "deleted_there";

/** A field with what it was and what each side has; what is absent is not there. */
interface ThreeWay {
  field: string;
  was?: Json;
  here?: Json;
  there?: Json;
}

export interface PullEntry extends SyncItem {
  state: PullState;
  /** The file it stands in, or would. */
  path: string;
  /** What the file's change would be; of what is new nothing, because the file says it all. */
  diff: { field: string; before?: Json; after?: Json }[];
  /** Of what changed on both sides. */
  threeWay: ThreeWay[];
  /** As the server has it; null: it is gone. */
  there: JsonObject | null;
  /** Why what the server has is no definition, or no item of a catalog, and is never written; null: it is one. */
  problem: string | null;
  mark: string | null;
}

/** What a folder holds. */
export interface Folder {
  serviceDir: string;
  items: ReadonlyMap<string, LocalItem>;
  /** The texts as they were read, by path; what is written later is written over these. */
  texts: ReadonlyMap<string, string>;
}

interface LocalItem extends SyncItem {
  path: string;
  /** What the file says, beside what stands elsewhere: what a file leaves out it leaves as it is. Text for a file that says nothing that can be read. */
  said(beside: JsonObject | null): Json;
}

/** Refuses with `invalid_definition` a catalog with problems, because of what it says nothing can be known. */
export async function readFolder(serviceDir: string): Promise<Folder> {
  const texts = new Map<string, string>();
  const items = new Map<string, LocalItem>();
  const add = (here: LocalItem): void => void items.set(targetOf(here), here);
  for (const path of await listDefinitionFiles(serviceDir)) {
    const read = (await readFileText(path)) ?? { refusal: "It is gone." };
    if ("text" in read) texts.set(path, read.text);
    const file = parseFileText(read);
    const value = file.ok ? file.value : "text" in read ? read.text : read.refusal;
    add({ kind: "relay", name: relayNameOf(path), path, said: () => value });
  }
  const path = catalogPath(serviceDir);
  const read = await readFileText(path);
  if (read === null) return { serviceDir, items, texts };
  const file = parseFileText(read);
  const checked = checkCatalogFile(file);
  if (!checked.ok)
    throw refuseDefinition(
      checked.problems.map(({ field, message }) => ({ field, message: `${path}: ${message}` })),
    );
  if ("text" in read) texts.set(path, read.text);
  for (const item of file.ok ? listItems(file.value) : [])
    add({ kind: item.kind, name: item.name, path, said: (beside) => item.resolve(beside) });
  return { serviceDir, items, texts };
}

/** Every thing of either side. What this folder remembers counts before what a server does, and counts nothing where the folder lost it all. */
export function planPull(folder: Folder, deployed: readonly DeployedState[], memory: MergeBase): PullEntry[] {
  const { serviceDir, items } = folder;
  const entries: PullEntry[] = [];
  const seen = new Set<string>();
  const lost = {
    relay: !existsSync(relaysFolder(serviceDir)),
    catalog: !existsSync(catalogPath(serviceDir)),
  };
  for (const there of deployed) {
    const target = targetOf(there);
    seen.add(target);
    const here = items.get(target) ?? null;
    const isLost = lost[there.kind === "relay" ? "relay" : "catalog"];
    const own = isLost ? undefined : memory.get(target);
    const base = own ?? (here === null ? undefined : there.brought?.content);
    const entry = compareItem(there, here, there.content as JsonObject | null, base, serviceDir);
    if (entry !== null) entries.push({ ...entry, mark: there.mark });
  }
  for (const [target, here] of items) {
    if (seen.has(target)) continue;
    const entry = compareItem(here, here, null, memory.get(target), serviceDir);
    if (entry !== null) entries.push({ ...entry, mark: null });
  }
  followMovedDefault(entries, items);
  return entries;
}

/** A file may leave out which plan is the default; where the one that it names is no longer it, it names the other. */
function followMovedDefault(entries: PullEntry[], items: Folder["items"]): void {
  const moved = entries.some(
    ({ kind, state, diff }) =>
      kind === "plan" && state === "changed" && diff.some(({ field }) => field === "default"),
  );
  for (const entry of moved ? entries : []) {
    if (entry.kind !== "plan" || entry.state !== "unchanged" || entry.there?.default !== true) continue;
    const said = items.get(targetOf(entry))?.said(null) ?? null;
    if (isSame(said, entry.there)) continue;
    Object.assign(entry, { state: "changed", diff: listDifferences(said, entry.there) });
  }
}

function compareItem(
  { kind, name }: SyncItem,
  here: LocalItem | null,
  there: JsonObject | null,
  base: Json | undefined,
  serviceDir: string,
): Omit<PullEntry, "mark"> | null {
  if (here === null && there === null) return null;
  const state = findState(here, there, base);
  const path = here?.path ?? (kind === "relay" ? definitionPath(serviceDir, name) : catalogPath(serviceDir));
  const said = here === null ? null : here.said(there);
  const shows = here !== null && there !== null && state !== "unchanged";
  return {
    kind,
    name,
    state,
    path,
    there,
    problem: there === null ? null : findProblem(kind, name, there),
    diff: shows ? listDifferences(said, there) : [],
    threeWay: state === "changed_both" ? threeWay(base, said, there) : [],
  };
}

/** What a save of it would refuse: a server's word is written to a file only where it is what the file is for. */
function findProblem(kind: SyncItem["kind"], name: string, there: JsonObject): string | null {
  const checked =
    kind === "relay"
      ? checkDefinition(there)
      : checkCatalog(editCatalog({}, [{ kind, name, content: there }]));
  if ("problems" in checked) return checked.problems[0]?.message ?? null;
  return kind === "relay" && there.name !== name
    ? `\`name\` is ${showText(String(there.name))}, and not ${name}.`
    : null;
}

function findState(here: LocalItem | null, there: JsonObject | null, base: Json | undefined): PullState {
  if (here === null) return base === undefined ? "created" : "deleted_here";
  const isAsBase = base !== undefined && isSame(here.said(isJsonObject(base) ? base : null), base);
  if (there === null) return base === undefined ? "only_here" : isAsBase ? "deleted_there" : "changed_both";
  if (isSame(here.said(there), there)) return "unchanged";
  if (isAsBase) return "changed";
  return base !== undefined && isSame(base, there) ? "changed_here" : "changed_both";
}

function threeWay(base: Json | undefined, here: Json, there: Json): ThreeWay[] {
  const fields = new Map<string, ThreeWay>();
  const at = (field: string): ThreeWay => {
    const one = fields.get(field) ?? { field };
    fields.set(field, one);
    return one;
  };
  if (base === undefined) {
    for (const { field, before, after } of listDifferences(here, there))
      Object.assign(at(field), omitUndefined({ here: before, there: after }));
    return [...fields.values()];
  }
  const sides = { here: listDifferences(base, here), there: listDifferences(base, there) };
  for (const side of ["here", "there"] as const)
    for (const { field, before, after } of sides[side])
      Object.assign(at(field), omitUndefined({ was: before, [side]: after }));
  // Where one side alone moved a field, the other has what it was.
  for (const one of fields.values())
    for (const side of ["here", "there"] as const)
      if (!sides[side].some(({ field }) => field === one.field) && one.was !== undefined) one[side] = one.was;
  return [...fields.values()];
}

function omitUndefined<Value extends object>(value: Value): Value {
  return Object.fromEntries(Object.entries(value).filter(([, one]) => one !== undefined)) as Value;
}

function isSame(one: Json, other: Json): boolean {
  return writeJson(one) === writeJson(other);
}
