/**
 * Connects all modules of the service. It starts the store, the runner and the HTTP server in the order of their dependencies. It stops them in
 * reverse order: complete accepted requests, let running actions finish, close the store.
 */

import type { BackgroundJob } from "./base/clock.ts";
import type { ServiceConfig } from "./base/config.ts";
import { farHost, nearHost, originOf } from "./base/listening.ts";
import { createLog, foldRepeats, type Log } from "./base/log.ts";
import { logDroppedLines, standardError, standardOutput } from "./base/output.ts";
import { makeSigninLink, openData } from "./boot/open-data.ts";
import { makeReadyCheck } from "./boot/readiness.ts";
import { type EarlyPort, startWithRetries } from "./boot/start-retry.ts";
import { Capture } from "./engine/change-capture/capture.ts";
import { countStored } from "./engine/event/insert.ts";
import { Health } from "./engine/health/health.ts";
import { SharedHealth } from "./engine/health/shared-health.ts";
import { SilenceCheck } from "./engine/health/silence-check.ts";
import { AlertChannels } from "./engine/maintenance/alert-channels.ts";
import { AlertMail } from "./engine/maintenance/alert-mail.ts";
import { AppSweep } from "./engine/maintenance/app-sweep.ts";
import { BulkReplays } from "./engine/maintenance/bulk-replays.ts";
import { ErasureSweep } from "./engine/maintenance/erasure-sweep.ts";
import { MaintenanceJobs, readNewestMs } from "./engine/maintenance/maintenance.ts";
import { ProblemLog } from "./engine/maintenance/problem-log.ts";
import { Metrics } from "./engine/metrics/metrics.ts";
import { CaptureSweep } from "./engine/receiver/capture-sweep.ts";
import { Receiver } from "./engine/receiver/receive.ts";
import { RequestCaptures } from "./engine/receiver/request-capture.ts";
import { Runner } from "./engine/runner/runner.ts";
import { warmUpSending } from "./engine/runner/sending.ts";
import { notifySchedules } from "./engine/schedule/next-tick-notice.ts";
import { Scheduler } from "./engine/schedule/schedule.ts";
import type { Telemetry, TelemetryDeps } from "./engine/telemetry/telemetry.ts";
import { aboutRoutes } from "./interfaces/api/about.ts";
import { BodyRoom } from "./interfaces/http/body.ts";
import type { HttpDeps } from "./interfaces/http/deps.ts";
import { createHttp, stopListening } from "./interfaces/http/server.ts";
import { BackupCopies, makeCopyStarter, type StartCopy } from "./operator/backup/backup-copies.ts";
import { ManualBackup } from "./operator/backup/manual-backup.ts";
import { BackupSchedule, makeBackupStarter, type StartBackup } from "./operator/backup/schedule.ts";
import { readBackupPlan } from "./operator/backup/stored-schedule.ts";
import { ApprovalTracker } from "./operator/sync/approval-tracker.ts";
import { SyncCap } from "./operator/sync/sync-cap.ts";
import type { Environment } from "./platform/account/environment.ts";
import { LoginCap } from "./platform/account/login-cap.ts";
import { SharedPlaces } from "./platform/account/shared-limit.ts";
import { SigninCap } from "./platform/account/signin-cap.ts";
import { LiveChanges } from "./platform/audit/live-changes.ts";
import { Notifier } from "./platform/audit/notifier.ts";
import type { Mailer } from "./platform/mail/mailer.ts";
import { resolveTxt, type TxtResolver } from "./platform/mail/sender-domain.ts";
import { ServerMail } from "./platform/mail/server-mail.ts";
import { createMailer } from "./platform/mail/smtp-mailer.ts";
import { OidcClient } from "./platform/oidc/oidc-client.ts";
import { ownHostOf } from "./platform/outbound/call-target.ts";
import { createCaller, type OutboundCaller } from "./platform/outbound/caller.ts";
import type { Sealer } from "./platform/secret/seal.ts";
import { LiveRelays } from "./rules/relay/live-relay.ts";
import { ClientWrites } from "./shop/portal/client-write-cap.ts";
import { PersonSignin } from "./shop/portal/person-signin.ts";
import { ALL_ENVIRONMENTS, type LeaseManager } from "./store/lease/lease-holder.ts";
import type { Store } from "./store/port.ts";

