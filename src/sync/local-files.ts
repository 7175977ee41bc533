/**
 * The files of the service directory brought into force: each look applies what changed since the one before. A broken edit changes nothing:
 * the last good definition or catalog stays, and the problem is told and shown until it is mended.
 */
import { stat } from "node:fs/promises";
import { dirname, relative } from "node:path";
import type { Warning } from "../ground/refusal.ts";
import { type Misfits, settleBroken } from "../relay/catalog-edit.ts";
import { listRelayRows, relayTarget } from "../relay/relay.ts";
import { warnOfReferences } from "../relay/relay-fit.ts";
import { stockOf } from "../relay/relay-reference.ts";
import type { LocalSecrets } from "../secret/local-file.ts";
import { clearProblem, listProblems, raiseProblem } from "../watch/problem.ts";
import { type AppliedCatalog, applyOffers, applyRelay, applyStock, removeRelay } from "./apply.ts";
import { type Catalog, catalogPath, checkCatalogFile, EMPTY_CATALOG } from "./catalog-file.ts";
import { checkDefinitionFile, listDefinitionFiles, relayNameOf, relaysFolder } from "./definition-file.ts";
import { type FileProblem, type FileText, parseFileText, readFileText } from "./json-file.ts";
import { type LocalDeps, LocalSecretFile, SecretFileUnreadable } from "./local-secret.ts";

const DEFINITION_BROKEN = "definition_broken";
const CATALOG_BROKEN = "catalog_broken";
const CATALOG_TARGET = "catalog";
const MAX_PAGE = { limit: 200, after: null };

const NOTHING_WRONG = { file: null, stock: [], offers: [] };

/** What is wrong with the catalog: its file, or what was refused of it before and after the relays. */
interface CatalogWrongs {
  file: string | null;
  stock: readonly string[];
  offers: readonly string[];
}

export class LocalFiles {
  /** Whether a file was gone at the last look; an editor's rename looks like that for a moment. */
  unsure = false;
  readonly #deps: LocalDeps;
  readonly #catalogPath: string;
  readonly #secrets: LocalSecretFile;
  /** What stood in each file when it was applied, or refused, last. */
  readonly #texts = new Map<string, FileText>();
  readonly #gone = new Set<string>();
  /** The relays that stand as broken: the problem's target, and its sentence. */
  readonly #broken = new Map<string, string>();
  /** The relays saved at this look. */
  readonly #saved = new Set<string>();
  /** By relay, as the last look left them: what it does not fit. */
  #misfits: ReadonlyMap<string, Misfits> = new Map();
  /** The last good one. */
  #catalog: Catalog = EMPTY_CATALOG;
  #wrongs: CatalogWrongs = NOTHING_WRONG;
  #first = true;

  constructor(deps: LocalDeps) {
    this.#deps = deps;
    this.#catalogPath = catalogPath(deps.serviceDir);
    this.#secrets = new LocalSecretFile(deps);
  }

