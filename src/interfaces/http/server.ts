/**
 * The HTTP server: every route on one Elysia app. It connects modules and decides nothing. admission.ts decides who may call, and answer.ts
 * renders responses. The service reads bodies itself (parse "none"), so that its own limits and refusals apply. A server is ready before it loads
 * most of its routes, because receivers need none of them.
 */
import type { BunRequest } from "bun";
import { Elysia } from "elysia";
import { type Clock, waitAtMost } from "../../base/clock.ts";
import { writeJson } from "../../base/json.ts";
import { Refusal } from "../../base/refusal.ts";
import {
  clearUnnamedProxy,
  formatUnnamedProxy,
  raiseUnnamedProxy,
  UNNAMED_PROXY,
} from "../../platform/audit/unnamed-proxy.ts";
import type { Writer } from "../../store/port.ts";
import {
  addressOf,
  findPlainPage,
  ODD_PATHS,
  rejectMissing,
  requireLocalHost,
  requireOdd,
  requireOneReading,
  type Served,
  SourceReader,
  UNNAMED_PATHS,
} from "./address.ts";
import { answerError, answerFault, answerWritten, RefusedCalls, redirect } from "./answer.ts";
import { answerPreflight } from "./client-route.ts";
import { dashboardHost, isPagesHost } from "./cookie.ts";
import { answerDashboard } from "./dashboard.ts";
import type { HttpDeps } from "./deps.ts";
import { HOOKS, hooksRoute, takeCalls } from "./hooks.ts";
import { writeOpenApi } from "./openapi.ts";
import { Pipelines } from "./pipeline.ts";
import { PublicFolder } from "./public-folder.ts";
import type { Route } from "./route.ts";
import { findRoute, nameParts } from "./route-match.ts";

/** The time for accepted requests when the server stops. */
const STOP_WAIT_MS = 10_000;
const HOOK_PATH = /^\/hooks\/([^/]+)\/([^/]+)\/?$/;

/** A route without its description. */
type ServedRoute = Pick<Route, "method" | "path" | "serve">;

/**
 * Creates the Elysia app that serves all routes, the receiver, the OpenAPI document and the dashboard. It does not listen yet. `first` are the routes
 * that it serves at once. `loadAll` returns them and all others. The first request that needs one calls it, or the returned `loadRoutes`.
 */
