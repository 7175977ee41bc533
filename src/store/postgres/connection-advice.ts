/** Says what to do when a PostgreSQL server refuses or does not answer, in one clause for the command line and `relay doctor`. */
import { lookup } from "node:dns/promises";
import type { DatabaseUrl } from "../../base/database-url.ts";
import { causesOf } from "./error.ts";

const NO_POOLER =
  "connect to the server directly instead of through a pooler (PgBouncer), or use a pooler in session mode";
export const LET_GO =
  "end the session that holds a lock or slows the server, such as one that is idle in a transaction: the views pg_stat_activity and pg_locks show it";
const GOES_ON = "wait: another transaction conflicted with this one, and Relay runs it again";
/** A setting of the user, the database or the server that turns triggers off. */
const SILENCES_TRIGGERS = "session_replication_role";
const FIRE = `as an administrator, run ALTER ROLE … RESET ${SILENCES_TRIGGERS} and ALTER DATABASE … RESET ${SILENCES_TRIGGERS}, or GRANT SET ON PARAMETER ${SILENCES_TRIGGERS} TO this user`;
/** Advice by SQLSTATE. */
const BY_STATE: Readonly<Record<string, string>> = {
  "08P01": NO_POOLER,
  // A pooler in transaction mode gave the connection of a prepared statement to another client.
  "26000": NO_POOLER,
  "42P05": NO_POOLER,
  "25006":
    "connect to the primary, or let the database accept writes: a standby accepts none, and neither does a read-only database",
  "28000": "let the server accept this user from this machine, in its pg_hba.conf or with sslmode=require",
  "28P01":
    "check the user and the password in the URL; in the password, write : / ? # % @ as %3A %2F %3F %23 %25 %40",
  "3D000": "create the database with createdb, or correct its name in the URL",
  "3F000":
    "give this user a schema for its tables: as an administrator, run ALTER ROLE … SET search_path = public, or name another schema",
  "40001": GOES_ON,
  "40P01": GOES_ON,
  "42501":
    "let this user own the database and its tables: as an administrator, run ALTER DATABASE … OWNER TO …, or GRANT CREATE, USAGE ON SCHEMA public TO …",
  "53100": "free space on the database's disk",
  "53300":
    "allow eleven connections for each node, and at least four: raise max_connections or the CONNECTION LIMIT of this user or database, or close other connections",
  "55P03": LET_GO,
  "57014": LET_GO,
  "57P03": "wait until it has started",
};
/** Advice by the error codes of the driver and of TLS. */
const BY_CODE: readonly [RegExp, string][] = [
  [
    /^ERR_POSTGRES_CONNECTION_(?:REFUSED|TIMEOUT)$/,
    "check that PostgreSQL runs there and accepts connections from this machine",
  ],
  [/^ERR_POSTGRES_TLS/, "enable TLS on the server (ssl = on), or use sslmode=disable on a private network"],
  [/^ERR_LIMITS_NOT_KEPT$/, NO_POOLER],
  [
    /^ERR_TLS_NO_ROOTS$/,
    "install the package ca-certificates, or let sslrootcert name a PEM file with the certificate authority of the server",
  ],
  [/^ERR_TLS_CERT_ALTNAME/, "use the host name in the server's certificate, or sslmode=verify-ca"],
  [/^CERT_(?:HAS_EXPIRED|NOT_YET_VALID)$/, "give the server a certificate that is valid now"],
  [
    /^(?:UNABLE_|DEPTH_|SELF_SIGNED|CERT_)/,
    "let sslrootcert name a PEM file with the certificate authority of the server",
  ],
  [/^E(?:NOENT|ACCES|ISDIR)$/, "check the file that sslrootcert names"],
];
const OTHERWISE = "check that PostgreSQL runs there and accepts connections of this user";

/** Returns what to do about the error. The clause begins with a small letter and ends without a period. */
export function adviseOn(error: unknown): string {
  for (const { errno, code, message } of causesOf(error)) {
    if (errno === "42501" && message.includes(SILENCES_TRIGGERS)) return FIRE;
    const known = typeof errno === "string" ? BY_STATE[errno] : undefined;
    if (known !== undefined) return known;
    const ofCode = typeof code === "string" ? BY_CODE.find(([codes]) => codes.test(code)) : undefined;
    if (ofCode !== undefined) return ofCode[1];
  }
  return OTHERWISE;
}

/** Explains why a connection failed. The driver does not say whether the name or the server is the cause, or which right is missing. */
export async function sayWhere({ host, port }: DatabaseUrl, error: Error): Promise<string> {
  if (error.message.includes(SILENCES_TRIGGERS))
    return `${SILENCES_TRIGGERS} is replica for this user, so triggers would not run and other nodes would not notice writes. This user may not set it to origin.`;
  if (!error.message.includes("ERR_POSTGRES_CONNECTION_REFUSED")) return error.message;
  if (!(await knowsHost(host))) return `no address was found for the host ${host}.`;
  return `no server accepts connections at ${host}:${port}.`;
}

/** Returns whether the host's name resolves. The driver reports an unknown name as a refused connection. */
export function knowsHost(host: string): Promise<boolean> {
  return lookup(host).then(
    () => true,
    () => false,
  );
}
