/** The dependencies of the HTTP layer: the modules below it, which service.ts connects. It creates none of them. */

import type { Clock } from "../../base/clock.ts";
import type { ServiceConfig } from "../../base/config.ts";
import type { Log } from "../../base/log.ts";
import type { Metrics } from "../../engine/metrics/metrics.ts";
import type { Receiver } from "../../engine/receiver/receive.ts";
import type { RequestCaptures } from "../../engine/receiver/request-capture.ts";
import type { Scheduler } from "../../engine/schedule/schedule.ts";
import type { Telemetry } from "../../engine/telemetry/telemetry.ts";
import type { BackupCopies } from "../../operator/backup/backup-copies.ts";
import type { ManualBackup } from "../../operator/backup/manual-backup.ts";
import type { ApprovalTracker } from "../../operator/sync/approval-tracker.ts";
import type { ProjectFolder } from "../../operator/sync/local-sync.ts";
import type { SyncCap } from "../../operator/sync/sync-cap.ts";
import type { LoginCap } from "../../platform/account/login-cap.ts";
import type { SigninCap } from "../../platform/account/signin-cap.ts";
import type { LiveChanges } from "../../platform/audit/live-changes.ts";
import type { Mailer } from "../../platform/mail/mailer.ts";
import type { TxtResolver } from "../../platform/mail/sender-domain.ts";
import type { ServerMail } from "../../platform/mail/server-mail.ts";
import type { OidcClient } from "../../platform/oidc/oidc-client.ts";
import type { OutboundCaller } from "../../platform/outbound/caller.ts";
import type { Sealer } from "../../platform/secret/seal.ts";
import type { LiveRelays } from "../../rules/relay/live-relay.ts";
import type { ClientWrites } from "../../shop/portal/client-write-cap.ts";
import type { PersonSignin } from "../../shop/portal/person-signin.ts";
import type { LeaseCount, LeaseManager } from "../../store/lease/lease-holder.ts";
import type { Store } from "../../store/port.ts";
import type { Docs } from "../docs/docs.ts";
import type { BodyRoom } from "./body.ts";

export interface HttpDeps {
  config: ServiceConfig;
  clock: Clock;
  store: Store;
  log: Log;
  signinCap: SigninCap;
  /** The cap on logins of the command line. */
  loginCap: LoginCap;
  /** Sign-in of members at the OpenID provider. */
  oidc: OidcClient;
  bodies: BodyRoom;
  /** Sign-in of people to their app with an emailed code. */
  personSignin: PersonSignin;
  /** The expiry of approvals. */
  approvals: ApprovalTracker;
  /** The cap on changes of syncs. */
  syncCap: SyncCap;
  /** The caps on records that people write. */
  clientWrites: ClientWrites;
  /** Sends mail of manual requests. */
  mailer: Mailer;
  /** Sends invitations; null if the server was started without --mail-url. */
  serverMail: Pick<ServerMail, "send"> | null;
  receiver: Receiver;
  /** Takes the requests of temporary receiver URLs. */
  captures: RequestCaptures;
  /** Writes the recorded requests of receivers, so that a list of recent requests includes them. */
  writeRecentRequests(): Promise<void>;
  relays: Pick<LiveRelays, "current">;
  /** Throws if `hasMasterKey` is false. */
  sealer: Sealer;
  /** True if secrets can be sealed and opened. False in a command that runs without the server's master key. */
  hasMasterKey: boolean;
  /** Resolves DNS names to verify a sender domain. */
  resolveTxt: TxtResolver;
  /** Sends tests of alert channels. */
  caller: OutboundCaller;
  metrics: Metrics;
  /** The export of traces and metrics; null if it is off. */
  telemetry: Pick<Telemetry, "state"> | null;
  /** Notifies followers of changes. */
  liveChanges: LiveChanges;
  /** The folder whose files local development updates when it saves; null on a server. */
  projectFolder: ProjectFolder | null;
  /** Runs backups that an owner requests. */
  manualBackup: ManualBackup;
  /** Copies backups to the S3 endpoint. */
  backupCopies: BackupCopies;
  /** Returns the documentation. It is created at the first call. */
  readManual(): Promise<Docs>;
  /** The public origin without a trailing slash: the configured one, or the host and port of the service. */
  baseUrl(): string;
  /** Records due ticks of schedules. Ticks need a trusted clock: after the clock was set, the scheduler waits until it trusts it. */
  scheduler: Pick<Scheduler, "trustsClock" | "recordDue">;
  /** Lists what each node runs. */
  leases: Pick<LeaseManager, "listNodes">;
  /**
   * Checks that the store takes writes and the runner is alive. `problem` says in one sentence what is wrong. With several nodes it also returns
   * the leases of this one.
   */
  checkReady(): Promise<
    { ready: true; node?: string; holds?: Omit<LeaseCount, "node"> } | { ready: false; problem: string }
  >;
}
