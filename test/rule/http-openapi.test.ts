/** The OpenAPI document describes every route with a sentence, its parameters and its schemas, and contains no leftovers of the library. */
import { expect, test } from "bun:test";
import type { ShapeNode } from "../../src/base/shape.ts";
import { ROUTES } from "../../src/interfaces/api/route-list.ts";
import { writeOpenApi } from "../../src/interfaces/http/openapi.ts";

interface Operation {
  summary: string;
  operationId: string;
  parameters: { name: string; in: string }[];
  security: object[];
  requestBody?: { content: object };
  responses: Record<string, { content?: object }>;
}

const document = writeOpenApi(ROUTES, "https://relay.example.com") as {
  openapi: string;
  paths: Record<string, Record<string, Operation>>;
};
const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
);

test("the document lists every route and the receiver, once each", () => {
  const listed = operations.map(({ path, method }) => `${method.toUpperCase()} ${path.replaceAll(/\{(\w+)\}/g, ":$1")}`);
  const receiver = ["GET", "POST"].map((method) => ({ method, path: "/hooks/:appId/:name" }));
  const served = [...ROUTES, ...receiver];
  expect(listed.sort()).toEqual(served.map(({ method, path }) => `${method} ${path}`).sort());
});

test("every route says in one sentence what it does", () => {
  for (const { operation } of operations) expect(operation.summary).toMatch(/^[A-Z][^\n]{8,160}\.$/);
});

test("every operation has a unique id", () => {
  const ids = operations.map(({ operation }) => operation.operationId);
  expect(new Set(ids).size).toBe(ids.length);
  for (const id of ids) expect(id).toMatch(/^[a-z][A-Za-z0-9]+$/);
});

test("every name in a path is a parameter", () => {
  for (const { path, operation } of operations) {
    const named = [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1] ?? "");
    expect(operation.parameters.filter((parameter) => parameter.in === "path").map(({ name }) => name)).toEqual(named);
  }
});

test("every environment route requires a key or a session, and every open route requires neither", () => {
  for (const route of ROUTES) {
    const operation = document.paths[route.path.replaceAll(/:(\w+)/g, "{$1}")]?.[route.method.toLowerCase()];
    expect(operation?.security.length).toBe({ environment: 2, owner: 1, caller: 2, open: 0, client: 1, person: 1 }[route.who]);
  }
});

test("every list accepts limit and cursor and returns items and next", () => {
  const lists = ROUTES.filter(({ method, answer }) => method === "GET" && (answer as ShapeNode | null)?.properties?.items !== undefined);
  expect(lists.length).toBeGreaterThan(20);
  for (const { query, answer } of lists) {
    expect(Object.keys(query?.properties ?? {})).toEqual(expect.arrayContaining(["limit", "cursor"]));
    expect((answer as ShapeNode | null)?.required).toEqual(expect.arrayContaining(["items", "next"]));
  }
});

test("every request body refuses unknown fields", () => {
  for (const { body, query } of ROUTES) {
    for (const schema of [body, query]) if (schema !== null) expect((schema as ShapeNode).additionalProperties).toBe(false);
  }
});

test("the routes that the interface promises exist", () => {
  const E = "/api/apps/:appId/:environment";
  const have = new Set(ROUTES.map(({ method, path }) => `${method} ${path}`));
  for (const promised of [
    ...["GET", "POST"].map((method) => `${method} ${E}/relays`),
    ...["GET", "PUT", "DELETE"].map((method) => `${method} ${E}/relays/:name`),
    ...["pause", "resume", "retry"].map((verb) => `POST ${E}/relays/:name/${verb}`),
    ...["plan", "apply"].map((verb) => `POST ${E}/sync/${verb}`),
    `POST ${E}/approvals`,
    ...["GET", "POST"].map((method) => `${method} /api/approvals/:id`),
    ...["secret", "signing-secret"].map((secret) => `PUT ${E}/relays/:name/${secret}`),
    ...["validate", "explain"].map((verb) => `POST ${E}/relays/${verb}`),
    `GET ${E}/events`,
    `GET ${E}/events/:id`,
    `POST ${E}/events/:id/replay`,
    `POST ${E}/events/:id/retry`,
    ...["GET", "POST"].flatMap((method) => [`${method} ${E}/persons`, `${method} ${E}/collections`, `${method} ${E}/keys`]),
    ...["GET", "PATCH", "DELETE"].map((method) => `${method} ${E}/persons/:id`),
    `GET ${E}/persons/:id/access`,
    `GET ${E}/persons/:id/access/:entitlement`,
    `POST ${E}/persons/:id/grants`,
    `DELETE ${E}/grants/:id`,
    ...["GET", "POST"].map((method) => `${method} ${E}/persons/:id/credits`),
    `PUT ${E}/persons/:id/tokens/:token`,
    `PUT ${E}/persons/:id/tokens`,
    `POST ${E}/persons/:id/tokens/remove`,
    ...["GET", "PUT", "DELETE"].map((method) => `${method} ${E}/collections/:name`),
    ...["GET", "POST"].map((method) => `${method} ${E}/collections/:name/records`),
    ...["GET", "PUT", "DELETE"].map((method) => `${method} ${E}/collections/:name/records/:id`),
    ...["GET", "PUT"].flatMap((method) => [`${method} ${E}/access`, `${method} ${E}/settings`]),
    ...["GET", "PUT"].flatMap((method) => [`${method} ${E}/products/:name`, `${method} ${E}/plans/:name`]),
    `POST ${E}/receipts`,
    ...["purchases", "subscriptions", "emails", "audit", "alerts", "problems"].map((list) => `GET ${E}/${list}`),
    `DELETE ${E}/keys/:id`,
    ...["/changes.json", "/changes.txt", "/docs/errors/:code", "/healthz", "/readyz"].map((path) => `GET ${path}`),
  ]) {
    expect(have).toContain(promised);
  }
});
