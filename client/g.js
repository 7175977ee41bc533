/**
 * g, the client library of the relay service, for web pages and apps. It is one ES module without dependencies. The service serves it at
 * /client/g.js, and it is also published as a package. It stores the session of the signed-in person and calls the routes below /client. The
 * service decides what the person may do. Types: types.d.ts.
 *
 *   import { createClient } from "https://relay.example.com/client/g.js";
 *   const g = createClient({ url: "https://relay.example.com", key: "ak_live_…" });
 *   await g.auth.requestCode("ada@example.com");
 *   await g.auth.signIn("ada@example.com", "123456");
 *   const { granted } = await g.access.check("pro");
 */

/** @import { Client, ClientOptions, Problem, Records, SessionStorage } from "./types.d.ts" */

const TIMEOUT_MS = 30_000;

export class RelayError extends Error {
  /**
   * @param {number} status
   * @param {{ code: string, message: string, problems?: Problem[], resetAt?: string, url?: string }} body
   */
  constructor(status, { code, message, problems = [], resetAt, url }) {
    super(message);
    this.name = "RelayError";
    this.status = status;
    this.code = code;
    this.problems = problems;
    this.resetAt = resetAt === undefined ? null : new Date(resetAt);
    this.url = url ?? null;
  }
}

/** @type {(options: ClientOptions) => Client} */
export function createClient(options) {
  const call = makeCall(options);
  return {
    auth: {
      requestCode: (email) => call("POST", "/auth/code", { email }),
      async signIn(email, code) {
        const { token, person } = await call("POST", "/auth/session", { email, code });
        await call.session.keep(token);
        return person;
      },
      token: () => call.session.token(),
      isSignedIn: async () => (await call.session.token()) !== null,
      signOut: () => endSessions("/auth/session"),
      signOutEverywhere: () => endSessions("/auth/sessions"),
    },
    me: async () => {
      if ((await call.session.token()) === null) return null;
      return await call("GET", "/me").catch(nullWhenSignedOut);
    },
    records: (collection) => makeRecords(call, `/collections/${encodeURIComponent(collection)}/records`),
    access: { check: (entitlement) => call("GET", `/access/${encodeURIComponent(entitlement)}`) },
    credits: { balance: async () => (await call("GET", "/credits")).balance },
    payments: { buy: (product) => call("POST", "/payments/buy", { product }) },
    subscriptions: { checkout: (plan) => call("POST", "/subscriptions/checkout", { plan }) },
  };

  /** @param {string} path */
  async function endSessions(path) {
    if ((await call.session.token()) === null) return;
    await call("DELETE", path).catch(nullWhenSignedOut);
    await call.session.forget();
  }
}

/**
 * @param {Call} call
 * @param {string} path
 * @returns {Records<any>}
 */
function makeRecords(call, path) {
  /** @param {string} id */
  const one = (id) => `${path}/${encodeURIComponent(id)}`;
  return {
    list({ limit, cursor } = {}) {
      const query = new URLSearchParams();
      if (limit !== undefined) query.set("limit", String(limit));
      if (cursor !== undefined && cursor !== null) query.set("cursor", cursor);
      return call("GET", `${path}?${query}`);
    },
    get: async (id) => (await call("GET", one(id))).record,
    create: async (data, { to } = {}) => (await call("POST", path, { data, to })).record,
    update: async (id, data) => (await call("PUT", one(id), { data })).record,
    delete: (id) => call("DELETE", one(id)),
  };
}

/** @typedef {((method: string, path: string, body?: object) => Promise<any>) & { session: Session }} Call */
/** @typedef {{ token(): Promise<string | null>, keep(token: string): Promise<void>, forget(): Promise<void> }} Session */

/**
 * Returns the function that sends one request with the app key and the session, if any. It throws every error response as a RelayError.
 * @param {ClientOptions} options
 * @returns {Call}
 */
function makeCall({ url, key, storage = defaultStorage(), fetch = (request) => globalThis.fetch(request) }) {
  const base = `${url.replace(/\/+$/, "")}/client`;
  const session = makeSession(storage, `g:${key}@${base}`);
  /** @type {(method: string, path: string, body?: object) => Promise<any>} */
  async function call(method, path, body) {
    const token = await session.token();
    const headers = new Headers({ "x-app-key": key });
    if (token !== null) headers.set("authorization", `Bearer ${token}`);
    if (body !== undefined) headers.set("content-type", "application/json");
    const request = new Request(base + path, {
      method,
      headers,
      credentials: "omit",
      signal: AbortSignal.timeout(TIMEOUT_MS),
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const response = await fetch(request).catch((/** @type {unknown} */ error) => {
      throw new RelayError(0, {
        code: "unreachable",
        message: `The service at ${url} could not be reached from this page: ${error instanceof Error ? error.message : error}.`,
      });
    });
    const answer = await readAnswer(response);
    if (response.ok) return answer;
    const refusal = new RelayError(response.status, answer);
    // Another sign-in may have stored a newer session in the meantime.
    if (refusal.code === "signed_out" && token !== null && (await session.token()) === token)
      await session.forget();
    throw refusal;
  }
  return Object.assign(call, { session });
}

/** @param {Response} response */
async function readAnswer(response) {
  if (response.status === 204) return undefined;
  const text = await response.text().catch(() => "");
  try {
    const answer = JSON.parse(text);
    if (response.ok || typeof answer?.code === "string") return answer;
  } catch {}
  throw new RelayError(response.ok ? 0 : response.status, {
    code: "bad_answer",
    message: `What answered with status ${response.status} is not the relay service: check the url.`,
  });
}

/**
 * @param {SessionStorage} storage
 * @param {string} name
 * @returns {Session}
 */
function makeSession(storage, name) {
  return {
    token: async () => (await storage.getItem(name)) ?? null,
    keep: async (token) => void (await storage.setItem(name, token)),
    forget: async () => void (await storage.removeItem(name)),
  };
}

/**
 * Returns localStorage, or storage in memory if the browser has none or forbids it.
 * @returns {SessionStorage}
 */
function defaultStorage() {
  try {
    // Node 25 has a localStorage without functions, unless it was started with a file for it.
    const { localStorage } = globalThis;
    if (typeof localStorage?.getItem === "function") return localStorage;
  } catch {}
  /** @type {Map<string, string>} */
  const memory = new Map();
  return {
    getItem: (name) => memory.get(name) ?? null,
    setItem: (name, value) => void memory.set(name, value),
    removeItem: (name) => void memory.delete(name),
  };
}

/** @param {unknown} error */
function nullWhenSignedOut(error) {
  if (error instanceof RelayError && error.code === "signed_out") return null;
  throw error;
}
