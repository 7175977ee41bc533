/** Checks by its answers whether a PostgreSQL server fits this service. */
import { type Clock, systemClock, toIso } from "../../base/clock.ts";
import type { DatabaseUrl } from "../../base/database-url.ts";
import { MINUTE_MS } from "../../base/limit.ts";
import { SCHEMA_VERSION } from "../../store/migrate/migrations.ts";
import type { Reader } from "../../store/port.ts";
import { adviseOn } from "../../store/postgres/connection-advice.ts";
import { LIMITS, READ_LIMITS, requireLimits } from "../../store/postgres/connection-option.ts";
import { LimitsNotKept } from "../../store/postgres/error.ts";
import {
  findUnfit,
  hearsNotices,
  lookInto,
  type OpenReader,
  readOwnSettings,
  readSchemaThere,
} from "../../store/postgres/inspection.ts";
import { listTableFaults } from "../../store/postgres/migrate.ts";
import { MOST_WRITERS } from "../../store/postgres/writer-pool.ts";
import { readMark } from "../../store/transfer/mark.ts";
import { type DoctorTarget, type Finding, fail, formatCount, formatDuration, pass, warn } from "./finding.ts";
import { CLOCK_ADVICE, checkNodes } from "./node-check.ts";
import { checkTables } from "./table-check.ts";

/** Four writers and their commit watcher, four readers, the listener, and one connection that migrates. */
const MAX_NODE_CONNECTIONS = 11;
/** A node starts with one reader, and the migration's connection ends first. */
const MIN_NODE_CONNECTIONS = 4;
const CLOCK_SLACK_MS = MINUTE_MS;

/** Returns the findings, and a reader where this version's checks can read its rows. */
export async function checkServer(
  database: DatabaseUrl,
  { clock }: DoctorTarget,
): Promise<{ findings: Finding[]; reader: OpenReader | null }> {
  let reader: OpenReader;
  try {
    reader = await lookInto(database);
  } catch (error) {
    return { findings: [rejectConnection(database, error as Error)], reader: null };
  }
  const findings = [pass("connection", `${database} answers.`)];
  try {
    const unfit = await findUnfit(reader);
    if (unfit !== null) findings.push(fail(unfit.check, unfit.why, unfit.todo));
    // Behind a pooler, statements of several clients may mix, and a standby sends no notices. Later checks would mean nothing.
    if (unfit?.check !== "standby") findings.push(await checkPooler(database));
    if (findings.every(({ state }) => state === "ok")) {
      const server = { settings: await readOwnSettings(database, OWN_SETTINGS), clock };
      for (const check of SERVER_CHECKS) findings.push(await check(reader, server));
      const schema = await readSchemaThere(reader);
      findings.push(checkServerSchema(schema), ...(await checkMark(reader, schema)));
      if (schema === SCHEMA_VERSION) {
        const tables = checkTables(await listTableFaults(reader, { parts: true }));
        findings.push(
          tables,
          await checkCollation(reader),
          ...(await checkNodes(reader)),
          await checkWriters(reader),
        );
        if (tables.state === "ok") return { findings, reader };
      }
    }
  } catch (error) {
    findings.push(fail("database", `It cannot be read: ${toSentence(error as Error)}`, ASK_ADMINISTRATOR));
  }
  await reader[Symbol.asyncDispose]();
  return { findings, reader: null };
}

const ASK_ADMINISTRATOR = "ask the administrator of the database, or read its log";

function toSentence({ message }: Error): string {
  return message.replace(/\.?$/, ".");
}

function rejectConnection(database: DatabaseUrl, error: Error): Finding {
  if (error instanceof LimitsNotKept) return fail("limits", error.message, adviseOn(error));
  return fail("connection", `${database} cannot be used. ${toSentence(error)}`, adviseOn(error));
}

/** A pooler in transaction mode breaks what belongs to a connection: LISTEN, and session locks. */
async function checkPooler(database: DatabaseUrl): Promise<Finding> {
  if (await hearsNotices(database))
    return pass(
      "pooler",
      "Notifications reach other connections, so no pooler in transaction mode is in use.",
    );
  return fail(
    "pooler",
    "Notifications do not reach other connections: a pooler in transaction mode is in use, so nodes would not notice each other's writes.",
    "name the server or a pooler in session mode in --database or RELAY_DATABASE; a node needs few connections",
  );
}

/** The server's settings, as a connection without options has them. */
interface Server {
  settings: Record<string, string>;
  clock: Clock;
}

const OWN_SETTINGS = [
  "server_version",
  "server_encoding",
  "fsync",
  "full_page_writes",
  "synchronous_commit",
  "session_replication_role",
  "TimeZone",
];

type ServerCheck = (tx: Reader, server: Server) => Promise<Finding>;

