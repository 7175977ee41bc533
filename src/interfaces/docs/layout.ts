/**
 * Renders the pages for browsers: the frame, the navigation, a page, the list of pages, and search results. They are plain HTML and need no
 * script.
 */
import { escapeHtml, renderHtml } from "./html.ts";
import { DOCS_PATH, pathOf } from "./link.ts";
import { LOOK_PATH, THEME_PATH } from "./look.ts";
import { type DocPage, GROUPS, splitSections } from "./page.ts";
import { type Hit, MAX_HITS, MAX_QUERY_CHARS, markWords, wordsOf } from "./search.ts";

/** If a page has more children, only the page itself lists them, not the navigation. */
const MAX_LISTED_CHILDREN = 80;

interface Shown {
  title: string;
  /** The content of the search field. */
  query?: string;
  navigation: string;
  main: string;
  /** The contents of the page, shown next to it. */
  sections?: string;
}

function frame({ title, query = "", navigation, main, sections = "" }: Shown): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<title>${escapeHtml(title)}</title>
<link rel="icon" href="${DOCS_PATH}/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="${LOOK_PATH}">
<script src="${THEME_PATH}"></script>
</head>
<body>
<a class="skip" href="#content">Skip to content</a>
<header class="top">
<a class="name" href="${DOCS_PATH}">Relay Service <span>docs</span></a>
<form class="find" action="${DOCS_PATH}/search" role="search"><input type="search" name="q" aria-label="Search the docs" placeholder="Search the docs" maxlength="${MAX_QUERY_CHARS}" value="${escapeHtml(query)}"></form>
<a class="to-pages" href="#pages">Pages</a>
<a class="to-dashboard" href="/">Dashboard</a>
</header>
<div class="frame">
<nav class="pages" id="pages" aria-label="Pages">${navigation}</nav>
<main id="content" tabindex="-1">${main}</main>
${sections}
</div>
</body>
</html>
`;
}

function navigate(pages: readonly DocPage[], shownPage: DocPage | null): string {
  const family = shownPage?.parent ?? shownPage?.id;
  const link = (page: DocPage): string => {
    const current = page === shownPage ? ' aria-current="page"' : "";
    const children = page.id === family ? pages.filter(({ parent }) => parent === page.id) : [];
    const listed = children.length > 0 && children.length <= MAX_LISTED_CHILDREN;
    const below = listed ? `<ul>${children.map(link).join("")}</ul>` : "";
    return `<li><a href="${pathOf(page.id)}"${current}>${escapeHtml(page.title)}</a>${below}</li>`;
  };
  return GROUPS.map((group) => {
    const own = pages.filter((page) => page.group === group && page.parent === undefined);
    if (own.length === 0) return "";
    return `<h2>${escapeHtml(group)}</h2><ul>${own.map(link).join("")}</ul>`;
  }).join("");
}

export function renderPage(pages: readonly DocPage[], page: DocPage): string {
  const parent = pages.find(({ id }) => id === page.parent);
  const over = parent === undefined ? escapeHtml(page.group) : linkTo(parent);
  const main = `<article><p class="over">${over}</p><h1>${escapeHtml(page.title)}</h1>
<p class="summary">${escapeHtml(page.summary)}</p>
${renderHtml(page.text)}</article>${turnPages(pages, page)}`;
  return frame({
    title: `${page.title} · Relay Service docs`,
    navigation: navigate(pages, page),
    main,
    sections: listSections(page),
  });
}

function linkTo({ id, title }: DocPage): string {
  return `<a href="${pathOf(id)}">${escapeHtml(title)}</a>`;
}

/** Links the previous and the next page with the same parent. */
function turnPages(pages: readonly DocPage[], page: DocPage): string {
  const row = pages.filter(({ parent }) => parent === page.parent);
  const at = row.indexOf(page);
  const [before, after] = [row[at - 1], row[at + 1]];
  const link = (to: DocPage | undefined, rel: "prev" | "next", words: string): string =>
    to === undefined
      ? ""
      : `<a class="${rel}" rel="${rel}" href="${pathOf(to.id)}"><span>${words}</span>${escapeHtml(to.title)}</a>`;
  return `<nav class="turn" aria-label="Previous and next page">${link(before, "prev", "Previous")}${link(after, "next", "Next")}</nav>`;
}

const MIN_LISTED = 2;
const MAX_LISTED = 40;

function listSections(page: DocPage): string {
  const all = splitSections(page).filter(({ anchor }) => anchor !== "");
  const near = all.filter(({ depth }) => depth === 2 || all.length <= MAX_LISTED);
  if (near.length < MIN_LISTED) return "";
  const items = near.map(
    ({ title, anchor, depth }) =>
      `<li class="depth-${depth}"><a href="#${escapeHtml(anchor)}">${escapeHtml(title)}</a></li>`,
  );
  return `<nav class="sections" aria-label="On this page"><h2>On this page</h2><ul>${items.join("")}</ul></nav>`;
}

export function renderIndex(pages: readonly DocPage[]): string {
  const groups = GROUPS.map((group) => {
    const own = pages.filter((page) => page.group === group && page.parent === undefined);
    if (own.length === 0) return "";
    const items = own.map((page) => `<li>${linkTo(page)}<span>${escapeHtml(page.summary)}</span></li>`);
    return `<section><h2>${escapeHtml(group)}</h2><ul class="cards">${items.join("")}</ul></section>`;
  });
  const main = `<article class="index"><h1>Documentation</h1>
<p class="summary">What the provider says, done exactly once. Every page is made from the code that runs here, and every example on it is run by a test.</p>
${groups.join("\n")}</article>`;
  return frame({ title: "Relay Service docs", navigation: navigate(pages, null), main });
}

export function renderSearch(pages: readonly DocPage[], query: string, hits: readonly Hit[]): string {
  const words = wordsOf(query);
  const mark = (text: string): string =>
    markWords(text, words)
      .map((piece) => (piece.isFound ? `<mark>${escapeHtml(piece.text)}</mark>` : escapeHtml(piece.text)))
      .join("");
  const items = hits.map(({ page, section, excerpt }) => {
    const where = section.anchor === "" ? page.group : page.title;
    return `<li><a href="${pathOf(page.id, section.anchor)}">${mark(section.title)}</a><span class="where">${escapeHtml(where)}</span><p>${mark(excerpt)}</p></li>`;
  });
  const main = `<article class="found"><h1>Search</h1><p class="summary">${formatHitCount(query, hits)}</p><ol>${items.join("\n")}</ol></article>`;
  return frame({ title: "Search · Relay Service docs", query, navigation: navigate(pages, null), main });
}

function formatHitCount(query: string, hits: readonly Hit[]): string {
  if (wordsOf(query).length === 0) return "Type some words: a field, an error's code, a command.";
  const quoted = `“${escapeHtml(query.slice(0, MAX_QUERY_CHARS))}”`;
  if (hits.length === 0)
    return `Nothing holds every word of ${quoted}. Try fewer words, or the exact code of an error.`;
  return hits.length === 1
    ? `One place for ${quoted}.`
    : `${hits.length === MAX_HITS ? `The first ${MAX_HITS}` : hits.length} places for ${quoted}.`;
}

/** Renders the page for an unknown address. */
export function renderMissing(pages: readonly DocPage[]): string {
  const main = `<article><h1>There is no such page</h1><p class="summary">Search for it above, or <a href="${DOCS_PATH}">look at all pages</a>.</p></article>`;
  return frame({ title: "No such page · Relay Service docs", navigation: navigate(pages, null), main });
}
