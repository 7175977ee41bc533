/**
 * The catalog and its file in local development. Applies the file's changes before and after the relays, and writes the dashboard's changes
 * to the file, item by item. Items that the file does not name stay unchanged.
 */
import { isJsonObject, type JsonObject, parseJson, writeJson } from "../../base/json.ts";
import { relayOf } from "../../rules/relay/relay.ts";
import type { Writer } from "../../store/port.ts";
import { type Catalog, catalogPath, checkCatalogFile, EMPTY_CATALOG } from "./catalog-file.ts";
import { type CatalogChange, editCatalog, listItems } from "./catalog-file-edit.ts";
import { findItem, type Item, type ItemKind } from "./catalog-item.ts";
import { listItemTargets } from "./deployed-state.ts";
import { type FileText, parseFileText, readModifiedMs } from "./json-file.ts";
import { type AppliedCatalog, applyOffers, applyResources, chooseSide } from "./local-apply.ts";
import { CATALOG_TARGET, type LocalProblems } from "./local-problem.ts";
import type { LocalDeps } from "./local-secret.ts";
import { isFolderMovedAway, type LocalWrite } from "./local-write.ts";
import {
  deleteSynced,
  FIRST_SYNC_TARGET,
  findSynced,
  listSynced,
  recordSynced,
  syncTarget,
} from "./synced.ts";

const NO_FAULTS = { file: null, resources: [], offers: [] };

export class LocalCatalog {
  readonly path: string;
  readonly #deps: LocalDeps;
  readonly #problems: LocalProblems;
  readonly #write: LocalWrite;
  /** The last valid one. */
  #catalog: Catalog = EMPTY_CATALOG;
  /** The faults of the file, or of its items before and after the relays. */
  #faults: { file: string | null; resources: readonly string[]; offers: readonly string[] } = NO_FAULTS;

  constructor(deps: LocalDeps, notes: LocalProblems, write: LocalWrite) {
    this.#deps = deps;
    this.#problems = notes;
    this.#write = write;
    this.path = catalogPath(deps.serviceDir);
  }

  /** Reports whether the complete file is not in force. */
  get isBroken(): boolean {
    return this.#faults.file !== null;
  }

  /** Applies the items that relays write to and grant. Runs before the relays. */
  async applyResources(read: FileText): Promise<void> {
    const { print } = this.#deps;
    const file = checkCatalogFile(parseFileText(read));
    if (!file.ok) {
      const shown = this.#write.formatPath(this.path);
      for (const { place, message } of file.problems)
        print(`${shown}${place === null ? "" : `:${place.line}:${place.column}`}  ${message}`);
      print(`${shown}  is not applied; what was good before stays in force.`);
      this.#faults = { ...this.#faults, file: file.problems.map(({ message }) => message).join(" ") };
    } else {
      this.#catalog = file.catalog;
      const resources = this.#printOutcome(
        await applyResources(this.#deps, file.catalog, await readModifiedMs(this.path)),
      );
      this.#faults = { ...this.#faults, file: null, resources };
    }
    this.#recordProblem();
  }

  /** Applies the items that relays may sell. Runs after the relays. */
  async applyOffers(): Promise<void> {
    const offers = this.#printOutcome(
      await applyOffers(this.#deps, this.#catalog, await readModifiedMs(this.path)),
    );
    this.#faults = { ...this.#faults, offers };
    this.#recordProblem();
  }

  /** Clears the problems of a missing file. Nothing is deleted. */
  clear(): void {
    this.#catalog = EMPTY_CATALOG;
    this.#faults = NO_FAULTS;
    this.#recordProblem();
  }

