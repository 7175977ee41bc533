/**
 * A page of the documentation: Markdown with a head that says where it stands, and the sections that its headings make of it. A page is
 * written by hand in docs/, or made from a registry; both are the same from here on.
 */

/** In the order in which the pages stand. */
export const GROUPS = [
  "Start",
  "Relays",
  "When something is wrong",
  "Running a server",
  "Senders",
  "Reference",
] as const;
type Group = (typeof GROUPS)[number];

export interface DocPage {
  /** What stands behind `/docs/`: `first-hour`, `errors/bad_signature`. */
  id: string;
  title: string;
  /** One sentence for lists. */
  summary: string;
  group: Group;
  /** Within its group. */
  order: number;
  /** The page it belongs to, as a sender's does to the list of senders; it is listed there and not in the navigation. */
  parent?: string;
  /** Markdown without a first heading. */
  text: string;
}

/** A heading and what stands under it, up to the next one. */
export interface Section {
  /** The text of the heading; the page's title for what stands before the first. */
  title: string;
  /** What stands behind the `#`; "" for what stands before the first heading. */
  anchor: string;
  depth: number;
  text: string;
}

const HEAD = /^---\n([\s\S]*?)\n---\n/;

/** The page that a file of docs/ writes. Throws, naming the file, where its head lacks something. */
export function readPage(id: string, file: string): DocPage {
  const head = HEAD.exec(file);
  const words = new Map(
    (head?.[1] ?? "").split("\n").map((line) => {
      const at = line.indexOf(":");
      return [line.slice(0, at).trim(), line.slice(at + 1).trim()] as const;
    }),
  );
  const group = GROUPS.find((name) => name === words.get("group"));
  const [title, summary, order] = [words.get("title"), words.get("summary"), Number(words.get("order"))];
  if (head === null || !title || !summary || group === undefined || Number.isNaN(order))
    throw new Error(`docs/${id}.md begins with no head of title, summary, group and order.`);
  return { id, title, summary, group, order, text: file.slice(head[0].length).trim() };
}

const FENCE = /^\s*(```|~~~)/;
const HEADING = /^(#{2,4}) (.+)$/;

/** The page by its headings. */
export function splitSections({ title, text }: Pick<DocPage, "title" | "text">): Section[] {
  const nameAnchor = anchorNamer();
  const sections: Section[] = [{ title, anchor: "", depth: 1, text: "" }];
  let isCode = false;
  for (const line of text.split("\n")) {
    if (FENCE.test(line)) isCode = !isCode;
    const heading = isCode ? null : HEADING.exec(line);
    const last = sections.at(-1);
    if (heading !== null) {
      const words = plainWords(heading[2] ?? "");
      sections.push({ title: words, anchor: nameAnchor(words), depth: heading[1]?.length ?? 2, text: "" });
    } else if (last !== undefined) last.text += `${line}\n`;
  }
  return sections;
}

/** Names the anchors of one page, in the order of its headings: as Git hosts do, so that a link works there too. */
export function anchorNamer(): (heading: string) => string {
  const taken = new Map<string, number>();
  return (heading) => {
    const name = heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, "")
      .trim()
      .replaceAll(/\s/g, "-");
    const before = taken.get(name) ?? 0;
    taken.set(name, before + 1);
    return before === 0 ? name : `${name}-${before}`;
  };
}

/** A line of Markdown without its marks: what a heading is called. */
export function plainWords(line: string): string {
  return line
    .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1")
    .replaceAll(/[`*]/g, "")
    .replaceAll(/\\(.)/g, "$1")
    .trim();
}

/** The list of all pages as Markdown. */
export function listPages(pages: readonly DocPage[]): string {
  const groups = GROUPS.map((group) => {
    const own = pages.filter((page) => page.group === group && page.parent === undefined);
    const lines = own.map(({ id, title, summary }) => `- [${title}](/docs/${id}): ${summary}`);
    return lines.length === 0 ? "" : `## ${group}\n\n${lines.join("\n")}\n`;
  });
  return groups.filter((text) => text !== "").join("\n");
}
