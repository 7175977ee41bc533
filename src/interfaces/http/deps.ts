/** What the HTTP face is handed: the rooms below it, already wired together by service.ts. It makes nothing of this itself. */

import type { Clock } from "../../base/clock.ts";
import type { ServiceConfig } from "../../base/config.ts";
import type { Log } from "../../base/log.ts";
import type { Metrics } from "../../engine/metrics/metrics.ts";
import type { Receiver } from "../../engine/receiver/receive.ts";
import type { Scheduler } from "../../engine/schedule/schedule.ts";
import type { ManualBackup } from "../../operator/backup/manual-backup.ts";
import type { ApprovalTracker } from "../../operator/sync/approval-tracker.ts";
import type { ProjectFolder } from "../../operator/sync/local-sync.ts";
import type { SyncCap } from "../../operator/sync/sync-cap.ts";
import type { LoginCap } from "../../platform/account/login-cap.ts";
import type { SigninCap } from "../../platform/account/signin-cap.ts";
import type { LiveChanges } from "../../platform/audit/live-changes.ts";
import type { Mailer } from "../../platform/mail/mailer.ts";
import type { TxtResolver } from "../../platform/mail/sender-domain.ts";
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
  /** Logins of the command line. */
  loginCap: LoginCap;
  bodies: BodyRoom;
  /** People's sign-in to their app with an e-mailed code. */
  personSignin: PersonSignin;
  /** When approvals are over. */
  approvals: ApprovalTracker;
  /** The changes that syncs make. */
  syncCap: SyncCap;
  /** The caps on what people write. */
  clientWrites: ClientWrites;
  /** For mail sent by hand. */
  mailer: Mailer;
  receiver: Receiver;
  /** Writes the receiver calls noted so far, so that a list of recent calls holds them. */
  writeRecentRequests(): Promise<void>;
  relays: LiveRelays;
  /** Throws where `hasMasterKey` is false. */
  sealer: Sealer;
  /** Whether secrets can be sealed and opened: false in a command that runs without the server's master key. */
  hasMasterKey: boolean;
  /** DNS, for verifying a sender domain. */
  resolveTxt: TxtResolver;
  metrics: Metrics;
  /** For who follows what changes. */
  liveChanges: LiveChanges;
  /** The files that a save of local development is written to; null on a server. */
  projectFolder: ProjectFolder | null;
  /** Backups that an owner asks for. */
  manualBackup: ManualBackup;
  /** The documentation, read once it is asked for. */
  readManual(): Promise<Docs>;
  /** The public origin without a trailing slash: as configured, else made from the host and port that are listened on. */
  baseUrl(): string;
  /** Records what schedules are due; ticks are made of a clock that is believed alone: one that was set is waited out first. */
  scheduler: Pick<Scheduler, "trustsClock" | "recordDue">;
  /** What this process runs by itself, and what others do. */
  leases: Pick<LeaseManager, "listNodes">;
  /** Whether the store takes writes and the runner is alive; `problem` says in one sentence what is not. Of several nodes: what this one holds. */
  checkReady(): Promise<
    { ready: true; node?: string; holds?: Omit<LeaseCount, "node"> } | { ready: false; problem: string }
  >;
}
