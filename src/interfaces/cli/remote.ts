/**
 * A server that a command speaks to over HTTP, with a key of one environment. Which server that is, target.ts says. What it refuses is refused
 * here in its words; a key goes over plain http to this machine alone, and nowhere that an answer points to.
 */
import { isJsonObject, type Json, type JsonObject, parseJson, writeJson } from "../../base/json.ts";
import type { Page } from "../../base/page.ts";
import { type Problem, Refusal } from "../../base/refusal.ts";
import { plain } from "../../base/text.ts";
import { errorCode } from "../../platform/outbound/connect.ts";
import { CommandFailure, UsageError } from "./command.ts";
import { noteAnswer, readStrictly, refuseMisread } from "./read-answer.ts";
import { toRefusalCode } from "./refusal-text.ts";

const TIMEOUT_MS = 60_000;
const MAX_PAGE = 200;
const JSON_TYPE = "application/json";
const DECODER = new TextDecoder();

export interface Remote {
  /** Its origin, without a trailing slash. */
  url: string;
  /** `/api/apps/{appId}/{environment}` of the key. */
  place: string;
  app: string;
  environment: string;
  key: string;
  /** The profile that names it; null: it was named by its address, or runs here. */
  profile: string | null;
  /** How long it is waited for; undefined: as long as usual. */
  patienceMs?: number | undefined;
}

type Asked = Pick<Remote, "url" | "profile" | "patienceMs"> & { key: string | null };

/** What `/api/key` says of the key that asks. */
interface KeyAnswer {
  app: string;
  environment: string;
  owner: string | null;
  expiresAt: string | null;
}

const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/;

/**
 * As `fetch`, but a server on this machine is asked itself: a proxy that the environment names (HTTP_PROXY) is another machine, which would read
 * the key, know no way back, and whose own answer would pass for the server's.
 */
export function fetchFrom(url: string, init: RequestInit): Promise<Response> {
  const isHere = LOOPBACK.test(URL.parse(url)?.hostname ?? "");
  return fetch(url, { ...init, redirect: "manual", ...(isHere ? { proxy: false } : {}) });
}

/** The origin of a server as it is written, and where. Throws UsageError for what is none, and for http to another machine. */
export function readServerUrl(text: string, where = "--url"): string {
  const url = text.replace(/\/+$/, "");
  const parsed = URL.parse(url);
  if (parsed === null || !/^https?:$/.test(parsed.protocol) || parsed.origin !== url.toLowerCase())
    throw new UsageError(
      `${where} is ${JSON.stringify(text)}: write the server's origin, such as https://relay.example.com.`,
    );
  if (parsed.protocol === "http:" && !LOOPBACK.test(parsed.hostname))
    throw new UsageError(
      `${where} is an http address (${parsed.origin}), over which everybody on the way reads the key: use https (http is for this machine alone).`,
    );
  return parsed.origin;
}

/** The server at this address, and the environment of the key. */
export async function findServer(
  text: string,
  key: string,
  where: string,
  patienceMs?: number,
): Promise<Remote> {
  const url = readServerUrl(text, where);
  if (key === "")
    throw new CommandFailure(
      "unauthenticated",
      `No key for ${url} is given: run relay login --url ${url} and name its profile with --profile, or set RELAY_KEY to a secret key of the environment (relay keys create makes one on the server).`,
    );
  const bare = { url, key, profile: null, patienceMs };
  const { app, environment } = await askKey(bare).catch((error) => {
    throw sayWhoseKey(error, url);
  });
  return { ...bare, app, environment, place: placeOf(app, environment) };
}

/** Whose key it is. Fails with `service_not_running` where what answers is no relay server. */
export async function askKey(remote: Asked): Promise<KeyAnswer> {
  const known = await askRemote<Partial<KeyAnswer>>(remote, "GET", "/api/key");
  const { app, environment, owner, expiresAt } = { ...known };
  if (typeof app !== "string" || typeof environment !== "string") throw noServer(remote.url, 200);
  return { app, environment, owner: owner ?? null, expiresAt: expiresAt ?? null };
}

