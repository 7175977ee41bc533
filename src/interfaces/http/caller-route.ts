/** Routes of resources that belong neither to an environment nor only to owners. Each route decides what its caller may see. */
import type { TObject, TSchema } from "typebox";
import type { Permission, Place } from "../../platform/account/permission.ts";
import type { Reader } from "../../store/port.ts";
import { type Admitted, admitTo } from "./admission.ts";
import { identifyCaller } from "./caller.ts";
import { makeRoute, type NoFields, type Route, type RouteWords } from "./route.ts";

/** A caller with a secret key or a session. The route decides what this caller may see. */
export type Caller = Omit<Admitted, "environment">;

interface Placed {
  needs: Permission;
  /** Returns the environment of what the path names; null if it does not exist. */
  placeOf(tx: Reader, params: Readonly<Record<string, string>>): Promise<Place | null>;
}

/** Creates a route for members of the environment that the path leads to, and for secret keys of any environment. */
export function callerRoute<
  const Path extends string,
  Answer extends TSchema | null,
  Query extends TObject = NoFields,
  Body extends TSchema = NoFields,
>(words: RouteWords<Path, Query, Body, Answer, Caller> & Placed): Route {
  const { needs, placeOf } = words;
  return makeRoute({ who: "caller", needs, path: words.path }, words, async (deps, received, headers) => {
    const identified = await identifyCaller(deps, received, headers);
    const findPlace = () => deps.store.read((tx) => placeOf(tx, received.params));
    const caller = await admitTo(identified, needs, findPlace);
    return () => caller;
  });
}
