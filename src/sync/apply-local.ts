/**
 * Local development: the files of the service directory are the relays and the catalog of the environment `local`, within a second of a
 * save. A broken edit changes nothing: the last good definition stays in force, and the problem is told and shown until it is mended.
 */
import { stat } from "node:fs/promises";
import type { Definition } from "../relay/definition-shape.ts";
import { listRelayRows, relayTarget } from "../relay/relay.ts";
import { warnOfReferences } from "../relay/relay-reference.ts";
import type { LocalSecrets } from "../secret/local-file.ts";
import { clearProblem, listProblems, raiseProblem } from "../watch/problem.ts";
import { catalogPath } from "./catalog-file.ts";
import { checkDefinitionFile, listDefinitionFiles, relayNameOf, relaysFolder } from "./definition-file.ts";
import { type FileText, parseFileText, readFileText } from "./json-file.ts";
import { LocalCatalog } from "./local-catalog.ts";
import { type LocalParts, showFile, tellProblems } from "./local-parts.ts";
import { applyDefinition, removeDefinition } from "./local-relay.ts";
import { LocalSecretFile, SecretFileUnreadable } from "./local-secret.ts";
import { watchFolders } from "./watch.ts";

const DEFINITION_BROKEN = "definition_broken";
const CATALOG_BROKEN = "catalog_broken";
const CATALOG_TARGET = "catalog";
const MAX_PAGE = { limit: 200, after: null };

export interface LocalSync extends AsyncDisposable {
  /** Looks at the files now; resolves when what changed is applied. */
  look(): Promise<void>;
}

/** Applies the files, then watches them until it is disposed. */
export async function startLocalSync(parts: LocalParts): Promise<LocalSync> {
  const files = new LocalFiles(parts);
  let looking: Promise<void> = Promise.resolve();
  const look = (): Promise<void> => {
    looking = looking.then(
      () => files.look(),
      () => files.look(),
    );
    return looking;
  };
  await look();
  const watch = watchFolders([parts.serviceDir, relaysFolder(parts.serviceDir)], {
    clock: parts.clock,
    look: async () => {
      try {
        await look();
        if (files.unsure) watch.soon();
      } catch (error) {
        parts.tell(`The files could not be applied (${(error as Error).message}); they are tried again.`);
      }
    },
  });
  return { look, [Symbol.asyncDispose]: () => watch.stop() };
}

class LocalFiles {
  /** Whether a file was gone at the last look; an editor's rename looks like that for a moment. */
  unsure = false;
  readonly #parts: LocalParts;
  readonly #secrets: LocalSecretFile;
  readonly #catalog: LocalCatalog;
  /** What stood in each file when it was applied, or refused, last. */
  readonly #texts = new Map<string, FileText>();
  readonly #gone = new Set<string>();
  /** What stands as broken: the problem's target, and its sentence. */
  readonly #broken = new Map<string, string>();
  readonly #saved: Definition[] = [];
  #first = true;

  constructor(parts: LocalParts) {
    this.#parts = parts;
    this.#secrets = new LocalSecretFile(parts);
    this.#catalog = new LocalCatalog(parts);
  }

