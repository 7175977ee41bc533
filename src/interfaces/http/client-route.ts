/**
 * Routes of the client library, below /client. They require an app key from one of its origins and, for some routes, a signed-in person. They
 * also decide which pages of other origins may read a response (CORS). Management routes are never served here. Source: the specification's
 * "Authentication", point 5.
 */
import type { TObject, TSchema } from "typebox";
import type { RefusalCode } from "../../base/code/refusal-code.ts";
import { Refusal } from "../../base/refusal.ts";
import { listKeyOrigins, type PresentedKey } from "../../platform/account/api-key.ts";
import { isKeyAllowedFrom } from "../../platform/account/key-origin.ts";
import {
  extendPersonSession,
  findPersonSession,
  isPersonSessionExtensionDue,
  type PersonSession,
  SESSION_TOKEN,
} from "../../shop/portal/person-session.ts";
import { formatForVisitor, SECRET_KEY_REFUSED } from "../../shop/portal/visitor-message.ts";
import { addressOf, matchesPath, rejectMissing } from "./address.ts";
import { answerEmpty, answerError } from "./answer.ts";
import { callerOf, identifyKey, readBearer } from "./caller.ts";
import type { HttpDeps } from "./deps.ts";
import { loggedPath } from "./logged-path.ts";
import { makeRoute, type NoFields, type Route, type RouteWords } from "./route.ts";

const PREFLIGHT_SECONDS = "600";
/** Response headers that a page may read. TAKEN lists the request headers that it may send. */
const EXPOSED = "retry-after";
const TAKEN = "authorization, content-type, x-app-key, x-person-session";

/** The input of a client route. */
export interface ClientCall {
  key: PresentedKey;
  environmentId: number;
}

/** The additional input of a route for signed-in people. */
export interface PersonCall {
  session: PersonSession;
  personId: string;
}

/** Creates a route for an app key, with or without a signed-in person. */
export function clientRoute<
  const Path extends string,
  Answer extends TSchema | null,
  Query extends TObject = NoFields,
  Body extends TSchema = NoFields,
>(words: RouteWords<Path, Query, Body, Answer, ClientCall>): Route {
  return withCors(
    makeRoute(
      { who: "client", needs: null, path: `/client${words.path}` },
      words,
      async (deps, { request }) => {
        const client = await admitClient(deps, request);
        return () => ({ ...client, origin: "app", scope: client.environmentId });
      },
    ),
  );
}

/** Creates a route for a person who is signed in to the app. */
export function personRoute<
  const Path extends string,
  Answer extends TSchema | null,
  Query extends TObject = NoFields,
  Body extends TSchema = NoFields,
>(words: RouteWords<Path, Query, Body, Answer, ClientCall & PersonCall>): Route {
  return withCors(
    makeRoute(
      { who: "person", needs: null, path: `/client${words.path}` },
      words,
      async (deps, { request }) => {
        const client = await admitClient(deps, request);
        const person = await requirePerson(deps, request, client);
        return () => ({ ...client, ...person, origin: "app", scope: client.environmentId });
      },
    ),
  );
}

/** Adds the CORS headers to the route's responses and refusals. The page needs them to read the reason. */
function withCors(route: Route): Route {
  const serve: Route["serve"] = async (deps, received) => {
    const { request } = received;
    const response = await route
      .serve(deps, received)
      .catch((error: unknown) =>
        answerError(deps, request, error, (refusal) => rephraseForVisitor(deps, request, refusal)),
      );
    response.headers.append("vary", "origin");
    const origin = request.headers.get("origin");
    if (origin !== null && (await mayReadAnswer(deps, request, origin))) {
      response.headers.set("access-control-allow-origin", origin);
      response.headers.set("access-control-expose-headers", EXPOSED);
    }
    return response;
  };
  return { ...route, serve };
}

/** Codes that are not logged here: the log already has them, or any stranger could fill the log with them. */
const UNLOGGED: readonly RefusalCode[] = ["unauthenticated", "not_recorded", "internal"];

/** Returns the refusal in words for a user of the app. The original text is for the owner and goes to the log. */
function rephraseForVisitor(deps: HttpDeps, request: Request, refusal: Refusal): Refusal {
  const { code, message: cause, extra } = refusal;
  const words = formatForVisitor(refusal);
  if (words === cause) return refusal;
  const path = loggedPath(addressOf(request).pathname);
  if (!UNLOGGED.includes(code))
    deps.log.warn("A request of an app's user was refused.", { code, path, cause });
  return new Refusal(code, words, extra);
}

