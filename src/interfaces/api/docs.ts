/**
 * The documentation over HTTP, and the JSON Schemas for editors. Browsers get pages. Programs get Markdown, or JSON for error codes and search
 * results. Anyone can read it, because it has no private data. It needs no scripts.
 */
import { Type } from "typebox";
import icon from "../../../web/icon.svg" with { type: "text" };
import { listMeanings } from "../../base/code/code.ts";
import { CODE_KINDS } from "../../base/code/code-entry.ts";
import { Refusal } from "../../base/refusal.ts";
import { fields, oneOf, orNull, textOrNull } from "../../base/schema.ts";
import { makeCatalogSchema } from "../../operator/sync/catalog-file.ts";
import { makeDefinitionSchema } from "../../rules/relay/definition-shape.ts";
import type { Docs } from "../docs/docs.ts";
import { pathOf } from "../docs/link.ts";
import { LOOK, LOOK_FILE, THEME, THEME_FILE } from "../docs/look.ts";
import { listPages } from "../docs/page.ts";
import { SCREENS } from "../docs/screen.ts";
import { MAX_QUERY_CHARS } from "../docs/search.ts";
import { answerText } from "../http/answer.ts";
import type { HttpDeps } from "../http/deps.ts";
import { answerFile, FOREVER, makeFile, type PageFile } from "../http/page-file.ts";
import { openRoute } from "../http/route.ts";

const MARKDOWN = { "content-type": "text/markdown; charset=utf-8" };
const HTML = "text/html; charset=utf-8";

function takes(request: Request, kind: string): boolean {
  return (request.headers.get("accept") ?? "").includes(kind);
}

const encoder = new TextEncoder();

function toFile(name: string, contentType: string, text: string): PageFile {
  return makeFile({ name, contentType, bytes: encoder.encode(text) });
}

/** The files that pages load. Their names contain a hash of the content, or their content rarely changes. */
const ASSETS: Readonly<Record<string, () => { file: PageFile; cacheControl: string }>> = {
  [LOOK_FILE]: () => ({ file: toFile(LOOK_FILE, "text/css; charset=utf-8", LOOK), cacheControl: FOREVER }),
  [THEME_FILE]: () => ({
    file: toFile(THEME_FILE, "text/javascript; charset=utf-8", THEME),
    cacheControl: FOREVER,
  }),
  "icon.svg": () => ({ file: toFile("icon.svg", "image/svg+xml", icon), cacheControl: "no-cache" }),
};

/** Pages and assets as files. Each is created once, because a page's text never changes while the process runs. */
const files = new Map<string, { file: PageFile; cacheControl: string }>();

function keepFile(key: string, make: () => { file: PageFile; cacheControl: string }) {
  const known = files.get(key) ?? make();
  files.set(key, known);
  return known;
}

/** Schemas for editors. The page that explains a schema also returns it to a program that does not accept text. */
const SCHEMAS: Readonly<Record<string, () => object>> = {
  definition: makeDefinitionSchema,
  catalog: makeCatalogSchema,
};
const schemas = new Map<string, object>();

function schemaOf(name: string): object {
  const known = schemas.get(name) ?? SCHEMAS[name]?.() ?? {};
  schemas.set(name, known);
  return known;
}

/** Answers a page by its id, in the format that the caller accepts. */
async function answerPage(deps: HttpDeps, request: Request, id: string): Promise<Response> {
  const docs = await deps.readManual();
  if (takes(request, "text/html") && !id.endsWith(".md")) return answerHtml(docs, request, id);
  const page = docs.find(id.replace(/\.md$/, ""));
  if (page === null)
    throw new Refusal(
      "not_found",
      "There is no page with this name: /docs lists all pages, and /docs/search?q=… finds one.",
    );
  return answerText(200, `# ${page.title}\n\n${page.summary}\n\n${page.text}\n`, MARKDOWN);
}

function answerHtml(docs: Docs, request: Request, id: string): Response {
  if (docs.find(id) === null && id !== "")
    return answerFile(request, toFile(id, HTML, docs.missingHtml()), "no-cache", 404);
  const { file, cacheControl } = keepFile(id, () => ({
    file: toFile(id, HTML, docs.html(id) ?? ""),
    cacheControl: "no-cache",
  }));
  return answerFile(request, file, cacheControl);
}

/** Answers a screenshot. It is read at each request, and only the browser caches it. */
async function answerScreen(request: Request, name: string, path: string): Promise<Response> {
  const file = makeFile({ name, contentType: "image/webp", bytes: await Bun.file(path).bytes() });
  return answerFile(request, file, "no-cache");
}

