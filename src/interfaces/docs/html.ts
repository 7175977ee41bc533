/**
 * Renders a page's Markdown as HTML with `marked`. It escapes markup in the Markdown, so that texts of a registry or a recipe cannot add
 * elements. Every heading gets an anchor, and every link its address below /docs.
 */
import { Marked, type Token, type Tokens } from "marked";
import { resolveLink } from "./link.ts";
import { anchorNamer, plainWords } from "./page.ts";

export function escapeHtml(text: string): string {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");
}

/** Prevents automatic links: an address in a sentence of a registry stays text. */
const PLAIN_ADDRESSES = { url: () => undefined };

/** The number of columns up to which a reader knows the column of each value without its name. */
const NAMED_COLUMNS = 4;

/** Renders the Markdown of a page. */
export function renderHtml(text: string): string {
  const nameAnchor = anchorNamer();
  const marked = new Marked({
    gfm: true,
    tokenizer: PLAIN_ADDRESSES,
    renderer: {
      html: ({ text: markup }: Tokens.HTML | Tokens.Tag) =>
        markup.startsWith("<!--") ? "" : escapeHtml(markup),
      heading({ tokens, depth, text: words }: Tokens.Heading) {
        const level = Math.max(2, depth);
        const anchor = escapeHtml(nameAnchor(plainWords(words)));
        return `<h${level} id="${anchor}"><a class="anchor" href="#${anchor}">${this.parser.parseInline(tokens)}</a></h${level}>\n`;
      },
      link({ href, tokens }: Tokens.Link) {
        const to = resolveLink(href);
        const rel = /^[a-z]+:/i.test(to) ? ' rel="noreferrer"' : "";
        return `<a href="${escapeHtml(to)}"${rel}>${this.parser.parseInline(tokens)}</a>`;
      },
      image: ({ href, text: words }: Tokens.Image) =>
        `<img src="${escapeHtml(resolveLink(href))}" alt="${escapeHtml(words)}" loading="lazy">`,
      code: ({ text: code, lang }: Tokens.Code) => renderCode(code, lang ?? ""),
      table(token: Tokens.Table) {
        // A small screen shows a row as a list. In a table of many columns, each value then needs the name of its column.
        const named = token.header.length > NAMED_COLUMNS ? token.header : [];
        const nameOf = (at: number): string => {
          const name = at === 0 ? undefined : named[at]?.text;
          return name === undefined ? "" : ` data-column="${escapeHtml(name)}"`;
        };
        const row = (cells: readonly Tokens.TableCell[], tag: "th" | "td"): string => {
          const parts = cells.map((cell, at) => {
            const name = tag === "td" ? nameOf(at) : "";
            return `<${tag}${name}>${this.parser.parseInline(cell.tokens)}</${tag}>`;
          });
          return `<tr>${parts.join("")}</tr>`;
        };
        const head = token.header.some(({ text: words }) => words !== "")
          ? `<thead>${row(token.header, "th")}</thead>`
          : "";
        const rows = token.rows.map((cells) => row(cells, "td")).join("\n");
        return `<div class="wide" role="region" aria-label="Table" tabindex="0"><table>${head}<tbody>${rows}</tbody></table></div>\n`;
      },
    },
  });
  return marked.parse(text, { async: false });
}

/** Renders a fenced block. The first word of its tag is the language, the second its kind. */
function renderCode(code: string, tag: string): string {
  const [language = "", kind = ""] = tag.split(" ");
  const shown = language === "json" ? markJson(code) : escapeHtml(code);
  const isOutput = kind === "output" || kind === "problem" || kind === "answer";
  return `<pre class="${isOutput ? "code output" : "code"}" tabindex="0"><code>${shown}</code></pre>\n`;
}

const JSON_TOKEN = /("(?:[^"\\]|\\.)*")(\s*:)?|\b(true|false|null|-?\d[\d.eE+-]*)\b/g;

/** Marks the names, texts and values of JSON. */
function markJson(code: string): string {
  let marked = "";
  let at = 0;
  for (const found of code.matchAll(JSON_TOKEN)) {
    const [match, text, colon, value] = found;
    marked += escapeHtml(code.slice(at, found.index));
    const kind = value !== undefined ? "value" : colon === undefined ? "text" : "name";
    marked += `<span class="json-${kind}">${escapeHtml(text ?? value ?? "")}</span>${colon ?? ""}`;
    at = found.index + match.length;
  }
  return marked + escapeHtml(code.slice(at));
}

/** Lists every address that the Markdown links to. */
export function listLinks(text: string): string[] {
  const marked = new Marked({ gfm: true, tokenizer: PLAIN_ADDRESSES });
  const links: string[] = [];
  marked.walkTokens(marked.lexer(text), (token: Token) => {
    if (token.type === "link" || token.type === "image") links.push(resolveLink(String(token.href)));
  });
  return links;
}
