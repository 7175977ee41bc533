/** Every route of the service but the receiver's, one line a resource. Served, listed in OpenAPI and walked by tests from here. */
import { aboutRoutes } from "./about.ts";
import { appRoutes } from "./app.ts";
import { catalogRoutes } from "./catalog.ts";
import { clientRoutes } from "./client.ts";
import { collectionRoutes } from "./collection.ts";
import { eventRoutes } from "./event.ts";
import { grantRoutes } from "./grant.ts";
import { mailRoutes } from "./mail.ts";
import { personRoutes } from "./person.ts";
import { purchaseRoutes } from "./purchase.ts";
import { recordRoutes } from "./record.ts";
import { relayRoutes } from "./relay.ts";
import type { Route } from "./route.ts";
import { sessionRoutes } from "./session.ts";
import { settingRoutes } from "./setting.ts";
import { signinRoutes } from "./signin.ts";
import { watchRoutes } from "./watch.ts";

export const ROUTES: readonly Route[] = [
  ...aboutRoutes,
  ...signinRoutes,
  ...sessionRoutes,
  ...appRoutes,
  ...relayRoutes,
  ...eventRoutes,
  ...watchRoutes,
  ...recordRoutes,
  ...collectionRoutes,
  ...personRoutes,
  ...grantRoutes,
  ...catalogRoutes,
  ...purchaseRoutes,
  ...mailRoutes,
  ...settingRoutes,
  ...clientRoutes,
];
