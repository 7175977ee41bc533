/**
 * Routes of the client library, below /client, and how they are served: as every other, with the CORS headers of exactly the origins
 * that may call. No management route is ever served here.
 */
import type { TObject, TSchema } from "typebox";
import { addressOf } from "./address.ts";
import { answerEmpty } from "./answer.ts";
import { type ClientVisit, isServedOrigin, mayReadAnswer, type PersonVisit } from "./client-admission.ts";
import { answerError } from "./error.ts";
import { matchesPath, refuseMissing } from "./missing.ts";
import type { HttpRooms } from "./rooms.ts";
import { makeRoute, type Route, type RouteWords } from "./route.ts";
import { type Received, serveRoute } from "./serve.ts";

const PREFLIGHT_SECONDS = "600";
/** What an answer says in headers that a page may read. */
const EXPOSED = "retry-after";
const TAKEN = "authorization, content-type, x-app-key, x-person-session";

/** A route for an app key, whether or not anybody is signed in. */
export function clientRoute<
  const Path extends string,
  Answer extends TSchema | null,
  // biome-ignore lint/complexity/noBannedTypes: an absent schema reads as an object with no fields
  Query extends TObject = TObject<{}>,
  // biome-ignore lint/complexity/noBannedTypes: an absent schema reads as an object with no fields
  Body extends TSchema = TObject<{}>,
>(words: RouteWords<Path, Query, Body, Answer, { client: ClientVisit }>): Route {
  return makeRoute("client", `/client${words.path}`, words as never);
}

/** A route for a person signed in to the app. */
export function personRoute<
  const Path extends string,
  Answer extends TSchema | null,
  // biome-ignore lint/complexity/noBannedTypes: an absent schema reads as an object with no fields
  Query extends TObject = TObject<{}>,
  // biome-ignore lint/complexity/noBannedTypes: an absent schema reads as an object with no fields
  Body extends TSchema = TObject<{}>,
>(words: RouteWords<Path, Query, Body, Answer, { client: ClientVisit; person: PersonVisit }>): Route {
  return makeRoute("person", `/client${words.path}`, words as never);
}

/** Whether the route is one of the client library's. */
export function isClientRoute(route: Route): boolean {
  return route.who === "client" || route.who === "person";
}

/** Serves one call; a refusal too carries the CORS headers, or the page could not read it. */
export async function serveClientRoute(
  rooms: HttpRooms,
  route: Route,
  received: Received,
): Promise<Response> {
  const { request } = received;
  const response = await serveRoute(rooms, route, received).catch((error: unknown) =>
    answerError(rooms, request, error),
  );
  response.headers.append("vary", "origin");
  const origin = request.headers.get("origin");
  if (origin !== null && (await mayReadAnswer(rooms, request, origin))) {
    response.headers.set("access-control-allow-origin", origin);
    response.headers.set("access-control-expose-headers", EXPOSED);
  }
  return response;
}

/** Answers OPTIONS: the methods of the address, to a page of an origin that some app key works from; 404 and 405 as elsewhere. */
export async function answerPreflight(
  rooms: HttpRooms,
  routes: readonly Route[],
  request: Request,
): Promise<Response> {
  const { pathname } = addressOf(request);
  const methods = routes
    .filter((route) => isClientRoute(route) && matchesPath(route.path, pathname))
    .map(({ method }) => method);
  const origin = request.headers.get("origin");
  if (methods.length === 0 || origin === null) {
    return answerError(rooms, request, refuseMissing(routes, request.method, pathname));
  }
  const vary = { vary: "origin, access-control-request-method, access-control-request-headers" };
  if (!(await isServedOrigin(rooms, origin))) return answerEmpty(vary);
  return answerEmpty({
    ...vary,
    "access-control-allow-origin": origin,
    "access-control-allow-methods": [...new Set(methods)].join(", "),
    "access-control-allow-headers": TAKEN,
    "access-control-max-age": PREFLIGHT_SECONDS,
  });
}
