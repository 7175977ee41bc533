/** Defines the options of a running service and builds its configuration: flag, then RELAY_… variable, then default. */
import { isAbsolute, resolve } from "node:path";
import type { ServiceConfig } from "../../base/config.ts";
import { type DatabaseUrl, readDatabaseUrl } from "../../base/database-url.ts";
import { readIpRange } from "../../base/ip-range.ts";
import { DAY_MS, DEFAULT_LIMITS, HOUR_MS, type RaisableLimits } from "../../base/limit.ts";
import { LIMIT_WORDS } from "../../base/limit-text.ts";
import { type MailUrl, readMailUrl } from "../../base/mail-url.ts";
import { BACKUPS_KEPT, MAX_BACKUPS_KEPT } from "../../operator/backup/stored-schedule.ts";
import { type Input, type Option, UsageError } from "./command.ts";
import type { Io } from "./io.ts";

export const DEFAULT_PORT = 4747;
const MAX_CONCURRENCY = 1_000;
const MAX_LIMIT = 1_000_000_000;

export const DATA_DIR: Option = {
  name: "data-dir",
  value: "<folder>",
  env: "RELAY_DATA_DIR",
  otherwise: ".relay",
  help: "the folder with the database and keys",
  of: "folder",
};
export const DATABASE: Option = {
  name: "database",
  value: "<url>",
  env: "RELAY_DATABASE",
  otherwise: "relay.db in the data directory",
  help: "a PostgreSQL database, postgres://…",
};
/** The options that name a server's rows and data directory. */
export const DATA: readonly Option[] = [DATA_DIR, DATABASE];
export const SERVICE_DIR: Option = {
  name: "service-dir",
  value: "<folder>",
  env: "RELAY_SERVICE_DIR",
  otherwise: "service",
  help: "the folder with relays/*.json and catalog.json",
  of: "folder",
};
export const BASE_URL: Option = {
  name: "base-url",
  value: "<url>",
  env: "RELAY_BASE_URL",
  otherwise: "http://<host>:<port>",
  help: "the public origin, with which receiver URLs begin",
};
/** The times between a server's automatic backups, in milliseconds. */
const BACKUP_PERIODS = {
  off: null,
  "1h": HOUR_MS,
  "6h": 6 * HOUR_MS,
  "12h": 12 * HOUR_MS,
  "1d": DAY_MS,
  "1w": 7 * DAY_MS,
};
export const BACKUP_EVERY: Option = {
  name: "backup-every",
  value: `<${Object.keys(BACKUP_PERIODS).join("|")}>`,
  env: "RELAY_BACKUP_EVERY",
  otherwise: "off",
  help: "the time between automatic backups into backups/ of the data directory",
  of: Object.keys(BACKUP_PERIODS),
};
export const HOST: Option = {
  name: "host",
  value: "<address>",
  env: "RELAY_HOST",
  otherwise: "127.0.0.1",
  help: "the address to listen on",
};

export const ALLOW_PRIVATE: Option = {
  name: "allow-private",
  value: "<host or range>",
  list: true,
  env: "RELAY_ALLOW_PRIVATE",
  otherwise: "none",
  help: "private hosts or ranges for call_url, mail and copies",
};

export const PORT: Option = {
  name: "port",
  value: "<number>",
  env: "RELAY_PORT",
  otherwise: String(DEFAULT_PORT),
  help: "the port to listen on; 0 chooses a free one",
};

/** The options that `dev` and `serve` share. */
export const RUN_OPTIONS: readonly Option[] = [
  PORT,
  DATA_DIR,
  BASE_URL,
  ALLOW_PRIVATE,
  {
    name: "concurrency",
    value: "<number>",
    env: "RELAY_CONCURRENCY",
    otherwise: "32",
    help: "the events that run at the same time",
  },
  {
    name: "log-format",
    value: "<text|json>",
    env: "RELAY_LOG_FORMAT",
    otherwise: "text",
    help: "the format of the log on standard error",
    of: ["text", "json"],
  },
  {
    name: "docs-url",
    value: "<url>",
    env: "RELAY_DOCS_URL",
    otherwise: "this service's own /docs",
    help: "the documentation that error messages link to",
  },
];

export const MAIL_URL: Option = {
  name: "mail-url",
  value: "<url>",
  env: "RELAY_MAIL_URL",
  otherwise: "none",
  help: "the SMTP server that mails invitations to members",
};

/** The options that only a server has. */
export const SERVER_OPTIONS: readonly Option[] = [
  DATABASE,
  HOST,
  {
    name: "trusted-proxy",
    value: "<address or range>",
    list: true,
    env: "RELAY_TRUSTED_PROXY",
    otherwise: "none",
    help: "proxies whose X-Forwarded-For header is trusted",
  },
  BACKUP_EVERY,
  {
    name: "backup-keep",
    value: "<number>",
    env: "RELAY_BACKUP_KEEP",
    otherwise: String(BACKUPS_KEPT),
    help: "the number of automatic backups to keep",
  },
  {
    name: "second-factor",
    value: "<required|optional>",
    env: "RELAY_SECOND_FACTOR",
    otherwise: "as set in Settings",
    help: "whether each member needs a second factor to sign in",
    of: ["required", "optional"],
  },
  MAIL_URL,
];

