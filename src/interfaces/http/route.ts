/**
 * Defines routes and serves their requests. A route is one object with its method, path, summary, schemas and work. The same object is served,
 * listed in the OpenAPI document and used by the tests. A route is for an environment (key or session), owners, anyone, or the client library
 * (see client-route.ts). Refusals are thrown through it.
 */
import { type Static, type TObject, type TProperties, type TSchema, Type } from "typebox";
import { checkInput } from "../../base/check-shape.ts";
import { type Page, type PageRequest, readPageRequest } from "../../base/page.ts";
import type { Warning } from "../../base/refusal.ts";
import { fields, pageOf, pageQuery } from "../../base/schema.ts";
import { isSensitive, type Permission } from "../../platform/account/permission.ts";
import { type AuditEntry, type Change, writeAudit } from "../../platform/audit/audit.ts";
import { readPage } from "../../store/index-scan.ts";
import { EVERYTHING, type Origin, type Reader, type Writer, type WriteScope } from "../../store/port.ts";
import { addressOf, checkQuery } from "./address.ts";
import { type Admitted, admit, type Owner, requireOwner } from "./admission.ts";
import { answerEmpty, answerJson } from "./answer.ts";
import { type BodyReader, readBytes, readJsonBody } from "./body.ts";
import { maxBodyBytes } from "./body-size.ts";
import { identifyCaller, requireRecentAuthentication } from "./caller.ts";
import type { HttpDeps } from "./deps.ts";
import { hidePayloads } from "./payload-mask.ts";
import { type Saves, saveToFiles, targetOf } from "./saved-file.ts";

type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

/** The parameters of a path: `/persons/:id/access/:entitlement` has `id` and `entitlement`. */
type PathNames<Path extends string> = Path extends `${string}:${infer Name}/${infer Rest}`
  ? Name | PathNames<Rest>
  : Path extends `${string}:${infer Name}`
    ? Name
    : never;

/** A request as it arrived. */
interface Received {
  request: Request;
  params: Readonly<Record<string, string>>;
  /** The caller's address, for caps. */
  source: string;
}

/** The input of a route's work. */
interface Call<Path extends string, Query extends TObject, Body extends TSchema> extends Received {
  deps: HttpDeps;
  params: Readonly<Record<PathNames<Path>, string>>;
  query: Static<Query>;
  body: Static<Body>;
  /** The body of a route that takes raw bytes; empty on every other. */
  bytes: Uint8Array;
  nowMs: number;
  /** Additional headers of the response. */
  headers: Headers;
}

/** The additional input of a route below `{E}`. */
export interface EnvironmentCall extends Admitted {
  environmentId: number;
  /** The environment, the actor and the time of a change, in the shape that the modules take. */
  change: Change;
  /** Writes the audit row of a change, in its transaction. */
  audit(tx: Writer, entry: AuditEntry): Promise<void>;
}

/** The description of a route, without its work. */
interface Words<Path, Query, Body, Answer> {
  method: Method;
  path: Path;
  /** One sentence for the OpenAPI document. */
  summary: string;
  query?: Query;
  body?: Body;
  /** Maximum size in bytes. The route takes raw bytes instead of JSON. */
  rawBytes?: number;
  /** The schema of the response. Null means 204 with no body, even if the work returns a value. */
  answer: Answer;
  /** The status of a success. The default is 200, or 204 without an answer. */
  status?: number;
  /** Returns 204 with no body if the answer has no warning. */
  warnsOnly?: boolean;
  /** The kind of file that local development updates with the save. */
  saves?: Saves;
  /** Says whether a session needs a recent authentication, if the route differs from its permission. */
  sensitive?: boolean;
}

/** The work of a route. A write is a transaction, which can run again. */
type Work<Call, Answer> =
  /** Returns the answer's value. A Response is sent without changes (plain text). */
  | { handle(call: Call): Promise<AnswerOf<Answer> | Response> | AnswerOf<Answer> | Response }
  | { read(tx: Reader, call: Call): Promise<AnswerOf<Answer>> }
  | { write(tx: Writer, call: Call): Promise<AnswerOf<Answer>> };

/** The additional input of every route's work. */
interface Writing {
  /** The writer, for the store. */
  origin: Origin;
  /** The rows that a write may change, for the store. Absent means everything. */
  scope?: WriteScope;
  /** Absent for a caller without permissions, such as a person of an app. */
  may?(permission: Permission): boolean;
}

export type RouteWords<
  Path extends string,
  Query extends TObject,
  Body extends TSchema,
  Answer extends TSchema | null,
  More,
> = Words<Path, Query, Body, Answer> & Work<Call<Path, Query, Body> & More & Writing, Answer>;

type AnswerOf<Answer> = Answer extends TSchema ? Static<Answer> : unknown;

