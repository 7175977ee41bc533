/** A page's Markdown as a terminal shows it: no marks but those that a reader needs, links as their words with where they lead. */
import { resolveLink } from "./link.ts";

/** Before each line of an example. */
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

/** Another page is named by what `relay docs` takes. */
function showLink(words: string, href: string): string {
  const to = resolveLink(href);
  return to.startsWith("#") || to.startsWith("/docs") ? words : `${words} (${to})`;
}
