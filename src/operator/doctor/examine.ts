/** Checks a data directory, with or without a running server. It changes nothing. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { toIso } from "../../base/clock.ts";
import { type DatabaseUrl, formatBackupAdvice } from "../../base/database-url.ts";
import { MINUTE_MS } from "../../base/limit.ts";
import { findEnvironmentById } from "../../platform/account/environment.ts";
import { listResolvedTimes } from "../../platform/audit/alert.ts";
import { findMasterKey } from "../../platform/secret/master-key.ts";
import { Sealer } from "../../platform/secret/seal.ts";
import { testMasterKey } from "../../rules/relay/master-key-proof.ts";
import type { Trouble } from "../../rules/relay/recent-change.ts";
import { listIncompleteRelays, showRejected } from "../../rules/relay/rejected-request.ts";
import { relayTarget } from "../../rules/relay/relay.ts";
import { findHints } from "../../rules/relay/trouble-hint.ts";
import { TroubleRows } from "../../rules/relay/trouble-rows.ts";
import { SCHEMA_VERSION } from "../../store/migrate/migrations.ts";
import type { Reader } from "../../store/port.ts";
import {
  findFaults,
  findLoss,
  openDatabaseFile,
  readSchemaVersion,
} from "../../store/sqlite/database-file.ts";
import { listTableFaults } from "../../store/sqlite/migrate.ts";
import { findFailure, listCopies } from "../backup/copy-state.ts";
import { findCopyTarget } from "../backup/copy-target.ts";
import { readBackupPlan } from "../backup/stored-schedule.ts";
import { type DoctorTarget, type Finding, fail, formatCount, formatDuration, pass, warn } from "./finding.ts";
import { checkOidc } from "./oidc-check.ts";
import { checkServer } from "./server-check.ts";
import {
  checkAlertChannels,
  checkAlertMail,
  checkBackups,
  checkBaseUrl,
  checkCustomers,
  checkDisk,
  checkLog,
  checkPeople,
  checkProxy,
  checkRights,
  checkSecrets,
  checkSenderDomain,
  checkVersion,
  isLocal,
} from "./setup-check.ts";
import { checkTables } from "./table-check.ts";
import { checkTelemetry } from "./telemetry-check.ts";

type RowCheck = (tx: Reader, target: DoctorTarget) => Promise<Finding>;

/** These checks read rows, so they need this executable's schema. */
const ROW_CHECKS: readonly RowCheck[] = [
  checkKey,
  checkQueue,
  checkHolds,
  checkDead,
  checkProblems,
  checkRejected,
  checkClock,
  checkBaseUrl,
  checkProxy,
  checkSecrets,
  checkSenderDomain,
  checkAlertChannels,
  checkAlertMail,
  checkPeople,
  checkCustomers,
  checkOidc,
];

/** Returns every finding, in the order for a person. */
export async function examine(target: DoctorTarget): Promise<Finding[]> {
  const { dataDir, database } = target;
  if (database !== null) return await examineShared(database, target);
  const loss = findLoss(dataDir);
  if (loss !== null) return [fail("database", loss, RESTORE)];
  if (!existsSync(join(dataDir, "relay.db"))) {
    const todo =
      "name the server's with --data-dir or RELAY_DATA_DIR, or start one with relay dev or relay serve";
    return [fail("data directory", `There is no database in ${dataDir}.`, todo)];
  }
  const outside = [checkRights(target), checkDisk(target), checkLog(target)];
  const { findings, local, storedEveryMs } = await checkDatabaseFile(target);
  const backupEveryMs = target.backupEveryMs ?? storedEveryMs;
  return [
    ...outside,
    ...findings,
    checkBackups({ ...target, backupEveryMs }, local),
    checkVersion(target),
    await checkTelemetry(target),
  ];
}