const found = Type.Object({
  page: Type.String(),
  title: Type.String(),
  section: Type.String(),
  path: Type.String({ description: "below this service, with the section's anchor" }),
  excerpt: Type.String(),
});

/** The meaning of a code. */
export const meaningView = Type.Object({
  kinds: Type.Array(oneOf(CODE_KINDS)),
  status: orNull(Type.Integer()),
  what: Type.String(),
  why: textOrNull,
  todo: Type.String(),
  next: textOrNull,
});

export const docsRoutes = [
  openRoute({
    method: "GET",
    path: "/docs",
    summary: "Lists the pages of the documentation, as HTML for a browser and as Markdown otherwise.",
    answer: Type.String(),
    async handle({ deps, request }) {
      const docs = await deps.readManual();
      if (takes(request, "text/html")) return answerHtml(docs, request, "");
      return answerText(200, `# Documentation\n\n${listPages(docs.pages)}`, MARKDOWN);
    },
  }),
  openRoute({
    method: "GET",
    path: "/docs/search",
    summary:
      "Finds sections of the documentation that contain every word, best first, as HTML for a browser and as JSON otherwise.",
    query: fields({
      q: Type.Optional(
        Type.String({ maxLength: MAX_QUERY_CHARS, description: `at most ${MAX_QUERY_CHARS} characters` }),
      ),
    }),
    answer: Type.Object({ q: Type.String(), sections: Type.Array(found) }),
    async handle({ deps, request, query: { q = "" } }) {
      const docs = await deps.readManual();
      if (takes(request, "text/html"))
        return answerFile(request, toFile("search", HTML, docs.searchHtml(q)), "no-store");
      const sections = docs.search(q).map(({ page, section, excerpt }) => ({
        page: page.id,
        title: page.title,
        section: section.title,
        path: pathOf(page.id, section.anchor),
        excerpt,
      }));
      return { q, sections };
    },
  }),
  openRoute({
    method: "GET",
    path: "/docs/catalog.schema.json",
    summary: "Returns the JSON Schema of catalog.json: collections, access, products and plans by name.",
    answer: Type.Unknown(),
    handle: () => schemaOf("catalog"),
  }),
  openRoute({
    method: "GET",
    path: "/docs/definition.schema.json",
    summary:
      "Returns the JSON Schema of a relay definition: every trigger, scheme and action, with rules and examples.",
    answer: Type.Unknown(),
    handle: () => schemaOf("definition"),
  }),
  openRoute({
    method: "GET",
    path: "/docs/errors/:code",
    summary:
      "Explains a code: what happened, why, and what to do. `when` and `todo` are those of its first meaning.",
    answer: Type.Object({
      code: Type.String(),
      status: orNull(Type.Integer()),
      when: Type.String(),
      todo: Type.String(),
      meanings: Type.Array(meaningView),
    }),
    async handle({ deps, request, params: { code } }) {
      if (takes(request, "text/") || code.endsWith(".md"))
        return await answerPage(deps, request, `errors/${code}`);
      const meanings = listMeanings(code);
      const [first] = meanings;
      if (first === undefined)
        throw new Refusal("not_found", "There is no code with this name: /docs lists the codes.");
      return { code, status: first.status, when: first.what, todo: first.todo, meanings };
    },
  }),
  openRoute({
    method: "GET",
    path: "/docs/:page",
    summary: "Shows a page of the documentation, as HTML for a browser and as Markdown otherwise.",
    answer: Type.Unknown(),
    async handle({ deps, request, params: { page } }) {
      const asset = Object.hasOwn(ASSETS, page) ? ASSETS[page] : undefined;
      if (asset !== undefined) {
        const { file, cacheControl } = keepFile(page, asset);
        return answerFile(request, file, cacheControl);
      }
      if (Object.hasOwn(SCHEMAS, page) && !takes(request, "text/")) return schemaOf(page);
      return await answerPage(deps, request, page);
    },
  }),
  openRoute({
    method: "GET",
    path: "/docs/:page/:part",
    summary:
      "Shows a page below another page, such as a sender's, as HTML for a browser and as Markdown otherwise. It also serves the pictures of the dashboard.",
    answer: Type.String(),
    async handle({ deps, request, params: { page, part } }) {
      const screen = page === "screens" && Object.hasOwn(SCREENS, part) ? SCREENS[part] : undefined;
      if (screen !== undefined) return await answerScreen(request, part, screen);
      return await answerPage(deps, request, `${page}/${part}`);
    },
  }),
];
