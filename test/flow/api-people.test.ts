/** Tests people, their access and the catalog over HTTP. */
import { expect } from "bun:test";
import { runScenarios } from "../kit/api-scenario.ts";
import type { ApiServer } from "../kit/api-server.ts";

async function send(api: ApiServer, method: string, path: string, body?: unknown) {
  const reply = await api.call(api.E + path, {
    method,
    key: api.keys.dev,
    ...(body === undefined ? {} : { body }),
  });
  expect(reply.status).toBeLessThan(300);
  return reply.json;
}

let id = "";
async function withPerson(api: ApiServer): Promise<void> {
  id = (await send(api, "POST", "/persons", { email: "bo@example.com" })).person.id;
  await send(api, "PUT", "/access", { items: [{ slug: "beta" }] });
}

runScenarios([
  {
    name: "inviting creates a person, counted and audited only by id",
    request: "POST /persons",
    call: { body: { email: "Bo@Example.com" } },
    status: 201,
    answer: {
      created: true,
      person: { email: "Bo@Example.com", status: "invited", createdBy: expect.stringMatching(/^key:key_/) },
    },
    changes: { person: 1, invite_count: 1, audit: 1 },
  },
  {
    name: "inviting an existing person returns them and changes nothing",
    given: withPerson,
    request: "POST /persons",
    call: { body: { email: "BO@example.com" } },
    status: 201,
    answer: { created: false, person: { email: "bo@example.com" } },
  },
  {
    name: "suspending is audited with before and after",
    given: withPerson,
    request: () => `PATCH /persons/${id}`,
    call: { session: true, body: { status: "suspended" } },
    status: 200,
    answer: { person: { status: "suspended" } },
    changes: { person: 0, audit: 1 },
  },
  {
    name: "a suspended person has no access, and the check says why",
    given: withPerson,
    request: () => `PATCH /persons/${id}`,
    call: { session: true, body: { status: "suspended" } },
    status: 200,
    changes: { person: 0, audit: 1 },
    also: async (api) => {
      const held = { grants: [{ source: "hand", live: true }] };
      await send(api, "PATCH", `/persons/${id}`, { status: "active" });
      await send(api, "POST", `/persons/${id}/grants`, { entitlement: "access:beta" });
      const of = `/persons/${id}/access`;
      expect(await send(api, "GET", of)).toMatchObject({ granted: true, suspended: false, ...held });
      await send(api, "PATCH", `/persons/${id}`, { status: "suspended" });
      for (const path of [of, `${of}/access:beta`])
        expect(await send(api, "GET", path)).toMatchObject({
          granted: false,
          suspended: true,
          until: null,
          ...held,
        });
    },
  },
  {
    name: "erasing leaves a tombstone and no address anywhere",
    given: withPerson,
    request: () => `DELETE /persons/${id}`,
    status: 204,
    changes: { person: 0, audit: 1, erasure: 1 },
    also: async (api) => expect(Bun.inspect([...(await api.snapshot())])).not.toContain("bo@example.com"),
  },
  ...["email=bo+1@x.com", "find=bo+1@x", "find=bo+1@x.com", "q=o+1", "email=bo%2B1@x.com"].map((query) => ({
    name: `a plus of an address is found as it stands in a query: ${query}`,
    given: (api: ApiServer) => send(api, "POST", "/persons", { email: "Bo+1@x.com" }),
    request: `GET /persons?${query}`,
    status: 200,
    answer: { items: [{ email: "Bo+1@x.com" }] },
  })),
  ...["events", "purchases", "subscriptions", "emails"].map((list) => ({
    name: `a plus of an address names its person in a filter of ${list}`,
    given: (api: ApiServer) => send(api, "POST", "/persons", { email: "bo+1@x.com" }),
    request: `GET /${list}?person=bo+1@x.com`,
    status: 200,
    answer: { items: [] },
  })),
  {
    name: "access can be checked by address in one request",
    given: async (api) => {
      id = (await send(api, "POST", "/persons", { email: "bo+1@x.com" })).person.id;
      await send(api, "PUT", "/access", { items: [{ slug: "beta" }] });
      await send(api, "POST", `/persons/${id}/grants`, { entitlement: "access:beta" });
    },
    request: "GET /persons/access/access:beta?email=BO+1@x.com",
    status: 200,
    also: async (api, reply) => {
      expect(reply.json).toEqual({ person: id, ...(await send(api, "GET", `/persons/${id}/access/access:beta`)) });
      expect(reply.json).toMatchObject({ granted: true, until: null, grants: [{ source: "hand" }] });
      await send(api, "PATCH", `/persons/${id}`, { status: "suspended" });
      expect(await send(api, "GET", "/persons/access/access:beta?email=bo%2B1@x.com")).toMatchObject({ granted: false, suspended: true });
    },
  },
  {
    name: "an unknown address has no access, and no person is created for it",
    request: "GET /persons/access/pro?email=no-one@x.com",
    status: 200,
    answer: { person: null, granted: false, suspended: false, until: null, grants: [] },
  },
  {
    name: "access by address needs the address",
    request: "GET /persons/access/pro",
    status: 400,
    answer: { code: "invalid_input", message: expect.stringContaining("`email`") },
  },
  {
    name: "a manual grant has the source hand, whatever the key",
    given: withPerson,
    request: () => `POST /persons/${id}/grants`,
    call: { body: { entitlement: "access:beta", expiresAt: "2026-02-01T00:00:00Z" } },
    status: 201,
    answer: {
      grant: {
        source: "hand",
        entitlement: "access:beta",
        expiresAt: "2026-02-01T00:00:00.000Z",
        live: true,
      },
    },
    changes: { access_grant: 1, audit: 1 },
    also: async (api) => {
      const access = await send(api, "GET", `/persons/${id}/access/access:beta`);
      expect(access).toMatchObject({
        granted: true,
        until: "2026-02-01T00:00:00.000Z",
        grants: [{ source: "hand" }],
      });
    },
  },
  ...[
    ["a date that does not exist", "2026-02-30"],
    ["an hour that does not exist", "2026-02-28T24:00:00Z"],
    ["a time without its zone", "2026-02-28T12:00:00"],
    ["a zone by name", "2026-02-28 12:00 PST"],
    ["a duration", "30d"],
  ].map(([what, expiresAt]) => ({
    name: `a grant by hand never ends at ${what}: it is refused, not moved`,
    given: withPerson,
    request: () => `POST /persons/${id}/grants`,
    call: { body: { entitlement: "access:beta", expiresAt } },
    status: 400,
    answer: { code: "invalid_input", message: "expiresAt is not valid: write a time such as 2026-01-31T12:00:00Z." },
    changes: {},
  })),
  ...["2026-02-28", "2026-02-28T00:00:00.000000+00:00", "2026-02-28 01:00:00+0100"].map((expiresAt) => ({
    name: `a grant by hand ends at ${expiresAt}`,
    given: withPerson,
    request: () => `POST /persons/${id}/grants`,
    call: { body: { entitlement: "access:beta", expiresAt } },
    status: 201,
    answer: { grant: { expiresAt: "2026-02-28T00:00:00.000Z" } },
    changes: { access_grant: 1, audit: 1 },
  })),
  {
    name: "an impossible number of credits is quoted exactly in the error",
    given: withPerson,
    request: () => `POST /persons/${id}/credits`,
    call: { body: '{"amount":1e400,"reason":"","key":"k1"}' },
    status: 400,
    answer: { code: "invalid_input", message: expect.stringContaining("`amount` is a number too large or too small to keep: ") },
    changes: {},
  },
  {
    name: "a source in the body is an unknown field, because no caller can set it",
    given: withPerson,
    request: () => `POST /persons/${id}/grants`,
    call: { body: { entitlement: "access:beta", source: "relay" } },
    status: 400,
    answer: {
      code: "invalid_input",
      message: "`source` is not a known field: remove it; the fields here are entitlement, expiresAt and reason.",
    },
  },
  {
    name: "credits added with a key apply once",
    given: async (api) => {
      await withPerson(api);
      await send(api, "POST", `/persons/${id}/credits`, { amount: 5, reason: "gift", key: "k1" });
    },
    request: () => `POST /persons/${id}/credits`,
    call: { body: { amount: 5, reason: "gift", key: "k1" } },
    status: 201,
    answer: { applied: false, balance: 5 },
  },
  {
    name: "credits never go below zero",
    given: withPerson,
    request: () => `POST /persons/${id}/credits`,
    call: { body: { amount: -1, reason: "", key: "k2" } },
    status: 409,
    answer: { code: "credits_short" },
  },
  {
    name: "a store account token is stored for its person",
    given: withPerson,
    request: () => `PUT /persons/${id}/tokens/store-1`,
    status: 200,
    answer: { token: { token: "store-1" } },
    changes: { person_token: 1, audit: 1 },
  },
  {
    name: "a store account token in the body stays out of path logs, and is audited by a keyed fingerprint",
    given: withPerson,
    request: () => `PUT /persons/${id}/tokens`,
    call: { body: { token: "store-1" } },
    status: 200,
    answer: { token: { token: "store-1" } },
    changes: { person_token: 1, audit: 1 },
    also: async (api) => {
      const audit = await api.call(`${api.E}/audit`, { key: api.keys.dev });
      expect(audit.json.items[0].after).toEqual({ token: api.service.sealer.fingerprint("store-1") });
      const again = await send(api, "PUT", `/persons/${id}/tokens`, { token: "store-1" });
      expect(again.token.token).toBe("store-1");
    },
  },
  {
    name: "a store account token in the body follows the rules of one in the path",
    given: withPerson,
    request: () => `PUT /persons/${id}/tokens`,
    call: { body: { token: "two\nlines" } },
    status: 400,
    answer: { code: "invalid_input" },
  },
  {
    name: "a store account token in the body can be removed",
    given: async (api) => {
      await withPerson(api);
      await send(api, "PUT", `/persons/${id}/tokens`, { token: "store-1" });
    },
    request: () => `POST /persons/${id}/tokens/remove`,
    call: { body: { token: "store-1" } },
    status: 204,
    changes: { person_token: -1, audit: 1 },
  },
  {
    name: "deleting an access slug warns of the product that uses it as its key",
    async given(api) {
      await send(api, "PUT", "/access/vault", {});
      await send(api, "PUT", "/products/box", { key: "access:vault" });
      expect((await send(api, "PUT", "/access/vault", { title: "Vault" })).warnings).toEqual([]);
    },
    request: "DELETE /access/vault",
    status: 200,
    answer: {
      warnings: [
        {
          code: "key_names_nothing",
          field: "products.box.key",
          message: expect.stringContaining("The product box: `key` names access:vault, and there is no such access slug in this environment"),
        },
      ],
    },
    changes: { access_slug: -1, audit: 1 },
    async also(api) {
      const roster = async (...slugs: string[]) => (await send(api, "PUT", "/access", { items: slugs.map((slug) => ({ slug })) })).warnings;
      // A save does not repeat warnings that existed before it.
      expect([await roster(), await roster("vault")]).toEqual([[], []]);
      expect(await roster()).toMatchObject([{ field: "products.box.key" }]);
      expect((await send(api, "PUT", "/access/vault", {})).warnings).toEqual([]);
    },
  },
  {
    name: "a product is created with its seller, and audited",
    request: "PUT /products/book",
    call: {
      body: {
        title: "The book",
        credits: 3,
        soldThrough: { kind: "payment_link", url: "https://pay.example.com/x" },
      },
    },
    status: 200,
    answer: { created: true, product: { name: "book", key: "book", version: 1 } },
    changes: { product: 1, audit: 1 },
  },
  {
    name: "a product sold through a relay that does not exist is relay_missing",
    request: "PUT /products/book",
    call: { body: { soldThrough: { kind: "relay", relay: "nobody" } } },
    status: 400,
    answer: { code: "relay_missing" },
  },
  {
    name: "a plan with the name of a product is name_taken",
    given: (api) => send(api, "PUT", "/products/book", {}),
    request: "PUT /plans/book",
    status: 409,
    answer: { code: "name_taken" },
  },
  {
    name: "a receipt gives the product once per ref",
    given: async (api) => {
      await withPerson(api);
      await send(api, "PUT", "/products/book", { credits: 3 });
    },
    request: "POST /receipts",
    call: () => ({ body: { ref: "ch_1", person: id, product: "book", amountMinor: 990, currency: "EUR" } }),
    status: 201,
    answer: { created: true, receipt: { ref: "ch_1", origin: "payment", amountMinor: 990 } },
    changes: { purchase: 1, access_grant: 1, credit: 1, audit: 1 },
  },
  {
    name: "a receipt is found by its ref, with its refund",
    given: async (api) => {
      await withPerson(api);
      await send(api, "PUT", "/products/book", {});
      for (const ref of ["ch_1", "ch_2"]) {
        await send(api, "POST", "/receipts", { ref, person: id, product: "book" });
      }
      await send(api, "POST", "/receipts", { kind: "refund", ref: "ch_1", person: id, product: "book" });
    },
    request: "GET /purchases?ref=ch_1",
    status: 200,
    answer: {
      items: [
        { kind: "refund", ref: "ch_1" },
        { kind: "purchase", ref: "ch_1", person: expect.stringMatching(/^per_/) },
      ],
      next: null,
    },
  },
  {
    name: "an unknown ref finds nothing",
    request: "GET /purchases?ref=ch_9",
    status: 200,
    answer: { items: [], next: null },
  },
  {
    name: "people with an entitlement are listed with source and end, without those who lost it",
    given: async (api) => {
      await withPerson(api);
      await send(api, "PUT", "/products/book", { key: "reader" });
      const give = (entitlement: string, expiresAt?: string) => send(api, "POST", `/persons/${id}/grants`, { entitlement, expiresAt });
      await give("access:beta");
      const { grant } = await give("book");
      await api.call(`${api.E}/grants/${grant.id}`, { method: "DELETE", key: api.keys.dev });
      await give("book", "2026-02-01T00:00:00Z");
    },
    // The product's name selects the entitlement that it grants.
    request: "GET /grants?entitlement=book",
    status: 200,
    answer: {
      items: [
        {
          person: expect.stringMatching(/^per_/),
          entitlement: "reader",
          source: "hand",
          live: true,
          expiresAt: "2026-02-01T00:00:00.000Z",
        },
      ],
      next: null,
    },
    also: async (api) => {
      const all = await send(api, "GET", "/grants");
      expect(all.items.map((one: { entitlement: string }) => one.entitlement)).toEqual(["reader", "access:beta"]);
      const other = await api.call("/api/apps/shop/production/grants", { key: api.keys.live });
      expect(other.json.items).toEqual([]);
    },
  },
]);
