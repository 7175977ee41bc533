/**
 * Opens a data directory for a server: its lock, its database, the runner's lease, its master key, and the unfinished work of an earlier process.
 * It rejects missing files and files of another server with a sentence. Before that it changes only the schema and the lease.
 */
import { statSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { type Clock, systemClock } from "../base/clock.ts";
import type { ServiceConfig } from "../base/config.ts";
import type { DatabaseUrl } from "../base/database-url.ts";
import type { Log } from "../base/log.ts";
import { Refusal } from "../base/refusal.ts";
import { removePartialFiles } from "../operator/backup/restore.ts";
import { createApp, findApp, listApps } from "../platform/account/app.ts";
import { findLocalEnvironment } from "../platform/account/environment.ts";
import { listOwners } from "../platform/account/owner.ts";
import { createSigninLink, signinLinkUrl } from "../platform/account/session.ts";
import { endInterruptedMails } from "../platform/mail/interrupted-mail.ts";
import { findMasterKey } from "../platform/secret/master-key.ts";
import type { Sealer } from "../platform/secret/seal.ts";
import { openSealer, requireMasterKey } from "../rules/relay/master-key-proof.ts";
import { updateAllRuleProblems } from "../rules/relay/relay-problem.ts";
import { rekeyFingerprints } from "../rules/relay/secret-rotation.ts";
import { DirectoryLease } from "../store/lease/directory-lease.ts";
import type { LeaseManager } from "../store/lease/lease-holder.ts";
import { NodeLeaseManager } from "../store/lease/node-lease-holder.ts";
import { type Reader, type Store, StoreUnavailable } from "../store/port.ts";
import type { PostgresMigrationOptions } from "../store/postgres/migrate.ts";
import type { PostgresStore } from "../store/postgres/postgres.ts";
import type { LockLevel } from "../store/postgres/writers.ts";
import { requireDatabaseFile } from "../store/sqlite/database-file.ts";
import { type DirectoryLock, lockDataDirectory } from "../store/sqlite/directory-lock.ts";
import type { MigrationProgress } from "../store/sqlite/migrate.ts";
import { openSqlite } from "../store/sqlite/sqlite.ts";
import { findDueMigration, type MigrationWatch, migrateInChild, readCopyBytes } from "./migration.ts";
import { MigrationReport } from "./migration-progress.ts";
import type { EarlyPort } from "./start-retry.ts";

interface OpenData {
  store: Store;
  /** The leases for background work. It writes nothing after another server took its lease. */
  leases: LeaseManager;
  sealer: Sealer;
}

interface OpenDeps {
  log: Log;
  /** Receives the size of every committed group. */
  onGroup: (size: number) => void;
  /**
   * Receives how long a group waited for a lock, on a database with several nodes. `observePool` receives a function that reads the pool of
   * connections.
   */
  onLock: (waitedMs: number, level: LockLevel) => void;
  observePool: (pool: () => PostgresStore["pool"]) => void;
  /** Answers on the port while the database is migrated. */
  early: EarlyPort;
  /** Ends a migration when it resolves. */
  stopped: Promise<unknown> | undefined;
}

/** Opens the data and adds its closing to `started`. */
export async function openData(
  config: ServiceConfig,
  deps: OpenDeps,
  started: AsyncDisposableStack,
): Promise<OpenData> {
  const { log } = deps;
  const { clock, dataDir, mode } = config;
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  const lock = lockDataDirectory(dataDir, `relay ${mode === "local" ? "dev" : "serve"}`, clock.now());
  started.defer(() => lock.release());
  await findMasterKey(dataDir, config.masterKey);
  const { database } = config;
  const { store, leases } =
    database === null
      ? await openEmbedded(config, deps, lock, started)
      : await openShared(config, database, deps, started);
  await store.read((tx) => requireMode(tx, config));
  const sealer = await openSealer(store, config);
  if (mode === "local") await ensureLocalApp(store, clock.now());
  await store.write("app", async (tx) => {
    await rekeyFingerprints(tx, sealer);
    await updateAllRuleProblems(tx, sealer, clock.now());
  });
  // With several nodes, the node that takes an environment ends its interrupted mails.
  const interrupted = leases.holdsAll
    ? await store.write("app", (tx) => endInterruptedMails(tx, clock.now()))
    : { unknown: 0, notLeft: 0 };
  if (interrupted.unknown + interrupted.notLeft > 0)
    log.warn("mails of an earlier process had no end", interrupted);
  return { store, leases, sealer };
}

/** Opens the database file of the data directory. */
async function openEmbedded(
  config: ServiceConfig,
  deps: OpenDeps,
  lock: DirectoryLock,
  started: AsyncDisposableStack,
): Promise<Pick<OpenData, "store" | "leases">> {
  const { log, onGroup } = deps;
  const { clock, dataDir } = config;
  requireDatabaseFile(dataDir);
  // This precedes the copy of a migration, so that killed starts leave one partial copy at most, not one each.
  removePartialFiles(dataDir);
  const file = join(dataDir, "relay.db");
  // A mistake of the operator must be refused before the migration as well as after it.
  const schema = await findDueMigration(file, async (tx) => {
    await requireMasterKey(tx, config);
    await requireMode(tx, config);
  });
  if (schema !== null) await migrateAnswering(file, schema, clock, deps);
  const store = await openSqlite(file, {
    clock,
    onGroup,
    onTrouble: (trouble) => logTrouble(log, trouble),
    onFull: (trouble) => {
      if (trouble === null) log.info("the disk has room again, and writes continue");
      else log.error("the disk is full, so nothing is recorded that needs new room", { cause: trouble });
    },
  });
  started.defer(() => store.close());
  const leases = await DirectoryLease.take({ store, file, lock, clock });
  started.defer(() => leases.release());
  return { store, leases };
}

/** Opens a PostgreSQL database, which other nodes can have open too. */
async function openShared(
  config: ServiceConfig,
  database: DatabaseUrl,
  deps: OpenDeps,
  started: AsyncDisposableStack,
): Promise<Pick<OpenData, "store" | "leases">> {
  const { log, onGroup, onLock } = deps;
  const { openPostgres } = await import("../store/postgres/postgres.ts");
  const store = await migrateSharedAnswering(config, deps, (migration) =>
    openPostgres(database, {
      ...migration,
      clock: config.clock,
      onGroup,
      onLock,
      onTrouble: (trouble) => {
        if (trouble === null) log.info("the database is available again, and writes continue");
        else log.error("the database cannot be used, so nothing is recorded", { cause: trouble });
      },
    }),
  );
  started.defer(() => store.close());
  deps.observePool(() => store.pool);
  await store.read((tx) => requireMasterKey(tx, config));
  // Leases use real time under any clock, because real time is all that nodes and their database share.
  const leases = new NodeLeaseManager({ store, clock: systemClock, log, baseUrl: config.baseUrl });
  started.defer(() => leases.release());
  return { store, leases };
}

const OTHERS_MIGRATE = "It waits for another node, which migrates the database.";

/** Answers on the port like `migrateAnswering`, for a database that is migrated when it is opened. */
async function migrateSharedAnswering<Opened>(
  config: ServiceConfig,
  { log, early, stopped }: OpenDeps,
  open: (migration: PostgresMigrationOptions) => Promise<Opened>,
): Promise<Opened> {
  let report: MigrationReport | null = null;
  let waits = true;
  try {
    return await open({
      stopped,
      check: (tx) => rethrowRefusals(requireMasterKey(tx, config)),
      onMigrate: (schema) =>
        log.info(
          schema.from === 0
            ? "the database is empty and gets this version's schema"
            : "migrating the database to this version's schema",
          { ...schema, port: (report as MigrationReport | null)?.port },
        ),
      onMigrationStep({ from, step }) {
        report ??= new MigrationReport({ clock: config.clock, log, early }, from, () =>
          waits ? OTHERS_MIGRATE : null,
        );
        waits = step === null;
        if (step !== null) report.record({ name: step, rows: 0, of: null });
      },
    });
  } finally {
    await (report as MigrationReport | null)?.stop();
  }
}

/** Throws only refusals and an unavailable store. An earlier schema may lack what the check reads, so the check runs again after the migration. */
async function rethrowRefusals(asked: Promise<unknown>): Promise<void> {
  await asked.catch((error: unknown) => {
    if (error instanceof Refusal || error instanceof StoreUnavailable) throw error;
  });
}

/** Migrates in a separate process while the port answers: receivers answer that the sender must retry, and other requests get the progress. */
async function migrateAnswering(
  file: string,
  from: number,
  clock: Clock,
  { log, early, stopped }: OpenDeps,
): Promise<void> {
  const report = new MigrationReport({ clock, log, early }, from, () => {
    const copied = readCopyBytes(file);
    if (copied === null) return null;
    return `${showMebibytes(copied)} of ${showMebibytes(statSync(file).size)} are copied into backups/ first.`;
  });
  const onMigrate: MigrationWatch["onMigrate"] = (schema, begun) =>
    log.info(
      `migrating the database to this version's schema, ${begun ? "continuing where the last start ended" : "after a copy to backups/"}`,
      { ...schema, port: report.port },
    );
  try {
    const onMigrationProgress: MigrationProgress = (progress) => report.record(progress);
    await migrateInChild(file, { onMigrate, onMigrationProgress }, stopped);
  } finally {
    await report.stop();
  }
}

const showMebibytes = (bytes: number): string => `${Math.ceil(bytes / 1_048_576)} MiB`;

function logTrouble(log: Log, trouble: string | null): void {
  if (trouble === null) log.info("the database file exists again, and writes continue");
  else log.error("the database is not where it was opened", { cause: trouble });
}

/** The only app of local development. */
export const LOCAL_APP = "local";

/** Refuses with `database_refused` a data directory of the other mode. */
export async function requireMode(
  tx: Reader,
  { mode, dataDir }: Pick<ServiceConfig, "mode" | "dataDir">,
): Promise<void> {
  const isEmpty = (await listApps(tx)).length === 0;
  const isLocal = (await findLocalEnvironment(tx)) !== null;
  if (isEmpty || isLocal === (mode === "local")) return;
  throw new Refusal(
    "database_refused",
    isLocal
      ? `The data directory ${dataDir} belongs to local development (relay dev): give the server another --data-dir.`
      : `The data directory ${dataDir} belongs to a server (relay serve): give local development another --data-dir.`,
  );
}

/** Creates local development's app with its one environment if it does not exist. */
async function ensureLocalApp(store: Store, nowMs: number): Promise<void> {
  const exists = await store.read((tx) => findApp(tx, LOCAL_APP));
  if (exists !== null) return;
  await store.write("app", (tx) =>
    createApp(tx, { id: LOCAL_APP, name: "Local development", environments: ["local"], nowMs }),
  );
}

/**
 * Creates the link that opens the dashboard. Returns null for a server that has an owner. Each of several nodes prints a set-up link when it
 * starts. All of them work until there is an owner.
 */
export async function makeSigninLink(
  { store, leases }: Pick<OpenData, "store" | "leases">,
  config: ServiceConfig,
  baseUrl: string,
): Promise<string | null> {
  const nowMs = config.clock.now();
  if (config.mode === "local") {
    const { token } = await store.write("app", (tx) =>
      createSigninLink(tx, { kind: "local", ownerId: null, nowMs }),
    );
    return signinLinkUrl(baseUrl, "local", token);
  }
  if ((await store.read(listOwners)).length > 0) return null;
  // One transaction for both, so that no set-up link is created after the command line created an owner.
  const made = await store.write("app", async (tx) =>
    (await listOwners(tx)).length > 0
      ? null
      : await createSigninLink(tx, { kind: "setup", ownerId: null, nowMs, keepEarlier: !leases.holdsAll }),
  );
  return made === null ? null : signinLinkUrl(baseUrl, "setup", made.token);
}
