/**
 * The files of the service directory and the environment of local development as one truth: each look applies what changed in the files since
 * the one before, and writes to them what the dashboard changed. A broken edit changes nothing: the last good definition or catalog stays, and
 * the problem is told and shown until it is mended.
 */
import { existsSync } from "node:fs";
import { Refusal, type Warning } from "../../base/refusal.ts";
import type { LocalSecrets } from "../../platform/secret/local-secrets.ts";
import { type Misfits, recheckRelay } from "../../rules/relay/catalog-edit.ts";
import { listRelayRows, relayTarget } from "../../rules/relay/relay.ts";
import { listReferenceWarnings } from "../../rules/relay/relay-problem.ts";
import { makeCatalogLookup } from "../../rules/relay/relay-reference.ts";
import { definitionPath, listDefinitionFiles, relayNameOf } from "./definition-file.ts";
import { type FileText, readFileText } from "./json-file.ts";
import { LocalCatalog } from "./local-catalog.ts";
import { CATALOG_TARGET, LocalProblems } from "./local-problem.ts";
import { LocalRelays } from "./local-relays.ts";
import { type LocalDeps, LocalSecretFile, SecretFileUnreadable } from "./local-secret.ts";
import { LocalWrite } from "./local-write.ts";
import { listSynced } from "./synced.ts";

/** What a save is told of its file. */
export interface SavedFileResult {
  /** `service/relays/checkout.json`: it says now what was saved. */
  file?: string;
  warnings: Warning[];
}

/** A file that moved while it was to be written. */
const RETRY_MS = 100;

export class LocalFiles {
  readonly #deps: LocalDeps;
  readonly #problems: LocalProblems;
  readonly #write: LocalWrite;
  readonly #relays: LocalRelays;
  readonly #catalog: LocalCatalog;
  readonly #secrets: LocalSecretFile;
  /** What stood in each file when it was applied, refused, or written last. */
  #texts = new Map<string, FileText>();
  /** By relay, as the last look left them: what this version of it does not fit. */
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

  /** In how many milliseconds the next look is wanted; null: when somebody changes something. */
  get nextSyncMs(): number | null {
    return this.#write.moved ? RETRY_MS : this.#relays.nextCheckMs;
  }