  async look(): Promise<void> {
    const found = await this.#readFiles();
    const changed = [...found].filter(([path, read]) => !isSame(this.#texts.get(path), read));
    const catalogFile = catalogPath(this.#parts.serviceDir);
    const catalogChanged = changed.some(([path]) => path === catalogFile);
    if (catalogChanged) await this.#catalog.apply(found.get(catalogFile) ?? { text: "" });
    let relaysChanged = false;
    for (const [path, read] of catalogChanged ? this.#withRefused(found, changed) : changed) {
      if (path !== catalogFile && (await this.#applyRelay(path, read))) relaysChanged = true;
    }
    if (await this.#removeGone(found)) relaysChanged = true;
    if (catalogChanged || relaysChanged) await this.#catalog.applyOffers();
    if (this.#saved.length > 0) await this.#tellReferences();
    for (const [path, read] of changed) this.#texts.set(path, read);
    const secretsChanged = await this.#reconcileSecrets();
    if (changed.length > 0 || relaysChanged || this.#first) await this.#settleProblems();
    if (relaysChanged || secretsChanged) this.#parts.changed();
    this.#first = false;
  }

  /** Another catalog may mend what a relay was refused for. */
  #withRefused(
    found: ReadonlyMap<string, FileText>,
    changed: readonly [string, FileText][],
  ): ReadonlyMap<string, FileText> {
    const refused = [...found].filter(([path]) => this.#broken.has(relayTarget(relayNameOf(path))));
    return new Map([...changed, ...refused]);
  }

  /** A file that cannot be read is there all the same: its relay stays as it is. */
  async #readFiles(): Promise<Map<string, FileText>> {
    const { serviceDir } = this.#parts;
    const paths = [...(await listDefinitionFiles(serviceDir)), catalogPath(serviceDir)];
    const found = new Map<string, FileText>();
    for (const path of paths) {
      const read = await readFileText(path);
      if (read !== null) found.set(path, read);
    }
    return found;
  }

  /** Answers whether the relay changed. */
  async #applyRelay(path: string, read: FileText): Promise<boolean> {
    const name = relayNameOf(path);
    const target = relayTarget(name);
    const file = checkDefinitionFile(name, parseFileText(read));
    if (!file.ok) {
      tellProblems(this.#parts, path, file.problems);
      this.#break(target, file.problems.map(({ message }) => message).join(" "));
      return false;
    }
    const { receiverSecret = null, signingSecret = null } = await this.#readSecrets(name);
    const applied = await applyDefinition(this.#parts, {
      definition: file.definition,
      secret: receiverSecret,
      signingSecret: file.definition.actions.some(({ type }) => type === "call_url") ? signingSecret : null,
      writtenMs: this.#first ? (await stat(path)).mtimeMs : null,
    });
    if (applied.outcome === "refused") {
      this.#parts.tell(`${this.#show(path)}  ${applied.message}`);
      this.#break(target, applied.message);
      return false;
    }
    const mended = this.#broken.delete(target);
    if (mended && applied.outcome === "same") {
      this.#parts.tell(`relay ${name}: ${this.#show(path)} is good again and in force`);
    }
    if (applied.outcome === "kept") {
      this.#parts.tell(
        `relay ${name}: was edited in the dashboard after ${this.#show(path)} was written and stays so; save the file again to use it`,
      );
    }
    if (applied.outcome === "same" || applied.outcome === "kept") return false;
    this.#parts.tell(`relay ${name}: ${applied.outcome} from ${this.#show(path)}`);
    for (const warning of applied.warnings) this.#parts.tell(`relay ${name}: warning: ${warning}`);
    this.#saved.push(file.definition);
    return true;
  }

  /** Deletes relays whose file has been gone for two looks; at the first look, those whose file went while nothing ran. */
  async #removeGone(found: ReadonlyMap<string, FileText>): Promise<boolean> {
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
      if (path === catalogPath(this.#parts.serviceDir)) {
        this.#catalog.forget();
        continue;
      }
      const name = relayNameOf(path);
      this.#broken.delete(relayTarget(name));
      const outcome = await removeDefinition(this.#parts, name);
      if (outcome === "deleted") this.#parts.tell(`relay ${name}: deleted, its file is gone`);
      if (outcome === "kept") {
        this.#parts.tell(
          `relay ${name}: its file is gone, but it was edited in the dashboard; delete it there`,
        );
      }
      removed ||= outcome === "deleted";
    }
    this.unsure = this.#gone.size > 0;
    return removed;
  }

  async #listOrphans(found: ReadonlyMap<string, FileText>): Promise<{ path: string; sure: boolean }[]> {
    const { store, environment, serviceDir } = this.#parts;
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

  /** What the relays saved at this look name and is not there, now that the catalog is. */
  async #tellReferences(): Promise<void> {
    const { store, environment, tell } = this.#parts;
    const saved = this.#saved.splice(0);
    await store.read(async (tx) => {
      for (const definition of saved) {
        for (const warning of await warnOfReferences(tx, environment.id, definition)) {
          tell(`relay ${definition.name}: warning: ${warning}`);
        }
      }
    });
  }

  async #readSecrets(name: string): Promise<LocalSecrets> {
    return await this.#secrets.read(name).catch((error: unknown) => {
      if (error instanceof SecretFileUnreadable) return {};
      throw error;
    });
  }

  async #reconcileSecrets(): Promise<boolean> {
    return await this.#secrets.reconcile().catch((error: unknown) => {
      if (error instanceof SecretFileUnreadable) return false;
      throw error;
    });
  }

  #break(target: string, message: string): void {
    this.#broken.set(target, message);
  }

  #show(path: string): string {
    return showFile(this.#parts, path);
  }

  /** The problems of the dashboard become what is broken now. */
  async #settleProblems(): Promise<void> {
    const { store, environment, clock } = this.#parts;
    const environmentId = environment.id;
    const nowMs = clock.now();
    const broken = new Map(this.#broken);
    const catalog = this.#catalog.problem();
    if (catalog !== null) broken.set(CATALOG_TARGET, catalog);
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
}

function isSame(last: FileText | undefined, now: FileText): boolean {
  if (last === undefined) return false;
  return "text" in now
    ? "text" in last && last.text === now.text
    : "refusal" in last && last.refusal === now.refusal;
}
