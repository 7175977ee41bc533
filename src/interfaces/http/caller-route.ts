/** Routes of things that are neither an environment's nor the owners' alone: what of theirs a caller may see, the work decides. */
import type { TObject, TSchema } from "typebox";
import { type Actor, actorOrigin, formatActor } from "../../platform/account/api-key.ts";
import { identifyCaller, requireSecretCaller } from "./admission.ts";
import { makeRoute, type NoFields, type Route, type RouteWords } from "./route.ts";

/** Whoever holds a secret key or a session; what of theirs it is, the work decides. */
export interface Caller {
  actor: Actor;
  /** In the words of rows and audit. */
  by: string;
}

/** A route for signed-in owners and secret keys of any environment. */
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
