/**
 * What a route is, and how a call of it is served: one object with its method, path, sentence, schemas and work. The same object is served,
 * listed in the OpenAPI document and walked by the tests. By who may call they are an environment's (key or session), an owner's, open
 * ones, and the client library's (see client-route.ts). What was sent is checked here, as Elysia knows another TypeBox, and writes a refused
 * value into its error with JSON.stringify, which throws on a bigint. Refusals pass through it thrown.
 */
import { type Static, type TObject, type TSchema, Type } from "typebox";
import { Compile, type Validator } from "typebox/compile";
import { checkShape } from "../ground/check-shape.ts";
import { isJsonObject } from "../ground/json.ts";
import { type Problem, Refusal } from "../ground/refusal.ts";
import type { Writer } from "../store/port.ts";
import { type AuditEntry, writeAudit } from "../watch/audit.ts";
import { addressOf } from "./address.ts";
import { type Admitted, admit, identifyCaller, type Owner, requireOwner } from "./admission.ts";
import { answerEmpty, answerJson } from "./answer.ts";
import { type BodyReader, readBytes, readJsonBody } from "./body.ts";
import type { HttpDeps } from "./deps.ts";

type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

/** The names in a path: `/persons/:id/access/:entitlement` holds `id` and `entitlement`. */
type PathNames<Path extends string> = Path extends `${string}:${infer Name}/${infer Rest}`
  ? Name | PathNames<Rest>
  : Path extends `${string}:${infer Name}`
    ? Name
    : never;

/** A call as it arrived. */
interface Received {
  request: Request;
  params: Readonly<Record<string, string>>;
  /** The caller's address, for caps. */
  source: string;
}

/** What a route's work is handed. */
interface Call<Path extends string, Query extends TObject, Body extends TSchema> extends Received {
  deps: HttpDeps;
  params: Readonly<Record<PathNames<Path>, string>>;
  query: Static<Query>;
  body: Static<Body>;
  /** The body of a route that takes raw bytes; empty on every other. */
  bytes: Uint8Array;
  nowMs: number;
  /** Further headers of the answer. */
  headers: Headers;
}

/** What a route below `{E}` is handed besides. */
export interface EnvironmentCall extends Admitted {
  /** Writes the audit row of a change, in its transaction. */
  audit(tx: Writer, change: Pick<AuditEntry, "action" | "target" | "before" | "after">): Promise<void>;
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

const NOTHING = Type.Object({}, { additionalProperties: false });
export type NoFields = typeof NOTHING;

export type Who = "environment" | "owner" | "open" | "client" | "person";

/** A route as it is mounted and listed. */
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
  /** Serves one call. Refusals are thrown. */
  serve(deps: HttpDeps, received: Received): Promise<Response>;
}

/** A route below `{E}`; its path is relative to it. The caller is a secret key of that environment or an owner. */
export function environmentRoute<
  const Path extends string,
  Answer extends TSchema | null,
  Query extends TObject = NoFields,
  Body extends TSchema = NoFields,
>(words: RouteWords<Path, Query, Body, Answer, EnvironmentCall>): Route {
  const path = `/api/apps/:appId/:environment${words.path}`;
  return makeRoute("environment", path, words, async (deps, { request, params }, headers) => {
    const caller = await identifyCaller(deps, request, headers);
    const admitted = await admit(deps, caller, params.appId ?? "", params.environment ?? "");
    return (nowMs) => ({
      ...admitted,
      audit: (tx, change) =>
        writeAudit(tx, {
          environmentId: admitted.environment.id,
          atMs: nowMs,
          actor: admitted.by,
          ...change,
        }),
    });
  });
}

/** A route for signed-in owners alone. */
export function ownerRoute<
  const Path extends string,
  Answer extends TSchema | null,
  Query extends TObject = NoFields,
  Body extends TSchema = NoFields,
>(words: RouteWords<Path, Query, Body, Answer, { owner: Owner }>): Route {
  return makeRoute("owner", words.path, words, async (deps, { request }, headers) => {
    const owner = requireOwner(await identifyCaller(deps, request, headers));
    return () => ({ owner });
  });
}

/** A route for anyone. */
export function openRoute<
  const Path extends string,
  Answer extends TSchema | null,
  Query extends TObject = NoFields,
  Body extends TSchema = NoFields,
>(words: RouteWords<Path, Query, Body, Answer, unknown>): Route {
  return makeRoute("open", words.path, words, async () => () => ({}));
}

