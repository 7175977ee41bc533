/**
 * The tools of the connector. Each is a name and a description for a route of the API, whose schemas define its input. A tool call is a call of
 * its route by the same caller. So no tool can read, do or return more than the API.
 */
import type { TObject, TSchema } from "typebox";
import { checkInput } from "../../base/check-shape.ts";
import type { JsonObject } from "../../base/json.ts";
import { MAX_PAGE_SIZE } from "../../base/page.ts";
import { rejectField } from "../../base/refusal.ts";
import { fields } from "../../base/schema.ts";
import type { Route } from "../http/route.ts";
import { aboutRoutes } from "./about.ts";
import { watchRoutes } from "./audit.ts";
import { bulkReplayRoutes } from "./bulk-replay.ts";
import { caseRoutes } from "./case.ts";
import { catalogRoutes } from "./catalog.ts";
import { docsRoutes } from "./docs.ts";
import { eventRoutes } from "./event.ts";
import { eventListRoutes } from "./event-list.ts";
import { explainRoutes } from "./explain.ts";
import { guessRoutes } from "./guess.ts";
import { kitRoutes } from "./kit.ts";
import { personRoutes } from "./person.ts";
import { rejectedRoutes } from "./rejected.ts";
import { relayRoutes } from "./relay.ts";
import { senderRoutes } from "./sender.ts";
import { simulationRoutes } from "./simulation.ts";
import { syncRoutes } from "./sync.ts";
import { testEventRoutes } from "./test-event.ts";

export interface Tool {
  name: string;
  title: string;
  /** Says what the tool does, for the model that selects tools. */
  description: string;
  route: Route;
  /** The body of every call. The caller then gives only the names in the route's path. Null if the caller gives the body. */
  body: JsonObject | null;
  /** True if the tool changes data. Such tools can be switched off. */
  writes: boolean;
  /** True if the tool saves relays or the catalog, which is off by default. */
  saves: boolean;
  /** True for a write whose effects cannot be undone. */
  destructive: boolean;
}

const E = "/api/apps/:appId/:environment";
const OFFERED = [
  ...relayRoutes,
  ...explainRoutes,
  ...guessRoutes,
  ...caseRoutes,
  ...testEventRoutes,
  ...simulationRoutes,
  ...eventListRoutes,
  ...eventRoutes,
  ...bulkReplayRoutes,
  ...watchRoutes,
  ...rejectedRoutes,
  ...personRoutes,
  ...aboutRoutes,
  ...docsRoutes,
  ...senderRoutes,
  ...kitRoutes,
  ...catalogRoutes,
  ...syncRoutes,
];

/** Defines a tool. `route` is the route's method and path, with `{E}` for the environment. */
function tool(
  route: string,
  name: string,
  title: string,
  description: string,
  effect: "reads" | "writes" | "saves" | "cannot be undone" = "reads",
  body: JsonObject | null = null,
): Tool {
  const found = OFFERED.find((one) => `${one.method} ${one.path.replace(E, "{E}")}` === route);
  if (found === undefined) throw new Error(`The tool ${name} is over ${route}, which is no route.`);
  return {
    name,
    title,
    description,
    route: found,
    body,
    writes: effect !== "reads",
    saves: effect === "saves",
    destructive: effect === "saves" || effect === "cannot be undone",
  };
}