/** Checks PostgreSQL: without the checks of a database file, and with those of the server's setup. */
async function examineShared(database: DatabaseUrl, target: DoctorTarget): Promise<Finding[]> {
  const outside = existsSync(target.dataDir) ? [checkRights(target)] : [];
  const { findings, reader } = await checkServer(database, target);
  if (reader === null) return [...outside, ...findings];
  await using tx = reader;
  for (const check of ROW_CHECKS) findings.push(await check(tx, target));
  return [
    ...outside,
    ...findings,
    pass("backups", formatBackupAdvice(database)),
    checkVersion(target),
    await checkTelemetry(target),
  ];
}

interface CheckedDatabase {
  findings: Finding[];
  /** True for local development's database. An unreadable database counts as a server's. */
  local: boolean;
  /** The period of the stored backup schedule; null if it is off or cannot be read. */
  storedEveryMs: number | null;
}

async function checkDatabaseFile(target: DoctorTarget): Promise<CheckedDatabase> {
  const findings: Finding[] = [];
  let local = false;
  let storedEveryMs: number | null = null;
  try {
    using database = openDatabaseFile(join(target.dataDir, "relay.db"));
    const schema = await readSchemaVersion(database);
    findings.push(checkSchema(schema));
    if (schema === null) return { findings, local, storedEveryMs };
    const tables = checkTables(await listTableFaults(database, { parts: true }));
    findings.push(tables, await checkIntegrity(database, target));
    if (schema !== SCHEMA_VERSION || tables.state === "fail") return { findings, local, storedEveryMs };
    local = await isLocal(database);
    storedEveryMs = (await readBackupPlan(database, { backup: null }))?.everyMs ?? null;
    for (const check of [...ROW_CHECKS, checkCopies]) findings.push(await check(database, target));
  } catch (error) {
    findings.push(fail("database", `It cannot be read: ${(error as Error).message}.`, RESTORE));
  }
  return { findings, local, storedEveryMs };
}

async function checkCopies(tx: Reader, { clock }: DoctorTarget): Promise<Finding> {
  const place = await findCopyTarget(tx);
  if (place === null) return pass("backup copies", "No S3 endpoint is set in Settings › Backups.");
  const rows = await listCopies(tx);
  const failure = findFailure(rows);
  if (failure !== null)
    return warn(
      "backup copies",
      `The last copy failed: ${failure.message}`,
      "fix the endpoint or its settings in Settings › Backups or with relay backups endpoint, and test them with relay backups endpoint --test",
    );
  const copiedAt = rows[0]?.copiedAt ?? null;
  if (copiedAt === null) return pass("backup copies", `No backup was copied to ${place.endpoint} yet.`);
  const age = formatDuration(clock.now() - copiedAt);
  return pass("backup copies", `The newest copy at ${place.endpoint} is ${age} old.`);
}

const RESTORE = "stop the server and restore a backup with relay restore <file>";

function checkSchema(schema: number | null): Finding {
  if (schema === null) {
    return fail(
      "schema",
      "The database is none of this service's.",
      "name the right data directory with --data-dir",
    );
  }
  if (schema > SCHEMA_VERSION) {
    const message = `The database has schema ${schema}, this executable knows ${SCHEMA_VERSION}.`;
    return fail("schema", message, "use the newer version that wrote it, or restore a backup");
  }
  if (schema < SCHEMA_VERSION) {
    const message = `The database has schema ${schema}, this executable needs ${SCHEMA_VERSION}.`;
    return warn("schema", message, "start the server with this executable: it keeps a copy, then migrates");
  }
  return pass("schema", `Schema ${schema}, as this executable knows it.`);
}

async function checkIntegrity(tx: Reader, { quick }: DoctorTarget): Promise<Finding> {
  const faults = await findFaults(tx, { quick });
  if (faults.length === 0) {
    return pass(
      "database",
      quick ? "No damage found by the quick check." : "No damage found by the complete check.",
    );
  }
  return fail("database", `Damaged: ${faults.join("; ")}.`, RESTORE);
}

