/** Inspects a PostgreSQL server without changing it: its schema and settings, whether this service can use it, and whether notifications arrive. */
import { SQL } from "bun";
import { systemClock, waitAtMost } from "../../base/clock.ts";
import type { DatabaseUrl } from "../../base/database-url.ts";
import type { Reader } from "../port.ts";
import { MOVED_NUMBER } from "../transfer/mark.ts";
import { PostgresConnection } from "./connection.ts";
import { connectionOptions } from "./connection-option.ts";
import { ReadOnly, UnfitServer } from "./error.ts";

export interface OpenReader extends Reader, AsyncDisposable {}

/**
 * Opens a connection for reads. Throws StoreUnavailable. It sets nothing more on the session, because a pooler would keep that for its next client.
 */
export async function lookInto(url: DatabaseUrl): Promise<OpenReader> {
  const connection = await PostgresConnection.open(url, "relay doctor");
  return {
    get: (sql, ...values) => connection.get(sql, ...values),
    all: (sql, ...values) => connection.all(sql, ...values),
    [Symbol.asyncDispose]: () => connection.close(),
  };
}

/** Returns the number of this service's newest migration in the database, or null without one. */
export async function readSchemaThere(tx: Reader): Promise<number | null> {
  if ((await tx.get("SELECT 1 WHERE to_regclass('schema_migration') IS NOT NULL")) === null) return null;
  const row = await tx.get<{ number: number | null }>(
    `SELECT max(number) AS number FROM schema_migration WHERE number < ${MOVED_NUMBER}`,
  );
  return row?.number ?? null;
}

/**
 * Reads settings by name, with the values of a connection that sets none. It does not read pg_settings, which may need space on the server's disk.
 */
export async function readOwnSettings(
  url: DatabaseUrl,
  names: readonly string[],
): Promise<Record<string, string>> {
  const plain = new SQL({ ...connectionOptions(url), max: 1 });
  try {
    const rows: { name: string; setting: string }[] = await plain.unsafe(
      "SELECT name, current_setting(name) AS setting FROM json_array_elements_text($1::text::json) AS asked (name)",
      [JSON.stringify(names)],
    );
    return Object.fromEntries(rows.map(({ name, setting }) => [name, setting]));
  } finally {
    void plain.close({ timeout: 0 }).catch(() => undefined);
  }
}

/** Returns why this service cannot use the server, and what to do, or null if it can. */
export async function findUnfit(tx: Reader): Promise<{ check: string; why: string; todo: string } | null> {
  const row = await tx.get<{ version: string; number: number; encoding: string; standby: boolean }>(
    `SELECT current_setting('server_version') AS version, current_setting('server_version_num')::bigint AS number,
       current_setting('server_encoding') AS encoding, pg_is_in_recovery() AS standby`,
  );
  if (row === null) return null;
  const { version, number, encoding, standby } = row;
  if (number < LEAST_VERSION)
    return {
      check: "version",
      why: `PostgreSQL ${version} is older than 15.`,
      todo: "use PostgreSQL 15 or newer",
    };
  if (standby)
    return {
      check: "standby",
      why: "This server is a standby, which accepts no writes.",
      todo: "connect to the primary; with failover, use the address that always leads to it",
    };
  if (encoding !== "UTF8")
    return {
      check: "encoding",
      why: `${encoding}: it cannot store every text.`,
      todo: "create the database again with ENCODING 'UTF8' TEMPLATE template0",
    };
  return null;
}

/**
 * Checks the server before anything is created there. Throws UnfitServer. Throws ReadOnly for a standby, because it may become the primary soon or
 * its name may lead to one.
 */
export async function requireFitServer(tx: Reader): Promise<void> {
  const unfit = await findUnfit(tx);
  if (unfit?.check === "standby") throw new ReadOnly(`The database cannot be used. ${unfit.why}`);
  if (unfit !== null)
    throw new UnfitServer(`The database cannot be used. ${unfit.why} To do: ${unfit.todo}.`);
}

const LEAST_VERSION = 150_000;
const HEARD_WITHIN_MS = 3_000;

/** Returns whether a notification of one connection arrives at another. It does not if a pooler shares connections. */
export async function hearsNotices(url: DatabaseUrl): Promise<boolean> {
  const [listener, sender] = [0, 1].map(() => new SQL({ ...connectionOptions(url), max: 1 }));
  const channel = `relay_look_${crypto.randomUUID().replaceAll("-", "")}`;
  let heard = false;
  try {
    const hearing = Promise.withResolvers<void>();
    await listener?.listen(channel, () => {
      heard = true;
      hearing.resolve();
    });
    await sender?.unsafe(`SELECT pg_notify('${channel}', '')`);
    await waitAtMost(systemClock, HEARD_WITHIN_MS, hearing.promise);
    return heard;
  } finally {
    for (const one of [listener, sender]) void one?.close({ timeout: 0 }).catch(() => undefined);
  }
}