export const TOOLS: readonly Tool[] = [
  tool(
    "GET {E}/relays",
    "list_relays",
    "List relays",
    "Lists the relays (rules: one trigger, one to ten actions), newest first, each with its state and how its events of the last 24 hours ended. With `sort=trouble`, relays in trouble come first.",
  ),
  tool(
    "GET {E}/relays/:name",
    "read_relay",
    "Read a relay",
    "Shows one relay: its definition, receiver URL, facts about its secrets (never a secret), and its problems.",
  ),
  tool(
    "GET {E}/relays/:name/cases",
    "list_cases",
    "List the cases of a relay",
    "Lists the example requests that are kept with a relay, each with its result then. Each save reports the cases whose result has changed.",
  ),
  tool(
    "GET {E}/events",
    "list_events",
    "List events",
    "Lists events without payloads, newest first. States: queued, running, done, failed, dead. A short page can still have a next, which is the cursor for the next request.",
  ),
  tool(
    "GET {E}/events/:id",
    "read_event",
    "Read an event",
    "Shows one event: its payload, and what each action of each attempt did or why it failed.",
  ),
  tool(
    "GET {E}/calls",
    "list_calls",
    "List requests without an event",
    "Lists the requests that were rejected, ignored or duplicates, newest first, with the cause. Use this when a provider says that it sent a webhook but there is no event.",
  ),
  tool(
    "GET {E}/calls/:id",
    "read_call",
    "Read a request without an event",
    "Shows one request of list_calls: its cause, what its code means and what to do.",
  ),
  tool(
    "GET {E}/unknown-calls",
    "list_unknown_calls",
    "List requests to unknown receivers",
    "Lists receiver names in requests that the app does not have, with the receiver that the sender probably meant.",
  ),
  tool(
    "GET {E}/relays/:name/rejected",
    "list_missing_events",
    "List missing events",
    "Lists the events whose requests a relay rejected because of its secret or recipe, and which of them arrived later. Use this for the problem requests_rejected.",
  ),
  tool(
    "GET {E}/problems",
    "list_problems",
    "List problems",
    "Lists the open problems, newest first, with a hold and dead events, each with what happened (message), what to do (todo) and when it resolves (next).",
  ),
  tool(
    "GET {E}/alerts",
    "list_alerts",
    "List alerts",
    "Lists the alerts to the owner, newest first, each with what happened (message), what to do (todo) and when it resolves (next). open=true leaves out resolved alerts.",
  ),
  tool(
    "GET {E}/persons",
    "list_people",
    "List people",
    "Lists the app's people, newest first. People are the customers that events are about.",
  ),
  tool(
    "GET {E}/persons/:id",
    "read_person",
    "Read a person",
    "Shows one person with what they have now. id is their email address, id, store account token or customer ID.",
  ),
  tool(
    "GET {E}/catalog",
    "read_catalog",
    "Read the catalog",
    "Shows the collections, access, products and plans that relays name, in the form of catalog.json, with the version of the catalog.",
  ),
  tool(
    "POST {E}/sync/plan",
    "compare",
    "Compare development and production",
    "Compares the relays and the catalog of development and production. Each entry shows what a promotion of development would change in production (before is production, after is development). Relays that exist only in production have the state only_there.",
    "reads",
    { from: "development", to: "production" },
  ),
  tool(
    "GET /api/senders",
    "list_senders",
    "List senders",
    "Lists the providers with a known signature, by name. q finds a text in the name or the description. Use this before you write a relay for a provider.",
  ),
  tool(
    "GET /api/senders/:name",
    "read_sender",
    "Read a sender",
    "Shows one provider: a relay definition to start from, the catalog that it names, where its secret is, its event types, an example event and pitfalls.",
  ),
  tool(
    "GET /api/kits",
    "list_kits",
    "List selling kits",
    "Lists the providers with a selling kit: tested relays for purchases, refunds and plans, and a catalog. Each entry says what the provider's events do not say.",
  ),
  tool(
    "GET /api/kits/:sender",
    "read_kit",
    "Read a selling kit",
    "Shows the kit of one provider with the names of the product and the plans. It has the relays to save in order, the catalog and the steps at the provider. It also says what each step of a sale does.",
  ),
  tool(
    "GET /docs/search",
    "search_docs",
    "Search the documentation",
    "Finds sections of the documentation that contain every word of q, best first. The resource relay://docs/<page> is the complete page.",
  ),
  tool(
    "POST {E}/relays/guess",
    "guess_relay",
    "Guess a relay from a request",
    "Guesses the start of a relay for a provider from one request: headers (if known) and body. It says why for each guess, and returns a definition without actions. Add actions, then use validate_relay. It saves nothing.",
  ),
  tool(
    "POST {E}/relays/validate",
    "validate_relay",
    "Validate a definition",
    "Lists every problem and warning of a relay definition, without saving it.",
  ),
  tool(
    "POST {E}/relays/explain",
    "explain_definition",
    "Explain a definition",
    "Shows step by step what a relay definition that is not saved would do with a request, a record or an example. It has no effect. A secret is not needed: an example secret signs.",
  ),
  tool(
    "POST {E}/relays/:name/explain",
    "explain_relay",
    "Explain a relay",
    "Shows step by step what a relay would do with a request, a record, a stored event (event: its id) or, without any of these, an example. It has no effect.",
  ),
  tool(
    "POST {E}/relays/:name/test-event",
    "send_test_event",
    "Send a test event",
    "Sends a signed request to a receiver (with a body, or an example made from its map), or one tick to a schedule. The event has all its effects and is marked as a test. It works only in local development and development. To avoid effects, use explain_relay.",
    "cannot be undone",
  ),
  tool(
    "POST {E}/simulations",
    "simulate_life",
    "Play a step of a customer's life",
    "Plays a life of a selling kit step by step, as the provider's signed requests. Call it without step for the steps and a run, then with that run and step 1, 2, and so on. The answer has what each relay did and what the person has now. A step that is sent again changes nothing. The events have all their effects. It works only in local development and development.",
    "cannot be undone",
  ),
  tool(
    "GET {E}/events/:id/replay",
    "plan_replay",
    "Plan a replay",
    "Shows what a replay of an ended event would do with each action. Read this before replay_event.",
  ),
  tool(
    "POST {E}/events/:id/replay",
    "replay_event",
    "Replay an event",
    "Queues an ended event again. Its actions run and calls are sent again, but work that is done is not done twice.",
    "cannot be undone",
  ),
  tool(
    "POST {E}/bulk-replays/plan",
    "plan_bulk_replay",
    "Plan a bulk replay",
    "Shows what a replay of all dead or failed events of a filter would do: how many events match, what each action would do, and which events it leaves out. Read this before start_bulk_replay.",
  ),
  tool(
    "POST {E}/bulk-replays",
    "start_bulk_replay",
    "Start a bulk replay",
    "Replays the events of a filter, oldest first. Give the same filter as to plan_bulk_replay. Fix the cause first. Work that is done is not done twice.",
    "cannot be undone",
  ),
  tool(
    "GET {E}/bulk-replays/:id",
    "read_bulk_replay",
    "Read a bulk replay",
    "Shows the progress and the results of a bulk replay: how many events succeeded, failed or still wait. list_events shows the state of each event.",
  ),
  tool(
    "POST {E}/events/:id/retry",
    "retry_event",
    "Retry an event now",
    "Retries a waiting event now, after you fixed the cause. The attempt counts like any other. For an ended event, use replay_event.",
    "cannot be undone",
  ),
  tool(
    "POST {E}/relays/:name/pause",
    "pause_relay",
    "Pause a relay",
    "Pauses a relay. New events are stored and wait for resume_relay. Ticks are not stored.",
    "writes",
  ),
  tool(
    "POST {E}/relays/:name/resume",
    "resume_relay",
    "Resume a relay",
    "Resumes a paused relay. Waiting events run in order.",
    "cannot be undone",
  ),
  tool(
    "PUT {E}/relays/:name",
    "save_relay",
    "Save a relay",
    "Creates a relay with version 0, or replaces the definition of a relay with the version that read_relay showed. Use validate_relay and explain_definition first. If a secret is created, the answer does not contain it: a person rotates it on the relay's page to see a new one.",
    "saves",
  ),
  tool(
    "PUT {E}/catalog",
    "save_catalog",
    "Save the catalog",
    "Creates or replaces collections, access, products and plans, in the form and with the version that read_catalog showed. Items that you leave out stay.",
    "saves",
  ),
  tool(
    "GET /changes.json",
    "changes",
    "What each release changed",
    "Lists what each release of the service changed, newest first: its kind, the behavior before and now, error codes added and removed.",
  ),
];

