/**
 * The mark of a database whose rows were moved to another one: the last of its migrations, so to speak. Whoever opens it for a service is told
 * where they are, so that no two services run on the same rows; older versions refuse it as one of a newer version.
 */
import { toIso } from "../../base/clock.ts";
import type { Reader } from "../port.ts";

/** Above every migration's number. */
export const MOVED_NUMBER = 1_000_000_000;

export const MARK = `INSERT INTO schema_migration (number, name, applied_at) VALUES (${MOVED_NUMBER}, ?1, ?2)`;
export const UNMARK = `DELETE FROM schema_migration WHERE number = ${MOVED_NUMBER}`;

/** On PostgreSQL, of a node that was begun or stopped before the mark and goes on after it: each of its transactions takes its turn in this table. */
export const NO_MORE_WRITES = `
  UPDATE writer_turn SET node = '';
  CREATE FUNCTION refuse_moved() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    RAISE EXCEPTION 'The rows of this database were moved to %: start the service with that one',
      (SELECT name FROM schema_migration WHERE number = ${MOVED_NUMBER}) USING ERRCODE = '55000';
  END $$;
  CREATE TRIGGER refuse_moved BEFORE UPDATE ON writer_turn FOR EACH STATEMENT EXECUTE FUNCTION refuse_moved()`;
export const LET_WRITE = "DROP FUNCTION IF EXISTS refuse_moved CASCADE";

/** The rows of this database are elsewhere. */
export class DatabaseTransferred extends Error {}

/** Where its rows were moved to, and when; null: they are here. */
export async function readMark(tx: Reader): Promise<{ to: string; at: number } | null> {
  return await tx.get<{ to: string; at: number }>(
    `SELECT name AS "to", applied_at AS at FROM schema_migration WHERE number = ${MOVED_NUMBER}`,
  );
}

/** Throws DatabaseTransferred where they are not here. */
export async function requireNotTransferred(tx: Reader): Promise<void> {
  const mark = await readMark(tx);
  if (mark === null) return;
  throw new DatabaseTransferred(
    `The rows of this database were moved to ${mark.to} at ${toIso(mark.at)}: start the service with that one, and name it for this command with --database or --data-dir. To go on with this one as it was then, run relay move --undo on it.`,
  );
}
