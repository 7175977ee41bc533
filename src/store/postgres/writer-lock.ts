/**
 * Defines the advisory locks of PostgreSQL's writers. They end with their transaction. A write that names an environment shares the lock of
 * everything with the writes of other environments, and excludes the other writes of its environment. Any other write excludes all.
 */
import { EVERYTHING, type WriteScope } from "../port.ts";
import type { PostgresConnection } from "./connection.ts";

/** The letters "rela" as a number. It is also the first of the two numbers of an environment's lock, which the server keeps apart from a single one. */
export const WRITER_LOCK = 0x72656c61;
const LOCK = "SELECT pg_advisory_xact_lock(?1)";
const LOCK_SHARED = "SELECT pg_advisory_xact_lock_shared(?1)";
const LOCK_ENVIRONMENT = "SELECT pg_advisory_xact_lock(?1, ?2)";

/**
 * Sends the requests for the locks of a write, in the order that prevents deadlocks. Resolves when the first is answered. The answer of the next
 * statement shows whether all are held.
 */
export function takeLocks(connection: PostgresConnection, scope: WriteScope): Promise<void> {
  if (scope === EVERYTHING) return connection.exec(LOCK, WRITER_LOCK);
  const shared = connection.exec(LOCK_SHARED, WRITER_LOCK);
  void connection.exec(LOCK_ENVIRONMENT, WRITER_LOCK, scope);
  return shared;
}
