/** Finds the route of a path and the parameters in it, for a request that the framework does not route. */
import { matchesPath, type Served } from "./address.ts";

/** Returns the route with the fewest parameters, because a literal segment takes precedence over a parameter. */
export function findRoute<Route extends Served>(
  routes: readonly Route[],
  method: string,
  pathname: string,
): Route | null {
  const matching = routes.filter((route) => route.method === method && matchesPath(route.path, pathname));
  const countParams = ({ path }: Served): number => path.split(":").length;
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

/**
 * Returns the parts of a path, in their order, with the names of the pattern's parameters. The other parts keep their names, so that a part that
 * names no parameter is still checked.
 */
export function nameParts(
  pattern: string,
  parts: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  const names = pattern.split("/").slice(1);
  return Object.fromEntries(
    Object.entries(parts).map(([own, part], at) => {
      const name = names[at] ?? "";
      return [name.startsWith(":") ? name.slice(1) : own, part];
    }),
  );
}
