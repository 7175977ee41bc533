/**
 * Keeps the files of the service directory and the environment of local development the same. Each run applies what changed in the files
 * and writes to them what the dashboard changed. A broken file changes nothing: the last valid content stays in force, and the problem is
 * printed and shown until the file is fixed.
 */
import { Refusal, type Warning } from "../../base/refusal.ts";
import type { LocalSecrets } from "../../platform/secret/local-secrets.ts";
import { type Misfits, recheckRelay } from "../../rules/relay/catalog-edit.ts";
import { listRelayRows, relayTarget } from "../../rules/relay/relay.ts";
import { listReferenceWarnings } from "../../rules/relay/relay-problem.ts";
import { makeCatalogLookup } from "../../rules/relay/relay-reference.ts";
import { FOLLOWED_RECEIVER } from "../../rules/verify/followed-receiver.ts";
import { definitionPath, listDefinitionFiles, relayNameOf } from "./definition-file.ts";
import { type FileText, readFileText } from "./json-file.ts";
import { LocalCatalog } from "./local-catalog.ts";
import { CATALOG_TARGET, LocalProblems } from "./local-problem.ts";
import { LocalRelays } from "./local-relays.ts";
import { type LocalDeps, LocalSecretFile, SecretFileUnreadable } from "./local-secret.ts";
import { isFolderMovedAway, LocalWrite } from "./local-write.ts";

/** The result of a save for its file. */
export interface SavedFileResult {
  /** `service/relays/checkout.json`: the file now has what was saved. */
  file?: string;
  warnings: Warning[];
}

/** The wait before writing a file again that changed during the write. */
const RETRY_MS = 100;

export class LocalFiles {
  readonly #deps: LocalDeps;
  readonly #problems: LocalProblems;
  readonly #write: LocalWrite;
  readonly #relays: LocalRelays;
  readonly #catalog: LocalCatalog;
  readonly #secrets: LocalSecretFile;
  /** The content of each file when it was last applied, rejected or written. */
  #texts = new Map<string, FileText>();
  /** The misfits of each relay at the last run, for the version `of`. */
  #misfits: ReadonlyMap<string, { of: string; misfits: Misfits }> = new Map();
  #lastTrouble = "";
  #first = true;

  constructor(deps: LocalDeps) {
    this.#deps = deps;
    this.#problems = new LocalProblems(deps);
    this.#write = new LocalWrite(deps, this.#problems);
    this.#relays = new LocalRelays(deps, this.#problems, this.#write);
    this.#catalog = new LocalCatalog(deps, this.#problems, this.#write);
    this.#secrets = new LocalSecretFile(deps);
  }

  /** The milliseconds until the next run; null for a run at the next change. */
  get nextSyncMs(): number | null {
    return this.#write.moved ? RETRY_MS : this.#relays.nextCheckMs;
  }

