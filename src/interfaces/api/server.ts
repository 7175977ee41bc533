/** The server, for its owners: its configuration and how to change it, the limits in force, and its backups. */
import { type Static, Type } from "typebox";
import { toIso, toIsoOrNull } from "../../base/clock.ts";
import { formatBackupAdvice } from "../../base/database-url.ts";
import { DEFAULT_LIMITS, HOUR_MS, type RaisableLimits } from "../../base/limit.ts";
import { LIMIT_WORDS } from "../../base/limit-text.ts";
import { readPageRequest } from "../../base/page.ts";
import { Refusal } from "../../base/refusal.ts";
import { VERSION } from "../../base/release/version.ts";
import { fields, oneOf, orNull, pageOf, pageQuery, time, timeOrNull } from "../../base/schema.ts";
import { BackupRefused, backupFolder, listBackups } from "../../operator/backup/backup.ts";
import { copyStateView, listCopies, viewCopyState } from "../../operator/backup/copy-state.ts";
import {
  changeCopyTarget,
  copyTargetInput,
  copyTargetView,
  removeCopyTarget,
  viewCopyTarget,
} from "../../operator/backup/copy-target.ts";
import {
  changeStoredSchedule,
  readBackupPlan,
  scheduleInput,
} from "../../operator/backup/stored-schedule.ts";
import { listEnvironments } from "../../platform/account/environment.ts";
import { auditFilter, auditView, listAudit, SERVER_SCOPE, writeAudit } from "../../platform/audit/audit.ts";
import { parseAllowList } from "../../platform/outbound/address.ts";
import { readPage } from "../../store/index-scan.ts";
import type { HttpDeps } from "../http/deps.ts";
import { ownerRoute } from "../http/route.ts";

const SCHEDULE_GIVEN =
  "The server was started with --backup-every (RELAY_BACKUP_EVERY), which decides the schedule: start it without this option, then set the schedule here.";

/** Maximum number of listed backups. The folder has the others too. */
const MAX_LISTED = 50;

const limitView = Type.Object({
  name: Type.String(),
  value: Type.Integer(),
  /** The default of the limit. */
  usual: Type.Integer(),
  /** The environment variable that raises the limit. */
  variable: Type.String(),
  counts: Type.String(),
  /** The consequence of reaching the limit. */
  hit: Type.String(),
});

const exportView = Type.Object({
  /** The time of the last export that the collector took. */
  exportedAt: timeOrNull,
  /** The cause of the last failure; null if the last export succeeded, or there was none. */
  failure: orNull(Type.String()),
});

const serverView = Type.Object({
  version: Type.String(),
  mode: oneOf(["local", "server"]),
  baseUrl: Type.String(),
  /** False if the base URL is derived from the host and the port. */
  baseUrlGiven: Type.Boolean(),
  host: Type.String(),
  trustedProxies: Type.Array(Type.String()),
  allowPrivate: Type.Array(Type.String()),
  concurrency: Type.Integer(),
  dataDir: Type.String(),
  /** The PostgreSQL URL with its password masked; null for relay.db in the data directory. */
  database: orNull(Type.String()),
  /** The export of traces and metrics by OTLP; null if it is off. */
  telemetry: orNull(
    Type.Object({
      endpoint: Type.String(),
      /** The part of traces that is exported, from 0 to 1; null if traces are off. */
      traceRatio: orNull(Type.Number()),
      /** The last exports of each signal; null for a signal that is off. */
      traces: orNull(exportView),
      metrics: orNull(exportView),
    }),
  ),
  limits: Type.Array(limitView),
});
export type ServerView = Static<typeof serverView>;

function viewTelemetry({ config, telemetry }: HttpDeps): ServerView["telemetry"] {
  if (config.telemetry === null || telemetry === null) return null;
  const { endpoint, traceRatio } = config.telemetry;
  const { traces, metrics } = telemetry.state;
  const view = (state: typeof traces) =>
    state && { exportedAt: toIsoOrNull(state.exportedAtMs), failure: state.failure };
  return { endpoint, traceRatio, traces: view(traces), metrics: view(metrics) };
}

function viewServer(deps: HttpDeps): ServerView {
  const { config, baseUrl } = deps;
  const { mode, host, trustedProxies, allowPrivate, concurrency, dataDir, database } = config;
  const names = Object.keys(DEFAULT_LIMITS) as (keyof RaisableLimits)[];
  return {
    version: VERSION,
    mode,
    baseUrl: baseUrl(),
    baseUrlGiven: config.baseUrl !== null,
    host,
    trustedProxies: [...trustedProxies],
    allowPrivate: [...allowPrivate],
    concurrency,
    dataDir,
    database: database === null ? null : String(database),
    telemetry: viewTelemetry(deps),
    limits: names.map((name) => ({
      name,
      value: config.limits[name],
      usual: DEFAULT_LIMITS[name],
      ...LIMIT_WORDS[name],
    })),
  };
}