/** Builds the configuration of a service in this mode, without telemetry, which only a running service exports. Throws UsageError. */
export function readServiceConfig(mode: ServiceConfig["mode"], input: Input, io: Io): ServiceConfig {
  return {
    mode,
    host: mode === "local" ? "127.0.0.1" : (input.text("host") ?? "127.0.0.1"),
    port: input.number("port", { from: 0, to: 65_535 }) ?? DEFAULT_PORT,
    dataDir: readDataDir(input, io),
    database: mode === "local" ? requireNoDatabase(io) : readDatabase(input),
    baseUrl: readBaseUrl(input),
    serviceDir: mode === "local" ? readServiceDir(input, io) : null,
    trustedProxies: mode === "local" ? [] : readProxies(input),
    allowPrivate: input.list("allow-private"),
    concurrency: input.number("concurrency", { from: 1, to: MAX_CONCURRENCY }) ?? 32,
    limits: readLimits(io.env),
    logFormat: input.choice("log-format", ["text", "json"]) ?? "text",
    docsUrl: readOrigin("docs-url", input.text("docs-url")),
    backup: mode === "local" ? null : readBackup(input),
    secondFactor: mode === "local" ? null : readSecondFactor(input),
    mailUrl: mode === "local" ? null : readServerMail(input),
    masterKey: io.env.RELAY_MASTER_KEY || null,
    telemetry: null,
    clock: io.clock,
  };
}

/**
 * Returns the PostgreSQL database that the options name, or null for the data directory's own. Throws UsageError, whose message never
 * contains a password.
 */
export function readDatabase(input: Input): DatabaseUrl | null {
  const text = input.text("database");
  if (text === null) return null;
  const url = readDatabaseUrl(text);
  if (typeof url !== "string") return url;
  throw new UsageError(`${input.given("database") ? "--database" : "RELAY_DATABASE"} ${url}`);
}

/** Returns the mail server of the server's own mail, or null. Throws UsageError, whose message never contains a password. */
export function readServerMail(input: Input): MailUrl | null {
  const text = input.text("mail-url");
  if (text === null) return null;
  const url = readMailUrl(text);
  if (typeof url !== "string") return url;
  throw new UsageError(`${input.given("mail-url") ? "--mail-url" : "RELAY_MAIL_URL"} ${url}`);
}

export const LOCAL_DATABASE =
  "local development works only with relay.db of the data directory: leave the database out, or start a server with relay serve";

function requireNoDatabase({ env }: Io): null {
  if (env.RELAY_DATABASE) throw new UsageError(`RELAY_DATABASE is set, but ${LOCAL_DATABASE}.`);
  return null;
}

/** Returns the proxies that the server trusts. Throws UsageError. */
function readProxies(input: Input): string[] {
  const proxies = input.list("trusted-proxy");
  for (const text of proxies) {
    const range = readIpRange(text);
    if (typeof range === "string") throw new UsageError(`--trusted-proxy ${range}`);
  }
  return proxies;
}

/** Returns the time between backups and the number to retain, or null if backups are off. Throws UsageError. */
function readBackup(input: Input): ServiceConfig["backup"] {
  const everyMs = readBackupPeriod(input);
  const database = readDatabase(input);
  if (everyMs !== null && database !== null)
    throw new UsageError(
      `--backup-every (RELAY_BACKUP_EVERY) copies relay.db, but the rows are in ${database}: leave it out, and use pg_dump or your provider's snapshots.`,
    );
  const keep = input.number("backup-keep", { from: 1, to: MAX_BACKUPS_KEPT }) ?? BACKUPS_KEPT;
  return everyMs === null ? null : { everyMs, keep };
}

/** Returns whether the options require a second factor, or null if they say nothing. */
function readSecondFactor(input: Input): boolean | null {
  const given = input.choice("second-factor", ["required", "optional"]);
  return given === null ? null : given === "required";
}

/** Returns the milliseconds between backups, or null. Throws UsageError. */
export function readBackupPeriod(input: Input): number | null {
  const periods = Object.keys(BACKUP_PERIODS) as (keyof typeof BACKUP_PERIODS)[];
  return BACKUP_PERIODS[input.choice("backup-every", periods) ?? "off"];
}

export function readDataDir(input: Input, io: Io): string {
  return underCwd(input.text("data-dir") ?? ".relay", io);
}

export function readServiceDir(input: Input, io: Io): string {
  return underCwd(input.text("service-dir") ?? "service", io);
}

/** Returns the public origin, or null if no option names it. Throws UsageError. */
export function readBaseUrl(input: Input): string | null {
  const url = readOrigin("base-url", input.text("base-url"));
  if (url !== null && new URL(url).pathname !== "/") {
    throw new UsageError(
      `--base-url contains a path: write only the origin, such as ${new URL(url).origin}.`,
    );
  }
  return url;
}

function readOrigin(name: string, text: string | null): string | null {
  if (text === null) return null;
  const url = URL.parse(text);
  const plain = url !== null && /^https?:$/.test(url.protocol) && url.username === "" && url.search === "";
  if (plain && url.hash === "") return text.replace(/\/+$/, "");
  throw new UsageError(
    `--${name} is ${JSON.stringify(text)}: write an http or https address, such as https://relay.example.com.`,
  );
}

/** Reads the limits, which only variables can raise. Throws UsageError. */
function readLimits(env: Io["env"]): RaisableLimits {
  const limits = { ...DEFAULT_LIMITS };
  for (const name of Object.keys(limits) as (keyof RaisableLimits)[]) {
    const { variable } = LIMIT_WORDS[name];
    const text = env[variable];
    if (text === undefined || text === "") continue;
    const value = /^\d{1,10}$/.test(text) ? Number(text) : Number.NaN;
    if (!(value >= 1 && value <= MAX_LIMIT)) {
      throw new UsageError(
        `${variable} is ${JSON.stringify(text)}: write a whole number from 1 to ${MAX_LIMIT}.`,
      );
    }
    limits[name] = value;
  }
  return limits;
}

/** Resolves a path against the current folder. */
export function underCwd(path: string, io: Io): string {
  return isAbsolute(path) ? path : resolve(io.cwd, path);
}
