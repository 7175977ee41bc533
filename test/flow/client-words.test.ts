/** Tests error messages for an app's users: what happened and what they can do. Only the log says what the owner must do. */
import { expect, test } from "bun:test";
import { DEFAULT_LIMITS } from "../../src/base/limit.ts";
import { type ApiServer, type Reply, startApi } from "../kit/api-server.ts";
import { LIVE_ORIGIN, mailedCode, manage, mintAppKey, type SignedIn, signIn, visitor } from "../kit/app-visitor.ts";

/** Matches words that only operators and developers understand. */
const OWNERS =
  /\brelay [a-z]|[Ss]ettings?\b|RELAY_|configuration|Bearer|\bkey that is not revoked|the key\b|Origin|soldThrough|dashboard|the server|environment|raise|SMTP|\blog\b|sender domain/;

interface At {
  api: ApiServer;
  /** Is signed in to development, where mail needs no sender domain. */
  ada: SignedIn;
}

interface Row {
  /** Holds the sentence or its beginning. */
  says: string;
  call(at: At): Promise<Reply>;
  /** Holds the owner's line in the log. It is absent if the sentence serves both, or another line is logged. */
  logged?: string;
}

const TOLD = "contact the owner of this app.";
const LIMITS = { ...DEFAULT_LIMITS, storedPerPersonMb: 1, storedPerEnvironmentMb: 1, signupsPerDay: 1, clientWritesPerPersonPerMinute: 30 };
const big = (letter: string) => ({ data: { text: letter.repeat(60_000) } });

/** Covers every code that a route of the client library returns. */
const ROWS: Record<string, Row> = {
  unauthenticated: {
    says: `This page's key for its service is missing or no longer valid: ${TOLD}`,
    call: ({ api }) => visitor(api, "ak_dev_none").call("GET", "/me"),
  },
  forbidden: {
    says: `This page has a key that is not for pages, so its service refuses it: ${TOLD}`,
    call: ({ api }) => visitor(api, api.keys.dev).call("GET", "/me"),
    logged: "use an app key (ak_…) here",
  },
  "forbidden, a collection that only the app writes": {
    says: "Records of a shared collection are written by the app, not by a signed-in person.",
    call: ({ ada }) => ada.call("POST", "/collections/news/records", { data: { text: "a" } }),
  },
  wrong_origin: {
    says: "This page has an address that its service does not allow: open the app at its usual address, or",
    call: async ({ api }) =>
      visitor(api, await mintAppKey(api, "production", [LIVE_ORIGIN])).call("GET", "/me", undefined, { origin: "https://evil.example" }),
    logged: "add the origin to the key",
  },
  signed_out: {
    says: "The request has no signed-in person: sign in with an emailed code.",
    call: ({ api }) => visitor(api, api.keys.app).call("GET", "/me"),
  },
  code_not_sent: {
    says: "The sign-in code was not sent, because this app cannot send mail now: retry later, or",
    async call({ api }) {
      api.mail.outcome = { kind: "failed", message: "no", retry: true, reason: "connection_refused" };
      return await visitor(api, api.keys.app).call("POST", "/auth/code", { email: "ada@example.com" });
    },
    logged: "the mail server rejected it",
  },
  "code_not_sent, because the owner stopped mail": {
    says: "The sign-in code was not sent, because this app cannot send mail now: retry later, or",
    async call({ api }) {
      const { settings } = await manage(api, "GET", "/settings");
      await manage(api, "PUT", "/settings", { version: settings.version, mail: { sends: false } });
      return await visitor(api, api.keys.app).call("POST", "/auth/code", { email: "ada@example.com" });
    },
    logged: "relay settings set mail.sends on",
  },
  code_capped: {
    says: "The limit of 5 sign-in codes an hour",
    async call({ api }) {
      const ask = () => visitor(api, api.keys.app).call("POST", "/auth/code", { email: "eve@example.com" });
      for (let n = 0; n < 5; n++) await ask();
      return await ask();
    },
  },
  code_invalid: {
    says: "The code is wrong, used, older than ten minutes or was tried too often: type the newest one, or request another.",
    call: ({ api }) => visitor(api, api.keys.app).call("POST", "/auth/session", { email: "ada@example.com", code: "000000" }),
  },
  signin_capped: {
    says: "The limit of 60 sign-ins an hour from this network address is reached: wait until resetAt.",
    async call({ api }) {
      const attempt = () => visitor(api, api.keys.app).call("POST", "/auth/session", { email: "ada@example.com", code: "000000" });
      for (let n = 0; n < 60; n++) {
        const reply = await attempt();
        if (reply.json.code === "signin_capped") return reply;
      }
      return await attempt();
    },
  },
  signup_capped: {
    says: "The app has reached its limit of new people for today: sign in after resetAt.",
    async call({ api }) {
      const stranger = visitor(api, api.keys.app);
      await stranger.call("POST", "/auth/code", { email: "eve@example.com" });
      return await stranger.call("POST", "/auth/session", { email: "eve@example.com", code: mailedCode(api, "eve@example.com") });
    },
    logged: "1 people signed up here today, which is the limit",
  },
  person_suspended: {
    says: "This person is suspended and cannot sign in: ask the app's owner.",
    async call({ api, ada }) {
      await manage(api, "PATCH", `/persons/${ada.id}`, { status: "suspended" });
      const stranger = visitor(api, api.keys.app);
      await stranger.call("POST", "/auth/code", { email: "ada@example.com" });
      return await stranger.call("POST", "/auth/session", { email: "ada@example.com", code: mailedCode(api, "ada@example.com") });
    },
  },
  invalid_input: {
    says: "`email` is not an email address",
    call: ({ api }) => visitor(api, api.keys.app).call("POST", "/auth/code", { email: "ada" }),
  },
  invalid_json: { says: "The request body is not JSON", call: ({ ada }) => ada.call("POST", "/payments/buy", "{") },
  body_too_large: {
    says: "The request body is over the limit",
    call: ({ ada }) => ada.call("POST", "/payments/buy", { product: "x".repeat(2 ** 20) }),
  },
  "not_found, a product": {
    says: `No product of this name exists in this app: go back, or ${TOLD}`,
    call: ({ ada }) => ada.call("POST", "/payments/buy", { product: "none" }),
    logged: "relay catalog list product",
  },
  "not_found, a plan": {
    says: `No plan of this name exists in this app: go back, or ${TOLD}`,
    call: ({ ada }) => ada.call("POST", "/subscriptions/checkout", { plan: "none" }),
    logged: "relay catalog list plan",
  },
  "not_found, a collection": {
    says: "No collection with this name exists in this app: go back, or contact the owner of this app.",
    call: ({ ada }) => ada.call("GET", "/collections/none/records"),
    logged: "No collection with this name exists in this environment: ",
  },
  "not_found, a record": {
    says: "No record with this id exists in this collection for you.",
    call: ({ ada }) => ada.call("GET", "/collections/diary/records/rec_none"),
  },
  "product_not_sellable, a product without a seller": {
    says: `This cannot be bought on this page: buy it where the app shows, or ${TOLD}`,
    async call({ api, ada }) {
      await manage(api, "PUT", "/products/book", {});
      return await ada.call("POST", "/payments/buy", { product: "book" });
    },
    logged: "give it a payment link or a relay",
  },
  plan_not_sellable: {
    says: `This cannot be bought on this page: buy it where the app shows, or ${TOLD}`,
    async call({ api, ada }) {
      await manage(api, "PUT", "/plans/pro", {});
      return await ada.call("POST", "/subscriptions/checkout", { plan: "pro" });
    },
    logged: "give it a payment link or a relay",
  },
  data_invalid: { says: "`data.text`", call: ({ ada }) => ada.call("POST", "/collections/diary/records", { data: { text: 4 } }) },
  writes_capped: {
    says: "The limit of 30 writes of one person within a minute is reached: write again after resetAt.",
    async call({ ada }) {
      const write = () => ada.call("POST", "/collections/diary/records", { data: { text: "a" } });
      for (let n = 0; n < 30; n++) await write();
      return await write();
    },
  },
  "storage_capped, by the person": {
    says: "One person's records can take at most 1 MB",
    async call({ ada }) {
      for (let n = 0; n < 20; n++) {
        const reply = await ada.call("POST", "/collections/diary/records", big("a"));
        if (reply.status !== 201) return reply;
      }
      throw new Error("It never was full.");
    },
  },
  "storage_capped, by the app": {
    says: `This app has no space left, so nothing was saved: retry later, or ${TOLD}`,
    async call({ api, ada }) {
      for (let n = 0; n < 20; n++) await api.call(`${api.E}/collections/news/records`, { method: "POST", key: api.keys.dev, body: big("b") });
      return await ada.call("POST", "/collections/diary/records", big("a"));
    },
    logged: "raise the limit in the server's configuration",
  },
  not_recorded: {
    says: "This app cannot save data now, so nothing was saved: retry in a moment.",
    async call({ api, ada }) {
      const replies: Reply[] = [];
      await api.direct.whileUnwritable(async () => void replies.push(await ada.call("POST", "/collections/diary/records", { data: { text: "a" } })));
      const [reply] = replies;
      if (reply === undefined) throw new Error("It was not asked.");
      return reply;
    },
  },
};

