/** What a connection to PostgreSQL is opened with. */
import { getCACertificates } from "node:tls";
import type { SQL } from "bun";
import { type DatabaseUrl, SYSTEM_ROOTS } from "../../base/database-url.ts";
import { LimitsNotKept } from "./error.ts";

export const CONNECT_WITHIN_S = 5;

/** Of a session whose one transaction takes as long as its rows take, whatever its user is given; older servers know no time of a transaction. */
export const AS_LONG_AS_IT_TAKES =
  "SET statement_timeout = 0; SELECT set_config('transaction_timeout', '0', false) WHERE current_setting('transaction_timeout', true) IS NOT NULL";

/** It is no right that every user has, so it is asked for only where it is needed. */
const FIRE_TRIGGERS =
  "SELECT set_config('session_replication_role', 'origin', false) WHERE current_setting('session_replication_role') = 'replica'";

/**
 * Settings of each session, as the server writes them. The server ends what takes longer: a statement, a transaction whose process hangs, a wait for
 * another's lock. Without these limits a node that hangs stops the others. They are set by statements: poolers drop what a connection asks for as
 * it begins.
 */
export const LIMITS: Readonly<Record<string, string>> = {
  statement_timeout: "30s",
  idle_in_transaction_session_timeout: "5s",
  lock_timeout: "15s",
  default_transaction_isolation: "read committed",
  TimeZone: "UTC",
  synchronous_commit: "on",
};

export const SET_LIMITS = Object.entries(LIMITS)
  .map(([name, value]) => `SET ${name} = '${value}'`)
  .join("; ");
/** One row for each limit. */
export const READ_LIMITS = `SELECT name, current_setting(name) AS value FROM (VALUES ${Object.keys(LIMITS)
  .map((name) => `('${name}')`)
  .join(", ")}) AS asked (name)`;

/** Throws LimitsNotKept where a session answers READ_LIMITS with others. */
export function requireLimits(rows: readonly { name: string; value: string }[]): void {
  const had = new Map(rows.map(({ name, value }) => [name, value]));
  const missing = Object.entries(LIMITS).filter(([name, value]) => had.get(name) !== value);
  if (missing.length === 0) return;
  const which = missing.map(([name, value]) => `${name} is ${had.get(name)} and must be ${value}`);
  throw new LimitsNotKept(
    `A session there does not keep the limits that it is given: ${which.join(", ")}. What is in between, such as a pooler, gives them to another session, and one node that hangs would stop the others.`,
  );
}

/**
 * A statement takes milliseconds: what compiling it would save is less than what it costs. Triggers count, and tell other nodes, so they fire also
 * where a user's connections are said to be a replica's; not every user may say so. The rest is how texts and bytes are written here.
 */
const PLAINLY = `SET jit = off; ${FIRE_TRIGGERS}; SET standard_conforming_strings = on; SET bytea_output = 'hex'; SET idle_session_timeout = 0`;

/** The values say whether a few rows are asked for or a million; a plan that is made once for all of them takes it for something between. */
export const BEGINS = {
  once: PLAINLY,
  "by values": `${PLAINLY}; SET plan_cache_mode = force_custom_plan`,
};

/** What `Bun.SQL` is told of where the database is; made for a connection and kept nowhere, since it holds the password. */
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

/** The same of one connection that stays, by this name in the server's own lists. */
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

/** `file`: as DatabaseUrl has it. `checksName`: the certificate is the host's own, not only one of theirs. */
function authorities(
  file: string,
  checksName: boolean,
): Bun.TLSOptions & { checkServerIdentity?: () => undefined } {
  const tls = { ca: file === SYSTEM_ROOTS ? readSystemRoots() : Bun.file(file), rejectUnauthorized: true };
  return checksName ? tls : { ...tls, checkServerIdentity: () => undefined };
}

/** Throws where this machine has none: an empty list would mean those that come with the executable. */
function readSystemRoots(): string[] {
  const roots = getCACertificates("system");
  if (roots.length > 0) return [...roots];
  throw new NoRoots("this machine has no root certificates, which sslrootcert=system asks for");
}

class NoRoots extends Error {
  readonly code = "ERR_TLS_NO_ROOTS";
}