async function checkKey(tx: Reader, { dataDir, masterKey }: DoctorTarget): Promise<Finding> {
  let key: Uint8Array | null;
  try {
    key = await findMasterKey(dataDir, masterKey);
  } catch (error) {
    return fail("master key", (error as Error).message, "put the key back that this data was sealed with");
  }
  const state = await testMasterKey(tx, key === null ? null : new Sealer(key));
  const where = masterKey === null ? "master.key" : "RELAY_MASTER_KEY";
  if (state === "opens") return pass("master key", `${where} opens the secrets.`);
  if (state === "none") {
    return pass(
      "master key",
      key === null ? "None yet, and no secret needs one." : `${where} exists; no secret is sealed yet.`,
    );
  }
  return key === null
    ? fail(
        "master key",
        "There is no master key, so no secret can be opened.",
        "put master.key back, or set RELAY_MASTER_KEY",
      )
    : fail(
        "master key",
        `${where} is not the key the secrets were sealed under.`,
        "put the key back that came with this database",
      );
}

const LONG_WAIT_MS = 5 * MINUTE_MS;
/** A clock that the network sets is never this far off. */
const CLOCK_SLACK_MS = MINUTE_MS;
const MAX_NAMED = 5;

/** Ignores events that wait for a paused relay, a held environment or their retry. */
async function checkQueue(tx: Reader, { clock }: DoctorTarget): Promise<Finding> {
  const row = await tx.get<{ count: number; oldest: number | null }>(
    `SELECT count(*) AS count, min(event.created_at) AS oldest FROM event
     JOIN relay_key ON relay_key.key = event.relay_key JOIN relay ON relay.id = relay_key.relay_id JOIN environment ON environment.id = event.environment_id
     WHERE event.state = 'queued' AND event.next_attempt_at IS NULL AND event.runs = 0
       AND relay.state = 'active' AND environment.held_at IS NULL`,
  );
  const waiting = row?.count ?? 0;
  if (row === null || row.oldest === null) return pass("queue", "No event waits for its turn.");
  const waited = clock.now() - row.oldest;
  const message = `Waiting for their turn: ${formatCount(waiting, "event")}, the oldest for ${formatDuration(waited)}.`;
  if (waited < LONG_WAIT_MS) return pass("queue", message);
  return warn("queue", message, "check that the server runs, and read its log");
}

interface DeadCount {
  environmentId: number;
  name: string;
  count: number;
  newestAt: number;
}

/** Names the environments on hold, because nothing runs there until someone releases the hold. */
async function checkHolds(tx: Reader): Promise<Finding> {
  const held = await tx.all<{ place: string; heldAt: number }>(
    "SELECT app_id || '/' || name AS place, held_at AS heldAt FROM environment WHERE held_at IS NOT NULL ORDER BY held_at",
  );
  if (held.length === 0) return pass("holds", "No environment is on hold.");
  const names = held.slice(0, MAX_NAMED).map(({ place, heldAt }) => `${place} since ${toIso(heldAt)}`);
  const count = `${formatCount(held.length, "environment")} ${held.length === 1 ? "is" : "are"} on hold`;
  return warn(
    "holds",
    `${count} and run${held.length === 1 ? "s" : ""} nothing: ${names.join(", ")}.`,
    "release a hold with relay settings set held off (--app, --environment)",
  );
}

/** Counts dead events of any age as Home does: without those of a relay whose alert an owner resolved after the newest one died. */
async function checkDead(tx: Reader): Promise<Finding> {
  const found = await tx.all<DeadCount>(
    `SELECT event.environment_id AS environmentId, relay_name.name AS name, count(*) AS count, max(coalesce(event.finished_at, event.created_at)) AS newestAt
     FROM event JOIN relay_name ON relay_name.key = event.name_key
     WHERE event.state IN ('failed', 'dead') AND event.state = 'dead' GROUP BY event.environment_id, relay_name.name`,
  );
  const relays: DeadCount[] = [];
  for (const environmentId of new Set(found.map((one) => one.environmentId))) {
    const resolvedAt = await listResolvedTimes(tx, environmentId, "relay_failed");
    const isOpen = ({ name, newestAt }: DeadCount) =>
      newestAt > (resolvedAt.get(relayTarget(name)) ?? Number.NEGATIVE_INFINITY);
    relays.push(...found.filter((one) => one.environmentId === environmentId && isOpen(one)));
  }
  relays.sort((one, other) => other.count - one.count);
  const dead = relays.reduce((sum, relay) => sum + relay.count, 0);
  if (dead === 0) return pass("dead events", "No dead event waits for a decision.");
  const names = relays.slice(0, MAX_NAMED).map((relay) => `${relay.name} ${relay.count}`);
  const newestAt = Math.max(...relays.map((relay) => relay.newestAt));
  const counts = `${formatCount(dead, "dead event")} (${names.join(", ")}), the newest from ${toIso(newestAt)}.`;
  const troubles = relays.slice(0, MAX_NAMED).map(({ environmentId, name, newestAt: sinceMs }) => ({
    environmentId,
    code: "relay_failed",
    target: relayTarget(name),
    sinceMs,
  }));
  return warn(
    "dead events",
    [...(await readHints(tx, troubles)), counts].join(" "),
    "relay events list --state dead shows them: fix their cause, then replay them; or mark their alert as resolved",
  );
}

