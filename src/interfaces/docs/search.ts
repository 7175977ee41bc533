/**
 * Finds sections of the documentation by words. Every word must be in the section, its title or the title of its page. A word in a title counts
 * more than one in the text. The search scans all sections, whose number changes only with a release.
 */
import type { DocPage, Section } from "./page.ts";
import { splitSections } from "./page.ts";
import { CODE_INDENT, toPlainText } from "./plain-text.ts";

export const MAX_QUERY_CHARS = 200;
const MAX_WORDS = 8;
export const MAX_HITS = 40;
const EXCERPT_CHARS = 220;

export interface Hit {
  page: DocPage;
  section: Section;
  /** Part of the section's text, from its first found word. */
  excerpt: string;
}

interface Indexed {
  page: DocPage;
  section: Section;
  /** The page's title and id. It is in lower case, like `title` and `body`. */
  pageName: string;
  title: string;
  body: string;
  shown: string;
}

export class SearchIndex {
  readonly #sections: readonly Indexed[];

  constructor(pages: readonly DocPage[]) {
    this.#sections = pages.flatMap((page) =>
      splitSections(page).map((section) => {
        const shown = runTogether(toPlainText(section.text));
        const lead = section.anchor === "" ? `${page.summary} ` : "";
        return {
          page,
          section,
          pageName: `${page.title} ${page.id}`.toLowerCase(),
          title: section.title.toLowerCase(),
          body: `${lead}${shown}`.toLowerCase(),
          shown: `${lead}${shown}`,
        };
      }),
    );
  }

  /** Returns the best matches first, and none for an empty query. */
  find(query: string): Hit[] {
    const words = wordsOf(query);
    if (words.length === 0) return [];
    return this.#sections
      .map((one) => ({ one, score: scoreOf(one, words) }))
      .filter(({ score }) => score > 0)
      .toSorted((first, second) => second.score - first.score)
      .slice(0, MAX_HITS)
      .map(({ one }) => ({ page: one.page, section: one.section, excerpt: excerptOf(one, words) }));
  }
}

/** The first line of a command or an entry. A line that is indented further or only closes brackets belongs to the line before. */
const BEGINS = /^ {4}[^\s}\])]/;

/** Joins the lines of a text into one, with a separator between commands and the text around them. */
function runTogether(text: string): string {
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  return lines
    .map((line, at) => {
      const before = lines[at - 1] ?? "";
      const isApart = BEGINS.test(line)
        ? at > 0 && !before.endsWith(":")
        : before.startsWith(CODE_INDENT) && !line.startsWith(CODE_INDENT);
      return (isApart ? "· " : "") + line.replaceAll(/\s+/g, " ").trim();
    })
    .join(" ");
}

/** Returns the distinct words of a query. */
export function wordsOf(query: string): string[] {
  const words =
    query
      .slice(0, MAX_QUERY_CHARS)
      .toLowerCase()
      .match(/[\p{L}\p{N}_.$/-]+/gu) ?? [];
  return [...new Set(words)].slice(0, MAX_WORDS);
}

/** Returns 0 if a word is not found. */
function scoreOf({ pageName, title, body, section }: Indexed, words: readonly string[]): number {
  let score = 0;
  for (const word of words) {
    const found =
      (title === word ? 40 : title.includes(word) ? 20 : 0) +
      (pageName.includes(word) ? 6 : 0) +
      (body.includes(word) ? 3 : 0);
    if (found === 0) return 0;
    score += found;
  }
  // The beginning of a page says best what the page is about.
  return score + (section.anchor === "" && words.every((word) => pageName.includes(word)) ? 30 : 0);
}

function excerptOf({ body, shown }: Indexed, words: readonly string[]): string {
  const places = words.map((word) => body.indexOf(word)).filter((at) => at >= 0);
  const first = places.length === 0 ? 0 : Math.min(...places);
  const from = first < EXCERPT_CHARS / 2 ? 0 : shown.lastIndexOf(" ", first - 40) + 1;
  const isCut = from + EXCERPT_CHARS < shown.length;
  const cut = shown.slice(from, from + EXCERPT_CHARS);
  const excerpt = isCut ? cut.slice(0, Math.max(cut.lastIndexOf(" "), EXCERPT_CHARS / 2)) : cut;
  return `${from > 0 ? "… " : ""}${excerpt}${isCut ? " …" : ""}`;
}

/** Splits the text into found words and the parts between them. */
export function markWords(text: string, words: readonly string[]): { text: string; isFound: boolean }[] {
  if (words.length === 0) return [{ text, isFound: false }];
  const longestFirst = words.toSorted((one, other) => other.length - one.length);
  const pattern = new RegExp(`(${longestFirst.map((word) => RegExp.escape(word)).join("|")})`, "giu");
  return text
    .split(pattern)
    .map((piece, index) => ({ text: piece, isFound: index % 2 === 1 }))
    .filter((piece) => piece.text !== "");
}
