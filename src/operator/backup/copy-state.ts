/** The state of each copy: which backups are in the bucket, which failed, and which wait. The rows are of the server, by the name of the backup. */
import { type Static, Type } from "typebox";
import { toIso } from "../../base/clock.ts";
import { orNull as optional, time } from "../../base/schema.ts";
import type { Reader, Writer } from "../../store/port.ts";
import { defineTable, integer, orNull, type RowOf, text } from "../../store/table.ts";
import { listBackups } from "./backup.ts";

const BACKUP_COPY = defineTable({
  name: "backup_copy",
  key: ["name"],
  columns: {
    name: text(),
    copiedAt: orNull(integer()),
    bytes: orNull(integer()),
    failedAt: orNull(integer()),
    failure: orNull(text()),
  },
});
type CopyRow = RowOf<typeof BACKUP_COPY>;

/** Only these are copied. The service makes the others before it changes a database. */
const COPIED_NAME = /^(scheduled|by-hand)-\d{8}T\d{9}Z\.db$/;

export const copyStateView = Type.Object({
  /** The newest copy; null if there is none. */
  last: optional(Type.Object({ name: Type.String(), at: time, bytes: Type.Integer() })),
  /** The last failure; null if no copy failed after the newest success. */
  failed: optional(Type.Object({ name: Type.String(), at: time, message: Type.String() })),
});

/** Lists the rows, the newest copy first. */
export async function listCopies(tx: Reader): Promise<CopyRow[]> {
  return await BACKUP_COPY.all(tx, "ORDER BY coalesce(copied_at, 0) DESC, name DESC");
}

/** Formats the rows for the API. */
export function viewCopyState(rows: readonly CopyRow[]): Static<typeof copyStateView> {
  const last = rows.find(({ copiedAt }) => copiedAt !== null);
  const failed = findFailure(rows);
  return {
    last:
      last === undefined ? null : { name: last.name, at: toIso(last.copiedAt ?? 0), bytes: last.bytes ?? 0 },
    failed: failed === null ? null : { name: failed.name, at: toIso(failed.atMs), message: failed.message },
  };
}

export interface CopyFailure {
  name: string;
  atMs: number;
  message: string;
}

/** Returns the last failure, or null if no copy failed after the newest success. */
export function findFailure(rows: readonly CopyRow[]): CopyFailure | null {
  const copiedAt = Math.max(...rows.map((row) => row.copiedAt ?? Number.NEGATIVE_INFINITY));
  const failures = rows.flatMap(({ name, failedAt, failure }) =>
    failure === null || failedAt === null || failedAt < copiedAt
      ? []
      : [{ name, atMs: failedAt, message: failure }],
  );
  return failures.sort((one, other) => other.atMs - one.atMs)[0] ?? null;
}

/** Lists the backups to copy, newest first: those since the endpoint was set, and the newest one of before, at most `keep`. */
export function listWaitingBackups(
  dataDir: string,
  rows: readonly CopyRow[],
  { keep, setAt }: { keep: number; setAt: number },
): string[] {
  const copied = new Set(rows.flatMap(({ name, copiedAt }) => (copiedAt === null ? [] : [name])));
  return listBackups(dataDir)
    .filter(({ name }) => COPIED_NAME.test(name))
    .filter(({ atMs }, index) => index === 0 || atMs >= setAt)
    .slice(0, keep)
    .map(({ name }) => name)
    .filter((name) => !copied.has(name));
}

/** Removes the rows of backups that are gone, except that of the newest copy. */
export async function removeOldCopies(tx: Writer, dataDir: string): Promise<void> {
  const rows = await listCopies(tx);
  const existing = new Set(listBackups(dataDir).map(({ name }) => name));
  const newest = rows.find(({ copiedAt }) => copiedAt !== null)?.name;
  for (const { name } of rows)
    if (!existing.has(name) && name !== newest) await BACKUP_COPY.delete(tx, { name });
}

export async function recordCopy(
  tx: Writer,
  { name, bytes, nowMs }: { name: string; bytes: number; nowMs: number },
): Promise<void> {
  await putCopy(tx, { name, copiedAt: nowMs, bytes, failedAt: null, failure: null });
}

/** Records a failure, and keeps what is known of an earlier copy. */
export async function recordCopyFailure(tx: Writer, { name, atMs, message }: CopyFailure): Promise<void> {
  const before = await BACKUP_COPY.find(tx, { name });
  const { copiedAt = null, bytes = null } = before ?? {};
  await putCopy(tx, { name, copiedAt, bytes, failedAt: atMs, failure: message });
}

async function putCopy(tx: Writer, row: CopyRow): Promise<void> {
  if ((await BACKUP_COPY.find(tx, { name: row.name })) === null) await BACKUP_COPY.insert(tx, row);
  else await BACKUP_COPY.update(tx, row);
}

/** Removes every row, because the endpoint is another one. */
export async function forgetCopies(tx: Writer): Promise<void> {
  for (const { name } of await listCopies(tx)) await BACKUP_COPY.delete(tx, { name });
}
