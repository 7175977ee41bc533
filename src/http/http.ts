/**
 * The HTTP face: every route on one Elysia app. It wires, and decides nothing: who may call is admission's, what is said when it
 * fails is error's. Bodies are read by our own readers (parse "none"), so that limits and refusals are ours.
 */
import type { BunRequest } from "bun";
import { Elysia } from "elysia";
import { addressOf } from "./address.ts";
import { answerJson } from "./answer.ts";
import { answerPreflight, isClientRoute, serveClientRoute } from "./client-route.ts";
import { answerDashboard } from "./dashboard.ts";
import { answerError, answerFault } from "./error.ts";
import { hooksRoute } from "./hooks.ts";
import { DEEP_PATH, requireDeep, requireLocalHost, requireOneReading, UNNAMED_PATHS } from "./host.ts";
import { refuseMissing, type Served } from "./missing.ts";
import { writeOpenApi } from "./openapi.ts";
import type { HttpRooms } from "./rooms.ts";
import { ROUTES } from "./route-list.ts";
import { serveRoute } from "./serve.ts";
import { SourceReader } from "./source.ts";

/** Every address there is, for telling a wrong method from a wrong address. */
const SERVED: readonly Served[] = [
  ...ROUTES,
  { method: "GET", path: "/openapi.json" },
  { method: "POST", path: "/hooks/:appId/:name" },
];

/** The app of these rooms, not listening yet. */
export function createHttp(rooms: HttpRooms) {
  const sources = new SourceReader(rooms.config.trustedProxies);
  const answerUnnamed = (request: BunRequest): Response | Promise<Response> => {
    try {
      requireOneReading(request, request.params);
    } catch (error) {
      return answerError(rooms, request, error);
    }
    return app.fetch(request);
  };
  const answerDeep = (request: BunRequest): Response | Promise<Response> => {
    try {
      requireDeep(request);
    } catch (error) {
      return answerError(rooms, request, error);
    }
    return answerUnnamed(request);
  };
  const app = new Elysia({
    normalize: false,
    // Left to itself the framework shows the sources and stacks of errors that nothing caught, as a page, to anyone.
    serve: {
      development: false,
      error: (error) => answerFault(rooms, error),
      routes: {
        ...Object.fromEntries(UNNAMED_PATHS.map((path) => [path, answerUnnamed])),
        [DEEP_PATH]: answerDeep,
      },
    },
  });
  if (rooms.config.mode === "local") {
    app.onRequest(({ request, server }) =>
      requireLocalHost(request, server?.port ?? 0, rooms.config.baseUrl),
    );
  }
  app.onError(({ request, error, code }) => {
    const { pathname } = addressOf(request);
    return answerError(
      rooms,
      request,
      code === "NOT_FOUND" ? refuseMissing(SERVED, request.method, pathname) : error,
    );
  });
  app.use(hooksRoute({ http: rooms, receiver: rooms.receiver, source: sources }));
  for (const route of ROUTES) {
    app.route(
      route.method,
      route.path,
      ({ request, params, server }) => {
        requireOneReading(request, params);
        const peer = server?.requestIP(request)?.address ?? null;
        const source = sources.sourceOf(peer, request.headers.get("x-forwarded-for"));
        const serve = isClientRoute(route) ? serveClientRoute : serveRoute;
        return serve(rooms, route, { request, params, source });
      },
      { parse: "none" },
    );
  }
  app.options("/client/*", ({ request }) => {
    requireOneReading(request, {});
    return answerPreflight(rooms, ROUTES, request);
  });
  app.get("/openapi.json", ({ request }) => {
    requireOneReading(request, {});
    return answerJson(200, writeOpenApi(ROUTES, rooms.baseUrl()));
  });
  app.get("/*", async ({ request }) => {
    requireOneReading(request, {});
    const { pathname } = addressOf(request);
    return (
      (await answerDashboard(request)) ??
      answerError(rooms, request, refuseMissing(SERVED, request.method, pathname))
    );
  });
  return app;
}
