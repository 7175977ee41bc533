/** What a connection to PostgreSQL is opened with. */
import type { SQL } from "bun";
import type { DatabaseUrl } from "../../ground/database-url.ts";

export const CONNECT_WITHIN_S = 5;

/** Of a session whose one transaction takes as long as its rows take, whatever its user is given; older servers know no time of a transaction. */
export const AS_LONG_AS_IT_TAKES =
  "SET statement_timeout = 0; SELECT set_config('transaction_timeout', '0', false) WHERE current_setting('transaction_timeout', true) IS NOT NULL";

/** It is no right that every user has, so it is asked for only where it is needed. */
const FIRE_TRIGGERS =
  "SELECT set_config('session_replication_role', 'origin', false) WHERE current_setting('session_replication_role') = 'replica'";

/** The server ends what takes longer, in ms: a statement, a transaction whose process hangs, a wait for another's lock; others wait for its locks. */
export const SESSION = {
  statement_timeout: 30_000,
  idle_in_transaction_session_timeout: 5_000,
  lock_timeout: 15_000,
  default_transaction_isolation: "read committed",
  timezone: "UTC",
  synchronous_commit: "on",
};

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

/** `checksName`: the certificate is the host's own, not only one of theirs. */
function authorities(
  file: string,
  checksName: boolean,
): Bun.TLSOptions & { checkServerIdentity?: () => undefined } {
  const tls = { ca: Bun.file(file), rejectUnauthorized: true };
  return checksName ? tls : { ...tls, checkServerIdentity: () => undefined };
}
