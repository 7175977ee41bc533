/**
 * The catalog file in local development: applied in two halves around the relays, with what stands as wrong with it. A broken file leaves
 * the last good catalog in force.
 */
import { type Catalog, catalogPath, checkCatalogFile, EMPTY_CATALOG } from "./catalog-file.ts";
import { type FileText, parseFileText } from "./json-file.ts";
import { applyOffers, applyStock, type CatalogOutcome } from "./local-catalog-item.ts";
import { type LocalParts, showFile, tellProblems } from "./local-parts.ts";

export class LocalCatalog {
  readonly #parts: LocalParts;
  #catalog: Catalog = EMPTY_CATALOG;
  /** What is wrong with the file itself; null: it is good. */
  #broken: string | null = null;
  #stockRefused: readonly string[] = [];
  #offersRefused: readonly string[] = [];

  constructor(parts: LocalParts) {
    this.#parts = parts;
  }

  /** The first half, before the relays: collections and access. */
  async apply(read: FileText): Promise<void> {
    const file = checkCatalogFile(parseFileText(read));
    if (!file.ok) {
      tellProblems(this.#parts, catalogPath(this.#parts.serviceDir), file.problems);
      this.#broken = file.problems.map(({ message }) => message).join(" ");
      return;
    }
    this.#broken = null;
    this.#catalog = file.catalog;
    this.#stockRefused = this.#tell(await applyStock(this.#parts, file.catalog));
  }

  /** The second half, after the relays that products and plans may name. */
  async applyOffers(): Promise<void> {
    this.#offersRefused = this.#tell(await applyOffers(this.#parts, this.#catalog));
  }

  /** The file is gone: nothing is wrong with it any more, and nothing is deleted. */
  forget(): void {
    this.#catalog = EMPTY_CATALOG;
    this.#broken = null;
    this.#stockRefused = [];
    this.#offersRefused = [];
  }

  /** What stands as wrong now, in one text; null for nothing. */
  problem(): string | null {
    const refused = [...this.#stockRefused, ...this.#offersRefused];
    return this.#broken ?? (refused.length === 0 ? null : refused.join(" "));
  }

  #tell({ done, refused }: CatalogOutcome): readonly string[] {
    const file = showFile(this.#parts, catalogPath(this.#parts.serviceDir));
    for (const line of done) this.#parts.tell(`${line} from ${file}`);
    for (const line of refused) this.#parts.tell(`${file}  ${line}`);
    return refused;
  }
}
