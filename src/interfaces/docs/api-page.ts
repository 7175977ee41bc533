/**
 * The pages of the API, made from its routes: one page for each resource. Each route has its callers, its input, and a curl command. The tests
 * run these commands in the order of the pages and expect the status in the block's tag.
 */
import { isJsonObject, type JsonObject } from "../../base/json.ts";
import { type ApiExample, EXAMPLES, ORDER } from "./api-example.ts";
import { writeTable } from "./markdown.ts";
import type { DocPage } from "./page.ts";
import { asSchema, writeBlock, writeFields, writeFolded } from "./schema-table.ts";

/** The parts of a route that the pages use. The elements of the list of routes have this shape. */
interface DocumentedRoute {
  who: "environment" | "owner" | "caller" | "open" | "client" | "person";
  needs: string | null;
  method: string;
  path: string;
  summary: string;
  query: object | null;
  body: object | null;
  rawBytes: number | null;
  status: number;
  warnsOnly: boolean;
}

const PLACE = "/api/apps/:appId/:environment";

const WHO: Readonly<Record<DocumentedRoute["who"], string>> = {
  environment: "A secret key of the environment, or a signed-in owner.",
  owner: "A signed-in owner.",
  caller: "A secret key, or a signed-in owner.",
  open: "Anyone.",
  client: "An app key, from a page of the app.",
  person: "An app key with a person's session, from a page of the app.",
};

const HEADERS: Readonly<Record<DocumentedRoute["who"], readonly string[]>> = {
  environment: ['-H "Authorization: Bearer $KEY"'],
  owner: ['-H "Cookie: $SESSION"', '-H "Origin: $BASE"'],
  caller: ['-H "Authorization: Bearer $KEY"'],
  open: [],
  client: ['-H "X-App-Key: $APP_KEY"', '-H "Origin: $PAGE"'],
  person: ['-H "X-App-Key: $APP_KEY"', '-H "Authorization: Bearer $PERSON_SESSION"', '-H "Origin: $PAGE"'],
};

/** The headers of examples with an unusual caller. */
const AS = { owner: HEADERS.owner, live: ['-H "Authorization: Bearer $LIVE_KEY"'] } as const;

/** Returns the resource of a route, which is the name of its page. */
function resourceOf({ path }: Pick<DocumentedRoute, "path">): string {
  if (path.startsWith(PLACE)) {
    const [, first = ""] = path.slice(PLACE.length).split("/");
    return RESOURCES[first] ?? first;
  }
  if (path.startsWith("/client/") || path.startsWith("/mail/")) return "client";
  const [, , second = ""] = path.split("/");
  return path.startsWith("/api/") ? (SERVER_RESOURCES[second] ?? second) : "service";
}

const RESOURCES: Readonly<Record<string, string>> = {
  "bulk-replays": "events",
  grants: "persons",
  sessions: "persons",
  products: "catalog",
  plans: "catalog",
  access: "catalog",
  "catalog-uses": "catalog",
  collections: "records",
  files: "records",
  receipts: "selling",
  purchases: "selling",
  subscriptions: "selling",
  emails: "mail",
  "sender-domain": "mail",
  "unknown-calls": "calls",
  problems: "watch",
  "alert-channels": "watch",
  alerts: "watch",
  audit: "watch",
  overview: "watch",
  "url-times": "watch",
  captures: "relays",
  simulations: "relays",
  kits: "relays",
  stream: "watch",
  find: "watch",
  mcp: "settings",
  keys: "settings",
  limits: "settings",
  approvals: "sync",
};

const SERVER_RESOURCES: Readonly<Record<string, string>> = {
  "relay-templates": "relays",
  senders: "relays",
  verifiers: "relays",
  kits: "relays",
  approvals: "sync",
  overview: "watch",
  key: "settings",
  oidc: "owners",
  "second-factor": "owners",
  session: "owners",
  sessions: "owners",
  link: "owners",
  setup: "owners",
  login: "owners",
  server: "service",
  audit: "owners",
  backups: "service",
  nodes: "service",
};

const TITLES: Readonly<Record<string, readonly [title: string, summary: string]>> = {
  relays: ["API: relays", "List, make, change, pause, test and delete relays."],
  sync: [
    "API: sync and approvals",
    "Carry definitions and the catalog, and approve what goes into production.",
  ],
  events: ["API: events", "List, explain, replay and retry events."],
  calls: ["API: calls", "Receiver requests that created no event, and why."],
  watch: [
    "API: problems, alerts and the audit log",
    "Problems, alerts, the audit, figures, the stream of changes.",
  ],
  persons: ["API: people", "People, what they have, and why."],
  records: ["API: records and files", "Collections, records and uploaded files."],
  catalog: ["API: catalog", "Products, plans and access slugs."],
  selling: ["API: selling", "Receipts, purchases and subscriptions."],
  client: [
    "API: your app's pages",
    "What a page of your app calls with an app key; the client library uses it.",
  ],
  mail: ["API: mail", "The state of mail, and the domain that it is sent from."],
  settings: ["API: settings and keys", "An environment's settings, its keys and the connector."],
  apps: ["API: apps", "The apps of a server."],
  owners: ["API: owners and signing in", "Sessions, owners, one-time links and logins of the command line."],
  service: [
    "API: the service itself",
    "Whether it runs, its metrics, its changes, its documentation, its backups.",
  ],
};

