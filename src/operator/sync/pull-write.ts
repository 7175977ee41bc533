/** Writes a pull plan to the files, each atomically and only over the text that the plan read. */
import { relative } from "node:path";
import { isJsonObject, type JsonObject, parseJson } from "../../base/json.ts";
import { catalogPath } from "./catalog-file.ts";
import { type CatalogChange, editCatalog } from "./catalog-file-edit.ts";
import { FileChanged, removeUnchangedFile, writeUnchangedFile } from "./file-write.ts";
import { editJson, writeFileText } from "./json-edit.ts";
import type { Folder, PullEntry } from "./pull-plan.ts";

/** The kind of action for items that changed on both sides: none, take the server's, or keep the files'. */
export type PullSide = "neither" | "theirs" | "ours";

export interface PullOptions {
  side: PullSide;
  /** True if items that the server deleted are removed from the files. */
  prune: boolean;
}

type PullAction = "write" | "remove" | "settle" | "leave" | "nothing" | "refuse";

/**
 * Returns the action for an entry. `settle`: the file stays and from now on replaces the server's. `leave`: a person must decide.
 * `refuse`: the server's content would be written but is not valid in a file.
 */
export function pullActionOf(entry: PullEntry, options: PullOptions): PullAction {
  const deed = requestedAction(entry, options);
  return deed === "write" && entry.problem !== null ? "refuse" : deed;
}

function requestedAction({ state, there }: PullEntry, { side, prune }: PullOptions): PullAction {
  if (state === "created" || state === "changed") return "write";
  if (state === "deleted_there") return prune ? "remove" : "nothing";
  if (state === "deleted_here") return side === "theirs" ? "write" : "nothing";
  if (state !== "changed_both") return "nothing";
  if (side === "ours") return "settle";
  if (side === "neither") return "leave";
  if (there !== null) return "write";
  return prune ? "remove" : "leave";
}

/** Writes and removes in the plan's order. Returns the failures with their reasons; a failure does not stop the rest. */
export function writePull(
  folder: Folder,
  entries: readonly PullEntry[],
  options: PullOptions,
): Map<PullEntry, string> {
  const failed = new Map<PullEntry, string>();
  const attempt = (of: readonly PullEntry[], work: () => void): void => {
    try {
      work();
    } catch (error) {
      const why =
        error instanceof FileChanged ? `${error.message}, and was not changed` : (error as Error).message;
      for (const entry of of) failed.set(entry, why);
    }
  };
  const changed: PullEntry[] = [];
  for (const entry of entries) {
    const deed = pullActionOf(entry, options);
    if (deed === "refuse") failed.set(entry, formatProblem(entry));
    if (deed !== "write" && deed !== "remove") continue;
    if (entry.kind === "relay") attempt([entry], () => writeRelay(folder, entry, deed));
    else changed.push(entry);
  }
  if (changed.length > 0) attempt(changed, () => writeCatalog(folder, changed, options));
  return failed;
}

function formatProblem({ problem }: PullEntry): string {
  return `what the server has is not valid here (${problem}) Update relay where the server is newer, else correct it in the server's dashboard.`;
}

function writeRelay({ texts }: Folder, { path, there }: PullEntry, deed: "write" | "remove"): void {
  const read = texts.get(path) ?? null;
  if (deed === "write" && there !== null)
    writeUnchangedFile(path, read, read === null ? writeFileText(there) : editJson(read, there));
  else if (deed === "remove" && read !== null) removeUnchangedFile(path, read);
}

function writeCatalog(
  { serviceDir, texts }: Folder,
  entries: readonly PullEntry[],
  options: PullOptions,
): void {
  const path = catalogPath(serviceDir);
  const read = texts.get(path) ?? null;
  const changes = entries.map((entry): CatalogChange => {
    const { kind, name, there } = entry;
    return {
      kind: kind as CatalogChange["kind"],
      name,
      content: pullActionOf(entry, options) === "remove" ? null : there,
    };
  });
  const value = read === null ? {} : parseJson(read.replace(/^\uFEFF/, ""));
  const wanted: JsonObject = editCatalog(isJsonObject(value) ? value : {}, changes);
  writeUnchangedFile(path, read, read === null ? writeFileText(wanted) : editJson(read, wanted));
}

/** Formats the file's path relative to the folder in which the command runs. */
export function formatPath(cwd: string, path: string): string {
  return relative(cwd, path) || path;
}
