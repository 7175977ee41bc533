/** Checks every successful response against the schema that the OpenAPI document gives for its route. */
import { Value } from "typebox/value";
import { ROUTES } from "../../src/interfaces/api/route-list.ts";
import { matchesPath } from "../../src/interfaces/http/address.ts";
import type { Route } from "../../src/interfaces/http/route.ts";

/** Finds the route that serves a request, or returns null. */
function routeOf(method: string, pathname: string): Route | null {
  const own = ROUTES.filter((route) => route.method === method && matchesPath(route.path, pathname));
  return own.find((route) => !route.path.includes(":name")) ?? own[0] ?? null;
}

/** Throws when a response with the route's own status does not match its schema. */
export function checkAnswer(method: string, pathname: string, status: number, json: unknown): void {
  const route = routeOf(method, pathname);
  if (route === null || route.answer === null || json === null) return;
  if (status !== (route.warnsOnly ? 200 : route.status)) return;
  const [error] = Value.Errors(route.answer, json);
  if (error !== undefined) {
    throw new Error(`${method} ${pathname} answers what its schema does not allow: ${error.instancePath} ${error.message}`);
  }
}