/** What the server says is said to a program: to a person it is said where the key came from, and how they get another. */
function sayWhoseKey(error: unknown, url: string): unknown {
  if (!(error instanceof Refusal) || error.code !== "unauthenticated") return error;
  return new Refusal(
    error.code,
    `${error.message} The key that was given, in RELAY_KEY or on standard input, is none that ${url} knows, or it ended: give another, or run relay login --url ${url}.`,
  );
}

export function placeOf(app: string, environment: string): string {
  return `/api/apps/${encodeURIComponent(app)}/${encodeURIComponent(environment)}`;
}

type Called = { url: string; key: string | null; patienceMs?: number | undefined };

/** Calls it. Fails with `service_not_running` where nothing answers. A redirect is an answer: the key goes nowhere else. */
export async function callRemote(
  remote: Called,
  method: string,
  path: string,
  sent: string | Uint8Array | null = null,
  mediaType = JSON_TYPE,
): Promise<{ status: number; text: string }> {
  const { status, bytes } = await exchange(remote, method, path, sent, mediaType);
  return { status, text: DECODER.decode(bytes) };
}

async function exchange(
  { url, key, patienceMs = TIMEOUT_MS }: Called,
  method: string,
  path: string,
  sent: string | Uint8Array | null = null,
  mediaType = JSON_TYPE,
): Promise<{ status: number; headers: Headers; bytes: Uint8Array }> {
  try {
    const headers = {
      ...(key === null ? {} : { authorization: `Bearer ${key}` }),
      "content-type": mediaType,
    };
    const signal = AbortSignal.timeout(patienceMs);
    const body = sent === null ? {} : { body: sent as BodyInit };
    const answer = await fetchFrom(`${url}${path}`, { method, headers, signal, ...body });
    noteAnswer(url);
    return { status: answer.status, headers: answer.headers, bytes: await answer.bytes() };
  } catch (error) {
    const code = errorCode(error);
    const Failure = UNSENT.test(code) || NOT_BELIEVED.test(code) ? NothingSent : CommandFailure;
    throw new Failure("service_not_running", sayUnreached(url, code));
  }
}

/** No connection came about, so the server knows nothing of the call. */
export class NothingSent extends CommandFailure {}

/** What no connection is told by; a code that is not here may be of one that broke. */
const UNSENT = /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH)$/;

/** What a certificate that is not believed is told by; every other code is of a connection. */
const NOT_BELIEVED = /CERT|SIGNATURE|ALTNAME/;

function sayUnreached(url: string, code: string): string {
  return NOT_BELIEVED.test(code)
    ? `The certificate of ${url} is not believed on this machine (${code}), so nothing was sent there: renew it, name the host that it is for, or, where an authority of your own signed it, give that authority's certificate with NODE_EXTRA_CA_CERTS=/path/to/authority.pem.`
    : `Nothing answered at ${url} (${code}): start the service, or name the right address.`;
}

/** One call and its answer, as that route's schema says; bytes are sent as they are, under `mediaType`. Refuses as the server does. */
export async function askRemote<Answer>(
  remote: Asked,
  method: string,
  path: string,
  sent?: unknown,
  mediaType?: string,
): Promise<Answer> {
  const raw = sent instanceof Uint8Array;
  const body = sent === undefined ? null : raw ? sent : writeJson(sent);
  const { status, text } = await callRemote(remote, method, path, body, mediaType);
  const answer = readObject(text);
  if (status === 204) return answer as Answer;
  // An answer that was cut on the way is none.
  const isWhole = text.trim() === "{}" || Object.keys(answer).length > 0;
  if (status >= 200 && status < 300 && isWhole) return readStrictly(answer, remote.url) as Answer;
  throw readRefusal(remote, status, answer);
}

/** What a GET below `{E}` hands out as it is, with its headers. Refuses as the server does. */
export async function fetchPlace(
  remote: Remote,
  path: string,
): Promise<{ headers: Headers; bytes: Uint8Array }> {
  const { status, headers, bytes } = await exchange(remote, "GET", `${remote.place}${path}`);
  if (status === 200) return { headers, bytes };
  throw readRefusal(remote, status, readObject(DECODER.decode(bytes)));
}

