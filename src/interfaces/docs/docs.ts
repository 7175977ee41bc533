/** The complete documentation: its ordered pages, their HTML, and the search. A page is rendered once, at its first request. */
import { renderIndex, renderMissing, renderPage, renderSearch } from "./layout.ts";
import { type DocPage, GROUPS } from "./page.ts";
import { type Hit, SearchIndex } from "./search.ts";

export class Docs {
  /** The pages by group and order. A page's children follow it. */
  readonly pages: readonly DocPage[];
  readonly #byId: ReadonlyMap<string, DocPage>;
  readonly #html = new Map<string, string>();
  #index: SearchIndex | null = null;

  constructor(pages: readonly DocPage[]) {
    const inOrder = pages.toSorted(
      (one, other) =>
        GROUPS.indexOf(one.group) - GROUPS.indexOf(other.group) ||
        one.order - other.order ||
        (one.title < other.title ? -1 : 1),
    );
    const top = inOrder.filter(({ parent }) => parent === undefined);
    this.pages = top.flatMap((page) => [page, ...inOrder.filter(({ parent }) => parent === page.id)]);
    this.#byId = new Map(this.pages.map((page) => [page.id, page]));
    if (this.#byId.size !== pages.length)
      throw new Error("Two pages of the documentation have one name, or one hangs under no page.");
  }

  find(id: string): DocPage | null {
    return this.#byId.get(id) ?? null;
  }

  /** Renders the page as HTML, or returns null if it does not exist. "" is the list of all pages. */
  html(id: string): string | null {
    const known = this.#html.get(id);
    if (known !== undefined) return known;
    const page = this.find(id);
    if (page === null && id !== "") return null;
    const made = page === null ? renderIndex(this.pages) : renderPage(this.pages, page);
    this.#html.set(id, made);
    return made;
  }

  /** Renders the page for an unknown address. */
  missingHtml(): string {
    return renderMissing(this.pages);
  }

  search(query: string): Hit[] {
    this.#index ??= new SearchIndex(this.pages);
    return this.#index.find(query);
  }

  /** Renders the results of a search as a page. */
  searchHtml(query: string): string {
    return renderSearch(this.pages, query, this.search(query));
  }
}
