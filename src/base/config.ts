/** Defines the configuration of a running service. The command line makes it from flags, RELAY_… variables and defaults. */
import type { Clock } from "./clock.ts";
import type { DatabaseUrl } from "./database-url.ts";
import type { RaisableLimits } from "./limit.ts";
import type { MailUrl } from "./mail-url.ts";

/** The export of traces and metrics by OTLP over HTTP. */
export interface TelemetryConfig {
  /** The http or https base URL of the collector, without a trailing slash. `/v1/traces` and `/v1/metrics` follow it. */
  endpoint: string;
  /** Headers of each export. They may be secret. */
  headers: Readonly<Record<string, string>>;
  protocol: "http/protobuf" | "http/json";
  /** The time that an export may take. */
  exportWithinMs: number;
  /** The attributes of this service in each export, such as `service.name`. */
  resource: Readonly<Record<string, string>>;
  /** The part of traces to export, from 0 to 1; null if traces are off. */
  traceRatio: number | null;
  /** The time between exports of the metrics; null if they are off. */
  metricsEveryMs: number | null;
}

export interface ServiceConfig {
  /** `local`: one app, one environment `local`, files watched, http to localhost allowed. `server`: `relay serve`. */
  mode: "local" | "server";
  host: string;
  /** The port. 0 picks a free one. */
  port: number;
  dataDir: string;
  /**
   * The PostgreSQL database with the rows. Null for relay.db in the data directory. The data directory has the master key and the backups in either
   * case.
   */
  database: DatabaseUrl | null;
  /** Public origin without a trailing slash, for receiver URLs. Null to build it from host and port. */
  baseUrl: string | null;
  /** The folder of definition files to watch, in local mode only. Null for none. */
  serviceDir: string | null;
  /** Addresses or CIDR ranges of proxies whose X-Forwarded-For is trusted. */
  trustedProxies: readonly string[];
  /** Private hosts (names) or CIDR ranges that call_url, mail and copies of backups may reach. */
  allowPrivate: readonly string[];
  /** The most events that run at once, of all relays together. */
  concurrency: number;
  limits: RaisableLimits;
  logFormat: "text" | "json";
  /** Base URL of `docs` in errors. Null for this service's own /docs. */
  docsUrl: string | null;
  /** Automatic backups into backups/ of the data directory, of which the newest `keep` stay. Null for none. */
  backup: { everyMs: number; keep: number } | null;
  /** True if each member needs a second factor. Null: as set in Settings, or with `relay members require-factor`. */
  secondFactor: boolean | null;
  /** The mail server of the server's own mail, such as invitations. Null: it sends none. */
  mailUrl: MailUrl | null;
  /** 32 bytes in hex or base64. Null for `master.key` in the data directory, which is created if it is missing. */
  masterKey: string | null;
  /** Null: no telemetry is exported, and none of its code is loaded. */
  telemetry: TelemetryConfig | null;
  clock: Clock;
}

/**
 * Returns whether the dashboard sets cookies, so that a person can sign in. On a network address it does so only with a base URL, because the session
 * would otherwise use plain http under any name.
 */
export function servesCookies({
  mode,
  host,
  baseUrl,
}: Pick<ServiceConfig, "mode" | "host" | "baseUrl">): boolean {
  return mode === "local" || baseUrl !== null || /^(?:localhost|::1|127(?:\.\d{1,3}){3})$/i.test(host);
}