const NO_FIELDS: TObject = fields({});
const OF_ADDRESS = /:([a-zA-Z]+)/g;

/** Lists the names in the route's path that a caller of the tool gives. */
function givenNames({ path }: Route): string[] {
  return [...path.replace(E, "").matchAll(OF_ADDRESS)].map(([, name = ""]) => name);
}

/** Returns the JSON Schema of the tool's input: path parameters, query and body as one object. */
export function inputSchema({ route, body }: Tool) {
  const query = route.query ?? NO_FIELDS;
  const sent = body === null && route.body !== null && isObject(route.body) ? route.body : NO_FIELDS;
  const names = givenNames(route);
  return {
    type: "object" as const,
    properties: {
      ...Object.fromEntries(names.map((name) => [name, { type: "string", description: `the ${name}` }])),
      ...Object.fromEntries(
        Object.entries(query.properties).map(([name, one]) => [name, toValue(name, one)]),
      ),
      ...Object.fromEntries(
        Object.entries(sent.properties).map(([name, one]) => [name, toObject(name, one)]),
      ),
    },
    required: [...names, ...(query.required ?? []), ...(sent.required ?? [])],
    additionalProperties: false,
  };
}

/** Returns the schema of a query parameter as a value of JSON. In an address every value is a text. */
function toValue(name: string, schema: TSchema): object {
  const { description } = schema as { description?: string };
  const described = description === undefined ? {} : { description };
  if (name === "limit") return { type: "integer", minimum: 1, maximum: MAX_PAGE_SIZE, ...described };
  const { anyOf = [] } = schema as { anyOf?: { const?: unknown }[] };
  const words = anyOf.map((one) => one.const);
  if (words.includes("true") && words.includes("false")) return { type: "boolean", ...described };
  return schema;
}

