/**
 * Resolves links of pages. Handwritten pages link to each other's files (`limits.md#bodies`), so that links also work in the repository. The
 * service serves them below /docs.
 */

/** The path of the documentation. */
export const DOCS_PATH = "/docs";

const PICTURE = /^screens\/[\w-]+\.webp$/;

/** Returns the address of a link in a page. */
export function resolveLink(href: string): string {
  const file = /^(?:\.\/)?([\w/-]+)\.md(#.*)?$/.exec(href);
  if (PICTURE.test(href)) return pathOf(href);
  return file === null ? href : `${pathOf(file[1] ?? "")}${file[2] ?? ""}`;
}

/** Returns the path of a page, for example `/docs/first-hour`. */
export function pathOf(id: string, anchor = ""): string {
  return `${DOCS_PATH}${id === "" ? "" : `/${id}`}${anchor === "" ? "" : `#${anchor}`}`;
}
