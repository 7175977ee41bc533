/**
 * Storage limits of records and files, and the number of events that a write causes. Triggers maintain the stored bytes per person and
 * environment; the server's configuration sets the limits. An environment's limit applies to people, keys and owners: what relays write is
 * limited by their events.
 */
import type { RaisableLimits } from "../../base/limit.ts";
import { Refusal } from "../../base/refusal.ts";
import type { Reader, Writer } from "../../store/port.ts";

type StoredLimits = Pick<RaisableLimits, "storedPerPersonMb" | "storedPerEnvironmentMb">;

const MB = 1024 * 1024;

/** The environment and person whose storage a write uses. */
interface Storer {
  environmentId: number;
  /** null: the app's own, as an owner or key writes. */
  personId: string | null;
}

/** Returns the app itself as the writer, to which only the environment's limit applies. */
export function appStorer(environmentId: number): Storer {
  return { environmentId, personId: null };
}

/**
 * Runs a write. Throws `storage_capped` if the write adds bytes and the environment or person then exceeds the limit; the caller must roll
 * back. A write that frees bytes is always allowed.
 */
export async function withinStorage<Result>(
  tx: Writer,
  storer: Storer,
  limits: StoredLimits,
  write: () => Promise<Result>,
): Promise<Result> {
  const before = await findStored(tx, storer);
  const result = await write();
  const after = await findStored(tx, storer);
  const { storedPerPersonMb, storedPerEnvironmentMb } = limits;
  if (after.person > before.person && after.person > storedPerPersonMb * MB) {
    throw new Refusal(
      "storage_capped",
      `One person's records can take at most ${storedPerPersonMb} MB, and this record would exceed that limit: delete records that are no longer needed.`,
      { details: { limit: "person" } },
    );
  }
  if (after.environment > before.environment && after.environment > storedPerEnvironmentMb * MB) {
    throw new Refusal(
      "storage_capped",
      `The records and files of an environment can take at most ${storedPerEnvironmentMb} MB, and this would exceed that limit. Delete data that is no longer needed, with relay records delete and relay files delete, or raise the limit in the server's configuration.`,
      { details: { limit: "environment" } },
    );
  }
  return result;
}

async function findStored(
  tx: Reader,
  { environmentId, personId }: Storer,
): Promise<{ person: number; environment: number }> {
  const rows = await tx.all<{ ownerId: string; bytes: number }>(
    "SELECT owner_id AS ownerId, bytes FROM stored_bytes WHERE environment_id = ?1 AND owner_id IN ('', ?2)",
    environmentId,
    personId,
  );
  const bytesOf = (ownerId: string | null): number => rows.find((row) => row.ownerId === ownerId)?.bytes ?? 0;
  return { person: bytesOf(personId), environment: bytesOf("") };
}

/** Returns the bytes of the records and files of an environment. */
export async function findStoredBytes(tx: Reader, environmentId: number): Promise<number> {
  return (await findStored(tx, appStorer(environmentId))).environment;
}

/** Counts the relays that watch this change of the collection: the most events that a write causes. */
export async function countWatchers(
  tx: Reader,
  at: { environmentId: number; collection: string },
  change: "created" | "updated" | "deleted",
): Promise<number> {
  const row = await tx.get<{ count: number }>(
    "SELECT count(*) AS count FROM record_watch WHERE environment_id = ?1 AND collection = ?2 AND change = ?3",
    at.environmentId,
    at.collection,
    change,
  );
  return row?.count ?? 0;
}
