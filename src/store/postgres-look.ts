/** Looking at a PostgreSQL without changing anything of it: a connection that only reads, and whether what is told on one connection is heard on another. */
import { SQL } from "bun";
import { systemClock, waitAtMost } from "../ground/clock.ts";
import type { DatabaseUrl } from "../ground/database-url.ts";
import { MOVED_NUMBER } from "./moved-mark.ts";
import type { Reader } from "./port.ts";
import { connectionOptions, PostgresConnection } from "./postgres-connection.ts";

export interface OpenReader extends Reader, AsyncDisposable {}

/** Throws StoreUnavailable. */
export async function lookInto(url: DatabaseUrl): Promise<OpenReader> {
  const connection = await PostgresConnection.open(url, "relay doctor");
  await connection.script("SET default_transaction_read_only = on");
  return {
    get: (sql, ...values) => connection.get(sql, ...values),
    all: (sql, ...values) => connection.all(sql, ...values),
    [Symbol.asyncDispose]: () => connection.close(),
  };
}

/** The newest schema of this service's there; null: none. */
export async function readSchemaThere(tx: Reader): Promise<number | null> {
  if ((await tx.get("SELECT 1 WHERE to_regclass('schema_migration') IS NOT NULL")) === null) return null;
  const row = await tx.get<{ number: number | null }>(
    `SELECT max(number) AS number FROM schema_migration WHERE number < ${MOVED_NUMBER}`,
  );
  return row?.number ?? null;
}

const HEARD_WITHIN_MS = 3_000;

/** False where something between here and the server keeps no connection for itself. */
export async function hearsNotices(url: DatabaseUrl): Promise<boolean> {
  const [listener, teller] = [0, 1].map(() => new SQL({ ...connectionOptions(url), max: 1 }));
  const channel = `relay_look_${crypto.randomUUID().replaceAll("-", "")}`;
  let heard = false;
  try {
    const hearing = Promise.withResolvers<void>();
    await listener?.listen(channel, () => {
      heard = true;
      hearing.resolve();
    });
    await teller?.unsafe(`SELECT pg_notify('${channel}', '')`);
    await waitAtMost(systemClock, HEARD_WITHIN_MS, hearing.promise);
    return heard;
  } finally {
    for (const one of [listener, teller]) void one?.close({ timeout: 0 }).catch(() => undefined);
  }
}
