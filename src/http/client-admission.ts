/**
 * The gate of the client library's routes: an app key, from an origin it works from, and where the route asks for one a signed-in person.
 * It also says which pages of other origins may read an answer (CORS). Source: the specification's "Authentication", point 5.
 */
import type { PresentedKey } from "../account/api-key.ts";
import { keyWorksFrom, listKeyOrigins } from "../account/api-key.ts";
import {
  findPersonSession,
  type PersonSession,
  personSessionSlides,
  SESSION_TOKEN,
  slidePersonSession,
} from "../client/person-session.ts";
import { Refusal } from "../ground/refusal.ts";
import { callerOf, identifyKey, readBearer } from "./caller.ts";
import type { HttpRooms } from "./rooms.ts";

/** What a client route is handed. */
export interface ClientVisit {
  key: PresentedKey;
  environmentId: number;
}

/** What a route for signed-in people is handed besides. */
export interface PersonVisit {
  session: PersonSession;
  personId: string;
}

/**
 * Lets the caller in. Refuses with `unauthenticated` (no live key), `forbidden` (a secret key), `wrong_origin`, and on a person's route
 * with `signed_out`.
 */
export async function admitClient(
  rooms: HttpRooms,
  request: Request,
  who: "client" | "person",
): Promise<{ client: ClientVisit; person?: PersonVisit }> {
  const { key } = await identifyKey(rooms, request, readAppKey(request));
  if (key.kind !== "app") {
    throw new Refusal(
      "forbidden",
      "A secret key is for servers and the management routes: use an app key (ak_…) here.",
    );
  }
  requireOrigin(rooms, request, key);
  const client: ClientVisit = { key, environmentId: key.environmentId };
  return who === "client" ? { client } : { client, person: await requirePersonVisit(rooms, request, client) };
}

/** Whether a page of this origin may read the answer to this request. */
export async function mayReadAnswer(rooms: HttpRooms, request: Request, origin: string): Promise<boolean> {
  const caller = callerOf(request);
  if (caller?.kind === "key" && caller.key.kind === "app") return keyWorksFrom(caller.key, origin);
  return await isServedOrigin(rooms, origin);
}

/** Whether any live app key works from this origin: all that a preflight, which carries no key, can be asked. */
export async function isServedOrigin(rooms: HttpRooms, origin: string): Promise<boolean> {
  const keys = await rooms.store.read(listKeyOrigins);
  return keys.some((key) => keyWorksFrom(key, origin));
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
function requireOrigin(rooms: HttpRooms, request: Request, key: PresentedKey): void {
  const origin = request.headers.get("origin") ?? ownPageOrigin(rooms, request);
  if (origin === null ? key.environmentName !== "production" : keyWorksFrom(key, origin)) return;
  throw new Refusal(
    "wrong_origin",
    key.environmentName === "production"
      ? "This live app key works only from the origins it names, and the request's Origin header is none of them: add the origin to the key."
      : "A development app key works from https pages and from localhost: open the page under one of these.",
  );
}

/** Browsers send no Origin when a page reads from its own one. */
function ownPageOrigin(rooms: HttpRooms, request: Request): string | null {
  return request.headers.get("sec-fetch-site") === "same-origin" ? new URL(rooms.baseUrl()).origin : null;
}

async function requirePersonVisit(
  rooms: HttpRooms,
  request: Request,
  { environmentId }: ClientVisit,
): Promise<PersonVisit> {
  const token = readSessionToken(request) ?? "";
  const nowMs = rooms.clock.now();
  const session = await rooms.store.read((tx) => findPersonSession(tx, environmentId, token, nowMs));
  if (session === null) {
    throw new Refusal("signed_out", "Nobody is signed in with this request: sign in with an e-mailed code.");
  }
  if (personSessionSlides(session, nowMs)) {
    await rooms.store.write("app", (tx) => slidePersonSession(tx, session, nowMs));
  }
  return { session, personId: session.personId };
}
