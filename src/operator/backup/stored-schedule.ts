/**
 * The schedule of automatic backups that an owner set in Settings › Backups or with `relay backups schedule`. It is one row of the server, and
 * each change is audited. A schedule on the command line (`--backup-every`) takes precedence.
 */
import { Type } from "typebox";
import type { ServiceConfig } from "../../base/config.ts";
import { HOUR_MS } from "../../base/limit.ts";
import { Refusal } from "../../base/refusal.ts";
import { fields } from "../../base/schema.ts";
import { SERVER_SCOPE, writeAudit } from "../../platform/audit/audit.ts";
import type { Reader, Writer } from "../../store/port.ts";
import { defineTable, integer, orNull, type RowOf } from "../../store/table.ts";
import type { BackupPlan } from "./schedule.ts";

export const BACKUPS_KEPT = 7;
export const MAX_BACKUPS_KEPT = 1_000;
/** 30 days. A longer time between backups is a mistake. */
const MAX_HOURS = 720;

const BACKUP_SCHEDULE = defineTable({
  name: "backup_schedule",
  key: ["one"],
  columns: { one: integer(), everyHours: orNull(integer()), keep: integer() },
});

export type StoredSchedule = Omit<RowOf<typeof BACKUP_SCHEDULE>, "one">;

/** A new schedule. everyHours null turns automatic backups off. */
export const scheduleInput = fields({
  everyHours: Type.Union([Type.Integer({ minimum: 1, maximum: MAX_HOURS }), Type.Null()], {
    description: `the hours between automatic backups, 1 to ${MAX_HOURS}; null turns them off`,
  }),
  keep: Type.Integer({
    minimum: 1,
    maximum: MAX_BACKUPS_KEPT,
    description: `the number of automatic backups to keep, 1 to ${MAX_BACKUPS_KEPT}`,
  }),
});

/** Returns the stored schedule. Without one, automatic backups are off. */
export async function readStoredSchedule(tx: Reader): Promise<StoredSchedule> {
  const { everyHours, keep } = (await BACKUP_SCHEDULE.find(tx, { one: 1 })) ?? {
    everyHours: null,
    keep: BACKUPS_KEPT,
  };
  return { everyHours, keep };
}

/** Returns the plan in force: that of the command line, otherwise the stored one. Null: no automatic backups. */
export async function readBackupPlan(
  tx: Reader,
  config: Pick<ServiceConfig, "backup">,
): Promise<BackupPlan | null> {
  if (config.backup !== null) return config.backup;
  const { everyHours, keep } = await readStoredSchedule(tx);
  return everyHours === null ? null : { everyMs: everyHours * HOUR_MS, keep };
}

/** Stores the schedule, audited. Throws `invalid_input` for a number out of range. */
export async function changeStoredSchedule(
  tx: Writer,
  { nowMs, by }: { nowMs: number; by: string },
  after: StoredSchedule,
): Promise<void> {
  requireRange("everyHours", after.everyHours ?? 1, MAX_HOURS);
  requireRange("keep", after.keep, MAX_BACKUPS_KEPT);
  const before = await readStoredSchedule(tx);
  const row = { one: 1, ...after };
  if ((await BACKUP_SCHEDULE.find(tx, { one: 1 })) === null) await BACKUP_SCHEDULE.insert(tx, row);
  else await BACKUP_SCHEDULE.update(tx, row);
  await writeAudit(tx, {
    environmentId: SERVER_SCOPE,
    nowMs,
    by,
    action: "backup.scheduled",
    target: "server",
    before,
    after,
  });
  tx.notify("backup_schedule");
}

function requireRange(field: string, value: number, most: number): void {
  if (Number.isInteger(value) && value >= 1 && value <= most) return;
  throw new Refusal("invalid_input", `${field} must be a whole number from 1 to ${most}.`);
}
