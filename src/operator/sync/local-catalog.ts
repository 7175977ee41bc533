/**
 * The catalog and its file in local development: what the file changed is applied around the relays, what the dashboard changed is written to
 * it, item by item. What the file does not name stays as it is.
 */
import { existsSync } from "node:fs";
import { isJsonObject, type JsonObject, parseJson, writeJson } from "../../base/json.ts";
import type { Writer } from "../../store/port.ts";
import { type AppliedCatalog, applyOffers, applyStock, chooseSide } from "./apply.ts";
import { type Catalog, catalogPath, checkCatalogFile, EMPTY_CATALOG } from "./catalog-file.ts";
import { type CatalogChange, editCatalog, listItems } from "./catalog-file-edit.ts";
import { findItem, type Item, type ItemKind } from "./catalog-item.ts";
import { type FileText, parseFileText } from "./json-file.ts";
import { CATALOG_TARGET, type LocalNotes } from "./local-notes.ts";
import { writtenAt } from "./local-relays.ts";
import type { LocalDeps } from "./local-secret.ts";
import type { LocalWrite } from "./local-write.ts";
import { entryTarget } from "./plan.ts";
import { listItemTargets } from "./standing.ts";
import { findBrought, forgetBrought, LOOKED_AT, listBrought, rememberBrought } from "./synced.ts";

const NOTHING_WRONG = { file: null, stock: [], offers: [] };

export class LocalCatalog {
  readonly path: string;
  readonly #deps: LocalDeps;
  readonly #notes: LocalNotes;
  readonly #write: LocalWrite;
  /** The last good one. */
  #catalog: Catalog = EMPTY_CATALOG;
  /** What is wrong with it: its file, or what was refused of it before and after the relays. */
  #wrongs: { file: string | null; stock: readonly string[]; offers: readonly string[] } = NOTHING_WRONG;

  constructor(deps: LocalDeps, notes: LocalNotes, write: LocalWrite) {
    this.#deps = deps;
    this.#notes = notes;
    this.#write = write;
    this.path = catalogPath(deps.serviceDir);
  }

  /** Whether the file as a whole is not in force. */
  get isBroken(): boolean {
    return this.#wrongs.file !== null;
  }

  /** What relays write to and grant; before them. */
  async applyStock(read: FileText): Promise<void> {
    const { tell } = this.#deps;
    const file = checkCatalogFile(parseFileText(read));
    if (!file.ok) {
      const shown = this.#write.show(this.path);
      for (const { place, message } of file.problems)
        tell(`${shown}${place === null ? "" : `:${place.line}:${place.column}`}  ${message}`);
      tell(`${shown}  is not applied; what was good before stays in force.`);
      this.#wrongs = { ...this.#wrongs, file: file.problems.map(({ message }) => message).join(" ") };
    } else {
      this.#catalog = file.catalog;
      const stock = this.#tell(await applyStock(this.#deps, file.catalog, await writtenAt(this.path)));
      this.#wrongs = { ...this.#wrongs, file: null, stock };
    }
    this.#note();
  }

  /** What may be sold through relays; after them. */
  async applyOffers(): Promise<void> {
    const offers = this.#tell(await applyOffers(this.#deps, this.#catalog, await writtenAt(this.path)));
    this.#wrongs = { ...this.#wrongs, offers };
    this.#note();
  }

  /** Without its file nothing is wrong with it, and nothing is deleted. */
  leave(): void {
    this.#catalog = EMPTY_CATALOG;
    this.#wrongs = NOTHING_WRONG;
    this.#note();
  }

  /** Writes what the dashboard changed. `texts` becomes what the files say then. */
  async settle(texts: Map<string, FileText>): Promise<void> {
    const { store, environment, serviceDir, tell, clock } = this.#deps;
    const file = texts.get(this.path);
    if (file !== undefined && (!("text" in file) || this.#wrongs.file !== null)) return;
    const read = file === undefined ? null : file.text;
    const written = read === null ? {} : parseJson(read.replace(/^\uFEFF/, ""));
    const writtenMs = await writtenAt(this.path);
    const { changes, keepsOld } = await store.write("dashboard", (tx) =>
      this.#readChanges(tx, written, writtenMs),
    );
    if (changes.length === 0) {
      this.#notes.clear("file_behind", CATALOG_TARGET);
      return;
    }
    const value = editCatalog(isJsonObject(written) ? written : {}, changes);
    // A folder that went is put back by whoever took it; what is saved meanwhile waits for it.
    if (!existsSync(serviceDir) && (await this.#hadFolder())) {
      this.#write.refuse(this.path, CATALOG_TARGET, "its folder is away");
      return;
    }
    const wanted = { path: this.path, read, value, keepsOld, target: CATALOG_TARGET };
    const text = this.#write.write(wanted);
    if (typeof text !== "string") return;
    texts.set(this.path, { text });
    for (const { kind, name, content } of changes)
      tell(
        `${kind} ${name}: ${content === null ? "taken out of" : "written to"} ${this.#write.show(this.path)}`,
      );
    await store.write("dashboard", async (tx) => {
      for (const { kind, name, content } of changes) {
        const target = entryTarget({ kind, name });
        if (content === null) await forgetBrought(tx, environment.id, target);
        else await rememberBrought(tx, environment.id, target, content, clock.now());
      }
    });
  }

  /** What is to be written, and remembers what needs no writing. `keepsOld`: an item of the file was edited too, and loses. */
  async #readChanges(
    tx: Writer,
    written: unknown,
    writtenMs: number,
  ): Promise<{ changes: CatalogChange[]; keepsOld: boolean }> {
    const { environment, clock } = this.#deps;
    const environmentId = environment.id;
    const brought = await listBrought(tx, environmentId);
    const isFirst = (await findBrought(tx, environmentId, LOOKED_AT)) === null;
    if (isFirst) await rememberBrought(tx, environmentId, LOOKED_AT, null, clock.now());
    const items = new Map(listItems(written as JsonObject).map((item) => [entryTarget(item), item]));
    const known = [...brought.keys()].filter((target) => !target.startsWith("relay:"));
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
        keepsOld ||= !isAsBase(item, base);
      } else if (content === null) await forgetBrought(tx, environmentId, target);
      else if (base === writeJson(content)) continue;
      // What stood before anything was looked at is left out of the file as it was.
      else if (base === null && isFirst)
        await rememberBrought(tx, environmentId, target, content, clock.now());
      else changes.push({ kind, name, content });
    }
    return { changes, keepsOld };
  }

  async #hadFolder(): Promise<boolean> {
    const { store, environment } = this.#deps;
    return (await store.read((tx) => listBrought(tx, environment.id))).size > 0;
  }

  /** Answers what was refused. */
  #tell({ done, refused }: AppliedCatalog): readonly string[] {
    const file = this.#write.show(this.path);
    for (const line of done) this.#deps.tell(`${line} from ${file}`);
    for (const line of refused) this.#deps.tell(`${file}  ${line}`);
    return refused;
  }

  #note(): void {
    const { file, stock, offers } = this.#wrongs;
    const message = file ?? [...stock, ...offers].join(" ");
    if (message === "") this.#notes.clear("catalog_broken", CATALOG_TARGET);
    else this.#notes.set("catalog_broken", CATALOG_TARGET, message);
  }
}

function isAsBase(item: Item, base: string | null): boolean {
  const content = base === null ? null : parseJson(base);
  return isJsonObject(content) && writeJson(item.want(content)) === base;
}
