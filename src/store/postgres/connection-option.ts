/** Defines the options and session settings of connections to PostgreSQL. */
import { getCACertificates } from "node:tls";
import type { SQL } from "bun";
import { type DatabaseUrl, SYSTEM_ROOTS } from "../../base/database-url.ts";
import { LimitsNotKept } from "./error.ts";

export const CONNECT_WITHIN_S = 5;

/** Removes the time limits of a session with one long transaction, even if its user has some. Older servers have no `transaction_timeout`. */
export const AS_LONG_AS_IT_TAKES =
  "SET statement_timeout = 0; SELECT set_config('transaction_timeout', '0', false) WHERE current_setting('transaction_timeout', true) IS NOT NULL";

/** Turns triggers on. Not every user may change this setting, so it is set only if triggers are off. */
const FIRE_TRIGGERS =
  "SELECT set_config('session_replication_role', 'origin', false) WHERE current_setting('session_replication_role') = 'replica'";

/** The longest wait for a lock, also for one of a row that another program holds. */
export const LOCK_TIMEOUT = "15s";

/**
 * Settings of each session, in the form in which the server shows them. The server ends a statement, an idle transaction or a wait for a lock that
 * takes longer. Otherwise a node that hangs could stop the others. Statements set them, because poolers drop the options of a new connection.
 */
export const LIMITS: Readonly<Record<string, string>> = {
  statement_timeout: "30s",
  idle_in_transaction_session_timeout: "5s",
  lock_timeout: LOCK_TIMEOUT,
  default_transaction_isolation: "read committed",
  TimeZone: "UTC",
  synchronous_commit: "on",
};

export const SET_LIMITS = Object.entries(LIMITS)
  .map(([name, value]) => `SET ${name} = '${value}'`)
  .join("; ");
/** Selects one row for each limit. */
export const READ_LIMITS = `SELECT name, current_setting(name) AS value FROM (VALUES ${Object.keys(LIMITS)
  .map((name) => `('${name}')`)
  .join(", ")}) AS asked (name)`;

/** Throws LimitsNotKept if the rows of READ_LIMITS differ from LIMITS. */
export function requireLimits(rows: readonly { name: string; value: string }[]): void {
  const had = new Map(rows.map(({ name, value }) => [name, value]));
  const missing = Object.entries(LIMITS).filter(([name, value]) => had.get(name) !== value);
  if (missing.length === 0) return;
  const which = missing.map(([name, value]) => `${name} is ${had.get(name)} and must be ${value}`);
  throw new LimitsNotKept(
    `A session of this server does not keep these settings: ${which.join(", ")}. A proxy in front of the server, such as a pooler, applies them to another session. Without them, one node that hangs would stop the others.`,
  );
}

/**
 * Settings at the beginning of each session. JIT compilation is off, because it takes longer than these short statements. Triggers are on even for a
 * user whose sessions are set to replica, because they count rows and notify other nodes. The other settings define how texts and bytes are written,
 * and let a session be idle.
 */
const PLAINLY = `SET jit = off; ${FIRE_TRIGGERS}; SET standard_conforming_strings = on; SET bytea_output = 'hex'; SET idle_session_timeout = 0`;

/** `by values` plans each statement for its values, which can select a few rows or a million. `once` lets the server use one plan for all values. */
export const BEGINS = {
  once: PLAINLY,
  "by values": `${PLAINLY}; SET plan_cache_mode = force_custom_plan`,
};

/** Returns the options of `Bun.SQL` for one connection. They contain the password, so callers must not store them. */
export function connectionOptions(place: DatabaseUrl): SQL.PostgresOrMySQLOptions {
  const { host, port, user, database, password, sslMode, sslRootCert } = place;
  return {
    adapter: "postgres",
    hostname: host,
    port,
    username: user,
    password,
    database,
    max: 1,
    tls: sslRootCert === null ? sslMode : authorities(sslRootCert, sslMode === "verify-full"),
  };
}

/** Returns the options of one permanent connection. `name` appears in the server's list of sessions. */
export function soleOptions(place: DatabaseUrl, name: string): SQL.PostgresOrMySQLOptions {
  return {
    ...connectionOptions(place),
    bigint: true,
    idleTimeout: 0,
    maxLifetime: 0,
    connectionTimeout: CONNECT_WITHIN_S,
    connection: { application_name: name },
  };
}

/**
 * Returns TLS options that trust only these authorities. `file` is a PEM file or SYSTEM_ROOTS. `checksName` requires that the certificate names the
 * host.
 */
function authorities(
  file: string,
  checksName: boolean,
): Bun.TLSOptions & { checkServerIdentity?: () => undefined } {
  const tls = { ca: file === SYSTEM_ROOTS ? readSystemRoots() : Bun.file(file), rejectUnauthorized: true };
  return checksName ? tls : { ...tls, checkServerIdentity: () => undefined };
}

/** Reads this machine's root certificates. Throws NoRoots without any, because an empty list would mean those that come with the executable. */
function readSystemRoots(): string[] {
  const roots = getCACertificates("system");
  if (roots.length > 0) return [...roots];
  throw new NoRoots("this machine has no root certificates, which sslrootcert=system asks for");
}

class NoRoots extends Error {
  readonly code = "ERR_TLS_NO_ROOTS";
}
