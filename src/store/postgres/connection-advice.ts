/** Says what to do when a PostgreSQL server refuses or does not answer, in one clause for the command line and `relay doctor`. */
import { lookup } from "node:dns/promises";
import type { DatabaseUrl } from "../../base/database-url.ts";
import { causesOf } from "./error.ts";

const NO_POOLER = "name the server itself instead of a pooler (PgBouncer), or one in session mode";
export const LET_GO =
  "end what holds a lock or is slow there, such as a session left idle in a transaction: the server's views pg_stat_activity and pg_locks name it";
const GOES_ON =
  "wait: what was at work there at the same moment stood in its way, and it begins again by itself";
/** A setting of the user, the database or the server that turns triggers off. */
const SILENCES_TRIGGERS = "session_replication_role";
const FIRE = `as an administrator, ALTER ROLE … RESET ${SILENCES_TRIGGERS} and ALTER DATABASE … RESET ${SILENCES_TRIGGERS}, or GRANT SET ON PARAMETER ${SILENCES_TRIGGERS} TO this user`;
/** Advice by SQLSTATE. */
const BY_STATE: Readonly<Record<string, string>> = {
  "08P01": NO_POOLER,
  // A pooler in transaction mode gave the connection of a prepared statement to another client.
  "26000": NO_POOLER,
  "42P05": NO_POOLER,
  "25006":
    "name the primary, or let the database take writes: a standby takes none, and neither does what is set to read only",
  "28000": "let the server take this user from this machine, in its pg_hba.conf or with sslmode=require",
  "28P01":
    "look at the user and the password in the URL; each of : / ? # % @ in the password is written %3A %2F %3F %23 %25 %40",
  "3D000": "make the database with createdb, or fix its name in the URL",
  "3F000":
    "let this user have a schema for its tables: as an administrator, ALTER ROLE … SET search_path = public, or the schema that is meant",
  "40001": GOES_ON,
  "40P01": GOES_ON,
  "42501":
    "let this user own the database and what is in it: as an administrator, ALTER DATABASE … OWNER TO …, or GRANT CREATE, USAGE ON SCHEMA public TO …",
  "53100": "make room on the database's disk",
  "53300":
    "let each node have eleven connections, and four at the least: raise max_connections, or the CONNECTION LIMIT of this user or database, or end what holds them",
  "55P03": LET_GO,
  "57014": LET_GO,
  "57P03": "wait until it has started",
};
/** Advice by the error codes of the driver and of TLS. */
const BY_CODE: readonly [RegExp, string][] = [
  [
    /^ERR_POSTGRES_CONNECTION_(?:REFUSED|TIMEOUT)$/,
    "look that PostgreSQL runs there and takes connections from this machine",
  ],
  [/^ERR_POSTGRES_TLS/, "let the server speak TLS (ssl = on), or take sslmode=disable on a private network"],
  [/^ERR_LIMITS_NOT_KEPT$/, NO_POOLER],
  [
    /^ERR_TLS_NO_ROOTS$/,
    "install them (the package ca-certificates), or let sslrootcert name a PEM file with the authority that the server's certificate is of",
  ],
  [/^ERR_TLS_CERT_ALTNAME/, "name the server as its certificate does, or take sslmode=verify-ca"],
  [/^CERT_(?:HAS_EXPIRED|NOT_YET_VALID)$/, "give the server a certificate that is good now"],
  [
    /^(?:UNABLE_|DEPTH_|SELF_SIGNED|CERT_)/,
    "let sslrootcert name a PEM file with the authority that the server's certificate is of",
  ],
  [/^E(?:NOENT|ACCES|ISDIR)$/, "look at the file that sslrootcert names"],
];
const OTHERWISE = "look that PostgreSQL runs there, and takes connections of this user";

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
    return `${SILENCES_TRIGGERS} is replica for this user, so no trigger would fire and no node would hear what another saves, and this user may not set it to origin.`;
  if (!error.message.includes("ERR_POSTGRES_CONNECTION_REFUSED")) return error.message;
  if (!(await knowsHost(host))) return `this machine knows no host ${host}.`;
  return `no server accepts connections at ${host}:${port}.`;
}

/** Returns whether the host's name resolves. The driver reports an unknown name as a refused connection. */
export function knowsHost(host: string): Promise<boolean> {
  return lookup(host).then(
    () => true,
    () => false,
  );
}
