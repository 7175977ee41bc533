/** What a connection to PostgreSQL is opened with. */
import type { SQL } from "bun";
import type { DatabaseUrl } from "../../ground/database-url.ts";

export const CONNECT_WITHIN_S = 5;

/** Of a session whose one transaction takes as long as its rows take, whatever its user is given; older servers know no time of a transaction. */
export const AS_LONG_AS_IT_TAKES =
  "SET statement_timeout = 0; SELECT set_config('transaction_timeout', '0', false) WHERE current_setting('transaction_timeout', true) IS NOT NULL";

/** It is no right that every user has, so it is asked for only where it is needed. */
export const FIRE_TRIGGERS =
  "SELECT set_config('session_replication_role', 'origin', false) WHERE current_setting('session_replication_role') = 'replica'";

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
