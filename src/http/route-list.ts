/** Every route of the service but the receiver's, one line a resource. Served, listed in OpenAPI and walked by tests from here. */
import { appRoutes } from "./app.ts";
import { catalogRoutes } from "./catalog.ts";
import { changeRoutes } from "./change.ts";
import { clientRoutes } from "./client.ts";
import { clientRecordRoutes } from "./client-record.ts";
import { collectionRoutes } from "./collection.ts";
import { eventRoutes } from "./event.ts";
import { fileRoutes } from "./file.ts";
import { grantRoutes } from "./grant.ts";
import { healthRoutes } from "./health.ts";
import { mailRoutes } from "./mail.ts";
import { mailStopRoutes } from "./mail-stop.ts";
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
  ...healthRoutes,
  ...changeRoutes,
  ...signinRoutes,
  ...sessionRoutes,
  ...appRoutes,
  ...relayRoutes,
  ...eventRoutes,
  ...watchRoutes,
  ...recordRoutes,
  ...collectionRoutes,
  ...fileRoutes,
  ...personRoutes,
  ...grantRoutes,
  ...catalogRoutes,
  ...purchaseRoutes,
  ...mailRoutes,
  ...mailStopRoutes,
  ...settingRoutes,
  ...clientRoutes,
  ...clientRecordRoutes,
];