  /** `edited`: whether the catalog may have been changed past the files. */
  async sync(edited: boolean): Promise<void> {
    this.#write.moved = false;
    const found = await this.#readFiles();
    const { path } = this.#catalog;
    const changed = [...found].filter(([at, read]) => !isSame(this.#texts.get(at), read));
    const catalogChanged = changed.some(([at]) => at === path);
    // Around the relays: they name what is in lookup, and are named as the way an offer is sold.
    if (catalogChanged) await this.#catalog.applyResources(found.get(path) ?? { text: "" });
    else if (!found.has(path)) this.#catalog.clear();
    let relaysChanged = false;
    const secrets = (name: string) => this.#guardSecretFile<LocalSecrets>(this.#secrets.read(name), {});
    for (const [at, read] of this.#withBroken(found, changed, catalogChanged))
      if (at !== path && (await this.#relays.apply(at, read, secrets))) relaysChanged = true;
    const isFewer = this.#dropMissing(found);
    if (await this.#relays.writeBack(found)) relaysChanged = true;
    if (catalogChanged || relaysChanged || isFewer) await this.#catalog.applyOffers();
    const waits = this.#problems.list("file_behind").has(CATALOG_TARGET);
    if (edited || catalogChanged || waits || this.#first) await this.#catalog.writeBack(found);
    if (catalogChanged || relaysChanged || this.#first) await this.#reportMisfits();
    this.#texts = found;
    this.#first = false;
    await this.#problems.publish();
    // A folder that is away is put back by whoever took it: nothing of ours may lie in its place.
    const isAway = !existsSync(this.#deps.serviceDir) && (await this.#hadFiles());
    if (!isAway) await this.#guardSecretFile(this.#secrets.reconcile(), undefined);
  }

  async #hadFiles(): Promise<boolean> {
    const { store, environment } = this.#deps;
    return (await store.read((tx) => listSynced(tx, environment.id))).size > 0;
  }

  /** Refuses with `version_conflict` a save of what a file says otherwise, where that cannot be brought into force. */
  requireInSync(target: string): void {
    const isCatalog = target === CATALOG_TARGET;
    const problem = this.#problems.list(isCatalog ? "catalog_broken" : "definition_broken").get(target);
    if (problem === undefined) return;
    const path = this.#pathOf(target);
    const read = this.#texts.get(path);
    // What is refused of single items leaves the others alone.
    if (isCatalog && !this.#catalog.isBroken) return;
    const file = this.#write.formatPath(path);
    throw new Refusal(
      "version_conflict",
      `${file} was changed and is not in force, so this save would overwrite it: mend the file or take it away, then save again. (${problem})`,
      { details: { file, written: read !== undefined && "text" in read ? read.text : null } },
    );
  }

  /** After a save and a look: whether its file says it. */
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

  /** A file that cannot be read is there all the same: its relay stays as it is. */
  async #readFiles(): Promise<Map<string, FileText>> {
    const paths = [...(await listDefinitionFiles(this.#deps.serviceDir)), this.#catalog.path];
    const found = new Map<string, FileText>();
    for (const path of paths) {
      const read = await readFileText(path);
      if (read !== null) found.set(path, read);
    }
    return found;
  }

  /** Another catalog, or a relay less, may mend what a relay was refused for. */
  #withBroken(
    found: ReadonlyMap<string, FileText>,
    changed: readonly [string, FileText][],
    catalogChanged: boolean,
  ): ReadonlyMap<string, FileText> {
    if (!catalogChanged && !this.#relays.takeRemoved()) return new Map(changed);
    const broken = this.#problems.list("definition_broken");
    return new Map([
      ...changed,
      ...[...found].filter(([path]) => broken.has(relayTarget(relayNameOf(path)))),
    ]);
  }

  /** With a file goes what was wrong with it, also where no relay came of it. Answers whether one went. */
  #dropMissing(found: ReadonlyMap<string, FileText>): boolean {
    const gone = [...this.#texts.keys()].filter((path) => !found.has(path) && path !== this.#catalog.path);
    for (const path of gone) this.#problems.clear("definition_broken", relayTarget(relayNameOf(path)));
    return gone.length > 0;
  }

  /** What the relays saved at this look do not fit now that the catalog is there, and what another catalog broke of the others. */
  async #reportMisfits(): Promise<void> {
    const { store, environment, clock, print } = this.#deps;
    const edited = { environmentId: environment.id, nowMs: clock.now() };
    const last = this.#misfits;
    const { saved } = this.#relays;
    const found = await store.write("dashboard", async (tx) => {
      const all = new Map<string, { of: string; misfits: Misfits }>();
      const lookup = makeCatalogLookup(tx, environment.id);
      const warnings: [name: string, Warning][] = [];
      for (const { id, name, version, definition } of await listRelayRows(tx, environment.id)) {
        const [of, known] = [`${id} ${version}`, last.get(name)];
        // What an edit of the relay itself broke was told by its save.
        const before = known?.of === of ? known.misfits : null;
        const { broken, after } = await recheckRelay(tx, edited, lookup, definition, before);
        all.set(name, { of, misfits: after });
        const told = saved.has(name) ? await listReferenceWarnings(lookup, definition) : broken;
        for (const warning of told) warnings.push([name, warning]);
      }
      return { all, warnings };
    });
    saved.clear();
    this.#misfits = found.all;
    for (const [name, { message }] of found.warnings) print(`relay ${name}: warning: ${message}`);
  }

  /** A secrets file that cannot be read was told of; everything else goes on. So it does where it cannot be written. */
  async #guardSecretFile<Result>(work: Promise<Result>, otherwise: Result): Promise<Result> {
    return await work.catch((error: unknown) => {
      if (error instanceof SecretFileUnreadable) return otherwise;
      if (!(error instanceof Error && "code" in error)) throw error;
      if (this.#lastTrouble !== error.message)
        this.#deps.print(`The secrets file could not be written (${error.message}); it is tried again.`);
      this.#lastTrouble = error.message;
      return otherwise;
    });
  }
}

function isSame(last: FileText | undefined, now: FileText): boolean {
  if (last === undefined) return false;
  return "text" in now
    ? "text" in last && last.text === now.text
    : "refusal" in last && last.refusal === now.refusal;
}
