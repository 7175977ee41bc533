/** Every route of the service but the receiver's, one line a resource. Served, listed in OpenAPI and walked by tests from here. */
import { appRoutes } from "./app.ts";
import { changeRoutes } from "./change.ts";
import { eventRoutes } from "./event.ts";
import { healthRoutes } from "./health.ts";
import { keyRoutes } from "./key.ts";
import type { Route } from "./route.ts";
import { sessionRoutes } from "./session.ts";
import { signinRoutes } from "./signin.ts";
import { watchRoutes } from "./watch.ts";

export const ROUTES: readonly Route[] = [
  ...healthRoutes,
  ...changeRoutes,
  ...signinRoutes,
  ...sessionRoutes,
  ...appRoutes,
  ...eventRoutes,
  ...keyRoutes,
  ...watchRoutes,
];