async function startApp(): Promise<ApiServer> {
  const api = await startApi({ mode: "local", limits: LIMITS });
  const text = { text: { type: "text" } };
  for (const [name, kind] of [
    ["news", "shared"],
    ["diary", "private"],
  ])
    await manage(api, "POST", "/collections", { name, kind, fields: text });
  return api;
}

test.each(Object.entries(ROWS))("%s says what happened and what a visitor can do", async (name, { says, call, logged }) => {
  await using api = await startApp();
  const ada = await signIn(api, "ada@example.com");
  const before = api.logged.length;
  const reply = await call({ api, ada });
  const [code] = name.split(",");
  expect([reply.json.code, reply.json.message]).toEqual([code, expect.stringContaining(says)]);
  expect(reply.json.message).not.toMatch(OWNERS);
  expect(reply.json.message).toMatch(/^[A-Z`].*\.$/);
  const lines = api.logged.slice(before).filter((line) => line.includes("A request of an app's user was refused."));
  if (logged === undefined) expect(lines).toEqual([]);
  else expect(lines).toEqual([expect.stringContaining(logged)]);
});

test("an internal error of a client route shows none of the server's words", async () => {
  await using api = await startApp();
  const ada = await signIn(api, "ada@example.com");
  await api.direct.breakWrites("INSERT", "record", "no");
  const reply = await ada.call("POST", "/collections/diary/records", { data: { text: "a" } });
  expect([reply.status, reply.json]).toEqual([
    500,
    { code: "internal", message: `An error happened in the app's service, not in your input: retry, or ${TOLD}` },
  ]);
});

test("an owner's key gets the owner's words for the same errors", async () => {
  await using api = await startApp();
  const reply = await api.call(`${api.E}/products/none`, { key: api.keys.dev });
  expect([reply.json.code, reply.json.message]).toEqual(["not_found", expect.stringContaining("relay catalog list product")]);
});