  async look(): Promise<void> {
    const found = await this.#readFiles();
    const changed = [...found].filter(([path, read]) => !isSame(this.#texts.get(path), read));
    const catalogChanged = changed.some(([path]) => path === this.#catalogPath);
    // Around the relays: they name what is in stock, and are named as the way an offer is sold.
    if (catalogChanged) await this.#applyStock(found.get(this.#catalogPath) ?? { text: "" });
    let relaysChanged = false;
    for (const [path, read] of catalogChanged ? this.#withRefused(found, changed) : changed) {
      if (path !== this.#catalogPath && (await this.#applyRelay(path, read))) relaysChanged = true;
    }
    const held = this.#texts.size;
    if (await this.#removeGone(found)) relaysChanged = true;
    // With a file goes what was wrong with it, also where no relay came of it.
    const isFewer = this.#texts.size < held;
    if (catalogChanged || relaysChanged) await this.#applyOffers();
    if (catalogChanged || relaysChanged || this.#first) await this.#tellReferences();
    for (const [path, read] of changed) this.#texts.set(path, read);
    await this.#ofSecretFile(this.#secrets.reconcile(), undefined);
    if (changed.length > 0 || relaysChanged || isFewer || this.#first) await this.#settleProblems();
    this.#first = false;
  }

  /** A file that cannot be read is there all the same: its relay stays as it is. */
  async #readFiles(): Promise<Map<string, FileText>> {
    const paths = [...(await listDefinitionFiles(this.#deps.serviceDir)), this.#catalogPath];
    const found = new Map<string, FileText>();
    for (const path of paths) {
      const read = await readFileText(path);
      if (read !== null) found.set(path, read);
    }
    return found;
  }

  async #applyStock(read: FileText): Promise<void> {
    const file = checkCatalogFile(parseFileText(read));
    if (!file.ok) {
      this.#tellProblems(this.#catalogPath, file.problems);
      this.#wrongs = { ...this.#wrongs, file: sentenceOf(file.problems) };
      return;
    }
    this.#catalog = file.catalog;
    const stock = this.#tellCatalog(await applyStock(this.#deps, file.catalog));
    this.#wrongs = { ...this.#wrongs, file: null, stock };
  }

  async #applyOffers(): Promise<void> {
    const offers = this.#tellCatalog(await applyOffers(this.#deps, this.#catalog));
    this.#wrongs = { ...this.#wrongs, offers };
  }

  /** Answers what was refused. */
  #tellCatalog({ done, refused }: AppliedCatalog): readonly string[] {
    const file = this.#show(this.#catalogPath);
    for (const line of done) this.#deps.tell(`${line} from ${file}`);
    for (const line of refused) this.#deps.tell(`${file}  ${line}`);
    return refused;
  }

  /** Another catalog may mend what a relay was refused for. */
  #withRefused(
    found: ReadonlyMap<string, FileText>,
    changed: readonly [string, FileText][],
  ): ReadonlyMap<string, FileText> {
    const refused = [...found].filter(([path]) => this.#broken.has(relayTarget(relayNameOf(path))));
    return new Map([...changed, ...refused]);
  }

  /** Answers whether the relay changed. */
  async #applyRelay(path: string, read: FileText): Promise<boolean> {
    const { tell } = this.#deps;
    const name = relayNameOf(path);
    const target = relayTarget(name);
    const file = checkDefinitionFile(name, parseFileText(read));
    if (!file.ok) {
      this.#tellProblems(path, file.problems);
      this.#broken.set(target, sentenceOf(file.problems));
      return false;
    }
    const { definition } = file;
    const secrets = await this.#ofSecretFile<LocalSecrets>(this.#secrets.read(name), {});
    const callsUrl = definition.actions.some(({ type }) => type === "call_url");
    const applied = await applyRelay(this.#deps, {
      definition,
      secret: secrets.receiverSecret ?? null,
      signingSecret: callsUrl ? (secrets.signingSecret ?? null) : null,
      writtenMs: this.#first ? (await stat(path)).mtimeMs : null,
    });
    const shown = this.#show(path);
    if (applied.outcome === "refused") {
      tell(`${shown}  ${applied.message}`);
      this.#broken.set(target, applied.message);
      return false;
    }
    const mended = this.#broken.delete(target);
    if (mended && applied.outcome === "same") tell(`relay ${name}: ${shown} is good again and in force`);
    if (applied.outcome === "kept") {
      tell(
        `relay ${name}: was edited in the dashboard after ${shown} was written and stays so; save the file again to use it`,
      );
    }
    if (applied.outcome === "same" || applied.outcome === "kept") return false;
    tell(`relay ${name}: ${applied.outcome} from ${shown}`);
    for (const { message } of applied.warnings) tell(`relay ${name}: warning: ${message}`);
    this.#saved.add(name);
    return true;
  }

  /** Deletes relays whose file has been gone for two looks; at the first look, those whose file went while nothing ran. */
  async #removeGone(found: ReadonlyMap<string, FileText>): Promise<boolean> {
    const { tell } = this.#deps;
    let removed = false;
    const gone = this.#first
      ? await this.#listOrphans(found)
      : [...this.#texts.keys()]
          .filter((path) => !found.has(path))
          .map((path) => ({ path, sure: this.#gone.has(path) }));
    this.#gone.clear();
    for (const { path, sure } of gone) {
      if (!sure) {
        this.#gone.add(path);
        continue;
      }
      this.#texts.delete(path);
      if (path === this.#catalogPath) {
        // Nothing is wrong with it any more, and nothing is deleted.
        this.#catalog = EMPTY_CATALOG;
        this.#wrongs = NOTHING_WRONG;
        continue;
      }
      const name = relayNameOf(path);
      this.#broken.delete(relayTarget(name));
      const outcome = await removeRelay(this.#deps, name);
      if (outcome === "deleted") tell(`relay ${name}: deleted, its file is gone`);
      if (outcome === "kept") {
        tell(`relay ${name}: its file is gone, but it was edited in the dashboard; delete it there`);
      }
      removed ||= outcome === "deleted";
    }
    this.unsure = this.#gone.size > 0;
    return removed;
  }

  async #listOrphans(found: ReadonlyMap<string, FileText>): Promise<{ path: string; sure: boolean }[]> {
    const { store, environment, serviceDir } = this.#deps;
    const folder = relaysFolder(serviceDir);
    // Without the folder this is more likely the wrong place than a wish to delete every relay.
    const exists = await stat(folder).then(
      (entry) => entry.isDirectory(),
      () => false,
    );
    if (!exists) return [];
    const names = new Set([...found.keys()].map(relayNameOf));
    const rows = await store.read((tx) => listRelayRows(tx, environment.id));
    return rows
      .filter((row) => row.originKind === "file" && !names.has(row.name))
      .map((row) => ({ path: `${folder}/${row.name}.json`, sure: true }));
  }

  /** What the relays saved at this look do not fit now that the catalog is there, and what another catalog broke of the others. */
  async #tellReferences(): Promise<void> {
    const { store, environment, clock, tell } = this.#deps;
    const edited = { environmentId: environment.id, nowMs: clock.now() };
    const last = this.#misfits;
    const found = await store.write("dashboard", async (tx) => {
      const misfits = new Map<string, Misfits>();
      const stock = stockOf(tx, environment.id);
      const warnings: [name: string, Warning][] = [];
      for (const { name, definition } of await listRelayRows(tx, environment.id)) {
        const { broken, after } = await settleBroken(tx, edited, stock, definition, last.get(name) ?? null);
        misfits.set(name, after);
        const told = this.#saved.has(name) ? await warnOfReferences(stock, definition) : broken;
        for (const warning of told) warnings.push([name, warning]);
      }
      return { misfits, warnings };
    });
    this.#saved.clear();
    this.#misfits = found.misfits;
    for (const [name, { message }] of found.warnings) tell(`relay ${name}: warning: ${message}`);
  }

  /** A secrets file that cannot be read was told of; everything else goes on. */
  async #ofSecretFile<Result>(work: Promise<Result>, otherwise: Result): Promise<Result> {
    return await work.catch((error: unknown) => {
      if (error instanceof SecretFileUnreadable) return otherwise;
      throw error;
    });
  }

  /** The problems of the dashboard become what is broken now. */
  async #settleProblems(): Promise<void> {
    const { store, environment, clock } = this.#deps;
    const environmentId = environment.id;
    const nowMs = clock.now();
    const broken = new Map(this.#broken);
    const { file, stock, offers } = this.#wrongs;
    const catalog = file ?? [...stock, ...offers].join(" ");
    if (catalog !== "") broken.set(CATALOG_TARGET, catalog);
    await store.write("dashboard", async (tx) => {
      const standing = (await listProblems(tx, environmentId, true, MAX_PAGE)).items;
      for (const { code, target } of standing) {
        if (code !== DEFINITION_BROKEN && code !== CATALOG_BROKEN) continue;
        if (!broken.has(target)) await clearProblem(tx, { environmentId, code, target, nowMs });
      }
      for (const [target, message] of broken) {
        const code = target === CATALOG_TARGET ? CATALOG_BROKEN : DEFINITION_BROKEN;
        await raiseProblem(tx, { environmentId, code, target, message, nowMs });
      }
    });
  }

  /** The file as lines name it: `service/relays/checkout.json`. */
  #show(path: string): string {
    return relative(dirname(this.#deps.serviceDir), path);
  }

  #tellProblems(path: string, problems: readonly FileProblem[]): void {
    const file = this.#show(path);
    for (const { place, message } of problems) {
      this.#deps.tell(`${file}${place === null ? "" : `:${place.line}:${place.column}`}  ${message}`);
    }
    this.#deps.tell(`${file}  is not applied; what was good before stays in force.`);
  }
}

function sentenceOf(problems: readonly FileProblem[]): string {
  return problems.map(({ message }) => message).join(" ");
}

function isSame(last: FileText | undefined, now: FileText): boolean {
  if (last === undefined) return false;
  return "text" in now
    ? "text" in last && last.text === now.text
    : "refusal" in last && last.refusal === now.refusal;
}
