/**
 * Writes the OpenAPI document from the route objects that are served, so that both always agree. The receiver is not a route object, so it is
 * written here.
 */
import { IsString, type TSchema } from "typebox";
import { REFUSALS } from "../../base/code/refusal-code.ts";
import { VERSION } from "../../base/release/version.ts";
import { AUTHENTICATION_METHODS } from "../../platform/account/authentication.ts";
import type { Route, Who } from "./route.ts";

const ERROR_SCHEMA = {
  type: "object",
  required: ["code", "message"],
  properties: {
    code: { type: "string", enum: Object.keys(REFUSALS) },
    message: { type: "string" },
    docs: { type: "string" },
    resetAt: { type: "string", format: "date-time" },
    url: {
      type: "string",
      description:
        "For product_not_sellable and plan_not_sellable: the URL where the buyer pays, if the item has one.",
    },
    methods: {
      type: "array",
      description: "For reauthentication_required: how the account can confirm.",
      items: { type: "string", enum: AUTHENTICATION_METHODS },
    },
    problems: {
      type: "array",
      items: { type: "object", properties: { field: { type: "string" }, message: { type: "string" } } },
    },
  },
};

const SECURITY: Readonly<Record<Who, readonly object[]>> = {
  environment: [{ secretKey: [] }, { session: [] }],
  owner: [{ session: [] }],
  caller: [{ secretKey: [] }, { session: [] }],
  open: [],
  client: [{ appKey: [] }],
  person: [{ appKey: [], personSession: [] }],
};

/** The refusal response of every route. */
const REFUSED = {
  description: "A refusal.",
  content: { "application/json": { schema: { $ref: "#/components/schemas/Error" } } },
};

/** The receiver's own entry, because it is not a route of the list. */
const RECEIVER = {
  summary: "Receives a provider's webhook. Its signature must match the relay's definition.",
  operationId: "postHooksAppIdName",
  tags: ["hooks"],
  security: [],
  parameters: pathParameters("/hooks/{appId}/{name}"),
  requestBody: {
    required: true,
    content: { "application/json": { schema: {} }, "application/x-www-form-urlencoded": { schema: {} } },
  },
  responses: {
    200: {
      description: "The event is stored, was stored before, or does not match the relay's when.",
      content: {
        "application/json": {
          schema: {
            type: "object",
            required: ["received"],
            properties: {
              received: { type: "boolean", const: true },
              eventId: { type: "string" },
              duplicate: { type: "boolean", const: true },
              ignored: { type: "string", const: "when" },
            },
          },
        },
      },
    },
    default: REFUSED,
  },
};

/** The request by which a sender verifies the URL. */
const ASKED = {
  summary: "Answers the sender's handshake when the URL is registered, if the relay has verify.handshake.",
  operationId: "getHooksAppIdName",
  tags: ["hooks"],
  security: [],
  parameters: pathParameters("/hooks/{appId}/{name}"),
  responses: {
    200: {
      description: "The challenge, or an empty body for a probe.",
      content: { "text/plain": { schema: { type: "string" } } },
    },
    default: REFUSED,
  },
};

/** Writes the document of these routes, served under `baseUrl`. */
export function writeOpenApi(routes: readonly Route[], baseUrl: string): object {
  const paths: Record<string, Record<string, object>> = {};
  for (const route of routes) {
    const path = route.path.replaceAll(/:(\w+)/g, "{$1}");
    paths[path] ??= {};
    paths[path][route.method.toLowerCase()] = describeRoute(route, path);
  }
  paths["/hooks/{appId}/{name}"] = { post: RECEIVER, get: ASKED };
  return {
    openapi: "3.1.0",
    info: { title: "Relay Service", version: VERSION },
    servers: [{ url: baseUrl }],
    paths,
    components: {
      schemas: { Error: ERROR_SCHEMA },
      securitySchemes: {
        secretKey: {
          type: "http",
          scheme: "bearer",
          description:
            "A secret key (relay_live_…, relay_dev_…; older keys begin with sk_) of the environment in the path.",
        },
        appKey: {
          type: "apiKey",
          in: "header",
          name: "x-app-key",
          description: "An app key (ak_…), from one of its origins. It is also accepted as a bearer token.",
        },
        personSession: {
          type: "http",
          scheme: "bearer",
          description:
            "The session of a signed-in person (ps_…). Use x-person-session if the bearer token is the app key.",
        },
        session: {
          type: "apiKey",
          in: "cookie",
          name: "relay_session",
          description: "The dashboard's session.",
        },
      },
    },
  };
}

function describeRoute(route: Route, path: string): object {
  return {
    summary: route.summary,
    operationId: `${route.method.toLowerCase()}${path.replaceAll(/[^A-Za-z0-9]+(\w)/g, (_, letter: string) => letter.toUpperCase()).replaceAll(/\W/g, "")}`,
    tags: [tagOf(route)],
    security: SECURITY[route.who],
    ...(route.needs === null ? {} : { "x-permission": route.needs }),
    ...(route.sensitive ? { "x-sensitive": true } : {}),
    parameters: [...pathParameters(path), ...queryParameters(route)],
    ...describeBody(route),
    responses: {
      ...(route.warnsOnly ? { 204: { description: `${route.summary} There are none.` } } : {}),
      [route.warnsOnly ? 200 : route.status]: {
        description: route.summary,
        ...(route.answer === null
          ? {}
          : { content: IsString(route.answer) ? asText(route.answer) : asJson(route.answer) }),
      },
      default: REFUSED,
    },
  };
}

function describeBody({ body, rawBytes }: Route): object {
  if (rawBytes !== null) {
    return {
      requestBody: {
        required: true,
        content: { "application/octet-stream": { schema: { type: "string", format: "binary" } } },
      },
    };
  }
  return body === null ? {} : { requestBody: { required: true, content: asJson(body) } };
}

/** Returns the resource of a route: the first segment of its path after the fixed prefix. */
function tagOf(route: Route): string {
  if (route.who === "environment") return route.path.split("/")[5] ?? "environment";
  if (route.path.startsWith("/client/")) return "client";
  return route.path.startsWith("/api/") ? (route.path.split("/")[2] ?? "api") : "service";
}

function pathParameters(path: string): object[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
    name,
    in: "path",
    required: true,
    schema:
      name === "environment"
        ? { type: "string", enum: ["development", "production", "local"] }
        : { type: "string" },
  }));
}

function queryParameters(route: Route): object[] {
  const properties: Record<string, TSchema> = route.query?.properties ?? {};
  return Object.entries(properties).map(([name, schema]) => ({
    name,
    in: "query",
    required: route.query?.required?.includes(name) ?? false,
    schema: plain(schema),
  }));
}

function asJson(schema: TSchema): object {
  return { "application/json": { schema: plain(schema) } };
}

function asText(schema: TSchema): object {
  const { contentMediaType } = schema as { contentMediaType?: string };
  return { [contentMediaType ?? "text/plain"]: { schema: plain(schema) } };
}

/** Returns the schema as plain JSON Schema, without the library's own properties. */
function plain(schema: TSchema): object {
  return JSON.parse(JSON.stringify(schema)) as object;
}
