/** Routes of resources that belong neither to an environment nor only to owners. Each route decides what its caller may see. */
import type { TObject, TSchema } from "typebox";
import type { Permission } from "../../platform/account/permission.ts";
import { type Admitted, admitAnywhere, identifyCaller } from "./admission.ts";
import { makeRoute, type NoFields, type Route, type RouteWords } from "./route.ts";

/** A caller with a secret key or a session. The route decides what this caller may see. */
export type Caller = Omit<Admitted, "environment">;

/** Creates a route for signed-in owners and secret keys of any environment. */
export function callerRoute<
  const Path extends string,
  Answer extends TSchema | null,
  Query extends TObject = NoFields,
  Body extends TSchema = NoFields,
>(words: RouteWords<Path, Query, Body, Answer, Caller> & { needs: Permission }): Route {
  const { needs } = words;
  return makeRoute({ who: "caller", needs, path: words.path }, words, async (deps, received, headers) => {
    const caller = admitAnywhere(await identifyCaller(deps, received, headers), needs);
    return () => caller;
  });
}