const askedBackup = Type.Object({ name: Type.String(), startedAt: time });

const backupsView = Type.Object({
  folder: Type.String(),
  /** The PostgreSQL URL; such a database has its own means of backup. Null for relay.db in the data directory. */
  database: orNull(Type.String()),
  /** The hours between automatic backups and how many of them remain; null without automatic backups. */
  schedule: orNull(Type.Object({ everyHours: Type.Number(), keep: Type.Integer() })),
  /** True if `--backup-every` decides the schedule, so that it cannot be changed here. */
  scheduleGiven: Type.Boolean(),
  /** The newest files of the folder, newest first, at most MAX_LISTED; `copiedAt` is null without a copy at the S3 endpoint. */
  files: Type.Array(
    Type.Object({ name: Type.String(), at: time, bytes: Type.Integer(), copiedAt: timeOrNull }),
  ),
  /** The backup that an owner requested and that is in progress. */
  running: orNull(askedBackup),
  /** The failure of the last backup that an owner requested. Null if it succeeded, or if none was requested since the start. */
  failed: orNull(Type.Object({ ...askedBackup.properties, message: Type.String() })),
  copies: Type.Object({
    /** The S3 endpoint that backups are copied to, without its secrets; null if none is set. */
    target: orNull(copyTargetView),
    /** The copy that is in progress. */
    running: orNull(Type.Object({ name: Type.String(), startedAt: time })),
    ...copyStateView.properties,
  }),
});
export type BackupsView = Static<typeof backupsView>;

async function viewBackups({ config, manualBackup, backupCopies, store }: HttpDeps): Promise<BackupsView> {
  const { dataDir, database } = config;
  const { plan, target, copies } = await store.read(async (tx) => ({
    plan: database === null ? await readBackupPlan(tx, config) : null,
    target: await viewCopyTarget(tx),
    copies: await listCopies(tx),
  }));
  const copiedAt = new Map(copies.map((one) => [one.name, one.copiedAt]));
  const copying = backupCopies.running;
  const { running, failed } = manualBackup.state;
  return {
    folder: backupFolder(dataDir),
    database: database === null ? null : String(database),
    schedule: plan === null ? null : { everyHours: plan.everyMs / HOUR_MS, keep: plan.keep },
    scheduleGiven: config.backup !== null,
    files: listBackups(dataDir)
      .filter(({ name }) => name !== running?.name)
      .slice(0, MAX_LISTED)
      .map(({ name, atMs, bytes }) => ({
        name,
        at: toIso(Math.round(atMs)),
        bytes,
        copiedAt: toIsoOrNull(copiedAt.get(name) ?? null),
      })),
    running: running === null ? null : { ...running, startedAt: toIso(running.startedAt) },
    failed: failed === null ? null : { ...failed, startedAt: toIso(failed.startedAt) },
    copies: {
      target,
      running: copying === null ? null : { ...copying, startedAt: toIso(copying.startedAt) },
      ...viewCopyState(copies),
    },
  };
}

const nodeView = Type.Object({
  id: Type.String(),
  host: Type.String(),
  pid: Type.Integer(),
  version: Type.String(),
  /** The URL that the node itself listens on, behind the public address. */
  url: orNull(Type.String()),
  startedAt: time,
  /** The time when the node last reported, by the database's clock. */
  seenAt: time,
  /** True if the node reported recently. */
  live: Type.Boolean(),
  /** True if this node gave the answer. */
  answers: Type.Boolean(),
  /** True if the node runs the work of all environments: retries, change capture, maintenance, alert mails. */
  house: Type.Boolean(),
  /** The environments whose events and schedules the node runs. */
  environments: Type.Array(Type.Object({ app: Type.String(), environment: Type.String() })),
});
export type NodesView = Static<typeof nodeView>[];

async function viewNodes({ store, leases }: HttpDeps): Promise<NodesView> {
  const nodes = await leases.listNodes();
  if (nodes === null) return [];
  const all = await store.read((tx) => listEnvironments(tx, null));
  const names = new Map(all.map(({ id, appId, name }) => [id, { app: appId, environment: name }]));
  return nodes.map(({ own, environments, startedAt, seenAt, ...node }) => ({
    ...node,
    startedAt: toIso(startedAt),
    seenAt: toIso(seenAt),
    answers: own,
    environments: environments.flatMap((id) => names.get(id) ?? []),
  }));
}

