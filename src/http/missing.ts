/** What is said where no route answers: 405 with the methods there are, else 404. */
import { Refusal } from "../ground/refusal.ts";
import type { Route } from "./route.ts";

/** What an address is served with. */
export type Served = Pick<Route, "method" | "path">;

/** The refusal for a request that no route took. */
export function refuseMissing(served: readonly Served[], method: string, pathname: string): Refusal {
  const methods = served.filter(({ path }) => matchesPath(path, pathname)).map(({ method: one }) => one);
  if (methods.length === 0) {
    return new Refusal("not_found", "Nothing exists under this address: /openapi.json lists every route.");
  }
  const allow = [...new Set(methods)].join(", ");
  return new Refusal("method_not_allowed", `${method} is not for this address: use ${allow}.`, {
    details: { allow },
  });
}

/** Whether a path fits a pattern with `:name` segments. */
export function matchesPath(pattern: string, pathname: string): boolean {
  const wanted = pattern.split("/");
  const given = pathname.split("/");
  return (
    wanted.length === given.length &&
    wanted.every((part, at) => (part.startsWith(":") ? given[at] !== "" : part === given[at]))
  );
}
