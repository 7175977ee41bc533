/** Routes of resources that belong neither to an environment nor only to owners. Each route decides what its caller may see. */
import type { TObject, TSchema } from "typebox";
import { type Actor, actorOrigin, formatActor } from "../../platform/account/api-key.ts";
import { identifyCaller, requireSecretCaller } from "./admission.ts";
import { makeRoute, type NoFields, type Route, type RouteWords } from "./route.ts";

/** A caller with a secret key or a session. The route decides what this caller may see. */
export interface Caller {
  actor: Actor;
  /** The actor in the format of rows and audit. */
  by: string;
}

/** Creates a route for signed-in owners and secret keys of any environment. */
export function callerRoute<
  const Path extends string,
  Answer extends TSchema | null,
  Query extends TObject = NoFields,
  Body extends TSchema = NoFields,
>(words: RouteWords<Path, Query, Body, Answer, Caller>): Route {
  return makeRoute("caller", words.path, words, async (deps, received, headers) => {
    const actor = requireSecretCaller(await identifyCaller(deps, received, headers));
    return () => ({ actor, by: formatActor(actor), origin: actorOrigin(actor) });
  });
}