interface TroubleOfEnvironment extends Trouble {
  environmentId: number;
}

/** Reads the hints of each trouble once. Troubles of one environment share their rows. */
async function readHints(tx: Reader, troubles: readonly TroubleOfEnvironment[]): Promise<string[]> {
  const hints = new Set<string>();
  const known = new Map<number, TroubleRows>();
  for (const { environmentId, ...trouble } of troubles) {
    const rows = known.get(environmentId) ?? new TroubleRows(environmentId);
    known.set(environmentId, rows);
    for (const hint of await findHints(tx, rows, trouble)) hints.add(hint);
  }
  return [...hints];
}

async function checkProblems(tx: Reader): Promise<Finding> {
  const problems = await tx.all<TroubleOfEnvironment & { place: string }>(
    `SELECT environment_id AS environmentId, code, target, raised_at AS sinceMs, environment.app_id || '/' || environment.name AS place
     FROM problem JOIN environment ON environment.id = environment_id WHERE cleared_at IS NULL ORDER BY raised_at DESC`,
  );
  if (problems.length === 0) return pass("problems", "There is no open problem.");
  const names = problems
    .slice(0, MAX_NAMED)
    .map(({ code, target, place }) => `${code} on ${target} of ${place}`);
  const counts = `${formatCount(problems.length, "problem")}: ${names.join(", ")}.`;
  return warn(
    "problems",
    [...(await readHints(tx, problems.slice(0, MAX_NAMED))), counts].join(" "),
    "relay problems list says what to do about each of an environment (--app, --environment)",
  );
}

/** Names each relay of which events of rejected requests are missing, with its figures. */
async function checkRejected(tx: Reader, { clock }: DoctorTarget): Promise<Finding> {
  const relays = await listIncompleteRelays(tx);
  if (relays.length === 0) return pass("rejected requests", "No event of a rejected request is missing.");
  const messages: string[] = [];
  for (const relay of relays.slice(0, MAX_NAMED)) {
    const environment = await findEnvironmentById(tx, relay.environmentId);
    const { message } = await showRejected(tx, relay, clock.now());
    messages.push(`${environment?.appId}/${environment?.name}: ${message}`);
  }
  const more = relays.length - messages.length;
  if (more > 0) messages.push(`The same is true of ${formatCount(more, "more relay")}.`);
  return warn(
    "rejected requests",
    messages.join(" "),
    "relay relays rejected <relay> lists the missing events: import them, or close the list if nothing more is to come",
  );
}

async function checkClock(tx: Reader, { clock }: DoctorTarget): Promise<Finding> {
  const last = await tx.get<{ at: number }>("SELECT created_at AS at FROM event ORDER BY seq DESC LIMIT 1");
  const nowMs = clock.now();
  if (last !== null && last.at > nowMs + CLOCK_SLACK_MS) {
    return warn(
      "clock",
      `The last event came at ${toIso(last.at)}, which is after now (${toIso(nowMs)}).`,
      "set this machine's clock by the network; signed timestamps verify within five minutes only",
    );
  }
  return pass("clock", `It is ${toIso(nowMs)}, and no event comes from later.`);
}
