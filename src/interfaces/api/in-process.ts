/** Serves a request in this process, without HTTP. Commands on a data directory use it, so that they run the code that a server runs. */
import { rejectMissing, requireOneReading } from "../http/address.ts";
import { admitCommandLine } from "../http/caller.ts";
import type { HttpDeps } from "../http/deps.ts";
import { findRoute, readParams } from "../http/route-match.ts";
import { loadRoutes } from "./load-routes.ts";

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
  const routes = await loadRoutes(pathname);
  const route = findRoute(routes, method, pathname);
  if (route === null) throw rejectMissing(routes, method, pathname);
  const params = readParams(route.path, pathname);
  const init = { method, headers: { "content-type": mediaType } };
  const request = new Request(`${ORIGIN}${path}`, body === null ? init : { ...init, body: body as BodyInit });
  requireOneReading(request, params);
  admitCommandLine(request);
  return await route.serve(deps, { request, params, source: SOURCE });
}