  /** Writes what the dashboard changed. Updates `texts` to what the files then say. */
  async writeBack(texts: Map<string, FileText>): Promise<void> {
    const { store, environment, print, clock } = this.#deps;
    const file = texts.get(this.path);
    if (file !== undefined && (!("text" in file) || this.#faults.file !== null)) return;
    const read = file === undefined ? null : file.text;
    const written = read === null ? {} : parseJson(read.replace(/^\uFEFF/, ""));
    const writtenMs = await readModifiedMs(this.path);
    const { changes, keepsOld } = await store.write("dashboard", (tx) =>
      this.#readChanges(tx, written, writtenMs),
    );
    if (changes.length === 0) {
      this.#problems.clear("file_behind", CATALOG_TARGET);
      return;
    }
    const value = editCatalog(isJsonObject(written) ? written : {}, changes);
    // The user who moved the folder away will put it back. Saves wait for it meanwhile.
    if (await isFolderMovedAway(this.#deps)) {
      this.#write.recordUnwritten(this.path, CATALOG_TARGET, "its folder is away");
      return;
    }
    const wanted = { path: this.path, read, value, keepsOld, target: CATALOG_TARGET };
    const text = this.#write.write(wanted);
    if (typeof text !== "string") return;
    texts.set(this.path, { text });
    for (const { kind, name, content } of changes)
      print(
        `${kind} ${name}: ${content === null ? "taken out of" : "written to"} ${this.#write.formatPath(this.path)}`,
      );
    await store.write("dashboard", async (tx) => {
      for (const { kind, name, content } of changes) {
        const target = syncTarget({ kind, name });
        if (content === null) await deleteSynced(tx, environment.id, target);
        else await recordSynced(tx, environment.id, target, content, clock.now());
      }
    });
  }

  /** Finds what must be written, and records what needs no write. `keepsOld`: an item was edited in the file too, and loses. */
  async #readChanges(
    tx: Writer,
    written: unknown,
    writtenMs: number,
  ): Promise<{ changes: CatalogChange[]; keepsOld: boolean }> {
    const { environment, clock } = this.#deps;
    const environmentId = environment.id;
    const brought = await listSynced(tx, environmentId);
    const isFirst = (await findSynced(tx, environmentId, FIRST_SYNC_TARGET)) === null;
    if (isFirst) await recordSynced(tx, environmentId, FIRST_SYNC_TARGET, null, clock.now());
    const items = new Map(listItems(written as JsonObject).map((item) => [syncTarget(item), item]));
    const known = [...brought.keys()].filter((target) => relayOf(target) === null);
    const targets = new Set([...known, ...(await listItemTargets(tx, environmentId)), ...items.keys()]);
    const changes: CatalogChange[] = [];
    let keepsOld = false;
    for (const target of targets) {
      const at = target.indexOf(":");
      const [kind, name] = [target.slice(0, at) as ItemKind, target.slice(at + 1)];
      const item = items.get(target);
      const content = await findItem(tx, environmentId, kind, name);
      const base = brought.get(target) ?? null;
      if (item !== undefined) {
        if ((await chooseSide(tx, environmentId, item, content, writtenMs)) !== "environment") continue;
        changes.push({ kind, name, content });
        keepsOld ||= !matchesBase(item, base);
      } else if (content === null) await deleteSynced(tx, environmentId, target);
      else if (base === writeJson(content)) continue;
      // An item from before the first look is not added to the file.
      else if (base === null && isFirst) await recordSynced(tx, environmentId, target, content, clock.now());
      else changes.push({ kind, name, content });
    }
    return { changes, keepsOld };
  }

  /** Prints the outcome and returns what was rejected. */
  #printOutcome({ done, refused }: AppliedCatalog): readonly string[] {
    const file = this.#write.formatPath(this.path);
    for (const line of done) this.#deps.print(`${line} from ${file}`);
    for (const line of refused) this.#deps.print(`${file}  ${line}`);
    return refused;
  }

  #recordProblem(): void {
    const { file, resources, offers } = this.#faults;
    const message = file ?? [...resources, ...offers].join(" ");
    if (message === "") this.#problems.clear("catalog_broken", CATALOG_TARGET);
    else this.#problems.set("catalog_broken", CATALOG_TARGET, message);
  }
}

function matchesBase(item: Item, base: string | null): boolean {
  const content = base === null ? null : parseJson(base);
  return isJsonObject(content) && writeJson(item.resolve(content)) === base;
}