export const serverRoutes = [
  ownerRoute({
    method: "GET",
    path: "/api/server",
    needs: "manage_server",
    summary: "Shows how the server was started: its address, proxies and folder, and each limit in words.",
    answer: Type.Object({ server: serverView }),
    handle: ({ deps }) => ({ server: viewServer(deps) }),
  }),
  ownerRoute({
    method: "GET",
    path: "/api/nodes",
    needs: "manage_server",
    summary:
      "Lists the nodes that serve one PostgreSQL database, and the environments that each of them runs. With SQLite, the list is empty.",
    answer: Type.Object({ nodes: Type.Array(nodeView) }),
    handle: async ({ deps }) => ({ nodes: await viewNodes(deps) }),
  }),
  ownerRoute({
    method: "GET",
    path: "/api/audit",
    needs: "manage_server",
    summary:
      "Lists the changes of the whole server, newest first: owners, sessions, apps, logins and backups.",
    query: fields({ ...pageQuery, ...auditFilter }),
    answer: pageOf(auditView),
    handle({ deps, query: { limit, cursor, ...filter } }) {
      const page = readPageRequest({ limit, cursor });
      return readPage(deps.store, page, (tx, part) => listAudit(tx, SERVER_SCOPE, filter, part), {
        large: true,
      });
    },
  }),
  ownerRoute({
    method: "GET",
    path: "/api/backups",
    needs: "manage_server",
    summary: "Lists the server's backups, newest first, with the schedule and the running backup.",
    answer: Type.Object({ backups: backupsView }),
    handle: async ({ deps }) => ({ backups: await viewBackups(deps) }),
  }),
  ownerRoute({
    method: "POST",
    path: "/api/backups",
    needs: "manage_server",
    summary: "Starts a verified backup of the database into the backups folder. One backup runs at a time.",
    answer: Type.Object({ backups: backupsView }),
    status: 202,
    async handle({ deps, owner, nowMs }) {
      if (deps.config.database !== null)
        throw new Refusal("backup_refused", formatBackupAdvice(deps.config.database));
      const { backup, isNew } = deps.manualBackup.start();
      if (isNew)
        await deps.store.write("dashboard", (tx) =>
          writeAudit(tx, {
            environmentId: SERVER_SCOPE,
            nowMs,
            by: `owner:${owner.email}`,
            action: "backup.started",
            target: `backup:${backup.name}`,
          }),
        );
      return { backups: await viewBackups(deps) };
    },
  }),
  ownerRoute({
    method: "PUT",
    path: "/api/backups/copies",
    needs: "manage_server",
    summary:
      "Sets the S3 endpoint, to which the server copies each new backup, encrypted with the passphrase. Secrets are never shown again.",
    body: copyTargetInput,
    answer: Type.Object({ backups: backupsView }),
    async handle({ deps, owner, nowMs, body }) {
      const { config, store, sealer } = deps;
      if (config.database !== null) throw new Refusal("backup_refused", formatBackupAdvice(config.database));
      const allow = parseAllowList(config.allowPrivate);
      const change = { nowMs, by: `owner:${owner.email}`, sealer, allow };
      await store.write("dashboard", (tx) => changeCopyTarget(tx, change, body));
      return { backups: await viewBackups(deps) };
    },
  }),
  ownerRoute({
    method: "DELETE",
    path: "/api/backups/copies",
    needs: "manage_server",
    summary: "Removes the S3 endpoint and its secrets. The copies in the bucket stay.",
    answer: Type.Object({ backups: backupsView }),
    async handle({ deps, owner, nowMs }) {
      const change = { nowMs, by: `owner:${owner.email}` };
      await deps.store.write("dashboard", (tx) => removeCopyTarget(tx, change));
      return { backups: await viewBackups(deps) };
    },
  }),
  ownerRoute({
    method: "POST",
    path: "/api/backups/copies/test",
    needs: "manage_server",
    summary: "Tests the S3 endpoint: writes, reads, lists and deletes a small object.",
    answer: null,
    async handle({ deps }) {
      try {
        await deps.backupCopies.test();
      } catch (error) {
        if (error instanceof BackupRefused) throw new Refusal("backup_refused", error.message);
        throw error;
      }
    },
  }),
  ownerRoute({
    method: "PUT",
    path: "/api/backups/schedule",
    needs: "manage_server",
    summary:
      "Sets the schedule of automatic backups, which takes effect at once. The server refuses the change if it was started with --backup-every.",
    body: scheduleInput,
    answer: Type.Object({ backups: backupsView }),
    async handle({ deps, owner, nowMs, body }) {
      const { config, store } = deps;
      if (config.database !== null) throw new Refusal("backup_refused", formatBackupAdvice(config.database));
      if (config.backup !== null) throw new Refusal("backup_refused", SCHEDULE_GIVEN);
      const by = `owner:${owner.email}`;
      await store.write("dashboard", (tx) => changeStoredSchedule(tx, { nowMs, by }, body));
      return { backups: await viewBackups(deps) };
    },
  }),
];