const NOTHING = Type.Object({}, { additionalProperties: false });
export type NoFields = typeof NOTHING;

export type Who = "environment" | "owner" | "caller" | "open" | "client" | "person";

/** A route for the server and for lists of routes. */
export interface Route {
  who: Who;
  /** The permission that a key or a signed-in person needs. Null: the route is open, of the client library, or of everyone who is signed in. */
  needs: Permission | null;
  method: Method;
  /** The full path, with `:name` segments. */
  path: string;
  summary: string;
  query: TObject | null;
  body: TSchema | null;
  rawBytes: number | null;
  /** Maximum size of a body in bytes. */
  maxBytes: number;
  answer: TSchema | null;
  status: number;
  /** Returns 204 with no body, or 200 with the answer if it has warnings. */
  warnsOnly: boolean;
  /** True if a session needs a recent authentication. */
  sensitive: boolean;
  /** Serves one request. Refusals are thrown. */
  serve(deps: HttpDeps, received: Received): Promise<Response>;
}

/** The permissions to change data. Their writes change only rows of the environment; others also change what every node remembers. */
const DATA_PERMISSIONS: readonly Permission[] = ["edit_records", "act_on_people", "replay", "erase"];

/** Creates a route below `{E}`, whose path is relative to it. The caller is a secret key of that environment or an owner. */
export function environmentRoute<
  const Path extends string,
  Answer extends TSchema | null,
  Query extends TObject = NoFields,
  Body extends TSchema = NoFields,
>(
  words: RouteWords<Path, Query, Body, Answer, EnvironmentCall> & {
    needs: Permission;
    /** True: the route changes no relay and no catalog, so it runs also where production needs a second person. */
    keepsDefinitions?: boolean;
  },
): Route {
  const { needs, keepsDefinitions = false } = words;
  const path = `/api/apps/:appId/:environment${words.path}`;
  return makeRoute({ who: "environment", needs, path }, words, async (deps, received, headers) => {
    const { appId = "", environment: name = "" } = received.params;
    const caller = await identifyCaller(deps, received, headers);
    const admitted = await admit(deps, caller, { appId, name, needs, keepsDefinitions });
    const { environment, by } = admitted;
    const environmentId = environment.id;
    return (nowMs) => {
      const change = { environmentId, by, nowMs };
      return {
        ...admitted,
        environmentId,
        scope: DATA_PERMISSIONS.includes(needs) ? environmentId : EVERYTHING,
        change,
        audit: (tx, entry) => writeAudit(tx, { ...change, ...entry }),
      };
    };
  });
}

/** Creates a paged list below `{E}`. */
export function listRoute<
  const Path extends string,
  Item extends TSchema,
  Filter extends TProperties = Record<never, never>,
>({
  path,
  needs,
  summary,
  filter,
  item,
  list,
  large = false,
}: {
  path: Path;
  needs: Permission;
  summary: string;
  /** The query parameters in addition to the page's. */
  filter?: Filter;
  item: Item;
  /** Items are large, so a page does not collect them: see `readPage`. */
  large?: boolean;
  /** Reads one step of the page. */
  list(
    tx: Reader,
    call: Call<Path, TObject, NoFields> & EnvironmentCall,
    page: PageRequest,
    filter: Static<TObject<Filter>>,
  ): Promise<Page<Static<Item>>>;
}): Route {
  return environmentRoute<Path, TSchema, TObject>({
    method: "GET",
    path,
    needs,
    summary,
    query: fields({ ...pageQuery, ...filter }),
    answer: pageOf(item),
    handle(call) {
      const { limit, cursor, ...asked } = call.query as Static<TObject<typeof pageQuery>>;
      const page = readPageRequest({ limit, cursor });
      const step = (tx: Reader, part: PageRequest) => list(tx, call, part, asked as Static<TObject<Filter>>);
      return readPage(call.deps.store, page, step, { large });
    },
  });
}

/** Creates a route for signed-in people only. `needs` is null for a route of everyone who is signed in. */
export function ownerRoute<
  const Path extends string,
  Answer extends TSchema | null,
  Query extends TObject = NoFields,
  Body extends TSchema = NoFields,
>(
  words: RouteWords<Path, Query, Body, Answer, { owner: Owner }> & {
    needs: Permission | null;
    /** True: the route also serves a person who lacks the second factor that the server requires. */
    enrolls?: boolean;
  },
): Route {
  const { needs, path, enrolls = false } = words;
  return makeRoute({ who: "owner", needs, path }, words, async (deps, received, headers) => {
    const caller = await identifyCaller(deps, received, headers, { enrolls });
    const owner = requireOwner(caller, needs, received.params);
    return () => ({ owner, origin: "dashboard" });
  });
}

