/** Tests settings, keys and the sender domain: write-only values never show, and stale versions are rejected. */
import { expect } from "bun:test";
import { runScenarios } from "../kit/api-scenario.ts";
import type { ApiServer } from "../kit/api-server.ts";

const SECRET = "processor-secret-1A2b3C4d5E6f";

const put = (api: ApiServer, body: unknown) => api.call(`${api.E}/settings`, { method: "PUT", key: api.keys.dev, body });

runScenarios([
  {
    name: "settings contain the base facts and the current caps",
    request: "GET /settings",
    status: 200,
    answer: {
      settings: {
        app: { id: "shop", name: "Shop" },
        environment: "development",
        mode: "server",
        version: 1,
        heldAt: null,
        processorSecret: null,
        limits: { relaysPerEnvironment: 20, verifiedEventsPerMinute: 120 },
        mail: { sends: true, smtp: null },
        alerts: { relay_failed: true },
      },
    },
  },
  {
    name: "the processor's secret is write-only: its fingerprint is shown and audited, its value never is",
    request: "PUT /settings",
    call: { body: { version: 1, processorSecret: SECRET } },
    status: 200,
    answer: {
      settings: {
        version: 2,
        processorSecret: { fingerprint: expect.stringMatching(/^hmac:[0-9a-f]{16}$/) },
      },
    },
    changes: { environment: 0, audit: 1 },
    also: async (api, { text }) => {
      const rest = Bun.inspect([...(await api.snapshot())]) + api.logged.join();
      expect(text + rest).not.toContain(SECRET);
      expect(api.woken.relays).toBe(1);
    },
  },
  {
    name: "a stale version is version_conflict and changes nothing",
    request: "PUT /settings",
    call: { body: { version: 9, held: true } },
    status: 409,
    answer: { code: "version_conflict", version: 1 },
  },
  {
    name: "a rejected part reverts the whole change",
    request: "PUT /settings",
    call: { body: { version: 1, held: true, processorSecret: "short" } },
    status: 400,
    answer: { code: "invalid_input" },
  },
  {
    name: "a hold starts, and the relays are read again",
    request: "PUT /settings",
    call: { session: true, body: { version: 1, held: true } },
    status: 200,
    answer: { settings: { heldAt: "2026-01-15T12:00:00.000Z" } },
    changes: { environment: 0, audit: 1 },
  },
  {
    name: "a mail server's password is never shown",
    request: "PUT /settings",
    call: {
      body: {
        version: 1,
        mail: { smtp: { host: "smtp.example.com", username: "me", password: "mail-password-77" } },
      },
    },
    status: 200,
    answer: {
      settings: {
        mail: { smtp: { host: "smtp.example.com", port: 587, security: "starttls", username: "me" } },
      },
    },
    changes: { environment: 0, audit: 1 },
    also: async (api, { text }) => {
      expect(text + Bun.inspect([...(await api.snapshot())])).not.toContain("mail-password-77");
    },
  },
  {
    name: "an alert is switched off and the others stay",
    given: (api) => put(api, { version: 1, alerts: { events_dropped: false } }),
    request: "PUT /settings",
    call: { body: { version: 2, alerts: { relay_failed: false } } },
    status: 200,
    answer: { settings: { alerts: { relay_failed: false, events_dropped: false, relay_silent: true } } },
    changes: { environment: 0, audit: 1 },
  },
  {
    name: "the owner can limit sign-in to invited people, with an audit row",
    request: "PUT /settings",
    call: { session: true, body: { version: 1, signin: { invitedOnly: true } } },
    status: 200,
    answer: { settings: { signin: { invitedOnly: true } } },
    changes: { environment: 0, audit: 1 },
    also: async (api) => {
      const shown = await api.call(`${api.E}/settings`, { session: true });
      expect(shown.json.settings.signin).toEqual({ invitedOnly: true });
      const audit = await api.call(`${api.E}/audit`, { session: true });
      expect(audit.json.items[0]).toMatchObject({
        before: { signin: { invitedOnly: false } },
        after: { signin: { invitedOnly: true } },
      });
    },
  },
  {
    name: "mapping receipts to a missing collection is saved with a warning",
    request: "PUT /settings",
    call: { body: { version: 1, receipts: { collection: "payments" } } },
    status: 200,
    answer: {
      settings: { receipts: { collection: "payments" } },
      warnings: [
        {
          code: "reference_missing",
          field: "receipts.collection",
          message: expect.stringContaining("is payments, and this environment has no collection of this name"),
        },
      ],
    },
    changes: { environment: 0, audit: 1 },
    async also(api) {
      const call = (method: string, path: string, body?: object) => api.call(api.E + path, { method, session: true, ...(body && { body }) });
      const shape = { kind: "shared", fields: { ref: { type: "text" } } };
      expect((await call("POST", "/collections", { name: "payments", ...shape })).json.warnings).toEqual([]);
      const same = { version: 2, receipts: { collection: "payments" } };
      expect((await call("PUT", "/settings", same)).json.warnings).toEqual([]);
      expect((await call("POST", "/collections", { name: "other", ...shape })).json.warnings).toEqual([]);
      expect((await call("DELETE", "/collections/other")).json.warnings).toEqual([]);
      const gone = await call("DELETE", "/collections/payments");
      expect(gone.json.warnings).toMatchObject([{ code: "reference_missing", field: "receipts.collection" }]);
    },
  },
  ...(
    [
      ["an unknown alert code", { alerts: { relay_faild: false } }, "alerts.relay_faild", "relay_failed"],
      ["an unknown section", { alert: { relay_failed: false } }, "alert", "alerts"],
      ["a name in mail", { mail: { send: false } }, "mail.send", "sends"],
      ["a name in the mail server", { mail: { smtp: { host: "smtp.example.com", user: "me", pasword: "x" } } }, "mail.smtp.pasword", "password"],
      ["a name in receipts", { receipts: { colection: "x" } }, "receipts.colection", "collection"],
      ["a name that JavaScript knows", { alerts: { toString: false } }, "alerts.toString", null],
    ] as const
  ).map(([what, body, field, nearest]) => ({
    name: `${what} is refused by name, and nothing is changed`,
    request: "PUT /settings",
    call: { body: { version: 1, held: true, ...body } },
    status: 400,
    answer: {
      code: "invalid_input",
      problems: expect.arrayContaining([
        {
          field,
          message: expect.stringContaining(`\`${field}\` is not a known field: ${nearest === null ? "remove it; " : `rename it to \`${nearest}\``}`),
        },
      ]),
    },
  })),
  {
    name: "a key's token is shown once and stored as a hash",
    request: "POST /keys",
    call: { session: true, body: { kind: "secret", name: "ci" } },
    status: 201,
    changes: { api_key: 1, audit: 1 },
    also: async (api, { json }) => {
      expect(json.token).toMatch(/^relay_dev_\w{32}$/);
      const rest = await api.call(`${api.E}/keys`, { session: true });
      expect(rest.text + Bun.inspect([...(await api.snapshot())])).not.toContain(json.token);
    },
  },
  {
    name: "an app key for an origin with a star has a warning, because no page has that origin",
    request: "POST /keys",
    call: {
      session: true,
      body: { kind: "app", name: "web", origins: ["https://*.shop.example", "https://shop.example"] },
    },
    status: 201,
    changes: { api_key: 1, audit: 1 },
    also: async (_api, { json }) => {
      expect(json.warnings).toEqual([
        {
          code: "origin_of_no_page",
          field: "origins.0",
          message: expect.stringContaining("https://*.shop.example, which is not an origin of a page"),
        },
      ]);
    },
  },
  {
    name: "a secret key cannot create keys, because a leaked one would leave others behind",
    request: "POST /keys",
    call: { body: { kind: "secret", name: "ci" } },
    status: 403,
    answer: {
      code: "forbidden",
      message: expect.stringContaining("Only a member or the command line can"),
    },
  },
  {
    name: "a secret key cannot revoke keys, not even itself",
    request: "DELETE /keys/key_0",
    status: 403,
    answer: {
      code: "forbidden",
      message: expect.stringContaining("Only a member or the command line can"),
    },
  },
  {
    name: "a live app key needs its origins",
    request: "POST /api/apps/shop/production/keys",
    call: { session: true, body: { kind: "app", name: "web" } },
    status: 400,
    answer: { code: "invalid_input" },
  },
  {
    name: "a sender domain starts unverified and shows the record to set",
    request: "PUT /sender-domain",
    call: { body: { domain: "Example.com" } },
    status: 200,
    answer: {
      senderDomain: {
        domain: "example.com",
        verified: false,
        record: { type: "TXT", name: "_relay-service.example.com" },
      },
    },
    changes: { sender_domain: 1, audit: 1 },
  },
  {
    name: "references to catalog items are listed by relay and action, only for this environment",
    given: async (api) => {
      const definition = {
        name: "paid",
        trigger: { kind: "receiver", verify: { scheme: "hooks" }, map: { person_email: "email" } },
        actions: [
          { type: "grant_access", entitlement: "access:beta" },
          { type: "grant_access", entitlement: "access:beta", expiresAt: "30d" },
        ],
      };
      const post = (path: string, body: unknown, method = "POST") => api.call(path, { method, session: true, body });
      for (const E of [api.E, "/api/apps/shop/production"]) {
        await post(`${E}/access/beta`, {}, "PUT");
        await post(`${E}/relays`, { definition: { ...definition, name: E === api.E ? "paid" : "live" } });
      }
    },
    request: "GET /catalog-uses",
    status: 200,
    also: (_api, { json }) => expect(json.uses).toEqual([{ name: "access:beta", relay: "paid", action: "grant_access" }]),
  },
]);