const SERVER_CHECKS: readonly ServerCheck[] = [
  async (_, { settings }) =>
    pass("version", `PostgreSQL ${settings.server_version}. Relay is tested on 15 to 18.`),
  async (_, { settings }) => pass("encoding", `${settings.server_encoding}: it holds every text that comes.`),
  checkPrivileges,
  checkDurability,
  checkTriggers,
  checkOffset,
  checkDistance,
  checkTimeZone,
  checkConnections,
  checkLimits,
  checkNotices,
];

/** The service creates its tables itself, and a newer version changes them. */
async function checkPrivileges(tx: Reader): Promise<Finding> {
  const row = await tx.get<{ who: string; may: number; others: number }>(
    `SELECT current_user AS who, CASE WHEN has_schema_privilege(current_schema(), 'CREATE') THEN 1 ELSE 0 END AS may,
       (SELECT count(*) FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'
        AND NOT pg_has_role(relowner, 'USAGE')) AS others`,
  );
  const who = row?.who ?? "";
  if (row?.may !== 1)
    return fail(
      "privileges",
      `${who} may make no tables there.`,
      `as an administrator: ALTER DATABASE … OWNER TO ${who}, or GRANT CREATE, USAGE ON SCHEMA public TO ${who}`,
    );
  if (row.others > 0)
    return fail(
      "privileges",
      `${formatCount(row.others, "table")} there ${row.others === 1 ? "belongs" : "belong"} to another user than ${who}, so a newer version cannot change them.`,
      `ALTER TABLE … OWNER TO ${who}`,
    );
  return pass("privileges", `${who} may make and change its tables.`);
}

async function checkDurability(_: Reader, { settings }: Server): Promise<Finding> {
  const off = ["fsync", "full_page_writes"].filter((name) => settings[name] === "off");
  if (off.length > 0)
    return fail(
      "durability",
      `${off.join(" and ")} ${off.length === 1 ? "is" : "are"} off: a power cut loses or damages what was acknowledged.`,
      "set them on in the server's configuration",
    );
  const { synchronous_commit: commit = "on" } = settings;
  const own =
    commit === "on" ? "" : ` The server's own synchronous_commit is ${commit}; this service asks for on.`;
  return pass("durability", `fsync is on, and a commit is answered when it is on the disk.${own}`);
}

/** A user whose triggers the service could not enable fails before this check. */
async function checkTriggers(_: Reader, { settings }: Server): Promise<Finding> {
  if (settings.session_replication_role !== "replica")
    return pass("triggers", "They run: Relay counts writes of other programs and notifies every node.");
  return warn(
    "triggers",
    "session_replication_role is replica for this user. The service sets it to origin for its own connections. Nodes do not notice writes of other programs that use this user.",
    "as an administrator, run ALTER ROLE … RESET session_replication_role, and the same of the database",
  );
}

/** Leases use the server's time. Signatures, schedules and retries use each machine's. */
async function checkOffset(tx: Reader, { clock }: Server): Promise<Finding> {
  const beforeMs = clock.now();
  const row = await tx.get<{ ms: number }>(
    "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS ms",
  );
  const offsetMs = (row?.ms ?? 0) - (beforeMs + clock.now()) / 2;
  const serverTime = toIso(row?.ms ?? 0);
  if (Math.abs(offsetMs) <= CLOCK_SLACK_MS)
    return pass("clock offset", `The server's clock says ${serverTime}, as this machine's does.`);
  return warn(
    "clock offset",
    `The server's clock says ${serverTime}, this machine's ${toIso(clock.now())}: ${formatDuration(Math.round(Math.abs(offsetMs) / MINUTE_MS) * MINUTE_MS)} apart.`,
    CLOCK_ADVICE,
  );
}

/** The round trips whose shortest is the distance. The first one plans the statement. */
const ROUND_TRIPS = 5;
/** The distance from which the check warns. 64 callers of one environment then get half of what they get near the database. */
const FAR_MS = 5;

/** Every write waits for round trips to the database. */
async function checkDistance(tx: Reader): Promise<Finding> {
  let leastMs = Number.POSITIVE_INFINITY;
  for (let trip = 0; trip < ROUND_TRIPS; trip++) {
    const begunMs = systemClock.monotonicMs();
    await tx.get("SELECT ?1::bigint AS one", 1);
    leastMs = Math.min(leastMs, systemClock.monotonicMs() - begunMs);
  }
  const message = `A round trip to the server takes ${leastMs.toFixed(1)} ms. An event by itself waits for one to three.`;
  return leastMs < FAR_MS
    ? pass("distance", message)
    : warn("distance", message, "run the nodes in the region and the network of the database");
}

async function checkTimeZone(_: Reader, { settings }: Server): Promise<Finding> {
  const { TimeZone: zone = "" } = settings;
  return pass("time zone", `${zone}; times are kept as numbers, which no time zone changes.`);
}

