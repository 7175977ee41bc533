/**
 * Every route of the OpenAPI document, requested by every kind of caller: the table of permissions decides which of them the route admits. An unknown
 * query parameter shows that a caller was admitted, and changes nothing.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Permission } from "../../src/platform/account/permission.ts";
import { KEY_PERMISSIONS, PERMISSION_NAMES } from "../../src/platform/account/permission.ts";
import { type ApiServer, type Call, changesBetween, startApi } from "../kit/api-server.ts";

interface Operation {
  method: string;
  path: string;
  /** The names of the security schemes. */
  schemes: readonly string[];
  needs: Permission | null;
}

let api: ApiServer;
let operations: readonly Operation[];

beforeAll(async () => {
  api = await startApi();
  operations = await readOperations();
});
afterAll(async () => {
  await api[Symbol.asyncDispose]();
});

async function readOperations(): Promise<Operation[]> {
  type Described = { security: readonly object[]; "x-permission"?: Permission };
  const { json } = await api.call("/openapi.json");
  return Object.entries(json.paths as Record<string, Record<string, Described>>).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { security, ...one }]) => ({
      method: method.toUpperCase(),
      path,
      schemes: security.flatMap((scheme) => Object.keys(scheme)),
      needs: one["x-permission"] ?? null,
    })),
  );
}

const isManagement = ({ schemes }: Operation): boolean => schemes.includes("secretKey") || schemes.includes("session");

/** Returns the code of the refusal; `admitted` when the caller was admitted. */
async function ask({ method, path }: Operation, who: Call, [app, environment]: readonly [string, string]): Promise<string> {
  const filled = path
    .replace("{appId}", app)
    .replace("{environment}", environment)
    .replaceAll(/\{\w+\}/g, "unknown");
  const reply = await api.call(`${filled}?qqqq=1`, { ...who, method, ...(method === "GET" ? {} : { body: {} }) });
  return reply.json.code === "invalid_input" && reply.json.message.startsWith("`qqqq`") ? "admitted" : reply.json.code;
}

const OWN = ["shop", "development"] as const;

interface Row {
  who: string;
  call: () => Call;
  at: readonly [string, string];
  expected(operation: Operation): string;
}

const takesKey = ({ schemes }: Operation): boolean => schemes.includes("secretKey");
const isOfEnvironment = ({ path }: Operation): boolean => path.includes("{environment}");
const byKey = (operation: Operation): string =>
  takesKey(operation) && operation.needs !== null && KEY_PERMISSIONS.has(operation.needs) ? "admitted" : "forbidden";
const ofAnother = (operation: Operation): string => (isOfEnvironment(operation) ? "wrong_environment" : byKey(operation));

const ROWS: readonly Row[] = [
  { who: "an owner", call: () => ({ session: true }), at: OWN, expected: () => "admitted" },
  { who: "an owner in another app", call: () => ({ session: true }), at: ["rival", "production"], expected: () => "admitted" },
  { who: "a secret key of the environment", call: () => ({ key: api.keys.dev }), at: OWN, expected: byKey },
  { who: "a secret key of another environment", call: () => ({ key: api.keys.live }), at: OWN, expected: ofAnother },
  { who: "a secret key of another app", call: () => ({ key: api.keys.other }), at: OWN, expected: ofAnother },
  { who: "an app key", call: () => ({ key: api.keys.app }), at: OWN, expected: () => "forbidden" },
  { who: "nobody", call: () => ({}), at: OWN, expected: () => "unauthenticated" },
];

describe.each(ROWS)("$who", ({ call, at, expected }) => {
  test("is admitted to exactly the routes of the table", async () => {
    const before = await api.snapshot();
    for (const operation of operations.filter(isManagement)) {
      const name = `${operation.method} ${operation.path}`;
      expect(`${name} ${await ask(operation, call(), at)}`).toBe(`${name} ${expected(operation)}`);
    }
    expect(changesBetween(before, await api.snapshot())).toEqual({});
  });
});

test("every route of an environment names a permission, and every permission but one has a route", () => {
  for (const { path, needs } of operations.filter(isOfEnvironment)) expect(`${path} ${needs}`).not.toBe(`${path} null`);
  const named = new Set(operations.flatMap(({ needs }) => (needs === null ? [] : [needs])));
  // Two permissions belong to a part of a route: the decision of an approval, and the values of payloads in a response.
  expect(PERMISSION_NAMES.filter((name) => !named.has(name))).toEqual(["read_payloads", "approve"]);
});
