/** A complete service for tests of the HTTP API: an app with two environments, another app, a key of each kind and a signed-in owner. */

import type { ServiceConfig } from "../../src/base/config.ts";
import { type Json, parseJson } from "../../src/base/json.ts";
import { mintApiKey } from "../../src/platform/account/api-key.ts";
import { createApp } from "../../src/platform/account/app.ts";
import type { Environment, EnvironmentName } from "../../src/platform/account/environment.ts";
import { createOwner } from "../../src/platform/account/owner.ts";
import { createSession } from "../../src/platform/account/session.ts";
import type { MailOutcome, OutgoingMail } from "../../src/platform/mail/mailer.ts";
import type { ServicePorts } from "../../src/service.ts";
import type { Store } from "../../src/store/port.ts";
import { checkAnswer } from "./api-answer.ts";
import { readWhole } from "./change-stream.ts";
import { TABLES } from "./chosen-store.ts";
import { type BareService, startBareService, untilHeld } from "./running-service.ts";
import { START_MS } from "./virtual-clock.ts";

export interface Call {
  method?: string;
  /** A value is sent as JSON text; a string is sent unchanged. */
  body?: unknown;
  /** Bytes that are sent unchanged. */
  bytes?: Uint8Array<ArrayBuffer>;
  /** A bearer token. */
  key?: string;
  /** Sends the owner's session. Writes also send the dashboard's Origin unless `headers.origin` sets another one. */
  session?: boolean;
  headers?: Record<string, string>;
}

export interface Reply {
  status: number;
  headers: Headers;
  text: string;
  /** The response's JSON with bigints, or null when it is not JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: tests read answers by their fields
  json: any;
}

export interface ApiServer extends BareService {
  readonly base: string;
  readonly store: Store;
  /** Counts the writes that gave each of these something to do. */
  woken: { runner: number; relays: number; capture: number };
  environments: Record<"development" | "production", Environment>;
  other: Environment;
  keys: { dev: string; live: string; app: string; other: string };
  /** Emails sent so far, and the mail server's response to the next ones. */
  mail: { sent: OutgoingMail[]; outcome: MailOutcome };
  ownerId: string;
  readonly cookie: string;
  /** Path of the development environment (`{E}` in the documentation). */
  E: string;
  call(path: string, call?: Call): Promise<Reply>;
  /** Reads every table's rows as text, to show what a request changed and that nothing else changed. */
  snapshot(): Promise<Snapshot>;
  /** Makes the authentication of each session recent, as a confirmation does. */
  confirmSessions(): Promise<void>;
}

/** Starts the service. Dispose it to stop it. */
export async function startApi(config: Partial<ServiceConfig> = {}, ports: ServicePorts = {}): Promise<ApiServer> {
  const mail: ApiServer["mail"] = { sent: [], outcome: { kind: "sent" } };
  const mailer = {
    async send(one: OutgoingMail) {
      mail.sent.push(one);
      return mail.outcome;
    },
  };
  const bare = await startBareService({ config: { baseUrl: null, ...config }, ports: { mailer, resolveTxt: async () => [], ...ports } });
  const seeded = await seed(bare.service.store);
  await untilHeld();
  const woken = { runner: 0, relays: 0, capture: 0 };
  bare.service.store.listen((touched) => {
    if (touched.has("event")) woken.runner++;
    if (touched.has("relay") || touched.has("environment")) woken.relays++;
    if (touched.has("record_change")) woken.capture++;
  });
  const cookie = (): string => `${config.mode === "local" ? `relay_session_${bare.service.port}` : "relay_session"}=${seeded.token}`;
  return {
    ...seeded,
    ...bare,
    get base() {
      return bare.service.url;
    },
    get service() {
      return bare.service;
    },
    get store() {
      return bare.service.store;
    },
    woken,
    mail,
    get cookie() {
      return cookie();
    },
    E: "/api/apps/shop/development",
    call: (path, call = {}) => send(bare.service.url, cookie(), path, call),
    snapshot: () => readSnapshot(bare.service.store),
    async confirmSessions() {
      await bare.service.store.write("dashboard", (tx) => tx.run("UPDATE session SET authenticated_at = ?1", bare.clock.now()));
    },
  };
}

async function seed(store: Store) {
  return await store.write("dashboard", async (tx) => {
    const nowMs = START_MS;
    const both: EnvironmentName[] = ["development", "production"];
    const shop = await createApp(tx, { id: "shop", name: "Shop", environments: both, nowMs });
    const rival = await createApp(tx, { id: "rival", name: "Rival", environments: both, nowMs });
    const mint = async (environment: Environment, kind: "secret" | "app") =>
      (await mintApiKey(tx, { environment, kind, name: "test", origins: [], nowMs })).token;
    const [development, production] = shop.environments;
    const other = rival.environments[0];
    if (development === undefined || production === undefined || other === undefined) throw new Error("no environment");
    const owner = await createOwner(tx, { email: "ann@example.com", passwordHash: null, nowMs });
    const { token } = await createSession(tx, owner.id, nowMs);
    const keys = {
      dev: await mint(development, "secret"),
      live: await mint(production, "secret"),
      app: await mint(development, "app"),
      other: await mint(other, "secret"),
    };
    // A key records its first use of a minute in the background. A key that was just used does not change during the test.
    await tx.run("UPDATE api_key SET last_used_at = ?1", nowMs);
    return { environments: { development, production }, other, keys, ownerId: owner.id, token };
  });
}

async function send(base: string, cookie: string, path: string, call: Call): Promise<Reply> {
  const method = call.method ?? "GET";
  const headers = new Headers();
  if (call.key !== undefined) headers.set("authorization", `Bearer ${call.key}`);
  if (call.session === true) {
    headers.set("cookie", cookie);
    if (method !== "GET") headers.set("origin", base);
  }
  for (const [name, value] of Object.entries(call.headers ?? {})) headers.set(name, value);
  if (call.body !== undefined) headers.set("content-type", "application/json");
  const written = typeof call.body === "string" ? call.body : JSON.stringify(call.body);
  const body = call.bytes ?? written ?? null;
  const response = await fetch(base + path, { method, headers, body, redirect: "manual" });
  const text = await readWhole(response);
  const isJson = response.headers.get("content-type")?.startsWith("application/json") ?? false;
  const json = isJson && text !== "" ? (parseJson(text) as Json) : null;
  checkAnswer(method, new URL(base + path).pathname, response.status, json);
  return { status: response.status, headers: response.headers, text, json };
}

/** Internal tables of the databases and the nodes, and tables that SQL triggers fill on any write. */
const OTHERS = /^(sqlite_|node|writer_|capture|record_|stored_|ready_block)|change/;

/** Maps a table's name to its rows, each as text. */
type Snapshot = Map<string, string[]>;

async function readSnapshot(store: Store): Promise<Snapshot> {
  return await store.read(async (tx) => {
    const tables = await tx.all<{ name: string }>(TABLES);
    const all: Snapshot = new Map();
    for (const { name } of tables.filter((table) => !OTHERS.test(table.name))) {
      all.set(name, (await tx.all(`SELECT * FROM "${name}"`)).map((row) => Bun.inspect(row)).sort());
    }
    return all;
  });
}

/** Counts the rows that each changed table gained or lost. A table with changed rows of the same number has 0. */
export function changesBetween(before: Snapshot, after: Snapshot): Record<string, number> {
  const changes: Record<string, number> = {};
  for (const [name, rows] of after) {
    const earlier = before.get(name) ?? [];
    if (rows.join("\n") !== earlier.join("\n")) changes[name] = rows.length - earlier.length;
  }
  return changes;
}
