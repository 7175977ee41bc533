/** Tests relays over HTTP: create, save, pause, rotate and delete, secrets that show once, and the traces of a save. */
import { expect } from "bun:test";
import { requireSender } from "../../src/rules/senders/registry.ts";
import { startDefinition } from "../../src/rules/senders/sender-start.ts";
import { runScenarios } from "../kit/api-scenario.ts";
import type { ApiServer } from "../kit/api-server.ts";

const receiver = {
  name: "shop-orders",
  trigger: { kind: "receiver", verify: { scheme: "hooks" }, map: { person_email: "data.email" } },
  actions: [{ type: "grant_credits", amount: 5 }],
};
const stripe = startDefinition(requireSender("stripe"));
const caller = {
  name: "nightly",
  trigger: { kind: "schedule", every: "1d", at: "03:00" },
  actions: [{ type: "call_url", url: "https://example.com/night" }],
};

async function make(api: ApiServer, definition: unknown = receiver) {
  const reply = await api.call(`${api.E}/relays`, {
    method: "POST",
    key: api.keys.dev,
    body: { definition },
  });
  expect(reply.status).toBe(201);
  return reply.json;
}

runScenarios([
  {
    name: "creating a receiver creates its secret, which only this response shows",
    request: "POST /relays",
    call: { body: { definition: receiver } },
    status: 201,
    answer: { relay: { name: "shop-orders", state: "active", version: 1, secret: { kind: "minted" } } },
    changes: { relay: 1, relay_key: 1, relay_name: 1, audit: 1 },
    async also(api, { json }) {
      expect(json.receiverSecret).toStartWith("whsec_");
      expect(json.receiverUrl).toBe(`${api.base}/hooks/shop/shop-orders`);
      expect(api.woken.relays).toBe(1);
      const shown = await api.call(`${api.E}/relays/shop-orders`, { key: api.keys.dev });
      const audit = await api.call(`${api.E}/audit`, { key: api.keys.dev });
      expect(shown.text + audit.text + api.logged.join()).not.toContain(json.receiverSecret);
      expect(audit.json.items[0]).toMatchObject({ action: "relay.created", target: "relay:shop-orders" });
    },
  },
  {
    name: "a relay lists missing references, and products that exist but are not sold through it, until they are",
    request: "POST /relays",
    call: {
      body: {
        definition: {
          ...receiver,
          actions: [
            { type: "fulfil_product", product: "book" },
            { type: "grant_access", entitlement: "access:forum" },
            { type: "grant_access", entitlement: "access:forum", expiresAt: "1d" },
            { type: "write_record", collection: "orders", data: {} },
          ],
        },
      },
    },
    status: 201,
    changes: { relay: 1, relay_key: 1, relay_name: 1, audit: 1 },
    async also(api) {
      const call = (method: string, path: string, body?: object) => api.call(`${api.E}${path}`, { method, key: api.keys.dev, body });
      const missing = async () => (await call("GET", "/relays/shop-orders")).json.missing;
      const [book, forum, orders] = [
        { kind: "product", name: "book", there: false, near: null },
        { kind: "access", name: "forum", there: false, near: null },
        { kind: "collection", name: "orders", there: false, near: null },
      ];
      expect(await missing()).toEqual([book, forum, orders]);
      await call("PUT", "/access/forum", {});
      const { product } = (await call("PUT", "/products/book", {})).json;
      await call("POST", "/collections", { name: "orders", kind: "shared", fields: {} });
      expect(await missing()).toEqual([{ ...book, there: true }]);
      await call("PUT", "/products/book", { version: product.version, soldThrough: { kind: "relay", relay: "shop-orders" } });
      expect(await missing()).toEqual([]);
    },
  },
  {
    name: "creating an invalid relay names every problem and writes nothing",
    request: "POST /relays",
    call: { body: { definition: { ...receiver, color: "red", actions: [] } } },
    status: 400,
    answer: { code: "invalid_definition" },
    also: (_, { json }) => expect(json.problems.map(({ field }: { field: string }) => field)).toEqual(expect.arrayContaining(["color", "actions"])),
  },
  {
    name: "a second relay with the same name is name_taken",
    given: (api) => make(api),
    request: "POST /relays",
    call: { body: { definition: receiver } },
    status: 409,
    answer: { code: "name_taken" },
  },
  {
    name: "a relay with call_url gets its signing secret, shown once",
    request: "POST /relays",
    call: { body: { definition: caller } },
    status: 201,
    changes: { relay: 1, relay_key: 1, relay_name: 1, audit: 1 },
    also: (_, { json }) => expect(json).toMatchObject({ signingSecret: expect.any(String), relay: { secret: { kind: "none" } } }),
  },
  {
    name: "the list shows each relay with its results of the last day",
    given: (api) => make(api),
    request: "GET /relays",
    status: 200,
    answer: {
      items: [
        {
          name: "shop-orders",
          trigger: "receiver",
          actions: 1,
          last24h: { done: 0, failed: 0, dead: 0, waiting: 0 },
        },
      ],
      next: null,
    },
  },
  {
    name: "a save at the current version raises it and audits before and after",
    given: (api) => make(api),
    request: "PUT /relays/shop-orders",
    call: {
      body: { definition: { ...receiver, actions: [{ type: "grant_credits", amount: 9 }] }, version: 1 },
    },
    status: 200,
    answer: { relay: { version: 2, definition: { actions: [{ amount: 9 }] } } },
    changes: { relay: 0, audit: 1 },
  },
  {
    name: "a save at an older version is version_conflict and returns the current one",
    given: (api) => make(api),
    request: "PUT /relays/shop-orders",
    call: { body: { definition: receiver, version: 7 } },
    status: 409,
    answer: { code: "version_conflict", version: 1 },
  },
  {
    name: "a definition's integer beyond 2^53 is stored with every digit",
    request: "POST /relays",
    call: {
      body: `{"definition":{"name":"big","trigger":{"kind":"data_change","collection":"notes","on":["created"]},"actions":[{"type":"write_record","collection":"notes","data":{"id":90071992547409931234}}]}}`,
    },
    status: 201,
    changes: { relay: 1, relay_key: 1, relay_name: 1, audit: 1 },
    async also(api, { text }) {
      expect(text).toContain("90071992547409931234");
      expect((await api.call(`${api.E}/relays/big`, { key: api.keys.dev })).text).toContain("90071992547409931234");
    },
  },
  {
    name: "validating lists problems and writes nothing",
    request: "POST /relays/validate",
    call: { body: { definition: { name: "x" } } },
    status: 200,
    also: (_, { json }) => expect(json.problems.length).toBeGreaterThan(0),
  },
  {
    name: "validating names the sender of a valid trigger, also if an action is unfinished",
    request: "POST /relays/validate",
    call: { body: { definition: { ...stripe, actions: [{ type: "call_url" }] } } },
    status: 200,
    answer: { sender: "Stripe" },
    also: (_, { json }) => expect(json.problems.map(({ field }: { field: string }) => field)).toEqual(["actions.0.url"]),
  },
  {
    name: "validating names no sender of a trigger with a problem",
    request: "POST /relays/validate",
    call: { body: { definition: { ...stripe, trigger: { ...(stripe["trigger"] as object), when: 1 } } } },
    status: 200,
    also: (_, { json }) => expect([json.problems.length > 0, json.sender]).toEqual([true, undefined]),
  },
  {
    name: "validating a valid definition warns of missing references",
    request: "POST /relays/validate",
    call: { body: { definition: { ...receiver, actions: [{ type: "fulfil_product", product: "book" }] } } },
    status: 200,
    answer: { problems: [] },
    also: (_, { json }) => expect(JSON.stringify(json.warnings)).toContain("book"),
  },
  {
    name: "validating reports relay_missing like a save: a sale that belongs to a deleted relay",
    async given(api) {
      await make(api);
      const soldThrough = { kind: "relay", relay: "shop-orders" };
      await api.call(`${api.E}/products/book`, { method: "PUT", key: api.keys.dev, body: { soldThrough } });
      await api.call(`${api.E}/relays/shop-orders`, { method: "DELETE", key: api.keys.dev });
    },
    request: "POST /relays/validate",
    call: { body: { definition: { ...receiver, name: "other", actions: [{ type: "fulfil_product", product: "book" }] } } },
    status: 200,
    async also(api, { json }) {
      const definition = { ...receiver, name: "other", actions: [{ type: "fulfil_product", product: "book" }] };
      const save = await api.call(`${api.E}/relays`, { method: "POST", key: api.keys.dev, body: { definition } });
      expect([save.status, save.json.code]).toEqual([400, "relay_missing"]);
      expect(json.problems).toEqual([{ field: "actions.0.product", message: save.json.message }]);
    },
  },
  {
    name: "pausing pauses",
    given: (api) => make(api),
    request: "POST /relays/shop-orders/pause",
    status: 200,
    answer: { relay: { state: "paused" } },
    changes: { relay: 0, audit: 1 },
  },
  {
    name: "resuming resumes and wakes the runner",
    given: async (api) => {
      await make(api);
      await api.call(`${api.E}/relays/shop-orders/pause`, { method: "POST", key: api.keys.dev });
    },
    request: "POST /relays/shop-orders/resume",
    status: 200,
    answer: { relay: { state: "active" } },
    changes: { relay: 0, audit: 1 },
    // Counts three wakes: create, pause and resume.
    also: (api) => expect(api.woken.relays).toBe(3),
  },
  {
    name: "pasting the sender's secret stores it and never shows it",
    given: (api) => make(api),
    request: "PUT /relays/shop-orders/secret",
    call: { body: { value: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw" } },
    status: 200,
    // Stores the replaced secret during the overlap.
    changes: { relay: 0, audit: 1, retired_secret: 1 },
    async also(api, { json }) {
      expect(json).toEqual({});
      const everything = Bun.inspect([...(await api.snapshot())]) + api.logged.join();
      expect(everything).not.toContain("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
    },
  },
  {
    name: "a weak secret is invalid_input and its value is never shown",
    given: (api) => make(api),
    request: "PUT /relays/shop-orders/secret",
    call: { body: { value: "hunter2hunter2" } },
    status: 400,
    answer: { code: "invalid_input" },
    also: (api, { text }) => expect(text + api.logged.join()).not.toContain("hunter2"),
  },
  {
    name: "creating a secret again shows it once",
    given: (api) => make(api),
    request: "PUT /relays/shop-orders/secret",
    status: 200,
    // Stores the replaced secret, and a marker for older secrets, because the minted secret never verified a request.
    changes: { relay: 0, audit: 1, retired_secret: 2 },
    also: (_, { json }) => expect(json.receiverSecret).toStartWith("whsec_"),
  },
  {
    name: "a signing secret for a relay without call_url is no_call_url",
    given: (api) => make(api),
    request: "PUT /relays/shop-orders/signing-secret",
    status: 400,
    answer: { code: "no_call_url" },
  },
  {
    name: "rotating the signing secret returns the new one",
    given: (api) => make(api, caller),
    request: "PUT /relays/nightly/signing-secret",
    call: { body: {} },
    status: 200,
    answer: { signingSecret: expect.any(String) },
    changes: { relay: 0, audit: 1 },
  },
  {
    name: "deleting a relay deletes it",
    given: (api) => make(api),
    request: "DELETE /relays/shop-orders",
    status: 204,
    changes: { relay: -1, audit: 1, retired_secret: 2 },
  },
  {
    name: "deleting a relay warns of the products that it sold",
    async given(api) {
      await make(api);
      const soldThrough = { kind: "relay", relay: "shop-orders" };
      for (const path of ["/products/book", "/plans/pro"]) await api.call(api.E + path, { method: "PUT", key: api.keys.dev, body: { soldThrough } });
      await api.call(`${api.E}/products/pen`, { method: "PUT", key: api.keys.dev, body: {} });
    },
    request: "DELETE /relays/shop-orders",
    status: 200,
    answer: {
      warnings: [
        {
          code: "reference_missing",
          field: "products.book.soldThrough.relay",
          message: expect.stringContaining("The product book is sold through the relay shop-orders, which no longer exists"),
        },
        { code: "reference_missing", field: "plans.pro.soldThrough.relay", message: expect.stringContaining("The plan pro") },
      ],
    },
    changes: { relay: -1, audit: 1, retired_secret: 2 },
  },
  {
    name: "a relay that does not exist is not_found",
    request: "GET /relays/nobody",
    status: 404,
    answer: { code: "not_found" },
  },
]);
