/**
 * The API of one environment, as commands call it. On a data directory the routes run in process (local-api.ts), elsewhere a server answers over
 * HTTP (remote.ts), so each operation has one implementation.
 */
import { isJsonObject, type Json, type JsonObject, parseJson, writeJson } from "../../../base/json.ts";
import type { Page } from "../../../base/page.ts";
import { CommandFailure } from "../command.ts";
import { readStrictly, rejectMisread } from "./read-answer.ts";

const MAX_PAGE = 200;
const JSON_TYPE = "application/json";
const DECODER = new TextDecoder();

type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

/** A request with its complete path, query included. */
export interface Sent {
  method: string;
  path: string;
  body: string | Uint8Array | null;
  mediaType: string;
}

export interface Answered {
  status: number;
  headers: Headers;
  bytes: Uint8Array;
}

export type Query = Readonly<Record<string, string | number | null | undefined>>;

export abstract class Api {
  readonly app: string;
  readonly environment: string;
  /** The path prefix `/api/apps/{appId}/{environment}`. Other paths are relative to it. */
  readonly place: string;
  /** True if the routes run in this process, on a data directory. */
  abstract readonly isLocal: boolean;
  /** The server's origin or the data directory, which errors name. */
  abstract readonly url: string;
  /** The public origin of the service, where its dashboard is. */
  abstract readonly origin: string;

  constructor(app: string, environment: string) {
    this.app = app;
    this.environment = environment;
    this.place = `/api/apps/${encodeURIComponent(app)}/${encodeURIComponent(environment)}`;
  }

  /** Sends one request. Throws the route's refusal. */
  protected abstract send(sent: Sent): Promise<Answered>;

  /** Sends one request and returns its answer, typed by the route's schema. It sends bytes unchanged. Throws the route's refusal. */
  async request<Answer>(
    method: Method,
    path: string,
    body?: unknown,
    mediaType = JSON_TYPE,
  ): Promise<Answer> {
    const answered = await this.#call(method, path, body, mediaType);
    return readAnswer(answered, this.url) as Answer;
  }

  /** Sends one request whose answer has no body. */
  async command(method: "POST" | "DELETE", path: string, body?: unknown): Promise<void> {
    const { status } = await this.#call(method, path, body, JSON_TYPE);
    if (status !== 204) throw rejectMisread(this.url, "has an unexpected form");
  }

  /** Sends a GET and returns the bytes of the answer with its headers. */
  async download(path: string): Promise<Answered> {
    return await this.#call("GET", path, undefined, JSON_TYPE);
  }

  /** Reads one page of a list. */
  async page<Item>(path: string, query: Query, limit: number, cursor: string | null): Promise<Page<Item>> {
    const asked = writeQuery({ ...query, limit: Math.min(MAX_PAGE, limit), cursor });
    const { items, next } = await this.request<Page<Item>>("GET", `${path}${asked}`);
    const isPage = Array.isArray(items) && items.every((item) => isJsonObject(item as Json));
    if (!isPage || (next !== null && (typeof next !== "string" || next === cursor)))
      throw rejectMisread(this.url, "is not a page of a list");
    return { items: items.map(withoutDocs), next };
  }

  /** Reads the first `most` items of a list, page by page. */
  async list<Item>(
    path: string,
    query: Query = {},
    most: number = Number.POSITIVE_INFINITY,
  ): Promise<Page<Item>> {
    const items: Item[] = [];
    let cursor: string | null = null;
    do {
      const page: Page<Item> = await this.page(path, query, most - items.length, cursor);
      items.push(...page.items);
      cursor = page.next;
    } while (cursor !== null && items.length < most);
    return { items, next: cursor };
  }

  #call(method: Method, path: string, body: unknown, mediaType: string): Promise<Answered> {
    return this.send({ method, path: `${this.place}${path}`, body: writeBody(method, body), mediaType });
  }
}

/** Returns the body of a request. A method other than GET always has one, which is `{}` without fields. */
function writeBody(method: Method, body: unknown): string | Uint8Array | null {
  if (body instanceof Uint8Array) return body;
  if (method === "GET") return null;
  return writeJson(body ?? {});
}

/** Reads the JSON of a successful answer. Fails with `service_not_running` for a body that no relay server sends. */
export function readAnswer({ status, bytes }: Answered, url: string): JsonObject {
  const text = DECODER.decode(bytes);
  const answer = readObject(text);
  if (status === 204) return answer;
  // An empty object in any other text shows that the answer is incomplete.
  const isComplete = text.trim() === "{}" || Object.keys(answer).length > 0;
  if (!isComplete) throw rejectOtherServer(url, status);
  return readStrictly(answer, url);
}

/** Returns the query string with its question mark, or an empty string if no parameter has a value. */
export function writeQuery(query: Query): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    if (value !== null && value !== undefined) search.set(name, String(value));
  return search.size === 0 ? "" : `?${search}`;
}

/** Removes the docs link that a server adds for each code. A command points to relay help instead. */
function withoutDocs<Item>(item: Item): Item {
  const { docs: _, ...rest } = item as Item & { docs?: string };
  return rest as Item;
}

export function rejectOtherServer(url: string, status: number): CommandFailure {
  return new CommandFailure(
    "service_not_running",
    `The program that answers at ${url} (${status}) is not a relay server: check --url.`,
  );
}

/** Returns the JSON object in a text, or an empty object for any other text. */
export function readObject(text: string): JsonObject {
  try {
    const value = parseJson(text);
    return isJsonObject(value) ? value : {};
  } catch {
    return {};
  }
}
