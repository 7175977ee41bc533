/** Shows and sets the schedule of automatic backups that Settings › Backups also shows (`relay backups schedule`). */
import { formatBackupAdvice } from "../../../base/database-url.ts";
import { writeJson } from "../../../base/json.ts";
import {
  changeStoredSchedule,
  MAX_BACKUPS_KEPT,
  readStoredSchedule,
  type StoredSchedule,
} from "../../../operator/backup/stored-schedule.ts";
import { COMMAND_LINE, formatActor } from "../../../platform/account/api-key.ts";
import { type Command, CommandFailure, UsageError } from "../command.ts";
import { JSON_OUTPUT, withStore } from "../data-directory.ts";
import { DATA, readDatabase } from "../service-option.ts";

const HOURS = { h: 1, d: 24, w: 168 };

export const backupsSchedule: Command = {
  words: ["backups", "schedule"],
  summary: "show or set the schedule of automatic backups",
  details:
    "A running server uses the new schedule at once. If the server was started with --backup-every, that option decides.",
  arguments: [{ name: "every", help: "a time such as 6h, 1d or 1w; off turns them off", optional: true }],
  options: [
    {
      name: "keep",
      value: "<number>",
      otherwise: "as before, at first 7",
      help: "the number of automatic backups to keep",
    },
    JSON_OUTPUT,
    ...DATA,
  ],
  examples: ["relay backups schedule", "relay backups schedule 6h --keep 28 --data-dir /var/lib/relay"],
  async run(input, io) {
    const database = readDatabase(input);
    if (database !== null) throw new CommandFailure("backup_refused", formatBackupAdvice(database));
    const [text] = input.positionals;
    const everyHours = text === undefined ? undefined : readHours(text);
    const keep = input.number("keep", { from: 1, to: MAX_BACKUPS_KEPT });
    const schedule = await withStore(input, io, async (store) => {
      const before = await store.read(readStoredSchedule);
      if (everyHours === undefined && keep === null) return before;
      const after: StoredSchedule = {
        everyHours: everyHours === undefined ? before.everyHours : everyHours,
        keep: keep ?? before.keep,
      };
      const change = { nowMs: io.clock.now(), by: formatActor(COMMAND_LINE) };
      await store.write("dashboard", (tx) => changeStoredSchedule(tx, change, after));
      return after;
    });
    io.print(input.on("json") ? writeJson(schedule, 2) : formatSchedule(schedule));
  },
};

/** Returns the hours, or null for off. Throws UsageError. */
function readHours(text: string): number | null {
  if (text === "off") return null;
  const [, number, unit] = /^([1-9]\d{0,3})([hdw])$/.exec(text) ?? [];
  if (number === undefined)
    throw new UsageError(
      `${JSON.stringify(text)} is not a time between backups: write a number with h, d or w, such as 6h, or off.`,
    );
  return Number(number) * HOURS[unit as keyof typeof HOURS];
}

function formatSchedule({ everyHours, keep }: StoredSchedule): string {
  if (everyHours === null) return "Automatic backups are off.";
  const every = everyHours === 1 ? "every hour" : `every ${everyHours} hours`;
  return `The server makes a backup ${every} and keeps the newest ${keep}.`;
}
