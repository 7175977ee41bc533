/** Every route of the service except the receiver's, one line for each resource. The server, OpenAPI and tests use this list. */

import type { Route } from "../http/route.ts";
import { aboutRoutes } from "./about.ts";
import { accountRoutes } from "./account.ts";
import { alertChannelRoutes } from "./alert-channel.ts";
import { appRoutes } from "./app.ts";
import { appDeletionRoutes } from "./app-deletion.ts";
import { approvalRoutes } from "./approval.ts";
import { watchRoutes } from "./audit.ts";
import { bulkReplayRoutes } from "./bulk-replay.ts";
import { caseRoutes } from "./case.ts";
import { catalogRoutes } from "./catalog.ts";
import { clientRoutes } from "./client.ts";
import { confirmRoutes } from "./confirm.ts";
import { connectorRoutes } from "./connector.ts";
import { docsRoutes } from "./docs.ts";
import { eventRoutes } from "./event.ts";
import { eventListRoutes } from "./event-list.ts";
import { explainRoutes } from "./explain.ts";
import { fileRoutes } from "./file.ts";
import { grantRoutes } from "./grant.ts";
import { guessRoutes } from "./guess.ts";
import { missedRoutes } from "./import-missed.ts";
import { kitRoutes } from "./kit.ts";
import { loginRoutes } from "./login.ts";
import { mailRoutes } from "./mail.ts";
import { oidcProviderRoutes } from "./oidc-provider.ts";
import { overviewRoutes } from "./overview.ts";
import { personRoutes } from "./person.ts";
import { personSessionRoutes } from "./person-session.ts";
import { pullRoutes } from "./pull.ts";
import { recordRoutes } from "./record.ts";
import { rejectedRoutes } from "./rejected.ts";
import { relayRoutes } from "./relay.ts";
import { relaySecretRoutes } from "./relay-secret.ts";
import { requestCaptureRoutes } from "./request-capture.ts";
import { findRoutes } from "./search.ts";
import { secondFactorRoutes } from "./second-factor.ts";
import { sellingRoutes } from "./selling.ts";
import { senderRoutes } from "./sender.ts";
import { serverRoutes } from "./server.ts";
import { sessionRoutes } from "./session.ts";
import { settingRoutes } from "./setting.ts";
import { signinRoutes } from "./signin.ts";
import { signinFactorRoutes } from "./signin-factor.ts";
import { oidcSigninRoutes } from "./signin-oidc.ts";
import { simulationRoutes } from "./simulation.ts";
import { skippedRunRoutes } from "./skipped-run.ts";
import { streamRoutes } from "./stream.ts";
import { syncRoutes } from "./sync.ts";
import { testEventRoutes } from "./test-event.ts";
import { verifierRoutes } from "./verifier.ts";

export const ROUTES: readonly Route[] = [
  ...aboutRoutes,
  ...docsRoutes,
  ...signinRoutes,
  ...signinFactorRoutes,
  ...sessionRoutes,
  ...confirmRoutes,
  ...secondFactorRoutes,
  ...oidcSigninRoutes,
  ...oidcProviderRoutes,
  ...accountRoutes,
  ...serverRoutes,
  ...loginRoutes,
  ...appRoutes,
  ...appDeletionRoutes,
  ...relayRoutes,
  ...explainRoutes,
  ...guessRoutes,
  ...requestCaptureRoutes,
  ...relaySecretRoutes,
  ...senderRoutes,
  ...verifierRoutes,
  ...kitRoutes,
  ...syncRoutes,
  ...pullRoutes,
  ...approvalRoutes,
  ...missedRoutes,
  ...caseRoutes,
  ...rejectedRoutes,
  ...skippedRunRoutes,
  ...testEventRoutes,
  ...simulationRoutes,
  ...eventListRoutes,
  ...eventRoutes,
  ...bulkReplayRoutes,
  ...watchRoutes,
  ...alertChannelRoutes,
  ...overviewRoutes,
  ...streamRoutes,
  ...findRoutes,
  ...recordRoutes,
  ...fileRoutes,
  ...personRoutes,
  ...personSessionRoutes,
  ...grantRoutes,
  ...catalogRoutes,
  ...sellingRoutes,
  ...mailRoutes,
  ...settingRoutes,
  ...connectorRoutes,
  ...clientRoutes,
];