export function createHttp(
  deps: HttpDeps,
  first: readonly Route[],
  loadAll: () => Promise<readonly Route[]>,
) {
  const { trustedProxies } = deps.config;
  const note = (work: (tx: Writer) => Promise<void>): void =>
    void deps.store.write("app", work).catch(() => undefined);
  const onUnnamedProxy = (proxy: string): void => {
    deps.log.warn(formatUnnamedProxy(proxy), { code: UNNAMED_PROXY });
    note((tx) => raiseUnnamedProxy(tx, proxy, deps.clock.now()));
  };
  if (trustedProxies.length > 0) note((tx) => clearUnnamedProxy(tx, deps.clock.now()));
  const isLocal = deps.config.mode === "local";
  const sources = new SourceReader(trustedProxies, isLocal ? null : onUnnamedProxy);
  const pipelines = new Pipelines((request) => sources.connectionOf(request));
  const { serviceDir } = deps.config;
  const pages = isLocal && serviceDir !== null ? new PublicFolder(serviceDir) : null;
  const wanted = Promise.withResolvers<void>();
  const all = wanted.promise.then(loadAll).then((routes) => ({
    routes,
    served: [...routes, openApiRoute(routes)] satisfies ServedRoute[],
  }));
  const loadRoutes = (): typeof all => {
    wanted.resolve();
    return all;
  };
  const serve = (
    route: ServedRoute,
    request: Request,
    params: Readonly<Record<string, string>>,
  ): Promise<Response> => {
    requireOneReading(request, params);
    return route.serve(deps, { request, params, source: sources.of(request) });
  };
  /**
   * Answers a request without a route: a preflight, a page of local development, the dashboard, or a refusal that names the methods of the
   * address.
   */
  const answerWithoutRoute = async (request: Request): Promise<Response> => {
    const { method } = request;
    const { pathname, search } = addressOf(request);
    const { routes, served } = await loadRoutes();
    const addresses: readonly Served[] = [...served, { method: "POST", path: HOOKS }];
    if (method === "OPTIONS" && pathname.startsWith("/client/")) {
      return await answerPreflight(deps, routes, request);
    }
    if (method !== "GET" && method !== "HEAD") throw rejectMissing(addresses, method, pathname);
    const page = await pages?.answer(request);
    if (page !== undefined && page !== null) return page;
    const dashboard = await answerDashboard(request);
    if (dashboard === null) throw rejectMissing(addresses, method, pathname);
    return deps.config.mode === "local" && isPagesHost(request)
      ? redirect(`http://${dashboardHost(request)}${pathname}${search}`)
      : dashboard;
  };
  const refused = new RefusedCalls(deps);
  const requireHost = (request: Request): void => {
    if (!isLocal) return;
    try {
      requireLocalHost(request, app.server?.port ?? 0, deps.config.baseUrl);
    } catch (error) {
      const [, appId = "", name = ""] = HOOK_PATH.exec(addressOf(request).pathname) ?? [];
      if (request.method === "POST" && error instanceof Refusal && name !== "")
        void deps.receiver.recordOtherHost(appId, name, sources.of(request), error).catch(() => undefined);
      throw error;
    }
  };
  /**
   * Serves requests without the framework's own routing. It would read the path differently than Bun's router: with resolved dots, and from the
   * URL's eleventh character, which a short Host shifts.
   */
  const withoutFramework =
    (answer: (request: BunRequest) => Promise<Response>) =>
    (request: BunRequest): Response | Promise<Response> =>
      pipelines.bound(request, async () => {
        try {
          requireHost(request);
          return await answer(request);
        } catch (error) {
          return answerError(deps, request, error);
        }
      });
  const answerUnnamed = withoutFramework(async (request) => {
    // Until all routes are loaded, the framework knows few of them. Bun gives a HEAD to the route of the GET.
    const method = request.method === "HEAD" ? "GET" : request.method;
    const route = findRoute((await loadRoutes()).served, method, addressOf(request).pathname);
    if (route !== null) return await serve(route, request, nameParts(route.path, request.params));
    requireOneReading(request, request.params);
    return await answerWithoutRoute(request);
  });
  const answerOdd = withoutFramework(async (request) => {
    const plain = findPlainPage(request);
    if (plain !== null) return redirect(plain);
    requireOneReading(request, request.params);
    requireOdd(request);
    return await answerWithoutRoute(request);
  });
  const hooks = { ...deps, sources, refused };
  const takeRequest = withoutFramework(takeCalls(hooks));
  /** Answers a receiver URL with a trailing slash, which the receiver's own route does not match. */
  const answerSlashed = (request: BunRequest): Response | Promise<Response> => {
    const { appId = "", name = "" } = request.params as Record<string, string>;
    const isCall = request.method === "POST" && addressOf(request).pathname === `/hooks/${appId}/${name}/`;
    return isCall ? takeRequest(request) : answerOdd(request);
  };
  const app = new Elysia({
    normalize: false,
    // The framework's default is a page that shows anyone the sources and stacks of uncaught errors.
    serve: {
      development: false,
      error: (error) => answerFault(deps, error),
      routes: {
        ...Object.fromEntries(UNNAMED_PATHS.map((path) => [path, answerUnnamed])),
        [ODD_PATHS]: answerOdd,
        [HOOKS]: { POST: takeRequest },
        "/hooks/:appId/:name/:more": answerUnnamed,
        "/hooks/:appId/:name/:more/*": answerOdd,
        "/hooks/:appId/:name/*": answerSlashed,
      },
    },
  });
  sources.listen(app);
  if (isLocal) {
    app.onRequest(({ request }) => requireHost(request));
  }
  app.onError(({ request, error }) => answerError(deps, request, error));
  app.use(hooksRoute(hooks, pipelines, (request) => answerWithoutRoute(request)));
  const register = (route: ServedRoute): void => {
    app.route(
      route.method,
      route.path,
      ({ request, params }) =>
        pipelines.bound(request, async () => {
          try {
            // Elysia gives no params for a path without names.
            return await serve(route, request, params ?? {});
          } catch (error) {
            return answerError(deps, request, error);
          }
        }),
      { parse: "none" },
    );
  };
  for (const route of first) register(route);
  app.use(
    all.then(({ served }) => () => {
      for (const route of served) if (!first.some((one) => one === route)) register(route);
      return app;
    }),
  );
  return { app, loadRoutes };
}

/** Stops new connections and completes accepted requests. It closes connections that are still open after a while. */
export async function stopListening(
  server: { stop(now: boolean): Promise<void> } | null,
  clock: Clock,
): Promise<void> {
  if (server === null) return;
  await waitAtMost(clock, STOP_WAIT_MS, server.stop(false));
  await server.stop(true);
}

/** Creates the route of the OpenAPI document. The document is long, and anyone can request it often, so it is written once. */
function openApiRoute(routes: readonly Route[]): ServedRoute {
  let written: string | undefined;
  return {
    method: "GET",
    path: "/openapi.json",
    async serve({ baseUrl }) {
      written ??= writeJson(writeOpenApi(routes, baseUrl()));
      return answerWritten(written);
    },
  };
}
