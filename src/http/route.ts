/**
 * What a route is: one object with its method, path, sentence, schemas and work. The same object is served, listed in the OpenAPI
 * document and walked by the tests. By who may call they are an environment's (key or session), an owner's, open ones, and the client
 * library's (an app key, with or without a signed-in person; see client-route.ts).
 */
import type { Static, TObject, TSchema } from "typebox";
import type { Visit } from "./admission.ts";
import type { HttpRooms } from "./rooms.ts";

type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

/** The names in a path: `/persons/:id/access/:entitlement` holds `id` and `entitlement`. */
type PathNames<Path extends string> = Path extends `${string}:${infer Name}/${infer Rest}`
  ? Name | PathNames<Rest>
  : Path extends `${string}:${infer Name}`
    ? Name
    : never;

/** What a route's work is handed. */
interface Call<Path extends string, Query extends TObject, Body extends TSchema> {
  rooms: HttpRooms;
  request: Request;
  params: Readonly<Record<PathNames<Path>, string>>;
  query: Static<Query>;
  body: Static<Body>;
  /** The body of a route that takes raw bytes; empty on every other. */
  bytes: Uint8Array;
  /** The caller's address, for caps. */
  source: string;
  nowMs: number;
  /** Further headers of the answer. */
  headers: Headers;
}

interface OwnerCall {
  owner: { id: string; email: string; sessionId: string };
}

export interface RouteWords<
  Path extends string,
  Query extends TObject,
  Body extends TSchema,
  Answer extends TSchema | null,
  More,
> {
  method: Method;
  path: Path;
  /** One sentence for the OpenAPI document. */
  summary: string;
  query?: Query;
  body?: Body;
  /** The route takes raw bytes, at most so many, instead of JSON. */
  rawBytes?: number;
  /** The answer's schema; null answers 204 with no body. */
  answer: Answer;
  /** 200, or 204 without an answer, unless given. */
  status?: number;
  /** The answer's value; a Response is sent as it is (plain text). */
  handle(
    call: Call<Path, Query, Body> & More,
  ): Promise<AnswerOf<Answer> | Response> | AnswerOf<Answer> | Response;
}

type AnswerOf<Answer> = Answer extends TSchema ? Static<Answer> : undefined;

// biome-ignore lint/complexity/noBannedTypes: exactly this is an object without any field
type NoFields = TObject<{}>;

export type Who = "environment" | "owner" | "open" | "client" | "person";

/** A route with its types forgotten, as it is mounted and listed. */
export interface Route {
  who: Who;
  method: Method;
  /** Whole, with `:name` segments. */
  path: string;
  summary: string;
  query: TObject | null;
  body: TSchema | null;
  rawBytes: number | null;
  answer: TSchema | null;
  status: number;
  handle(call: Call<string, TObject, TSchema> & { visit?: Visit } & Partial<OwnerCall>): unknown;
}

const ENVIRONMENT_PREFIX = "/api/apps/:appId/:environment";

/** A route below `{E}`; its path is relative to it. The caller is a secret key of that environment or an owner. */
export function environmentRoute<
  const Path extends string,
  Answer extends TSchema | null,
  Query extends TObject = NoFields,
  Body extends TSchema = NoFields,
>(words: RouteWords<Path, Query, Body, Answer, { visit: Visit }>): Route {
  return makeRoute("environment", `${ENVIRONMENT_PREFIX}${words.path}`, words as never);
}

/** A route for signed-in owners alone. */
export function ownerRoute<
  const Path extends string,
  Answer extends TSchema | null,
  Query extends TObject = NoFields,
  Body extends TSchema = NoFields,
>(words: RouteWords<Path, Query, Body, Answer, OwnerCall>): Route {
  return makeRoute("owner", words.path, words as never);
}

/** A route for anyone. */
export function openRoute<
  const Path extends string,
  Answer extends TSchema | null,
  Query extends TObject = NoFields,
  Body extends TSchema = NoFields,
>(words: RouteWords<Path, Query, Body, Answer, unknown>): Route {
  return makeRoute("open", words.path, words as never);
}

type AnyWords = Pick<Route, "method" | "summary" | "handle"> &
  Partial<Pick<Route, "query" | "body" | "rawBytes" | "answer" | "status">>;

/** The route of these words, its types forgotten. */
export function makeRoute(who: Who, path: string, words: AnyWords): Route {
  const { method, summary, handle, query = null, body = null, rawBytes = null, answer = null } = words;
  const status = words.status ?? (answer === null ? 204 : 200);
  return { who, method, path, summary, query, body, rawBytes, answer, status, handle };
}