/** Answers OPTIONS with the methods of the address, for a page of an origin that some app key allows. Returns 404 and 405 like other routes. */
export async function answerPreflight(
  deps: HttpDeps,
  routes: readonly Route[],
  request: Request,
): Promise<Response> {
  const { pathname } = addressOf(request);
  const methods = routes
    .filter(
      (route) => (route.who === "client" || route.who === "person") && matchesPath(route.path, pathname),
    )
    .map(({ method }) => method);
  const origin = request.headers.get("origin");
  if (methods.length === 0 || origin === null) {
    return answerError(deps, request, rejectMissing(routes, request.method, pathname));
  }
  const vary = { vary: "origin, access-control-request-method, access-control-request-headers" };
  if (!(await isServedOrigin(deps, origin))) return answerEmpty(vary);
  return answerEmpty({
    ...vary,
    "access-control-allow-origin": origin,
    "access-control-allow-methods": [...new Set(methods)].join(", "),
    "access-control-allow-headers": TAKEN,
    "access-control-max-age": PREFLIGHT_SECONDS,
  });
}

/** Returns true if a page of this origin may read the response to this request. */
async function mayReadAnswer(deps: HttpDeps, request: Request, origin: string): Promise<boolean> {
  const caller = callerOf(request);
  if (caller?.kind === "key" && caller.key.kind === "app") return isKeyAllowedFrom(caller.key, origin);
  return await isServedOrigin(deps, origin);
}

/** Returns true if any live app key allows this origin. A preflight carries no key, so no stricter check is possible. */
async function isServedOrigin(deps: HttpDeps, origin: string): Promise<boolean> {
  const keys = await deps.store.read(listKeyOrigins);
  return keys.some((key) => isKeyAllowedFrom(key, origin));
}

/** Admits an app key. Refuses with `unauthenticated` (no live key), `forbidden` (a secret key) or `wrong_origin`. */
async function admitClient(deps: HttpDeps, request: Request): Promise<ClientCall> {
  const { key } = await identifyKey(deps, request, readAppKey(request));
  if (key.kind !== "app") {
    throw new Refusal("forbidden", SECRET_KEY_REFUSED);
  }
  requireOrigin(deps, request, key);
  return { key, environmentId: key.environmentId };
}

/** Returns `x-app-key`, or a bearer token that is not a session. */
function readAppKey(request: Request): string | null {
  const named = request.headers.get("x-app-key");
  if (named !== null) return named;
  const bearer = readBearer(request);
  return bearer !== null && SESSION_TOKEN.test(bearer) ? null : bearer;
}

/** Returns `x-person-session`, or the bearer token. */
function readSessionToken(request: Request): string | null {
  return request.headers.get("x-person-session") ?? readBearer(request);
}

/**
 * Refuses with `wrong_origin` a request from an origin that the key does not allow. A live key also requires an origin. A page of this service's
 * own origin sends none, so the browser's other header counts. A development key also works outside of browsers.
 */
function requireOrigin(deps: HttpDeps, request: Request, key: PresentedKey): void {
  const origin = request.headers.get("origin") ?? ownPageOrigin(deps, request);
  if (origin === null ? key.environmentName !== "production" : isKeyAllowedFrom(key, origin)) return;
  throw new Refusal(
    "wrong_origin",
    key.environmentName === "production"
      ? "This live app key works only from its own origins, and the request's Origin header is not one of them: add the origin to the key."
      : "A development app key works from https pages and from localhost: open the page under one of these.",
  );
}

/** Returns this service's origin for its own pages, because browsers send no Origin for their reads. */
function ownPageOrigin(deps: HttpDeps, request: Request): string | null {
  return request.headers.get("sec-fetch-site") === "same-origin" ? new URL(deps.baseUrl()).origin : null;
}

/** Returns the signed-in person. Refuses with `signed_out`. */
async function requirePerson(
  deps: HttpDeps,
  request: Request,
  { environmentId }: ClientCall,
): Promise<PersonCall> {
  const token = readSessionToken(request) ?? "";
  const nowMs = deps.clock.now();
  const session = await deps.store.read((tx) => findPersonSession(tx, environmentId, token, nowMs));
  if (session === null) {
    throw new Refusal("signed_out", "The request has no signed-in person: sign in with an emailed code.");
  }
  if (isPersonSessionExtensionDue(session, nowMs)) {
    await deps.store.write("app", (tx) => extendPersonSession(tx, session, nowMs), environmentId);
  }
  return { session, personId: session.personId };
}