/** Delay of the warm-up after a start: after the first requests, and before the first outbound call is likely. */
const WARM_UP_AFTER_MS = 50;

/** Replacements that a test can give for the outside world. */
export interface ServicePorts {
  /** Makes the calls of actions. Default: real calls to public addresses. */
  caller?: OutboundCaller;
  /** Sends every mail. Default: the mailbox in local development, otherwise each environment's mail server. */
  mailer?: Mailer;
  /** Looks up TXT records to verify a sender domain. Default: the system's DNS. */
  resolveTxt?: TxtResolver;
  /** Starts a backup into a file. Default: `relay backup` in a separate process. */
  startBackup?: StartBackup;
  /** Copies a backup to the S3 endpoint, or tests it. Default: `relay backups copy` in a separate process. */
  startCopy?: StartCopy;
  /** Takes the line of every run, and in local development of requests that became no event. Default: standard output. */
  printRun?: (line: string) => void;
  /** The name by which the program was started. Default: `relay`. */
  program?: string;
  /** Takes the log's lines. Default: standard error. */
  logSink?: (line: string) => void;
  /** Ends a start that waits for its disk or its database. */
  stopped?: Promise<unknown>;
}

export interface Service extends AsyncDisposable {
  /** The URL that it listens on, for example `http://127.0.0.1:3000`. */
  url: string;
  /** The public origin: the configured base URL, or `url`. */
  baseUrl: string;
  port: number;
  store: Store;
  /** The leases for background work. */
  leases: LeaseManager;
  sealer: Sealer;
  log: Log;
  relays: LiveRelays;
  runner: Runner;
  scheduler: HttpDeps["scheduler"];
  /** Writes what is saved over HTTP to the files of this folder from now on. */
  useFolder(folder: HttpDeps["projectFolder"]): void;
  /** Runs the cases of relays without effect. Returns a sentence for each relay that has cases with another result than before. */
  findChangedCases(
    environment: Environment,
    relayNames: readonly string[],
  ): Promise<{ relay: string; message: string }[]>;
  /** Reads all state again. Call it after writing to the store without the service. */
  refresh(): void;
  /** Keeps serving for a moment if there are several nodes, so that balancers stop sending requests before it ends. */
  leave(): Promise<void>;
  /** Creates a one-time link that opens the dashboard signed in (local), or the first set-up (server). Returns null if an owner exists. */
  makeSigninLink(): Promise<string | null>;
}

/**
 * Starts the service. Rejects with a sentence if the data directory is in use, newer, or cannot be used. If the disk is full or fails, or
 * PostgreSQL is unavailable, it answers on the port and retries until it succeeds or `ports.stopped` resolves.
 */
export async function startService(config: ServiceConfig, ports: ServicePorts = {}): Promise<Service> {
  await using began = new AsyncDisposableStack();
  const log = foldRepeats(
    createLog({
      clock: config.clock,
      format: config.logFormat,
      sink: ports.logSink ?? ((line) => standardError.write(line)),
    }),
    config.clock,
  );
  began.defer(() => log.stop());
  const service = await startWithRetries(config, log, ports.stopped, (early) =>
    startOnce(config, ports, log, early),
  );
  const logging = began.move();
  const stopAll = async (): Promise<void> => {
    await service[Symbol.asyncDispose]();
    await logging[Symbol.asyncDispose]();
  };
  return { ...service, [Symbol.asyncDispose]: stopAll };
}

async function loadTelemetry(deps: TelemetryDeps): Promise<Telemetry> {
  const { Telemetry } = await import("./engine/telemetry/telemetry.ts");
  return new Telemetry(deps);
}

const stop = (part: { stop(): Promise<void> | void }) => part.stop();