/** Lets the caller in, or throws the refusal; what it answers says at the time of the work what the route is handed besides. */
type Admission<More> = (
  deps: HttpDeps,
  received: Received,
  headers: Headers,
) => Promise<(nowMs: number) => More>;

/** The route of these words: who calls, with what, the work, the answer. */
export function makeRoute<
  Path extends string,
  Answer extends TSchema | null,
  Query extends TObject,
  Body extends TSchema,
  More,
>(who: Who, path: string, words: RouteWords<Path, Query, Body, Answer, More>, letIn: Admission<More>): Route {
  const { method, summary, answer, query = null, body = null, rawBytes = null } = words;
  const status = words.status ?? (answer === null ? 204 : 200);
  // Where a schema is absent its type is this one.
  const querySchema = words.query ?? (NOTHING as TObject as Query);
  const bodySchema = words.body ?? (NOTHING as TSchema as Body);
  const serve = async (deps: HttpDeps, received: Received): Promise<Response> => {
    const { request, source } = received;
    const headers = new Headers();
    const more = await letIn(deps, received, headers);
    const query = checkQuery(querySchema, addressOf(request).searchParams);
    const reader: BodyReader = { room: deps.bodies, source: () => source };
    const bytes = rawBytes === null ? NO_BYTES : await readBytes(request, rawBytes, reader);
    const sent = rawBytes === null ? await readFields(request, reader) : {};
    const body = checkInput(bodySchema, sent);
    const nowMs = deps.clock.now();
    const params = received.params as Call<Path, Query, Body>["params"];
    const call = { deps, request, source, params, query, body, bytes, nowMs, headers };
    const value = await words.handle({ ...call, ...more(nowMs) });
    if (value instanceof Response) return value;
    return withHeaders(headers, (extra) =>
      answer === null ? answerEmpty(extra) : answerJson(status, value, extra),
    );
  };
  return { who, method, path, summary, query, body, rawBytes, answer, status, serve };
}

const NO_BYTES = new Uint8Array();

/** The body's fields where the method has one; an absent body reads as no fields. */
async function readFields(request: Request, reader: BodyReader): Promise<unknown> {
  if (request.method === "GET" || request.method === "HEAD") return {};
  return (await readJsonBody(request, reader)) ?? {};
}

/** The answer with these headers; cookies alone come more than once under one name. */
function withHeaders(
  headers: Headers,
  make: (extra: Readonly<Record<string, string>>) => Response,
): Response {
  const cookies = headers.getSetCookie();
  headers.delete("set-cookie");
  const answer = make(Object.fromEntries(headers));
  for (const cookie of cookies) answer.headers.append("set-cookie", cookie);
  return answer;
}

const MAX_PROBLEMS = 20;
const compiled = new WeakMap<TSchema, Validator>();

/** The value, fitting the schema. Refuses with `invalid_input`, every problem in `problems`. */
function checkInput<Schema extends TSchema>(schema: Schema, value: unknown): Static<Schema> {
  if (compileOnce(schema).Check(value)) return value as Static<Schema>;
  if (!isJsonObject(value)) {
    throw new Refusal(
      "invalid_input",
      "The request body is not a JSON object: send the fields of this route as one object.",
    );
  }
  const problems = sentFirst(checkShape(schema, value, { braces: true, most: MAX_PROBLEMS }), value);
  throw new Refusal("invalid_input", problems[0]?.message ?? "The request is not valid.", { problems });
}

/** The query as names with one string each, fitting the schema. A name given twice is refused. */
function checkQuery<Schema extends TObject>(schema: Schema, search: URLSearchParams): Static<Schema> {
  const query: Record<string, string> = Object.create(null);
  for (const [name, value] of search) {
    if (Object.hasOwn(query, name)) {
      throw new Refusal("invalid_input", `${name} is given twice in the query: give it once.`);
    }
    query[name] = value;
  }
  return checkInput(schema, { ...query });
}

function compileOnce(schema: TSchema): Validator {
  let check = compiled.get(schema);
  if (check === undefined) {
    check = Compile(schema);
    compiled.set(schema, check);
  }
  return check;
}

/** What is wrong with a field that was sent comes before one that is missing: a misspelt name explains it. */
function sentFirst(problems: readonly Problem[], value: object): Problem[] {
  const isSent = ({ field }: Problem): boolean => Object.hasOwn(value, field.split(".")[0] ?? "");
  return [...problems.filter(isSent), ...problems.filter((problem) => !isSent(problem))];
}
