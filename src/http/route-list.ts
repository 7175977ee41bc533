/** Every route of the service but the receiver's, one line a resource. Served, listed in OpenAPI and walked by tests from here. */
import { accessRoutes } from "./access.ts";
import { appRoutes } from "./app.ts";
import { callRoutes } from "./call.ts";
import { changeRoutes } from "./change.ts";
import { clientBuyRoutes } from "./client-buy.ts";
import { clientLibraryRoutes } from "./client-library.ts";
import { clientMeRoutes } from "./client-me.ts";
import { clientRecordRoutes } from "./client-record.ts";
import { clientSigninRoutes } from "./client-signin.ts";
import { collectionRoutes } from "./collection.ts";
import { creditRoutes } from "./credit.ts";
import { emailRoutes } from "./email.ts";
import { eventRoutes } from "./event.ts";
import { fileRoutes } from "./file.ts";
import { grantRoutes } from "./grant.ts";
import { healthRoutes } from "./health.ts";
import { keyRoutes } from "./key.ts";
import { mailStopRoutes } from "./mail-stop.ts";
import { metricRoutes } from "./metric.ts";
import { personRoutes } from "./person.ts";
import { planRoutes } from "./plan.ts";
import { productRoutes } from "./product.ts";
import { purchaseRoutes } from "./purchase.ts";
import { receiptRoutes } from "./receipt.ts";
import { recordRoutes } from "./record.ts";
import { relayRoutes } from "./relay.ts";
import { relaySecretRoutes } from "./relay-secret.ts";
import { relayStateRoutes } from "./relay-state.ts";
import { relayTemplateRoutes } from "./relay-template.ts";
import type { Route } from "./route.ts";
import { senderDomainRoutes } from "./sender-domain.ts";
import { sessionRoutes } from "./session.ts";
import { settingRoutes } from "./setting.ts";
import { signinRoutes } from "./signin.ts";
import { tokenRoutes } from "./token.ts";
import { watchRoutes } from "./watch.ts";

export const ROUTES: readonly Route[] = [
  ...healthRoutes,
  ...metricRoutes,
  ...changeRoutes,
  ...signinRoutes,
  ...sessionRoutes,
  ...appRoutes,
  ...relayRoutes,
  ...relayStateRoutes,
  ...relaySecretRoutes,
  ...relayTemplateRoutes,
  ...eventRoutes,
  ...callRoutes,
  ...recordRoutes,
  ...collectionRoutes,
  ...fileRoutes,
  ...personRoutes,
  ...tokenRoutes,
  ...grantRoutes,
  ...creditRoutes,
  ...accessRoutes,
  ...productRoutes,
  ...planRoutes,
  ...receiptRoutes,
  ...purchaseRoutes,
  ...emailRoutes,
  ...mailStopRoutes,
  ...senderDomainRoutes,
  ...settingRoutes,
  ...keyRoutes,
  ...watchRoutes,
  ...clientLibraryRoutes,
  ...clientSigninRoutes,
  ...clientMeRoutes,
  ...clientRecordRoutes,
  ...clientBuyRoutes,
];
