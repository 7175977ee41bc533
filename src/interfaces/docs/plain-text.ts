/** Formats a page's Markdown for a terminal. It omits marks that a reader does not need, and shows links as text with their target. */
import { resolveLink } from "./link.ts";

/** The indentation of each line of an example. */
export const CODE_INDENT = "    ";

const FENCE = /^\s*(```|~~~)/;

export function toPlainText(text: string): string {
  const lines: string[] = [];
  let isCode = false;
  for (const line of text.split("\n")) {
    if (FENCE.test(line)) {
      isCode = !isCode;
      continue;
    }
    if (isCode) lines.push(CODE_INDENT + line);
    else if (!/^\s*<!--.*-->\s*$/.test(line) && !/^\|[\s|:-]+\|$/.test(line)) lines.push(plainLine(line));
  }
  return lines
    .join("\n")
    .replaceAll(/\n{3,}/g, "\n\n")
    .trim();
}

function plainLine(line: string): string {
  const words = line
    .replace(/^#+ /, "")
    .replaceAll(/!\[([^\]]*)\]\([^)]*\)/g, "$1")
    .replaceAll(/\[([^\]]*)\]\(([^)]*)\)/g, (_, shown: string, href: string) => showLink(shown, href))
    .replaceAll(/\*\*([^*]+)\*\*/g, "$1")
    .replaceAll(/`([^`]*)`/g, "$1");
  return /^\|.*\|$/.test(words)
    ? words
        .slice(1, -1)
        .split(/(?<!\\)\|/)
        .map((cell) => cell.trim().replaceAll("\\|", "|"))
        .filter((cell) => cell !== "")
        .join("  ·  ")
    : words;
}

/** Shows the target of a link, except for pages of the documentation, which `relay docs` finds by their name. */
function showLink(words: string, href: string): string {
  const to = resolveLink(href);
  return to.startsWith("#") || to.startsWith("/docs") ? words : `${words} (${to})`;
}
