/** Checks that every route of the OpenAPI document rejects every caller without permission. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { ROUTES } from "../../src/interfaces/api/route-list.ts";
import { type ApiServer, type Call, changesBetween, startApi } from "../kit/api-server.ts";

let api: ApiServer;
beforeAll(async () => {
  api = await startApi();
});
afterAll(async () => {
  await api[Symbol.asyncDispose]();
});

const BY_ENVIRONMENT: readonly {
  name: string;
  who: () => Call;
  path?: [string, string];
  status: number;
  code: string;
}[] = [
  { name: "without a key", who: () => ({}), status: 401, code: "unauthenticated" },
  {
    name: "with an invalid key",
    who: () => ({ key: "sk_dev_nothing" }),
    status: 401,
    code: "unauthenticated",
  },
  {
    name: "with another scheme than Bearer",
    who: () => ({ headers: { authorization: `Basic ${api.keys.dev}` } }),
    status: 401,
    code: "unauthenticated",
  },
  {
    name: "with a live key on development",
    who: () => ({ key: api.keys.live }),
    status: 403,
    code: "wrong_environment",
  },
  {
    name: "with a development key on production",
    who: () => ({ key: api.keys.dev }),
    path: ["shop", "production"],
    status: 403,
    code: "wrong_environment",
  },
  {
    name: "with another app's key",
    who: () => ({ key: api.keys.other }),
    status: 403,
    code: "wrong_environment",
  },
  {
    name: "with a key on an unknown app, with the same answer",
    who: () => ({ key: api.keys.dev }),
    path: ["nobody", "development"],
    status: 403,
    code: "wrong_environment",
  },
  { name: "with an app key", who: () => ({ key: api.keys.app }), status: 403, code: "forbidden" },
  {
    name: "with a session on an environment that does not exist",
    who: () => ({ session: true }),
    path: ["shop", "local"],
    status: 404,
    code: "not_found",
  },
  {
    name: "with a cookie of no session",
    who: () => ({ headers: { cookie: `relay_session=${"x".repeat(43)}` } }),
    status: 401,
    code: "unauthenticated",
  },
];

describe("a route of an environment is rejected", () => {
  for (const row of BY_ENVIRONMENT) {
    test(row.name, async () => {
      await quiet(async () => {
        for (const route of ROUTES.filter(({ who }) => who === "environment")) {
          const [app, environment] = row.path ?? ["shop", "development"];
          const path = fill(route.path, app, environment);
          const reply = await api.call(path, { ...row.who(), method: route.method, ...bodyOf(route.method) });
          expect(`${route.method} ${route.path} ${reply.status} ${reply.json.code}`).toBe(`${route.method} ${route.path} ${row.status} ${row.code}`);
        }
      });
    });
  }

  test("for a write by session from another page's origin, or without an origin", async () => {
    await quiet(async () => {
      for (const route of ROUTES.filter(({ who, method }) => who === "environment" && method !== "GET")) {
        for (const origin of ["https://evil.example", "null", "", `${api.base}.evil.example`, `${api.base}/`]) {
          const call = { session: true, method: route.method, headers: { origin }, ...bodyOf(route.method) };
          const reply = await api.call(fill(route.path, "shop", "development"), call);
          expect(`${route.method} ${route.path} ${reply.status} ${reply.json.code}`).toBe(`${route.method} ${route.path} 403 wrong_origin`);
        }
      }
    });
  });

  test("for an unknown field, by name", async () => {
    await quiet(async () => {
      for (const route of ROUTES.filter(({ who, method, rawBytes }) => who === "environment" && method !== "GET" && rawBytes === null)) {
        const reply = await api.call(fill(route.path, "shop", "development"), {
          session: true,
          method: route.method,
          body: { qqqq: 1 },
        });
        expect(`${route.method} ${route.path} ${reply.status} ${reply.json.code}`).toBe(`${route.method} ${route.path} 400 invalid_input`);
        expect(reply.json.message).toStartWith("`qqqq` is not a known field: remove it");
      }
    });
  });

  test("for an unknown query parameter, by name", async () => {
    for (const route of ROUTES.filter(({ who, method }) => who === "environment" && method === "GET")) {
      const reply = await api.call(`${fill(route.path, "shop", "development")}?qqqq=1`, {
        key: api.keys.dev,
      });
      expect(`${route.path} ${reply.status}`).toBe(`${route.path} 400`);
      expect(reply.json.message).toStartWith("`qqqq` is not a known field: remove it");
    }
  });
});

test("a made-up cursor causes no internal error", async () => {
  for (const route of ROUTES.filter(({ who, query }) => who === "environment" && query?.properties.cursor !== undefined)) {
    for (const text of ["\0\0\0", '{"a":1}', "a b", "1 per_x", "9".repeat(40)]) {
      const cursor = Buffer.from(text).toString("base64url");
      const reply = await api.call(`${fill(route.path, "shop", "development")}?cursor=${cursor}`, { key: api.keys.dev });
      expect(`${route.path} ${text} ${reply.status}`).toMatch(/ (200|400|404)$/);
    }
  }
});

describe("a route of the owners is rejected", () => {
  const rows: readonly { name: string; who: () => Call; status: number; code: string }[] = [
    { name: "without a session", who: () => ({}), status: 401, code: "unauthenticated" },
    { name: "with a secret key", who: () => ({ key: api.keys.live }), status: 403, code: "forbidden" },
    { name: "with an app key", who: () => ({ key: api.keys.app }), status: 403, code: "forbidden" },
  ];
  for (const row of rows) {
    test(row.name, async () => {
      for (const route of ROUTES.filter(({ who }) => who === "owner")) {
        const reply = await api.call(route.path, {
          ...row.who(),
          method: route.method,
          ...bodyOf(route.method),
        });
        expect(`${route.path} ${reply.status} ${reply.json.code}`).toBe(`${route.path} ${row.status} ${row.code}`);
      }
    });
  }
});

test("a revoked key and an ended session are rejected at once", async () => {
  await using own = await startApi();
  const minted = await own.call(`${own.E}/keys`, {
    method: "POST",
    session: true,
    body: { kind: "secret", name: "ci" },
  });
  const key = minted.json.token;
  expect((await own.call(`${own.E}/keys`, { key })).status).toBe(200);
  await own.call(`${own.E}/keys/${minted.json.key.id}`, { method: "DELETE", session: true });
  expect((await own.call(`${own.E}/keys`, { key })).json.code).toBe("unauthenticated");
  own.clock.jump(31 * 86_400_000);
  expect((await own.call(`${own.E}/keys`, { session: true })).json.code).toBe("unauthenticated");
});

test("an environment's rows cannot be found from another environment, by id or by name", async () => {
  await using own = await startApi();
  const live = "/api/apps/shop/production";
  const made = async (path: string, body: unknown) => (await own.call(`${own.E}${path}`, { method: "POST", key: own.keys.dev, body })).json;
  const { person } = await made("/persons", { email: "bo@example.com" });
  await made("/collections", { name: "notes", kind: "shared", fields: { text: { type: "text" } } });
  const { record } = await made("/collections/notes/records", { data: { text: "hello" } });
  const keys = (await own.call(`${own.E}/keys`, { key: own.keys.dev })).json.items;
  const before = await own.snapshot();
  for (const [method, path, body] of [
    ["GET", `/persons/${person.id}`],
    ["PATCH", `/persons/${person.id}`, { status: "suspended" }],
    ["DELETE", `/persons/${person.id}`],
    ["GET", `/persons/${person.id}/access`],
    ["GET", `/persons/${person.id}/credits`],
    ["POST", `/persons/${person.id}/credits`, { amount: 5, reason: "", key: "k" }],
    ["PUT", `/persons/${person.id}/tokens/abc`],
    ["GET", "/collections/notes"],
    ["GET", "/collections/notes/records"],
    ["GET", `/collections/notes/records/${record.id}`],
    ["PUT", `/collections/notes/records/${record.id}`, { data: { text: "mine" } }],
    ["DELETE", `/collections/notes/records/${record.id}`],
    ["DELETE", `/keys/${keys[0].id}`],
  ] as const) {
    const reply = await own.call(live + path, {
      method,
      ...(path.startsWith("/keys/") ? { session: true } : { key: own.keys.live }),
      ...(body === undefined ? {} : { body }),
    });
    expect(`${method} ${path} ${reply.status} ${reply.json?.code}`).toBe(`${method} ${path} 404 not_found`);
  }
  expect(changesBetween(before, await own.snapshot())).toEqual({});
});

function fill(path: string, app: string, environment: string): string {
  return path.replace(":appId", app).replace(":environment", environment).replaceAll(/:\w+/g, "some-thing");
}

function bodyOf(method: string): Call {
  return method === "GET" ? {} : { body: {} };
}

/** Fails if the work changes a row. */
async function quiet(work: () => Promise<void>): Promise<void> {
  const before = await api.snapshot();
  await work();
  expect(changesBetween(before, await api.snapshot())).toEqual({});
}
