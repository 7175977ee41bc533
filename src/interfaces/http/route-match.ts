/** Finds the route of a path and the parameters in it, for a request that is served without HTTP. */
import { matchesPath } from "./address.ts";
import type { Route } from "./route.ts";

/** Returns the route with the fewest parameters, because a literal segment takes precedence over a parameter. */
export function findRoute(routes: readonly Route[], method: string, pathname: string): Route | null {
  const matching = routes.filter((route) => route.method === method && matchesPath(route.path, pathname));
  const countParams = ({ path }: Route): number => path.split(":").length;
  return matching.toSorted((one, other) => countParams(one) - countParams(other))[0] ?? null;
}

/** Returns the decoded values of the `:name` segments. Throws for an encoding that is not valid. */
export function readParams(pattern: string, pathname: string): Record<string, string> {
  const given = pathname.split("/");
  return Object.fromEntries(
    pattern.split("/").flatMap((part, at) => {
      const text = decodeURIComponent(given[at] ?? "");
      return part.startsWith(":") ? [[part.slice(1), text]] : [];
    }),
  );
}