/** Tries to start once. `early` holds the port until the service listens on it. The parts of `started` stop in reverse order. */
async function startOnce(
  config: ServiceConfig,
  ports: ServicePorts,
  log: Log,
  early: EarlyPort,
): Promise<Service> {
  const { clock, allowPrivate, concurrency, dataDir, limits } = config;
  const local = config.mode === "local";
  let port = config.port;
  // Clients cannot call the wildcard address, so without a base URL the loopback address is used.
  const baseUrl = (): string => config.baseUrl ?? originOf(nearHost(config.host), port);
  await using started = new AsyncDisposableStack();
  started.defer(logDroppedLines(log));

  // The store, and the leases that say which environments this process runs.
  const metrics = started.adopt(new Metrics({ dataDir, clock }), stop);
  const { recordCommitGroup: onGroup, recordLockWait: onLock, observePool } = metrics;
  const opening = { log, onGroup, onLock, observePool, early, stopped: ports.stopped };
  const { store, leases, sealer } = await openData(config, opening, started);
  metrics.observeLeases(() => leases.count());
  metrics.observeStored(countStored);
  const { nodes } = leases;
  const digest = (text: string): Uint8Array => sealer.digest(text);
  const places = leases.holdsAll ? null : new SharedPlaces({ store, clock, digest, nodes });

  // These parts send to the outside: lines for the operator, mail and calls.
  const print = ports.printRun ?? ((line: string) => standardOutput.write(line));
  const terminal = local ? { print, program: ports.program ?? "relay" } : null;
  const notifier = started.adopt(new Notifier({ log, clock, terminal }), stop);
  const ownMailer = createMailer({ store, sealer, clock, log, allowPrivate, baseUrl, local });
  const mailer = ports.mailer ?? ownMailer;
  const serverMail =
    config.mailUrl === null ? null : new ServerMail(config.mailUrl, { clock, log, allowPrivate });
  started.defer(() => serverMail?.stop());
  const ownHosts = () => [baseUrl(), originOf(config.host, port)].map(ownHostOf);
  const caller = createCaller({ ownHosts, allowPrivate, clock, concurrency });
  started.defer(() => caller.close());
  const calls = ports.caller ?? caller;

  // The definitions that run now, and how each relay is.
  const relays = new LiveRelays({
    store,
    sealer,
    baseUrl,
    onReleased: (relayId) => runner.wake(relayId),
    onSchedules: (snapshot, before) => {
      scheduler.refresh();
      void notifySchedules({ store, clock, log, local, notifier }, snapshot, before);
    },
    onUnreadable: ({ id, name }, error) => log.error("a relay cannot be opened", { relay: name, id, error }),
  });
  const healthDeps = { store, clock, log, limits };
  const health = leases.holdsAll ? new Health(healthDeps) : new SharedHealth(healthDeps);
  const looks = (): boolean => leases.holds(ALL_ENVIRONMENTS);
  const silence = new SilenceCheck({ store, clock, relays, log, health, looks });

  // The export of traces and metrics, whose code is loaded only if a collector is named.
  const telemetry =
    config.telemetry === null
      ? null
      : await loadTelemetry({
          clock,
          allowPrivate: config.allowPrivate,
          config: config.telemetry,
          log,
          store,
          metrics,
        });
  if (telemetry !== null) started.adopt(telemetry, stop);
  const tracing = telemetry?.tracing ?? null;

  // The runner and the sources of events.
  const runnerDeps = {
    leases,
    clock,
    relays,
    log,
    concurrency,
    limits,
    ports: {
      caller: calls,
      mailer,
      ...(tracing === null ? {} : { traceparentOf: tracing.traceparentOf }),
    },
    watchers: [metrics, health, ...(tracing === null ? [] : [tracing])],
    printRun: print,
    notifier,
  };
  const runner: Runner = new Runner(runnerDeps);
  started.defer(() => runner.stop());
  const scheduler: Scheduler = started.adopt(new Scheduler({ leases, clock, relays, log }), stop);
  const receiverDeps = {
    store,
    clock,
    relays,
    log,
    sealer,
    limits,
    places,
    local,
    notifier,
    health,
    metrics,
    ...(tracing === null ? {} : { traceRequest: tracing.recordRequest }),
  };
  const receiver = new Receiver({ ...receiverDeps, runner });

  // The jobs that run once for all environments, in the order in which they start.
  const own = { store: leases.storeOf(ALL_ENVIRONMENTS), clock, log };
  const newestMs = await store.read((tx) => readNewestMs(tx, clock.now()));
  const capture = new Capture(own);
  const erasures = new ErasureSweep({ ...own, sealer });
  const removals = new AppSweep(own);
  const bulkReplays = new BulkReplays(own);
  const captureSweep = new CaptureSweep(own);
  const jobs: readonly BackgroundJob[] = [
    capture,
    new MaintenanceJobs({ ...own, newestMs }),
    erasures,
    removals,
    bulkReplays,
    captureSweep,
    new AlertMail({ ...own, isCluster: !leases.holdsAll, mailer, local, baseUrl }),
    new AlertChannels({ ...own, sealer, caller: calls, local, baseUrl }),
  ];
  for (const job of jobs) started.adopt(job, stop);

  // A write wakes these parts.
  const problems = started.adopt(
    new ProblemLog({ store, log, notify: (problem) => notifier.notifyProblem(problem) }),
    stop,
  );
  started.defer(store.listen(() => problems.check(), ["problem"]));
  started.defer(store.listen(relays.invalidate, ["relay", "environment"]));
  started.defer(store.listen(runner.hear, ["event", "event_left"]));
  started.defer(store.listen(() => capture.wake(), ["record_change"]));
  started.defer(store.listen(() => erasures.wake(), ["erasure"]));
  started.defer(store.listen(() => removals.wake(), ["environment"]));
  started.defer(store.listen(() => bulkReplays.wake(), ["bulk_replay"]));
  started.defer(store.listen(() => captureSweep.wake(), ["request_capture"]));
  let backups: BackupSchedule | null = null;
  started.defer(store.listen(() => backups?.wake(), ["backup_schedule"]));
  const refresh = (): void => {
    relays.invalidate();
    for (const one of [runner, capture, removals, bulkReplays, captureSweep, backups]) one?.wake();
  };
  started.defer(store.watch(({ foreignChange }) => (foreignChange ? refresh() : undefined)));
  started.defer(() => silence.stop());
  started.defer(() => receiver.stop());

  // HTTP.
  const { startCopy = makeCopyStarter(dataDir, config.masterKey) } = ports;
  const copying = { dataDir, store, clock, log, allowPrivate, start: startCopy };
  const backupCopies = started.adopt(new BackupCopies(copying), stop);
  started.defer(store.listen(() => backupCopies.wake(), ["backup_copy"]));
  const onBackup = (made: boolean): void => {
    metrics.recordBackup(made);
    if (made) backupCopies.wake();
  };
  const backup = { dataDir, clock, log, start: ports.startBackup ?? makeBackupStarter(dataDir), onBackup };
  const manualBackup = started.adopt(new ManualBackup(backup), stop);
  const ready = makeReadyCheck({ store, leases, runner, clock, log });
  const http: HttpDeps = {
    manualBackup,
    backupCopies,
    projectFolder: null,
    config,
    clock,
    store,
    log,
    sealer,
    hasMasterKey: true,
    receiver,
    captures: new RequestCaptures({ store, clock, sealer }),
    writeRecentRequests: () => receiver.writeRecentRequests(),
    relays,
    metrics,
    telemetry,
    liveChanges: new LiveChanges({ store, clock }),
    signinCap: new SigninCap(clock, places),
    approvals: new ApprovalTracker(clock, places),
    loginCap: new LoginCap(clock, places),
    syncCap: new SyncCap(limits.syncChangesPerMinute),
    oidc: new OidcClient({ clock, allowPrivate, baseUrl }),
    bodies: new BodyRoom(clock),
    clientWrites: new ClientWrites({ store, clock, limits, places }),
    personSignin: new PersonSignin({ store, clock, sealer, mailer, local, limits, places }),
    mailer,
    serverMail,
    resolveTxt: ports.resolveTxt ?? resolveTxt,
    caller: calls,
    baseUrl,
    readManual: async () => (await import("./boot/documentation.ts")).readManual(),
    leases,
    scheduler,
    checkReady: ready.ask,
  };
  const loadAll = async () => (await import("./interfaces/api/route-list.ts")).ROUTES;
  const { app, loadRoutes } = createHttp(http, aboutRoutes, loadAll);

  // The start: what a dead process left runs again, then requests arrive, then background work begins with the leases.
  leases.watch({
    async begin(environmentId) {
      if (!leases.holdsAll) runner.take(environmentId);
      if (environmentId !== ALL_ENVIRONMENTS) scheduler.refresh();
      else for (const job of jobs) await job.start();
    },
    async end(environmentId, isLost) {
      await runner.drop(environmentId, { wait: !isLost });
      if (environmentId === ALL_ENVIRONMENTS) await Promise.all(jobs.map(stop));
    },
    lost(by) {
      log.error("this server has stopped running events, because another one took over its data directory", {
        by,
      });
      for (const one of [runner, scheduler, ...jobs, backups, backupCopies]) void one?.stop();
    },
    regained() {
      runner.wake();
      scheduler.refresh();
    },
    renewed: () => log.warn("runner.lock was removed while the server runs, and was made again"),
  });
  await silence.start();
  await runner.rescue();
  // A port in use must be refused, but Elysia's default shares the port with another process.
  app.listen({ port: await early.free(), hostname: config.host, idleTimeout: 30, reusePort: false });
  port = app.server?.port ?? config.port;
  started.defer(() => stopListening(app.server, clock));
  const url = originOf(config.host, port);
  const warmUp = async (): Promise<void> => {
    await loadRoutes();
    const sender = (await relays.current()).relays.find(({ sends, waiting }) => sends && !waiting);
    if (sender !== undefined) {
      await caller.warmUp(new URL(originOf(nearHost(config.host), port)));
      const { environmentId } = sender;
      if (leases.holds(environmentId))
        await warmUpSending(sender, { ...runnerDeps, store: leases.storeOf(environmentId) });
      runner.wake(sender.id);
    }
    await ownMailer.warmUp();
  };
  started.defer(clock.after(WARM_UP_AFTER_MS, () => void warmUp().catch(() => undefined)));
  // If this fails, the first search for a deduplication key loads the keys.
  void store.warm().catch(() => undefined);
  await runner.start();
  telemetry?.start();
  await scheduler.start();
  problems.check();
  await leases.start(originOf(farHost(config.host), port));
  if (config.database === null) {
    const readPlan = () => store.read((tx) => readBackupPlan(tx, config));
    backups = started.adopt(new BackupSchedule({ ...backup, readPlan }), stop);
    await backupCopies.start();
  }

  // This runs first at a stop. It ends mail that waits for its server, so that no later step waits for it, and the runner takes no new work.
  started.defer(() => {
    http.liveChanges.stop();
    ownMailer.stop();
    void runner.stop();
  });
  const running = started.move();
  return {
    url,
    baseUrl: baseUrl(),
    port,
    store,
    leases,
    sealer,
    log,
    relays,
    runner,
    scheduler,
    refresh,
    leave: ready.leave,
    async findChangedCases(environment, relayNames) {
      const [{ runCases, warnOfCases }, { caseDeps }] = await Promise.all([
        import("./insight/simulate/case-run.ts"),
        import("./interfaces/api/case.ts"),
      ]);
      const reports = await runCases(store, caseDeps(http), environment, relayNames);
      return [...reports].flatMap(([relay, report]) =>
        warnOfCases(report).map(({ message }) => ({ relay, message })),
      );
    },
    useFolder: (folder) => Object.assign(http, { projectFolder: folder }),
    makeSigninLink: () => makeSigninLink({ store, leases }, config, local ? url : baseUrl()),
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  };
}
