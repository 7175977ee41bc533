/**
 * Every route of the OpenAPI document, requested by every kind of caller: the table of permissions decides which of them the route admits. An unknown
 * query parameter shows that a caller was admitted, and changes nothing.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mintApiKey } from "../../src/platform/account/api-key.ts";
import { EVERY, hasPermission, KEY_PERMISSIONS, PERMISSION_NAMES, ROLE_NAMES, type Role } from "../../src/platform/account/permission.ts";
import { type ApiServer, type Call, changesBetween, startApi } from "../kit/api-server.ts";
import { addMember, makeRole } from "../kit/member.ts";
import { askOperation, isManagement, type Operation, readOperations } from "../kit/operation.ts";
import { receiverDefinition, writeOrder } from "../kit/relay-definition.ts";

let api: ApiServer;
let operations: readonly Operation[];

/** Tokens of sessions and keys, by name. */
const tokens = new Map<string, string>();
let approval = "";

beforeAll(async () => {
  api = await startApi();
  operations = await readOperations(api);
  const { development } = api.environments;
  await api.store.write("dashboard", async (tx) => {
    const nowMs = api.clock.now();
    for (const role of ROLE_NAMES) {
      const person = await addMember(tx, role, { nowMs, memberships: [makeRole(role, "shop")] });
      tokens.set(role, person.token);
      const login = { owner: person, expiresAt: nowMs + 86_400_000 };
      tokens.set(`login of ${role}`, (await mintApiKey(tx, { environment: development, kind: "secret", name: role, login, nowMs })).token);
    }
    for (const scope of KEY_PERMISSIONS) {
      const key = await mintApiKey(tx, { environment: development, kind: "secret", name: scope, scopes: [scope], nowMs });
      tokens.set(`scope ${scope}`, key.token);
    }
    await tx.run("UPDATE api_key SET last_used_at = ?1", nowMs);
  });
  approval = await requestApproval();
});

async function requestApproval(): Promise<string> {
  const definition = receiverDefinition({ name: "orders", actions: [writeOrder] });
  const send = async (path: string, body: unknown) => (await api.call(`${api.E}${path}`, { method: "POST", key: api.keys.dev, body })).json;
  await send("/collections", { name: "orders", kind: "shared", fields: { order: { type: "text" }, amount: { type: "text" } } });
  await send("/relays", { definition });
  const wanted = { from: "development", to: "production" };
  const { plan } = await send("/sync/plan", wanted);
  return (await send("/approvals", { ...wanted, plan })).approval.id;
}
afterAll(async () => {
  await api[Symbol.asyncDispose]();
});

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

const bySession = (name: string): Call => ({ headers: { cookie: `relay_session=${tokens.get(name)}`, origin: api.base } });

/** Returns what a member of the app shop gets, with this role in both environments. */
function byMember(role: Role, at: readonly [string, string]) {
  return ({ path, needs }: Operation): string => {
    const isForeign = path.includes("{appId}") && at[0] !== "shop";
    if (isForeign) return "not_found";
    if (needs === null) return "admitted";
    const isOfServer = !path.includes("{appId}") && !path.includes("/approvals/{id}");
    if (isOfServer) return "forbidden";
    const name = path.includes("/approvals/{id}") ? "production" : path.includes("{environment}") ? at[1] : EVERY;
    return hasPermission(role, needs, name) ? "admitted" : "forbidden";
  };
}

const MEMBERS: readonly Row[] = ROLE_NAMES.flatMap((role) =>
  (
    [
      ["shop", "development"],
      ["shop", "production"],
      ["rival", "development"],
    ] as const
  ).map((at) => ({ who: `a ${role} of shop in ${at.join("/")}`, call: () => bySession(role), at, expected: byMember(role, at) })),
);

const LOGINS: readonly Row[] = ROLE_NAMES.map((role) => ({
  who: `the login key of a ${role}`,
  call: () => ({ key: tokens.get(`login of ${role}`) ?? "" }),
  at: OWN,
  expected: (operation) => (byKey(operation) === "admitted" ? byMember(role, OWN)(operation) : "forbidden"),
}));

const SCOPES: readonly Row[] = [...KEY_PERMISSIONS].map((scope) => ({
  who: `a key with the scope ${scope}`,
  call: () => ({ key: tokens.get(`scope ${scope}`) ?? "" }),
  at: OWN,
  expected: (operation) => (takesKey(operation) && operation.needs === scope ? "admitted" : "forbidden"),
}));

const ROWS: readonly Row[] = [
  ...MEMBERS,
  ...LOGINS,
  ...SCOPES,
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
      expect(`${name} ${await askOperation(api, operation, call(), at, approval)}`).toBe(`${name} ${expected(operation)}`);
    }
    expect(changesBetween(before, await api.snapshot())).toEqual({});
  });
});

test("every route of an environment names a permission, and every permission but one has a route", () => {
  for (const { path, needs } of operations.filter(isOfEnvironment)) expect(`${path} ${needs}`).not.toBe(`${path} null`);
  const named = new Set(operations.flatMap(({ needs }) => (needs === null ? [] : [needs])));
  // The permission to approve belongs to a part of a route: the decision of an approval.
  expect(PERMISSION_NAMES.filter((name) => !named.has(name))).toEqual(["approve"]);
});