/** Returns the schema of a body's field. An assistant may send a definition as a text with JSON where the type is missing. */
function toObject(name: string, schema: TSchema): object {
  return name === "definition" ? { type: "object", ...schema } : schema;
}

function isObject(schema: TSchema): schema is TObject {
  return "properties" in schema;
}

/**
 * Places the arguments of a tool in its route: path parameters, query and body. Refuses with `invalid_input` a value that no path or query can
 * have, for example the null of a client that names every field.
 */
export function placeArguments(tool: Tool, given: Readonly<Record<string, unknown>>) {
  const { route } = tool;
  // An object without a prototype treats a name that Object defines like any other unknown field.
  const params: Record<string, string> = Object.create(null);
  const asked: Record<string, string> = Object.create(null);
  const body: Record<string, unknown> = Object.create(null);
  const names = givenNames(route);
  const querySchema = route.query ?? NO_FIELDS;
  for (const name of names) {
    const value = Object.hasOwn(given, name) ? given[name] : "";
    if (value === "") throw rejectField(name, `\`${name}\` is missing: give the ${name}.`);
    params[name] = readWord(name, value);
  }
  for (const [name, value] of Object.entries(given)) {
    if (names.includes(name)) continue;
    if (Object.hasOwn(querySchema.properties, name)) asked[name] = readWord(name, value);
    else body[name] = value;
  }
  // A URL with thousands of names is far more expensive to create than to refuse.
  if (route.method === "GET") checkInput(querySchema, { ...asked, ...body });
  if (tool.body !== null) checkInput(NO_FIELDS, body);
  return { params, query: new URLSearchParams(asked), body: tool.body ?? body };
}

function readWord(name: string, value: unknown): string {
  if (["string", "number", "bigint", "boolean"].includes(typeof value)) return String(value);
  const what = value === null ? "null" : Array.isArray(value) ? "a list" : "an object";
  throw rejectField(name, `\`${name}\` is ${what}: give a text, or leave it out if it is optional.`);
}
