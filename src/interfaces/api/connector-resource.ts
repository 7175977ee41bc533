/**
 * The resources of the connector: the pages of the documentation, and the JSON Schemas of definitions and of the catalog. Reading a resource is a
 * request to its route.
 */
import { Refusal } from "../../base/refusal.ts";
import { pathOf } from "../docs/link.ts";
import { addressOf } from "../http/address.ts";
import type { HttpDeps } from "../http/deps.ts";
import { findRoute, readParams } from "../http/route-match.ts";
import { docsRoutes } from "./docs.ts";

/** The beginning of each URI. The path of the page follows: `relay://docs/definition`. */
const SCHEME = "relay:/";
const MARKDOWN = "text/markdown";
const SCHEMA = "application/schema+json";

const SCHEMAS = [
  {
    uri: `${SCHEME}/docs/definition.schema.json`,
    name: "definition.schema.json",
    title: "JSON Schema of a relay definition",
    description: "Every trigger, signature scheme and action, with rules and examples.",
    mimeType: SCHEMA,
  },
  {
    uri: `${SCHEME}/docs/catalog.schema.json`,
    name: "catalog.schema.json",
    title: "JSON Schema of the catalog",
    description: "Collections, access, products and plans.",
    mimeType: SCHEMA,
  },
];

/** Pages of which there are too many to list. Their parent's page lists them. */
const UNLISTED = ["errors", "senders"];

export const RESOURCE_TEMPLATES = [
  {
    uriTemplate: `${SCHEME}/docs/errors/{code}`,
    name: "errors",
    title: "Code",
    description: "Explains a code: what happened, why, and what to do.",
    mimeType: MARKDOWN,
  },
  {
    uriTemplate: `${SCHEME}/docs/senders/{name}`,
    name: "senders",
    title: "Sender",
    description: "Explains a sender. list_senders lists the names.",
    mimeType: MARKDOWN,
  },
];

export async function listResources(deps: Pick<HttpDeps, "readManual">) {
  const { pages } = await deps.readManual();
  const listed = pages.filter(({ parent = "" }) => !UNLISTED.includes(parent));
  const shown = listed.map(({ id, title, summary }) => ({
    uri: SCHEME + pathOf(id),
    name: id,
    title,
    description: summary,
    mimeType: MARKDOWN,
  }));
  return [...SCHEMAS, ...shown];
}

/** Returns the content of a resource. A part after `#`, as in the paths of `search_docs`, is ignored. Throws `not_found`. */
export async function readResource(
  { deps, request, source }: { deps: HttpDeps; request: Request; source: string },
  uri: string,
) {
  const path = readPath(uri);
  const route = path === null ? null : findRoute(docsRoutes, "GET", path);
  if (path === null || route === null) throw rejectUnknownResource();
  const isSchema = SCHEMAS.some((schema) => schema.uri === SCHEME + path);
  const mimeType = isSchema ? SCHEMA : MARKDOWN;
  // The route answers a page as Markdown, but its schema if the caller does not accept text.
  const inner = new Request(new URL(path, addressOf(request)), { headers: { accept: mimeType } });
  const answer = await route.serve(deps, { request: inner, params: readParams(route.path, path), source });
  return { uri, mimeType, text: await answer.text() };
}

/** A page or a schema. Pictures and styles have another form. */
const PATH = /^\/docs\/(?:[a-z\d_-]+\/)?[a-z\d_-]+(?:\.schema\.json)?$/;

function readPath(uri: string): string | null {
  if (!uri.startsWith(`${SCHEME}/`)) return null;
  const [path = ""] = uri.slice(SCHEME.length).split("#");
  return PATH.test(path) && path !== "/docs/search" ? path : null;
}

function rejectUnknownResource(): Refusal {
  return new Refusal(
    "not_found",
    "There is no resource with this URI: resources/list lists the pages, and search_docs finds one.",
  );
}