function readRefusal(remote: Asked, status: number, answer: JsonObject): Error {
  const { code, message, problems, resetAt, docs } = answer;
  if (typeof code !== "string" || typeof message !== "string") return noServer(remote.url, status);
  const resetAtMs = typeof resetAt === "string" ? Date.parse(resetAt) : Number.NaN;
  const again =
    code === "unauthenticated" && remote.profile !== null
      ? ` Sign in again: relay login --profile ${remote.profile}.`
      : "";
  return new Refusal(toRefusalCode(code), `${plain(message)}${again}`, {
    ...(Array.isArray(problems) ? { problems: problems.flatMap(readProblem) } : {}),
    ...(Number.isNaN(resetAtMs) ? {} : { resetAtMs }),
    ...(typeof docs === "string" && /^https?:/.test(docs) ? { details: { docs: plain(docs) } } : {}),
  });
}

function readProblem(told: Json): Problem[] {
  if (!isJsonObject(told) || typeof told.field !== "string" || typeof told.message !== "string") return [];
  return [{ field: told.field, message: told.message }];
}

/** A call below `{E}`. */
export function askPlace<Answer>(
  remote: Remote,
  method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE",
  path: string,
  sent?: unknown,
): Promise<Answer> {
  return askRemote(remote, method, `${remote.place}${path}`, sent ?? (method === "GET" ? undefined : {}));
}

/** A call below `{E}` that is answered with nothing. */
export async function tellPlace(
  remote: Remote,
  method: "POST" | "DELETE",
  path: string,
  sent?: unknown,
): Promise<void> {
  const { status, text } = await callRemote(remote, method, `${remote.place}${path}`, writeJson(sent ?? {}));
  if (status === 204) return;
  if (status >= 200 && status < 300) throw refuseMisread(remote.url, "is not what this command reads");
  throw readRefusal(remote, status, readObject(text));
}

/** A POST below `{E}`, its answer as that route's schema says. Refuses as the server does. */
export function postRemote<Answer>(remote: Remote, path: string, sent: unknown): Promise<Answer> {
  return askPlace(remote, "POST", path, sent);
}

/** A call of a route that is no environment's, with the key or without one. */
export function askServer<Answer>(
  remote: Asked,
  method: "GET" | "POST" | "DELETE",
  path: string,
  sent?: unknown,
): Promise<Answer> {
  return askRemote(remote, method, path, sent);
}

export type Query = Readonly<Record<string, string | number | null | undefined>>;

/** The query of what is said, with its question mark. */
export function writeQuery(query: Query): string {
  const said = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    if (value !== null && value !== undefined) said.set(name, String(value));
  return said.size === 0 ? "" : `?${said}`;
}

/** One page of a list below `{E}`. */
export async function pageRemote<Item>(
  remote: Remote,
  path: string,
  query: Query,
  limit: number,
  cursor: string | null,
): Promise<Page<Item>> {
  const asked = writeQuery({ ...query, limit: Math.min(MAX_PAGE, limit), cursor });
  const { items, next } = await askPlace<Page<Item>>(remote, "GET", `${path}${asked}`);
  const isPage = Array.isArray(items) && items.every((item) => isJsonObject(item as Json));
  if (!isPage || (next !== null && (typeof next !== "string" || next === cursor)))
    throw refuseMisread(remote.url, "is no page of a list");
  return { items: items.map(withoutDocs), next };
}

/** The first `most` items of a list below `{E}`, page by page. */
export async function listRemote<Item>(
  remote: Remote,
  path: string,
  query: Query = {},
  most: number = Number.POSITIVE_INFINITY,
): Promise<Page<Item>> {
  const items: Item[] = [];
  let cursor: string | null = null;
  do {
    const page: Page<Item> = await pageRemote(remote, path, query, most - items.length, cursor);
    items.push(...page.items);
    cursor = page.next;
  } while (cursor !== null && items.length < most);
  return { items, next: cursor };
}

/** A server tells the page of each code too; the terminal has relay help for it. */
function withoutDocs<Item>(item: Item): Item {
  const { docs: _, ...rest } = item as Item & { docs?: string };
  return rest as Item;
}

function noServer(url: string, status: number): CommandFailure {
  return new CommandFailure(
    "service_not_running",
    `What answered at ${url} (${status}) is no relay server: check --url.`,
  );
}

/** The object that a text holds; an empty one for what is none. */
export function readObject(text: string): JsonObject {
  try {
    const value = parseJson(text);
    return isJsonObject(value) ? value : {};
  } catch {
    return {};
  }
}
