/** Parses the URL of a PostgreSQL database and hides its password. The password is masked as text, as JSON and in inspection. */

const SSL_MODES = ["disable", "prefer", "require", "verify-ca", "verify-full"] as const;
type SslMode = (typeof SSL_MODES)[number];

const DEFAULT_PORT = 5432;
const MASK = "••••";
const EXAMPLE = "postgres://relay:<password>@db.example.com:5432/relay?sslmode=verify-full";
const PARAMETERS = ["sslmode", "sslrootcert"];
/** The value of sslrootcert that means this machine's root certificates, as in libpq. It requires verify-full. */
export const SYSTEM_ROOTS = "system";

interface Parts {
  host: string;
  port: number;
  user: string;
  database: string;
  sslMode: SslMode;
  /** A PEM file with the trusted authorities, or SYSTEM_ROOTS. Null for those that come with the executable. */
  sslRootCert: string | null;
}

export class DatabaseUrl implements Parts {
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly database: string;
  readonly sslMode: SslMode;
  readonly sslRootCert: string | null;
  readonly #password: string;

  constructor({ host, port, user, database, sslMode, sslRootCert }: Parts, password: string) {
    this.host = host;
    this.port = port;
    this.user = user;
    this.database = database;
    this.sslMode = sslMode;
    this.sslRootCert = sslRootCert;
    this.#password = password;
  }

  /** The password, only for the connection. Empty without one. */
  get password(): string {
    return this.#password;
  }

  /** Returns the URL with the password masked. */
  toString(): string {
    const host = this.host.includes(":") ? `[${this.host}]` : this.host;
    const user = encodeURIComponent(this.user) + (this.#password === "" ? "" : `:${MASK}`);
    const mode = this.sslMode === "prefer" ? "" : `?sslmode=${this.sslMode}`;
    return `postgres://${user}@${host}:${this.port}/${encodeURIComponent(this.database)}${mode}`;
  }

  toJSON(): string {
    return this.toString();
  }

  [Symbol.for("nodejs.util.inspect.custom")](): string {
    return this.toString();
  }
}

/**
 * Returns the URL, or a text that says what is wrong with it. The text follows the name of the URL's source in a sentence. Neither shows the
 * password.
 */
export function readDatabaseUrl(text: string): DatabaseUrl | string {
  const url = URL.parse(text);
  if (!/^postgres(ql)?:\/\//i.test(text))
    return `is no URL of a PostgreSQL database: write it as ${EXAMPLE}.`;
  if (url === null || url.hash !== "")
    return `cannot be read: write it as ${EXAMPLE}, with every : / ? # % and @ of the password as %3A %2F %3F %23 %25 and %40.`;
  const parts = [url.username, url.password, url.pathname.slice(1), url.hostname].map(decode);
  const [user = null, password = null, database = null, host = null] = parts;
  if (user === null || password === null || database === null || host === null)
    return "has a % that begins no character: write a % of the password as %25.";
  if (host === "") return `names no host: write it as ${EXAMPLE}.`;
  if (user === "") return `names no user: write it as ${EXAMPLE}.`;
  // One slash precedes the database's name. A slash inside the name must be written %2F.
  if (database === "" || url.pathname.lastIndexOf("/") > 0)
    return `names no database behind the host: write it as ${EXAMPLE}.`;
  if ([user, password, database].some((part) => part.includes("\0"))) return "has a NUL (%00): leave it out.";
  const given = [...url.searchParams.keys()];
  const unknown = given.find((name) => !PARAMETERS.includes(name));
  if (unknown !== undefined)
    return `has ${JSON.stringify(unknown)} after its question mark: leave it out, because only ${PARAMETERS.join(" and ")} are allowed there.`;
  const repeated = PARAMETERS.find((name) => given.filter((one) => one === name).length > 1);
  if (repeated !== undefined) return `has ${repeated} twice: write it once.`;
  const sslRootCert = url.searchParams.get("sslrootcert") || null;
  const modeText =
    url.searchParams.get("sslmode") ?? (sslRootCert === SYSTEM_ROOTS ? "verify-full" : "prefer");
  const sslMode = SSL_MODES.find((mode) => mode === modeText);
  if (sslMode === undefined)
    return `has sslmode=${JSON.stringify(modeText)}: write one of ${SSL_MODES.join(", ")}.`;
  if (sslRootCert === SYSTEM_ROOTS && sslMode !== "verify-full")
    return `has sslrootcert=${SYSTEM_ROOTS} with sslmode=${sslMode}: anyone can have a certificate of the system's authorities, so write sslmode=verify-full.`;
  if (sslRootCert !== null && !sslMode.startsWith("verify"))
    return `has sslrootcert, which only sslmode=verify-ca and sslmode=verify-full look at: write one of them.`;
  const port = url.port === "" ? DEFAULT_PORT : Number(url.port);
  return new DatabaseUrl(
    { host: host.replace(/^\[|\]$/g, ""), port, user, database, sslMode, sslRootCert },
    password,
  );
}

function decode(part: string): string | null {
  try {
    return decodeURIComponent(part);
  } catch {
    return null;
  }
}

const WITH_PASSWORD = /(\b(?:postgres(?:ql)?|smtps?):\/\/[^\s:@/?#\0]*:)([^\s"'\0]*)(?=@)/gi;

/** Matches the password in a web address. */
const IN_WEB_ADDRESS = /(\bhttps?:\/\/[^\s:@/?#"'\0]*:)([^\s:@/?#"'\0]+)(?=@)/gi;
/** Matches a user without a password in a web address, which is often a token: https://TOKEN@host or https://TOKEN:@host. */
const USER_ALONE = /(\bhttps?:\/\/)([^\s:@/?#"'\0]+)(?=:?@)/gi;

/**
 * Masks every password in URLs of databases and mail servers, even malformed ones, and in web addresses. There it also masks a user without a password. Use it for texts
 * that repeat what a person wrote.
 */
export function maskPasswords(text: string): string {
  return text
    .replaceAll(WITH_PASSWORD, `$1${MASK}`)
    .replaceAll(IN_WEB_ADDRESS, `$1${MASK}`)
    .replaceAll(USER_ALONE, `$1${MASK}`);
}

/** Finds the positions of the passwords in URLs of databases and mail servers. */
export function findPasswords(text: string): { at: number; length: number }[] {
  return [...text.matchAll(WITH_PASSWORD)].map(({ index, 1: before = "", 2: password = "" }) => ({
    at: index + before.length,
    length: password.length,
  }));
}

/** Says how to back up rows in PostgreSQL. The service does not do it, because PostgreSQL's own tools also cover users, disks and other databases. */
export function formatBackupAdvice(database: DatabaseUrl): string {
  return `The rows are in ${database}: copy them with pg_dump while servers run, or with snapshots of your provider. Keep the master key in another place.`;
}

/** Says how to restore rows in PostgreSQL. */
export function formatRestoreAdvice(database: DatabaseUrl): string {
  return `The rows are in ${database}: stop every server, and restore a dump into an empty database with pg_restore, or restore a snapshot. Then start with that database and the master key of that time.`;
}
