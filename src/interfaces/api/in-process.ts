/** Serves a request in this process, without HTTP. Commands on a data directory use it, so that they run the code that a server runs. */
import { matchesPath, refuseMissing, requireOneReading } from "../http/address.ts";
import { admitCommandLine } from "../http/admission.ts";
import type { HttpDeps } from "../http/deps.ts";
import type { Route } from "../http/route.ts";
import { ROUTES } from "./route-list.ts";

/** The origin of the request's URL. SOURCE is its caller in caps and logs. */
const ORIGIN = "http://localhost";
const SOURCE = "127.0.0.1";

export interface InnerRequest {
  method: string;
  /** The path with its query. */
  path: string;
  body: string | Uint8Array | null;
  mediaType: string;
}

/** Serves the request with the command line as its caller. Throws the route's refusal. */
export async function serveInProcess(
  deps: HttpDeps,
  { method, path, body, mediaType }: InnerRequest,
): Promise<Response> {
  const [pathname = ""] = path.split("?");
  const route = findRoute(method, pathname);
  if (route === null) throw refuseMissing(ROUTES, method, pathname);
  const params = readParams(route.path, pathname);
  const init = { method, headers: { "content-type": mediaType } };
  const request = new Request(`${ORIGIN}${path}`, body === null ? init : { ...init, body: body as BodyInit });
  requireOneReading(request, params);
  admitCommandLine(request);
  return await route.serve(deps, { request, params, source: SOURCE });
}

/** Returns the route with the fewest parameters, because a literal segment takes precedence over a parameter. */
function findRoute(method: string, pathname: string): Route | null {
  const matching = ROUTES.filter((route) => route.method === method && matchesPath(route.path, pathname));
  const countParams = ({ path }: Route): number => path.split(":").length;
  return matching.toSorted((one, other) => countParams(one) - countParams(other))[0] ?? null;
}

function readParams(pattern: string, pathname: string): Record<string, string> {
  const given = pathname.split("/");
  return Object.fromEntries(
    pattern.split("/").flatMap((part, at) => {
      const text = decodeURIComponent(given[at] ?? "");
      return part.startsWith(":") ? [[part.slice(1), text]] : [];
    }),
  );
}
