/**
 * Marks a database whose rows were moved to another one, by a row in its list of migrations. A service that opens the database gets an error with the
 * new place, so that two services never run on the same rows. Older versions refuse it as the database of a newer version.
 */
import { toIso } from "../../base/clock.ts";
import type { Reader } from "../port.ts";

/** A number above every migration's. */
export const MOVED_NUMBER = 1_000_000_000;

export const MARK = `INSERT INTO schema_migration (number, name, applied_at) VALUES (${MOVED_NUMBER}, ?1, ?2)`;
export const UNMARK = `DELETE FROM schema_migration WHERE number = ${MOVED_NUMBER}`;

/**
 * Stops the writes of a PostgreSQL node that started or was suspended before the mark and continues after it. Its next transaction must take the turn
 * in this table, which the trigger refuses.
 */
export const NO_MORE_WRITES = `
  UPDATE writer_turn SET node = '';
  CREATE FUNCTION refuse_moved() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    RAISE EXCEPTION 'The rows of this database were moved to %: start the service with that one',
      (SELECT name FROM schema_migration WHERE number = ${MOVED_NUMBER}) USING ERRCODE = '55000';
  END $$;
  CREATE TRIGGER refuse_moved BEFORE UPDATE ON writer_turn FOR EACH STATEMENT EXECUTE FUNCTION refuse_moved()`;
export const LET_WRITE = "DROP FUNCTION IF EXISTS refuse_moved CASCADE";

/** The rows of this database were moved to another one. */
export class DatabaseTransferred extends Error {}

/** Returns where the rows were moved to and when, or null if they were not moved. */
export async function readMark(tx: Reader): Promise<{ to: string; at: number } | null> {
  return await tx.get<{ to: string; at: number }>(
    `SELECT name AS "to", applied_at AS at FROM schema_migration WHERE number = ${MOVED_NUMBER}`,
  );
}

/** Throws DatabaseTransferred if the rows were moved to another database. */
export async function requireNotTransferred(tx: Reader): Promise<void> {
  const mark = await readMark(tx);
  if (mark === null) return;
  throw new DatabaseTransferred(
    `The rows of this database were moved to ${mark.to} at ${toIso(mark.at)}: start the service with that one, and name it for this command with --database or --data-dir. To continue with this database and its old rows, run relay move --undo on it.`,
  );
}