export function listApiPages(routes: readonly DocumentedRoute[]): DocPage[] {
  const inOrder = orderRoutes(routes);
  return Object.entries(TITLES).map(([name, [title, summary]], order) => ({
    id: `api/${name}`,
    title,
    summary,
    group: "Reference",
    order,
    parent: "api",
    text: inOrder
      .filter((route) => resourceOf(route) === name)
      .map(writeRoute)
      .join("\n\n"),
  }));
}

/** Orders routes for running the examples: prerequisites come first, deletions last. */
function orderRoutes(routes: readonly DocumentedRoute[]): DocumentedRoute[] {
  const rank = (route: DocumentedRoute): number => {
    const at = ORDER.indexOf(keyOf(route));
    return at < 0 ? (route.method === "DELETE" ? 2_000 : 0) : 1_000 + at;
  };
  return routes.toSorted((one, other) => rank(one) - rank(other));
}

/** Returns the key of a route, for example `POST {E}/relays`. */
function keyOf({ method, path }: Pick<DocumentedRoute, "method" | "path">): string {
  return `${method} ${path.replace(PLACE, "{E}")}`;
}

/** Lists all routes, with the page of each. */
export function listRoutes(routes: readonly DocumentedRoute[]): string {
  return Object.entries(TITLES)
    .map(([name, [title, summary]]) => {
      const rows = routes
        .filter((route) => resourceOf(route) === name)
        .map((route) => [`\`${keyOf(route)}\``, route.summary]);
      return `### [${title}](/docs/api/${name})\n\n${summary}\n\n${writeTable(["route", "what it does"], rows)}`;
    })
    .join("\n\n");
}

function writeRoute(route: DocumentedRoute): string {
  const example = EXAMPLES[keyOf(route)] ?? {};
  const query = fieldsOf(route.query);
  const body = fieldsOf(route.body);
  return [
    `## ${keyOf(route)}`,
    route.summary,
    `${WHO[route.who]}${writeNeeds(route)} It answers ${route.status}${route.warnsOnly ? ", or 200 with its warnings" : ""}.`,
    ...(query === null ? [] : ["In the query:", query]),
    ...(route.rawBytes === null ? [] : ["The body is raw bytes."]),
    ...(body === null ? [] : ["In the body:", body]),
    writeBlock(`sh curl ${example.status ?? route.status}`, writeCurl(route, example)),
    ...(example.note === undefined ? [] : [example.note]),
  ].join("\n\n");
}

function writeNeeds({ needs }: DocumentedRoute): string {
  return needs === null ? "" : ` It needs the permission \`${needs}\`.`;
}

function fieldsOf(schema: object | null): string | null {
  if (schema === null) return null;
  const plain = JSON.parse(JSON.stringify(schema)) as JsonObject;
  const { properties } = plain;
  return isJsonObject(properties) && Object.keys(properties).length > 0 ? writeFields(asSchema(plain)) : null;
}

/** Moves each variable out of the single quotes, in which a shell does not expand it. */
function splice(text: string): string {
  return text.replaceAll(/\$[A-Z_]+/g, (name) => `'${name}'`);
}

const DEFAULT_NAMES: Readonly<Record<string, string>> = {
  appId: "shop",
  environment: "development",
  name: "orders",
};

function writeCurl({ who, method, path, body, rawBytes }: DocumentedRoute, example: ApiExample): string {
  const filled = path.replaceAll(
    /:(\w+)/g,
    (_, name: string) => example.params?.[name] ?? DEFAULT_NAMES[name] ?? `$${name.toUpperCase()}`,
  );
  const sent =
    example.body === undefined
      ? rawBytes === null
        ? []
        : [`--data-binary '${example.raw ?? ""}'`]
      : ['-H "Content-Type: application/json"', `-d '${splice(writeFolded(example.body))}'`];
  const verb = method === "GET" ? "" : `-X ${method} `;
  const parts = [
    `curl -s ${verb}"$BASE${filled}${example.query ?? ""}"`,
    ...(example.as === undefined ? HEADERS[who] : AS[example.as]),
    ...(example.headers ?? []),
    ...sent,
  ];
  return body === null && parts.length <= 2 ? parts.join(" ") : parts.join(" \\\n  ");
}