async function checkConnections(tx: Reader): Promise<Finding> {
  const row = await tx.get<{ most: number; used: number }>(
    `SELECT least(
         current_setting('max_connections')::bigint - current_setting('superuser_reserved_connections')::bigint,
         (SELECT nullif(datconnlimit, -1) FROM pg_database WHERE datname = current_database()),
         (SELECT nullif(rolconnlimit, -1) FROM pg_roles WHERE rolname = current_user)) AS most,
       (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend') AS used`,
  );
  const free = (row?.most ?? 0) - (row?.used ?? 0);
  const message = `${free} of ${row?.most} are free; a node takes up to ${MAX_NODE_CONNECTIONS}.`;
  if (free >= MAX_NODE_CONNECTIONS) return pass("connections", message);
  const todo =
    "raise max_connections, or the CONNECTION LIMIT of this user or database, or close other connections";
  if ((row?.most ?? 0) >= MIN_NODE_CONNECTIONS) return warn("connections", message, todo);
  return fail(
    "connections",
    `${row?.most} at most: no node starts with fewer than ${MIN_NODE_CONNECTIONS}, and one takes up to ${MAX_NODE_CONNECTIONS}.`,
    todo,
  );
}

/** Checks the limits of a connection that was opened as a node opens it. */
async function checkLimits(tx: Reader): Promise<Finding> {
  try {
    requireLimits(await tx.all<{ name: string; value: string }>(READ_LIMITS));
  } catch (error) {
    return fail("limits", (error as Error).message, adviseOn(error));
  }
  const { statement_timeout, idle_in_transaction_session_timeout, lock_timeout } = LIMITS;
  return pass(
    "limits",
    `The server ends a node's statement after ${statement_timeout}, its wait for a lock after ${lock_timeout}, and a transaction of a node that hangs after ${idle_in_transaction_session_timeout}.`,
  );
}

/** Parts of the notification queue from which the check warns and fails. */
const WARN_QUEUE_SHARE = 0.1;
const FAIL_QUEUE_SHARE = 0.5;

/**
 * Checks the notification queue. The server keeps notifications until the slowest listener has read them, and a full queue fails every
 * write.
 */
export async function checkNotices(tx: Reader): Promise<Finding> {
  const row = await tx.get<{ used: number }>("SELECT pg_notification_queue_usage() AS used");
  const used = row?.used ?? 0;
  const message = `The server's queue of notifications is ${Math.round(used * 100)} % full.`;
  if (used < WARN_QUEUE_SHARE) return pass("notification queue", message);
  const todo =
    "end the session that listens and stays in a transaction: the server's log names its process, and pg_stat_activity shows it as idle in transaction";
  if (used < FAIL_QUEUE_SHARE) return warn("notification queue", message, todo);
  return fail("notification queue", `${message} Once it is full, no node can write.`, todo);
}

function checkServerSchema(schema: number | null): Finding {
  if (schema === SCHEMA_VERSION) return pass("schema", `Schema ${schema}, as this executable knows it.`);
  if (schema === null)
    return warn(
      "schema",
      "There is none yet.",
      "start a server on it (relay serve) or move to it (relay move): both create the schema",
    );
  return schema > SCHEMA_VERSION
    ? fail(
        "schema",
        `The database has schema ${schema}, this executable knows ${SCHEMA_VERSION}.`,
        "use the newer version that wrote it",
      )
    : warn(
        "schema",
        `The database has schema ${schema}, this executable needs ${SCHEMA_VERSION}.`,
        "dump the database, then start one server of this version, which migrates it",
      );
}

async function checkMark(tx: Reader, schema: number | null): Promise<Finding[]> {
  const mark = schema === null ? null : await readMark(tx);
  if (mark === null) return [];
  const todo =
    "start the service with that database; relay move --undo lets one start on this one, with its rows at that time";
  return [fail("moved", `The rows were moved to ${mark.to} at ${toIso(mark.at)}.`, todo)];
}

/** Says what more nodes give to this database. */
async function checkWriters(tx: Reader): Promise<Finding> {
  const row = await tx.get<{ environments: number }>("SELECT count(*) AS environments FROM environment");
  const count = row?.environments ?? 0;
  const side =
    count < 2
      ? "More nodes record no more events"
      : "Writes of different environments run at the same time, so several nodes record more events";
  return pass(
    "writers",
    `${formatCount(count, "environment")}, with one writer each. ${side}; a node writes for up to ${MOST_WRITERS} of them.`,
  );
}

/** Texts must compare by their bytes, so that no update of the system's libraries changes an index. */
async function checkCollation(tx: Reader): Promise<Finding> {
  const rows = await tx.all<{ name: string }>(
    `SELECT c.table_name || '.' || c.column_name AS name FROM information_schema.columns AS c
     WHERE c.table_schema = current_schema() AND c.data_type = 'text' AND c.collation_name IS DISTINCT FROM 'C'
     ORDER BY 1 LIMIT 5`,
  );
  if (rows.length === 0)
    return pass("collation", "Texts compare by their bytes, whatever the system's libraries say.");
  return fail(
    "collation",
    `${rows.map(({ name }) => name).join(", ")} compare by the system's libraries.`,
    'ALTER TABLE … ALTER COLUMN … TYPE text COLLATE "C"',
  );
}