  /** Runs once. `edited` is true if the catalog may have changed other than through the files. */
  async sync(edited: boolean): Promise<void> {
    this.#write.moved = false;
    const found = await this.#readFiles();
    const { path } = this.#catalog;
    const changed = [...found].filter(([at, read]) => !isSame(this.#texts.get(at), read));
    const catalogChanged = changed.some(([at]) => at === path);
    // The catalog is applied around the relays: they name collections and access, and products and plans name them.
    if (catalogChanged) await this.#catalog.applyResources(found.get(path) ?? { text: "" });
    else if (!found.has(path)) this.#catalog.clear();
    let relaysChanged = false;
    const secrets = (name: string) => this.#guardSecretFile<LocalSecrets>(this.#secrets.read(name), {});
    for (const [at, read] of sortByScheme(this.#withBroken(found, changed, catalogChanged)))
      if (at !== path && (await this.#relays.apply(at, read, secrets))) relaysChanged = true;
    // A saved relay may be the one that another follows.
    if (relaysChanged)
      for (const [at, read] of this.#listBroken(found))
        if (await this.#relays.apply(at, read, secrets)) relaysChanged = true;
    const isFewer = this.#dropMissing(found);
    if (await this.#relays.writeBack(found)) relaysChanged = true;
    if (catalogChanged || relaysChanged || isFewer) await this.#catalog.applyOffers();
    const waits = this.#problems.list("file_behind").has(CATALOG_TARGET);
    if (edited || catalogChanged || waits || this.#first) await this.#catalog.writeBack(found);
    if (catalogChanged || relaysChanged || this.#first) await this.#reportMisfits();
    this.#texts = found;
    this.#first = false;
    await this.#problems.publish();
    // No file may be written where a folder was moved away.
    if (!(await isFolderMovedAway(this.#deps)))
      await this.#guardSecretFile(this.#secrets.reconcile(), undefined);
  }

  /** Throws `version_conflict` for a save of something whose file differs and cannot be applied. */
  requireInSync(target: string): void {
    const isCatalog = target === CATALOG_TARGET;
    const problem = this.#problems.list(isCatalog ? "catalog_broken" : "definition_broken").get(target);
    if (problem === undefined) return;
    const path = this.#pathOf(target);
    const read = this.#texts.get(path);
    // A rejected item does not affect the others.
    if (isCatalog && !this.#catalog.isBroken) return;
    const file = this.#write.formatPath(path);
    throw new Refusal(
      "version_conflict",
      `${file} was changed and is not in force, so this save would overwrite it: fix the file or remove it, then save again. (${problem})`,
      { details: { file, written: read !== undefined && "text" in read ? read.text : null } },
    );
  }

  /** Returns after a save whether its file has the saved content. */
  resultOf(target: string): SavedFileResult {
    const path = this.#pathOf(target);
    const unwritten = this.#problems.list("file_behind").get(target);
    if (unwritten !== undefined)
      return { warnings: [{ code: "file_not_written", field: "", message: unwritten }] };
    return { ...(this.#texts.has(path) ? { file: this.#write.formatPath(path) } : {}), warnings: [] };
  }

  #pathOf(target: string): string {
    if (target === CATALOG_TARGET) return this.#catalog.path;
    return definitionPath(this.#deps.serviceDir, target.slice(relayTarget("").length));
  }

  /** An unreadable file still counts as present, so its relay stays. */
  async #readFiles(): Promise<Map<string, FileText>> {
    const paths = [...(await listDefinitionFiles(this.#deps.serviceDir)), this.#catalog.path];
    const found = new Map<string, FileText>();
    for (const path of paths) {
      const read = await readFileText(path);
      if (read !== null) found.set(path, read);
    }
    return found;
  }

  /** Adds broken files, because another catalog or a deleted relay may fix what their relays were rejected for. */
  #withBroken(
    found: ReadonlyMap<string, FileText>,
    changed: readonly [string, FileText][],
    catalogChanged: boolean,
  ): ReadonlyMap<string, FileText> {
    if (!catalogChanged && !this.#relays.takeRemoved()) return new Map(changed);
    return new Map([...changed, ...this.#listBroken(found)]);
  }

  #listBroken(found: ReadonlyMap<string, FileText>): [string, FileText][] {
    const broken = this.#problems.list("definition_broken");
    return [...found].filter(([path]) => broken.has(relayTarget(relayNameOf(path))));
  }

  /** Clears the problems of missing files, also of files that made no relay. Returns whether a file is missing. */
  #dropMissing(found: ReadonlyMap<string, FileText>): boolean {
    const missing = [...this.#texts.keys()].filter((path) => !found.has(path) && path !== this.#catalog.path);
    for (const path of missing) this.#problems.clear("definition_broken", relayTarget(relayNameOf(path)));
    return missing.length > 0;
  }

  /** Reports the misfits and changed cases of the relays saved in this run, and what a changed catalog broke of the others. */
  async #reportMisfits(): Promise<void> {
    const { store, environment, clock, print, findChangedCases } = this.#deps;
    const edited = { environmentId: environment.id, nowMs: clock.now() };
    const last = this.#misfits;
    const { saved } = this.#relays;
    const found = await store.write("dashboard", async (tx) => {
      const all = new Map<string, { of: string; misfits: Misfits }>();
      const lookup = makeCatalogLookup(tx, environment.id);
      const warnings: [name: string, Warning][] = [];
      for (const { id, name, version, definition } of await listRelayRows(tx, environment.id)) {
        const [of, known] = [`${id} ${version}`, last.get(name)];
        // The save of the relay already reported what its own edit broke.
        const before = known?.of === of ? known.misfits : null;
        const { broken, after } = await recheckRelay(tx, edited, lookup, definition, before);
        all.set(name, { of, misfits: after });
        const reported = saved.has(name) ? await listReferenceWarnings(lookup, definition) : broken;
        for (const warning of reported) warnings.push([name, warning]);
      }
      return { all, warnings };
    });
    const names = [...saved];
    saved.clear();
    this.#misfits = found.all;
    for (const [name, { message }] of found.warnings) print(`relay ${name}: warning: ${message}`);
    for (const { relay, message } of await findChangedCases(names))
      print(`relay ${relay}: warning: ${message}`);
  }

  /** Continues where the secrets file cannot be read, which was printed, or cannot be written. */
  async #guardSecretFile<Result>(work: Promise<Result>, otherwise: Result): Promise<Result> {
    return await work.catch((error: unknown) => {
      if (error instanceof SecretFileUnreadable) return otherwise;
      if (!(error instanceof Error && "code" in error)) throw error;
      if (this.#lastTrouble !== error.message)
        this.#deps.print(`The secrets file could not be written (${error.message}); it will be retried.`);
      this.#lastTrouble = error.message;
      return otherwise;
    });
  }
}

const FOLLOWS = new RegExp(`"scheme"\\s*:\\s*"${FOLLOWED_RECEIVER}"`);

/** Puts followers last, because the receiver that they follow must exist. */
function sortByScheme(files: ReadonlyMap<string, FileText>): [string, FileText][] {
  const follows = (read: FileText): number => Number("text" in read && FOLLOWS.test(read.text));
  return [...files].toSorted(([, one], [, other]) => follows(one) - follows(other));
}

function isSame(last: FileText | undefined, now: FileText): boolean {
  if (last === undefined) return false;
  return "text" in now
    ? "text" in last && last.text === now.text
    : "refusal" in last && last.refusal === now.refusal;
}
