/** Defines the configuration of a running service. The command line makes it from flags, RELAY_… variables and defaults. */
import type { Clock } from "./clock.ts";
import type { DatabaseUrl } from "./database-url.ts";
import type { RaisableLimits } from "./limit.ts";

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
  /** 32 bytes in hex or base64. Null for `master.key` in the data directory, which is created if it is missing. */
  masterKey: string | null;
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
