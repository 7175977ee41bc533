/**
 * A page of the documentation: Markdown with front matter that says its place, and the sections of its headings. A page is handwritten in docs/,
 * or made from a registry. Both have the same type.
 */

/** The groups of pages, in their order. */
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
  /** The path below `/docs/`, for example `first-hour` or `errors/bad_signature`. */
  id: string;
  title: string;
  /** One sentence that describes the page in lists. */
  summary: string;
  group: Group;
  /** The position within the group. */
  order: number;
  /** The parent page, for example the list of senders for a sender. Only the parent lists the page, not the navigation. */
  parent?: string;
  /** Markdown without the first heading. */
  text: string;
}

/** A heading and the text up to the next one. */
export interface Section {
  /** The text of the heading, or the page's title for the text before the first heading. */
  title: string;
  /** The part after the `#`, or "" for the text before the first heading. */
  anchor: string;
  depth: number;
  text: string;
}

const HEAD = /^---\n([\s\S]*?)\n---\n/;

/** Reads the page from a file of docs/. Throws an error that names the file if its front matter is incomplete. */
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

/** Splits the page by its headings. */
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

/**
 * Returns a function that names the anchors of one page in the order of its headings. The names match those of Git hosts, so that a link works
 * there too.
 */
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

/** Returns a line of Markdown without its marks, for the text of a heading. */
export function plainWords(line: string): string {
  return line
    .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1")
    .replaceAll(/[`*]/g, "")
    .replaceAll(/\\(.)/g, "$1")
    .trim();
}

/** Lists all pages as Markdown. */
export function listPages(pages: readonly DocPage[]): string {
  const groups = GROUPS.map((group) => {
    const own = pages.filter((page) => page.group === group && page.parent === undefined);
    const lines = own.map(({ id, title, summary }) => `- [${title}](/docs/${id}): ${summary}`);
    return lines.length === 0 ? "" : `## ${group}\n\n${lines.join("\n")}\n`;
  });
  return groups.filter((text) => text !== "").join("\n");
}
