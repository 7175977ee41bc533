/**
 * Routes of the client library, below /client: their gate (an app key, from an origin it works from, and where the route asks for one a
 * signed-in person), and which pages of other origins may read an answer (CORS). No management route is ever served here.
 * Source: the specification's "Authentication", point 5.
 */
import type { TObject, TSchema } from "typebox";
import { Refusal } from "../../base/refusal.ts";
import type { RefusalCode } from "../../base/refusal-code.ts";
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
import { addressOf, matchesPath, refuseMissing } from "./address.ts";
import { callerOf, identifyKey, readBearer } from "./admission.ts";
import { answerEmpty, answerError } from "./answer.ts";
import type { HttpDeps } from "./deps.ts";
import { loggedPath } from "./logged-path.ts";
import { makeRoute, type NoFields, type Route, type RouteWords } from "./route.ts";

const PREFLIGHT_SECONDS = "600";
/** What an answer says in headers that a page may read. */
const EXPOSED = "retry-after";
const TAKEN = "authorization, content-type, x-app-key, x-person-session";

/** What a client route is handed. */
export interface ClientCall {
  key: PresentedKey;
  environmentId: number;
}

/** What a route for signed-in people is handed besides. */
export interface PersonCall {
  session: PersonSession;
  personId: string;
}

/** A route for an app key, whether or not anybody is signed in. */
export function clientRoute<
  const Path extends string,
  Answer extends TSchema | null,
  Query extends TObject = NoFields,
  Body extends TSchema = NoFields,
>(words: RouteWords<Path, Query, Body, Answer, ClientCall>): Route {
  return withCors(
    makeRoute("client", `/client${words.path}`, words, async (deps, { request }) => {
      const client = await admitClient(deps, request);
      return () => ({ ...client, origin: "app" });
    }),
  );
}

/** A route for a person signed in to the app. */
export function personRoute<
  const Path extends string,
  Answer extends TSchema | null,
  Query extends TObject = NoFields,
  Body extends TSchema = NoFields,
>(words: RouteWords<Path, Query, Body, Answer, ClientCall & PersonCall>): Route {
  return withCors(
    makeRoute("person", `/client${words.path}`, words, async (deps, { request }) => {
      const client = await admitClient(deps, request);
      const person = await requirePerson(deps, request, client);
      return () => ({ ...client, ...person, origin: "app" });
    }),
  );
}

/** The route, whose answers and refusals carry the CORS headers: without them the page could not read why. */
function withCors(route: Route): Route {
  const serve: Route["serve"] = async (deps, received) => {
    const { request } = received;
    const response = await route
      .serve(deps, received)
      .catch((error: unknown) =>
        answerError(deps, request, error, (refusal) => tellVisitor(deps, request, refusal)),
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

/** Of these the log tells already, or anybody could fill it. */
const UNLOGGED: readonly RefusalCode[] = ["unauthenticated", "not_recorded", "internal"];

/** The refusal in words for who uses the app; what it says to the owner goes to the log. */
function tellVisitor(deps: HttpDeps, request: Request, refusal: Refusal): Refusal {
  const { code, message: cause, extra } = refusal;
  const words = formatForVisitor(refusal);
  if (words === cause) return refusal;
  const path = loggedPath(addressOf(request).pathname);
  if (!UNLOGGED.includes(code)) deps.log.warn("somebody who uses an app was refused", { code, path, cause });
  return new Refusal(code, words, extra);
}

/** Answers OPTIONS: the methods of the address, to a page of an origin that some app key works from; 404 and 405 as elsewhere. */
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
    return answerError(deps, request, refuseMissing(routes, request.method, pathname));
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

/** Whether a page of this origin may read the answer to this request. */
async function mayReadAnswer(deps: HttpDeps, request: Request, origin: string): Promise<boolean> {
  const caller = callerOf(request);
  if (caller?.kind === "key" && caller.key.kind === "app") return isKeyAllowedFrom(caller.key, origin);
  return await isServedOrigin(deps, origin);
}

/** Whether any live app key works from this origin: all that a preflight, which carries no key, can be asked. */
async function isServedOrigin(deps: HttpDeps, origin: string): Promise<boolean> {
  const keys = await deps.store.read(listKeyOrigins);
  return keys.some((key) => isKeyAllowedFrom(key, origin));
}

/** Refuses with `unauthenticated` (no live key), `forbidden` (a secret key) or `wrong_origin`. */
async function admitClient(deps: HttpDeps, request: Request): Promise<ClientCall> {
  const { key } = await identifyKey(deps, request, readAppKey(request));
  if (key.kind !== "app") {
    throw new Refusal("forbidden", SECRET_KEY_REFUSED);
  }
  requireOrigin(deps, request, key);
  return { key, environmentId: key.environmentId };
}

/** `x-app-key`, or a bearer token that is no session. */
function readAppKey(request: Request): string | null {
  const named = request.headers.get("x-app-key");
  if (named !== null) return named;
  const bearer = readBearer(request);
  return bearer !== null && SESSION_TOKEN.test(bearer) ? null : bearer;
}

/** `x-person-session`, or a bearer token that is one. */
function readSessionToken(request: Request): string | null {
  return request.headers.get("x-person-session") ?? readBearer(request);
}

/**
 * A live key works from the origins it names and from nowhere else, so a call that names none is refused too, unless the browser says
 * that it comes from a page of this service's own origin, and the key names that. A development key also works outside of browsers.
 */
function requireOrigin(deps: HttpDeps, request: Request, key: PresentedKey): void {
  const origin = request.headers.get("origin") ?? ownPageOrigin(deps, request);
  if (origin === null ? key.environmentName !== "production" : isKeyAllowedFrom(key, origin)) return;
  throw new Refusal(
    "wrong_origin",
    key.environmentName === "production"
      ? "This live app key works only from the origins it names, and the request's Origin header is none of them: add the origin to the key."
      : "A development app key works from https pages and from localhost: open the page under one of these.",
  );
}

/** Browsers send no Origin when a page reads from its own one. */
function ownPageOrigin(deps: HttpDeps, request: Request): string | null {
  return request.headers.get("sec-fetch-site") === "same-origin" ? new URL(deps.baseUrl()).origin : null;
}

/** Refuses with `signed_out`. */
async function requirePerson(
  deps: HttpDeps,
  request: Request,
  { environmentId }: ClientCall,
): Promise<PersonCall> {
  const token = readSessionToken(request) ?? "";
  const nowMs = deps.clock.now();
  const session = await deps.store.read((tx) => findPersonSession(tx, environmentId, token, nowMs));
  if (session === null) {
    throw new Refusal("signed_out", "Nobody is signed in with this request: sign in with an e-mailed code.");
  }
  if (isPersonSessionExtensionDue(session, nowMs)) {
    await deps.store.write("app", (tx) => extendPersonSession(tx, session, nowMs));
  }
  return { session, personId: session.personId };
}