/** Creates a route for anyone. */
export function openRoute<
  const Path extends string,
  Answer extends TSchema | null,
  Query extends TObject = NoFields,
  Body extends TSchema = NoFields,
>(words: RouteWords<Path, Query, Body, Answer, unknown>): Route {
  const { path } = words;
  return makeRoute({ who: "open", needs: null, path }, words, async () => () => ({ origin: "app" }));
}

/** Admits the caller, or throws the refusal. The returned function creates the additional input of the work, at the time of the work. */
type Admission<More> = (
  deps: HttpDeps,
  received: Received,
  headers: Headers,
) => Promise<(nowMs: number) => More & Writing>;

/** The caller is checked again if the body took longer than this. */
const SLOW_BODY_MS = 500;

/** Creates a route: it admits the caller, reads the input, does the work and sends the response. */
export function makeRoute<
  Path extends string,
  Answer extends TSchema | null,
  Query extends TObject,
  Body extends TSchema,
  More,
>(
  { who, needs, path }: Pick<Route, "who" | "needs" | "path">,
  words: RouteWords<Path, Query, Body, Answer, More>,
  letIn: Admission<More>,
): Route {
  const { method, summary, answer, query = null, body = null, rawBytes = null } = words;
  const { warnsOnly = false, sensitive = needs !== null && isSensitive(needs, method) } = words;
  const status = words.status ?? (answer === null || warnsOnly ? 204 : 200);
  // If a schema is absent, its type is this one.
  const querySchema = words.query ?? (NOTHING as TObject as Query);
  const bodySchema = words.body ?? (NOTHING as TSchema as Body);
  const maxBytes = rawBytes ?? maxBodyBytes(body);
  const admitCaller: Admission<More> = async (deps, received, headers) => {
    const more = await letIn(deps, received, headers);
    if (sensitive) await requireRecentAuthentication(deps, received.request);
    return more;
  };
  const serve = async (deps: HttpDeps, received: Received): Promise<Response> => {
    const { request, source } = received;
    const headers = new Headers();
    const begunMs = deps.clock.monotonicMs();
    let more = await admitCaller(deps, received, headers);
    const query = checkQuery(querySchema, addressOf(request).searchParams);
    const reader: BodyReader = { room: deps.bodies, source: () => source };
    const bytes = rawBytes === null ? NO_BYTES : await readBytes(request, rawBytes, reader);
    const sent = rawBytes === null ? await readFields(request, maxBytes, reader) : {};
    // A body can take more than a minute to arrive. The caller must not change anything if their key or session ended in that time.
    if (deps.clock.monotonicMs() - begunMs > SLOW_BODY_MS)
      more = await admitCaller(deps, received, new Headers());
    const body = checkInput(bodySchema, sent);
    const nowMs = deps.clock.now();
    const params = received.params as Call<Path, Query, Body>["params"];
    const call = { deps, request, source, params, query, body, bytes, nowMs, headers };
    const handed = more(nowMs);
    const work = async () => await doWork(words, { ...call, ...handed });
    const { saves } = words;
    const done =
      saves === undefined
        ? await work()
        : await saveToFiles(deps.projectFolder, [targetOf(saves, call)], work);
    if (done instanceof Response) return done;
    const value = answer === null || seesPayloads(handed) ? done : hidePayloads(answer, done);
    return withHeaders(headers, (extra) =>
      answer === null || (warnsOnly && !hasWarnings(value))
        ? answerEmpty(extra)
        : answerJson(warnsOnly ? 200 : status, value, extra),
    );
  };
  return {
    who,
    needs,
    method,
    path,
    summary,
    query,
    body,
    rawBytes,
    maxBytes,
    answer,
    status,
    warnsOnly,
    sensitive,
    serve,
  };
}

function seesPayloads({ may }: Writing): boolean {
  return may?.("read_payloads") ?? true;
}

function hasWarnings(value: unknown): boolean {
  return (value as { warnings: readonly Warning[] }).warnings.length > 0;
}

function doWork<Handed extends Writing & { deps: HttpDeps }, Answer>(
  words: Work<Handed, Answer>,
  call: Handed,
): Promise<AnswerOf<Answer> | Response> | AnswerOf<Answer> | Response {
  if ("handle" in words) return words.handle(call);
  const { store } = call.deps;
  if ("read" in words) return store.read((tx) => words.read(tx, call));
  return store.write(call.origin, (tx) => words.write(tx, call), call.scope);
}

const NO_BYTES = new Uint8Array();

/** Reads the body's fields if the method has a body. An absent body has no fields. */
async function readFields(request: Request, maxBytes: number, reader: BodyReader): Promise<unknown> {
  if (request.method === "GET" || request.method === "HEAD") return {};
  return (await readJsonBody(request, maxBytes, reader)) ?? {};
}

/** Creates the response with these headers. Cookies are added separately, because only their name can repeat. */
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
