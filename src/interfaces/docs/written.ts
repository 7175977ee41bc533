/** The handwritten pages: the files of docs/ in the repository. A text from a registry replaces each `<!-- fill: name -->`. */
import { unpack } from "../../base/packed.ts";
import { packWrittenPages } from "./pack-written.ts" with { type: "macro" };
import { type DocPage, readPage } from "./page.ts";

const PACKED = packWrittenPages();

const FILL = /^<!-- fill: ([a-z-]+) -->$/gm;

/** Reads the pages. Throws if a placeholder has no text. */
export function readWrittenPages(fills: Readonly<Record<string, () => string>>): DocPage[] {
  return Object.entries(unpack<Record<string, string>>(PACKED)).map(([id, file]) => {
    const page = readPage(id, file);
    const text = page.text.replaceAll(FILL, (_, name: string) => {
      const fill = fills[name];
      if (fill === undefined) throw new Error(`docs/${id}.md asks for ${name}, which nothing gives.`);
      return fill().trim();
    });
    return { ...page, text };
  });
}
