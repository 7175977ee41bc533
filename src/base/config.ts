/** What a running service is told at its start. The command line makes it from flags, RELAY_… variables and defaults. */
import type { Clock } from "./clock.ts";
import type { DatabaseUrl } from "./database-url.ts";
import type { RaisableLimits } from "./limit.ts";

export interface ServiceConfig {
  /** `local`: one app, one environment `local`, files watched, http to localhost allowed. `server`: `relay serve`. */
  mode: "local" | "server";
  host: string;
  /** 0 picks a free one. */
  port: number;
  dataDir: string;
  /** PostgreSQL, where the rows are; null: relay.db in the data directory, which holds the master key and the backups in either case. */
  database: DatabaseUrl | null;
  /** Public origin without a trailing slash; null: made from host and port. Receiver URLs are built from it. */
  baseUrl: string | null;
  /** Definition files to watch (local only); null: none. */
  serviceDir: string | null;
  /** Addresses or CIDR ranges of proxies whose X-Forwarded-For is believed. */
  trustedProxies: readonly string[];
  /** Private hosts (names) or CIDR ranges that call_url may reach. */
  allowPrivate: readonly string[];
  /** Events running at once, all relays together. */
  concurrency: number;
  limits: RaisableLimits;
  logFormat: "text" | "json";
  /** Base of `docs` in errors; null: this service's own /docs. */
  docsUrl: string | null;
  /** Backups by themselves into the data directory's backups/, the newest `keep` of them kept; null: none. */
  backup: { everyMs: number; keep: number } | null;
  /** 32 bytes in hex or base64; null: `master.key` in the data directory, made when missing. */
  masterKey: string | null;
  clock: Clock;
}

/**
 * Whether the dashboard serves cookies and so can be signed in to: not on the network without a base URL, where a session would go over
 * plain http under any name.
 */
export function servesCookies({
  mode,
  host,
  baseUrl,
}: Pick<ServiceConfig, "mode" | "host" | "baseUrl">): boolean {
  return mode === "local" || baseUrl !== null || /^(?:localhost|::1|127(?:\.\d{1,3}){3})$/i.test(host);
}
