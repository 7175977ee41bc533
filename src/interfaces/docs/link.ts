/**
 * Where a link of a page leads. Pages written by hand name each other's files (`limits.md#bodies`), so that the links work in the repository
 * too; served, these are addresses below /docs.
 */

/** Where the pages stand. */
export const DOCS_PATH = "/docs";

const PICTURE = /^screens\/[\w-]+\.png$/;

/** The address that a link of a page stands for. */
export function resolveLink(href: string): string {
  const file = /^(?:\.\/)?([\w/-]+)\.md(#.*)?$/.exec(href);
  if (PICTURE.test(href)) return pathOf(href);
  return file === null ? href : `${pathOf(file[1] ?? "")}${file[2] ?? ""}`;
}

/** `/docs/first-hour`. */
export function pathOf(id: string, anchor = ""): string {
  return `${DOCS_PATH}${id === "" ? "" : `/${id}`}${anchor === "" ? "" : `#${anchor}`}`;
}
